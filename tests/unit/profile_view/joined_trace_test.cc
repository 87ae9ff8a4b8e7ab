// The trace, read back with a JSON parser.
#include "launch/profile/joined_trace.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "runtime/base/text/json.h"
#include "tests/unit/profile_view/profiles.h"

namespace npumesh::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

struct Written {
  TraceSummary summary;
  json trace;
  size_t longest_piece = 0;
};

Written MustWrite(const std::vector<RankProfile>& profiles, uint64_t most = kMostTraceBytes) {
  Written written;
  std::string text;
  const auto sink = [&](std::string_view piece) {
    text += piece;
    written.longest_piece = std::max(written.longest_piece, piece.size());
    return Status();
  };
  const Result<TraceSummary> summary =
      WriteTrace(profiles, CollectiveCalls(profiles), CommonClock(profiles), sink, most);
  EXPECT_TRUE(summary.ok());
  if (summary.ok()) written.summary = *summary;
  EXPECT_EQ(written.summary.bytes, text.size());
  written.trace = json::parse(text, nullptr, false);
  EXPECT_FALSE(written.trace.is_discarded());
  return written;
}

std::vector<json> EventsOf(const json& trace, const std::string& phase) {
  std::vector<json> events;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") == phase) events.push_back(event);
  }
  return events;
}

TEST(JoinedTraceTest, WaitingAndMovingAreTwoSlicesAndAnArrowLeadsFromTheLast) {
  std::vector<RankProfile> profiles = {ProfileOf(0, 2), ProfileOf(1, 2)};
  AddCollective(profiles[0], AddTask(profiles[0], "sum", "HcomAllReduce"), 5, 1000, 3000, 4500);
  AddCollective(profiles[1], AddTask(profiles[1], "sum", "HcomAllReduce"), 5, 2500, 3100, 4600);
  const json trace = MustWrite(profiles).trace;
  const std::vector<json> slices = EventsOf(trace, "X");
  ASSERT_EQ(slices.size(), 4u);
  EXPECT_EQ(slices[0].at("name"), "waiting: sum");
  EXPECT_EQ(slices[0].at("ts"), 0.0);
  EXPECT_EQ(slices[0].at("dur"), 2.0);
  EXPECT_EQ(slices[1].at("name"), "sum");
  EXPECT_EQ(slices[1].at("ts"), 2.0);
  EXPECT_EQ(slices[1].at("dur"), 1.5);
  EXPECT_EQ(slices[1].at("args").at("group"), "tp");
  EXPECT_EQ(slices[1].at("args").at("call"), 5);
  const std::vector<json> from = EventsOf(trace, "s");
  const std::vector<json> to = EventsOf(trace, "f");
  ASSERT_EQ(from.size(), 1u);
  ASSERT_EQ(to.size(), 1u);
  EXPECT_EQ(from[0].at("pid"), 1);
  EXPECT_EQ(from[0].at("ts"), 1.5);
  EXPECT_EQ(to[0].at("pid"), 0);
  EXPECT_EQ(to[0].at("ts"), 2.0);
  EXPECT_EQ(from[0].at("id"), to[0].at("id"));
}

TEST(JoinedTraceTest, RanksAreProcessesAndLanesThreads) {
  std::vector<RankProfile> profiles = {ProfileOf(0, 1)};
  AddOperator(profiles[0], AddTask(profiles[0], "add", "Add"), 0, 10);
  AddOperator(profiles[0], 0, 0, 10).lane = 7;
  Span& call = AddOperator(profiles[0], AddTask(profiles[0], "aclrtMalloc", ""), 1, 2);
  call.kind = SpanKind::kApi;
  call.lane = kHostLane;
  AddStep(profiles[0], 3, 0, 10);
  const json trace = MustWrite(profiles).trace;
  std::map<int, std::string> threads;
  for (const json& event : EventsOf(trace, "M")) {
    const std::string what = event.at("name");
    if (what == "process_name") {
      EXPECT_EQ(event["args"]["name"], "rank 0 (host-a)");
    }
    if (what == "thread_name") threads[event.at("tid")] = event["args"]["name"];
  }
  const std::map<int, std::string> expected = {
      {0, "steps"}, {1, "compute stream"}, {8, "stream 7"}, {kHostLane + 1, "host"}};
  EXPECT_EQ(threads, expected);
  EXPECT_EQ(EventsOf(trace, "X").back().at("name"), "step 3");
}

TEST(JoinedTraceTest, CountersHaveMemoryAndBytes) {
  std::vector<RankProfile> profiles = {ProfileOf(0, 1)};
  AddOperator(profiles[0], 0, 5, 5).kind = SpanKind::kMemory;
  profiles[0].spans[0].bytes = 4096;
  AddCollective(profiles[0], 0, 1, 10, 0, 20, 100);
  AddCollective(profiles[0], 0, 2, 30, 0, 40, 50);
  const std::vector<json> counters = EventsOf(MustWrite(profiles).trace, "C");
  ASSERT_EQ(counters.size(), 3u);
  EXPECT_EQ(counters[0].at("name"), "HBM in use");
  EXPECT_EQ(counters[0].at("args").at("bytes"), 4096);
  EXPECT_EQ(counters[1].at("args").at("bytes"), 100);
  EXPECT_EQ(counters[2].at("args").at("bytes"), 150);
}

TEST(JoinedTraceTest, ArrowsOfALikelyRunMeetTheirEnds) {
  const json trace = MustWrite(LikelyRun(4, 2000)).trace;
  std::map<uint64_t, double> from;
  for (const json& event : EventsOf(trace, "s")) from[event.at("id")] = event.at("ts");
  const std::vector<json> to = EventsOf(trace, "f");
  EXPECT_EQ(to.size(), from.size());
  EXPECT_EQ(to.size(), 3 * 35u);
  for (const json& event : to) {
    ASSERT_EQ(from.count(event.at("id")), 1u);
    EXPECT_GE(event.at("ts").get<double>(), from[event.at("id")]);
  }
}

TEST(JoinedTraceTest, WhatTheLimitHasNoRoomForIsCounted) {
  const std::vector<RankProfile> profiles = LikelyRun(4, 4000);
  size_t spans = 0;
  for (const RankProfile& profile : profiles) spans += profile.spans.size();
  const Written whole = MustWrite(profiles);
  EXPECT_EQ(whole.summary.left_out, 0u);
  EXPECT_EQ(whole.summary.spans, spans);
  const Written cut = MustWrite(profiles, 100'000);
  EXPECT_GT(cut.summary.left_out, 0u);
  EXPECT_EQ(cut.summary.left_out + cut.summary.spans, spans);
  EXPECT_LT(cut.summary.bytes, 110'000u);
  EXPECT_EQ(cut.trace.at("otherData").at("spans_left_out"), cut.summary.left_out);
  std::set<int> ranks;  // each has a share
  for (const json& event : EventsOf(cut.trace, "X")) ranks.insert(event.at("pid").get<int>());
  EXPECT_EQ(ranks.size(), 4u);
}

TEST(JoinedTraceTest, IsWrittenInPieces) {
  EXPECT_LT(MustWrite(LikelyRun(2, 30'000)).longest_piece, size_t{2} << 20);
}

TEST(JoinedTraceTest, AFullDiskIsAnError) {
  const std::vector<RankProfile> profiles = LikelyRun(2, 100);
  const auto sink = [](std::string_view) { return Error(Code::kIo, "no space"); };
  const Result<TraceSummary> summary =
      WriteTrace(profiles, CollectiveCalls(profiles), CommonClock(profiles), sink);
  ASSERT_FALSE(summary.ok());
  EXPECT_THAT(summary.status().ToString(), HasSubstr("no space"));
}

TEST(JoinedTraceTest, NamesThatAreNoUtf8DoNotSpoilIt) {
  std::vector<RankProfile> profiles = {ProfileOf(0, 1)};
  AddOperator(profiles[0], AddTask(profiles[0], "a\"\\\n\xff", "B\xfe"), 0, 10);
  EXPECT_EQ(EventsOf(MustWrite(profiles).trace, "X").size(), 1u);
}

}  // namespace
}  // namespace npumesh::testing
