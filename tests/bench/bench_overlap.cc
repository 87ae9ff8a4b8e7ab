// Collectives that overlap beside the same work done in turn, on two ranks: fused operators beside
// product and collective one after the other, and cc_parallel_enable beside one stream. Both sides
// are measured in turns, in one run; the counter `ratio` is the overlapped time over the other.
// Where two ranks keep all cores busy there is no idle time to win, and about 1 is what to expect.
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
constexpr int64_t kRows = 2048;
constexpr int64_t kColumns = 1024;

using Seconds = std::vector<double>;  // by round

TensorType Floats(Shape shape) {
  return {DataType::kFloat, std::move(shape)};
}

std::pair<std::string, AttrValue> Group() {
  return {"group", AttrValue::String("hccl_world_group")};
}
std::pair<std::string, AttrValue> Sum() {
  return {"reduction", AttrValue::String("sum")};
}
std::pair<std::string, AttrValue> Size() {
  return {"rank_size", AttrValue::Int(kRanks)};
}

// The two sides of a comparison: builds the graph; `overlap` says which.
using Build = Value (*)(GraphBuilder& g, Value x, Value w, bool overlap);

Value ProductThenSum(GraphBuilder& g, Value x, Value w, bool overlap) {
  if (overlap) return g.Op("MatmulAllReduce", {{"x1", x}, {"x2", w}}, {Group()});
  const Value y = g.Op("MatMul", {{"x1", x}, {"x2", w}});
  return g.Op("HcomAllReduce", {{"x", y}}, {Sum(), Group()});
}

Value ProductThenScatter(GraphBuilder& g, Value x, Value w, bool overlap) {
  if (overlap) return g.Op("MatmulReduceScatter", {{"x1", x}, {"x2", w}}, {Group()});
  const Value y = g.Op("MatMul", {{"x1", x}, {"x2", w}});
  return g.Op("HcomReduceScatter", {{"x", y}}, {Sum(), Group(), Size()});
}

Value GatherThenProduct(GraphBuilder& g, Value x, Value w, bool overlap) {
  if (overlap) {
    return g.Op("AllGatherMatmul", {{"x1", x}, {"x2", w}},
                {Group(), {"is_gather_out", AttrValue::Bool(false)}}, "", 2);
  }
  const Value all = g.Op("HcomAllGather", {{"x", x}}, {Group(), Size()});
  return g.Op("MatMul", {{"x1", all}, {"x2", w}});
}

// A sum over the ranks with products that do not need it.
Value SumBesideProducts(GraphBuilder& g, Value x, Value w, bool) {
  Value y = g.Op("HcomAllReduce", {{"x", x}}, {Sum(), Group()});
  for (int i = 0; i < 2; ++i) {
    const Value product = g.Op("MatMul", {{"x1", x}, {"x2", w}});
    y = g.Op("Add", {{"x1", g.Op("MatMul", {{"x1", product}, {"x2", w}})}, {"x2", y}});
  }
  return y;
}

Result<std::unique_ptr<Session>> MakeSession(World& world, DeviceMemory& memory, Build build,
                                             int64_t inner, bool overlap) {
  GraphBuilder g;
  const Value x = g.RefData("x", Floats({kRows, inner}));
  const std::vector<float> ones(static_cast<size_t>(inner * kColumns), 1.0f);
  const Value w = g.Const("w", Tensor::FromVector(Floats({inner, kColumns}), ones));
  const Value y = build(g, x, w, overlap);
  // A row is enough to take out, and no copy of the result is measured.
  g.Output({g.Op("Slice", {{"x", y}, {"offsets", g.Ints({0, 0})}, {"size", g.Ints({1, 8})}})});
  NPUMESH_ASSIGN_OR_RETURN(Model model, g.Build());
  SessionOptions options;
  options.compile.overlap_collectives = overlap;
  NPUMESH_ASSIGN_OR_RETURN(std::unique_ptr<Session> session,
                           Session::Create(world, memory, std::move(model), std::move(options)));
  const std::vector<float> values(static_cast<size_t>(kRows * inner), 1.0f);
  NPUMESH_RETURN_IF_ERROR(
      session->Run({Tensor::FromVector(Floats({kRows, inner}), values)}).status());
  return session;
}

Status Time(Session& session, Seconds& times) {
  const auto start = std::chrono::steady_clock::now();
  NPUMESH_RETURN_IF_ERROR(session.Run({Tensor()}).status());
  times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return Status();
}

struct Pair {
  double overlapped = 0;
  double in_turn = 0;
};

Result<Pair> Measure(Build build, int64_t inner) {
  std::array<Seconds, kRanks> overlapped, in_turn;
  Env env;
  env.hbm_bytes = uint64_t{192} << 20;
  const auto body = [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    NPUMESH_ASSIGN_OR_RETURN(const auto with, MakeSession(world, *memory, build, inner, true));
    NPUMESH_ASSIGN_OR_RETURN(const auto without, MakeSession(world, *memory, build, inner, false));
    const auto rank = static_cast<size_t>(world.rank());
    for (int round = 0; round < kRounds; ++round) {
      NPUMESH_RETURN_IF_ERROR(Time(*with, overlapped[rank]));
      NPUMESH_RETURN_IF_ERROR(Time(*without, in_turn[rank]));
    }
    return world.Shutdown();
  };
  for (const Status& status : RunRanks(kRanks, env, body)) NPUMESH_RETURN_IF_ERROR(status);
  return Pair{MedianOfSlower(overlapped), MedianOfSlower(in_turn)};
}

// range(0): k of the product.
void Beside(benchmark::State& state, Build build) {
  for (auto _ : state) {
    const Result<Pair> pair = Measure(build, state.range(0));
    if (!pair.ok()) {
      const std::string message(pair.status().message());
      return state.SkipWithError(message.c_str());
    }
    state.SetIterationTime(pair->overlapped);
    state.counters["in_turn_us"] = pair->in_turn * 1e6;
    state.counters["ratio"] = pair->overlapped / pair->in_turn;
  }
}

#define NPUMESH_OVERLAP_BENCHMARK(build, inner) \
  BENCHMARK_CAPTURE(Beside, build, build)       \
      ->Arg(inner)                              \
      ->Iterations(1)                           \
      ->UseManualTime()                         \
      ->Unit(benchmark::kMicrosecond)
NPUMESH_OVERLAP_BENCHMARK(ProductThenSum, 128);
NPUMESH_OVERLAP_BENCHMARK(ProductThenSum, 512);
NPUMESH_OVERLAP_BENCHMARK(ProductThenScatter, 128);
NPUMESH_OVERLAP_BENCHMARK(ProductThenScatter, 512);
NPUMESH_OVERLAP_BENCHMARK(GatherThenProduct, 512);
NPUMESH_OVERLAP_BENCHMARK(GatherThenProduct, 1024);
NPUMESH_OVERLAP_BENCHMARK(SumBesideProducts, 1024);

}  // namespace
}  // namespace npumesh
