#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "launch/record/foreign/foreign_call.h"
#include "launch/record/foreign/lines.h"
#include "launch/record/foreign/plog.h"
#include "runtime/base/text/rank_list.h"

namespace npumesh {
namespace {

using flight::Stage;

constexpr std::string_view kHeartbeat = "the heartbeat of HCCL";
constexpr std::string_view kOperators = "operators of HCCL";

struct ReductionName {
  std::string_view name;
  ReduceOp op;
};
constexpr std::array<ReductionName, 4> kReductions = {{
    {"sum", ReduceOp::kSum},
    {"prod", ReduceOp::kProd},
    {"max", ReduceOp::kMax},
    {"min", ReduceOp::kMin},
}};

RecordedCall CallOf(const PlogCall& facts) {
  RecordedCall call = UntypedCall();
  call.kind = KindNamed(facts.operation);
  if (call.kind == CollectiveKind::kNone) {
    call.kind = CollectiveKind::kBarrier;
    call.node = facts.operation.empty() ? "an operator" : facts.operation;
  }
  const std::optional<DataType> dtype = DataTypeFromName(facts.dtype);
  call.dtype = static_cast<int32_t>(dtype.value_or(DataType::kUndefined));
  call.count = dtype ? facts.count : 0;
  for (const ReductionName& known : kReductions) {
    if (known.name == facts.reduction) call.op = static_cast<uint32_t>(known.op);
  }
  return call;
}

// Makes records of what the lines said; short-lived.
class PlogBuilder {
 public:
  PlogBuilder(const PlogFacts& facts, const std::string& folder)
      : events_(facts.events), folder_(folder) {
    for (const auto& [key, process] : facts.processes) {
      const bool says = !process.groups.empty() || !process.place.empty() ||
                        !process.failures.empty() || process.no_socket_ns >= 0 ||
                        process.disagrees_ns >= 0;
      if (says) processes_.push_back(&process);
    }
  }

  std::vector<RankRecord> Run() {
    NumberProcesses();
    for (const PlogProcess* process : processes_) MakeRecord(*process);
    for (const auto& [group, members] : MembersOfGroups()) AddGroup(group, members);
    AddOperators();
    AddSockets();
    for (const PlogProcess* process : processes_) AddWaits(*process);
    AddEvents();
    std::vector<RankRecord> all;
    for (auto& [rank, record] : records_) {
      record.world_size = world_size_;
      Finish(record);
      all.push_back(std::move(record));
    }
    return all;
  }

 private:
  using Members = std::map<uint64_t, const PlogProcess*>;  // by rank in the group

  std::map<std::string, Members> MembersOfGroups() const {
    std::map<std::string, Members> groups;
    for (const PlogProcess* process : processes_) {
      for (const auto& [group, membership] : process->groups) {
        groups[group].try_emplace(membership.rank, process);
      }
      // Calls and failures of groups whose creation no line tells.
      for (const auto& [group, calls] : process->calls) groups.try_emplace(group);
      for (const auto& [group, call] : process->failures) groups.try_emplace(group);
    }
    return groups;
  }

  void NumberProcesses() {
    std::map<std::string, std::pair<uint64_t, size_t>> sizes;  // members, and how many are known
    for (const PlogProcess* process : processes_) {
      for (const auto& [group, membership] : process->groups) {
        sizes[group].first = std::max(sizes[group].first, membership.size);
        ++sizes[group].second;
      }
    }
    std::string world;
    for (const auto& [group, size] : sizes) {
      if (world.empty() || size > sizes[world]) world = group;
    }
    std::set<int> taken;
    const auto take = [&](const PlogProcess* process, int rank) {
      if (rank >= 0 && !ranks_.contains(process) && taken.insert(rank).second)
        ranks_[process] = rank;
    };
    world_size_ = world.empty() ? 1 : static_cast<int>(sizes[world].first);
    for (const PlogProcess* process : processes_) {
      const auto membership = process->groups.find(world);
      if (membership != process->groups.end())
        take(process, static_cast<int>(membership->second.rank));
    }
    for (const PlogProcess* process : processes_) take(process, process->torch_rank);
    std::vector<const PlogProcess*> rest = processes_;
    std::sort(rest.begin(), rest.end(), [](const PlogProcess* a, const PlogProcess* b) {
      return std::make_tuple(PlaceKey(a->place), a->folder, a->number) <
             std::make_tuple(PlaceKey(b->place), b->folder, b->number);
    });
    int next = 0;
    for (const PlogProcess* process : rest) {
      if (ranks_.contains(process)) continue;
      while (taken.contains(next)) ++next;
      take(process, next);
    }
    for (const auto& [process, rank] : ranks_) {
      world_size_ = std::max(world_size_, rank + 1);
      if (!process->place.empty()) rank_at_[process->place] = rank;
    }
  }

  // "10.0.0.2/11" in the order of numbers.
  static std::tuple<std::string, uint64_t> PlaceKey(const std::string& place) {
    const size_t slash = place.rfind('/');
    if (slash == place.npos) return {place, 0};
    return {place.substr(0, slash),
            NumberIn(std::string_view(place).substr(slash + 1)).value_or(0)};
  }

  RankRecord& NewRecord(int rank) {
    RankRecord& record = records_[rank];
    record.path = folder_;
    record.rank = rank;
    record.foreign = true;
    return record;
  }

  void MakeRecord(const PlogProcess& process) {
    RankRecord& record = NewRecord(ranks_.at(&process));
    record.process = static_cast<int>(process.number);
    record.host = process.place;
  }

  // A rank at a place whose log is not there: the only one that is missing, or the one that the
  // other ranks of its host tell.
  int RankAt(const std::string& place) {
    const auto known = rank_at_.find(place);
    if (known != rank_at_.end()) return known->second;
    std::vector<int> missing;
    for (int rank = 0; rank < world_size_ && missing.size() < 2; ++rank) {
      if (!records_.contains(rank)) missing.push_back(rank);
    }
    const auto [host, device] = PlaceKey(place);
    int rank = missing.size() == 1 ? missing[0] : -1;
    for (const auto& [other, other_rank] : rank_at_) {
      const auto [other_host, other_device] = PlaceKey(other);
      const int64_t told =
          other_rank + static_cast<int64_t>(device) - static_cast<int64_t>(other_device);
      const bool fits = other_host == host && told >= 0 && told < world_size_ &&
                        !records_.contains(static_cast<int>(told));
      if (rank < 0 && fits) rank = static_cast<int>(told);
    }
    if (rank < 0) rank = world_size_++;
    rank_at_[place] = rank;
    return rank;
  }

  // The rows and calls of a group.
  void AddGroup(const std::string& name, const Members& members) {
    const uint64_t id = IdOfName(name);
    uint64_t size = members.size();
    std::vector<int> world;
    for (const auto& [rank, process] : members) {
      world.push_back(ranks_.at(process));
      size = std::max(size, process->groups.at(name).size);
    }
    std::sort(world.begin(), world.end());
    const bool whole = size == static_cast<uint64_t>(world_size_);
    const std::string ranks = whole ? RangeText(AllRanks(world_size_)) : RangeText(world);
    uint64_t least = ~uint64_t{0};  // calls that all known members have made
    uint64_t index = 0;             // of failures that do not tell theirs
    for (const PlogProcess* process : processes_) {
      const auto calls = process->calls.find(name);
      if (process->groups.contains(name) || calls != process->calls.end()) {
        least = std::min<uint64_t>(least, calls == process->calls.end() ? 0 : calls->second.size());
      }
      const auto failure = process->failures.find(name);
      if (failure != process->failures.end() && failure->second.index)
        index = *failure->second.index;
    }
    for (const PlogProcess* process : processes_) {
      const bool member = process->groups.contains(name) || process->calls.contains(name) ||
                          process->failures.contains(name);
      if (!member) continue;
      RankRecord& record = records_.at(ranks_.at(process));
      const auto membership = process->groups.find(name);
      record.groups.push_back(
          {id, static_cast<uint32_t>(size),
           membership == process->groups.end() ? 0 : static_cast<int>(membership->second.rank),
           name, ranks});
      AddCalls(*process, name, least, index, record);
    }
  }

  void AddCalls(const PlogProcess& process, const std::string& group, uint64_t least,
                uint64_t index, RankRecord& record) const {
    const uint64_t id = IdOfName(group);
    const auto failure = process.failures.find(group);
    const bool failed = failure != process.failures.end();
    const uint64_t failed_at = failed ? failure->second.index.value_or(index) + 1 : 0;
    const auto calls = process.calls.find(group);
    if (calls != process.calls.end()) {
      uint64_t number = 0;
      for (const PlogCall& facts : calls->second) {
        if (++number == failed_at) continue;
        RecordedCall call = CallOf(facts);
        const bool done = failed ? number < failed_at : number <= least;
        call.queued = !done && (failed || number > least + 1);
        Add(std::move(call), id, number, facts.time_ns, done, record);
      }
    }
    if (!failed) return;
    RecordedCall call = CallOf(failure->second);
    call.status = Code::kTimeout;
    Add(std::move(call), id, failed_at, failure->second.time_ns, true, record);
    GiveUp(process, record.calls.back());
  }

  static void Add(RecordedCall call, uint64_t group, uint64_t number, int64_t time_ns, bool done,
                  RankRecord& record) {
    call.sequence = record.calls.size() + 1;
    call.group = group;
    call.call = number;
    call.entered_ns = time_ns;
    call.stage = done ? Stage::kDone : Stage::kEntered;
    if (done) call.arrived_ns = call.done_ns = time_ns;
    record.calls.push_back(std::move(call));
  }

  // The others did not come. When the rank began to wait follows from the limit, where a line tells
  // it; else it is taken as early enough.
  static void GiveUp(const PlogProcess& process, RecordedCall& call) {
    call.arrived_ns = 0;
    call.entered_ns = process.timeout_s == 0
                          ? 1
                          : std::max<int64_t>(1, call.done_ns - process.timeout_s * 1'000'000'000);
  }

  // Ranks that stand still, by how many operators they have run: those with fewer are behind.
  void AddOperators() {
    std::vector<const PlogProcess*> counted;
    std::set<std::set<std::string>> groups;
    bool fails = false;
    for (const PlogProcess* process : processes_) {
      fails = fails || !process->failures.empty();
      if (!process->operators) continue;
      counted.push_back(process);
      std::set<std::string> names;
      for (const auto& [group, membership] : process->groups) names.insert(group);
      groups.insert(names);
    }
    // Ranks in different groups run different numbers of operators.
    if (counted.size() < 2 || groups.size() != 1 || fails) return;
    uint64_t least = ~uint64_t{0};
    uint64_t most = 0;
    std::vector<int> ranks;
    for (const PlogProcess* process : counted) {
      least = std::min(least, *process->operators);
      most = std::max(most, *process->operators);
      ranks.push_back(ranks_.at(process));
    }
    std::sort(ranks.begin(), ranks.end());
    const uint64_t id = IdOfName(kOperators);
    for (const PlogProcess* process : counted) {
      RankRecord& record = records_.at(ranks_.at(process));
      record.groups.push_back(
          {id, static_cast<uint32_t>(ranks.size()), 0, std::string(kOperators), RangeText(ranks)});
      PlogCall facts;
      facts.operation = "earlier operators";
      if (least > 0) Add(CallOf(facts), id, least, 0, true, record);
      facts.operation =
          fmt::format("an operator behind the {} that it has run", *process->operators);
      if (*process->operators == least && least != most) continue;  // behind
      facts.operation = "an operator";
      Add(CallOf(facts), id, least + 1, 0, false, record);
    }
  }

  // Ranks whose sockets timed out wait for those whose did not.
  void AddSockets() {
    bool any = false;
    for (const PlogProcess* process : processes_)
      any = any || (process->no_socket_ns >= 0 && process->failures.empty());
    if (!any) return;
    const std::string name = "sockets of HCCL";
    for (const PlogProcess* process : processes_) {
      RankRecord& record = records_.at(ranks_.at(process));
      record.groups.push_back({IdOfName(name), static_cast<uint32_t>(world_size_), record.rank,
                               name, RangeText(AllRanks(world_size_))});
      if (process->no_socket_ns < 0) continue;
      PlogCall facts;
      facts.operation = "a connection";
      RecordedCall call = CallOf(facts);
      call.status = Code::kTimeout;
      Add(std::move(call), IdOfName(name), 1, process->no_socket_ns, true, record);
      GiveUp(*process, record.calls.back());
    }
  }

  // Whom a call that timed out waited for, when that rank does not say the same of others.
  void AddWaits(const PlogProcess& process) {
    RankRecord& record = records_.at(ranks_.at(&process));
    if (process.disagrees_ns >= 0) {
      Tell(record, process.disagrees_ns, {record.rank}, Cause::kMismatch,
           "HCCL says that its arguments differ from those of another rank (EI0005)", false);
    }
    const auto groups = MembersOfGroups();
    for (const auto& [group, failure] : process.failures) {
      const auto own = process.groups.find(group);
      if (!failure.remote || own == process.groups.end() || *failure.remote >= own->second.size ||
          *failure.remote == own->second.rank) {
        continue;
      }
      const Members& members = groups.at(group);
      const auto remote = members.find(*failure.remote);
      if (remote != members.end() && remote->second->failures.contains(group)) continue;
      const bool whole = own->second.size == static_cast<uint64_t>(world_size_);
      if (remote == members.end() && !whole) continue;
      const int rank =
          remote != members.end() ? ranks_.at(remote->second) : static_cast<int>(*failure.remote);
      Tell(record, failure.time_ns, {rank}, Cause::kMissing,
           "others gave up waiting for it, and it gave up nothing", true);
      record.notices.back().notice.text =
          fmt::format("{} of group {} waited for rank {}",
                      failure.operation.empty() ? "a call" : failure.operation, group, rank);
      record.notices.back().notice.group = 0;
    }
  }

  static void Tell(RankRecord& record, int64_t time_ns, std::vector<int> ranks, Cause cause,
                   const std::string& why, bool gave_up) {
    RecordedNotice& recorded = record.notices.emplace_back();
    recorded.time_ns = time_ns;
    recorded.notice.gave_up = gave_up;
    recorded.notice.ranks = std::move(ranks);
    recorded.notice.text = why;
    recorded.cause = cause;
    recorded.why = why;
  }

  void AddEvents() {
    std::set<std::string> stuck;
    for (const auto& [key, event] : events_) {
      if (event.status == "STUCK") stuck.insert(event.culprit);
    }
    const bool few_stuck =
        stuck.size() * 2 <= static_cast<size_t>(world_size_) || stuck.size() == 1;
    for (const auto& [key, event] : events_) {
      const int rank = RankAt(event.culprit);
      const int teller = ranks_.empty() ? rank : TellerOf(event);
      RankRecord& record = records_.contains(teller) ? records_.at(teller) : NewRecord(teller);
      if (event.status == "LOST") {
        const auto other = events_.find({event.informer, "LOST"});
        const bool mutual = other != events_.end() && other->second.informer == event.culprit;
        const std::vector<int> both = {std::min(rank, RankAt(event.informer)),
                                       std::max(rank, RankAt(event.informer))};
        if (mutual) {
          Tell(record, event.time_ns, both, Cause::kFailed,
               "their heartbeats do not reach each other: look at the network between them", false);
        } else {
          Tell(record, event.time_ns, {rank}, Cause::kEnded,
               fmt::format("{} lost it: its process has exited, or its network is cut", kHeartbeat),
               false);
        }
      } else if (event.status == "ERROR CQE") {
        Tell(record, event.time_ns, {rank}, Cause::kFailed,
             fmt::format("{} found an error of its network (error CQE)", kHeartbeat), false);
      } else if (few_stuck) {  // those that wait are stuck, too
        Tell(record, event.time_ns, {rank}, Cause::kStopped,
             fmt::format("{} found it stuck", kHeartbeat), false);
      }
      if (!record.notices.empty() &&
          record.notices.back().notice.text == record.notices.back().why) {
        record.notices.back().notice.text = fmt::format(
            "{}: {}", RanksText(record.notices.back().notice.ranks), record.notices.back().why);
      }
    }
  }

  // The rank in whose log an event stands, or the first that has one.
  int TellerOf(const PlogEvent& event) const {
    const auto informer = rank_at_.find(event.informer);
    if (informer != rank_at_.end() && records_.contains(informer->second)) return informer->second;
    return records_.empty() ? 0 : records_.begin()->first;
  }

  static void Finish(RankRecord& record) {
    int64_t first = 0;
    for (const RecordedCall& call : record.calls) {
      if (call.entered_ns > 1 && (first == 0 || call.entered_ns < first)) first = call.entered_ns;
    }
    for (const RecordedNotice& notice : record.notices) {
      if (notice.time_ns > 0 && (first == 0 || notice.time_ns < first)) first = notice.time_ns;
    }
    record.start_realtime_ns = record.start_monotonic_ns = first;
  }

  const std::map<std::pair<std::string, std::string>, PlogEvent>& events_;
  const std::string& folder_;
  std::vector<const PlogProcess*> processes_;
  std::map<const PlogProcess*, int> ranks_;
  std::map<std::string, int> rank_at_;  // by "IP/ID"
  std::map<int, RankRecord> records_;
  int world_size_ = 1;
};

}  // namespace

std::vector<RankRecord> PlogRecords(const PlogFacts& facts, const std::string& folder) {
  return PlogBuilder(facts, folder).Run();
}

}  // namespace npumesh
