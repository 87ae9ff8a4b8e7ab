#include "launch/run/run_story.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <set>

#include "launch/report/card_place.h"
#include "launch/report/command_report.h"
#include "launch/report/json_parts.h"
#include "launch/report/junit.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/foreign_json.h"
#include "runtime/base/text/json_text.h"
#include "runtime/base/text/parse.h"
#include "runtime/base/text/printable.h"

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

// Changes the JSON report of a run that ended with an error; others stay.
Status ChangeReport(const std::string& file, const std::function<void(json&)>& change) {
  const Result<std::string> text = ReadReport(file);
  if (!text.ok()) return Status();
  json object = ParseForeignJson(*text);
  if (!object.is_object() || !object.contains("error") || !object["error"].is_string()) {
    return Status();
  }
  const json before = object;
  change(object);
  return object == before ? Status() : WriteFile(file, JsonText(object), FileKind::kData);
}

// The same for the error of a JUnit report: the message of its last case, as XML.
Status ChangeJunit(const std::string& file,
                   const std::function<std::string(const std::string&)>& change) {
  const Result<std::string> text = ReadReport(file);
  if (!text.ok()) return Status();
  constexpr std::string_view kBefore = "<error message=\"";
  const size_t begin = text->rfind(kBefore);
  if (begin == text->npos) return Status();
  const size_t from = begin + kBefore.size();
  const size_t end = text->find('"', from);
  if (end == text->npos) return Status();
  const std::string error = text->substr(from, end - from);
  const std::string changed = change(error);
  if (changed == error) return Status();
  return WriteFile(file, text->substr(0, from) + changed + text->substr(end), FileKind::kData);
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
  golden["rank"] = FromZero(story.golden->rank());
  golden["ranks"] = story.golden->ranks;
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

// The whole verdict: the sentence that names the cause is the last one.
std::string GoldenWords(const GoldenFinding& golden, const char* between) {
  return fmt::format("{}", fmt::join(golden.verdict, between));
}

// What was warned of and what differs, in the form of every command.
json FindingsOf(const RunStory& story) {
  CommandReport found;
  for (const std::string& warning : story.warnings) found.Add(Severity::kWarning, warning);
  for (const CardOfRank& card : story.measured.card) {
    nlohmann::json place = CardPlace(card.finding);
    place["rank"] = card.rank;
    found.Add(card.fails ? Severity::kError : Severity::kWarning, card.text, std::move(place));
  }
  for (const OutputCheck& check : story.measured.checks) {
    if (check.ok) continue;
    found.Add(Severity::kError, CheckLine(check), {{"rank", check.rank}, {"output", check.index}});
  }
  if (story.golden && story.golden->differs) {
    found.Add(Severity::kError, GoldenWords(*story.golden, "; "),
              {{"rank", FromZero(story.golden->rank())}, {"operator", story.golden->op}});
  }
  return found.findings;
}

JunitCase CaseOf(const CardOfRank& card) {
  return {RankGroup(card.rank), fmt::format("card {} {}", card.finding.rule, card.finding.node),
          JunitCase::Result::kFailed, card.text, ""};
}

JunitCase GoldenCase(const RunStory& story, const RunOptions& options) {
  JunitCase test{"golden", options.golden, JunitCase::Result::kPassed, "", ""};
  if (!story.golden) {
    test.result = JunitCase::Result::kError;
    test.message = "not compared";
  } else if (story.golden->differs) {
    test.result = JunitCase::Result::kFailed;
    test.message = GoldenWords(*story.golden, "; ");
    test.detail = GoldenWords(*story.golden, "\n");
  }
  return test;
}

// The first rank with an output that differs; -1: none, or all of several ranks have one, which
// says nothing about any of them.
int RankThatDiffers(const MeasuredRun& measured) {
  std::set<int> right;
  std::set<int> wrong;
  for (const OutputCheck& check : measured.checks) right.insert(check.rank);
  for (const OutputCheck& check : measured.checks) {
    if (check.ok) continue;
    right.erase(check.rank);
    wrong.insert(check.rank);
  }
  const bool tells = wrong.size() == 1 || !right.empty();
  return tells && !wrong.empty() ? *wrong.begin() : -1;
}

// Of the slowest rank; of a run that did not get that far, all that it lasted.
double SecondsOf(const RunStory& story) {
  double seconds = 0;
  for (const RankReport& rank : story.measured.ranks) {
    seconds = std::max(seconds, rank.compile_seconds + rank.total_seconds);
  }
  return seconds > 0 ? seconds : story.seconds;
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
  if (story.golden && story.golden->differs) return story.golden->rank();
  return RankThatDiffers(story.measured);
}

std::string OperatorToBlame(const RunStory& story) {
  if (!story.outcome.message.empty()) return OperatorIn(story.outcome.message);
  return story.golden ? story.golden->op : "";
}

std::string NextStep(const RunStory& story, const RunOptions& options) {
  if (!story.ended || !story.outcome.message.empty()) return "";
  const bool golden_differs = story.golden && story.golden->differs;
  if (golden_differs && options.against.empty() && !story.golden->weight) {
    return fmt::format(
        "the same with --dump all --dump-path dump/, then npumesh replay dump/ --model "
        "{}: whether {} computes what it was given",
        options.path, Printable(story.golden->op));
  }
  if (golden_differs) return "";
  if (story.measured.FirstDifference() != nullptr && options.golden.empty()) {
    return "the same with --golden WHOLE, the unsharded graph, or --golden float64: the first "
           "operator that differs";
  }
  if (!options.profile.empty()) return fmt::format("npumesh profile {}", options.profile);
  if (options.dump.mode.empty()) return "";
  return fmt::format(
      "npumesh dump compare {} OTHER --model {}: the first operator that differs from "
      "another dump",
      options.dump.path, options.path);
}

std::string ToJson(const RunStory& story, const RunOptions& options, const json& versions) {
  const MeasuredRun& measured = story.measured;
  const std::vector<int> slowest = SlowestRanks(measured.ranks);
  const json report = {{"command", "run"},
                       {"npumesh", versions},
                       {"options", OptionsAsJson(options)},
                       {"note", kTimeNote},
                       {"verdict", VerdictOf(story, options)},
                       {"exit_code", story.ended ? json(story.outcome.exit_code) : json()},
                       {"error", OrNull(ErrorOf(story))},
                       {"rank", FromZero(RankToBlame(story))},
                       {"operator", OrNull(OperatorToBlame(story))},
                       {"findings", FindingsOf(story)},
                       {"next", OrNull(NextStep(story, options))},
                       {"golden", GoldenAsJson(story, options)},
                       {"slowest_rank", FromZero(slowest.empty() ? -1 : slowest.front())},
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
  for (const CardOfRank& card : story.measured.card) cases.push_back(CaseOf(card));
  if (!options.golden.empty()) cases.push_back(GoldenCase(story, options));
  if (const std::string error = ErrorOf(story); !error.empty()) {
    const int rank = RankToBlame(story);
    const std::string group = rank < 0 ? "run" : RankGroup(rank);
    cases.push_back({group, "run", JunitCase::Result::kError, error, ""});
  }
  std::string printed;
  for (const std::string& warning : story.warnings) printed += "warning: " + warning + "\n";
  if (const std::string next = NextStep(story, options); !next.empty()) {
    printed += "next: " + next + "\n";
  }
  return ToJunit("npumesh run " + options.path, SecondsOf(story), cases, printed);
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
                            const std::string& reason, double seconds) {
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
  return WriteFile(junit, ToJunit("npumesh run", seconds, {test}), FileKind::kData);
}

Status ExplainLostRank(const std::string& report, const std::string& junit, int rank,
                       const std::string& reason) {
  const auto explain = [&](const std::string& error) {
    return LostRankIn(error) == rank && error.find(reason) == error.npos
               ? fmt::format("{}; {}", error, reason)
               : error;
  };
  NPUMESH_RETURN_IF_ERROR(
      ChangeReport(report, [&](json& object) { object["error"] = explain(object["error"]); }));
  return ChangeJunit(junit, explain);
}

Status AddBlame(const std::string& report, const std::string& junit, const json& blame,
                const std::string& text) {
  NPUMESH_RETURN_IF_ERROR(ChangeReport(report, [&](json& object) {
    object["look_first_at"] = blame;
    const json& ranks = blame.at("ranks");
    if (ranks.size() == 1) object["rank"] = ranks[0];
  }));
  return ChangeJunit(junit, [&](const std::string& error) {
    return fmt::format("{}; {}", error, JunitAttribute(text));
  });
}

}  // namespace npumesh
