// `npumesh replay`: every operator of a dump again, alone, on the inputs that were dumped.
#include "graph/compare/replay/replay.h"

#include "graph/ops/op_library.h"
#include "launch/catalog/environment.h"
#include "launch/commands/answer.h"
#include "launch/commands/dump_compare.h"
#include "launch/dump/job_dump.h"
#include "launch/dump/verdict.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

struct ReplayCommandOptions {
  std::string folder;
  std::string model;
  std::optional<uint64_t> step;
  std::vector<std::string> operators;
  bool verbose = false;
  bool as_json = false;
  bool allow_outside = false;
  std::vector<std::string> op_libraries;
  LibraryTrust library_trust = LibraryTrust::kOwner;
  ReplayOptions replay;
};

std::string RankText(const Replayed& replayed, size_t rank, uint64_t step, bool verbose) {
  const Comparison& comparison = replayed.ranks[rank];
  std::string text;
  size_t differing = 0;
  for (const OperatorRow& row : comparison.rows) {
    differing += row.differs();
    if (row.differs() || verbose) {
      text += fmt::format("rank {} step {}: {}\n", rank, step, DistanceText(row));
    }
  }
  const size_t left_out = replayed.LeftOut(static_cast<int>(rank));
  return text + fmt::format("rank {} step {}: {} of {} operators replayed, {} differ\n", rank, step,
                            comparison.rows.size(), comparison.rows.size() + left_out, differing);
}

std::string StepText(const Replayed& replayed, const JobSources& dumps, uint64_t step,
                     bool verbose) {
  std::string text;
  for (size_t rank = 0; rank < replayed.ranks.size(); ++rank) {
    if (dumps.sources[rank] != nullptr) text += RankText(replayed, rank, step, verbose);
  }
  for (const NotReplayed& each : replayed.left_out) {
    text += fmt::format("not replayed: rank {}: {}: {}\n", each.rank, each.name, each.reason);
  }
  return text;
}

// What to do with the first operator that differs; empty: none does.
std::string NextOf(const Replayed& replayed, const JobModels& job) {
  for (size_t rank = 0; rank < replayed.ranks.size(); ++rank) {
    for (const OperatorRow& row : replayed.ranks[rank].rows) {
      if (!row.differs()) continue;
      return fmt::format("npumesh graph {} --node {}: its attributes, inputs and weight",
                         job.models[rank].path, Printable(row.name));
    }
  }
  return "";
}

Status ReplayStep(const ReplayCommandOptions& options, const std::vector<DumpStep>& steps,
                  uint64_t step, const JobModels& job, const Env& env, Answer& answer) {
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<JobSources> dumps,
                           OpenStep(steps, step, job.graphs.size()));
  NPUMESH_ASSIGN_OR_RETURN(const Replayed replayed,
                           Replay(job.graphs, dumps->sources, env, options.replay));
  answer.text += StepText(replayed, *dumps, step, options.verbose);
  NoteReplayed(step, replayed, answer.report);
  if (answer.next.empty()) answer.next = NextOf(replayed, job);
  return Status();
}

int ExitCodeOf(const std::string& verdict) {
  if (verdict == "differ") return 1;
  return verdict == "not replayed" ? 4 : 0;
}

Result<Answer> ReplayDump(ReplayCommandOptions options) {
  NPUMESH_ASSIGN_OR_RETURN(const Env env, ReadEnvironment());
  NPUMESH_ASSIGN_OR_RETURN(std::vector<DumpStep> steps, FindDumpSteps(options.folder));
  steps = LatestSteps(std::move(steps));
  NPUMESH_ASSIGN_OR_RETURN(
      const std::unique_ptr<JobModels> job,
      LoadJobModels("replay", options.model, RanksOf(steps), options.allow_outside));
  for (const std::string& name : options.operators) {
    options.replay.only.insert(OperatorKey(name));
  }
  NPUMESH_ASSIGN_OR_RETURN(const std::shared_ptr<const OpRegistry> registry,
                           OperatorsWith(options.op_libraries, options.library_trust));
  options.replay.registry = registry.get();
  Answer answer;
  answer.report.verdict = "same";
  for (const uint64_t step : StepNumbers(steps)) {
    if (options.step && *options.step != step) continue;
    NPUMESH_RETURN_IF_ERROR(ReplayStep(options, steps, step, *job, env, answer));
  }
  answer.exit_code = ExitCodeOf(answer.report.verdict);
  if (answer.report.verdict == "same" && RanksOf(steps) > 1) {
    answer.next = fmt::format("npumesh dump laws {} --model {}: what has to be equal between ranks",
                              options.folder, options.model);
  }
  return answer;
}

}  // namespace

void AddReplay(CLI::App& app, Action& action) {
  auto options = std::make_shared<ReplayCommandOptions>();
  CLI::App* replay = app.add_subcommand(
      "replay", "Run every operator of a dump of mode all again, alone, and compare its outputs");
  AddFooter(
      *replay, "an operator differs",
      {"npumesh replay dump/ --model mp/", "npumesh replay from_npu/ --model export.air --reorder"},
      "An operator that ran and cannot be replayed ends it with 4, unless another differs.\n");
  replay->add_option("folder", options->folder, "A dump folder, of any level")
      ->type_name("FOLDER")
      ->required();
  replay->add_option("--model", options->model, "The graph that ran, file or export folder")
      ->type_name("PATH")
      ->required();
  replay->add_option("--step", options->step, "Only this step");
  replay->add_option("--op", options->operators, "Only this operator")
      ->type_name("NAME")
      ->allow_extra_args(false);
  replay->add_flag("-v,--verbose", options->verbose, "One line for every operator");
  AddOpLibraryOption(*replay, options->op_libraries, options->library_trust);
  AddAllowance(*replay, options->replay.compare);
  AddAllowOutsideOption(*replay, options->allow_outside);
  AddJsonFlag(*replay, options->as_json);
  replay->callback([options, &action] {
    action = [options] { return Tell("replay", options->as_json, ReplayDump(*options)); };
  });
}

}  // namespace npumesh
