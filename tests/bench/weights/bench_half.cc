// A product with float16 weights, which stay in 16 bits, beside the same in float32 with packed
// weights; one thread, in turns. The argument is the number of rows of x. The counter
// `ratio` is the time in float16 over that in float32.
#include <benchmark/benchmark.h>
#include <omp.h>

#include "graph/ir/graph_builder.h"
#include "tests/bench/decoder/rounds.h"

namespace npumesh {
namespace {

constexpr int kRounds = 41;
constexpr int64_t kInner = 3072;
constexpr int64_t kColumns = 4096;

Result<std::unique_ptr<CompiledGraph>> Product(World& world, DataType dtype, int64_t rows) {
  GraphBuilder g("product");
  const Value x = g.Data("x", {dtype, {rows, kInner}});
  const Value w = g.Const("w", Filled(dtype, {kInner, kColumns}, 0.01f));
  g.Output({g.Op("MatMul", {{"x1", x}, {"x2", w}})});
  NPUMESH_ASSIGN_OR_RETURN(Model model, g.Build());
  return CompiledGraph::Create(world, std::move(model), {Filled(dtype, {rows, kInner}, 0.01f)});
}

void HalvesBesideFloats(benchmark::State& state) {
  omp_set_num_threads(1);
  Env env;
  env.hbm_bytes = uint64_t{256} << 20;
  const Result<std::unique_ptr<World>> world = World::Start(env);
  if (!world.ok()) return state.SkipWithError(world.status().ToString().c_str());
  const auto halves = Product(**world, DataType::kFloat16, state.range(0));
  const auto floats = Product(**world, DataType::kFloat, state.range(0));
  if (!halves.ok()) return state.SkipWithError(halves.status().ToString().c_str());
  if (!floats.ok()) return state.SkipWithError(floats.status().ToString().c_str());
  for (auto _ : state) {
    const auto [ours, others] = MediansInTurn(
        kRounds, [&] { benchmark::DoNotOptimize((*halves)->Run()); },
        [&] { benchmark::DoNotOptimize((*floats)->Run()); });
    state.SetIterationTime(ours);
    state.counters["float32_ms"] = others * 1e3;
    state.counters["ratio"] = ours / others;
  }
}
BENCHMARK(HalvesBesideFloats)
    ->Arg(1)
    ->Arg(4)
    ->Arg(8)
    ->Arg(16)
    ->Arg(24)
    ->Arg(48)
    ->Arg(128)
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace npumesh
