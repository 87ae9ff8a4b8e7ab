// Five tokens of each rank and six experts: what tests of dispatch and combine over ranks share.
#ifndef NPUMESH_TESTS_RANKS_OPERATORS_EXPERT_SCENE_H_
#define NPUMESH_TESTS_RANKS_OPERATORS_EXPERT_SCENE_H_

#include <string>
#include <vector>

#include "tests/ranks/operators/rank_op.h"

namespace npumesh {

inline constexpr int64_t kTokens = 5;
inline constexpr int64_t kWidth = 4;
inline constexpr int64_t kChoices = 2;
inline constexpr int64_t kExperts = 6;

struct Scene {
  int ranks = 2;
  int64_t shared_ranks = 0;
  int64_t quant = 0;
  bool masks = false;
  int64_t special = 0;  // a zero, a copy and a constant expert
  std::string version = "V2";
  DataType dtype = DataType::kFloat16;
};

inline double Element(int rank, int64_t token, int64_t i) {
  return rank + 1 + static_cast<double>(token) + 8.0 * static_cast<double>(i);
}

inline std::vector<int32_t> Ids(const Scene& scene, int rank) {
  const auto all = static_cast<int32_t>(kExperts + scene.special);
  std::vector<int32_t> ids;
  for (int32_t t = 0; t < kTokens; ++t) {
    const int32_t first = (t * 5 + rank * 3) % all;
    ids.push_back(first);
    ids.push_back((first + 1 + t % 3) % all);
  }
  return ids;
}

inline bool IsActive(const Scene& scene, int64_t token) {
  return !scene.masks || token != 2;
}

inline double Weight(int64_t token, int64_t choice) {
  return 0.5 * static_cast<double>(token + 1) * (choice == 0 ? 1 : -1);
}

inline std::vector<std::pair<std::string, AttrValue>> Attrs(const Scene& scene, int rank) {
  const int64_t one = scene.special > 0 ? 1 : 0;
  std::vector<std::pair<std::string, AttrValue>> attrs = {
      {"group_ep", AttrValue::String("ranks")},
      {"ep_world_size", AttrValue::Int(scene.ranks)},
      {"ep_rank_id", AttrValue::Int(rank)},
      {"moe_expert_num", AttrValue::Int(kExperts)},
      {"shared_expert_num", AttrValue::Int(1)},
      {"shared_expert_rank_num", AttrValue::Int(scene.shared_ranks)}};
  if (scene.version.empty()) return attrs;
  for (const char* name : {"zero_expert_num", "copy_expert_num", "const_expert_num"}) {
    attrs.push_back({name, AttrValue::Int(one)});
  }
  return attrs;
}

inline OpCall Dispatch(const Scene& scene, int rank) {
  std::vector<double> x;
  for (int64_t t = 0; t < kTokens; ++t) {
    for (int64_t i = 0; i < kWidth; ++i) x.push_back(Element(rank, t, i));
  }
  OpCall call{.type = "MoeDistributeDispatch" + scene.version,
              .inputs = {{"x", FromDoubles(scene.dtype, {kTokens, kWidth}, x)},
                         {"expert_ids",
                          Make<int32_t>(DataType::kInt32, {kTokens, kChoices}, Ids(scene, rank))}},
              .attrs = Attrs(scene, rank)};
  call.attrs.push_back({"quant_mode", AttrValue::Int(scene.quant)});
  if (scene.masks) {
    call.inputs.push_back(
        {"x_active_mask", Make<uint8_t>(DataType::kBool, {kTokens}, {1, 1, 0, 1, 1})});
  }
  return call;
}

// The expert of number `expert` (the shared one: -1) multiplies by this.
inline double Factor(int64_t expert) {
  return static_cast<double>(expert + 2);
}

// Runs the experts on what has arrived: the row of each local expert times its factor.
inline Tensor Experts(const Scene& scene, int rank, const std::vector<Tensor>& arrived) {
  std::vector<double> rows = ToDoubles(arrived[0]);
  const std::vector<double> counts = ToDoubles(arrived[3]);
  const int64_t share = kExperts / (scene.ranks - scene.shared_ranks);
  size_t row = 0;
  for (size_t e = 0; e < counts.size(); ++e) {
    const int64_t expert = rank < scene.shared_ranks
                               ? -1
                               : (rank - scene.shared_ranks) * share + static_cast<int64_t>(e);
    for (int i = 0; i < static_cast<int>(counts[e]); ++i, ++row) {
      for (size_t d = 0; d < kWidth; ++d) rows[row * kWidth + d] *= Factor(expert);
    }
  }
  return FromDoubles(scene.dtype, arrived[0].shape(), rows);
}

inline OpCall Combine(const Scene& scene, int rank, const OpCall& dispatch,
                      const std::vector<Tensor>& arrived) {
  std::vector<double> weights;
  for (int64_t t = 0; t < kTokens; ++t) {
    for (int64_t k = 0; k < kChoices; ++k) weights.push_back(Weight(t, k));
  }
  OpCall call{
      .type = "MoeDistributeCombine" + scene.version,
      .inputs = {{"expand_x", Experts(scene, rank, arrived)},
                 dispatch.inputs[1],
                 {scene.version.empty() ? "expand_idx" : "assist_info_for_combine", arrived[2]},
                 {"ep_send_counts", arrived[4]},
                 {"expert_scales", FromDoubles(DataType::kFloat, {kTokens, kChoices}, weights)}},
      .attrs = Attrs(scene, rank)};
  if (scene.masks) call.inputs.push_back(dispatch.inputs[2]);
  if (scene.special > 0) {
    const std::vector<double> ones(kWidth, 1);
    call.inputs.push_back({"ori_x", dispatch.inputs[0].value});
    call.inputs.push_back({"const_expert_alpha_1", FromDoubles(DataType::kFloat16, {1}, {2})});
    call.inputs.push_back({"const_expert_alpha_2", FromDoubles(DataType::kFloat16, {1}, {3})});
    call.inputs.push_back({"const_expert_v", FromDoubles(DataType::kFloat16, {1, kWidth}, ones)});
  }
  return call;
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_RANKS_OPERATORS_EXPERT_SCENE_H_
