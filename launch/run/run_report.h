// RunReport: what a run measured, for a person and for a program.
//
// Every time is wall-clock time on the CPUs of this machine, not the time of an NPU.
#ifndef NPUMESH_LAUNCH_RUN_RUN_REPORT_H_
#define NPUMESH_LAUNCH_RUN_RUN_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "graph/ir/tensor.h"
#include "launch/run/run_dump.h"
#include "runtime/base/text/json.h"

namespace npumesh {

// What every table and report says about its numbers.
inline constexpr const char* kTimeNote =
    "all times are wall-clock time on this machine's CPU, not the time of an NPU";

// One rank's numbers. Times in seconds, sums over all steps.
inline constexpr size_t kMostStretches = 32;

struct RankReport {
  int rank = 0;
  int node = 0;
  std::string host;
  std::string file;
  double compile_seconds = 0;
  double compute_seconds = 0;
  double collective_seconds = 0;
  double hidden_seconds = 0;  // of the collectives: while the rank computed beside them
  double total_seconds = 0;   // of the steps, without compilation
  double median_seconds = 0;  // of one step, without compilation
  // Of equal parts of the steps, in order: seconds outside of collectives, with what delayed the
  // rank there. As many on every rank; at most kMostStretches.
  std::vector<double> away_seconds;
  uint64_t peak_hbm_bytes = 0;
  uint64_t operators = 0;    // executed
  uint64_t collectives = 0;  // executed
  RankDump dump;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankReport, rank, node, host, file, compile_seconds,
                                   compute_seconds, collective_seconds, hidden_seconds,
                                   total_seconds, median_seconds, away_seconds, peak_hbm_bytes,
                                   operators, collectives, dump)

// One output of one rank against its golden, over all steps.
struct OutputCheck {
  int rank = 0;
  int index = 0;
  std::string dtype;
  std::string shape;
  uint64_t step = 0;  // of the largest difference
  double max_abs_diff = 0;
  std::string where;      // position of the largest difference
  int64_t differing = 0;  // elements outside the tolerance, all steps
  bool ok = true;
  std::string detail;  // why it differs; empty when ok
  // What was allowed there, and why; the least atol that would do, infinite when none would.
  double rtol = 0;
  double atol = 0;
  std::string tolerance;
  double needs_atol = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OutputCheck, rank, index, dtype, shape, step, max_abs_diff,
                                   where, differing, ok, detail, rtol, atol, tolerance, needs_atol)

// What one output of one rank holds after the last step. Numbers are those of its finite elements.
struct OutputSummary {
  int rank = 0;
  int index = 0;
  std::string dtype;
  std::string shape;
  double min = 0;
  double max = 0;
  double mean = 0;
  int64_t finite = 0;  // elements
  int64_t nan = 0;
  int64_t inf = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OutputSummary, rank, index, dtype, shape, min, max, mean, finite,
                                   nan, inf)
OutputSummary Summarise(int rank, int index, const Tensor& output);

// "ranks 0-3 output 0 float32[2,4]: min -1 max 2.5 mean 0.1, 0 NaN", a line for each output; ranks
// that have the same share one.
std::string SummaryLines(const std::vector<OutputSummary>& summaries);

// The ranks that are away from the others for longer, beyond chance and by a fiftieth of their
// time, ascending: the others wait for them inside of collectives. Empty: no rank stands out, or
// there are too few steps to tell.
std::vector<int> SlowestRanks(const std::vector<RankReport>& ranks);

// One row a rank, the slowest ranks marked; where collectives overlapped, a line for each such
// rank; with several steps the median of them on the rank where it is largest; the note about time.
std::string ReportTable(const std::vector<RankReport>& ranks, uint64_t steps);

// "rank 0 output 1 float32[2,4] max abs diff 0 OK"
std::string CheckLine(const OutputCheck& check);

// "check: OK, 48 outputs of 4 ranks match" or how many differ.
std::string CheckVerdict(const std::vector<OutputCheck>& checks, size_t ranks);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RUN_RUN_REPORT_H_
