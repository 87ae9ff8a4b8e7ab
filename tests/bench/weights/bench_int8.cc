// Products with constant int8 weights, which are packed, beside the same with weights that are an
// input of the graph, which are widened to float32 in blocks; one thread, in turns. x is int8
// (PackedBesideBlocks: oneDNN or our panels, as ONEDNN_MAX_CPU_ISA lets them) or float16
// (FloatsBesideBlocks). The argument is the number of rows of x. The counter `ratio` is the time of
// the former over that of the latter.
#include <benchmark/benchmark.h>
#include <omp.h>

#include "graph/ir/graph_builder.h"
#include "tests/bench/decoder/rounds.h"

namespace npumesh {
namespace {

constexpr int kRounds = 11;
constexpr int64_t kInner = 3072;
constexpr int64_t kColumns = 4096;

// The product of int8, scaled, or of float16 with dequantised weights.
Value Multiply(GraphBuilder& g, bool integers, const Value& x, const Value& w) {
  if (integers) {
    const Value scale = g.Const("scale", Tensor::FromVector<float>({DataType::kFloat, {1}}, {1}));
    return g.Op("QuantBatchMatmulV3", {{"x1", x}, {"x2", w}, {"scale", scale}},
                {{"dtype", AttrValue::Int(0)}});
  }
  const Value scale = g.Const("scale", Tensor::Allocate({DataType::kFloat16, {kColumns}}));
  return g.Op("WeightQuantBatchMatmulV2", {{"x", x}, {"weight", w}, {"antiquant_scale", scale}});
}

Result<std::unique_ptr<CompiledGraph>> Product(World& world, bool integers, bool constant,
                                               int64_t rows) {
  const TensorType x_type{integers ? DataType::kInt8 : DataType::kFloat16, {rows, kInner}};
  const TensorType w_type{DataType::kInt8, {kInner, kColumns}};
  GraphBuilder g("product");
  const Value x = g.Data("x", x_type);
  const Value w = constant ? g.Const("w", Tensor::Allocate(w_type)) : g.Data("w", w_type);
  g.Output({Multiply(g, integers, x, w)});
  NPUMESH_ASSIGN_OR_RETURN(Model model, g.Build());
  std::vector<Tensor> inputs = {Tensor::Allocate(x_type)};
  if (!constant) inputs.push_back(Tensor::Allocate(w_type));
  return CompiledGraph::Create(world, std::move(model), inputs);
}

void Measure(benchmark::State& state, bool integers) {
  omp_set_num_threads(1);
  Env env;
  env.hbm_bytes = uint64_t{256} << 20;
  const Result<std::unique_ptr<World>> world = World::Start(env);
  if (!world.ok()) return state.SkipWithError(world.status().ToString().c_str());
  const auto packed = Product(**world, integers, true, state.range(0));
  const auto blocks = Product(**world, integers, false, state.range(0));
  if (!packed.ok()) return state.SkipWithError(packed.status().ToString().c_str());
  if (!blocks.ok()) return state.SkipWithError(blocks.status().ToString().c_str());
  for (auto _ : state) {
    const auto [ours, others] = MediansInTurn(
        kRounds, [&] { benchmark::DoNotOptimize((*packed)->Run()); },
        [&] { benchmark::DoNotOptimize((*blocks)->Run()); });
    state.SetIterationTime(ours);
    state.counters["blocks_ms"] = others * 1e3;
    state.counters["ratio"] = ours / others;
  }
}

void PackedBesideBlocks(benchmark::State& state) {
  Measure(state, true);
}
void FloatsBesideBlocks(benchmark::State& state) {
  Measure(state, false);
}
BENCHMARK(PackedBesideBlocks)
    ->Arg(1)
    ->Arg(128)
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(FloatsBesideBlocks)
    ->Arg(1)
    ->Arg(128)
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace npumesh
