#include "launch/commands/shard_words.h"

#include <filesystem>

#include "graph/onnx/onnx_file.h"
#include "launch/catalog/environment.h"
#include "launch/commands/answer.h"
#include "launch/run/dim_bindings.h"

namespace npumesh {
namespace {

// What the package computes beside the graph that it was made of.
std::string NextOf(const std::string& file, const Model& model, const ShardJobOptions& options,
                   const ShardReport& report) {
  std::string words;
  for (const std::string& dim : options.dims) words += " --dim " + dim;
  const Result<std::vector<InputSpec>> inputs = InputsOf(model);
  if (words.empty() && inputs.ok()) words = DimWords(*inputs);
  const std::filesystem::path folder = std::filesystem::path(report.package.air).parent_path();
  return fmt::format("npumesh launch -n {} -- run {} --golden {}{}", options.ranks, folder.string(),
                     file, words);
}

Result<Answer> Shard(const std::string& file, const OpRegistry& registry,
                     const ShardJobOptions& options, const ExportOptions& package) {
  NPUMESH_ASSIGN_OR_RETURN(const Env env, ReadEnvironment());
  NPUMESH_ASSIGN_OR_RETURN(Model model, LoadAnyModel(file, registry));
  model.path = file;
  const Result<ShardReport> report = RunShardJob(model, registry, env, options, package);
  if (!report.ok()) return report.status().WithContext(file);
  Answer answer{0, ToText(*report), {}, NextOf(file, model, options, *report)};
  answer.report.details = {{"ranks", options.ranks},
                           {"written", report->package.air},
                           {"weights", report->package.weights},
                           {"weight_bytes", report->package.weight_bytes},
                           {"outputs_compared", report->proof.outputs},
                           {"steps_compared", report->proof.steps}};
  return answer;
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
              const ShardJobOptions& options, const ExportOptions& package, bool as_json) {
  return Tell(command, as_json, Shard(file, registry, options, package));
}

}  // namespace npumesh
