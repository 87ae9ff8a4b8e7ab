#include "launch/commands/dump_compare.h"

#include <fmt/ranges.h>

#include <ctime>
#include <filesystem>

#include "graph/compare/replay/law_replay.h"
#include "graph/compare/sources/graph_that_ran.h"
#include "graph/ops/builtin_ops.h"
#include "launch/catalog/environment.h"
#include "launch/commands/answer.h"
#include "launch/commands/validators.h"
#include "launch/commands/versions.h"
#include "launch/dump/compare_page.h"
#include "launch/dump/job_dump.h"
#include "launch/dump/result_csv.h"
#include "launch/dump/verdict.h"
#include "launch/screen/progress_line.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

struct DumpCompareOptions {
  std::string mine;
  std::string golden;  // empty: the same folder
  std::string model;   // empty: the order of the dump
  std::string out = ".";
  std::string page;        // empty: in `out`, named by the time
  std::vector<int> ranks;  // two, or none
  std::optional<uint64_t> step;
  bool overflow = false;
  bool allow_outside = false;
  bool as_json = false;
  CompareOptions compare;
};

// Everything that was compared, and what it says.
struct Compared {
  std::vector<RankComparison> comparisons;
  int blamed = -1;  // of `comparisons`
  bool msprobe = false;
};

Result<RankComparison> ComparePair(const StepPair& pair, const OperatorOrder* order,
                                   const CompareOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<TensorSource> mine,
                           OpenTensorFolder(pair.mine.path));
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<TensorSource> golden,
                           OpenTensorFolder(pair.golden.path));
  RankComparison result;
  result.rank = pair.mine.rank;
  result.ranks = pair.mine.world_size;
  result.golden_ranks = pair.golden.world_size;
  if (pair.mine.index) result.step = fmt::format("{}", *pair.mine.index);
  NPUMESH_ASSIGN_OR_RETURN(result.comparison, CompareSources(*mine, *golden, order, options));
  return result;
}

// The first step with a difference decides; in it, the rank to blame.
int RankToBlame(const std::vector<RankComparison>& comparisons, const OperatorOrder* order) {
  for (size_t begin = 0; begin < comparisons.size();) {
    std::vector<Comparison> step;
    size_t end = begin;
    for (; end < comparisons.size() && comparisons[end].step == comparisons[begin].step; ++end) {
      step.push_back(comparisons[end].comparison);
    }
    if (const int blamed = RankToBlame(step, order); blamed >= 0) {
      return static_cast<int>(begin) + blamed;
    }
    begin = end;
  }
  return -1;
}

// What was typed, for the head of the page.
std::string CommandText(const DumpCompareOptions& options) {
  std::string text = "npumesh dump compare " + options.mine;
  if (!options.golden.empty()) text += " " + options.golden;
  if (!options.ranks.empty()) text += fmt::format(" --ranks {}", fmt::join(options.ranks, ","));
  if (!options.model.empty()) text += " --model " + options.model;
  if (options.step) text += fmt::format(" --step {}", *options.step);
  const Allowance& allowance = options.compare.allowance;
  if (allowance.absolute != 0) text += fmt::format(" --atol {}", allowance.absolute);
  if (allowance.relative != 0) text += fmt::format(" --rtol {}", allowance.relative);
  if (options.compare.reorder) text += " --reorder";
  return text;
}

// What was written, and where.
struct Written {
  std::string page;
  size_t tables = 0;  // CSV files
};

Result<Written> WriteResults(const DumpCompareOptions& options, const Compared& compared,
                             const Graph* graph) {
  Written written;
  NPUMESH_RETURN_IF_ERROR(MakeFolders(options.out, FileKind::kDataDump));
  const std::string time = TimeFolderName(std::time(nullptr));
  const bool several = compared.comparisons.size() > 1;
  for (const RankComparison& one : compared.comparisons) {
    const std::string prefix = several ? fmt::format("{}/rank{}_{}_", options.out, one.rank,
                                                     one.step.empty() ? "0" : one.step)
                                       : options.out + "/";
    for (const auto& [name, text] :
         {std::pair("result", ResultCsv(one.comparison, options.overflow)),
          std::pair("mapping", MappingCsv(one.comparison)),
          std::pair("divergence", DivergenceCsv(one.comparison))}) {
      NPUMESH_RETURN_IF_ERROR(
          WriteFile(fmt::format("{}{}_{}.csv", prefix, name, time), text, FileKind::kDataDump));
      ++written.tables;
    }
  }
  NPUMESH_ASSIGN_OR_RETURN(const std::string page,
                           ComparePage(compared.comparisons, compared.blamed, graph, BuiltinOps(),
                                       OriginOf(CommandText(options))));
  written.page =
      options.page.empty()
          ? (std::filesystem::path(options.out) / fmt::format("compare_{}.html", time)).string()
          : options.page;
  NPUMESH_RETURN_IF_ERROR(WriteFile(written.page, page, FileKind::kDataDump));
  return written;
}

// What to do about the first difference; empty: its cause is known, or nothing differs.
std::string NextOf(const DumpCompareOptions& options, const Compared& compared) {
  if (compared.blamed < 0) return "";
  const RankComparison& one = compared.comparisons[static_cast<size_t>(compared.blamed)];
  if (compared.msprobe) return "";  // no graph of ours has its operators
  if (options.model.empty()) return "the same with --model PATH: what made the inputs that differ";
  if (one.cause) return "";
  return fmt::format("npumesh replay {} --model {} --op {}: whether it computes what it was given",
                     options.mine, options.model, Printable(one.comparison.First()->name));
}

// The graph that orders and pictures the comparison, of the rank that is asked for.
Result<std::unique_ptr<JobModels>> ModelsFor(const DumpCompareOptions& options,
                                             const std::vector<DumpStep>& steps) {
  if (options.model.empty()) return std::unique_ptr<JobModels>();
  return LoadJobModels("dump", options.model, RanksOf(steps), options.allow_outside);
}

// What explains the first difference of a comparison, by the graph that ran if there is one, and
// where the program made it.
Status Explain(const StepPair& pair, const JobModels* models, RankComparison& one) {
  std::optional<Model> ran;
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<TensorSource> mine,
                           OpenTensorFolder(pair.mine.path));
  one.called_at = mine->CalledAt(one.comparison.First()->key);
  if (models != nullptr) {
    ran = GraphThatRan(models->models[static_cast<size_t>(one.rank)], BuiltinOps(), *mine);
  }
  one.cause = FindInputCause(one.comparison, *one.comparison.First(), ran ? &ran->graph : nullptr,
                             BuiltinOps(), one.ranks, one.golden_ranks);
  return Status();
}

Result<Answer> CompareDumps(const DumpCompareOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(std::vector<DumpStep> my_steps, FindDumpSteps(options.mine));
  NPUMESH_ASSIGN_OR_RETURN(std::vector<DumpStep> golden_steps,
                           FindDumpSteps(options.golden.empty() ? options.mine : options.golden));
  PairingOptions pairing;
  pairing.step = options.step;
  if (options.ranks.size() == 2) pairing.ranks = {options.ranks[0], options.ranks[1]};
  my_steps = LatestSteps(std::move(my_steps));
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<JobModels> models, ModelsFor(options, my_steps));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<StepPair> pairs,
                           PairSteps(my_steps, LatestSteps(std::move(golden_steps)), pairing));
  std::optional<OperatorOrder> order;
  if (models != nullptr) {
    NPUMESH_ASSIGN_OR_RETURN(order,
                             OperatorOrder::FromGraph(models->models[0].graph, BuiltinOps()));
  }
  const OperatorOrder* const known_order = order ? &*order : nullptr;
  Compared compared;
  ProgressLine progress(ProgressFormHere());
  for (const StepPair& pair : pairs) {
    const size_t done = compared.comparisons.size();
    progress.Show(fmt::format("folder {} of {}", done + 1, pairs.size()),
                  static_cast<double>(done) / static_cast<double>(pairs.size()));
    NPUMESH_ASSIGN_OR_RETURN(RankComparison one, ComparePair(pair, known_order, options.compare));
    compared.comparisons.push_back(std::move(one));
  }
  compared.blamed = RankToBlame(compared.comparisons, known_order);
  if (compared.blamed >= 0) {
    const auto blamed = static_cast<size_t>(compared.blamed);
    compared.msprobe = pairs[blamed].mine.msprobe;
    NPUMESH_RETURN_IF_ERROR(Explain(pairs[blamed], models.get(), compared.comparisons[blamed]));
  }
  const Graph* graph = nullptr;
  if (models != nullptr) {
    const auto shown = static_cast<size_t>(std::max(compared.blamed, 0));
    graph = &models->models[static_cast<size_t>(compared.comparisons[shown].rank)].graph;
  }
  NPUMESH_ASSIGN_OR_RETURN(const Written written, WriteResults(options, compared, graph));
  Answer answer{compared.blamed < 0 ? 0 : 1, VerdictText(compared.comparisons, compared.blamed),
                CompareReport(compared.comparisons, compared.blamed, options.out)};
  answer.text += fmt::format("written: {}, and {} CSV files in {}\n", written.page, written.tables,
                             options.out);
  answer.report.details["page"] = written.page;
  answer.next = NextOf(options, compared);
  return answer;
}

struct LawOptions {
  std::string folder;
  std::string model;
  std::optional<uint64_t> step;
  bool list = false;
  bool equal_inputs = false;
  bool allow_outside = false;
  bool as_json = false;
};

// Up to the first step in which a law is broken.
Result<Answer> CheckJobLaws(const LawOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(std::vector<DumpStep> steps, FindDumpSteps(options.folder));
  steps = LatestSteps(std::move(steps));
  const int ranks = RanksOf(steps);
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<JobModels> job,
                           LoadJobModels("dump", options.model, ranks, options.allow_outside));
  NPUMESH_ASSIGN_OR_RETURN(const OperatorOrder order,
                           OperatorOrder::FromGraph(job->models[0].graph, BuiltinOps()));
  Answer answer;
  answer.report.verdict = "hold";
  for (const uint64_t step : StepNumbers(steps)) {
    if (options.step && *options.step != step) continue;
    NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<JobSources> dumps, OpenStep(steps, step, ranks));
    const InputClasses inputs =
        InputsAsDumped(job->graphs, BuiltinOps(), dumps->sources, options.equal_inputs);
    NPUMESH_ASSIGN_OR_RETURN(const LawTable table, DeriveLaws(job->graphs, BuiltinOps(), inputs));
    NPUMESH_ASSIGN_OR_RETURN(LawReport report, CheckLaws(table, dumps->sources, order));
    if (report.First() != nullptr) {
      NPUMESH_ASSIGN_OR_RETURN(const Env env, ReadEnvironment());
      NPUMESH_RETURN_IF_ERROR(
          DecideByReplay(job->graphs, dumps->sources, env, report.broken.front()));
    }
    if (options.list) answer.text += LawTableText(table);
    answer.text += fmt::format("step {}: ", step) + LawsText(report);
    NoteLaws(step, report, table, options.list, answer.report);
    if (report.First() == nullptr) continue;
    answer.exit_code = 1;
    answer.next = fmt::format(
        "npumesh replay {} --model {} --op {}: whether it computes what it was "
        "given",
        options.folder, options.model, Printable(report.First()->law->key));
    return answer;
  }
  return answer;
}

}  // namespace

void AddAllowance(CLI::App& command, CompareOptions& options) {
  command
      .add_option("--atol", options.allowance.absolute,
                  "Allowed absolute difference of floating-point elements")
      ->type_name("NUMBER")
      ->check(NumberFromZero());
  command.add_option("--rtol", options.allowance.relative, "Allowed relative difference")
      ->type_name("NUMBER")
      ->check(NumberFromZero());
  command.add_flag("--reorder", options.reorder,
                   "Allow what sums in another order may differ by, by dtype");
}

void AddCompare(CLI::App& dump, Action& action) {
  auto options = std::make_shared<DumpCompareOptions>();
  options->compare.algorithms.assign(kAlgorithms.begin(), kAlgorithms.end());
  options->compare.detailed = kDetailedOperators;
  CLI::App* compare = dump.add_subcommand("compare", "The first operator at which two dumps part");
  AddFooter(*compare, "an operator differs",
            {"npumesh dump compare bad/ good/ --model mp/ -o report/",
             "npumesh dump compare bad/ --ranks 0,2 --model mp/"});
  compare->add_option("mine", options->mine, "The dump to examine, a folder of any level")
      ->type_name("FOLDER")
      ->required();
  compare
      ->add_option("golden", options->golden,
                   "What is expected: another dump, or a folder of .npy files; default: the same, "
                   "with --ranks")
      ->type_name("FOLDER");
  compare
      ->add_option("--ranks", options->ranks,
                   "Rank A of mine against rank B of golden, both 0 or more")
      ->type_name("A,B")
      ->delimiter(',')
      ->expected(2)
      ->check(NumberFromZero());
  compare->add_option("--step", options->step, "Only this step");
  compare
      ->add_option("--model", options->model,
                   "The graph that ran, file or export folder: topological order, and a picture")
      ->type_name("PATH");
  compare->add_option("-o,--out", options->out, "Folder for the CSV files and the page")
      ->type_name("FOLDER")
      ->capture_default_str();
  compare
      ->add_option("--html", options->page,
                   "Write the page to this file instead of compare_{time}.html")
      ->type_name("FILE");
  compare->add_flag("--overflow", options->overflow, "Adds the column OverFlow (float16)");
  AddAllowance(*compare, options->compare);
  AddAllowOutsideOption(*compare, options->allow_outside);
  AddJsonFlag(*compare, options->as_json);
  compare->callback([options, &action] {
    if (options->golden.empty() && options->ranks.empty()) {
      throw CLI::RequiredError("golden, or --ranks A,B");
    }
    action = [options] { return Tell("dump compare", options->as_json, CompareDumps(*options)); };
  });
}

void AddLaws(CLI::App& dump, Action& action) {
  auto options = std::make_shared<LawOptions>();
  CLI::App* laws = dump.add_subcommand(
      "laws", "Checks what the graphs say must be equal on several ranks, and names who breaks it");
  AddFooter(*laws, "a law is broken", {"npumesh dump laws bad/ --model mp/"});
  laws->add_option("folder", options->folder, "The dump of all ranks")
      ->type_name("FOLDER")
      ->required();
  laws->add_option("--model", options->model, "The graphs that ran, an export folder")
      ->type_name("PATH")
      ->required();
  laws->add_option("--step", options->step, "Only this step");
  laws->add_flag("--list", options->list, "Prints every law");
  laws->add_flag("--equal-inputs", options->equal_inputs,
                 "Graph inputs that are not in the dump were equal on all ranks");
  AddAllowOutsideOption(*laws, options->allow_outside);
  AddJsonFlag(*laws, options->as_json);
  laws->callback([options, &action] {
    action = [options] { return Tell("dump laws", options->as_json, CheckJobLaws(*options)); };
  });
}

}  // namespace npumesh
