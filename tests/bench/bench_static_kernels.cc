// Static kernels beside what computes the same without them, one thread, in turns:
//
//   Chain      20 element-wise operators on 4096 x 1024: operator by operator (`plain_ratio`), the
//              chain interpreter (`chain_ratio`), and in float32 the chain as a person would write
//              it for a compiler, with -O3 -march=native (`hand_ratio`)
//   Rows       one norm, softmax or SwiGlu: the operator's own kernel (`plain_ratio`)
//   Block      the decoder block: operator by operator (`plain_ratio`), the plan of max-autotune
//              (`fused_ratio`)
//
// Each ratio is the other's time over that of the static kernels; above 1 they are faster. The
// store is a new folder; `build_ms` is what making the kernels took.
#include <benchmark/benchmark.h>
#include <omp.h>
#include <stdlib.h>

#include <cmath>
#include <filesystem>

#include "graph/ir/graph_builder.h"
#include "graph/ops/toolbox/values/cast.h"
#include "graph/static_kernel/static_kernels.h"
#include "launch/samples/decoder_model.h"
#include "tests/bench/decoder/rounds.h"

namespace npumesh {

// bench_static_by_hand.cc
void ChainByHand(const float* x, const float* y, const float* bias, float* out, int64_t rows,
                 int64_t columns);

namespace {

constexpr int kRounds = 21;
constexpr int64_t kRows = 4096, kColumns = 1024;

// A store and a build folder that end with the process.
class Folder {
 public:
  Folder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "npumesh_bench_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

Result<std::unique_ptr<StaticKernels>> NewStaticKernels(const Folder& folder) {
  StaticKernelOptions options;
  options.build_dir = folder.path();
  options.store_root = folder.path() / "store";
  return StaticKernels::Create(options);
}

Result<std::unique_ptr<World>> OneRank() {
  omp_set_num_threads(1);
  Env env;
  env.hbm_bytes = uint64_t{512} << 20;
  return World::Start(env);
}

// One model compiled in several ways.
class Peers {
 public:
  // Operator by operator, as max-autotune does it, and with static kernels.
  Status Make(World& world, const std::function<Model()>& model,
              const std::vector<Tensor>& inputs) {
    NPUMESH_ASSIGN_OR_RETURN(kernels_, NewStaticKernels(folder_));
    NPUMESH_ASSIGN_OR_RETURN(plain, CompiledGraph::Create(world, model(), inputs, "",
                                                          [](auto& o) { o.fuses = nullptr; }));
    NPUMESH_ASSIGN_OR_RETURN(fused, CompiledGraph::Create(world, model(), inputs));
    NPUMESH_ASSIGN_OR_RETURN(
        fast, CompiledGraph::Create(world, model(), inputs, "",
                                    [this](auto& o) { o.static_kernels = kernels_.get(); }));
    return Status();
  }
  const StaticKernelStats& stats() const { return kernels_->stats(); }

 private:
  Folder folder_;
  std::unique_ptr<StaticKernels> kernels_;  // outlives `fast`

 public:
  std::unique_ptr<CompiledGraph> plain, fused, fast;
};

// Medians of works that take turns.
template <typename... Works>
std::vector<double> Medians(Works... works) {
  std::vector<std::vector<double>> seconds(sizeof...(works));
  for (int round = 0; round < kRounds; ++round) {
    size_t i = 0;
    (seconds[i++].push_back(SecondsOf(works)), ...);
  }
  std::vector<double> medians;
  for (std::vector<double>& each : seconds) medians.push_back(MedianOf(std::move(each)));
  return medians;
}

Tensor Filled(const TensorType& type, double step) {
  Tensor tensor = Tensor::Allocate(type);
  std::vector<float> values(static_cast<size_t>(type.shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(std::sin(step * static_cast<double>(i % 100003)));
  }
  FindConvert(DataType::kFloat, type.dtype)(values.data(), tensor.mutable_data(), values.size());
  return tensor;
}

// ---- a chain ----

std::vector<Tensor> ChainInputs(DataType dtype) {
  return {Filled({dtype, Shape({kRows, kColumns})}, 0.37),
          Filled({dtype, Shape({kRows, kColumns})}, 0.11),
          Filled({dtype, Shape({kColumns})}, 0.05)};
}

// As ChainByHand.
Model ChainModel(DataType dtype) {
  GraphBuilder g;
  const Value x = g.Data("x", {dtype, Shape({kRows, kColumns})});
  const Value y = g.Data("y", {dtype, Shape({kRows, kColumns})});
  const Value bias = g.Data("bias", {dtype, Shape({kColumns})});
  const auto two = [&](const char* type, Value a, Value b) {
    return g.Op(type, {{"x1", a}, {"x2", b}});
  };
  const auto one = [&](const char* type, Value a) { return g.Op(type, {{"x", a}}); };
  Value v = two("Add", x, bias);
  for (int i = 0; i < 3; ++i) {
    v = two("Mul", v, y);
    v = two("Sub", v, x);
    v = one("Abs", v);
    v = two("Maximum", v, y);
    v = two("Add", v, bias);
    if (i < 2) v = one("Sqrt", one("Square", v));
  }
  return std::move(*[&] {
    g.Output({v});
    return g.Build();
  }());
}

void Chain(benchmark::State& state, DataType dtype) {
  const Result<std::unique_ptr<World>> world = OneRank();
  if (!world.ok()) return state.SkipWithError(world.status().ToString().c_str());
  Peers peers;
  const std::vector<Tensor> inputs = ChainInputs(dtype);
  const Status made = peers.Make(
      **world, [&] { return ChainModel(dtype); }, inputs);
  if (!made.ok()) return state.SkipWithError(made.ToString().c_str());
  Tensor out = Tensor::Allocate({DataType::kFloat, Shape({kRows, kColumns})});
  const auto by_hand = [&] {
    if (dtype != DataType::kFloat) return;
    ChainByHand(reinterpret_cast<const float*>(inputs[0].data()),
                reinterpret_cast<const float*>(inputs[1].data()),
                reinterpret_cast<const float*>(inputs[2].data()),
                reinterpret_cast<float*>(out.mutable_data()), kRows, kColumns);
  };
  for (auto _ : state) {
    const std::vector<double> seconds =
        Medians([&] { (void)peers.plain->Run(); }, [&] { (void)peers.fused->Run(); },
                [&] { (void)peers.fast->Run(); }, by_hand);
    state.SetIterationTime(seconds[2]);
    state.counters["plain_ratio"] = seconds[0] / seconds[2];
    state.counters["chain_ratio"] = seconds[1] / seconds[2];
    if (dtype == DataType::kFloat) state.counters["hand_ratio"] = seconds[3] / seconds[2];
    state.counters["kernels"] = peers.stats().kernels;
    state.counters["build_ms"] = peers.stats().build_seconds * 1e3;
  }
}
BENCHMARK_CAPTURE(Chain, float32, DataType::kFloat)
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Chain, float16, DataType::kFloat16)
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Chain, bfloat16, DataType::kBfloat16)
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

// ---- rows ----

Model RowsModel(const std::string& type) {
  const TensorType x{DataType::kFloat, Shape({512, 2048})};
  GraphBuilder g;
  std::vector<GraphBuilder::Input> inputs = {{"x", g.Data("x", x)}};
  int outputs = 1;
  if (type == "RmsNorm") {
    inputs.push_back({"gamma", g.Data("gamma", {DataType::kFloat, Shape({2048})})});
    outputs = 2;
  }
  if (type == "LayerNormV4") {
    inputs.push_back({"normalized_shape", g.Ints({2048})});
    inputs.push_back({"gamma", g.Data("gamma", {DataType::kFloat, Shape({2048})})});
    inputs.push_back({"beta", g.Data("beta", {DataType::kFloat, Shape({2048})})});
    outputs = 3;
  }
  g.Output({g.Op(type, inputs, {}, {}, outputs)});
  return std::move(*g.Build());
}

void Rows(benchmark::State& state, const std::string& type) {
  const Result<std::unique_ptr<World>> world = OneRank();
  if (!world.ok()) return state.SkipWithError(world.status().ToString().c_str());
  Peers peers;
  std::vector<Tensor> inputs = {Filled({DataType::kFloat, Shape({512, 2048})}, 0.37)};
  const int vectors = type == "RmsNorm" ? 1 : type == "LayerNormV4" ? 2 : 0;
  for (int i = 0; i < vectors; ++i) {
    inputs.push_back(Filled({DataType::kFloat, Shape({2048})}, 0.1));
  }
  const Status made = peers.Make(
      **world, [&] { return RowsModel(type); }, inputs);
  if (!made.ok()) return state.SkipWithError(made.ToString().c_str());
  for (auto _ : state) {
    const std::vector<double> seconds =
        Medians([&] { (void)peers.plain->Run(); }, [&] { (void)peers.fast->Run(); });
    state.SetIterationTime(seconds[1]);
    state.counters["plain_ratio"] = seconds[0] / seconds[1];
  }
}
BENCHMARK_CAPTURE(Rows, rms_norm, "RmsNorm")
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Rows, layer_norm, "LayerNormV4")
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Rows, softmax, "SoftmaxV2")
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Rows, swiglu, "SwiGlu")
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

// ---- the decoder block ----

void Block(benchmark::State& state) {
  const Result<std::unique_ptr<World>> world = OneRank();
  if (!world.ok()) return state.SkipWithError(world.status().ToString().c_str());
  const DecoderConfig config{1, kHidden, kHeads, kFfn, kSequence, DataType::kFloat, 1};
  Peers peers;
  const Status made = peers.Make(**world, [&] { return std::move(*BuildDecoder(config, 0, 1)); },
                                 {DecoderInput(config)});
  if (!made.ok()) return state.SkipWithError(made.ToString().c_str());
  for (auto _ : state) {
    const std::vector<double> seconds =
        Medians([&] { (void)peers.plain->Run(); }, [&] { (void)peers.fused->Run(); },
                [&] { (void)peers.fast->Run(); });
    state.SetIterationTime(seconds[2]);
    state.counters["plain_ratio"] = seconds[0] / seconds[2];
    state.counters["fused_ratio"] = seconds[1] / seconds[2];
    state.counters["kernels"] = peers.stats().kernels;
    state.counters["build_ms"] = peers.stats().build_seconds * 1e3;
    state.counters["load_ms"] = peers.stats().load_seconds * 1e3;
  }
}
BENCHMARK(Block)->Iterations(1)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace npumesh
