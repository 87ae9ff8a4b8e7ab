// GoldenCheck: the ranks of a tensor-parallel run against the unsharded graph of the same model.
#ifndef NPUMESH_LAUNCH_RUN_GOLDEN_CHECK_H_
#define NPUMESH_LAUNCH_RUN_GOLDEN_CHECK_H_

#include "graph/compare/golden/golden.h"
#include "graph/compare/golden/golden_blame.h"
#include "launch/ranks/rank_circle.h"
#include "launch/run/run_job.h"

namespace npumesh {

// What rank 0 found; on the other ranks nothing but `differs` is set.
struct GoldenVerdict {
  GoldenReport report;
  GoldenBlame blame;  // for the first row of the report that differs
  bool differs = false;
  Warnings warnings;  // of the golden graph
};

// What is wrong with the golden graph of options.golden as far as it shows before anything runs: it
// is not there, cannot be read, has collectives, or is not the graph of the same model because
// other inputs go into it or it has no operator of the ranks' graph. `job` is prepared. Local.
// Errors begin with --golden.
Status CheckGoldenGraph(const RunOptions& options, const RunJob& job);

// Collective over all ranks, after the steps of `job` ran with options.golden. Runs the golden
// graph on rank 0 with rank 0's inputs of the first step, which must be those of all ranks, gathers
// every operator's outputs there and compares. Rank 0 needs memory for the activations of all
// ranks. Errors name what is wrong with the golden graph; all ranks get one.
Result<GoldenVerdict> GoldenCheck(World& world, RankCircle& circle, const RunOptions& options,
                                  RunJob& job);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RUN_GOLDEN_CHECK_H_
