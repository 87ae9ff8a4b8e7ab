#include <time.h>

#include <array>
#include <set>

#include "launch/record/record_join.h"
#include "launch/report/command_report.h"
#include "launch/report/json_parts.h"
#include "launch/report/table.h"
#include "runtime/base/text/printable.h"
#include "runtime/base/text/rank_list.h"

namespace npumesh {

using nlohmann::json;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LateRank, rank, calls, came_last, late_ms, most_late_ms,
                                   waited_ms)

namespace {

// "2026-11-20 14:29:50 UTC".
std::string TimeText(int64_t realtime_ns) {
  const time_t seconds = realtime_ns / 1'000'000'000;
  tm parts{};
  std::array<char, 64> text{};
  if (gmtime_r(&seconds, &parts) == nullptr ||
      strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts) == 0) {
    return "an unknown time";
  }
  return text.data();
}

std::string Heading(const std::vector<RankRecord>& records, const Joined& joined) {
  std::set<std::string> hosts;
  uint64_t calls = 0;
  uint64_t forgotten = 0;
  for (const RankRecord& record : records) {
    if (!record.host.empty()) hosts.insert(record.host);
    calls += record.calls.size();
    forgotten += record.forgotten;
  }
  std::string text = fmt::format("{} of {} ranks", records.size(), records[0].world_size);
  if (!hosts.empty()) {
    text += fmt::format(" on {} host{}", hosts.size(), hosts.size() == 1 ? "" : "s");
  }
  text += fmt::format(", {} group{}, {} calls", joined.groups.size(),
                      joined.groups.size() == 1 ? "" : "s", calls);
  if (records[0].start_realtime_ns > 0) {
    text += "; begun " + TimeText(records[0].start_realtime_ns);
  }
  text += "\n";
  if (forgotten != 0)
    text += fmt::format("{} older calls are no longer in the records\n", forgotten);
  return text;
}

std::string GroupText(const JoinedGroup& group) {
  std::string text = fmt::format("group {} ({})", Printable(group.name), RanksText(group.members));
  if (group.common == 0) return text + ": no call that all have done\n";
  text += fmt::format(": all have done call {}", group.common);
  const auto it = group.calls.find(group.common);
  if (it != group.calls.end()) text += ", " + CallText(*it->second.begin()->second);
  return text + "\n";
}

std::string ArrivalTable(const std::vector<LateRank>& arrivals) {
  if (arrivals.empty()) return "";
  const auto mean = [](const json& row, std::string_view key) {
    return fmt::format("{:.3f}", row.at(key).get<double>() / row.at("calls").get<double>());
  };
  const TableForm table{{{"rank", 6, "rank"},
                         {"calls", 9, "calls"},
                         {"came last", 10, "came_last"},
                         {"mean late ms", 13, "late_ms", mean},
                         {"most late ms", 12, "most_late_ms", WithDigits(3)},
                         {"waited in all ms", 16, "waited_ms", WithDigits(3)}}};
  return "arrival at the calls that all members recorded, the latest ranks first:\n" +
         TableText(table, arrivals);
}

std::string_view EndOf(const RankRecord& record) {
  switch (record.state) {
    case flight::State::kShutDown:
      return "orderly";
    case flight::State::kAbandoned:
      return "alone";
    case flight::State::kRunning:
      break;
  }
  return LeftWithError(record) ? "error" : "none";
}

json RankJson(const RankRecord& record) {
  return {{"rank", record.rank},          {"host", record.host},
          {"process", record.process},    {"end", EndOf(record)},
          {"calls", record.calls.size()}, {"forgotten", record.forgotten},
          {"damaged", record.damaged}};
}

json NoticesJson(const RankRecord& record) {
  return ListOf(record.notices, [&record](const RecordedNotice& recorded) -> json {
    const WaitNotice& notice = recorded.notice;
    return {{"rank", record.rank},
            {"gave_up", notice.gave_up},
            {"reason", Name(notice.reason)},
            {"ranks", notice.ranks},
            {"waited_s", notice.waited.count()},
            {"text", notice.text}};
  });
}

json GroupJson(const JoinedGroup& group) {
  return {{"name", group.name}, {"ranks", group.members}, {"all_have_done_call", group.common}};
}

}  // namespace

std::string CallText(const RecordedCall& call) {
  const bool is_untyped = call.dtype == static_cast<int32_t>(DataType::kUndefined);
  const bool is_foreign = is_untyped && call.kind == CollectiveKind::kBarrier && !call.node.empty();
  if (is_foreign) return Printable(call.node);  // what other libraries call none of our kinds
  const std::string text = NameOf(call.kind, Printable(call.node));
  if (call.kind == CollectiveKind::kBarrier || call.creates_group() || is_untyped) return text;
  if (call.count == 0 && call.sent + call.received != 0) {  // blocks of any size
    return fmt::format("{} {}[{} in, {} out]", text, Name(static_cast<DataType>(call.dtype)),
                       call.sent, call.received);
  }
  return fmt::format("{} {}[{}]", text, Name(static_cast<DataType>(call.dtype)), call.count);
}

std::string BlameText(const Blame& blame) {
  if (blame.ranks.empty()) return "";
  return fmt::format("{}: {}", RanksText(blame.ranks), PrintableMessage(blame.text));
}

std::string VerdictText(const Joined& joined) {
  if (joined.problems.empty()) return "nothing is wrong\n";
  std::string text;
  if (!joined.blame.ranks.empty()) {
    text = fmt::format("look first at {}\n", BlameText(joined.blame));
  }
  for (const std::string& problem : joined.problems) {
    text += "- " + PrintableMessage(problem) + "\n";
  }
  return text;
}

std::string JoinedText(const std::vector<RankRecord>& records, const Joined& joined) {
  std::string text = Heading(records, joined) + VerdictText(joined);
  for (const JoinedGroup& group : joined.groups) text += GroupText(group);
  return text + ArrivalTable(joined.arrivals);
}

CommandReport RecordReport(const std::vector<RankRecord>& records, const Joined& joined) {
  CommandReport report;
  report.verdict = joined.problems.empty() ? "good" : "wrong";
  for (const std::string& problem : joined.problems) report.Add(Severity::kError, problem);
  const Blame& blame = joined.blame;
  report.details = {{"world_size", records[0].world_size},
                    {"look_first_at",
                     {{"ranks", blame.ranks}, {"cause", Name(blame.cause)}, {"text", blame.text}}},
                    {"ranks", ListOf(records, RankJson)},
                    {"groups", ListOf(joined.groups, GroupJson)},
                    {"notices", json::array()},
                    {"arrivals", joined.arrivals}};
  json& notices = report.details["notices"];
  for (const RankRecord& record : records) {
    for (json& notice : NoticesJson(record)) notices.push_back(std::move(notice));
  }
  return report;
}

}  // namespace npumesh
