// Who is blamed: simulated jobs with one fault each, at random times, on random ranks. Which rank
// notices first, with which error, and what it leaves behind is chance; the blame must not be.
#include "launch/record/blame.h"

#include <gmock/gmock.h>

#include <functional>
#include <random>

#include "launch/record/record_join.h"
#include "tests/unit/record/records.h"

namespace npumesh::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kRepetitions = 100;
constexpr int64_t kNever = int64_t{1} << 60;
constexpr int64_t kMicro = 1'000;
constexpr int64_t kMilli = 1'000'000;
constexpr int64_t kLimit = 4'000 * kMilli;  // after which a rank gives up waiting

// Ranks that call a collective of all and one of their half (even and odd ranks) in turn.
class SimulatedJob {
 public:
  SimulatedJob(int ranks, bool halves, unsigned seed)
      : ranks_(ranks), halves_(halves && ranks >= 4), random_(seed), ready_(Count(), kMilli) {
    for (int rank = 0; rank < ranks; ++rank) {
      records_.push_back(RecordOf(rank, ranks));
      AddGroup(records_.back(), 1, "all", fmt::format("0-{}", ranks - 1));
      if (halves_) AddGroup(records_.back(), HalfOf(rank), "half", "");
    }
    victim_ = static_cast<int>(Chance(Count()));
  }

  int victim() const { return victim_; }
  int ranks() const { return ranks_; }
  bool halves() const { return halves_; }
  uint64_t Chance(uint64_t below) { return random_() % below; }
  int64_t Time(int64_t from, int64_t to) {
    return from + static_cast<int64_t>(Chance(static_cast<uint64_t>(to - from)));
  }

  // `steps` steps of all ranks; nothing of the victim happens after `cut`.
  void Run(int steps, int64_t cut = kNever) {
    cut_ = cut;
    for (int step = 0; step < steps; ++step) {
      Call(Everybody(), 1);
      if (halves_) CallHalves();
    }
  }
  void CallHalves() {
    for (const int first : {0, 1}) Call(HalfFrom(first), HalfOf(first));
  }
  std::vector<int> Everybody() const {
    std::vector<int> all;
    for (int rank = 0; rank < ranks_; ++rank) all.push_back(rank);
    return all;
  }
  std::vector<int> HalfFrom(int first) const {
    std::vector<int> half;
    for (int rank = first; rank < ranks_; rank += 2) half.push_back(rank);
    return half;
  }
  static uint64_t HalfOf(int rank) { return 2 + static_cast<uint64_t>(rank % 2); }

  // Those of `callers` call; the group's other members in `members` are waited for.
  void Call(const std::vector<int>& members, uint64_t group, std::vector<int> callers = {}) {
    if (callers.empty()) callers = members;
    int64_t met = 0;
    std::map<int, RecordedCall*> calls;
    std::map<int, int64_t> parts;
    for (const int rank : members) {
      const bool comes = std::find(callers.begin(), callers.end(), rank) != callers.end();
      const int64_t entered = comes ? Cut(rank, ready_[At(rank)] + Time(0, 300 * kMicro)) : kNever;
      met = std::max(met, entered);
      if (comes) ready_[At(rank)] = kNever;
      if (entered >= kNever) continue;
      RecordedCall& call = AddCall(records_[At(rank)], group, ++numbers_[{group, rank}], entered);
      call.stage = flight::Stage::kEntered;
      call.arrived_ns = call.done_ns = 0;
      calls[rank] = &call;
    }
    int64_t done = 0;
    for (const int rank : members) {
      const int64_t arrived = Cut(rank, met + Time(0, 20 * kMicro));
      parts[rank] = Cut(rank, arrived + Time(0, 200 * kMicro));
      done = std::max(done, parts[rank]);
      if (arrived >= kNever || calls.count(rank) == 0) continue;
      calls[rank]->arrived_ns = arrived;
      calls[rank]->stage =
          parts[rank] < kNever ? flight::Stage::kDeparting : flight::Stage::kRunning;
    }
    for (const auto& [rank, call] : calls) {
      const int64_t left = Cut(rank, done + Time(0, 20 * kMicro));
      if (left >= kNever) continue;
      Leave(*call, left, Code::kOk);
      ready_[At(rank)] = left;
    }
  }

  static void Leave(RecordedCall& call, int64_t at, Code status) {
    call.stage = flight::Stage::kDone;
    call.done_ns = at;
    call.status = status;
  }

  RankRecord& record(int rank) { return records_[At(rank)]; }
  RecordedCall& last(int rank) { return records_[At(rank)].calls.back(); }
  bool waits(int rank) { return !last(rank).done(); }
  std::vector<int> Others() const {
    std::vector<int> others = Everybody();
    std::erase(others, victim_);
    return others;
  }

  // A rank leaves its open call with an error, and writes an end of its record, or none.
  void GiveUp(int rank, int64_t at, Code status) {
    Leave(last(rank), std::max(at, last(rank).entered_ns + 1), status);
    End(rank, Chance(2) == 0 ? flight::State::kRunning : flight::State::kAbandoned);
  }
  void End(int rank, flight::State state) {
    record(rank).state = state;
    const bool running = state == flight::State::kRunning;
    record(rank).end_monotonic_ns = running ? 0 : record(rank).last_ns() + kMilli;
  }

  // All that wait reach their limit, the first with TIMEOUT, the others with that or PEER_LOST;
  // returns when the last of them left.
  int64_t AllGiveUp(const std::vector<int>& ranks) {
    int64_t first = kNever;
    for (const int rank : ranks) first = std::min(first, last(rank).entered_ns + kLimit);
    int64_t latest = 0;
    for (const int rank : ranks) {
      const int64_t own = last(rank).entered_ns + kLimit;
      const bool alone = own == first || Chance(2) == 0;
      GiveUp(rank, alone ? own : Time(first, first + 5 * kMilli),
             alone ? Code::kTimeout : Code::kPeerLost);
      latest = std::max(latest, last(rank).done_ns);
    }
    return latest;
  }

  // A wait of `rank` in its last call says why `ranks` do not come.
  void Say(int rank, WaitReason reason, const std::vector<int>& ranks, int64_t at, bool gave_up) {
    const RecordedCall& call = last(rank);
    RecordedNotice said;
    said.time_ns = at;
    said.notice = {gave_up,   reason,
                   ranks,     call.group,
                   call.call, std::chrono::seconds((at - call.entered_ns) / 1'000'000'000),
                   "words"};
    record(rank).notices.push_back(said);
  }

  // All calls that are open come to a good end at `at`, and the job to its own.
  void EndWell(int64_t at) {
    for (const int rank : Everybody()) {
      for (RecordedCall& call : record(rank).calls) {
        if (call.done()) continue;
        if (call.arrived_ns == 0) call.arrived_ns = at;
        Leave(call, at + Time(0, kMilli), Code::kOk);
      }
      End(rank, flight::State::kShutDown);
    }
  }

  // As the command saw it that started the ranks.
  std::optional<LaunchNote> note;
  LaunchNote& Noted() {
    if (!note) note = LaunchNote{.end_realtime_ns = int64_t{1} << 61};
    return *note;
  }

  std::vector<RankRecord> Records() {
    std::shuffle(records_.begin(), records_.end(), random_);
    std::sort(records_.begin(), records_.end(),
              [](const RankRecord& a, const RankRecord& b) { return a.rank < b.rank; });
    return records_;
  }

 private:
  size_t Count() const { return static_cast<size_t>(ranks_); }
  static size_t At(int rank) { return static_cast<size_t>(rank); }
  int64_t Cut(int rank, int64_t time) const {
    return time >= kNever || (rank == victim_ && time > cut_) ? kNever : time;
  }

  const int ranks_;
  const bool halves_;
  std::minstd_rand random_;
  int victim_ = 0;
  int64_t cut_ = kNever;
  std::vector<int64_t> ready_;
  std::vector<RankRecord> records_;
  std::map<std::pair<uint64_t, int>, uint64_t> numbers_;
};

// What each fault does to a job; returns whether a rank is the right one to blame.
using Expected = ::testing::Matcher<const std::vector<int>&>;
struct FaultCase {
  std::string name;
  Cause cause;
  bool halves;
  Expected (*strike)(SimulatedJob& job);
};

Expected Victim(const SimulatedJob& job) {
  return ElementsAre(job.victim());
}

int64_t RandomMoment(SimulatedJob& job) {
  return job.Time(2 * kMilli, 6 * kMilli);
}

// SIGKILL; the others notice and return errors.
Expected Kill(SimulatedJob& job) {
  const int64_t when = RandomMoment(job);
  job.Run(60, when);
  for (const int rank : job.Others()) {
    job.GiveUp(rank, when + job.Time(0, 1'000 * kMilli), Code::kPeerLost);
  }
  job.End(job.victim(), flight::State::kRunning);
  return Victim(job);
}

// SIGKILL, and mpirun kills the rest a moment later.
Expected KillAll(SimulatedJob& job) {
  job.Run(60, RandomMoment(job));
  for (const int rank : job.Everybody()) job.End(rank, flight::State::kRunning);
  return Victim(job);
}

// SIGSTOP until the others have given up, then SIGKILL.
Expected Stop(SimulatedJob& job) {
  job.Run(60, RandomMoment(job));
  job.AllGiveUp(job.Others());
  job.End(job.victim(), flight::State::kRunning);
  return Victim(job);
}

// SIGSTOP, and SIGCONT after the others have gone.
Expected ComeLate(SimulatedJob& job) {
  job.Run(60, RandomMoment(job));
  const int64_t woken = job.AllGiveUp(job.Others()) + job.Time(500 * kMilli, 8'000 * kMilli);
  RankRecord& record = job.record(job.victim());
  bool goes_on = record.calls.empty() || !job.waits(job.victim());
  if (!goes_on) {
    const bool well = job.Chance(2) == 0;
    RecordedCall& call = job.last(job.victim());
    if (call.arrived_ns == 0) call.arrived_ns = woken;
    SimulatedJob::Leave(call, woken + kMilli, well ? Code::kOk : Code::kPeerLost);
    goes_on = well;
  }
  if (goes_on) {
    // The next call of the group of all that the others gave up in, or a later one.
    uint64_t number = 1;
    for (const RecordedCall& call : record.calls) number = std::max(number, call.call + 1);
    RecordedCall& next = AddCall(record, 1, number, woken + 2 * kMilli);
    next.arrived_ns = job.Chance(2) == 0 ? 0 : next.entered_ns + kMicro;
    SimulatedJob::Leave(next, next.entered_ns + kMilli, Code::kPeerLost);
  }
  job.End(job.victim(), job.Chance(2) == 0 ? flight::State::kRunning : flight::State::kAbandoned);
  return Victim(job);
}

// Returns from its work before the others.
Expected EndEarly(SimulatedJob& job) {
  job.Run(static_cast<int>(3 + job.Chance(10)));
  job.Call(job.Everybody(), 1, job.Others());
  job.AllGiveUp(job.Others());
  const flight::State ends[] = {flight::State::kRunning, flight::State::kShutDown,
                                flight::State::kAbandoned};
  job.End(job.victim(), ends[job.Chance(3)]);
  return Victim(job);
}

// All compare, all leave with MISMATCH, unless mpirun was quicker.
void Disagree(SimulatedJob& job) {
  for (const int rank : job.Everybody()) {
    RecordedCall& call = job.last(rank);
    SimulatedJob::Leave(call, call.arrived_ns + job.Time(1, 50 * kMicro), Code::kMismatch);
    job.End(rank, job.Chance(2) == 0 ? flight::State::kRunning : flight::State::kAbandoned);
    if (job.Chance(6) == 0) CutAt(job.record(rank), flight::Stage::kRunning);
  }
}

void ChangeAField(SimulatedJob& job, RecordedCall& call) {
  switch (job.Chance(6)) {
    case 0:
      call.count /= 2;
      break;
    case 1:
      call.dtype = static_cast<int>(DataType::kInt8);
      break;
    case 2:
      call.op = 2;
      break;
    case 3:
      call.root = 1;
      break;
    case 4:
      call.kind = CollectiveKind::kAllGather;
      break;
    default:
      call.fingerprint = 7;
  }
}

Expected WantSomethingElse(SimulatedJob& job) {
  job.Run(static_cast<int>(3 + job.Chance(10)));
  job.Call(job.Everybody(), 1);
  Disagree(job);
  ChangeAField(job, job.last(job.victim()));
  if (job.ranks() == 2) return ElementsAre(0, 1);
  return Victim(job);
}

// One of the group's calls is left out, and the next wants something else.
Expected SkipADifferentCall(SimulatedJob& job) {
  job.Run(static_cast<int>(3 + job.Chance(10)));
  job.Call(job.Everybody(), 1);
  Disagree(job);
  job.last(job.victim()).node = "the next one";
  job.last(job.victim()).count = 1;
  if (job.ranks() == 2) return ElementsAre(0, 1);
  return Victim(job);
}

// The victim calls its half before all, where the others do it the other way round.
Expected Circle(SimulatedJob& job) {
  job.Run(static_cast<int>(3 + job.Chance(10)));
  job.Call(job.Everybody(), 1, job.Others());
  const std::vector<int> half = job.HalfFrom(job.victim() % 2);
  job.Call(half, SimulatedJob::HalfOf(job.victim()), {job.victim()});
  job.AllGiveUp(job.Everybody());
  return ::testing::AllOf(::testing::SizeIs(2), Contains(job.victim()),
                          ::testing::Each(::testing::AnyOfArray(half)));
}

// A call that the rank itself cannot do.
Expected FailAlone(SimulatedJob& job) {
  job.Run(static_cast<int>(3 + job.Chance(10)));
  job.Call(job.Everybody(), 1);
  for (const int rank : job.Everybody()) {
    job.GiveUp(rank, job.last(rank).arrived_ns + job.Time(1, kMilli),
               rank == job.victim() ? Code::kIo : Code::kPeerLost);
  }
  return Victim(job);
}

// The rank is stopped; waits warn. The end of the job wakes it, and the calls end well after all.
Expected StopUntilTheEnd(SimulatedJob& job) {
  job.Run(60, RandomMoment(job));
  for (const int rank : job.Others()) {
    job.Say(rank, WaitReason::kStopped, {job.victim()}, job.last(rank).entered_ns + 10'000 * kMilli,
            false);
  }
  job.Noted().timeout_s = 40;
  job.EndWell(40'000 * kMilli);
  return Victim(job);
}

// The same, but the ranks do not come to a good end.
Expected StopAndEndAll(SimulatedJob& job) {
  job.Run(60, RandomMoment(job));
  for (const int rank : job.Others()) {
    job.Say(rank, WaitReason::kStopped, {job.victim()}, job.last(rank).entered_ns + 10'000 * kMilli,
            false);
  }
  for (const int rank : job.Everybody()) job.End(rank, flight::State::kRunning);
  job.Noted().timeout_s = 40;
  return Victim(job);
}

// The rank computes for long before a call. Waits warn, or are of a kind that cannot; all end well.
Expected ComputeLong(SimulatedJob& job) {
  job.Run(static_cast<int>(3 + job.Chance(10)));
  job.Call(job.Everybody(), 1, job.Others());
  const bool warn = job.Chance(2) == 0;
  const int64_t came = 25'000 * kMilli;
  for (const int rank : job.Others()) {
    RecordedCall& call = job.last(rank);
    if (warn)
      job.Say(rank, WaitReason::kLate, {job.victim()}, call.entered_ns + 10'000 * kMilli, false);
  }
  RankRecord& late = job.record(job.victim());
  AddCall(late, 1, job.last(job.Others()[0]).call, came);
  job.EndWell(came + kMicro);
  for (const int rank : job.Everybody()) {
    job.record(rank).soft_timeout_ns = 10'000 * kMilli;
  }
  return Victim(job);
}

// Ranks that wait in a circle know it.
Expected KnownCircle(SimulatedJob& job) {
  const Expected expected = Circle(job);
  std::vector<int> circle = {job.victim(), job.victim() ^ 2};
  if (circle[1] >= job.ranks()) circle[1] = job.victim() % 2;
  std::sort(circle.begin(), circle.end());
  for (const int rank : job.Everybody()) {
    job.Say(rank, WaitReason::kCircle, circle, job.last(rank).done_ns, true);
  }
  return ElementsAreArray(circle);
}

// Ranks that wait for one that has ended know it.
Expected KnownEnd(SimulatedJob& job) {
  const Expected expected = EndEarly(job);
  for (const int rank : job.Others()) {
    job.Say(rank, WaitReason::kEnded, {job.victim()}, job.last(rank).done_ns, true);
  }
  return expected;
}

// A signal ends a rank between two calls, and mpirun ends the rest in the same moment.
Expected KilledAsLaunchSaw(SimulatedJob& job) {
  job.Run(static_cast<int>(3 + job.Chance(10)));
  for (const int rank : job.Everybody()) job.End(rank, flight::State::kRunning);
  job.Noted().deaths = {{job.victim(), 9}};
  return Victim(job);
}

class BlamedRanks : public ::testing::TestWithParam<FaultCase> {};

TEST_P(BlamedRanks, AreTheRightOnesInEveryRepetition) {
  int right = 0;
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    const int least = GetParam().halves ? 4 : 2;
    SimulatedJob job(least + repetition % 5, GetParam().halves, static_cast<unsigned>(repetition));
    const Expected expected = GetParam().strike(job);
    const std::vector<RankRecord> records = job.Records();
    const Result<Joined> joined = Join(records, job.note);
    ASSERT_TRUE(joined.ok()) << joined.status().ToString();
    EXPECT_THAT(joined->blame.ranks, expected) << "repetition " << repetition << "\n"
                                               << JoinedText(records, *joined);
    EXPECT_EQ(Name(joined->blame.cause), Name(GetParam().cause))
        << "repetition " << repetition << "\n"
        << JoinedText(records, *joined);
    right += expected.Matches(joined->blame.ranks) ? 1 : 0;
    for (const int rank : job.Everybody()) {
      if (!LeftWithError(records[static_cast<size_t>(rank)])) continue;
      EXPECT_THAT(joined->problems,
                  Not(Contains(HasSubstr(fmt::format("rank {} (process", rank)))));
    }
  }
  EXPECT_EQ(right, kRepetitions);
}

INSTANTIATE_TEST_SUITE_P(
    , BlamedRanks,
    ::testing::Values(FaultCase{"Killed", Cause::kMissing, false, Kill},
                      FaultCase{"KilledInTwoGroups", Cause::kMissing, true, Kill},
                      FaultCase{"KilledAndThenTheRest", Cause::kMissing, true, KillAll},
                      FaultCase{"Stopped", Cause::kMissing, false, Stop},
                      FaultCase{"StoppedInTwoGroups", Cause::kMissing, true, Stop},
                      FaultCase{"Late", Cause::kMissing, false, ComeLate},
                      FaultCase{"EndedEarlyOrLeftAnEqualCallOut", Cause::kMissing, false, EndEarly},
                      FaultCase{"EndedEarlyInTwoGroups", Cause::kMissing, true, EndEarly},
                      FaultCase{"SkippedADifferentCall", Cause::kMismatch, false,
                                SkipADifferentCall},
                      FaultCase{"WantedSomethingElse", Cause::kMismatch, false, WantSomethingElse},
                      FaultCase{"InACircle", Cause::kCircle, true, Circle},
                      FaultCase{"FailedByThemselves", Cause::kFailed, false, FailAlone},
                      FaultCase{"StoppedUntilTheEnd", Cause::kStopped, true, StopUntilTheEnd},
                      FaultCase{"StoppedAndEnded", Cause::kStopped, true, StopAndEndAll},
                      FaultCase{"ComputedLong", Cause::kLate, false, ComputeLong},
                      FaultCase{"InAKnownCircle", Cause::kCircle, true, KnownCircle},
                      FaultCase{"EndedAsOthersKnew", Cause::kEnded, false, KnownEnd},
                      FaultCase{"KilledAsLaunchSaw", Cause::kKilled, true, KilledAsLaunchSaw}),
    [](const auto& info) { return info.param.name; });

TEST(Blame, AnOrderlyRunBlamesNobody) {
  for (unsigned seed = 0; seed < kRepetitions; ++seed) {
    SimulatedJob job(2 + static_cast<int>(seed % 5), true, seed);
    job.Run(10);
    const std::vector<RankRecord> records = job.Records();
    const Result<Joined> joined = Join(records);
    ASSERT_TRUE(joined.ok());
    EXPECT_THAT(joined->problems, ::testing::IsEmpty());
    EXPECT_EQ(joined->blame.cause, Cause::kNone);
    EXPECT_EQ(BlameText(joined->blame), "");
  }
}

// Regression: of a job that was only too long, a rank was blamed.
TEST(Blame, AJobThatWasEndedFromOutsideBlamesNobody) {
  for (unsigned seed = 0; seed < kRepetitions; ++seed) {
    SimulatedJob job(2 + static_cast<int>(seed % 5), true, seed);
    job.Run(static_cast<int>(3 + job.Chance(10)));
    for (const int rank : job.Everybody()) job.End(rank, flight::State::kRunning);
    (seed % 2 == 0 ? job.Noted().timeout_s : job.Noted().signal) = 2;
    const std::vector<RankRecord> records = job.Records();
    const Result<Joined> joined = Join(records, job.note);
    ASSERT_TRUE(joined.ok());
    EXPECT_EQ(joined->problems[0], seed % 2 == 0
                                       ? "npumesh launch ended the job after 2 s (--timeout)"
                                       : "SIGINT asked npumesh launch to end the job");
    EXPECT_THAT(joined->blame.ranks, ::testing::IsEmpty()) << JoinedText(records, *joined);
  }
}

TEST(Blame, WithoutAMajorityAllAreNamed) {
  SimulatedJob job(2, false, 1);
  job.Run(3);
  job.Call(job.Everybody(), 1);
  Disagree(job);
  job.last(1).count = 1;
  const std::vector<RankRecord> records = job.Records();
  EXPECT_EQ(BlameText(Join(records)->blame),
            "ranks 0-1: they disagree about the count of a call, without a majority");
}

}  // namespace
}  // namespace npumesh::testing
