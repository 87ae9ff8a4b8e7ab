// `npumesh run`: runs a graph, or each rank its graph of an export.
#include <fmt/ranges.h>
#include <unistd.h>

#include <chrono>
#include <map>

#include "launch/catalog/environment.h"
#include "launch/catalog/variable_notices.h"
#include "launch/commands/answer.h"
#include "launch/commands/command.h"
#include "launch/commands/dump_arguments.h"
#include "launch/commands/fail_together.h"
#include "launch/commands/run_faults.h"
#include "launch/commands/tolerance_options.h"
#include "launch/commands/validators.h"
#include "launch/commands/versions.h"
#include "launch/ranks/agreement.h"
#include "launch/report/card_place.h"
#include "launch/run/crash_line.h"
#include "launch/run/dim_bindings.h"
#include "launch/run/double_check.h"
#include "launch/run/run_job.h"
#include "launch/run/run_story.h"
#include "launch/run/stop_request.h"
#include "launch/screen/progress_line.h"
#include "launch/screen/screen.h"
#include "runtime/base/log.h"
#include "runtime/base/process/process_safety.h"
#include "runtime/base/process/thread_census.h"
#include "runtime/base/text/rank_list.h"

namespace npumesh {
namespace {

using nlohmann::json;

// A rank's numbers, on their way to the others. Infinite ones have no text in JSON.
std::string Packed(const json& value) {
  const std::vector<uint8_t> bytes = json::to_cbor(value);
  return {bytes.begin(), bytes.end()};
}

// Each text once, with the ranks that it is about.
void PrintCard(const std::vector<CardOfRank>& findings) {
  std::map<std::string, std::vector<int>> ranks;
  for (const CardOfRank& found : findings) {
    if (!found.fails) ranks[found.text].push_back(found.rank);
  }
  Warnings warnings;
  for (const auto& [text, who] : ranks) {
    warnings.push_back(fmt::format("{}: {}", RanksText(who), text));
  }
  PrintWarnings("run", warnings);
}

// What this rank's card says, in its words: all ranks print them.
json CardTold(const CardFindings* found) {
  json told = json::array();
  if (found == nullptr) return told;
  const Card& card = found->card();
  for (const CardFinding& finding : found->all()) {
    told.push_back({{"finding", finding},
                    {"fails", card.fails && finding.refused()},
                    {"text", TextOf(finding, *card.chip)}});
  }
  return told;
}

// Collective over all ranks.
Result<MeasuredRun> ShareMeasured(RankCircle& circle, const RunJob& job) {
  const json mine = {{"report", job.Report()},         {"card", CardTold(job.card())},
                     {"checks", job.checks()},         {"outputs", job.outputs()},
                     {"guarded", job.guarded_steps()}, {"repeated", job.repeated_steps()}};
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> texts, circle.Share(Packed(mine)));
  MeasuredRun measured;
  for (const std::string& text : texts) {
    const json theirs = json::from_cbor(text);
    measured.ranks.push_back(theirs.at("report").get<RankReport>());
    for (const json& check : theirs.at("checks")) measured.checks.push_back(check);
    for (const json& output : theirs.at("outputs")) measured.outputs.push_back(output);
    for (const json& told : theirs.at("card")) {
      measured.card.push_back(
          {measured.ranks.back().rank, told.at("finding"), told.at("fails"), told.at("text")});
    }
    measured.guarded_steps += theirs.at("guarded").get<uint64_t>();
    measured.repeated_steps += theirs.at("repeated").get<uint64_t>();
  }
  return measured;
}

// "inputs: random, seed 0": where the numbers come from.
std::string InputsLine(const RunOptions& options) {
  if (!options.inputs.empty()) return fmt::format("inputs: {}\n", options.inputs);
  return fmt::format("inputs: random, seed {}{}\n", options.seed,
                     options.per_rank_inputs ? ", others on each rank" : "");
}

std::string GuardLine(const MeasuredRun& measured) {
  return fmt::format(
      "guard: {} operator runs checked, {} of them twice; nothing else was written\n",
      measured.guarded_steps, measured.repeated_steps);
}

void PrintMeasured(const MeasuredRun& measured, const RunOptions& options) {
  std::string text = InputsLine(options);
  if (options.outputs.empty() && options.check.empty()) text += SummaryLines(measured.outputs);
  for (const OutputCheck& check : measured.checks) text += CheckLine(check) + "\n";
  text += ReportTable(measured.ranks, options.steps);
  std::vector<RankDump> dumps;
  for (const RankReport& rank : measured.ranks) dumps.push_back(rank.dump);
  text += DumpLines(dumps);
  if (options.guard) text += GuardLine(measured);
  if (!options.guard && !options.op_libraries.empty()) {
    text +=
        "not guarded in full: --guard checks all that operators of --op-library write and read\n";
  }
  if (!options.check.empty()) {
    text += CheckVerdict(measured.checks, measured.ranks.size()) + "\n";
  }
  Show(text);
}

// Rank 0 shows it for all.
ProgressForm StepProgress(const World& world, const RunOptions& options) {
  const bool quiet = options.quiet || options.steps == 1 || world.rank() != 0;
  return quiet ? ProgressForm::kNone : ProgressFormHere();
}

void ShowStep(uint64_t done, uint64_t steps, ProgressLine& progress) {
  if (!progress.due()) return;
  progress.Show(fmt::format("step {} of {}", done, steps),
                static_cast<double>(done) / static_cast<double>(steps));
}

// Collective over all ranks. The steps of one rank fail on all of them.
bool RunSteps(World& world, RunJob& job, const RunOptions& options, Agreement& agreement) {
  const StopRequest stop(world, std::chrono::seconds(options.timeout));
  ProgressLine progress(StepProgress(world, options));
  Outcome outcome;
  for (uint64_t step = 0; step < options.steps; ++step) {
    if (outcome.ok()) outcome = stop.Before(step, options.steps);
    if (outcome.ok()) outcome = Outcome::From(job.LoadStep(step));
    if (!outcome.ok()) progress.Clear();
    if (!agreement.Reached(outcome)) return false;
    const Status status = job.RunStep(step);
    if (!status.ok()) world.board().PublishFailure(status);
    outcome = stop.After(status);
    ShowStep(step + 1, options.steps, progress);
    if (outcome.ok()) NPUMESH_INFO("step {} of {} is done", step, options.steps);
  }
  if (outcome.ok()) outcome = Outcome::From(job.CheckFaults());
  return agreement.Reached(outcome);
}

void ReportFailure(const RunOptions& options, const Outcome& outcome) {
  RunStory story;
  story.ended = true;
  story.outcome = outcome;
  const Status written = WriteReports(story, options, VersionsAsJson());
  if (!written.ok()) PrintFailure("run", written.message());
}

// A failure outside of any agreement.
int FailAlone(const RunOptions& options, const Outcome& outcome) {
  ReportFailure(options, outcome);
  PrintFailure("run", outcome.message);
  return outcome.exit_code;
}

// Collective over all MPI ranks: a failure that all ranks have before there is a world. Every rank
// writes the same reports.
int FailBefore(const RunOptions& options, const Outcome& mine) {
  ReportFailure(options, mine);
  return FailTogether("run", mine);
}

// What the ranks have to say of what was named and of what is set, told by rank 0 and kept for the
// reports. Collective over all ranks, also when some of them failed.
Status TellWarnings(RankCircle& circle, const RunJob& job, RunStory& story) {
  Warnings mine = VariableNotices();
  mine.insert(mine.end(), job.warnings().begin(), job.warnings().end());
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> all, circle.Share(PackWarnings(mine)));
  story.warnings = MergeWarnings(all);
  if (circle.rank() == 0) PrintWarnings("run", story.warnings);
  return Status();
}

// Until the first step. Collective over all ranks.
bool Begin(RankCircle& circle, RunJob& job, const RunOptions& options, Agreement& agreement,
           RunStory& story) {
  const Status begun =
      circle.rank() == 0 ? WriteReports(story, options, VersionsAsJson()) : Status();
  if (!agreement.Reached(begun)) return false;
  const Status prepared = job.Prepare();
  const Status told = TellWarnings(circle, job, story);
  if (!agreement.Reached(prepared.ok() ? told : prepared)) return false;
  const bool checks = circle.rank() == 0 && !options.golden.empty() &&
                      options.golden != kFloat64Golden && options.against.empty();
  if (!agreement.Reached(checks ? CheckGoldenGraph(options, job) : Status())) return false;
  return agreement.Reached(job.StartProfile());
}

// The stages of a run, which fill the story; false: one failed, and the agreement knows which.
// Collective over all ranks.
bool RunStages(World& world, RankCircle& circle, RunJob& job, const RunOptions& options,
               Agreement& agreement, RunStory& story) {
  if (!Begin(circle, job, options, agreement, story)) return false;
  const bool ran = RunSteps(world, job, options, agreement);
  const Status dumped = job.FinishDump();
  const Status profiled = job.FinishProfile(agreement.broken());
  if (agreement.broken()) return false;
  // Also of a run that failed: what was checked until then belongs into the reports.
  Result<MeasuredRun> measured = ShareMeasured(circle, job);
  const Status shared = measured.ok() ? profiled : measured.status();
  if (measured.ok()) story.measured = *std::move(measured);
  if (circle.rank() == 0) PrintCard(story.measured.card);
  if (!ran || !agreement.Reached(dumped.ok() ? shared : dumped)) return false;
  if (circle.rank() == 0) PrintMeasured(story.measured, options);
  if (options.golden.empty()) return true;
  const Result<GoldenFinding> golden = TellGolden(world, circle, options, job);
  if (golden.ok()) story.golden = *golden;
  return agreement.Reached(golden.status());
}

// The one place where a run in a world ends, well or not: writes the reports. By rank 0, or, when
// ranks are lost, by each that is left. Collective over all ranks unless some are lost; the exit
// code.
int EndRun(const RunOptions& options, RankCircle& circle, bool finished, Agreement& agreement,
           std::chrono::steady_clock::time_point begun, RunStory& story) {
  story.ended = true;
  story.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  if (finished) {
    const bool differs = story.measured.FirstDifference() != nullptr ||
                         (story.golden.has_value() && story.golden->differs);
    story.outcome.exit_code = differs ? 1 : 0;
  } else {
    story.outcome = agreement.failure();
    story.culprit = agreement.culprit();
  }
  if (circle.rank() == 0) Show(NextLine(NextStep(story, options)));
  const bool mine = circle.rank() == 0 || agreement.broken();
  const Status written = mine ? WriteReports(story, options, VersionsAsJson()) : Status();
  if (finished && !agreement.Reached(written)) return agreement.exit_code();
  return story.outcome.exit_code;
}

// Collective over all ranks. `orderly` says whether the world can be shut down together.
int RunInWorld(World& world, const RunOptions& options, bool& orderly) {
  orderly = false;
  const auto begun = std::chrono::steady_clock::now();
  const Result<std::unique_ptr<RankCircle>> circle = RankCircle::Create(world);
  if (!circle.ok()) return FailAlone(options, Outcome::From(circle.status()));
  if (world.rank() == 0) WarnAboutProcess();
  const CrashLine crash_line(world.rank(), world.size());
  Agreement agreement(**circle, [](std::string_view line) { PrintFailure("run", line); });
  RunJob job(world, options);
  RunStory story;
  const bool finished = RunStages(world, **circle, job, options, agreement, story);
  const int code = EndRun(options, **circle, finished, agreement, begun, story);
  orderly = !agreement.broken();
  return code;
}

// Collective over all MPI ranks.
int RunModel(const RunOptions& options) {
  DeclareSoleCaller();
  const Result<Env> env = ReadEnvironment();
  if (!env.ok()) return FailBefore(options, Outcome::From(env.status()));
  const Result<std::unique_ptr<World>> world = World::Start(*env);
  if (!world.ok()) return FailBefore(options, Outcome::From(world.status()));
  bool orderly = false;
  const int code = RunInWorld(**world, options, orderly);
  if (!orderly) return code;
  const Status end = (*world)->Shutdown();
  return end.ok() || code != 0 ? code : FailAlone(options, Outcome::From(end));
}

// Reads words that the parser took one by one, and says what is wrong with them.
Status ReadWords(const std::vector<std::string>& int_ranges, RunOptions& options) {
  NPUMESH_RETURN_IF_ERROR(CheckTolerance(options.tolerance));
  if (!options.against.empty()) {
    options.golden = fmt::format("{}", fmt::join(options.against, " "));
  }
  if (!options.report.empty() && options.report == options.junit) {
    return Error(Code::kInvalidArgument, "--report and --junit name the same file {}",
                 options.report);
  }
  NPUMESH_ASSIGN_OR_RETURN(options.bindings, DimBindings::Parse(options.dims));
  NPUMESH_ASSIGN_OR_RETURN(options.values, InputValues::Parse(options.sets));
  NPUMESH_ASSIGN_OR_RETURN(options.int_ranges, IntRanges::Parse(int_ranges));
  return Status();
}

int ReadAndRun(const std::vector<std::string>& int_ranges, RunOptions& options) {
  const Status words = ReadWords(int_ranges, options);
  if (words.ok()) return RunModel(options);
  return FailBefore(options,
                    Outcome::Usage(fmt::format("{}; see npumesh run --help", words.message())));
}

}  // namespace

void AddRun(CLI::App& app, Action& action) {
  auto options = std::make_shared<RunOptions>();
  auto int_ranges = std::make_shared<std::vector<std::string>>();
  CLI::App* run = app.add_subcommand("run", "Run a graph, or each rank its graph of an export");
  AddFooter(
      *run, "--check or --golden differs",
      {"npumesh run dynamic.air --dim x=4 --seed 7", "npumesh run model.onnx --dim x=1 --steps 100",
       "npumesh launch -n 4 -- run mp/ --inputs in/ --outputs out/ --steps 10",
       "npumesh launch -n 4 -- run mp/ --inputs in/ --check golden/ --report report.json",
       "npumesh launch -n 4 -- run mp/ --golden whole.air --inject corrupt:rank=2,op=MatMul_3",
       "npumesh run model.air --op-library ./libpolynomial_operator.so --guard",
       "npumesh run export.air --dump all --dump-path dump/ --dump-step \"0|2-3\""});
  run->add_option(
         "path", options->path,
         "An .air, .pbtxt, ge_proto*.txt or .onnx file, or an export folder; with several ranks "
         "each takes the file whose name ends in its rank")
      ->type_name("PATH")
      ->required();
  CLI::Option* inputs =
      run->add_option("--inputs", options->inputs,
                      "Folder with [step_K/]rank_R/<data index>.npy; default: random")
          ->type_name("FOLDER");
  run->add_option("--outputs", options->outputs, "Folder for [step_K/]rank_R/<output>.npy")
      ->type_name("FOLDER");
  run->add_option("--check", options->check, "Folder of golden outputs in the same layout")
      ->type_name("FOLDER");
  run->add_option("--steps", options->steps, "How often to run the graph")
      ->check(CLI::Range(1, 1'000'000'000))
      ->capture_default_str();
  run->add_option("--timeout", options->timeout, "Seconds after which the run ends on all ranks")
      ->check(CLI::Range(1, 1'000'000'000));
  run->add_option("--seed", options->seed, "Seed of random inputs")->capture_default_str();
  run->add_flag("--per-rank-inputs", options->per_rank_inputs,
                "Random inputs differ from rank to rank")
      ->excludes(inputs);
  run->add_option("--dim", options->dims,
                  "A value for open dimensions of random inputs; "
                  "NAME is an input, input.axis, or what an ONNX model calls the dimension")
      ->type_name("NAME=V")
      ->allow_extra_args(false)
      ->excludes(inputs);
  run->add_option("--set", options->sets,
                  "An input of an ONNX model that is a constant: a number for all its elements, "
                  "numbers with commas between them, or a .npy file")
      ->type_name("INPUT=VALUE")
      ->allow_extra_args(false);
  run->add_option("--int-range", *int_ranges,
                  "Random integers of an input are LOW to HIGH - 1; default 0 to 7, and less where "
                  "an operator looks up with them")
      ->type_name("NAME=LOW:HIGH")
      ->allow_extra_args(false)
      ->excludes(inputs);
  AddToleranceOptions(*run, options->tolerance);
  run->add_flag("--guard", options->guard,
                "Check after each operator that nothing but its outputs has changed, and that "
                "operators of --op-library read nothing they have not written");
  AddFaultOptions(*run, *options);
  run->add_option("--report", options->report,
                  "JSON file: verdict, exit code, error, rank, operator, outputs, times; written "
                  "however the run ends")
      ->type_name("FILE");
  run->add_option("--junit", options->junit,
                  "The verdict as JUnit XML, a test case for each rank and output")
      ->type_name("FILE");
  AddAllowOutsideOption(*run, options->allow_outside);
  AddAlgorithmLibraryOption(*run);
  AddOpLibraryOption(*run, options->op_libraries, options->library_trust);
  AddConfigOptions(*run, options->config);
  run->add_option("--threads", options->threads, "Threads of one rank's kernels")
      ->check(CLI::Range(1, 4096));
  run->add_option("--bind", options->binding,
                  "Cores of a rank, by hwloc: its own, its NUMA node's, or all; "
                  "default: its own when there is one for each rank")
      ->transform(CLI::CheckedTransformer(std::map<std::string, Binding>{{"core", Binding::kCore},
                                                                         {"numa", Binding::kNuma},
                                                                         {"none", Binding::kNone}})
                      .description("{core,numa,none}"));
  AddDumpOptions(*run, options->dump);
  CLI::Option* profile = run->add_option("--profile", options->profile,
                                         "Folder for a profile of all ranks, and for the vendor's "
                                         "profiler files; see npumesh profile")
                             ->type_name("FOLDER");
  run->add_option("--profile-max-bytes", options->profile_max_bytes,
                  "Bytes of the profile of all ranks; what is beyond is left out and counted")
      ->transform(CLI::AsSizeValue(false))
      ->needs(profile)
      ->default_str("4GB");
  run->add_flag("--no-progress", options->quiet,
                "No line that shows how weights arrive and how many steps are done; otherwise "
                "there is one where standard error is a terminal");
  run->callback([options, int_ranges, &action] {
    options->show_progress = !options->quiet && ScreenOf(STDERR_FILENO).terminal;
    action = [options, int_ranges] { return ReadAndRun(*int_ranges, *options); };
  });
}

}  // namespace npumesh
