// The options of --tp, which `import` and `export` share.
#ifndef NPUMESH_LAUNCH_COMMANDS_SHARD_WORDS_H_
#define NPUMESH_LAUNCH_COMMANDS_SHARD_WORDS_H_

#include <string>

#include "launch/commands/command.h"
#include "launch/shard/shard_job.h"

namespace npumesh {

// Adds --tp and the inputs of its proof, which fill `options`.
void AddShardOptions(CLI::App& app, ShardJobOptions& options);

// Splits `file`, an .onnx or what LoadModel reads, and prints what became of it. The exit code.
int ShardFile(std::string_view command, const std::string& file, const OpRegistry& registry,
              const ShardJobOptions& options, const ExportOptions& package, bool as_json);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_COMMANDS_SHARD_WORDS_H_
