// One graph with the operators of expert parallelism on four ranks: tokens go to experts, through
// two products, and come back, by both versions, normalised and multiplied over the ranks behind.
// Loads are uneven, and change from run to run: an expert without tokens, then one with all.
#include <gmock/gmock.h>

#include <cmath>

#include "graph/ops/core/op_registry.h"
#include "tests/unit/op_values.h"
#include "tests/unit/session/session_fixture.h"

namespace npumesh {
namespace {

constexpr int kRanks = 4;
constexpr int64_t kExperts = 8;
constexpr int64_t kTokens = 5;
constexpr int64_t kChoices = 2;
constexpr int64_t kWidth = 4;
constexpr int64_t kHidden = 3;
constexpr DataType kDtype = DataType::kBfloat16;

using Numbers = std::vector<double>;

// -2 to 2.
double Number(int64_t i, int64_t seed) {
  return static_cast<double>((i * i + 2 * i + 3 * seed) % 5 - 2);
}
double First(int64_t expert, int64_t k, int64_t n) {
  return Number(k * kHidden + n, expert);
}
double Second(int64_t expert, int64_t k, int64_t n) {
  return Number(k * kWidth + n, expert + 3);
}
double X(int rank, int64_t token, int64_t i) {
  return Number(token * kWidth + i, rank);
}
double Gamma(int64_t i) {
  return i % 2 == 0 ? 1.5 : -1;
}
double Weight(int64_t token, int64_t choice) {
  return choice == 0 ? 0.5 : static_cast<double>(1 + token % 2);
}
// The weights behind the sum, different on every rank.
double Last(int rank, int64_t k, int64_t n) {
  return Number(k * 2 + n, rank + 7);
}

// Run 0: no token wants expert 5. Run 1: expert 0 gets every token, expert 7 the others' choices.
int32_t Id(int run, int rank, int64_t token, int64_t choice) {
  if (run == 1) return choice == 0 ? 0 : 7;
  const auto first = static_cast<int32_t>((token + 2 * rank) % 4);
  return choice == 0 ? first : first < 2 ? 4 : 6;
}

template <typename F>
Tensor Filled(Shape shape, const F& f) {
  Numbers values;
  for (int64_t i = 0; i < shape.elements(); ++i) values.push_back(f(i));
  return FromDoubles(kDtype, std::move(shape), values);
}

std::vector<GraphBuilder::Attr> GroupAttrs(int rank) {
  return {{"group_ep", AttrValue::String(std::string(kWorldGroup))},
          {"ep_world_size", AttrValue::Int(kRanks)},
          {"ep_rank_id", AttrValue::Int(rank)},
          {"moe_expert_num", AttrValue::Int(kExperts)}};
}

struct Layer {
  GraphBuilder& g;
  int rank;
  Value x;
  Value ids;
  Value scales;

  // The experts of this rank on what has arrived: rows by expert, counts of each.
  Value Experts(Value rows, Value counts) const {
    constexpr int64_t kLocal = kExperts / kRanks;
    const Value w1 =
        g.Const("", Filled({kLocal, kWidth, kHidden}, [&](int64_t i) {
                  const int64_t at = i % (kWidth * kHidden);
                  return First(rank * kLocal + i / (kWidth * kHidden), at / kHidden, at % kHidden);
                }));
    const Value w2 =
        g.Const("", Filled({kLocal, kHidden, kWidth}, [&](int64_t i) {
                  const int64_t at = i % (kWidth * kHidden);
                  return Second(rank * kLocal + i / (kWidth * kHidden), at / kWidth, at % kWidth);
                }));
    const auto product = [&](Value in, Value w, int64_t activation) {
      return g.Op("GroupedMatmul", {{"x0", in}, {"weight0", w}, {"group_list", counts}},
                  {{"split_item", AttrValue::Int(3)},
                   {"group_type", AttrValue::Int(0)},
                   {"group_list_type", AttrValue::Int(1)},
                   {"act_type", AttrValue::Int(activation)}});
    };
    return product(product(rows, w1, 1), w2, 0);
  }

  Value Dispatch(const std::string& version) const {
    return g.Op("MoeDistributeDispatch" + version, {{"x", x}, {"expert_ids", ids}},
                GroupAttrs(rank), "dispatch" + version, 7);
  }

  // Output 0 of the combine.
  Value Combine(Value sent, const std::string& version, const std::string& hand_over,
                std::vector<GraphBuilder::Input> more, int outputs) const {
    std::vector<GraphBuilder::Input> inputs = {{"expand_x", Experts(sent, g.Port(sent, 3))},
                                               {"expert_ids", ids},
                                               {hand_over, g.Port(sent, 2)},
                                               {"ep_send_counts", g.Port(sent, 4)},
                                               {"expert_scales", scales}};
    inputs.insert(inputs.end(), more.begin(), more.end());
    return g.Op("MoeDistributeCombine" + version, inputs, GroupAttrs(rank), "combine" + version,
                outputs);
  }
};

Result<Model> BuildLayer(int rank) {
  GraphBuilder g;
  Layer layer{g, rank, g.Data("x", {kDtype, {kTokens, kWidth}}),
              g.Data("ids", {DataType::kInt32, {kTokens, kChoices}}),
              g.Data("scales", {DataType::kFloat, {kTokens, kChoices}})};
  const std::vector<GraphBuilder::Attr> group = {
      {"group", AttrValue::String(std::string(kWorldGroup))}};
  auto world = group;
  world.push_back({"world_size", AttrValue::Int(kRanks)});
  layer.x = g.Op("DistributeBarrier", {{"x_ref", layer.x}}, world);
  const Value plain = layer.Combine(layer.Dispatch(""), "", "expand_idx", {}, 1);
  const Value residual = g.Op("Reshape", {{"x", layer.x}, {"shape", g.Ints({kTokens, 1, kWidth})}});
  const Value gamma = g.Const("gamma", Filled({kWidth}, Gamma));
  const Value normed = layer.Combine(layer.Dispatch("V2"), "AddRmsNorm", "assist_info_for_combine",
                                     {{"residual_x", residual}, {"gamma", gamma}}, 3);
  const Value last =
      g.Const("last", Filled({kWidth, 2}, [&](int64_t i) { return Last(rank, i / 2, i % 2); }));
  const Value reduced = g.Op("MatmulAllReduce", {{"x1", plain}, {"x2", last}}, group);
  g.Output({plain, g.Port(normed, 0), g.Port(normed, 2), reduced});
  return g.Build();
}

// What the experts make of a token, before weights.
double OfExpert(int64_t expert, int rank, int64_t token, int64_t i) {
  double y = 0;
  for (int64_t h = 0; h < kHidden; ++h) {
    double sum = 0;
    for (int64_t k = 0; k < kWidth; ++k) sum += X(rank, token, k) * First(expert, k, h);
    y += std::max(sum, 0.0) * Second(expert, h, i);
  }
  return y;
}

Numbers Combined(int run, int rank) {
  Numbers y;
  for (int64_t t = 0; t < kTokens; ++t) {
    for (int64_t i = 0; i < kWidth; ++i) {
      double sum = 0;
      for (int64_t c = 0; c < kChoices; ++c) {
        sum += Weight(t, c) * Rounded(kDtype, OfExpert(Id(run, rank, t, c), rank, t, i));
      }
      y.push_back(sum);
    }
  }
  return y;
}

void ExpectRun(const std::vector<Tensor>& out, int run, int rank) {
  const Numbers sums = Combined(run, rank);
  const Tensor plain = FromDoubles(kDtype, {kTokens, kWidth}, sums);
  EXPECT_TRUE(SameBytes(out[0], plain));
  Numbers x, y, reduced(kTokens * 2);
  for (size_t i = 0; i < sums.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    x.push_back(Rounded(kDtype, sums[i] + X(rank, at / kWidth, at % kWidth)));
  }
  for (size_t i = 0; i < x.size(); ++i) {
    double squares = 0;
    const size_t row = i / kWidth * kWidth;
    for (size_t d = row; d < row + kWidth; ++d) squares += x[d] * x[d];
    const double root =
        Rounded(DataType::kFloat, 1 / std::sqrt(squares / kWidth + static_cast<double>(1e-6f)));
    const double scaled = Rounded(kDtype, Rounded(DataType::kFloat, x[i] * root));
    y.push_back(scaled * Gamma(static_cast<int64_t>(i % kWidth)));
  }
  EXPECT_TRUE(SameBytes(out[1], FromDoubles(kDtype, {kTokens, 1, kWidth}, y)));
  EXPECT_TRUE(SameBytes(out[2], FromDoubles(kDtype, {kTokens, 1, kWidth}, x)));
  for (int r = 0; r < kRanks; ++r) {
    const Numbers part = ToDoubles(FromDoubles(kDtype, {kTokens, kWidth}, Combined(run, r)));
    for (int64_t i = 0; i < kTokens * 2; ++i) {
      for (int64_t k = 0; k < kWidth; ++k) {
        reduced[static_cast<size_t>(i)] +=
            part[static_cast<size_t>(i / 2 * kWidth + k)] * Last(r, k, i % 2);
      }
    }
  }
  EXPECT_TRUE(SameBytes(out[3], FromDoubles(kDtype, {kTokens, 2}, reduced)));
}

TEST(ExpertsOnRanks, OneGraphWithUnevenLoads) {
  for (const bool overlaps : {false, true}) {
    const std::vector<Status> statuses =
        OnRanks(kRanks, [&](World& world, DeviceMemory& memory) -> Status {
          const int rank = world.rank();
          NPUMESH_ASSIGN_OR_RETURN(Model model, BuildLayer(rank));
          SessionOptions options;
          options.compile.overlap_collectives = overlaps;
          NPUMESH_ASSIGN_OR_RETURN(
              const std::unique_ptr<Session> session,
              Session::Create(world, memory, std::move(model), std::move(options)));
          const Tensor x =
              Filled({kTokens, kWidth}, [&](int64_t i) { return X(rank, i / kWidth, i % kWidth); });
          Numbers weights;
          for (int64_t i = 0; i < kTokens * kChoices; ++i) {
            weights.push_back(Weight(i / kChoices, i % kChoices));
          }
          for (const int run : {0, 1, 0}) {
            std::vector<int32_t> ids;
            for (int64_t i = 0; i < kTokens * kChoices; ++i) {
              ids.push_back(Id(run, rank, i / kChoices, i % kChoices));
            }
            NPUMESH_ASSIGN_OR_RETURN(
                const std::vector<Tensor> out,
                session->Run({x, Make<int32_t>(DataType::kInt32, {kTokens, kChoices}, ids),
                              FromDoubles(DataType::kFloat, {kTokens, kChoices}, weights)}));
            SCOPED_TRACE(fmt::format("run {} of rank {}", run, rank));
            ExpectRun(out, run, rank);
          }
          return world.Shutdown();
        });
    for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.ToString();
  }
}

}  // namespace
}  // namespace npumesh
