// BenchReport: what was measured, as a table for people and JSON for programs.
//
// Columns: docs/bench.md. Every time is wall-clock time on the CPUs of this machine.
#ifndef NPUMESH_LAUNCH_BENCH_BENCH_REPORT_H_
#define NPUMESH_LAUNCH_BENCH_BENCH_REPORT_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/algorithms/algorithm_tables.h"
#include "launch/bench/bench_op.h"
#include "launch/bench/bench_options.h"
#include "launch/bench/timing.h"
#include "runtime/base/text/json.h"

namespace npumesh {

// One size of one collective.
struct BenchPoint {
  std::string operation;
  uint64_t size = 0;   // bytes asked for, as adjusted
  uint64_t bytes = 0;  // that bandwidth counts
  Timing ours;
  std::optional<Timing> mpi;
  std::optional<Timing> floor;
  double algorithm_bandwidth = 0;  // GB/s, 1 GB = 1e9 bytes
  double bus_bandwidth = 0;
  std::string algorithm;
  std::string check;  // "success", "failed", or "NULL" when not checked
  std::string wrong;  // this rank's first wrong element; empty when it has none

  // Ours over MPI's: below 1 we are faster. Empty without a baseline.
  std::optional<double> p50_ratio() const;
  std::optional<double> average_ratio() const;
};

// The group a table is about.
struct BenchPlace {
  int ranks = 1;
  int nodes = 1;
  bool in_window = true;  // all ranks share memory
  bool crowded = false;   // and there are more of them than processors
  AlgorithmTables tables = {};
};

// "the minbytes is ...", as hccl_test opens.
std::string OpeningLine(const BenchOptions& options);
// The columns of a table.
enum class BenchLayout : uint8_t {
  kHcclTest,  // as hccl_test has them, and ours after them: 162 characters and more
  kNarrow,    // what one looks at first, for a screen of 80 characters
};
BenchLayout LayoutFor(int columns);  // of the screen; 0: a pipe or a file

// What the next rows are about, and the names of the columns.
std::string TableHead(const BenchOp& op, const BenchOptions& options, const BenchPlace& place,
                      BenchLayout layout = BenchLayout::kHcclTest);
std::string TableRow(const BenchPoint& point, const BenchOptions& options,
                     BenchLayout layout = BenchLayout::kHcclTest);
// The point that is slowest beside MPI, by p50; null without a baseline.
const BenchPoint* WorstPoint(std::span<const BenchPoint> points);
// Geometric means of the ratios and the worst point; empty without a baseline.
std::string SummaryText(std::span<const BenchPoint> points);
nlohmann::json ToJson(std::span<const BenchPoint> points);

// The row of the collective's algorithm table that is taken. `bytes` as Call::bytes().
std::string_view TakenAlgorithm(const BenchOp& op, const BenchOptions& options,
                                const BenchPlace& place, std::string_view hccl_algo,
                                uint64_t bytes);
// Every row of the table and why it is taken or not.
std::string AlgorithmsText(const BenchOp& op, const BenchOptions& options, const BenchPlace& place,
                           std::string_view hccl_algo);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_BENCH_BENCH_REPORT_H_
