// MoeDistributeDispatch and MoeDistributeCombine over ranks, of both versions: what a token gets
// back is the weighted sum of what its experts made of it, wherever they live.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "tests/ranks/operators/rank_op.h"
#include "tests/unit/allocation_count.h"

namespace npumesh {
namespace {

const OpRegistry& Registry() {
  static const OpRegistry registry = [] {
    OpRegistry made;
    RegisterMoeOps(made);
    return made;
  }();
  return registry;
}

constexpr int64_t kTokens = 5;
constexpr int64_t kWidth = 4;
constexpr int64_t kChoices = 2;
constexpr int64_t kExperts = 6;

struct Scene {
  int ranks = 2;
  int64_t shared_ranks = 0;
  int64_t quant = 0;
  bool masks = false;
  int64_t special = 0;  // a zero, a copy and a constant expert
  std::string version = "V2";
  DataType dtype = DataType::kFloat16;
};

double Element(int rank, int64_t token, int64_t i) {
  return rank + 1 + static_cast<double>(token) + 8.0 * static_cast<double>(i);
}

std::vector<int32_t> Ids(const Scene& scene, int rank) {
  const auto all = static_cast<int32_t>(kExperts + scene.special);
  std::vector<int32_t> ids;
  for (int32_t t = 0; t < kTokens; ++t) {
    const int32_t first = (t * 5 + rank * 3) % all;
    ids.push_back(first);
    ids.push_back((first + 1 + t % 3) % all);
  }
  return ids;
}

bool IsActive(const Scene& scene, int64_t token) {
  return !scene.masks || token != 2;
}

double Weight(int64_t token, int64_t choice) {
  return 0.5 * static_cast<double>(token + 1) * (choice == 0 ? 1 : -1);
}

std::vector<std::pair<std::string, AttrValue>> Attrs(const Scene& scene, int rank) {
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

OpCall Dispatch(const Scene& scene, int rank) {
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
double Factor(int64_t expert) {
  return static_cast<double>(expert + 2);
}

// Runs the experts on what has arrived: the row of each local expert times its factor.
Tensor Experts(const Scene& scene, int rank, const std::vector<Tensor>& arrived) {
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

OpCall Combine(const Scene& scene, int rank, const OpCall& dispatch,
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

std::vector<double> Expected(const Scene& scene, int rank) {
  const std::vector<int32_t> ids = Ids(scene, rank);
  std::vector<double> y;
  for (int64_t t = 0; t < kTokens; ++t) {
    for (int64_t i = 0; i < kWidth; ++i) {
      const double x = Element(rank, t, i);
      const auto of_expert = [&](int64_t id) { return Rounded(scene.dtype, x * Factor(id)); };
      double sum = scene.shared_ranks > 0 && IsActive(scene, t) ? of_expert(-1) : 0;
      for (int64_t k = 0; k < kChoices && IsActive(scene, t); ++k) {
        const int64_t id = ids[static_cast<size_t>(t * kChoices + k)];
        const int64_t special = id - kExperts;
        sum += Weight(t, k) * (special < 0    ? of_expert(id)
                               : special == 0 ? 0
                               : special == 1 ? x
                                              : 2 * x + 3);
      }
      y.push_back(sum);
    }
  }
  return y;
}

TEST(ExpertParallel, TokensComeBackSummed) {
  for (const Scene& scene : {Scene{1}, Scene{2}, Scene{3}, Scene{2, 0, 0, true}, Scene{4, 1},
                             Scene{4, 2}, Scene{3, 0, 0, false, 3}, Scene{2, 0, 0, false, 0, ""},
                             Scene{3, 0, 0, true, 0, ""}, Scene{4, 1, 0, false, 0, ""}}) {
    SCOPED_TRACE(fmt::format("{} ranks, {} shared, version \"{}\"", scene.ranks, scene.shared_ranks,
                             scene.version));
    ExpectAllOk(OnRanks(scene.ranks, [&](Communicator& group, DeviceMemory& memory) -> Status {
      const OpCall dispatch = Dispatch(scene, group.rank());
      NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> arrived,
                               RunOnRank(Registry(), dispatch, group, memory));
      NPUMESH_ASSIGN_OR_RETURN(
          const std::vector<Tensor> y,
          RunOnRank(Registry(), Combine(scene, group.rank(), dispatch, arrived), group, memory));
      EXPECT_EQ(ToDoubles(y[0]), Expected(scene, group.rank())) << "rank " << group.rank();
      return Status();
    }));
  }
}

TEST(ExpertParallel, TheSumIsAddedAndNormalised) {
  for (const DataType dtype : {DataType::kFloat16, DataType::kBfloat16}) {
    const Scene scene{2, 0, 0, true, 0, "V2", dtype};
    ExpectAllOk(OnRanks(2, [&](Communicator& group, DeviceMemory& memory) -> Status {
      const OpCall dispatch = Dispatch(scene, group.rank());
      NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> arrived,
                               RunOnRank(Registry(), dispatch, group, memory));
      OpCall call = Combine(scene, group.rank(), dispatch, arrived);
      const Tensor residual = Pattern(dtype, {kTokens, 1, kWidth}, group.rank());
      const Tensor gamma = FromDoubles(dtype, {kWidth}, {1, -2, 0.75, 3});
      call.type = "MoeDistributeCombineAddRmsNorm";
      call.inputs.push_back({"residual_x", residual});
      call.inputs.push_back({"gamma", gamma});
      call.attrs.push_back({"norm_eps", AttrValue::Float(0.5f)});
      NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> out,
                               RunOnRank(Registry(), call, group, memory));
      const std::vector<double> sums = Expected(scene, group.rank());
      std::vector<double> x, y, rstd;
      for (size_t i = 0; i < sums.size(); ++i) {
        x.push_back(Rounded(dtype, sums[i] + ToDoubles(residual)[i]));
      }
      for (size_t i = 0; i < x.size(); ++i) {
        const size_t row = i / kWidth * kWidth;
        double squares = 0;
        for (size_t d = row; d < row + kWidth; ++d) squares += x[d] * x[d];
        const double root = Rounded(DataType::kFloat, 1 / std::sqrt(squares / kWidth + 0.5));
        if (i == row) rstd.push_back(root);
        const double scaled = Rounded(dtype, Rounded(DataType::kFloat, x[i] * root));
        y.push_back(scaled * ToDoubles(gamma)[i - row]);
      }
      EXPECT_TRUE(SameBytes(out[0], FromDoubles(dtype, {kTokens, 1, kWidth}, y)));
      EXPECT_TRUE(SameBytes(out[1], FromDoubles(DataType::kFloat, {kTokens, 1, 1}, rstd)));
      EXPECT_TRUE(SameBytes(out[2], FromDoubles(dtype, {kTokens, 1, kWidth}, x)));
      return Status();
    }));
  }
}

// Rows come by local expert, then by rank, then by token.
TEST(ExpertParallel, ArrivesInOrder) {
  const Scene scene{2};
  ExpectAllOk(OnRanks(2, [&](Communicator& group, DeviceMemory& memory) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> arrived,
                             RunOnRank(Registry(), Dispatch(scene, group.rank()), group, memory));
    std::vector<double> first, ends, counts;
    for (int64_t e = 3 * group.rank(); e < 3 * group.rank() + 3; ++e) {
      const size_t before = first.size();
      for (int r = 0; r < 2; ++r) {
        const std::vector<int32_t> ids = Ids(scene, r);
        for (size_t p = 0; p < ids.size(); ++p) {
          if (ids[p] == e) first.push_back(Element(r, static_cast<int64_t>(p) / 2, 0));
        }
        ends.push_back(static_cast<double>(first.size()));
      }
      counts.push_back(static_cast<double>(first.size() - before));
    }
    EXPECT_EQ(arrived[0].shape(), (Shape{20, kWidth}));
    const std::vector<double> rows = ToDoubles(arrived[0]);
    for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(rows[i * kWidth], first[i]) << i;
    EXPECT_EQ(ToDoubles(arrived[3]), counts);
    EXPECT_EQ(ToDoubles(arrived[4]), ends);
    return Status();
  }));
}

// The hand-over of the first version has a number for each choice of a token.
TEST(ExpertParallel, FirstVersionNumbersTheChoicesOfAnExpert) {
  const Scene scene{2, 0, 0, false, 0, ""};
  ExpectAllOk(OnRanks(2, [&](Communicator& group, DeviceMemory& memory) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> arrived,
                             RunOnRank(Registry(), Dispatch(scene, group.rank()), group, memory));
    const std::vector<int32_t> ids = Ids(scene, group.rank());
    std::vector<double> want;
    for (size_t i = 0; i < ids.size(); ++i) {
      want.push_back(static_cast<double>(
          std::count(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(i), ids[i])));
    }
    EXPECT_EQ(ToDoubles(arrived[2]), want);
    return Status();
  }));
}

TEST(ExpertParallel, DynamicScalesTravelAlong) {
  const Scene scene{2, 0, 2};
  ExpectAllOk(OnRanks(2, [&](Communicator& group, DeviceMemory& memory) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> arrived,
                             RunOnRank(Registry(), Dispatch(scene, group.rank()), group, memory));
    EXPECT_EQ(arrived[0].dtype(), DataType::kInt8);
    const std::vector<double> rows = ToDoubles(arrived[0]);
    const std::vector<double> scales = ToDoubles(arrived[1]);
    const auto total = static_cast<size_t>(ToDoubles(arrived[4]).back());
    for (size_t i = 0; i < total; ++i) {
      const int32_t* from = arrived[2].as<int32_t>().data() + i * 128;
      EXPECT_EQ(rows[i * kWidth + kWidth - 1], 127) << "the last element is the largest";
      EXPECT_NEAR(scales[i] * 127, Element(from[0], from[1], kWidth - 1), 1e-4);
    }
    return Status();
  }));
}

// A rank with a wrong expert takes the others along instead of leaving them waiting.
TEST(ExpertParallel, AllLeaveTogether) {
  const Scene scene{3};
  const std::vector<Status> statuses =
      OnRanks(3, [&](Communicator& group, DeviceMemory& memory) -> Status {
        OpCall call = Dispatch(scene, group.rank());
        if (group.rank() == 1) {
          std::vector<int32_t> ids = Ids(scene, 1);
          ids[3] = 6;
          call.inputs[1].value = Make<int32_t>(DataType::kInt32, {kTokens, kChoices}, ids);
        }
        return RunOnRank(Registry(), call, group, memory).status();
      });
  EXPECT_THAT(statuses[1].message(), testing::HasSubstr("holds 6 for token 1"));
  for (const size_t rank : {0, 2}) {
    EXPECT_EQ(statuses[rank].code(), Code::kPeerLost);
    EXPECT_THAT(statuses[rank].message(), testing::HasSubstr("rank 1 of the group refuses"));
  }
}

TEST(ExpertParallel, CombineNoticesForeignRows) {
  const Scene scene{2};
  const std::vector<Status> statuses =
      OnRanks(2, [&](Communicator& group, DeviceMemory& memory) -> Status {
        const OpCall dispatch = Dispatch(scene, group.rank());
        NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> arrived,
                                 RunOnRank(Registry(), dispatch, group, memory));
        OpCall combine = Combine(scene, group.rank(), dispatch, arrived);
        if (group.rank() == 0) {
          combine.inputs[1].value =
              Make<int32_t>(DataType::kInt32, {kTokens, kChoices}, {0, 1, 0, 1, 0, 1, 0, 1, 0, 1});
        }
        return RunOnRank(Registry(), combine, group, memory).status();
      });
  // All of its tokens want expert 0, of which rank 0 has other rows; rank 1 misses its own.
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), Code::kMismatch) << status.ToString();
    EXPECT_THAT(status.message(), testing::HasSubstr("by ep_send_counts the rows of rank 0"));
  }
}

TEST(ExpertParallel, CombineReadsWhereRowsCameFrom) {
  const Scene scene{2};
  const std::vector<Status> statuses =
      OnRanks(2, [&](Communicator& group, DeviceMemory& memory) -> Status {
        const OpCall dispatch = Dispatch(scene, group.rank());
        NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> arrived,
                                 RunOnRank(Registry(), dispatch, group, memory));
        OpCall combine = Combine(scene, group.rank(), dispatch, arrived);
        if (group.rank() == 0) {
          const Tensor& assist = combine.inputs[2].value;
          combine.inputs[2].value =
              Make<int32_t>(DataType::kInt32, assist.shape(),
                            std::vector<int32_t>(static_cast<size_t>(assist.shape()[0]), 9));
        }
        return RunOnRank(Registry(), combine, group, memory).status();
      });
  EXPECT_THAT(statuses[0].message(), testing::HasSubstr("row 0 is of rank 9, ep_send_counts that"));
  EXPECT_EQ(statuses[1].code(), Code::kPeerLost) << statuses[1].ToString();
}

// Allocations of both ranks while `work` runs, all of it between two meetings that make none.
template <typename Work>
Result<uint64_t> AllocationsOf(std::atomic<int>& arrived, const Work& work) {
  const auto meet = [&] {
    const int end = (arrived++ / 2 + 1) * 2;
    while (arrived < end) std::this_thread::yield();
  };
  meet();
  const uint64_t before = AllocationCount();
  meet();
  const Status status = work();
  meet();
  const uint64_t count = AllocationCount() - before;
  meet();
  if (!status.ok()) return status;
  return count;
}

// Nothing but what their exchanges allocate.
TEST(ExpertParallel, AllocateNothingOnceTheyRan) {
  const Scene scene{2};
  std::atomic<int> arrived{0};
  ExpectAllOk(OnRanks(2, [&](Communicator& group, DeviceMemory& memory) -> Status {
    const OpCall dispatch = Dispatch(scene, group.rank());
    NPUMESH_ASSIGN_OR_RETURN(const auto there, RankOp::Make(Registry(), dispatch, group, memory));
    NPUMESH_RETURN_IF_ERROR(there->Run());
    const OpCall combine = Combine(scene, group.rank(), dispatch, there->Outputs());
    NPUMESH_ASSIGN_OR_RETURN(const auto back, RankOp::Make(Registry(), combine, group, memory));
    HbmArray<int64_t> send(memory, 2), recv(memory, 2);
    const uint64_t counts[] = {1, 1};
    const uint64_t places[] = {0, 1};
    const auto exchange = [&]() -> Status {
      for (int i = 0; i < 20; ++i) {
        NPUMESH_RETURN_IF_ERROR(group.AllToAllV(send.data(), counts, places, recv.data(), counts,
                                                places, DataType::kInt64, "node_under_test"));
      }
      return Status();
    };
    const auto both = [&]() -> Status {
      for (int i = 0; i < 10; ++i) {
        NPUMESH_RETURN_IF_ERROR(there->Run());
        NPUMESH_RETURN_IF_ERROR(back->Run());
      }
      return Status();
    };
    NPUMESH_RETURN_IF_ERROR(exchange());
    NPUMESH_RETURN_IF_ERROR(both());
    NPUMESH_ASSIGN_OR_RETURN(const uint64_t of_exchanges, AllocationsOf(arrived, exchange));
    NPUMESH_ASSIGN_OR_RETURN(const uint64_t of_operators, AllocationsOf(arrived, both));
    EXPECT_EQ(of_operators, of_exchanges);
    return Status();
  }));
}

// A rank with more tokens than the others, and no global_bs that says so: nobody waits for the one
// that finds out. Two of three used to wait until their time was up.
TEST(ExpertParallel, MoreTokensThanOthersNeedGlobalBs) {
  for (const int64_t global : {0, 18}) {
    const std::vector<Status> statuses =
        OnRanks(3, [&](Communicator& group, DeviceMemory& memory) -> Status {
          OpCall call = Dispatch({3}, group.rank());
          call.attrs.push_back({"global_bs", AttrValue::Int(global)});
          if (group.rank() == 1) {
            call.inputs[0].value = Pattern(DataType::kFloat16, {6, kWidth});
            call.inputs[1].value =
                Make<int32_t>(DataType::kInt32, {6, 2}, {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 2, 3});
          }
          return RunOnRank(Registry(), call, group, memory).status();
        });
    for (const Status& status : statuses) {
      EXPECT_EQ(status.ok(), global > 0) << status.ToString();
      if (global > 0) continue;
      EXPECT_EQ(status.code(), Code::kInvalidArgument);
      EXPECT_THAT(status.message(), testing::HasSubstr("16 tokens together"));
    }
  }
}

TEST(ExpertParallel, RefusesWhatDoesNotFit) {
  const std::vector<Status> statuses =
      OnRanks(2, [&](Communicator& group, DeviceMemory& memory) -> Status {
        OpCall call = Dispatch({2}, 1 - group.rank());
        return RunOnRank(Registry(), call, group, memory).status();
      });
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(status.message(), testing::HasSubstr("ep_rank_id"));
  }
  OpCall elastic = Dispatch({2}, 0);
  elastic.inputs.push_back({"elastic_info", Pattern(DataType::kInt32, {8})});
  const Status status = OnRanks(2, [&](Communicator& group, DeviceMemory& memory) -> Status {
    elastic.attrs[2] = {"ep_rank_id", AttrValue::Int(group.rank())};
    return group.rank() > 0 ? Status() : RunOnRank(Registry(), elastic, group, memory).status();
  })[0];
  EXPECT_EQ(status.code(), Code::kUnsupported) << status.ToString();
  EXPECT_THAT(status.message(), testing::HasSubstr("\"elastic_info\" is not supported"));
}

}  // namespace
}  // namespace npumesh
