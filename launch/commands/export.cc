// `npumesh export`: graphs that exist become a package of all ranks.
#include <filesystem>
#include <optional>

#include "graph/config/config_reader.h"
#include "graph/export/export_config.h"
#include "graph/ops/builtin_ops.h"
#include "launch/catalog/environment.h"
#include "launch/commands/answer.h"
#include "launch/commands/fail_together.h"
#include "launch/commands/shard_words.h"
#include "launch/export/export_job.h"
#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

// "arg0_1=p1".
Status AddWeightNames(const std::vector<std::string>& texts, ExportOptions* options) {
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    if (equals == 0 || equals == text.npos || equals + 1 == text.size()) {
      return Error(Code::kInvalidArgument, "--weight-name \"{}\": expected NODE=PARAMETER", text);
    }
    options->weight_names[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return Status();
}

Answer AnswerOf(const ExportSummary& summary, int ranks) {
  Answer answer;
  answer.text =
      fmt::format("{}: {} weights of {} bytes {}{}{}\n", summary.air, summary.weights,
                  summary.weight_bytes, summary.external ? "in files" : "inside",
                  summary.configs ? ", with model_relation_config.json and numa_config.json" : "",
                  ranks == 1 ? "" : fmt::format("; {} ranks", ranks));
  answer.report.details = {{"written", summary.air},
                           {"ranks", ranks},
                           {"weights", summary.weights},
                           {"weight_bytes", summary.weight_bytes},
                           {"weights_in_files", summary.external},
                           {"configs", summary.configs}};
  const std::filesystem::path folder = std::filesystem::path(summary.air).parent_path();
  answer.next = fmt::format("npumesh validate {}", folder.empty() ? "." : folder.string());
  return answer;
}

// One process, a thread for each rank.
int ExportAllRanks(const Env& env, const ExportJobOptions& job, int ranks, bool as_json) {
  ExportSummary summary;
  const std::vector<Status> statuses = RunRanks(ranks, env, [&](World& world) {
    const Result<ExportSummary> mine = RunExport(world, job);
    if (mine.ok() && world.rank() == 0) summary = *mine;
    return mine.status();
  });
  return Tell("export", as_json,
              statuses[0].ok() ? Result<Answer>(AnswerOf(summary, ranks)) : statuses[0]);
}

// Collective over all MPI ranks.
int ExportOwnRank(World& world, const ExportJobOptions& job, bool as_json) {
  const Result<ExportSummary> summary = RunExport(world, job);
  // The ranks agree on every error, so one of them says it, before any of them ends: a launcher
  // cuts off what the others still have to say. Only a lost rank, which may be that one, is told by
  // all that are left.
  const bool speaks = world.rank() == 0 || summary.status().code() == Code::kPeerLost;
  if (!summary.ok() && speaks) Tell("export", as_json, summary.status());
  const Status end = world.Shutdown();
  if (!summary.ok()) return ExitCode(summary.status());
  if (world.rank() == 0) Tell("export", as_json, AnswerOf(*summary, world.size()));
  return end.ok() ? 0 : Fail("export", end);
}

// The command line, as it was typed.
struct ExportWords {
  ExportJobOptions job;
  std::optional<std::string> path;
  std::optional<std::string> name;
  ConfigSource config;
  std::vector<std::string> weight_names;
  std::string weight_limit;
  bool distributed = false;
  bool as_json = false;
  bool quiet = false;
  ShardJobOptions shard;
};

// What --config and -o say.
Result<ExportOptions> ConfiguredOptions(const ConfigSource& source) {
  if (source.empty()) return ExportOptions();
  NPUMESH_ASSIGN_OR_RETURN(const Configuration config, LoadConfiguration(source));
  return ExportOptionsFor(config.compiler);
}

// What was typed wins over what was configured.
Result<ExportJobOptions> JobOf(const ExportWords& words, const ExportOptions& configured) {
  ExportJobOptions job = words.job;
  job.options.enable_record_nn_module_stack |= configured.enable_record_nn_module_stack;
  job.options.auto_atc_config_generated |= configured.auto_atc_config_generated;
  job.options.export_path = configured.export_path;
  job.options.export_name = configured.export_name;
  if (words.path) job.options.export_path = *words.path;
  if (words.name) job.options.export_name = *words.name;
  if (words.distributed) job.options.distributed = true;
  job.show_progress = !words.quiet;
  NPUMESH_RETURN_IF_ERROR(AddWeightNames(words.weight_names, &job.options));
  if (!words.weight_limit.empty()) {
    NPUMESH_ASSIGN_OR_RETURN(job.options.weight_limit,
                             ParseBytes(words.weight_limit, "--weight-limit"));
  }
  return job;
}

int ExportSharded(const ExportJobOptions& job, const ShardJobOptions& shard, bool as_json) {
  if (job.paths.size() != 1) {
    return Fail("export", Error(Code::kInvalidArgument, "--tp splits one graph; {} were named",
                                job.paths.size()));
  }
  return ShardFile("export", job.paths[0], BuiltinOps(), shard, job.options, as_json);
}

int RunCommand(const ExportJobOptions& job, bool as_json) {
  const Result<Env> env = ReadEnvironment();
  if (!env.ok()) return FailTogether("export", Outcome::From(env.status()));
  const Result<std::unique_ptr<World>> world = World::Start(*env);
  if (!world.ok()) return FailTogether("export", Outcome::From(world.status()));
  if ((*world)->size() > 1) return ExportOwnRank(**world, job, as_json);
  const Result<int> ranks = RanksOfPaths(job.paths);
  if (!ranks.ok()) return Tell("export", as_json, ranks.status());
  return *ranks > 1 ? ExportAllRanks(*env, job, *ranks, as_json)
                    : ExportOwnRank(**world, job, as_json);
}

}  // namespace

void AddExport(CLI::App& app, Action& action) {
  auto words = std::make_shared<ExportWords>();
  ExportOptions& options = words->job.options;
  CLI::App* command = app.add_subcommand("export", "Write graphs and their weights as one package");
  AddFooter(
      *command, "",
      {"npumesh export mp/ --path mp2 --name mp_rank --auto-atc-config",
       "npumesh export whole.air --tp 2 --path split --name split_rank",
       "npumesh launch -n 4 -- export mp/ --path mp2 --name mp_rank --auto-atc-config"},
      "Under mpirun each rank exports its graph; without it one process exports the graphs of all "
      "ranks of a folder.\n");
  command
      ->add_option(
          "graphs", words->job.paths,
          "An .air, .pbtxt or ge_proto*.txt file for each rank, in rank order, or a folder")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("--path", words->path,
                   "export_path: folder of the package, relative or absolute; default "
                   "export_file")
      ->type_name("FOLDER");
  command
      ->add_option("--name", words->name,
                   "export_name: base name of the .air files, ranks are appended; default "
                   "export")
      ->type_name("NAME");
  command->add_flag("--dynamic", options.dynamic, "Open all input dimensions of 2 and more");
  CLI::Option* configs = command->add_flag(
      "--auto-atc-config", options.auto_atc_config_generated,
      "Write model_relation_config.json and numa_config.json for the real cluster");
  command
      ->add_flag("--template", options.template_configs,
                 "Write both as TorchAir does: all ranks in node 0")
      ->needs(configs);
  command->add_flag("--module-stack", options.enable_record_nn_module_stack,
                    "Keep nn_module_stack of nodes two modules deep");
  command
      ->add_option("--weight-limit", words->weight_limit,
                   "Weights become files above this many bytes of graph and weights (0: always); "
                   "default 1848M")
      ->type_name("BYTES");
  command->add_option("--weight-name", words->weight_names, "Name of a weight, and of its file")
      ->type_name("NODE=PARAMETER")
      ->allow_extra_args(false);
  command->add_flag("--distributed", words->distributed,
                    "The layout of several ranks for a single one, too");
  command->add_flag("--read-only", options.read_only, "Permission 0400 for the .air, as GE writes");
  AddAllowOutsideOption(*command, words->job.allow_outside);
  command->add_flag("--no-progress", words->quiet,
                    "No progress line; otherwise there is one where standard error is a terminal");
  AddJsonFlag(*command, words->as_json);
  AddConfigOptions(*command, words->config);
  AddShardOptions(*command, words->shard);
  command->callback([words, &action] {
    action = [words] {
      const Result<ExportOptions> configured = ConfiguredOptions(words->config);
      if (!configured.ok()) return FailTogether("export", Outcome::From(configured.status()));
      const Result<ExportJobOptions> job = JobOf(*words, *configured);
      if (job.ok() && words->shard.ranks > 0) {
        return ExportSharded(*job, words->shard, words->as_json);
      }
      if (job.ok()) return RunCommand(*job, words->as_json);
      return FailTogether("export", Outcome::Usage(std::string(job.status().message())));
    };
  });
}

}  // namespace npumesh
