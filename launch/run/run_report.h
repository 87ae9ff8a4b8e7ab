// RunReport: what a run measured, for a person and for a program.
//
// Every time is wall-clock time on the CPUs of this machine, not the time of an NPU.
#ifndef NPUMESH_LAUNCH_RUN_RUN_REPORT_H_
#define NPUMESH_LAUNCH_RUN_RUN_REPORT_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "launch/run/run_dump.h"

namespace npumesh {

// What every table and report says about its numbers.
inline constexpr const char* kTimeNote =
    "all times are wall-clock time on this machine's CPU, not the time of an NPU";

// One rank's numbers. Times in seconds, sums over all steps.
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
  uint64_t peak_hbm_bytes = 0;
  uint64_t operators = 0;    // executed
  uint64_t collectives = 0;  // executed
  RankDump dump;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankReport, rank, node, host, file, compile_seconds,
                                   compute_seconds, collective_seconds, hidden_seconds,
                                   total_seconds, peak_hbm_bytes, operators, collectives, dump)

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
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OutputCheck, rank, index, dtype, shape, step, max_abs_diff,
                                   where, differing, ok, detail)

// The rank that computed longest: the one the others waited for.
size_t SlowestRank(const std::vector<RankReport>& ranks);

// One row a rank, slowest rank marked; where collectives overlapped, a line for each such rank; the
// note about time.
std::string ReportTable(const std::vector<RankReport>& ranks, uint64_t steps);

// "rank 0 output 1 float32[2,4] max abs diff 0 OK"
std::string CheckLine(const OutputCheck& check);

// "check: OK, 48 outputs of 4 ranks match" or how many differ.
std::string CheckVerdict(const std::vector<OutputCheck>& checks, size_t ranks);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RUN_RUN_REPORT_H_
