#include "launch/record/record_join.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "collectives/contract/wait_graph.h"
#include "runtime/base/text/rank_list.h"

namespace npumesh {
namespace {

using flight::Stage;
using flight::State;

// Collects what `Join` returns; short-lived.
class Joiner {
 public:
  Joiner(const std::vector<RankRecord>& records, const LaunchNote* note)
      : records_(records), note_(IsOfThisRun(note, records) ? note : nullptr) {}

  Status CheckOneRun() const {
    for (const RankRecord& record : records_) {
      if (record.world_size == records_[0].world_size) continue;
      return Error(Code::kCorrupt,
                   "{} is of a run of {} ranks, {} of one of {}; empty the folder before a run",
                   records_[0].path, records_[0].world_size, record.path, record.world_size);
    }
    return Status();
  }

  Joined Run() {
    CheckFiles();
    CheckLaunch();
    CollectGroups();
    CheckNotices();
    for (JoinedGroup& group : joined_.groups) {
      FindCommon(group);
      CheckFields(group);
      CheckFailures(group);
      CheckStandings(group);
      CheckOpenCall(group);
    }
    CheckEnds();
    CheckWaits();
    CheckLateCalls();
    if (!joined_.problems.empty()) joined_.blame = FindBlame(records_, joined_.groups, note_);
    MeasureArrivals();
    return std::move(joined_);
  }

 private:
  template <typename... Args>
  void Say(fmt::format_string<Args...> format, Args&&... args) {
    joined_.problems.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  // A note that is older than the records is of an earlier job.
  static bool IsOfThisRun(const LaunchNote* note, const std::vector<RankRecord>& records) {
    return note != nullptr &&
           std::all_of(records.begin(), records.end(), [&](const RankRecord& record) {
             return record.start_realtime_ns <= note->end_realtime_ns;
           });
  }

  // What the command saw that started the ranks.
  void CheckLaunch() {
    if (note_ == nullptr) return;
    if (note_->timeout_s != 0) {
      Say("npumesh launch ended the job after {} s (--timeout)", note_->timeout_s);
    }
    if (note_->signal != 0) {
      Say("{} asked npumesh launch to end the job", SignalText(note_->signal));
    }
    if (note_->ended_from_outside()) return;
    for (const RankDeath& death : note_->deaths) {
      const std::string rank = death.rank < 0 ? "a rank" : fmt::format("rank {}", death.rank);
      Say("{} was ended by {}", rank, SignalText(death.signal));
    }
  }

  // What waits have said, once for each reason: the first to say it, in its words, and who else.
  struct Said {
    int64_t first_ns = std::numeric_limits<int64_t>::max();
    int first = 0;
    std::string watcher;  // that says it in the place of a rank; empty: none
    std::string text;
    std::set<int> who;
    std::chrono::seconds longest{};
  };

  void CheckNotices() {
    const std::vector<int64_t> offsets = ClockOffsets(records_);
    std::map<std::tuple<bool, WaitReason, std::vector<int>>, Said> all;
    for (size_t i = 0; i < records_.size(); ++i) {
      for (const auto& [time_ns, notice, cause, why] : records_[i].notices) {
        Said& said = all[{notice.gave_up, notice.reason, notice.ranks}];
        said.who.insert(records_[i].rank);
        said.longest = std::max(said.longest, notice.waited);
        if (time_ns + offsets[i] >= said.first_ns) continue;
        said.first_ns = time_ns + offsets[i];
        said.first = records_[i].rank;
        said.text = notice.text;
        said.watcher = why.empty() ? "" : records_[i].watcher;
      }
    }
    std::map<int64_t, std::vector<std::string>> texts;  // by time
    for (const auto& [key, said] : all) {
      texts[said.first_ns].push_back(SaidText(std::get<0>(key), said));
    }
    for (const auto& [time, lines] : texts) {
      for (const std::string& line : lines) Say("{}", line);
    }
  }

  static std::string SaidText(bool gave_up, const Said& said) {
    if (!said.watcher.empty()) return fmt::format("{}: {}", said.watcher, said.text);
    std::vector<int> others(said.who.begin(), said.who.end());
    std::erase(others, said.first);
    std::string text = fmt::format("rank {} {}: {}", said.first,
                                   gave_up ? "gave up waiting" : "warned", said.text);
    if (!others.empty()) {
      text += fmt::format("; {} said the like", RanksText(others));
    }
    return gave_up || said.longest.count() == 0
               ? text
               : fmt::format("{}; the longest such wait took {} s or more", text,
                             said.longest.count());
  }

  // Calls to which a rank came so late that a wait has to warn, unless one has.
  void CheckLateCalls() {
    struct Lateness {
      size_t calls = 0;
      LateCall worst;
    };
    std::map<int, Lateness> ranks;
    for (const LateCall& late : LateCallsOf(records_, joined_.groups)) {
      if (HasNotice(late)) continue;
      Lateness& lateness = ranks[late.rank];
      ++lateness.calls;
      if (late.waited_ns > lateness.worst.waited_ns) lateness.worst = late;
    }
    for (const auto& [rank, lateness] : ranks) {
      const LateCall& worst = lateness.worst;
      Say("rank {} came {:.3g} s after others to {} (group {}, call {}){}; a wait warns after "
          "{:.3g} s (NPUMESH_SOFT_TIMEOUT)",
          rank, static_cast<double>(worst.waited_ns) / 1e9,
          CallText(*worst.group->calls.at(worst.call).at(rank)), worst.group->name, worst.call,
          lateness.calls == 1 ? "" : fmt::format(", and late to {} more", lateness.calls - 1),
          static_cast<double>(records_[0].soft_timeout_ns) / 1e9);
    }
  }

  bool HasNotice(const LateCall& late) const {
    return std::any_of(records_.begin(), records_.end(), [&](const RankRecord& record) {
      return std::any_of(record.notices.begin(), record.notices.end(), [&](const auto& recorded) {
        return recorded.notice.group == late.group->id && recorded.notice.call == late.call;
      });
    });
  }

  // Files that lack, are damaged or are left over.
  void CheckFiles() {
    std::set<int> present;
    for (const RankRecord& record : records_) present.insert(record.rank);
    std::vector<int> missing;
    for (int rank = 0; rank < records_[0].world_size; ++rank) {
      if (!present.contains(rank)) missing.push_back(rank);
    }
    if (!missing.empty()) {
      Say("{} of {} left no record: {}, or the file is on another host", RanksText(missing),
          records_[0].world_size,
          records_[0].foreign ? "the process died before it wrote one"
                              : "no group was created there");
    }
    int64_t youngest = 0;
    for (const RankRecord& record : records_) {
      youngest = std::max(youngest, record.start_realtime_ns);
    }
    for (const RankRecord& record : records_) {
      if (record.damaged != 0) {
        Say("{}: {} damaged entries are left out", record.path, record.damaged);
      }
      const int64_t last = record.last_ns() - record.start_monotonic_ns + record.start_realtime_ns;
      if (last < youngest && !record.foreign) {
        Say("{} ends {:.1f} s before another record begins: it is of an earlier run, or its rank "
            "ended before the others began",
            record.path, static_cast<double>(youngest - last) / 1e9);
      }
    }
  }

  void CollectGroups() {
    std::map<uint64_t, JoinedGroup> groups;
    const auto join = [&groups](uint64_t id, int rank) -> JoinedGroup& {
      JoinedGroup& group = groups[id];
      group.id = id;
      group.last.try_emplace(rank, nullptr);
      return group;
    };
    for (const RankRecord& record : records_) {
      for (const RecordedGroup& row : record.groups) join(row.id, record.rank).name = row.name;
      for (const RecordedCall& call : record.calls) {
        JoinedGroup& group = join(call.group, record.rank);
        group.calls[call.call][record.rank] = &call;
        if (call.queued) continue;
        const RecordedCall*& last = group.last[record.rank];
        if (last == nullptr || last->call < call.call) last = &call;
      }
    }
    JoinSilentMembers(groups);
    for (auto& [id, group] : groups) {
      if (group.name.empty()) group.name = fmt::format("number {:016x}", id);
      for (const auto& [rank, last] : group.last) group.members.push_back(rank);
      joined_.groups.push_back(std::move(group));
    }
    std::sort(joined_.groups.begin(), joined_.groups.end(),
              [](const JoinedGroup& a, const JoinedGroup& b) {
                return std::tie(a.name, a.members, a.id) < std::tie(b.name, b.members, b.id);
              });
  }

  // Members of which others wait that have not recorded the group: those of a group that is being
  // created, and the other end of messages. Messages from one rank to another are calls of a group
  // of these two, which each of them records with its first message.
  void JoinSilentMembers(std::map<uint64_t, JoinedGroup>& groups) const {
    for (const RankRecord& record : records_) {
      for (const RecordedGroup& row : record.groups) {
        JoinedGroup& group = groups[row.id];
        if (!HoldsMessages(group) && !IsBeingCreated(group) && !record.foreign) continue;
        for (const RankRecord& other : records_) {
          if (row.HasMember(other.rank)) group.last.try_emplace(other.rank, nullptr);
        }
      }
    }
  }

  static bool HoldsMessages(const JoinedGroup& group) {
    return std::any_of(group.last.begin(), group.last.end(), [](const auto& entry) {
      return entry.second != nullptr && entry.second->kind == CollectiveKind::kSendRecv;
    });
  }

  static bool IsBeingCreated(const JoinedGroup& group) {
    return std::any_of(group.last.begin(), group.last.end(), [](const auto& entry) {
      const RecordedCall* const last = entry.second;
      const bool met = last != nullptr && last->done() && last->status == Code::kOk;
      return last != nullptr && last->creates_group() && !met;
    });
  }

  bool Unknown(const JoinedGroup& group, int rank) const {
    return IsForgotten(RecordOf(rank), group);
  }

  const RankRecord& RecordOf(int rank) const {
    return *std::find_if(records_.begin(), records_.end(),
                         [&](const RankRecord& record) { return record.rank == rank; });
  }

  void FindCommon(JoinedGroup& group) const {
    bool first = true;
    for (const auto& [rank, last] : group.last) {
      if (Unknown(group, rank)) continue;
      uint64_t done = 0;
      if (last != nullptr) {
        const bool well = last->done() && last->status == Code::kOk;
        done = well || last->call == 0 ? last->call : last->call - 1;
      }
      group.common = first ? done : std::min(group.common, done);
      first = false;
    }
  }

  // The first call that the members do not agree on.
  void CheckFields(const JoinedGroup& group) {
    for (const auto& [number, by_rank] : group.calls) {
      const std::optional<Disagreement> found = DisputeOf(group, by_rank);
      if (!found) continue;
      Say("{}{}", DisputeText(group, number, by_rank, *found), PlacesText(by_rank));
      return;
    }
  }

  static std::string DisputeText(const JoinedGroup& group, uint64_t number,
                                 const CallByRank& by_rank, const Disagreement& found) {
    std::vector<int> ranks;
    for (const auto& [rank, call] : by_rank) ranks.push_back(rank);
    const Status verdict = Compare(RequestsOf(by_rank), ranks, group.name);
    if (!verdict.ok()) return std::string(verdict.message());
    const std::string call = fmt::format("{} (group {}, call {})",
                                         CallText(*by_rank.begin()->second), group.name, number);
    if (found.field == kSizes) {
      std::map<std::string, std::vector<int>> by_value;
      for (size_t i = 0; i < ranks.size(); ++i) by_value[found.values[i]].push_back(ranks[i]);
      std::string text;
      for (const auto& [value, who] : by_value) {
        text += fmt::format("{}{} {}", text.empty() ? "" : "; ", RanksText(who), value);
      }
      return fmt::format("{}: the {} does not fit: {}", call, kSizes, text);
    }
    return call + ": the operators' names differ behind what fits into a record";
  }

  // "; called at <file>:42 (step) on ranks 0-2, at ..." where records tell.
  static std::string PlacesText(const CallByRank& by_rank) {
    std::map<std::string, std::vector<int>> by_place;
    for (const auto& [rank, call] : by_rank) {
      if (!call->place.empty()) by_place[call->place].push_back(rank);
    }
    std::string text;
    for (const auto& [place, ranks] : by_place) {
      text +=
          fmt::format("{} at {} on {}", text.empty() ? "; called" : ",", place, RanksText(ranks));
    }
    return text;
  }

  static std::string PlaceText(const RecordedCall& call, const std::string& group) {
    if (call.creates_group()) return fmt::format("the creation of group {}", group);
    return fmt::format("{} (group {}, call {})", CallText(call), group, call.call);
  }

  void CheckFailures(const JoinedGroup& group) {
    for (const auto& [number, by_rank] : group.calls) {
      std::map<Code, std::vector<int>> failed;
      for (const auto& [rank, call] : by_rank) {
        if (call->done() && call->status != Code::kOk) failed[call->status].push_back(rank);
      }
      for (const auto& [code, ranks] : failed) {
        Say("{} failed on {} with {}; see what they wrote",
            PlaceText(*by_rank.at(ranks[0]), group.name), RanksText(ranks), CodeName(code));
      }
    }
  }

  // Members that are not at the same call.
  void CheckStandings(const JoinedGroup& group) {
    std::map<uint64_t, std::vector<int>> by_place;
    for (const auto& [rank, last] : group.last) {
      if (!Unknown(group, rank)) by_place[PlaceOf(last)].push_back(rank);
    }
    if (by_place.size() < 2) return;
    const auto& [furthest, leaders] = *by_place.rbegin();
    const RecordedCall& ahead = *group.last.at(leaders[0]);
    // A record that was written a moment earlier knows less; no rank waits.
    if (ahead.done() && RecordOf(leaders[0]).foreign) return;
    for (const auto& [place, ranks] : by_place) {
      if (place == furthest) continue;
      if (ahead.creates_group()) {
        Say("group {}: its creation waits for {}, which {} not begun it; {} entered it", group.name,
            RanksText(ranks), ranks.size() == 1 ? "has" : "have", RanksText(leaders));
        continue;
      }
      const uint64_t number = place == 0 ? 0 : place - 1;
      Say("group {}: {} {}, {} behind {}, which entered call {}: {}{}{}", group.name,
          RanksText(ranks), StandText(number, ranks.size() == 1), ahead.call - number,
          RanksText(leaders), ahead.call, CallText(ahead), PlacesText(group.calls.at(ahead.call)),
          QueuedText(group, number + 1, ranks));
    }
  }

  // Of ranks whose programs have called what they have not come to.
  static std::string QueuedText(const JoinedGroup& group, uint64_t number,
                                const std::vector<int>& ranks) {
    const auto call = group.calls.find(number);
    if (call == group.calls.end()) return "";
    std::vector<int> queued;
    for (const int rank : ranks) {
      const auto recorded = call->second.find(rank);
      if (recorded != call->second.end() && recorded->second->queued) queued.push_back(rank);
    }
    if (queued.empty()) return "";
    return fmt::format("; the program of {} has called call {}, but its device has not begun it",
                       RanksText(queued), number);
  }

  // A call of a foreign record in which all members are, or that some have left: no rank is
  // missing.
  void CheckOpenCall(const JoinedGroup& group) {
    if (!records_[0].foreign) return;
    const RecordedCall* open = nullptr;
    for (const auto& [rank, last] : group.last) {
      if (last != nullptr && !last->done() && (open == nullptr || last->call < open->call)) {
        open = last;
      }
    }
    if (open == nullptr) return;
    std::vector<int> inside;
    std::vector<int> left;
    for (const auto& [rank, last] : group.last) {
      if (Unknown(group, rank)) return;
      if (last == nullptr || last->call < open->call) return;  // CheckStandings says so
      (last->call == open->call && !last->done() ? inside : left).push_back(rank);
    }
    const std::string places = PlacesText(group.calls.at(open->call));
    if (left.empty()) {
      Say("group {}: all members are in call {} and none has left it: {}{}; no rank is missing: "
          "look at the network and the devices",
          group.name, open->call, CallText(*open), places);
    } else {
      Say("group {}: {} {} in call {}, which {} left: {}{}", group.name, RanksText(inside),
          inside.size() == 1 ? "is still" : "are still", open->call,
          RanksText(left) + (left.size() == 1 ? " has" : " have"), CallText(*open), places);
    }
  }

  // "is at call 3", of one rank or of several; call 0: none after the creation of the group.
  static std::string StandText(uint64_t call, bool one) {
    if (call == 0) return one ? "has made no call" : "have made no call";
    return fmt::format("{} at call {}", one ? "is" : "are", call);
  }

  // Records without an end, except of ranks that returned an error: what failed there was said.
  void CheckEnds() {
    for (const RankRecord& record : records_) {
      if (record.state != State::kRunning || LeftWithError(record)) continue;
      if (record.foreign && record.fate != ProcessFate::kGone) continue;
      Say("rank {} (process {} on {}) {}: its record ends {}", record.rank, record.process,
          record.host, FateText(record), WhereItEnds(record));
    }
  }

  std::string FateText(const RankRecord& record) const {
    if (record.foreign) return fmt::format("is dead, says {}", record.watcher);
    const bool runs = record.fate == ProcessFate::kRunning || record.fate == ProcessFate::kStopped;
    if (!runs && note_ != nullptr && note_->ended_from_outside()) return "was ended with the job";
    switch (record.fate) {
      case ProcessFate::kRunning:
        return "still runs";
      case ProcessFate::kStopped:
        return "is stopped (SIGSTOP)";
      case ProcessFate::kGone:
        return "was killed or crashed";
      case ProcessFate::kUnknown:
        break;
    }
    return "was killed, crashed or still runs";
  }

  std::string WhereItEnds(const RankRecord& record) const {
    const RecordedCall* latest = nullptr;
    const RecordedCall* open = nullptr;
    for (const RecordedCall& call : record.calls) {
      latest = &call;
      if (!call.done()) open = &call;
    }
    if (latest == nullptr) return "before its first call";
    const RecordedCall& call = open ? *open : *latest;
    const std::string text =
        call.creates_group()
            ? fmt::format("the creation of group {}", NameOf(call.group))
            : fmt::format("call {} of group {}, {}", call.call, NameOf(call.group), CallText(call));
    if (open == nullptr) return "after " + text;
    return fmt::format("in the middle of {} ({})", text, StageText(call.stage));
  }

  static std::string_view StageText(Stage stage) {
    switch (stage) {
      case Stage::kEntered:
        return "it waited for the others to arrive";
      case Stage::kRunning:
        return "all had arrived, it was running";
      case Stage::kDeparting:
        return "it had done its part and waited for the others";
      case Stage::kDone:
        break;
    }
    return "done";
  }

  const std::string& NameOf(uint64_t id) const {
    return std::find_if(joined_.groups.begin(), joined_.groups.end(),
                        [&](const JoinedGroup& group) { return group.id == id; })
        ->name;
  }

  void CheckWaits() {
    const std::vector<Wait> waits = WaitsOf(records_, joined_.groups);
    std::set<int> waiting;
    for (const Wait& wait : waits) waiting.insert(wait.rank);
    for (int rank : waiting) {
      const std::vector<int> circle = CircleFrom(rank, waits);
      if (circle.empty()) continue;
      std::string text;
      for (int step : circle) text += fmt::format("{} -> ", step);
      Say("the ranks wait for each other in a circle ({}{})", text, circle.front());
      break;
    }
    std::map<int, std::set<int>> waiters;
    for (const Wait& wait : waits) waiters[wait.for_rank].insert(wait.rank);
    const std::vector<int> roots = Roots(waits);
    for (int root : roots) {
      const std::vector<int> ranks(waiters[root].begin(), waiters[root].end());
      Say("{} {} for rank {}, which waits for no rank{}", RanksText(ranks),
          ranks.size() == 1 ? "waits" : "wait", root, EndText(RecordOf(root)));
    }
  }

  static std::string EndText(const RankRecord& record) {
    if (record.state == State::kShutDown) return " and has ended orderly";
    return record.state == State::kAbandoned ? " and has ended by itself" : "";
  }

  void MeasureArrivals() {
    std::map<int, int64_t> offset;
    const std::vector<int64_t> offsets = ClockOffsets(records_);
    for (size_t i = 0; i < records_.size(); ++i) offset[records_[i].rank] = offsets[i];
    std::map<int, LateRank> arrivals;
    for (const JoinedGroup& group : joined_.groups) {
      for (const auto& [number, by_rank] : group.calls) {
        if (by_rank.size() < 2 || by_rank.size() != group.members.size()) continue;
        if (by_rank.begin()->second->creates_group()) continue;  // ranks start when they can
        if (by_rank.begin()->second->entered_ns <= 0) continue;  // not known
        MeasureCall(by_rank, offset, arrivals);
      }
    }
    for (const auto& [rank, arrival] : arrivals) joined_.arrivals.push_back(arrival);
    std::stable_sort(joined_.arrivals.begin(), joined_.arrivals.end(),
                     [](const LateRank& a, const LateRank& b) { return a.late_ms > b.late_ms; });
  }

  static void MeasureCall(const std::map<int, const RecordedCall*>& by_rank,
                          const std::map<int, int64_t>& offset, std::map<int, LateRank>& arrivals) {
    std::map<int, int64_t> entered;
    for (const auto& [rank, call] : by_rank) entered[rank] = call->entered_ns + offset.at(rank);
    const auto by_time = [](const auto& a, const auto& b) { return a.second < b.second; };
    const int64_t first = std::min_element(entered.begin(), entered.end(), by_time)->second;
    const auto last = std::max_element(entered.begin(), entered.end(), by_time);
    for (const auto& [rank, time] : entered) {
      LateRank& arrival = arrivals[rank];
      const double late = static_cast<double>(time - first) / 1e6;
      arrival.rank = rank;
      arrival.calls += 1;
      arrival.came_last += rank == last->first ? 1 : 0;
      arrival.late_ms += late;
      arrival.most_late_ms = std::max(arrival.most_late_ms, late);
      arrival.waited_ms += static_cast<double>(last->second - time) / 1e6;
    }
  }

  const std::vector<RankRecord>& records_;
  const LaunchNote* const note_;  // may be null
  Joined joined_;
};

}  // namespace

Result<Joined> Join(const std::vector<RankRecord>& records, const std::optional<LaunchNote>& note) {
  Joiner joiner(records, note ? &*note : nullptr);
  NPUMESH_RETURN_IF_ERROR(joiner.CheckOneRun());
  return joiner.Run();
}

}  // namespace npumesh
