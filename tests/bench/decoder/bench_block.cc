// A decoder block beside its matrix products alone, each by the better of our panels and oneDNN
// with packed weights, one thread. They take turns; the counter `ratio` is the block's time over
// that of the products. Design: at most 1.05. `onednn_ratio` is the same over the products by
// oneDNN, `apart_ratio` that of the block whose attention is not fused. `gflops` counts the
// operations of the products in the time of the block, `peak_share` is their part of what a core
// can do at most. The other counters are milliseconds of each kind of step.
#include <benchmark/benchmark.h>
#include <omp.h>

#include <map>

#include "graph/passes/fusion/fusion.h"
#include "launch/samples/decoder_model.h"
#include "tests/bench/decoder/product_peers.h"
#include "tests/bench/decoder/rounds.h"
#include "tests/bench/peak.h"

namespace npumesh {
namespace {

constexpr int kRounds = 41;

// The products of the block: q, k, v, scores, seen, o, gate and up, down.
class Products {
 public:
  Products() {
    const int64_t s = kSequence, h = kHidden, n = kHeads, d = kHidden / kHeads, f = kFfn;
    const ProductSizes sizes[] = {{s, h, h},    {s, h, h}, {s, h, h},     {s, d, s, n, true},
                                  {s, s, d, n}, {s, h, h}, {s, h, 2 * f}, {s, f, h}};
    for (const ProductSizes& each : sizes) peers_.push_back(std::make_unique<ProductPeers>(each));
  }

  void Round() {
    for (const auto& each : peers_) each->Round();
  }

  double operations() const {
    return Sum([](const ProductPeers& each) { return each.sizes().operations(); });
  }
  // Seconds by oneDNN, and by the better implementation of each.
  double onednn() const {
    return Sum([](const ProductPeers& each) { return each.onednn(); });
  }
  double best() const {
    return Sum([](const ProductPeers& each) { return std::min(each.own(), each.onednn()); });
  }

 private:
  template <typename Of>
  double Sum(Of of) const {
    double sum = 0;
    for (const auto& each : peers_) sum += of(*each);
    return sum;
  }

  std::vector<std::unique_ptr<ProductPeers>> peers_;
};

Result<std::unique_ptr<CompiledGraph>> Block(World& world, std::string_view without = "") {
  const DecoderConfig config{1, kHidden, kHeads, kFfn, kSequence, DataType::kFloat, 1};
  NPUMESH_ASSIGN_OR_RETURN(Model model, BuildDecoder(config, 0, 1));
  return CompiledGraph::Create(world, std::move(model), {DecoderInput(config)}, without);
}

// Seconds that a session of the block takes to be compiled, its weights packed.
Result<double> SecondsToCompile(World& world) {
  constexpr int kTurns = 5;
  const DecoderConfig config{1, kHidden, kHeads, kFfn, kSequence, DataType::kFloat, 1};
  std::vector<double> seconds;
  for (int turn = 0; turn < kTurns; ++turn) {
    NPUMESH_ASSIGN_OR_RETURN(Model model, BuildDecoder(config, 0, 1));
    Status status;
    seconds.push_back(SecondsOf([&] {
      status = CompiledGraph::Create(world, std::move(model), {DecoderInput(config)}).status();
    }));
    NPUMESH_RETURN_IF_ERROR(status);
  }
  return MedianOf(seconds);
}

void ReportSteps(CompiledGraph& block, benchmark::State& state) {
  StepTimes times;
  for (int round = 0; round < kRounds; ++round) (void)block.Run(&times);
  std::map<std::string, double> by_type;
  for (const auto& [step, seconds] : times.shortest()) {
    by_type[step.substr(0, step.find(' '))] += seconds;
  }
  for (const auto& [type, seconds] : by_type) state.counters[type + "_ms"] = seconds * 1e3;
}

void BlockBesideProducts(benchmark::State& state) {
  omp_set_num_threads(1);
  Env env;
  env.hbm_bytes = uint64_t{512} << 20;
  const Result<std::unique_ptr<World>> world = World::Start(env);
  if (!world.ok()) return state.SkipWithError(world.status().ToString().c_str());
  const Result<std::unique_ptr<CompiledGraph>> block = Block(**world);
  if (!block.ok()) return state.SkipWithError(block.status().ToString().c_str());
  const auto apart = Block(**world, kAttentionFusionPass);
  if (!apart.ok()) return state.SkipWithError(apart.status().ToString().c_str());
  const Result<double> compile = SecondsToCompile(**world);
  if (!compile.ok()) return state.SkipWithError(compile.status().ToString().c_str());
  state.counters["compile_ms"] = *compile * 1e3;
  Products products;
  for (auto _ : state) {
    std::vector<double> ours, unfused, peaks;
    for (int round = 0; round < kRounds; ++round) {
      unfused.push_back(SecondsOf([&] { benchmark::DoNotOptimize((*apart)->Run()); }));
      ours.push_back(SecondsOf([&] { benchmark::DoNotOptimize((*block)->Run()); }));
      products.Round();
      peaks.push_back(PeakGflops());
    }
    const double seconds = MedianOf(ours), gflops = products.operations() / seconds / 1e9;
    state.SetIterationTime(seconds);
    state.counters["products_ms"] = products.best() * 1e3;
    state.counters["ratio"] = seconds / products.best();
    state.counters["onednn_ratio"] = seconds / products.onednn();
    state.counters["apart_ratio"] = MedianOf(unfused) / products.best();
    state.counters["gflops"] = gflops;
    state.counters["peak_share"] = gflops / MedianOf(peaks);
  }
  ReportSteps(**block, state);
}
BENCHMARK(BlockBesideProducts)->Iterations(1)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace npumesh
