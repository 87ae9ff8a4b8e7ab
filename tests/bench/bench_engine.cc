// The engine beside doing the same by hand: what one step of a graph costs when its kernel does
// next to nothing, and an element-wise kernel beside memcpy.
#include <benchmark/benchmark.h>

#include <cstring>
#include <filesystem>

#include "graph/engine/plan/compiled_model.h"
#include "graph/engine/run/executor.h"
#include "graph/engine/run/plan_cache.h"
#include "graph/ir/graph_builder.h"
#include "graph/ops/builtin_ops.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {
namespace {

constexpr int kSteps = 1000;
constexpr int64_t kTiny = 8;

std::string ProfileFolder() {
  return (std::filesystem::temp_directory_path() / "npumesh_bench_engine").string();
}

// A compiled graph on a separate device.
class Runnable {
 public:
  static Result<std::unique_ptr<Runnable>> Create(Model model, const TensorType& input,
                                                  bool profiled = false) {
    auto made = std::unique_ptr<Runnable>(new Runnable(std::move(model)));
    Env env;
    env.hbm_bytes = uint64_t{256} << 20;
    NPUMESH_ASSIGN_OR_RETURN(made->world_, World::Start(env));
    NPUMESH_ASSIGN_OR_RETURN(made->memory_, DeviceMemory::Create(*made->world_));
    NPUMESH_ASSIGN_OR_RETURN(made->compiled_, CompiledModel::Compile(made->model_, BuiltinOps(),
                                                                     {input}, {}, nullptr, {}));
    made->pool_ = std::make_unique<DevicePool>(*made->memory_);
    Profiler& profiler = Profiler::Of(*made->world_);
    if (profiled) NPUMESH_RETURN_IF_ERROR(profiler.Start(ProfileFolder(), {}, uint64_t{256} << 20));
    NPUMESH_ASSIGN_OR_RETURN(made->executor_,
                             Executor::Create(*made->compiled_, *made->pool_, {}, &profiler));
    NPUMESH_RETURN_IF_ERROR(made->Run());  // touches the memory
    return made;
  }
  Status Run() { return executor_->Run().status(); }
  size_t steps() const { return compiled_->steps().size(); }

 private:
  explicit Runnable(Model model) : model_(std::move(model)) {}
  Model model_;
  std::unique_ptr<World> world_;
  std::unique_ptr<DeviceMemory> memory_;
  std::unique_ptr<CompiledModel> compiled_;
  std::unique_ptr<DevicePool> pool_;
  std::unique_ptr<Executor> executor_;
};

// x + x, then + x again and again: `adds` steps.
Result<std::unique_ptr<Runnable>> Adds(int64_t elements, int adds, bool profiled = false) {
  const TensorType type{DataType::kFloat, {elements}};
  GraphBuilder g("adds");
  const Value x = g.Data("x", type);
  Value sum = x;
  for (int i = 0; i < adds; ++i) sum = g.Op("Add", {{"x1", sum}, {"x2", x}});
  g.Output({sum});
  NPUMESH_ASSIGN_OR_RETURN(Model model, g.Build());
  return Runnable::Create(std::move(model), type, profiled);
}

// Time per item is the time of one operator. Argument: 1 with a profile, 0, the baseline, without.
void Dispatch(benchmark::State& state) {
  const auto graph = Adds(kTiny, kSteps, state.range(0) == 1);
  if (!graph.ok()) return state.SkipWithError(graph.status().ToString().c_str());
  for (auto _ : state) {
    if (const Status status = (*graph)->Run(); !status.ok()) {
      return state.SkipWithError(status.ToString().c_str());
    }
  }
  const auto operators = static_cast<double>((*graph)->steps());
  state.counters["per_operator"] = benchmark::Counter(
      operators, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(Dispatch)->Arg(0)->Arg(1);

[[gnu::noinline]] void AddTiny(const float* a, const float* b, float* out) {
  for (int64_t i = 0; i < kTiny; ++i) out[i] = a[i] + b[i];
}

void DispatchByHand(benchmark::State& state) {
  float x[kTiny] = {};
  float sum[kTiny] = {};
  for (auto _ : state) {
    for (int i = 0; i < kSteps; ++i) AddTiny(sum, x, sum);
    benchmark::ClobberMemory();
  }
  state.counters["per_operator"] = benchmark::Counter(
      kSteps, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(DispatchByHand);

// s [16,64] through 24 products and activations; x [-1] through eight element-wise operators.
Result<Model> MixedModel() {
  const TensorType weight{DataType::kFloat, {64, 64}};
  GraphBuilder g("mixed");
  Value s = g.Data("s", {DataType::kFloat, {16, 64}});
  for (int i = 0; i < 24; ++i) {
    const Value w = g.Const(fmt::format("w{}", i), Tensor::Allocate(weight));
    s = g.Op("Relu", {{"x", g.Op("MatMul", {{"x1", s}, {"x2", w}})}});
  }
  const Value x = g.Data("x", {DataType::kFloat, {-1}});
  Value y = x;
  for (int i = 0; i < 8; ++i) y = g.Op("Add", {{"x1", y}, {"x2", x}});
  g.Output({s, y});
  return g.Build();
}

// What the first run of a signature waits for: its plan. Argument: static_model_ops_lower_limit;
// -1, where nothing is shared, is the baseline.
Status CompileSignatures(benchmark::State& state) {
  NPUMESH_ASSIGN_OR_RETURN(const Model model, MixedModel());
  Env env;
  env.hbm_bytes = uint64_t{64} << 20;
  NPUMESH_ASSIGN_OR_RETURN(const auto world, World::Start(env));
  NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(*world));
  WeightCache weights;
  DevicePool pool(*memory);
  PlanSettings settings;
  settings.registry = &BuiltinOps();
  settings.compile.weights = &weights;
  settings.compile.static_ops_limit = state.range(0);
  settings.max_plans = 2;
  ProgramStats stats;
  PlanCache plans(model, settings, pool, {}, stats);
  int64_t size = 0;
  const auto compile = [&] {
    size = size % 4096 + 1;
    const std::vector<PlanOperand> inputs = {{{DataType::kFloat, {16, 64}}, nullptr},
                                             {{DataType::kFloat, {size}}, nullptr}};
    return plans.For(inputs, false).status();
  };
  NPUMESH_RETURN_IF_ERROR(compile());
  for (auto _ : state) NPUMESH_RETURN_IF_ERROR(compile());
  state.counters["steps_compiled"] =
      static_cast<double>(stats.steps_compiled) / static_cast<double>(stats.plans);
  return Status();
}

void NewSignature(benchmark::State& state) {
  if (const Status status = CompileSignatures(state); !status.ok()) {
    state.SkipWithError(status.ToString().c_str());
  }
}
BENCHMARK(NewSignature)->Arg(-1)->Arg(4);

void Add(benchmark::State& state) {
  const auto graph = Adds(state.range(0) / static_cast<int64_t>(sizeof(float)), 1);
  if (!graph.ok()) return state.SkipWithError(graph.status().ToString().c_str());
  for (auto _ : state) {
    if (const Status status = (*graph)->Run(); !status.ok()) {
      return state.SkipWithError(status.ToString().c_str());
    }
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(Add)->Arg(4 << 10)->Arg(1 << 20)->Arg(32 << 20);

void Copy(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(state.range(0));
  const std::vector<std::byte> from(bytes);
  std::vector<std::byte> to(bytes);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(Copy)->Arg(4 << 10)->Arg(1 << 20)->Arg(32 << 20);

}  // namespace
}  // namespace npumesh
