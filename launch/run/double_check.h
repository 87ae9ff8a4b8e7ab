// DoubleCheck: the run of every rank against the same graphs in float64, or with other options.
#ifndef NPUMESH_LAUNCH_RUN_DOUBLE_CHECK_H_
#define NPUMESH_LAUNCH_RUN_DOUBLE_CHECK_H_

#include <string>
#include <vector>

#include "graph/compare/measures/comparison.h"
#include "launch/ranks/rank_circle.h"
#include "launch/run/run_job.h"

namespace npumesh {

// What `--golden` takes instead of a file.
inline constexpr std::string_view kFloat64Golden = "float64";

// The operator that differs first, on all ranks the same.
struct DoubleVerdict {
  int rank = -1;  // to blame; -1: no operator differs
  std::string key;
  std::string name;
  std::string type;
  TensorDistance distance;
  size_t compared = 0;  // operators of this rank
  // Of runs with other options: a line for each operator of this rank that differs, in order.
  std::vector<std::string> differing;
};

// Collective over all ranks, after the steps of `job` ran with options.golden. Every rank runs its
// graph once more with the inputs of the first step, and compares all operators: with ReferenceOps,
// where what rounding may do is allowed (CloseAllowanceInside), or with options.against, where
// every bit counts.
Result<DoubleVerdict> DoubleCheck(World& world, RankCircle& circle, const RunOptions& options,
                                  RunJob& job);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RUN_DOUBLE_CHECK_H_
