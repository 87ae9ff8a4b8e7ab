// DoubleCheck: the run of every rank against the same graphs in float64.
#ifndef NPUMESH_LAUNCH_RUN_DOUBLE_CHECK_H_
#define NPUMESH_LAUNCH_RUN_DOUBLE_CHECK_H_

#include <string>

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
};

// Collective over all ranks, after the steps of `job` ran with options.golden. Every rank runs its
// graph once more with ReferenceOps and the inputs of the first step, and compares all operators;
// what rounding may do is allowed (CloseAllowanceInside).
Result<DoubleVerdict> DoubleCheck(World& world, RankCircle& circle, const RunOptions& options,
                                  RunJob& job);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RUN_DOUBLE_CHECK_H_
