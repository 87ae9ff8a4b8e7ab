// The decoder block on one rank and tensor-parallel on two, one thread each. The counter `speed_up`
// is the time on one rank over that of the slower of two. Design: at least 1.75, on two idle cores.
#include <benchmark/benchmark.h>
#include <omp.h>

#include "launch/samples/decoder_model.h"
#include "tests/bench/decoder/rounds.h"

namespace npumesh {
namespace {

constexpr int kWarmUps = 3;
constexpr int kRounds = 21;

// Seconds of each round on one rank, which starts each with the others.
Result<std::vector<double>> RunRank(World& world) {
  omp_set_num_threads(1);
  const DecoderConfig config{1, kHidden, kHeads, kFfn, kSequence, DataType::kFloat, 1};
  NPUMESH_ASSIGN_OR_RETURN(Model model, BuildDecoder(config, world.rank(), world.size()));
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<CompiledGraph> block,
                           CompiledGraph::Create(world, std::move(model), {DecoderInput(config)}));
  std::vector<double> seconds;
  for (int round = 0; round < kWarmUps + kRounds; ++round) {
    NPUMESH_RETURN_IF_ERROR(block->Meet());
    Status status;
    const double taken = SecondsOf([&] { status = block->Run().status(); });
    NPUMESH_RETURN_IF_ERROR(status);
    if (round >= kWarmUps) seconds.push_back(taken);
  }
  return seconds;
}

// Median over the rounds of the slowest rank's time.
Result<double> SecondsOn(int ranks) {
  Env env;
  env.hbm_bytes = uint64_t{256} << 20;
  std::vector<std::vector<double>> by_rank(static_cast<size_t>(ranks));
  const auto body = [&by_rank](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(by_rank[static_cast<size_t>(world.rank())], RunRank(world));
    return world.Shutdown();
  };
  for (const Status& status : RunRanks(ranks, env, body)) NPUMESH_RETURN_IF_ERROR(status);
  std::vector<double> slowest = by_rank[0];
  for (const std::vector<double>& rank : by_rank) {
    for (size_t i = 0; i < slowest.size(); ++i) slowest[i] = std::max(slowest[i], rank[i]);
  }
  return MedianOf(std::move(slowest));
}

void TwoRanksBesideOne(benchmark::State& state) {
  for (auto _ : state) {
    const Result<double> one = SecondsOn(1);
    const Result<double> two = SecondsOn(2);
    if (!one.ok() || !two.ok()) return state.SkipWithError("the ranks failed");
    state.SetIterationTime(*two);
    state.counters["one_rank_ms"] = *one * 1e3;
    state.counters["speed_up"] = *one / *two;
  }
}
BENCHMARK(TwoRanksBesideOne)->Iterations(1)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace npumesh
