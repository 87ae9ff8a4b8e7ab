#include "launch/run/run_story.h"

#include <algorithm>
#include <limits>

#include "launch/report/command_report.h"
#include "launch/report/junit.h"
#include "runtime/base/foreign_json.h"
#include "runtime/base/json_text.h"
#include "runtime/base/parse.h"
#include "runtime/base/secure_file.h"

namespace npumesh {
namespace {

using nlohmann::json;

constexpr const char* kUnfinished =
    "the run was killed, or runs still: it has not come to an end that could be reported";

// Exit codes above are 128 and the signal that asked for the end.
constexpr int kAskedToStop = 128;

constexpr uint64_t kLargestReport = uint64_t{1} << 30;

Result<std::string> ReadReport(const std::string& file) {
  if (file.empty()) return Error(Code::kNotFound, "no report was asked for");
  return ReadFile(file, kLargestReport);
}

json OrNull(const std::string& text) {
  return text.empty() ? json() : json(text);
}

json RankOrNull(int rank) {
  return rank < 0 ? json() : json(rank);
}

json OptionsAsJson(const RunOptions& options) {
  json result = {{"path", options.path}, {"steps", options.steps},
                 {"seed", options.seed}, {"per_rank_inputs", options.per_rank_inputs},
                 {"dims", options.dims}, {"inject", options.inject}};
  result["inputs"] = OrNull(options.inputs);
  result["outputs"] = OrNull(options.outputs);
  result["check"] = OrNull(options.check);
  result["golden"] = OrNull(options.golden);
  result["op_libraries"] = options.op_libraries;
  result["config"] = OrNull(options.config.file);
  result["assignments"] = options.config.assignments;
  const ToleranceOptions& tolerance = options.tolerance;
  if (tolerance.rule) result["tolerance"] = ToText(*tolerance.rule);
  if (tolerance.rtol) result["rtol"] = *tolerance.rtol;
  if (tolerance.atol) result["atol"] = *tolerance.atol;
  return result;
}

json GoldenAsJson(const RunStory& story, const RunOptions& options) {
  if (options.golden.empty()) return json();
  json golden = {{"graph", options.golden}, {"compared", story.golden.has_value()}};
  if (!story.golden) return golden;
  golden["differs"] = story.golden->differs;
  golden["rank"] = RankOrNull(story.golden->rank);
  golden["operator"] = OrNull(story.golden->op);
  golden["type"] = OrNull(story.golden->type);
  return golden;
}

std::string ErrorOf(const RunStory& story) {
  return story.ended ? story.outcome.message : kUnfinished;
}

// The operator that a message names: node "NAME" (TYPE).
std::string OperatorIn(const std::string& message) {
  constexpr std::string_view kNode = "node \"";
  const size_t begin = message.find(kNode);
  if (begin == message.npos) return "";
  const size_t name = begin + kNode.size();
  const size_t end = message.find('"', name);
  return end == message.npos ? "" : message.substr(name, end - name);
}

// The rank of "rank 1 of 4 (process 77) has ended" or "rank 1, whose process 77 is stopped"; -1
// when a message says neither.
int LostRankIn(const std::string& message) {
  constexpr std::string_view kRank = "rank ";
  const size_t end = std::min(message.find(" has ended"), message.find(" is stopped"));
  const size_t begin = end == message.npos ? end : message.rfind(kRank, end);
  if (begin == message.npos) return -1;
  const std::string_view number = std::string_view(message).substr(begin + kRank.size());
  const size_t digits = std::min(number.find_first_not_of("0123456789"), number.size());
  const Result<int64_t> rank =
      ParseInt(number.substr(0, digits), 0, std::numeric_limits<int>::max(), "rank");
  return rank.ok() ? static_cast<int>(*rank) : -1;
}

std::string RankGroup(int rank) {
  return fmt::format("rank {}", rank);
}

JunitCase CaseOf(const OutputCheck& check) {
  JunitCase test;
  test.group = RankGroup(check.rank);
  test.name = fmt::format("output {} {}{}", check.index, check.dtype, check.shape);
  if (check.ok) return test;
  test.result = JunitCase::Result::kFailed;
  test.message = check.detail;
  test.detail = CheckLine(check);
  return test;
}

JunitCase CaseOf(const OutputSummary& output) {
  return {RankGroup(output.rank),
          fmt::format("output {} {}{}", output.index, output.dtype, output.shape),
          JunitCase::Result::kSkipped, "not checked: no --check", SummaryLines({output})};
}

std::string GoldenWords(const GoldenFinding& golden) {
  return fmt::format("{} differs first: {} ({})",
                     golden.rank < 0 ? "a rank" : RankGroup(golden.rank), golden.op, golden.type);
}

// What differs, in the form of every command.
json FindingsOf(const RunStory& story) {
  CommandReport found;
  for (const OutputCheck& check : story.measured.checks) {
    if (check.ok) continue;
    found.Add(Severity::kError, CheckLine(check), {{"rank", check.rank}, {"output", check.index}});
  }
  if (story.golden && story.golden->differs) {
    found.Add(Severity::kError, GoldenWords(*story.golden),
              {{"rank", RankOrNull(story.golden->rank)}, {"operator", story.golden->op}});
  }
  return found.findings;
}

JunitCase GoldenCase(const RunStory& story, const RunOptions& options) {
  JunitCase test{"golden", options.golden, JunitCase::Result::kPassed, "", ""};
  if (!story.golden) {
    test.result = JunitCase::Result::kError;
    test.message = "not compared";
  } else if (story.golden->differs) {
    test.result = JunitCase::Result::kFailed;
    test.message = GoldenWords(*story.golden);
  }
  return test;
}

double SecondsOf(const MeasuredRun& measured) {
  double seconds = 0;
  for (const RankReport& rank : measured.ranks) {
    seconds = std::max(seconds, rank.compile_seconds + rank.total_seconds);
  }
  return seconds;
}

}  // namespace

const OutputCheck* MeasuredRun::FirstDifference() const {
  const auto found = std::find_if(checks.begin(), checks.end(),
                                  [](const OutputCheck& check) { return !check.ok; });
  return found == checks.end() ? nullptr : &*found;
}

std::string VerdictOf(const RunStory& story, const RunOptions& options) {
  if (!story.ended) return "unfinished";
  if (story.outcome.exit_code > kAskedToStop) return "stopped";
  if (!story.outcome.message.empty()) return "error";
  if (options.check.empty() && options.golden.empty()) return "not checked";
  const bool golden_differs = story.golden && story.golden->differs;
  return story.measured.FirstDifference() != nullptr || golden_differs ? "differ" : "match";
}

int RankToBlame(const RunStory& story) {
  if (story.outcome.consequence) return LostRankIn(story.outcome.message);
  if (!story.outcome.message.empty()) return story.culprit;
  if (story.golden && story.golden->rank >= 0) return story.golden->rank;
  const OutputCheck* const first = story.measured.FirstDifference();
  return first == nullptr ? -1 : first->rank;
}

std::string OperatorToBlame(const RunStory& story) {
  if (!story.outcome.message.empty()) return OperatorIn(story.outcome.message);
  return story.golden ? story.golden->op : "";
}

std::string ToJson(const RunStory& story, const RunOptions& options, const json& versions) {
  const MeasuredRun& measured = story.measured;
  const json report = {
      {"command", "run"},
      {"npumesh", versions},
      {"options", OptionsAsJson(options)},
      {"note", kTimeNote},
      {"verdict", VerdictOf(story, options)},
      {"exit_code", story.ended ? json(story.outcome.exit_code) : json()},
      {"error", OrNull(ErrorOf(story))},
      {"rank", RankOrNull(RankToBlame(story))},
      {"operator", OrNull(OperatorToBlame(story))},
      {"findings", FindingsOf(story)},
      {"golden", GoldenAsJson(story, options)},
      {"slowest_rank", measured.ranks.empty() ? json() : json(SlowestRank(measured.ranks))},
      {"ranks", measured.ranks},
      {"checks", measured.checks},
      {"outputs", measured.outputs}};
  return JsonText(report);
}

std::string ToJunit(const RunStory& story, const RunOptions& options) {
  std::vector<JunitCase> cases;
  for (const OutputCheck& check : story.measured.checks) cases.push_back(CaseOf(check));
  for (const OutputSummary& output : story.measured.outputs) {
    if (options.check.empty()) cases.push_back(CaseOf(output));
  }
  if (!options.golden.empty()) cases.push_back(GoldenCase(story, options));
  if (const std::string error = ErrorOf(story); !error.empty()) {
    const int rank = RankToBlame(story);
    const std::string group = rank < 0 ? "run" : RankGroup(rank);
    cases.push_back({group, "run", JunitCase::Result::kError, error, ""});
  }
  return ToJunit("npumesh run " + options.path, SecondsOf(story.measured), cases);
}

Status WriteReports(const RunStory& story, const RunOptions& options, const json& versions) {
  Status report;
  if (!options.report.empty()) {
    report = WriteFile(options.report, ToJson(story, options, versions), FileKind::kData);
  }
  if (options.junit.empty()) return report.WithContext("--report");
  const Status junit = WriteFile(options.junit, ToJunit(story, options), FileKind::kData);
  return report.ok() ? junit.WithContext("--junit") : report.WithContext("--report");
}

Status EndUnfinishedReports(const std::string& report, const std::string& junit, int exit_code,
                            const std::string& reason) {
  if (const Result<std::string> text = ReadReport(report); text.ok()) {
    json object = ParseForeignJson(*text);
    if (object.is_object() && object.value("verdict", "") == "unfinished") {
      object["verdict"] = exit_code > kAskedToStop ? "stopped" : "error";
      object["exit_code"] = exit_code;
      object["error"] = reason;
      NPUMESH_RETURN_IF_ERROR(WriteFile(report, JsonText(object), FileKind::kData));
    }
  }
  const Result<std::string> text = ReadReport(junit);
  if (!text.ok() || text->find(kUnfinished) == text->npos) return Status();
  const JunitCase test{"run", "run", JunitCase::Result::kError, reason, ""};
  return WriteFile(junit, ToJunit("npumesh run", 0, {test}), FileKind::kData);
}

}  // namespace npumesh
