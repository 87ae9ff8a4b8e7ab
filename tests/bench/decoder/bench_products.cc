// Products of float32 with constant weights by npumesh's panels, beside oneDNN with packed weights
// and beside what one core can do at most; one thread, in turns. Arguments: m, k, n. Counters:
// 10^9 operations in a second, `peak_share` of the core's measured peak, and `ratio`, our time over
// oneDNN's. Design: at least 0.85 of the peak for 128 rows.
#include <benchmark/benchmark.h>
#include <omp.h>

#include "tests/bench/decoder/product_peers.h"
#include "tests/bench/peak.h"

namespace npumesh {
namespace {

constexpr int kRounds = 41;

void PanelsBesideOneDnn(benchmark::State& state) {
  omp_set_num_threads(1);
  ProductPeers peers({state.range(0), state.range(1), state.range(2)});
  for (auto _ : state) {
    std::vector<double> peaks;
    for (int round = 0; round < kRounds; ++round) {
      peers.Round();
      peaks.push_back(PeakGflops());
    }
    const double operations = peers.sizes().operations() / 1e9;
    state.SetIterationTime(peers.own());
    state.counters["gflops"] = operations / peers.own();
    state.counters["onednn_gflops"] = operations / peers.onednn();
    state.counters["peak_gflops"] = MedianOf(peaks);
    state.counters["peak_share"] = operations / peers.own() / MedianOf(peaks);
    state.counters["ratio"] = peers.own() / peers.onednn();
  }
}
BENCHMARK(PanelsBesideOneDnn)
    ->Args({128, 768, 768})
    ->Args({128, 768, 3072})
    ->Args({128, 768, 6144})
    ->Args({128, 3072, 768})
    ->Args({128, 1024, 4096})
    ->Args({16, 768, 6144})
    ->Args({1, 768, 6144})
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace npumesh
