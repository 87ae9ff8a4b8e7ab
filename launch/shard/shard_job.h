// ShardJob: what `--tp N` does: the graph of one card becomes a package of N ranks, which is proven
// to compute the same.
#ifndef NPUMESH_LAUNCH_SHARD_SHARD_JOB_H_
#define NPUMESH_LAUNCH_SHARD_SHARD_JOB_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/export/dynamo_export.h"
#include "graph/shard/shard_model.h"
#include "graph/shard/shard_proof.h"
#include "runtime/base/env/env.h"

namespace npumesh {

struct ShardJobOptions {
  int ranks = 0;  // 0: no sharding
  // Of the inputs for the proof: a folder as `run --inputs` has it, or random ones with these sizes
  // (NAME=V), integers (NAME=LOW:HIGH) and this seed.
  std::string inputs;
  std::vector<std::string> dims;
  std::vector<std::string> int_ranges;
  uint64_t seed = 0;
};

struct ShardReport {
  ShardedModel sharded;
  ShardProof proof;
  ExportSummary package;
};

// Splits `model`, proves that the ranks compute what it computes, and writes the package as
// `package` says; without a proof nothing is written. Errors: those of ShardModel, of the inputs
// and of DynamoExport; kInternal names the first node and rank that compute something else.
Result<ShardReport> RunShardJob(const Model& model, const OpRegistry& registry, const Env& env,
                                const ShardJobOptions& options, const ExportOptions& package);

// The table of nodes, the proof and what was written.
std::string ToText(const ShardReport& report);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_SHARD_SHARD_JOB_H_
