// The cost of the logbook for one collective: nothing, the position alone, position and record. The
// bound is 50 ns more with a record than without.
#include <benchmark/benchmark.h>

#include <filesystem>

#include "collectives/contract/logbook.h"
#include "runtime/world/thread_transport.h"

namespace npumesh {
namespace {

// One call as the communicator runs it; the same again and again, as in a training step.
void OneCall(Logbook* logbook, uint64_t call) {
  constexpr uint64_t kSerial = 1;
  if (logbook) {
    logbook->Enter({CollectiveKind::kAllReduce, DataType::kFloat, ReduceOp::kSum, 0, 4096,
                    "layer7/attn/HcomAllReduce_3", call},
                   kSerial);
    logbook->Arrived();
    logbook->Departing();
    logbook->Leave(Status());
  }
  benchmark::DoNotOptimize(call);
}

// 0: no logbook, 1: positions, 2: positions and record.
void BM_Call(benchmark::State& state) {
  const auto folder = std::filesystem::temp_directory_path() / "npumesh_bench_record";
  Env env;
  if (state.range(0) == 2) env.record = folder.string();
  const auto world = World::Start(env, MakeThreadTransport(MakeThreadFabric(1, {}, {}), 0));
  if (!world.ok()) return state.SkipWithError(world.status().ToString().c_str());
  {
    const std::vector<int> ranks = {0};
    std::unique_ptr<Logbook> logbook;
    if (state.range(0) > 0) logbook = std::make_unique<Logbook>(**world, "tp", ranks);
    uint64_t call = 0;
    for (auto _ : state) OneCall(logbook.get(), ++call);
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}
BENCHMARK(BM_Call)->Arg(0)->Arg(1)->Arg(2);

}  // namespace
}  // namespace npumesh
