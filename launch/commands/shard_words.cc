#include "launch/commands/shard_words.h"

#include "graph/onnx/onnx_file.h"
#include "launch/pages/environment.h"

namespace npumesh {
namespace {

Result<ShardReport> Shard(const std::string& file, const OpRegistry& registry,
                          const ShardJobOptions& options, const ExportOptions& package) {
  NPUMESH_ASSIGN_OR_RETURN(const Env env, ReadEnvironment());
  NPUMESH_ASSIGN_OR_RETURN(Model model, LoadAnyModel(file, registry));
  model.path = file;
  Result<ShardReport> report = RunShardJob(model, registry, env, options, package);
  if (!report.ok()) return report.status().WithContext(file);
  return report;
}

}  // namespace

void AddShardOptions(CLI::App& app, ShardJobOptions& options) {
  CLI::Option* tp =
      app.add_option("--tp", options.ranks,
                     "Split the graph of one card over this many ranks, prove that they compute "
                     "the same, and write their package")
          ->check(CLI::Range(2, 1024))
          ->type_name("RANKS");
  CLI::Option* inputs =
      app.add_option("--inputs", options.inputs,
                     "Folder with [step_K/]rank_0/<data index>.npy for the proof; default: random")
          ->type_name("FOLDER")
          ->needs(tp);
  app.add_option("--dim", options.dims, "Open dimensions of the proof's inputs, as in `run`")
      ->type_name("NAME=V")
      ->allow_extra_args(false)
      ->excludes(inputs)
      ->needs(tp);
  app.add_option("--int-range", options.int_ranges, "Integers of the proof's inputs, as in `run`")
      ->type_name("NAME=LOW:HIGH")
      ->allow_extra_args(false)
      ->excludes(inputs)
      ->needs(tp);
  app.add_option("--seed", options.seed, "Seed of the proof's random inputs")
      ->excludes(inputs)
      ->needs(tp);
}

int ShardFile(std::string_view command, const std::string& file, const OpRegistry& registry,
              const ShardJobOptions& options, const ExportOptions& package) {
  const Result<ShardReport> report = Shard(file, registry, options, package);
  if (!report.ok()) return Fail(command, report.status());
  Show(ToText(*report));
  return 0;
}

}  // namespace npumesh
