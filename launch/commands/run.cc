// `npumesh run`: runs a graph, or each rank its graph of an export.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "launch/commands/command.h"
#include "launch/commands/dump_arguments.h"
#include "launch/commands/fail_together.h"
#include "launch/commands/run_faults.h"
#include "launch/commands/versions.h"
#include "launch/run/agreement.h"
#include "launch/run/run_job.h"
#include "launch/run/stop_request.h"
#include "runtime/base/log.h"
#include "runtime/base/process_safety.h"
#include "runtime/base/secure_file.h"
#include "runtime/base/thread_census.h"

namespace npumesh {
namespace {

using nlohmann::json;

constexpr std::string_view kExamples =
    "Exit codes: 0 success, 1 --check or --golden differs, 2 usage, 3 input, 4 run-time or "
    "--timeout, 5 peer, 130 Ctrl-C.\n"
    "Examples:\n"
    "  npumesh run dynamic.air --dim x=4 --seed 7\n"
    "  npumesh launch -n 4 -- run mp/ --inputs in/ --outputs out/ --steps 10\n"
    "  npumesh launch -n 4 -- run mp/ --inputs in/ --check golden/ --report report.json\n"
    "  npumesh launch -n 4 -- run mp/ --golden whole.air --inject corrupt:rank=2,op=MatMul_3\n"
    "  npumesh run export.air --dump all --dump-path dump/ --dump-step \"0|2-3\"";

json ToJson(const RunOptions& options) {
  json result = {{"path", options.path}, {"steps", options.steps},
                 {"seed", options.seed}, {"per_rank_inputs", options.per_rank_inputs},
                 {"dims", options.dims}, {"inject", options.inject}};
  for (const auto& [name, folder] : {std::pair("inputs", options.inputs),
                                     {"outputs", options.outputs},
                                     {"check", options.check},
                                     {"golden", options.golden}}) {
    result[name] = folder.empty() ? json() : json(folder);
  }
  result["op_libraries"] = options.op_libraries;
  result["config"] = options.config.file.empty() ? json() : json(options.config.file);
  result["assignments"] = options.config.assignments;
  if (options.tolerance.rtol) result["rtol"] = *options.tolerance.rtol;
  if (options.tolerance.atol) result["atol"] = *options.tolerance.atol;
  return result;
}

// Names of files may hold any bytes; a report is UTF-8.
std::string Dump(const json& value, int indent) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

// Everything the ranks measured, as every rank knows it after sharing.
struct Measured {
  std::vector<RankReport> ranks;
  std::vector<OutputCheck> checks;

  bool all_match() const {
    for (const OutputCheck& check : checks) {
      if (!check.ok) return false;
    }
    return true;
  }
};

// Collective over all ranks.
Result<Measured> ShareMeasured(RankCircle& circle, const RunJob& job) {
  const json mine = {{"report", job.Report()}, {"checks", job.checks()}};
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> texts, circle.Share(Dump(mine, -1)));
  Measured measured;
  for (const std::string& text : texts) {
    const json theirs = json::parse(text);
    measured.ranks.push_back(theirs.at("report").get<RankReport>());
    for (const json& check : theirs.at("checks")) measured.checks.push_back(check);
  }
  return measured;
}

void PrintMeasured(const Measured& measured, const RunOptions& options) {
  std::string text;
  for (const OutputCheck& check : measured.checks) text += CheckLine(check) + "\n";
  text += ReportTable(measured.ranks, options.steps);
  std::vector<RankDump> dumps;
  for (const RankReport& rank : measured.ranks) dumps.push_back(rank.dump);
  text += DumpLines(dumps);
  if (!options.check.empty()) {
    text += CheckVerdict(measured.checks, measured.ranks.size()) + "\n";
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

Status WriteReport(const Measured& measured, const RunOptions& options) {
  const std::string verdict = options.check.empty()  ? "not checked"
                              : measured.all_match() ? "match"
                                                     : "differ";
  const json report = {{"npumesh", VersionsAsJson()}, {"options", ToJson(options)},
                       {"note", kTimeNote},           {"slowest_rank", SlowestRank(measured.ranks)},
                       {"ranks", measured.ranks},     {"checks", measured.checks},
                       {"verdict", verdict}};
  return WriteFile(options.report, Dump(report, 2) + "\n", FileKind::kData);
}

// Collective over all ranks: shares, prints and writes what was measured; the exit code.
int Finish(RankCircle& circle, const RunJob& job, const RunOptions& options, Agreement& agreement) {
  const Result<Measured> measured = ShareMeasured(circle, job);
  Status written = measured.status();
  if (measured.ok() && circle.rank() == 0) {
    PrintMeasured(*measured, options);
    if (!options.report.empty()) written = WriteReport(*measured, options);
  }
  if (!agreement.Reached(written)) return agreement.exit_code();
  return measured->all_match() ? 0 : 1;
}

// Collective over all ranks. The steps of one rank fail on all of them.
bool RunSteps(World& world, RunJob& job, const RunOptions& options, Agreement& agreement) {
  const StopRequest stop(world, std::chrono::seconds(options.timeout));
  Outcome outcome;
  for (uint64_t step = 0; step < options.steps; ++step) {
    if (outcome.ok()) outcome = stop.Before(step, options.steps);
    if (outcome.ok()) outcome = Outcome::From(job.LoadStep(step));
    if (!agreement.Reached(outcome)) return false;
    const Status status = job.RunStep(step);
    if (!status.ok()) world.PublishFailure(status);
    outcome = stop.After(status);
    if (outcome.ok()) NPUMESH_INFO("step {} of {} is done", step, options.steps);
  }
  if (outcome.ok()) outcome = Outcome::From(job.CheckFaults());
  return agreement.Reached(outcome);
}

// Collective over all ranks. `orderly` says whether the world can be shut down together.
int RunInWorld(World& world, const RunOptions& options, bool& orderly) {
  orderly = false;
  const Result<std::unique_ptr<RankCircle>> circle = RankCircle::Create(world);
  if (!circle.ok()) return Fail("run", circle.status());
  if (world.rank() == 0) WarnAboutProcess();
  Agreement agreement(**circle, [](std::string_view line) { PrintFailure("run", line); });
  RunJob job(world, options);
  const bool ran = agreement.Reached(job.Prepare()) && RunSteps(world, job, options, agreement);
  const Status dumped = job.FinishDump();
  if (!ran || !agreement.Reached(dumped)) {
    orderly = !agreement.broken();
    return agreement.exit_code();
  }
  int code = Finish(**circle, job, options, agreement);
  if (!agreement.broken()) {
    const Result<int> golden = TellGolden(world, **circle, options, job);
    code = agreement.Reached(golden.status()) ? std::max(code, *golden) : agreement.exit_code();
  }
  orderly = !agreement.broken();
  return code;
}

// Collective over all MPI ranks.
int RunModel(const RunOptions& options) {
  DeclareSoleCaller();
  const Result<Env> env = Env::FromProcess();
  if (!env.ok()) return FailTogether("run", Outcome::From(env.status()));
  const Result<std::unique_ptr<World>> world = World::Start(*env);
  if (!world.ok()) return FailTogether("run", Outcome::From(world.status()));
  bool orderly = false;
  const int code = RunInWorld(**world, options, orderly);
  if (!orderly) return code;
  const Status end = (*world)->Shutdown();
  return end.ok() || code != 0 ? code : Fail("run", end);
}

}  // namespace

void AddRun(CLI::App& app, Action& action) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* run = app.add_subcommand("run", "Run a graph, or each rank its graph of an export");
  run->footer(std::string(kExamples));
  run->add_option("path", options->path,
                  "An .air, .pbtxt or ge_proto*.txt file, or an export folder; with several ranks "
                  "each takes the file whose name ends in its rank")
      ->required();
  CLI::Option* inputs = run->add_option(
      "--inputs", options->inputs, "Folder with [step_K/]rank_R/<data index>.npy; default: random");
  run->add_option("--outputs", options->outputs, "Folder for [step_K/]rank_R/<output>.npy");
  run->add_option("--check", options->check, "Folder of golden outputs in the same layout");
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
                  "NAME=V: a value for open dimensions of random inputs; "
                  "NAME is an input, or input.axis")
      ->allow_extra_args(false)
      ->excludes(inputs);
  run->add_option("--rtol", options->tolerance.rtol, "Relative tolerance of --check")
      ->check(CLI::NonNegativeNumber);
  run->add_option("--atol", options->tolerance.atol, "Absolute tolerance of --check")
      ->check(CLI::NonNegativeNumber);
  AddFaultOptions(*run, *options);
  run->add_option("--report", options->report, "JSON file for everything the table shows");
  AddOpLibraryOption(*run, options->op_libraries);
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
  auto quiet = std::make_shared<bool>(false);
  run->add_flag(
      "--no-progress", *quiet,
      "No line that shows how weights arrive; otherwise there is one where standard error "
      "is a terminal");
  run->callback([options, quiet, &action] {
    options->show_progress = !*quiet && isatty(STDERR_FILENO) == 1;
    action = [options] { return RunModel(*options); };
  });
}

}  // namespace npumesh
