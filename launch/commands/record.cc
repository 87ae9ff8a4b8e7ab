// `npumesh record`: joins the flight records of all ranks and says what went wrong.
#include <cstdio>

#include "launch/commands/command.h"
#include "launch/record/joiner.h"
#include "launch/record/timeline.h"
#include "runtime/base/secure_file.h"

namespace npumesh {
namespace {

struct RecordOptions {
  std::string folder;
  std::string timeline;  // empty: not written
};

// 0: nothing is wrong, 1: a problem was found.
Result<int> ShowRecords(const RecordOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<RankRecord> records, ReadRecords(options.folder));
  NPUMESH_ASSIGN_OR_RETURN(const Joined joined, Join(records));
  const std::string text = JoinedText(records, joined);
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (!options.timeline.empty()) {
    NPUMESH_RETURN_IF_ERROR(
        WriteFile(options.timeline, TimelineJson(records, joined), FileKind::kData));
  }
  return joined.problems.empty() ? 0 : 1;
}

}  // namespace

void AddRecord(CLI::App& app, Action& action) {
  auto options = std::make_shared<RecordOptions>();
  CLI::App* record =
      app.add_subcommand("record", "Say from the flight records of all ranks what went wrong");
  record->footer(
      "Exit codes: 0 nothing is wrong, 1 a problem was found, 2 usage, 3 unreadable input.\n"
      "Example:\n"
      "  NPUMESH_RECORD=records/ mpirun -n 4 npumesh run mp/\n"
      "  npumesh record records/ --timeline trace.json");
  record->add_option("folder", options->folder, "What NPUMESH_RECORD named")->required();
  record->add_option("--timeline", options->timeline,
                     "Write a trace for Perfetto or Chrome's about:tracing");
  record->callback([options, &action] {
    action = [options] {
      const Result<int> code = ShowRecords(*options);
      return code.ok() ? *code : Fail("record", code.status());
    };
  });
}

}  // namespace npumesh
