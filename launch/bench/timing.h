// Timing: from the clock readings of all ranks to the few numbers of a table.
#ifndef NPUMESH_LAUNCH_BENCH_TIMING_H_
#define NPUMESH_LAUNCH_BENCH_TIMING_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/text/json.h"

namespace npumesh {

// Microseconds. An iteration takes as long as its slowest rank.
struct Timing {
  double average = 0;  // elapsed / iterations of the slowest rank; the median over rounds
  double p50 = 0;      // of all iterations of all rounds
  double p99 = 0;
  // How often a rank gave its processor away in a call, on average over ranks and calls.
  double switches = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Timing, average, p50, p99, switches)

// The timed calls of one rank.
struct BenchTimes {
  std::vector<int64_t> nanoseconds;  // round after round
  int64_t switches = 0;              // of the process to another, in all calls

  void Append(const BenchTimes& more);
};

// How the calls of a round follow each other.
struct Pace {
  int iterations = 20;
  int warm_ups = 10;
  // Called before each timed call, outside of the time; empty: back to back, as hccl_test does.
  std::function<Status()> meet;
};

// One round on this rank. `call` gets the number of the call, for buffers that are used in turn.
Result<BenchTimes> TimeRound(const Pace& pace, const std::function<Status(int)>& call);

// `ranks[r]` holds rank r's rounds one after the other, each of `iterations` calls.
Timing Summarise(std::span<const BenchTimes> ranks, int iterations);

// The value below which `fraction` of the values lie, interpolated between its two neighbours.
// REQUIRES: not empty.
double Quantile(std::vector<double> values, double fraction);

// REQUIRES: not empty, all positive.
double GeometricMean(std::span<const double> values);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_BENCH_TIMING_H_
