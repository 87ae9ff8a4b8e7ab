// `npumesh dump`: looks into dumps, converts and compares them.
#include <ctime>
#include <filesystem>
#include <set>

#include "launch/commands/command.h"
#include "launch/commands/dump_compare.h"
#include "launch/dump/convert.h"
#include "launch/dump/listing.h"
#include "launch/dump/overflow_report.h"
#include "runtime/base/secure_file.h"

namespace npumesh {
namespace {

struct FolderOptions {
  std::string path;
  std::string out = ".";
  std::string op;
  bool operators = false;
  bool to_nd = false;
  size_t most = 1;
};

Status List(const FolderOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<DumpStep> steps, FindDumpSteps(options.path));
  NPUMESH_ASSIGN_OR_RETURN(const std::string text, ListingText(steps, options.operators));
  Show(text);
  return Status();
}

// Each folder of dump files into a folder of the same name below `out`; a single one into `out`.
Status Convert(const FolderOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<DumpStep> steps, FindDumpSteps(options.path));
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
  Show(fmt::format("{} files written to {}\n", files, options.out));
  for (const std::string& line : failed) Show("failed: " + line + "\n");
  if (failed.empty()) return Status();
  return Error(Code::kUnsupported, "{} dump files could not be converted, the first: {}",
               failed.size(), failed.front());
}

Status Stat(const FolderOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<DumpStep> steps, FindDumpSteps(options.path));
  bool found = false;
  for (const DumpStep& step : steps) {
    NPUMESH_ASSIGN_OR_RETURN(const std::string text, StatText(step.path, options.op));
    found = found || !text.empty();
    if (options.op.empty() || !text.empty()) Show(step.path + "\n" + text);
  }
  if (found || options.op.empty()) return Status();
  return Error(
      Code::kNotFound,
      "{}: no operator whose name contains \"{}\" was dumped; `npumesh dump ls -l` lists them",
      options.path, options.op);
}

// 1: there are overflows. Writes the summary and the JSON of every record.
Result<int> ShowOverflows(const FolderOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<DumpStep> steps, FindDumpSteps(options.path));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<Overflow> overflows, FindOverflows(steps));
  NPUMESH_ASSIGN_OR_RETURN(const std::string text, OverflowText(overflows, options.most));
  Show(text);
  NPUMESH_RETURN_IF_ERROR(MakeFolders(options.out, FileKind::kDataDump));
  NPUMESH_RETURN_IF_ERROR(WriteFile(
      fmt::format("{}/overflow_summary_{}.txt", options.out, TimeFolderName(std::time(nullptr))),
      text, FileKind::kDataDump));
  std::set<std::string> records;
  for (const Overflow& overflow : overflows) records.insert(overflow.record_file);
  for (const std::string& record : records) {
    NPUMESH_RETURN_IF_ERROR(ConvertOverflowRecord(record, options.out).status());
  }
  return overflows.empty() ? 0 : 1;
}

// A command that only fails or succeeds.
template <typename Command>
Action ActionOf(std::shared_ptr<FolderOptions> options, Command command) {
  return [options, command] {
    const Status status = command(*options);
    return status.ok() ? 0 : Fail("dump", status);
  };
}

void AddList(CLI::App& dump, Action& action) {
  auto options = std::make_shared<FolderOptions>();
  CLI::App* list = dump.add_subcommand("ls", "What was dumped, by rank and step");
  AddFooter(*list, "", {"npumesh dump ls dump/ -l"});
  list->add_option("path", options->path, "A dump folder, of any level")
      ->type_name("FOLDER")
      ->required();
  list->add_flag("-l,--operators", options->operators, "One line for each operator, with types");
  list->callback([options, &action] { action = ActionOf(options, List); });
}

void AddConvert(CLI::App& dump, Action& action) {
  auto options = std::make_shared<FolderOptions>();
  CLI::App* convert =
      dump.add_subcommand("convert", "Dump files to .npy, under the names of msaccucmp");
  AddFooter(*convert, "", {"npumesh dump convert dump/worldsize4_global_rank0 -o npy/"});
  convert->add_option("path", options->path, "A dump folder, of any level")
      ->type_name("FOLDER")
      ->required();
  convert->add_option("-o,--out", options->out, "Folder for the files")
      ->type_name("FOLDER")
      ->capture_default_str();
  convert->add_flag("--nd", options->to_nd, "FRACTAL_NZ tensors become ND, without padding");
  convert->callback([options, &action] { action = ActionOf(options, Convert); });
}

void AddStat(CLI::App& dump, Action& action) {
  auto options = std::make_shared<FolderOptions>();
  CLI::App* stat = dump.add_subcommand("stat", "Minimum, maximum, mean, NaN and Inf of tensors");
  AddFooter(*stat, "", {"npumesh dump stat dump/ --op RmsNorm"});
  stat->add_option("path", options->path, "A dump folder, of any level")
      ->type_name("FOLDER")
      ->required();
  stat->add_option("--op", options->op, "Only operators whose name contains this")
      ->type_name("NAME");
  stat->callback([options, &action] { action = ActionOf(options, Stat); });
}

void AddOverflow(CLI::App& dump, Action& action) {
  auto options = std::make_shared<FolderOptions>();
  CLI::App* overflow =
      dump.add_subcommand("overflow", "Operators that overflowed, from the debug records");
  AddFooter(*overflow, "an operator overflowed", {"npumesh dump overflow dump/ -n 3 -o report/"});
  overflow->add_option("path", options->path, "A dump folder, of any level")
      ->type_name("FOLDER")
      ->required();
  overflow->add_option("-o,--out", options->out, "Folder for summary and JSON files")
      ->type_name("FOLDER")
      ->capture_default_str();
  overflow->add_option("-n", options->most, "How many cases to show")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  overflow->callback([options, &action] {
    action = [options] {
      const Result<int> code = ShowOverflows(*options);
      return code.ok() ? *code : Fail("dump", code.status());
    };
  });
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
