#include "launch/record/joined_json.h"

namespace npumesh {
namespace {

using nlohmann::json;

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

json NoticesJson(const std::vector<RankRecord>& records) {
  json list = json::array();
  for (const RankRecord& record : records) {
    for (const auto& [time_ns, notice] : record.notices) {
      list.push_back({{"rank", record.rank},
                      {"gave_up", notice.gave_up},
                      {"reason", Name(notice.reason)},
                      {"ranks", notice.ranks},
                      {"waited_s", notice.waited.count()},
                      {"text", notice.text}});
    }
  }
  return list;
}

json GroupJson(const JoinedGroup& group) {
  return {{"name", group.name}, {"ranks", group.members}, {"all_have_done_call", group.common}};
}

json ArrivalJson(const LateRank& arrival) {
  return {{"rank", arrival.rank},
          {"calls", arrival.calls},
          {"came_last", arrival.came_last},
          {"late_ms", arrival.late_ms},
          {"most_late_ms", arrival.most_late_ms},
          {"waited_ms", arrival.waited_ms}};
}

template <typename T, typename ToJson>
json ListOf(const std::vector<T>& all, ToJson to_json) {
  json list = json::array();
  for (const T& each : all) list.push_back(to_json(each));
  return list;
}

}  // namespace

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
                    {"notices", NoticesJson(records)},
                    {"arrivals", ListOf(joined.arrivals, ArrivalJson)}};
  return report;
}

}  // namespace npumesh
