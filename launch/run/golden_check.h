// GoldenCheck: the ranks of a tensor-parallel run against the unsharded graph of the same model.
#ifndef NPUMESH_LAUNCH_RUN_GOLDEN_CHECK_H_
#define NPUMESH_LAUNCH_RUN_GOLDEN_CHECK_H_

#include <optional>

#include "graph/compare/golden.h"
#include "graph/compare/weight_shards.h"
#include "launch/ranks/rank_circle.h"
#include "launch/run/run_job.h"

namespace npumesh {

// What rank 0 found; on the other ranks nothing but `differs` is set.
struct GoldenVerdict {
  GoldenReport report;
  // The rank whose first differing operator does not compute what it was given; -1: not known.
  int rank = -1;
  // The operator's weight that is not that of the unsharded graph.
  std::optional<WrongShard> shard;
  bool differs = false;
  Warnings warnings;  // of the golden graph
};

// Collective over all ranks, after the steps of `job` ran with options.golden. Runs the golden
// graph on rank 0 with rank 0's inputs of the first step, which must be those of all ranks, gathers
// every operator's outputs there and compares. Rank 0 needs memory for the activations of all
// ranks. Errors name what is wrong with the golden graph; all ranks get one.
Result<GoldenVerdict> GoldenCheck(World& world, RankCircle& circle, const RunOptions& options,
                                  RunJob& job);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RUN_GOLDEN_CHECK_H_
