// What the contract costs: the fingerprint of a request, a collective of one rank, a meeting of two
// ranks as threads beside std::barrier, and the line of a step on the board.
#include <benchmark/benchmark.h>

#include <barrier>
#include <chrono>
#include <functional>
#include <thread>

#include "collectives/communicator.h"
#include "collectives/contract/request.h"
#include "runtime/world/step_line.h"
#include "tests/bench/timing.h"

namespace npumesh {
namespace {

constexpr int kMeetings = 500;  // in one measurement

Env SmallEnv() {
  Env env;
  env.hbm_bytes = uint64_t{16} << 20;
  return env;
}

void FingerprintOfRequest(benchmark::State& state) {
  Request request;
  request.kind = CollectiveKind::kAllReduce;
  request.count = 1024;
  request.set_node("model/layer_17/mlp/HcomAllReduce_3");
  for (auto _ : state) {
    ++request.sequence;
    benchmark::DoNotOptimize(Fingerprint(request));
  }
}
BENCHMARK(FingerprintOfRequest);

// What a step of a graph pays for `npumesh ps`, in one world of one rank.
void LineOfAStep(benchmark::State& state) {
  const auto run = [&](World& world) -> Status {
    uint64_t number = 0;
    for (auto _ : state) {
      const RunningStepLine line(world, ++number, "decoder");
      benchmark::ClobberMemory();
    }
    return Status();
  };
  for (const Status& status : RunRanks(1, SmallEnv(), run)) {
    if (!status.ok()) state.SkipWithError(status.ToString().c_str());
  }
}
BENCHMARK(LineOfAStep);

// `body` runs kMeetings times on each of `ranks` threads; the time is rank 0's.
void TimeRanks(benchmark::State& state, int ranks,
               const std::function<Status(Communicator&)>& body) {
  for (auto _ : state) {
    double seconds = 0;
    const auto run = [&](World& world) -> Status {
      NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
      std::vector<int> everyone;
      for (int r = 0; r < world.size(); ++r) everyone.push_back(r);
      NPUMESH_ASSIGN_OR_RETURN(const auto group,
                               Communicator::Create(world, *memory, "bench", everyone));
      const auto start = SteadyClock::now();
      for (int i = 0; i < kMeetings; ++i) NPUMESH_RETURN_IF_ERROR(body(*group));
      if (world.rank() == 0) {
        seconds = std::chrono::duration<double>(SteadyClock::now() - start).count();
      }
      return Status();
    };
    for (const Status& status : RunRanks(ranks, SmallEnv(), run)) {
      if (!status.ok()) return state.SkipWithError(status.ToString().c_str());
    }
    state.SetIterationTime(seconds / kMeetings);
  }
}

void OneRankBarrier(benchmark::State& state) {
  TimeRanks(state, 1, [](Communicator& group) { return group.Barrier("barrier"); });
}
BENCHMARK(OneRankBarrier)->UseManualTime()->Iterations(5);

void TwoThreadsBarrier(benchmark::State& state) {
  TimeRanks(state, 2, [](Communicator& group) { return group.Barrier("barrier"); });
}
BENCHMARK(TwoThreadsBarrier)->UseManualTime()->Iterations(5);

void TwoThreadsStdBarrier(benchmark::State& state) {
  for (auto _ : state) {
    std::barrier meeting(2);
    const auto meet = [&] {
      for (int i = 0; i < kMeetings; ++i) meeting.arrive_and_wait();
    };
    const auto start = SteadyClock::now();
    std::jthread other(meet);
    meet();
    other.join();
    state.SetIterationTime(std::chrono::duration<double>(SteadyClock::now() - start).count() /
                           kMeetings);
  }
}
BENCHMARK(TwoThreadsStdBarrier)->UseManualTime()->Iterations(5);

// An AllReduce of two ranks with and without the contract, in turns; the counter is the ratio of
// the medians.
void ContractOnAndOff(benchmark::State& state) {
  constexpr int kTurns = 100;
  constexpr int kCalls = 50;
  const auto count = static_cast<uint64_t>(state.range(0)) / sizeof(float);
  std::vector<double> on;
  std::vector<double> off;
  const auto run = [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    CommunicatorOptions without;
    without.contract = false;
    NPUMESH_ASSIGN_OR_RETURN(const auto checked,
                             Communicator::Create(world, *memory, "on", {0, 1}));
    NPUMESH_ASSIGN_OR_RETURN(const auto unchecked,
                             Communicator::Create(world, *memory, "off", {0, 1}, without));
    NPUMESH_ASSIGN_OR_RETURN(void* const buffer, memory->Allocate(2 * count * sizeof(float)));
    const auto send = static_cast<float*>(buffer);
    for (int turn = 0; turn < 2 * kTurns; ++turn) {
      Communicator& group = turn % 2 == 0 ? *checked : *unchecked;
      const auto start = SteadyClock::now();
      for (int i = 0; i < kCalls; ++i) {
        NPUMESH_RETURN_IF_ERROR(group.AllReduce(send, send + count, count, DataType::kFloat,
                                                ReduceOp::kSum, "layer/HcomAllReduce"));
      }
      const std::chrono::duration<double> taken = SteadyClock::now() - start;
      if (world.rank() == 0) (turn % 2 == 0 ? on : off).push_back(taken.count() / kCalls);
    }
    return Status();
  };
  for (auto _ : state) {
    for (const Status& status : RunRanks(2, SmallEnv(), run)) {
      if (!status.ok()) return state.SkipWithError(status.ToString().c_str());
    }
    state.SetIterationTime(MedianOf(on));
  }
  state.counters["on/off"] = MedianOf(on) / MedianOf(off);
}
BENCHMARK(ContractOnAndOff)->Arg(64)->Arg(1024)->Arg(65536)->UseManualTime()->Iterations(1);

}  // namespace
}  // namespace npumesh
