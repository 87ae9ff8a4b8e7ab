#include <time.h>

#include <array>
#include <set>

#include "launch/record/record_join.h"
#include "runtime/base/printable.h"
#include "runtime/base/rank_list.h"

namespace npumesh {
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
    hosts.insert(record.host);
    calls += record.calls.size();
    forgotten += record.forgotten;
  }
  std::string text = fmt::format(
      "{} of {} ranks on {} host{}, {} group{}, {} calls; begun {}\n", records.size(),
      records[0].world_size, hosts.size(), hosts.size() == 1 ? "" : "s", joined.groups.size(),
      joined.groups.size() == 1 ? "" : "s", calls, TimeText(records[0].start_realtime_ns));
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
  std::string text = "arrival at the calls that all members recorded, the latest ranks first:\n";
  text += fmt::format("{:>6} {:>9} {:>10} {:>13} {:>12} {:>15}\n", "rank", "calls", "came last",
                      "mean late ms", "most late ms", "waited in all ms");
  for (const LateRank& a : arrivals) {
    text += fmt::format("{:>6} {:>9} {:>10} {:>13.3f} {:>12.3f} {:>16.3f}\n", a.rank, a.calls,
                        a.came_last, a.late_ms / static_cast<double>(a.calls), a.most_late_ms,
                        a.waited_ms);
  }
  return text;
}

}  // namespace

std::string CallText(const RecordedCall& call) {
  const std::string text = NameOf(call.kind, Printable(call.node));
  if (call.kind == CollectiveKind::kBarrier || call.creates_group()) return text;
  return fmt::format("{} {}[{}]", text, Name(static_cast<DataType>(call.dtype)), call.count);
}

std::string BlameText(const Blame& blame) {
  if (blame.ranks.empty()) return "";
  return fmt::format("{}: {}", RanksText(blame.ranks), PrintableMessage(blame.text));
}

std::string JoinedText(const std::vector<RankRecord>& records, const Joined& joined) {
  std::string text = Heading(records, joined);
  if (joined.problems.empty()) {
    text += "nothing is wrong\n";
  } else {
    if (!joined.blame.ranks.empty()) {
      text += fmt::format("look first at {}\n", BlameText(joined.blame));
    }
    for (const std::string& problem : joined.problems) {
      text += "- " + PrintableMessage(problem) + "\n";
    }
  }
  for (const JoinedGroup& group : joined.groups) text += GroupText(group);
  return text + ArrivalTable(joined.arrivals);
}

}  // namespace npumesh
