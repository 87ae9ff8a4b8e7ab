// `npumesh dump`: looks into dumps, converts and compares them.
#include <ctime>
#include <filesystem>
#include <set>

#include "launch/commands/answer.h"
#include "launch/commands/dump_compare.h"
#include "launch/dump/convert.h"
#include "launch/dump/listing.h"
#include "launch/dump/overflow_report.h"
#include "launch/report/json_parts.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

using nlohmann::json;

struct FolderOptions {
  std::string path;
  std::string out = ".";
  std::string op;
  bool operators = false;
  bool to_nd = false;
  size_t most = 1;
  bool as_json = false;
};

Result<Answer> List(const FolderOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<DumpStep> steps, FindDumpSteps(options.path));
  Answer answer;
  json& list = answer.report.details["steps"] = json::array();
  for (const DumpStep& step : steps) {
    NPUMESH_ASSIGN_OR_RETURN(const ListedStep listed, ListStep(step, options.operators));
    answer.text += ToText(listed);
    list.push_back(ToJsonObject(listed));
  }
  return answer;
}

// Each folder of dump files into a folder of the same name below `out`; a single one into `out`.
Result<Answer> Convert(const FolderOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<DumpStep> steps, FindDumpSteps(options.path));
  Answer answer;
  size_t files = 0;
  std::vector<std::string> failed;
  for (const DumpStep& step : steps) {
    std::filesystem::path out = options.out;
    if (steps.size() > 1) {
      out /= std::filesystem::path(step.path).lexically_relative(options.path);
    }
    NPUMESH_ASSIGN_OR_RETURN(const Converted converted,
                             ConvertFolder(step.path, out.string(), {.to_nd = options.to_nd}));
    files += converted.files;
    failed.insert(failed.end(), converted.failed.begin(), converted.failed.end());
  }
  answer.text = fmt::format("{} files written to {}\n", files, options.out);
  if (!failed.empty()) {
    for (const std::string& line : failed) answer.text += "failed: " + line + "\n";
    if (!options.as_json) Show(answer.text);
    return Error(Code::kUnsupported, "{} dump files could not be converted, the first: {}",
                 failed.size(), failed.front());
  }
  answer.report.details = {{"out", options.out}, {"files", files}};
  return answer;
}

Result<Answer> Stat(const FolderOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<DumpStep> steps, FindDumpSteps(options.path));
  Answer answer;
  json& folders = answer.report.details["folders"] = json::array();
  for (const DumpStep& step : steps) {
    NPUMESH_ASSIGN_OR_RETURN(const FolderStatistics found, StatisticsOf(step.path, options.op));
    if (!options.op.empty() && found.empty()) continue;
    answer.text += step.path + "\n" + ToText(found);
    folders.push_back(ToJsonObject(found));
  }
  if (!folders.empty()) return answer;
  return Error(
      Code::kNotFound,
      "{}: no operator whose name contains \"{}\" was dumped; `npumesh dump ls -l` lists them",
      options.path, options.op);
}

json ToJsonObject(const Overflow& overflow) {
  return {{"operator", overflow.op_name},
          {"type", overflow.op_type},
          {"file", overflow.operator_file},
          {"record", overflow.record_file},
          {"accelerator", overflow.entry.accelerator},
          {"fields", overflow.entry.fields}};
}

// Exit code 1: there are overflows. Writes the summary and the JSON of every record.
Result<Answer> ShowOverflows(const FolderOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<DumpStep> steps, FindDumpSteps(options.path));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<Overflow> overflows, FindOverflows(steps));
  NPUMESH_ASSIGN_OR_RETURN(const std::string text, OverflowText(overflows, options.most));
  NPUMESH_RETURN_IF_ERROR(MakeFolders(options.out, FileKind::kDataDump));
  NPUMESH_RETURN_IF_ERROR(WriteFile(
      fmt::format("{}/overflow_summary_{}.txt", options.out, TimeFolderName(std::time(nullptr))),
      text, FileKind::kDataDump));
  Answer answer{overflows.empty() ? 0 : 1, text, {}};
  answer.report.verdict = overflows.empty() ? "none" : "overflowed";
  answer.report.details["overflows"] =
      ListOf(overflows, [](const Overflow& overflow) { return ToJsonObject(overflow); });
  std::set<std::string> records;
  for (const Overflow& overflow : overflows) records.insert(overflow.record_file);
  for (const std::string& record : records) {
    NPUMESH_RETURN_IF_ERROR(ConvertOverflowRecord(record, options.out).status());
  }
  answer.report.details["out"] = options.out;
  if (!overflows.empty() && !overflows.front().op_name.empty()) {
    answer.next = fmt::format("npumesh dump stat {} --op {}: what it read and wrote", options.path,
                              Printable(overflows.front().op_name));
  }
  return answer;
}

void AddFolder(CLI::App& command, const std::shared_ptr<FolderOptions>& options) {
  command.add_option("path", options->path, "A dump folder, of any level")
      ->type_name("FOLDER")
      ->required();
}

// Adds --json, and has the command answer with what `find` says. `words`: its name, "dump ls".
void Answers(CLI::App& command, Action& action, std::string words,
             const std::shared_ptr<FolderOptions>& options,
             Result<Answer> (*find)(const FolderOptions&)) {
  AddJsonFlag(command, options->as_json);
  command.callback([&action, words = std::move(words), options, find] {
    action = [words, options, find] { return Tell(words, options->as_json, find(*options)); };
  });
}

void AddList(CLI::App& dump, Action& action) {
  auto options = std::make_shared<FolderOptions>();
  CLI::App* list = dump.add_subcommand("ls", "What was dumped, by rank and step");
  AddFooter(*list, "", {"npumesh dump ls dump/ -l"});
  AddFolder(*list, options);
  list->add_flag("-l,--operators", options->operators, "One line for each operator, with types");
  Answers(*list, action, "dump ls", options, List);
}

void AddConvert(CLI::App& dump, Action& action) {
  auto options = std::make_shared<FolderOptions>();
  CLI::App* convert =
      dump.add_subcommand("convert", "Dump files to .npy, under the names of msaccucmp");
  AddFooter(*convert, "", {"npumesh dump convert dump/worldsize4_global_rank0 -o npy/"});
  AddFolder(*convert, options);
  convert->add_option("-o,--out", options->out, "Folder for the files")
      ->type_name("FOLDER")
      ->capture_default_str();
  convert->add_flag("--nd", options->to_nd, "FRACTAL_NZ tensors become ND, without padding");
  Answers(*convert, action, "dump convert", options, Convert);
}

void AddStat(CLI::App& dump, Action& action) {
  auto options = std::make_shared<FolderOptions>();
  CLI::App* stat = dump.add_subcommand("stat", "Minimum, maximum, mean, NaN and Inf of tensors");
  AddFooter(*stat, "", {"npumesh dump stat dump/ --op RmsNorm"});
  AddFolder(*stat, options);
  stat->add_option("--op", options->op, "Only operators whose name contains this")
      ->type_name("NAME");
  Answers(*stat, action, "dump stat", options, Stat);
}

void AddOverflow(CLI::App& dump, Action& action) {
  auto options = std::make_shared<FolderOptions>();
  CLI::App* overflow =
      dump.add_subcommand("overflow", "Operators that overflowed, from the debug records");
  AddFooter(*overflow, "an operator overflowed", {"npumesh dump overflow dump/ -n 3 -o report/"});
  AddFolder(*overflow, options);
  overflow->add_option("-o,--out", options->out, "Folder for summary and JSON files")
      ->type_name("FOLDER")
      ->capture_default_str();
  overflow->add_option("-n", options->most, "How many cases to show")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  Answers(*overflow, action, "dump overflow", options, ShowOverflows);
}

}  // namespace

void AddDump(CLI::App& app, Action& action) {
  CLI::App* dump = app.add_subcommand("dump", "Look into dumps, convert and compare them");
  dump->require_subcommand(1);
  AddFooter(
      *dump, "something differs or overflowed",
      {"npumesh dump ls dump/", "npumesh dump convert dump/worldsize4_global_rank0 -o npy/",
       "npumesh dump compare good/ bad/ --model mp/ -o report/",
       "npumesh dump compare bad/ --ranks 0,2 --model mp/", "npumesh dump laws bad/ --model mp/"});
  AddList(*dump, action);
  AddConvert(*dump, action);
  AddStat(*dump, action);
  AddCompare(*dump, action);
  AddLaws(*dump, action);
  AddOverflow(*dump, action);
}

}  // namespace npumesh
