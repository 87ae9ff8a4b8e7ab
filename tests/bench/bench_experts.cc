// Tokens to the experts of two ranks and back: the operators that do it in chunks beside the same
// steps as operators of their own, in turn. Both are measured in turns, in one run; the counter
// `ratio` is the time of the former over that of the latter.
#include <benchmark/benchmark.h>

#include <array>
#include <vector>

#include "graph/ir/graph_builder.h"
#include "graph/session/session.h"
#include "tests/bench/timing.h"

namespace npumesh {
namespace {

constexpr int kRanks = 2;
constexpr int kRounds = 15;
constexpr int64_t kChoices = 2;
constexpr int64_t kExperts = 8;
constexpr int64_t kWidth = 2048;

using Seconds = std::vector<double>;  // by round

std::pair<std::string, AttrValue> WorldGroup(const char* name) {
  return {name, AttrValue::String(std::string(kWorldGroup))};
}

// Choices that give every expert as many tokens, so that the steps in turn can be written down.
Tensor Ids(int64_t tokens) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < tokens * kChoices; ++i) ids.push_back(static_cast<int32_t>(i % kExperts));
  return Tensor::FromVector({DataType::kInt32, {tokens, kChoices}}, ids);
}

// There and back again; when `quantised` there only, in 8 bits.
struct Trip {
  int64_t tokens = 0;
  bool quantised = false;

  Value InOne(GraphBuilder& g, Value x, Value ids, Value weights, int rank) const {
    const std::vector<GraphBuilder::Attr> attrs = {WorldGroup("group_ep"),
                                                   {"ep_world_size", AttrValue::Int(kRanks)},
                                                   {"ep_rank_id", AttrValue::Int(rank)},
                                                   {"moe_expert_num", AttrValue::Int(kExperts)}};
    auto dispatch = attrs;
    dispatch.push_back({"quant_mode", AttrValue::Int(quantised ? 2 : 0)});
    const Value sent =
        g.Op("MoeDistributeDispatchV2", {{"x", x}, {"expert_ids", ids}}, dispatch, "dispatch", 7);
    if (quantised) return sent;
    return g.Op("MoeDistributeCombineV2",
                {{"expand_x", sent},
                 {"expert_ids", ids},
                 {"assist_info_for_combine", g.Port(sent, 2)},
                 {"ep_send_counts", g.Port(sent, 4)},
                 {"expert_scales", weights}},
                attrs);
  }

  Value InTurn(GraphBuilder& g, Value x, Value ids, Value weights, int) const {
    const Value sorted = g.Op("MoeInitRoutingV3", {{"x", x}, {"expert_idx", ids}},
                              {{"expert_num", AttrValue::Int(kExperts)},
                               {"quant_mode", AttrValue::Int(quantised ? 1 : -1)}},
                              "route", 4);
    const Value rows = g.Op("HcomAllToAll", {{"x", sorted}}, {WorldGroup("group")});
    const std::vector<int64_t> each(kRanks * (kExperts / kRanks), tokens * kChoices / kExperts);
    const Value counts = g.Const(
        "counts", Tensor::FromVector({DataType::kInt64, {kRanks, kExperts / kRanks}}, each));
    std::vector<GraphBuilder::Input> inputs = {{"tokens", rows},
                                               {"expert_token_num_per_rank", counts}};
    if (quantised) {
      inputs.push_back({"per_token_scales",
                        g.Op("HcomAllToAll", {{"x", g.Port(sorted, 3)}}, {WorldGroup("group")})});
    }
    const Value there = g.Op("MoeReRouting", inputs, {}, "sort", 4);
    if (quantised) return there;
    // By rank, then expert, as they came.
    std::vector<int64_t> order;
    const int64_t rows_each = tokens * kChoices / kExperts;
    for (int64_t r = 0; r < kRanks; ++r) {
      for (int64_t e = 0; e < kExperts / kRanks; ++e) {
        for (int64_t i = 0; i < rows_each; ++i) order.push_back((e * kRanks + r) * rows_each + i);
      }
    }
    const Value unsorted =
        g.Op("GatherV2", {{"x", there}, {"indices", g.Ints(order)}, {"axis", g.Int(0)}});
    const Value back = g.Op("HcomAllToAll", {{"x", unsorted}}, {WorldGroup("group")});
    return g.Op(
        "MoeFinalizeRoutingV2",
        {{"expanded_x", back}, {"expanded_row_idx", g.Port(sorted, 1)}, {"scales", weights}},
        {{"drop_pad_mode", AttrValue::Int(2)}});
  }
};

Result<std::unique_ptr<Session>> MakeSession(World& world, DeviceMemory& memory, const Trip& trip,
                                             bool in_one) {
  GraphBuilder g;
  const TensorType type = {DataType::kBfloat16, {trip.tokens, kWidth}};
  const Value x = g.RefData("x", type);
  const Value ids = g.Const("ids", Ids(trip.tokens));
  const std::vector<float> halves(static_cast<size_t>(trip.tokens * kChoices), 0.5f);
  Value weights =
      g.Const("weights", Tensor::FromVector({DataType::kFloat, {trip.tokens, kChoices}}, halves));
  if (!in_one) {
    weights = g.Op("Cast", {{"x", weights}}, {{"dst_type", AttrValue::Int(27)}});
  }
  const Value y = in_one ? trip.InOne(g, x, ids, weights, world.rank())
                         : trip.InTurn(g, x, ids, weights, world.rank());
  // A row is enough to take out, and no copy of the result is measured.
  g.Output({g.Op("Slice", {{"x", y}, {"offsets", g.Ints({0, 0})}, {"size", g.Ints({1, 8})}})});
  NPUMESH_ASSIGN_OR_RETURN(Model model, g.Build());
  NPUMESH_ASSIGN_OR_RETURN(std::unique_ptr<Session> session,
                           Session::Create(world, memory, std::move(model), {}));
  const std::vector<uint16_t> values(static_cast<size_t>(trip.tokens * kWidth), 0x3f80);
  NPUMESH_RETURN_IF_ERROR(session->Run({Tensor::FromVector(type, values)}).status());
  return session;
}

Status Time(Session& session, Seconds& times) {
  Status status;
  times.push_back(SecondsOf([&] { status = session.Run({Tensor()}).status(); }));
  return status;
}

struct Pair {
  double in_one = 0;
  double in_turn = 0;
};

Result<Pair> Measure(const Trip& trip) {
  std::array<Seconds, kRanks> in_one, in_turn;
  Env env;
  env.hbm_bytes = uint64_t{256} << 20;
  const auto body = [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    NPUMESH_ASSIGN_OR_RETURN(const auto with, MakeSession(world, *memory, trip, true));
    NPUMESH_ASSIGN_OR_RETURN(const auto without, MakeSession(world, *memory, trip, false));
    const auto rank = static_cast<size_t>(world.rank());
    for (int round = 0; round < kRounds; ++round) {
      NPUMESH_RETURN_IF_ERROR(Time(*with, in_one[rank]));
      NPUMESH_RETURN_IF_ERROR(Time(*without, in_turn[rank]));
    }
    return world.Shutdown();
  };
  for (const Status& status : RunRanks(kRanks, env, body)) NPUMESH_RETURN_IF_ERROR(status);
  return Pair{MedianOfSlower(in_one), MedianOfSlower(in_turn)};
}

// range(0): tokens of a rank.
void ToExperts(benchmark::State& state, bool quantised) {
  for (auto _ : state) {
    const Result<Pair> pair = Measure({state.range(0), quantised});
    if (!pair.ok()) {
      const std::string message(pair.status().message());
      return state.SkipWithError(message.c_str());
    }
    state.SetIterationTime(pair->in_one);
    state.counters["in_turn_us"] = pair->in_turn * 1e6;
    state.counters["ratio"] = pair->in_one / pair->in_turn;
  }
}

#define NPUMESH_EXPERT_BENCHMARK(name, quantised) \
  BENCHMARK_CAPTURE(ToExperts, name, quantised)   \
      ->Arg(128)                                  \
      ->Arg(1024)                                 \
      ->Iterations(1)                             \
      ->UseManualTime()                           \
      ->Unit(benchmark::kMicrosecond)
NPUMESH_EXPERT_BENCHMARK(there_and_back, false);
NPUMESH_EXPERT_BENCHMARK(there_in_8_bits, true);

}  // namespace
}  // namespace npumesh
