#include "launch/record/blame.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <tuple>

namespace npumesh {
namespace {

using flight::Stage;
using flight::State;

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr const char* kCircleText = "they wait for each other in a circle";

Request ToRequest(const RecordedCall& call) {
  Request request;
  request.kind = call.kind;
  request.dtype = call.dtype;
  request.op = call.op;
  request.root = call.root;
  request.count = call.count;
  request.sequence = call.call;
  request.set_node(call.node);
  return request;
}

bool Failed(const RecordedCall& call) {
  return call.done() && call.status != Code::kOk;
}

// Its own fault: not what another rank did, wanted or left undone.
bool FailedByItself(const RecordedCall& call) {
  return Failed(call) && call.status != Code::kMismatch && call.status != Code::kTimeout &&
         call.status != Code::kPeerLost;
}

// True for nearly every call of a record: what the rest of it costs matters little.
bool AllAlike(const CallByRank& call) {
  const RecordedCall& first = *call.begin()->second;
  return std::all_of(call.begin(), call.end(), [&](const auto& entry) {
    const RecordedCall& other = *entry.second;
    return std::tie(first.kind, first.dtype, first.op, first.root, first.count, first.node,
                    first.fingerprint, first.sent, first.received) ==
           std::tie(other.kind, other.dtype, other.op, other.root, other.count, other.node,
                    other.fingerprint, other.sent, other.received);
  });
}

// In which sizes the members of a call differ that must be equal, or must add up.
std::optional<Disagreement> DisputeOfSizes(const JoinedGroup& group, const CallByRank& call) {
  const KindTraits& traits = TraitsOf(call.begin()->second->kind);
  const bool listed = traits.send == Portion::kListed;
  if (!listed && (traits.send == Portion::kNothing || traits.send == Portion::kAllAtRoot ||
                  traits.recv == Portion::kBlockAtRoot)) {
    return std::nullopt;
  }
  uint64_t sent = 0;
  uint64_t received = 0;
  Disagreement sizes{kSizes, {}};
  for (const auto& [rank, recorded] : call) {
    sent += recorded->sent;
    received += recorded->received;
    sizes.values.push_back(fmt::format("{} in, {} out", recorded->sent, recorded->received));
  }
  // Blocks of any size go from one to another: all of them together.
  if (listed && (call.size() != group.members.size() || sent == received)) return std::nullopt;
  const auto differs = [&](const std::string& value) { return value != sizes.values[0]; };
  if (std::none_of(sizes.values.begin(), sizes.values.end(), differs)) return std::nullopt;
  return sizes;
}

// The error with which a rank left its last call; null: it is in a call, or left well.
const RecordedCall* LastError(const RankRecord& record) {
  const RecordedCall* latest = nullptr;
  for (const RecordedCall& call : record.calls) {
    if (!call.done()) return nullptr;
    if (latest == nullptr || call.done_ns >= latest->done_ns) latest = &call;
  }
  return latest != nullptr && Failed(*latest) ? latest : nullptr;
}

// A call that failed was waited in, too: for arrival, or for departure.
Phase PhaseOf(const RecordedCall& call) {
  if (call.done() && call.status == Code::kOk) return Phase::kOutside;
  if (call.done()) return call.arrived_ns == 0 ? Phase::kArriving : Phase::kDeparting;
  switch (call.stage) {
    case Stage::kEntered:
      return Phase::kArriving;
    case Stage::kRunning:
      return Phase::kRunning;
    default:
      return Phase::kDeparting;
  }
}

class BlameFinder {
 public:
  BlameFinder(const std::vector<RankRecord>& records, const std::vector<JoinedGroup>& groups,
              const LaunchNote* note)
      : records_(records), groups_(groups), note_(note), waits_(WaitsOf(records, groups)) {
    const std::vector<int64_t> offsets = ClockOffsets(records);
    for (size_t i = 0; i < records.size(); ++i) offset_[records[i].rank] = offsets[i];
    for (const RankRecord& record : records) {
      const RecordedCall* const error = LastError(record);
      if (error != nullptr && !FailedByItself(*error)) gave_up_.insert(record.rank);
    }
  }

  Blame Run() const {
    using Find = Blame (BlameFinder::*)() const;
    constexpr std::array<Find, 13> kFinders = {
        &BlameFinder::Mismatch,    &BlameFinder::KnownToWaiters, &BlameFinder::Killed,
        &BlameFinder::FoundDead,   &BlameFinder::WithoutRecord,  &BlameFinder::Missing,
        &BlameFinder::CameLate,    &BlameFinder::Circle,         &BlameFinder::StayedLate,
        &BlameFinder::FailedAlone, &BlameFinder::Warned,         &BlameFinder::Late,
        &BlameFinder::Lost};
    for (const Find find : kFinders) {
      Blame blame = (this->*find)();
      if (!blame.ranks.empty()) return blame;
    }
    return {};
  }

 private:
  // The earliest call that its members do not agree on. What comes after a wait has failed may
  // follow from that.
  Blame Mismatch() const {
    Blame blame;
    int64_t earliest = kNever;
    const Told failed = FirstTold([](const RankRecord&, const RecordedNotice& recorded) {
      return recorded.notice.gave_up && recorded.notice.reason != WaitReason::kLate;
    });
    earliest = failed.time;
    for (const JoinedGroup& group : groups_) {
      for (const auto& [number, call] : group.calls) {
        const std::optional<Disagreement> found = DisputeOf(group, call);
        if (!found) continue;
        const int64_t time = FirstEntered(call);
        if (time < earliest) blame = MismatchOf(call, *found);
        earliest = std::min(earliest, time);
        break;
      }
    }
    return blame;
  }

  static Blame MismatchOf(const CallByRank& call, const Disagreement& found) {
    const std::vector<size_t> minority = MinorityOf(found.values);
    std::vector<int> ranks;
    for (const auto& [rank, recorded] : call) ranks.push_back(rank);
    Blame blame{Cause::kMismatch, {}, {}};
    for (const size_t place : minority) blame.ranks.push_back(ranks[place]);
    const bool tied = minority.size() == ranks.size();
    blame.text =
        tied ? fmt::format("they disagree about the {} of a call, without a majority", found.field)
             : fmt::format("the {} of a call differs from that of the other ranks", found.field);
    return blame;
  }

  // A notice, and when it was told by the clock of all; null: no notice.
  struct Told {
    const WaitNotice* notice = nullptr;
    int64_t time = kNever;
    const RecordedNotice* recorded = nullptr;
  };

  // The first of those that `counts`.
  template <typename Counts>
  Told FirstTold(Counts counts) const {
    Told first;
    for (const RankRecord& record : records_) {
      for (const RecordedNotice& recorded : record.notices) {
        const int64_t time = recorded.time_ns + offset_.at(record.rank);
        const WaitNotice& notice = recorded.notice;
        if (notice.ranks.empty() || time >= first.time || !counts(record, recorded)) continue;
        first = {&notice, time, &recorded};
      }
    }
    return first;
  }

  // The wait of a notice has come to a good end.
  bool EndedWell(const RankRecord& record, const WaitNotice& notice) const {
    if (notice.gave_up) return false;
    if (notice.group == 0) return record.state == State::kShutDown;
    return std::any_of(record.calls.begin(), record.calls.end(), [&](const RecordedCall& call) {
      const bool same = call.group == notice.group && call.call == notice.call;
      return same && call.done() && call.status == Code::kOk;
    });
  }

  // What a wait knew for certain that did not end well.
  Blame KnownToWaiters() const {
    return BlameOf(FirstTold([this](const RankRecord& record, const RecordedNotice& recorded) {
      const bool certain = recorded.notice.reason != WaitReason::kLate ||
                           (recorded.cause != Cause::kNone && recorded.cause != Cause::kLate);
      return certain && !EndedWell(record, recorded.notice);
    }));
  }

  static Blame BlameOf(const Told& told) {
    if (told.notice == nullptr) return {};
    const std::vector<int>& ranks = told.notice->ranks;
    const RecordedNotice& recorded = *told.recorded;
    if (recorded.cause != Cause::kNone) return {recorded.cause, ranks, recorded.why};
    return BlameOf(*told.notice, ranks.size() == 1);
  }

  static Blame BlameOf(const WaitNotice& notice, bool one) {
    const std::vector<int>& ranks = notice.ranks;
    switch (notice.reason) {
      case WaitReason::kCircle:
        return {Cause::kCircle, ranks, kCircleText};
      case WaitReason::kStopped:
        return {Cause::kStopped, ranks,
                one ? "its process was stopped while others waited for it"
                    : "their processes were stopped while others waited for them"};
      case WaitReason::kEnded:
        return {Cause::kEnded, ranks,
                one ? "it had ended its work while others waited for it"
                    : "they had ended their work while others waited for them"};
      case WaitReason::kLate:
        break;
    }
    return {Cause::kLate, ranks, WaitedText(one, notice.waited)};
  }

  static std::string WaitedText(bool one, std::chrono::nanoseconds waited) {
    return fmt::format("others waited {:.3g} s for {}",
                       std::chrono::duration<double>(waited).count(), one ? "it" : "them");
  }

  Blame Killed() const {
    if (note_ == nullptr || note_->ended_from_outside()) return {};
    for (const RankDeath& death : note_->deaths) {
      if (death.rank < 0) continue;
      return {Cause::kKilled, {death.rank}, fmt::format("{} ended it", SignalText(death.signal))};
    }
    return {};
  }

  Blame FoundDead() const {
    Blame blame{Cause::kKilled, {}, {}};
    for (const RankRecord& record : records_) {
      if (!record.foreign || record.fate != ProcessFate::kGone) continue;
      blame.ranks.push_back(record.rank);
      blame.text =
          fmt::format("{} found {} dead", record.watcher, blame.ranks.size() == 1 ? "it" : "them");
    }
    return blame;
  }

  // The most certain of the warnings, else the one of the longest wait.
  Blame Warned() const {
    const Told certain = FirstTold([](const RankRecord&, const RecordedNotice& recorded) {
      return recorded.notice.reason != WaitReason::kLate;
    });
    if (certain.notice != nullptr) return BlameOf(certain);
    Told longest;
    for (const RankRecord& record : records_) {
      for (const RecordedNotice& recorded : record.notices) {
        const WaitNotice& notice = recorded.notice;
        const bool longer = longest.notice == nullptr || notice.waited > longest.notice->waited;
        if (!notice.ranks.empty() && longer) longest = {&notice, recorded.time_ns, &recorded};
      }
    }
    return BlameOf(longest);
  }

  Blame Late() const {
    const std::vector<LateCall> late = LateCallsOf(records_, groups_);
    const auto worst = std::max_element(
        late.begin(), late.end(),
        [](const LateCall& a, const LateCall& b) { return a.waited_ns < b.waited_ns; });
    if (worst == late.end()) return {};
    return {
        Cause::kLate, {worst->rank}, WaitedText(true, std::chrono::nanoseconds(worst->waited_ns))};
  }

  // Not when a rank with a record is waited for and is in no call: then that one is certain, and
  // the other records may only not have been collected.
  Blame WithoutRecord() const {
    for (const int root : Roots(waits_)) {
      if (!gave_up_.contains(root) && !IsInCall(root)) return {};
    }
    std::set<int> present;
    for (const RankRecord& record : records_) present.insert(record.rank);
    Blame blame{Cause::kMissing, {}, "no record was left"};
    for (int rank = 0; rank < records_[0].world_size; ++rank) {
      if (!present.contains(rank)) blame.ranks.push_back(rank);
    }
    return blame;
  }

  bool IsInCall(int rank) const {
    const RankRecord& record =
        *std::find_if(records_.begin(), records_.end(),
                      [rank](const RankRecord& other) { return other.rank == rank; });
    return std::any_of(record.calls.begin(), record.calls.end(),
                       [](const RecordedCall& call) { return !call.queued && !call.done(); });
  }

  Blame Missing() const {
    std::vector<int> ranks = Roots(waits_);
    std::erase_if(ranks, [this](int rank) { return gave_up_.contains(rank); });
    const bool one = ranks.size() == 1;
    return {Cause::kMissing, std::move(ranks),
            one ? "others wait for it, and it waits for no rank"
                : "others wait for them, and they wait for no rank"};
  }

  // A call in which a rank gave up waiting, the first of all.
  struct GivenUp {
    const JoinedGroup* group = nullptr;  // null: none
    const CallByRank* call = nullptr;
    int64_t time = kNever;
  };

  GivenUp FirstGivenUp() const {
    GivenUp first;
    for (const JoinedGroup& group : groups_) {
      for (const auto& [number, call] : group.calls) {
        const int64_t time = GivenUpAt(call);
        if (time < first.time) first = {&group, &call, time};
      }
    }
    return first;
  }

  // Who came after that, or never, without waiting elsewhere.
  Blame CameLate() const {
    const GivenUp given_up = FirstGivenUp();
    if (given_up.group == nullptr) return {};
    Blame blame{Cause::kMissing, {}, "it came after another rank had given up waiting"};
    blame.ranks = RanksWhere(*given_up.call, [&](int rank, const RecordedCall& recorded) {
      return recorded.entered_ns + offset_.at(rank) > given_up.time;
    });
    if (!blame.ranks.empty()) return blame;
    for (const int root : Roots(waits_)) {
      const std::vector<int>& members = given_up.group->members;
      const bool member = std::binary_search(members.begin(), members.end(), root);
      if (member && !given_up.call->contains(root)) blame.ranks.push_back(root);
    }
    return blame;
  }

  // Who was still in that call, or left it last.
  Blame StayedLate() const {
    const GivenUp given_up = FirstGivenUp();
    if (given_up.group == nullptr) return {};
    Blame blame{Cause::kMissing, {}, "it was still in a call when another rank gave up waiting"};
    blame.ranks = RanksWhere(*given_up.call,
                             [](int, const RecordedCall& recorded) { return !recorded.done(); });
    if (blame.ranks.empty()) blame.ranks = LastToLeave(*given_up.call, given_up.time);
    return blame;
  }

  // Among those that left after `given_up` and did not give up themselves: who did its part, else
  // who left last.
  std::vector<int> LastToLeave(const CallByRank& call, int64_t given_up) const {
    std::vector<int> last;
    std::pair<bool, int64_t> best;
    for (const auto& [rank, recorded] : call) {
      const int64_t left = recorded->done_ns + offset_.at(rank);
      if (recorded->status == Code::kTimeout || left <= given_up) continue;
      const std::pair<bool, int64_t> mark(recorded->status == Code::kOk, left);
      if (!last.empty() && mark <= best) continue;
      best = mark;
      last.assign(1, rank);
    }
    return last;
  }

  template <typename Holds>
  static std::vector<int> RanksWhere(const CallByRank& call, Holds holds) {
    std::vector<int> ranks;
    for (const auto& [rank, recorded] : call) {
      if (holds(rank, *recorded)) ranks.push_back(rank);
    }
    return ranks;
  }

  int64_t FirstEntered(const CallByRank& call) const {
    int64_t first = kNever;
    for (const auto& [rank, recorded] : call) {
      first = std::min(first, recorded->entered_ns + offset_.at(rank));
    }
    return first;
  }

  int64_t GivenUpAt(const CallByRank& call) const {
    int64_t first = kNever;
    for (const auto& [rank, recorded] : call) {
      if (!recorded->done() || recorded->status != Code::kTimeout) continue;
      first = std::min(first, recorded->done_ns + offset_.at(rank));
    }
    return first;
  }

  Blame Circle() const {
    for (const Wait& wait : waits_) {
      std::vector<int> circle = CircleFrom(wait.rank, waits_);
      if (circle.empty()) continue;
      std::sort(circle.begin(), circle.end());
      return {Cause::kCircle, std::move(circle), kCircleText};
    }
    return {};
  }

  Blame FailedAlone() const {
    Blame blame{Cause::kFailed, {}, "a call failed there by itself"};
    for (const RankRecord& record : records_) {
      if (std::any_of(record.calls.begin(), record.calls.end(), FailedByItself)) {
        blame.ranks.push_back(record.rank);
      }
    }
    return blame;
  }

  Blame Lost() const {
    if (note_ != nullptr && note_->ended_from_outside()) return {};
    if (records_[0].foreign) return {};  // their ends are not known
    std::vector<int> endless;
    for (const RankRecord& record : records_) {
      const bool ends = record.state != State::kRunning || gave_up_.contains(record.rank);
      if (!ends) endless.push_back(record.rank);
    }
    if (!endless.empty() && endless.size() < records_.size()) {
      return {Cause::kLost, std::move(endless), "the record just ends"};
    }
    if (!endless.empty()) return {Cause::kLost, {SilentFirst()}, "its record ends first"};
    return FirstToGiveUp();
  }

  int SilentFirst() const {
    const auto last = [this](const RankRecord& record) {
      return record.last_ns() + offset_.at(record.rank);
    };
    return std::min_element(records_.begin(), records_.end(),
                            [&](const auto& a, const auto& b) { return last(a) < last(b); })
        ->rank;
  }

  Blame FirstToGiveUp() const {
    Blame blame;
    int64_t first = kNever;
    for (const RankRecord& record : records_) {
      for (const RecordedCall& call : record.calls) {
        const int64_t done = call.done_ns + offset_.at(record.rank);
        if (!Failed(call) || done >= first) continue;
        first = done;
        blame = {Cause::kLost, {record.rank}, "it gave up first, and nothing says why"};
      }
    }
    return blame;
  }

  const std::vector<RankRecord>& records_;
  const std::vector<JoinedGroup>& groups_;
  const LaunchNote* const note_;
  const std::vector<Wait> waits_;
  std::map<int, int64_t> offset_;  // of the clock, by rank
  std::set<int> gave_up_;          // left because of another rank
};

}  // namespace

std::string_view Name(Cause cause) {
  constexpr std::array<std::string_view, 10> kNames = {"none",   "mismatch", "missing", "circle",
                                                       "failed", "lost",     "stopped", "ended",
                                                       "killed", "late"};
  return kNames[static_cast<size_t>(cause)];
}

std::vector<int64_t> ClockOffsets(const std::vector<RankRecord>& records) {
  std::vector<int64_t> offsets(records.size(), 0);
  const bool one_boot = std::all_of(records.begin(), records.end(), [&](const RankRecord& record) {
    return !record.boot_id.empty() && record.boot_id == records[0].boot_id;
  });
  for (size_t i = 0; i < records.size() && !one_boot; ++i) {
    offsets[i] = records[i].start_realtime_ns - records[i].start_monotonic_ns;
  }
  return offsets;
}

std::vector<Request> RequestsOf(const CallByRank& call) {
  std::vector<Request> requests;
  for (const auto& [rank, recorded] : call) requests.push_back(ToRequest(*recorded));
  return requests;
}

std::optional<Disagreement> DisputeOf(const JoinedGroup& group, const CallByRank& call) {
  if (AllAlike(call)) return std::nullopt;
  std::optional<Disagreement> found = FindDisagreement(RequestsOf(call));
  if (found) return found;
  found = DisputeOfSizes(group, call);
  if (found) return found;
  // Names that differ in a number at their end may; equal ones may have been cut.
  const std::string& node = call.begin()->second->node;
  Disagreement names{"name", {}};
  for (const auto& [rank, recorded] : call) {
    if (recorded->node != node) return std::nullopt;
    names.values.push_back(fmt::format("{:016x}", recorded->fingerprint));
  }
  if (MinorityOf(names.values).empty()) return std::nullopt;
  return names;
}

bool LeftWithError(const RankRecord& record) {
  return LastError(record) != nullptr;
}

bool IsForgotten(const RankRecord& record, const JoinedGroup& group) {
  const bool created = record.HasGroup(group.id) || !record.has_all_groups;
  return group.last.at(record.rank) == nullptr && record.forgotten != 0 && created;
}

uint64_t PlaceOf(const RecordedCall* last) {
  return last == nullptr ? 0 : last->call + 1;
}

std::vector<Wait> WaitsOf(const std::vector<RankRecord>& records,
                          const std::vector<JoinedGroup>& groups) {
  std::vector<RankStands> ranks;
  for (const RankRecord& record : records) {
    RankStands& stands = ranks.emplace_back();
    stands.rank = record.rank;
    for (const JoinedGroup& group : groups) {
      const auto last = group.last.find(record.rank);
      if (last == group.last.end() || IsForgotten(record, group)) continue;
      const Phase phase = last->second != nullptr ? PhaseOf(*last->second) : Phase::kOutside;
      stands.stands.push_back(Stand{group.id, PlaceOf(last->second), phase});
    }
  }
  return WaitsAmong(ranks);
}

std::vector<LateCall> LateCallsOf(const std::vector<RankRecord>& records,
                                  const std::vector<JoinedGroup>& groups) {
  const int64_t limit = records[0].soft_timeout_ns;
  std::vector<LateCall> late;
  if (limit <= 0) return late;
  std::map<int, int64_t> offset;
  const std::vector<int64_t> offsets = ClockOffsets(records);
  for (size_t i = 0; i < records.size(); ++i) offset[records[i].rank] = offsets[i];
  for (const JoinedGroup& group : groups) {
    for (const auto& [number, call] : group.calls) {
      if (call.size() != group.members.size() || call.begin()->second->creates_group()) continue;
      LateCall one{&group, number, 0, 0};
      int64_t latest = std::numeric_limits<int64_t>::min();
      for (const auto& [rank, recorded] : call) {
        const int64_t entered = recorded->entered_ns + offset.at(rank);
        if (entered > latest) one.rank = rank;
        latest = std::max(latest, entered);
        if (recorded->arrived_ns == 0) continue;
        one.waited_ns = std::max(one.waited_ns, recorded->arrived_ns - recorded->entered_ns);
      }
      if (one.waited_ns > limit) late.push_back(one);
    }
  }
  return late;
}

Blame FindBlame(const std::vector<RankRecord>& records, const std::vector<JoinedGroup>& groups,
                const LaunchNote* note) {
  return BlameFinder(records, groups, note).Run();
}

}  // namespace npumesh
