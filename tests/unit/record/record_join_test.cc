// What the join says about records made by hand.
#include "launch/record/record_join.h"

#include <gmock/gmock.h>

#include "launch/record/record_page.h"
#include "launch/record/timeline.h"
#include "launch/report/command_report.h"
#include "runtime/base/text/json.h"
#include "tests/unit/record/records.h"

namespace npumesh::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// `calls` orderly calls of group tp on each rank; rank r enters each 100 * r ns after rank 0.
std::vector<RankRecord> OrderlyRun(int ranks, uint64_t calls) {
  std::vector<RankRecord> records;
  for (int rank = 0; rank < ranks; ++rank) {
    records.push_back(RecordOf(rank, ranks));
    AddGroup(records.back(), kTp, "tp", fmt::format("0-{}", ranks - 1));
    for (uint64_t call = 1; call <= calls; ++call) {
      AddCall(records.back(), kTp, call, static_cast<int64_t>(call) * 10'000 + rank * 100);
    }
  }
  return records;
}

Joined MustJoin(const std::vector<RankRecord>& records) {
  Result<Joined> joined = Join(records);
  EXPECT_TRUE(joined.ok()) << joined.status().ToString();
  return *std::move(joined);
}

TEST(Joiner, AnOrderlyRunHasNoProblems) {
  const std::vector<RankRecord> records = OrderlyRun(4, 3);
  const Joined joined = MustJoin(records);
  EXPECT_THAT(joined.problems, IsEmpty());
  EXPECT_THAT(joined.blame.ranks, IsEmpty());
  ASSERT_EQ(joined.groups.size(), 1u);
  EXPECT_EQ(joined.groups[0].common, 3u);
  EXPECT_THAT(joined.groups[0].members, ElementsAre(0, 1, 2, 3));
  const std::string text = JoinedText(records, joined);
  EXPECT_THAT(text, HasSubstr("4 of 4 ranks on 1 host, 1 group, 12 calls; begun 2023-11-14 "
                              "22:13:20 UTC\nnothing is wrong\ngroup tp (ranks 0-3): all have done "
                              "call 3, allreduce \"attn\" float32[64]\n"));
}

TEST(Joiner, MeasuresWhoComesLast) {
  const std::vector<RankRecord> records = OrderlyRun(3, 5);
  const Joined joined = MustJoin(records);
  ASSERT_EQ(joined.arrivals.size(), 3u);
  EXPECT_EQ(joined.arrivals[0].rank, 2);
  EXPECT_EQ(joined.arrivals[0].calls, 5u);
  EXPECT_EQ(joined.arrivals[0].came_last, 5u);
  EXPECT_DOUBLE_EQ(joined.arrivals[0].late_ms, 5 * 200e-6);
  EXPECT_DOUBLE_EQ(joined.arrivals[0].waited_ms, 0);
  EXPECT_EQ(joined.arrivals[2].rank, 0);
  EXPECT_DOUBLE_EQ(joined.arrivals[2].waited_ms, 5 * 200e-6);
}

TEST(Joiner, NamesTheRankWhoseRecordEndsInTheMiddle) {
  std::vector<RankRecord> records = OrderlyRun(3, 2);
  for (RankRecord& record : records) AddCall(record, kTp, 3, 90'000);
  CutAt(records[1], flight::Stage::kRunning);
  for (int rank : {0, 2}) {
    RecordedCall& last = records[static_cast<size_t>(rank)].calls.back();
    last.status = Code::kPeerLost;
    records[static_cast<size_t>(rank)].state = flight::State::kAbandoned;
  }
  const Joined joined = MustJoin(records);
  EXPECT_THAT(joined.blame.ranks, ElementsAre(1));
  EXPECT_THAT(
      joined.problems,
      Contains("rank 1 (process 101 on h) was killed, crashed or still runs: its record ends "
               "in the middle of call 3 of group tp, allreduce \"attn\" float32[64] (all had "
               "arrived, it was running)"));
  EXPECT_THAT(joined.problems, Contains("ranks 0,2 wait for rank 1, which waits for no rank"));
  EXPECT_THAT(joined.problems,
              Contains("allreduce \"attn\" float32[64] (group tp, call 3) failed on "
                       "ranks 0,2 with PEER_LOST; see what they wrote"));
  EXPECT_EQ(joined.groups[0].common, 2u);
}

TEST(Joiner, SaysWhatHasBecomeOfAProcess) {
  std::vector<RankRecord> records = OrderlyRun(2, 2);
  records[1].state = flight::State::kRunning;
  const auto said = [&](ProcessFate fate, const std::optional<LaunchNote>& note = std::nullopt) {
    records[1].fate = fate;
    const Result<Joined> joined = Join(records, note);
    EXPECT_TRUE(joined.ok());
    for (const std::string& problem : joined->problems) {
      if (problem.find("rank 1 (process") == 0) return problem.substr(0, problem.find(": its"));
    }
    return std::string();
  };
  EXPECT_EQ(said(ProcessFate::kGone), "rank 1 (process 101 on h) was killed or crashed");
  EXPECT_EQ(said(ProcessFate::kStopped), "rank 1 (process 101 on h) is stopped (SIGSTOP)");
  EXPECT_EQ(said(ProcessFate::kRunning), "rank 1 (process 101 on h) still runs");
  LaunchNote note;
  note.end_realtime_ns = records[0].start_realtime_ns + 1;
  note.deaths = {{1, 9}};
  EXPECT_EQ(said(ProcessFate::kGone, note), "rank 1 (process 101 on h) was killed or crashed");
  note.timeout_s = 5;
  EXPECT_EQ(said(ProcessFate::kGone, note), "rank 1 (process 101 on h) was ended with the job");
  EXPECT_EQ(said(ProcessFate::kRunning, note), "rank 1 (process 101 on h) still runs");
}

// A note that is older than the records is of another job.
TEST(Joiner, AnOldNoteOfTheLauncherDoesNotCount) {
  const std::vector<RankRecord> records = OrderlyRun(2, 2);
  LaunchNote note;
  note.timeout_s = 5;
  note.end_realtime_ns = records[0].start_realtime_ns - 1;
  EXPECT_THAT(Join(records, note)->problems, IsEmpty());
  note.end_realtime_ns = records[0].start_realtime_ns + 1;
  EXPECT_THAT(Join(records, note)->problems,
              ElementsAre("npumesh launch ended the job after 5 s (--timeout)"));
}

// Regression: a rank that came 25 s late to a call was "nothing is wrong".
TEST(Joiner, ACallLaterThanTheLimitIsAFinding) {
  std::vector<RankRecord> records = OrderlyRun(2, 3);
  constexpr int64_t kLate = 25'000'000'000;
  for (RankRecord& record : records) {
    record.soft_timeout_ns = 10'000'000'000;
    RecordedCall& call = AddCall(record, kTp, 4, 90'000 + (record.rank == 1 ? kLate : 0));
    call.arrived_ns = call.done_ns = 90'000 + kLate + 10;
  }
  const Joined joined = MustJoin(records);
  EXPECT_THAT(joined.problems,
              ElementsAre("rank 1 came 25 s after others to allreduce \"attn\" float32[64] (group "
                          "tp, call 4); a wait warns after 10 s (NPUMESH_SOFT_TIMEOUT)"));
  EXPECT_EQ(BlameText(joined.blame), "rank 1: others waited 25 s for it");
  for (RankRecord& record : records) record.soft_timeout_ns = 30'000'000'000;
  EXPECT_THAT(MustJoin(records).problems, IsEmpty());
}

// All ranks were killed: the rank that the others waited for comes first.
TEST(Joiner, BlamesTheRankThatWasBehindWhenNobodyHasAnEnd) {
  std::vector<RankRecord> records = OrderlyRun(3, 2);
  for (int rank : {0, 1}) AddCall(records[static_cast<size_t>(rank)], kTp, 3, 90'000);
  for (int rank : {0, 1}) CutAt(records[static_cast<size_t>(rank)], flight::Stage::kEntered);
  records[2].state = flight::State::kRunning;
  const Joined joined = MustJoin(records);
  EXPECT_THAT(joined.blame.ranks, ElementsAre(2));
  EXPECT_THAT(joined.problems,
              Contains("group tp: rank 2 is at call 2, 1 behind ranks 0-1, which entered call 3: "
                       "allreduce \"attn\" float32[64]"));
  EXPECT_THAT(joined.problems, Contains(HasSubstr("ends after call 2 of group tp")));
}

TEST(Joiner, BlamesTheRankThatWasSilentFirstWhenAllStandAlike) {
  std::vector<RankRecord> records = OrderlyRun(3, 2);
  for (RankRecord& record : records) {
    record.state = flight::State::kRunning;
    record.end_monotonic_ns = 0;
  }
  EXPECT_THAT(MustJoin(records).blame.ranks, ElementsAre(0));
}

TEST(Joiner, NamesTheRankThatEndedEarly) {
  std::vector<RankRecord> records = OrderlyRun(2, 2);
  AddCall(records[0], kTp, 3, 90'000).status = Code::kTimeout;
  records[0].calls.back().arrived_ns = 0;
  records[0].state = flight::State::kAbandoned;
  const Joined joined = MustJoin(records);
  EXPECT_THAT(joined.blame.ranks, ElementsAre(1));
  EXPECT_THAT(joined.problems,
              Contains("rank 0 waits for rank 1, which waits for no rank and has ended orderly"));
}

TEST(Joiner, DrawsCircles) {
  std::vector<RankRecord> records = OrderlyRun(2, 2);
  for (RankRecord& record : records) AddGroup(record, kDp, "dp", "0-1");
  AddCall(records[0], kTp, 3, 90'000);
  AddCall(records[1], kDp, 1, 90'000);
  for (RankRecord& record : records) CutAt(record, flight::Stage::kEntered);
  EXPECT_THAT(MustJoin(records).problems,
              Contains("the ranks wait for each other in a circle (0 -> 1 -> 0)"));
}

// Ranks 0, 2 and 3 have begun to create group dp; rank 1 has only its calls of tp.
std::vector<RankRecord> CreationWithoutRankOne() {
  std::vector<RankRecord> records = OrderlyRun(4, 2);
  for (const size_t rank : {0u, 2u, 3u}) {
    AddGroup(records[rank], kDp, "dp", "0,1-3");
    AddCreation(records[rank], kDp, 90'000);
    CutAt(records[rank], flight::Stage::kEntered);
  }
  records[1].state = flight::State::kRunning;
  return records;
}

void ExpectRankOneIsMissed(const std::vector<RankRecord>& records) {
  const Joined joined = MustJoin(records);
  EXPECT_EQ(BlameText(joined.blame), "rank 1: others wait for it, and it waits for no rank");
  EXPECT_THAT(joined.problems, Contains("group dp: its creation waits for rank 1, which has not "
                                        "begun it; ranks 0,2-3 entered it"));
  EXPECT_THAT(joined.problems,
              Contains(HasSubstr("ranks 0,2-3 wait for rank 1, which waits for no rank")));
}

TEST(Joiner, NamesTheRankForWhichTheCreationOfAGroupWaits) {
  std::vector<RankRecord> records = CreationWithoutRankOne();
  ExpectRankOneIsMissed(records);
  EXPECT_THAT(MustJoin(records).problems,
              Contains(HasSubstr("in the middle of the creation of group dp "
                                 "(it waited for the others to arrive)")));
  records[1].forgotten = 100;  // it would have a row of the group
  ExpectRankOneIsMissed(records);
}

TEST(Joiner, NamesThatRankWhenTheOthersHaveGivenUp) {
  std::vector<RankRecord> records = CreationWithoutRankOne();
  for (const size_t rank : {0u, 2u, 3u}) {
    RecordedCall& creation = records[rank].calls.back();
    creation.stage = flight::Stage::kDone;
    creation.status = Code::kTimeout;
    creation.done_ns = 95'000;
    records[rank].state = flight::State::kAbandoned;
  }
  records[1].state = flight::State::kShutDown;
  ExpectRankOneIsMissed(records);
}

// Stopped after it had begun, or before it saw the others come.
TEST(Joiner, NamesTheRankThatStaysInTheCreationOfAGroup) {
  std::vector<RankRecord> records = OrderlyRun(3, 0);
  for (RankRecord& record : records) {
    AddGroup(record, kDp, "dp", "0-2");
    AddCreation(record, kDp, 90'000).status = Code::kTimeout;
    record.calls.back().arrived_ns = 0;
    record.state = flight::State::kAbandoned;
  }
  CutAt(records[1], flight::Stage::kEntered);
  EXPECT_THAT(MustJoin(records).blame.ranks, ElementsAre(1));
}

TEST(Joiner, CreatedGroupsAreNoProblemAndNoArrival) {
  std::vector<RankRecord> records = OrderlyRun(2, 0);
  for (RankRecord& record : records) AddCreation(record, kTp, 90'000 + record.rank);
  const Joined joined = MustJoin(records);
  EXPECT_THAT(joined.problems, IsEmpty());
  EXPECT_THAT(joined.arrivals, IsEmpty());
  EXPECT_THAT(JoinedText(records, joined),
              HasSubstr("group tp (ranks 0-1): no call that all have done\n"));
}

struct Change {
  const char* field;
  void (*apply)(RecordedCall&);
};

class Fields : public ::testing::TestWithParam<Change> {};

TEST_P(Fields, ThatDifferAreNamed) {
  std::vector<RankRecord> records = OrderlyRun(3, 2);
  GetParam().apply(records[1].calls[1]);
  const Joined joined = MustJoin(records);
  EXPECT_THAT(joined.problems,
              Contains(HasSubstr(
                  fmt::format("(group tp, call 2): {} differs: rank 1 has", GetParam().field))));
}

INSTANTIATE_TEST_SUITE_P(
    Joiner, Fields,
    ::testing::Values(Change{"kind", [](RecordedCall& c) { c.kind = CollectiveKind::kAllGather; }},
                      Change{"dtype",
                             [](RecordedCall& c) { c.dtype = static_cast<int>(DataType::kInt8); }},
                      Change{"count", [](RecordedCall& c) { c.count = 63; }},
                      Change{"reduction", [](RecordedCall& c) { c.op = 2; }},
                      Change{"root", [](RecordedCall& c) { c.root = 1; }},
                      Change{"operator", [](RecordedCall& c) { c.node = "mlp"; }}),
    [](const auto& info) { return info.param.field; });

TEST(Joiner, NumbersOfOperatorsMayDiffer) {
  std::vector<RankRecord> records = OrderlyRun(2, 1);
  records[1].calls[0].node = "attn_7";
  EXPECT_THAT(MustJoin(records).problems, IsEmpty());
}

TEST(Joiner, MissingRecordsAreAProblem) {
  std::vector<RankRecord> records = OrderlyRun(4, 1);
  records.erase(records.begin() + 2);
  const Joined joined = MustJoin(records);
  EXPECT_THAT(joined.problems, Contains(HasSubstr("rank 2 of 4 left no record")));
  EXPECT_THAT(joined.blame.ranks, ElementsAre(2));
}

TEST(Joiner, RecordsOfAnEarlierRunAreNoticed) {
  std::vector<RankRecord> records = OrderlyRun(2, 1);
  records[1].start_realtime_ns -= 60'000'000'000;
  EXPECT_THAT(MustJoin(records).problems, Contains(HasSubstr("it is of an earlier run")));
  records[1].world_size = 3;
  EXPECT_EQ(Join(records).status().code(), Code::kCorrupt);
  EXPECT_THAT(std::string(Join(records).status().message()),
              HasSubstr("rank_0.npr is of a run of 2 ranks, rank_1.npr of one of 3"));
}

// What a ring has forgotten is no reason to blame a rank.
// Rank 1 receives from rank 0, which waits elsewhere and has never sent.
TEST(Joiner, AMessageNamesTheEndThatDoesNotCome) {
  constexpr uint64_t kLane = 0x3031;
  std::vector<RankRecord> records = OrderlyRun(2, 1);
  AddGroup(records[1], kLane, "0 -> 1 of tp", "0-1");
  AddCall(records[1], kLane, 1, 20'000).kind = CollectiveKind::kSendRecv;
  CutAt(records[1], flight::Stage::kEntered);
  const Joined joined = MustJoin(records);
  EXPECT_THAT(joined.problems, Contains(HasSubstr("in the middle of call 1 of group 0 -> 1 of tp, "
                                                  "send/recv \"attn\" float32[64]")));
  EXPECT_THAT(joined.problems,
              Contains(HasSubstr("group 0 -> 1 of tp: rank 0 has made no call, 1 behind "
                                 "rank 1, which entered call 1")));
  EXPECT_THAT(joined.problems,
              Contains(HasSubstr("rank 1 waits for rank 0, which waits for no rank")));
}

TEST(Joiner, AGroupThatTheRingForgotIsUnknown) {
  std::vector<RankRecord> records = OrderlyRun(2, 2);
  for (RankRecord& record : records) AddGroup(record, kDp, "dp", "0-1");
  AddCall(records[0], kDp, 7, 90'000);
  EXPECT_THAT(MustJoin(records).problems, ::testing::Not(IsEmpty()));
  records[1].forgotten = 100;
  EXPECT_THAT(MustJoin(records).problems, IsEmpty());
}

TEST(Joiner, ClocksOfDifferentHostsAreAlignedByTheTimeOfDay) {
  std::vector<RankRecord> records = OrderlyRun(2, 1);
  EXPECT_THAT(ClockOffsets(records), ElementsAre(0, 0));
  records[1].boot_id = "other";
  records[1].start_monotonic_ns += 500;
  EXPECT_THAT(ClockOffsets(records),
              ElementsAre(1'700'000'000'000'000'000 - 1000, 1'700'000'000'000'000'000 - 1500));
}

// Those that gave up did not die: they are not called killed.
TEST(Joiner, RanksThatReturnedAnErrorAreNotCalledKilled) {
  std::vector<RankRecord> records = OrderlyRun(3, 2);
  for (RankRecord& record : records) {
    AddCall(record, kTp, 3, 90'000).status = Code::kMismatch;
    record.state = flight::State::kRunning;
  }
  records[1].calls.back().count = 32;
  const Joined joined = MustJoin(records);
  EXPECT_THAT(joined.problems, ::testing::Each(::testing::Not(HasSubstr("was killed"))));
  EXPECT_EQ(BlameText(joined.blame),
            "rank 1: the count of a call differs from that of the other ranks");
  EXPECT_THAT(JoinedText(records, joined), HasSubstr("\nlook first at rank 1: the count of "));
}

TEST(Joiner, JsonSaysTheSame) {
  std::vector<RankRecord> records = OrderlyRun(3, 2);
  const CommandReport good = RecordReport(records, MustJoin(records));
  EXPECT_EQ(good.verdict, "good");
  EXPECT_EQ(good.findings.size(), 0u);
  EXPECT_EQ(good.details.at("look_first_at").at("cause"), "none");
  EXPECT_EQ(good.details.at("arrivals")[0].at("rank"), 2);
  EXPECT_EQ(good.details.at("groups")[0].at("all_have_done_call"), 2);
  records[1].calls[1].count = 32;
  CutAt(records[2], flight::Stage::kRunning);
  const Joined joined = MustJoin(records);
  const CommandReport wrong = RecordReport(records, joined);
  EXPECT_EQ(wrong.verdict, "wrong");
  EXPECT_EQ(wrong.findings.size(), joined.problems.size());
  EXPECT_EQ(wrong.details.at("look_first_at").at("cause"), "mismatch");
  EXPECT_EQ(wrong.details.at("look_first_at").at("ranks"), nlohmann::json({1}));
  EXPECT_EQ(wrong.details.at("ranks")[0].at("end"), "orderly");
  EXPECT_EQ(wrong.details.at("ranks")[2].at("end"), "none");
}

// Events of a trace that have `key` == `value`.
std::vector<nlohmann::json> EventsWith(const std::vector<RankRecord>& records,
                                       const std::string& key, const std::string& value) {
  const auto trace = nlohmann::json::parse(TimelineJson(records, MustJoin(records)));
  std::vector<nlohmann::json> found;
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    if (event.value(key, "") == value) found.push_back(event);
  }
  return found;
}

TEST(Timeline, IsATraceOfAllCalls) {
  std::vector<RankRecord> records = OrderlyRun(2, 3);
  CutAt(records[1], flight::Stage::kEntered);
  EXPECT_EQ(EventsWith(records, "ph", "M").size(), 2u * 2);
  EXPECT_EQ(EventsWith(records, "name", "process_name")[0].at("args").at("name"), "rank 0 (h)");
  const std::vector<nlohmann::json> calls = EventsWith(records, "cat", "collective");
  ASSERT_EQ(calls.size(), 2u * 3);
  EXPECT_EQ(EventsWith(records, "cat", "wait").size(), 2u * 3);
  EXPECT_EQ(calls[0].at("name"), "attn (allreduce)");
  EXPECT_EQ(calls[0].at("ph"), "X");
  EXPECT_DOUBLE_EQ(calls[0].at("ts"), 9.0);
  EXPECT_DOUBLE_EQ(calls[0].at("dur"), 0.02);
  EXPECT_EQ(calls[0].at("args").at("kind"), "allreduce");
  EXPECT_EQ(calls[0].at("args").at("call"), 1);
  EXPECT_EQ(calls.back().at("args").at("status"), "never left");
}

// A symptom: a wait of 12 s did not say whom it was for.
TEST(Timeline, SaysWhomAWaitIsFor) {
  const std::vector<RankRecord> records = OrderlyRun(3, 2);
  std::vector<std::string> names;
  for (const nlohmann::json& wait : EventsWith(records, "cat", "wait")) {
    names.push_back(wait.at("name"));
  }
  // Rank 2 always enters last; it waits for no other rank.
  EXPECT_THAT(names, ElementsAre("wait for rank 2", "wait for rank 2", "wait for rank 2",
                                 "wait for rank 2", "wait for arrival", "wait for arrival"));
}

TEST(Timeline, SaysWhoDidNotCome) {
  std::vector<RankRecord> records = OrderlyRun(3, 2);
  records[1].calls.pop_back();
  records[1].end_monotonic_ns = 0;
  records[1].state = flight::State::kRunning;
  CutAt(records[0], flight::Stage::kEntered);
  CutAt(records[2], flight::Stage::kEntered);
  const std::vector<nlohmann::json> waits = EventsWith(records, "cat", "wait");
  ASSERT_EQ(waits.size(), 5u);
  EXPECT_EQ(waits[1].at("name"), "wait for rank 1");
  EXPECT_EQ(waits[4].at("name"), "wait for rank 1");
  const std::vector<nlohmann::json> marks = EventsWith(records, "cat", "verdict");
  const Joined joined = MustJoin(records);
  ASSERT_EQ(marks.size(), 1 + joined.problems.size());
  EXPECT_EQ(marks[0].at("name"), BlameText(joined.blame));
  EXPECT_EQ(marks[0].at("ph"), "i");
  EXPECT_EQ(marks[0].at("s"), "p");
  EXPECT_EQ(marks[0].at("pid"), 1);
  EXPECT_EQ(marks[1].at("name"), joined.problems[0]);
  EXPECT_EQ(marks[1].at("s"), "g");
}

TEST(Timeline, OfAnOrderlyRunHasNoVerdict) {
  EXPECT_TRUE(EventsWith(OrderlyRun(2, 2), "cat", "verdict").empty());
}

// Names that ranks gave are text, wherever they stand.
TEST(RecordPage, HasTheVerdictAndTheCallsAndNoForeignMarkup) {
  std::vector<RankRecord> records = OrderlyRun(2, 3);
  CutAt(records[0], flight::Stage::kEntered);
  records[1].calls.pop_back();
  records[0].host = "</script><b>";
  const Joined joined = MustJoin(records);
  const std::string page = RecordPage(records, joined, {"typed", "1.2", "today"});
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  for (const char* foreign : {"http://", "https://", "innerHTML", "</script><b>"}) {
    EXPECT_THAT(page, ::testing::Not(HasSubstr(foreign)));
  }
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const size_t begin = page.find(open) + open.size();
  const auto data = nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin),
                                          nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(data.is_object());
  EXPECT_EQ(data.at("version"), "1.2");
  EXPECT_EQ(data.at("problems").size(), joined.problems.size());
  EXPECT_EQ(data.at("report").at("ranks").size(), 2u);
  EXPECT_EQ(data.at("report").at("look_first_at").at("ranks"), nlohmann::json(joined.blame.ranks));
  EXPECT_EQ(data.at("trace"), nlohmann::json::parse(TimelineJson(records, joined)));
}

}  // namespace
}  // namespace npumesh::testing
