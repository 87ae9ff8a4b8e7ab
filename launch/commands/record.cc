// `npumesh record`: joins the flight records of all ranks, ours or those of other libraries, and
// says what went wrong.
#include "launch/commands/answer.h"
#include "launch/commands/versions.h"
#include "launch/record/foreign/job_folder.h"
#include "launch/record/foreign/torch_export.h"
#include "launch/record/record_join.h"
#include "launch/record/record_page.h"
#include "launch/record/timeline.h"
#include "runtime/base/files/secure_file.h"

namespace npumesh {
namespace {

struct RecordOptions {
  std::string folder;
  std::string timeline;  // empty: not written
  std::string html;      // the same
  std::string torch;     // the same
  bool as_json = false;
};

Result<Answer> JoinRecords(const RecordOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const Job job, ReadJob(options.folder));
  const std::vector<RankRecord>& records = job.records;
  const Joined& joined = job.joined;
  if (!options.torch.empty()) {
    NPUMESH_RETURN_IF_ERROR(WriteTorchDumps(records, joined, options.torch));
  }
  if (!options.timeline.empty()) {
    NPUMESH_RETURN_IF_ERROR(
        WriteFile(options.timeline, TimelineJson(records, joined), FileKind::kData));
  }
  if (!options.html.empty()) {
    const std::string page =
        RecordPage(records, joined, OriginOf("npumesh record " + options.folder));
    NPUMESH_RETURN_IF_ERROR(WriteFile(options.html, page, FileKind::kData));
  }
  const bool good = joined.problems.empty();
  Answer answer{good ? 0 : 1, JoinedText(records, joined), RecordReport(records, joined)};
  if (!job.source.empty()) answer.text = fmt::format("{}: {}", job.source, answer.text);
  if (!options.html.empty()) {
    answer.next = fmt::format("open {} in a browser", options.html);
  } else if (!good && options.timeline.empty()) {
    answer.next = fmt::format("npumesh record {} --html record.html: where every rank was when",
                              options.folder);
  }
  return answer;
}

}  // namespace

void AddRecord(CLI::App& app, Action& action) {
  auto options = std::make_shared<RecordOptions>();
  CLI::App* record =
      app.add_subcommand("record", "Say from the flight records of all ranks what went wrong");
  AddFooter(*record, "a problem was found",
            {"NPUMESH_RECORD=records/ npumesh launch -n 4 -- run mp/",
             "npumesh record records/ --html record.html",
             "npumesh record records/ --timeline trace.json", "npumesh record hang_detector/"});
  record
      ->add_option(
          "folder", options->folder,
          "What NPUMESH_RECORD named, or flight records of torch, reports of ncclras, logs "
          "of HCCL")
      ->type_name("FOLDER")
      ->required();
  record
      ->add_option("--timeline", options->timeline,
                   "Write a trace for Perfetto or Chrome's about:tracing")
      ->type_name("FILE");
  record
      ->add_option("--html", options->html, "Write a page: the verdict, and the calls of each rank")
      ->type_name("FILE");
  record
      ->add_option("--export-torch", options->torch,
                   "Write the records as torch's flight recorder does, for torchfrtrace")
      ->type_name("FOLDER");
  AddJsonFlag(*record, options->as_json);
  record->callback([options, &action] {
    action = [options] { return Tell("record", options->as_json, JoinRecords(*options)); };
  });
}

}  // namespace npumesh
