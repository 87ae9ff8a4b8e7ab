// Large messages of two ranks beside memcpy of the same bytes by both ranks at once: a collective
// that reads and writes every byte once cannot be faster. Both are measured in turns, in one run;
// the counter `ratio` is the collective's time over memcpy's. Design: at most 1.15 for AllReduce.
#include <benchmark/benchmark.h>

#include <array>
#include <cstring>
#include <numeric>
#include <vector>

#include "collectives/communicator.h"
#include "tests/bench/timing.h"

namespace npumesh {
namespace {

constexpr int kRanks = 2;
constexpr int kRounds = 15;

using Nanoseconds = std::vector<int64_t>;  // by round

// One rank of the group, with a buffer of `bytes` for each side; elements are floats.
struct Seat {
  Communicator& group;
  const void* send;
  void* recv;
  uint64_t bytes;
};

Status AllReduce(const Seat& seat) {
  return seat.group.AllReduce(seat.send, seat.recv, seat.bytes / sizeof(float), DataType::kFloat,
                              ReduceOp::kSum);
}

Status AllGather(const Seat& seat) {
  return seat.group.AllGather(seat.send, seat.recv, seat.bytes / sizeof(float) / kRanks,
                              DataType::kFloat);
}

Status AllToAll(const Seat& seat) {
  return seat.group.AllToAll(seat.send, seat.recv, seat.bytes / sizeof(float) / kRanks,
                             DataType::kFloat);
}

Status Copy(const Seat& seat) {
  std::memcpy(seat.recv, seat.send, seat.bytes);
  benchmark::ClobberMemory();
  return Status();
}

using Work = Status (*)(const Seat&);

// Together with the other rank, from a common start.
Status Time(const Seat& seat, Work work, Nanoseconds& times) {
  NPUMESH_RETURN_IF_ERROR(seat.group.Barrier());
  const auto start = SteadyClock::now();
  NPUMESH_RETURN_IF_ERROR(work(seat));
  times.push_back((SteadyClock::now() - start).count());
  return Status();
}

struct Pair {
  double collective = 0;  // nanoseconds
  double copy = 0;
};

Result<Pair> Measure(Work collective, uint64_t bytes) {
  std::array<Nanoseconds, kRanks> ours, copies;
  Env env;
  env.hbm_bytes = 4 * bytes;
  const auto body = [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    NPUMESH_ASSIGN_OR_RETURN(const auto group,
                             Communicator::Create(world, *memory, "large", {0, 1}));
    NPUMESH_ASSIGN_OR_RETURN(void* const send, memory->Allocate(bytes));
    NPUMESH_ASSIGN_OR_RETURN(void* const recv, memory->Allocate(bytes));
    std::memset(send, 0, bytes);
    std::memset(recv, 0, bytes);
    const Seat seat{*group, send, recv, bytes};
    const auto rank = static_cast<size_t>(world.rank());
    for (int round = 0; round < kRounds; ++round) {
      NPUMESH_RETURN_IF_ERROR(Time(seat, collective, ours[rank]));
      NPUMESH_RETURN_IF_ERROR(Time(seat, Copy, copies[rank]));
    }
    return world.Shutdown();
  };
  for (const Status& status : RunRanks(kRanks, env, body)) NPUMESH_RETURN_IF_ERROR(status);
  return Pair{static_cast<double>(MedianOfSlower(ours)),
              static_cast<double>(MedianOfSlower(copies))};
}

// range(0): bytes of a rank's buffer.
void Beside(benchmark::State& state, Work collective) {
  for (auto _ : state) {
    const Result<Pair> pair = Measure(collective, static_cast<uint64_t>(state.range(0)));
    if (!pair.ok()) return state.SkipWithError("the ranks failed");
    state.SetIterationTime(pair.value().collective * 1e-9);
    state.counters["memcpy_us"] = pair.value().copy * 1e-3;
    state.counters["ratio"] = pair.value().collective / pair.value().copy;
  }
}

#define NPUMESH_LARGE_BENCHMARK(work)   \
  BENCHMARK_CAPTURE(Beside, work, work) \
      ->Arg(4 << 20)                    \
      ->Arg(32 << 20)                   \
      ->Iterations(1)                   \
      ->UseManualTime()                 \
      ->Unit(benchmark::kMicrosecond)
NPUMESH_LARGE_BENCHMARK(AllReduce);
NPUMESH_LARGE_BENCHMARK(AllGather);
NPUMESH_LARGE_BENCHMARK(AllToAll);

}  // namespace
}  // namespace npumesh
