// Reading records: what is refused, and what is said about it.
#include "launch/record/record_file.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstring>

#include "runtime/base/files/secure_file.h"
#include "runtime/base/process/host_name.h"
#include "runtime/base/process/process_state.h"
#include "tests/unit/base/temporary_folder.h"
#include "tests/unit/record/records.h"

namespace npumesh::testing {
namespace {

using ::testing::HasSubstr;

RankRecord SmallRecord() {
  RankRecord record = RecordOf(1, 2);
  AddGroup(record, kTp, "tp", "0-1");
  AddCall(record, kTp, 1, 5000);
  AddCall(record, kTp, 2, 6000);
  record.soft_timeout_ns = 10;
  record.notices.push_back({7000,
                            {true,
                             WaitReason::kStopped,
                             {0, 1},
                             kTp,
                             2,
                             std::chrono::seconds(12),
                             "rank 1 has waited"}});
  return record;
}

template <typename T>
std::string With(std::string bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
  return bytes;
}

TEST(RecordFile, ReadsWhatWasWritten) {
  const Result<RankRecord> record = ParseRecord(ToBytes(SmallRecord()), "r");
  ASSERT_TRUE(record.ok()) << record.status().ToString();
  EXPECT_EQ(record->rank, 1);
  EXPECT_EQ(record->world_size, 2);
  EXPECT_EQ(record->process, 101);
  EXPECT_EQ(record->state, flight::State::kShutDown);
  EXPECT_EQ(record->host, "h");
  ASSERT_EQ(record->groups.size(), 1u);
  EXPECT_EQ(record->groups[0].name, "tp");
  EXPECT_EQ(record->groups[0].members, "0-1");
  ASSERT_EQ(record->calls.size(), 2u);
  EXPECT_EQ(record->calls[1].call, 2u);
  EXPECT_EQ(record->calls[1].entered_ns, 6000);
  EXPECT_EQ(record->calls[1].node, "attn");
  EXPECT_EQ(record->damaged, 0u);
  EXPECT_EQ(record->soft_timeout_ns, 10);
  ASSERT_EQ(record->notices.size(), 1u);
  EXPECT_EQ(record->notices[0].time_ns, 7000);
  const WaitNotice& notice = record->notices[0].notice;
  EXPECT_TRUE(notice.gave_up);
  EXPECT_EQ(notice.reason, WaitReason::kStopped);
  EXPECT_THAT(notice.ranks, ::testing::ElementsAre(0, 1));
  EXPECT_EQ(notice.group, kTp);
  EXPECT_EQ(notice.call, 2u);
  EXPECT_EQ(notice.waited, std::chrono::seconds(12));
  EXPECT_EQ(notice.text, "rank 1 has waited");
}

// Version 1 has no notices, and zeros where the header tells of them.
TEST(RecordFile, ReadsVersionOne) {
  using flight::RecordHeader;
  const std::string now = ToBytes(SmallRecord());
  std::string old = now.substr(0, now.size() - 4 * sizeof(flight::NoticeEntry));
  std::memset(old.data() + offsetof(RecordHeader, notice_bytes), 0,
              sizeof(RecordHeader) - offsetof(RecordHeader, notice_bytes));
  old = With(old, offsetof(RecordHeader, version), 1u);
  const Result<RankRecord> record = ParseRecord(old, "r");
  ASSERT_TRUE(record.ok()) << record.status().ToString();
  EXPECT_EQ(record->calls.size(), 2u);
  EXPECT_TRUE(record->notices.empty());
  EXPECT_FALSE(ParseRecord(With(now, offsetof(RecordHeader, version), 1u), "r").ok());
}

TEST(RecordFile, RefusesWhatItCannotRead) {
  using flight::RecordHeader;
  const std::string good = ToBytes(SmallRecord());
  struct Case {
    const char* name;
    std::string bytes;
    const char* said;
  };
  const Case cases[] = {
      {"empty", "", "it has 0 bytes, expected at least 512"},
      {"magic", With(good, 0, 'x'), "does not begin as a flight record does"},
      {"byte order", With(good, offsetof(RecordHeader, byte_order), 0x04030201u),
       "byte order of another machine"},
      {"version", With(good, offsetof(RecordHeader, version), 3u),
       "it has version 3, this npumesh reads 1 to 2"},
      {"size of notices", With(good, offsetof(RecordHeader, notice_bytes), 700u),
       "it states notices of 700 bytes, expected 768"},
      {"too many notices", With(good, offsetof(RecordHeader, notice_capacity), ~0u),
       "16 calls and 4294967295 notices"},
      {"parts", With(good, offsetof(RecordHeader, entry_bytes), 200u), "512, 256 and 200 bytes"},
      {"no room", With(good, offsetof(RecordHeader, call_capacity), uint64_t{0}),
       "room for 16 groups, 0 calls and 4 notices"},
      {"too much room", With(good, offsetof(RecordHeader, call_capacity), ~uint64_t{0}),
       "room for 16 groups, 18446744073709551615 calls and 4 notices"},
      {"cut", good.substr(0, good.size() - 1), "was it copied whole?"},
      {"rank", With(good, offsetof(RecordHeader, rank), 2), "it states rank 2 of 2"},
      {"state", With(good, offsetof(RecordHeader, state), 9u), "it states 9 as its end"},
      {"time", With(good, offsetof(RecordHeader, start_realtime_ns), int64_t{-1}),
       "it states -1 ns as a time"},
  };
  for (const Case& each : cases) {
    const Result<RankRecord> record = ParseRecord(each.bytes, "dir/rank_1.npr");
    ASSERT_FALSE(record.ok()) << each.name;
    EXPECT_EQ(record.status().code(), Code::kCorrupt) << each.name;
    EXPECT_THAT(std::string(record.status().message()), HasSubstr("dir/rank_1.npr")) << each.name;
    EXPECT_THAT(std::string(record.status().message()), HasSubstr(each.said)) << each.name;
  }
}

TEST(RecordFile, LeavesOutEntriesThatMakeNoSense) {
  const size_t first = sizeof(flight::RecordHeader) + 16 * sizeof(flight::GroupRow);
  const std::string good = ToBytes(SmallRecord());
  const auto torn = ParseRecord(With(good, first, uint64_t{0}), "r");
  EXPECT_EQ(torn->calls.size(), 1u);
  EXPECT_EQ(torn->damaged, 0u);
  for (const auto& [field, value] :
       {std::pair<size_t, uint64_t>{offsetof(flight::CallEntry, sequence), 2},
        {offsetof(flight::CallEntry, sequence), 17},
        {offsetof(flight::CallEntry, stage), 5},
        {offsetof(flight::CallEntry, entered_ns), ~uint64_t{0}}}) {
    const auto record = ParseRecord(With(good, first + field, value), "r");
    ASSERT_TRUE(record.ok());
    EXPECT_EQ(record->calls.size(), 1u);
    EXPECT_EQ(record->damaged, 1u);
  }
}

TEST(RecordFile, LeavesOutNoticesThatMakeNoSense) {
  const std::string good = ToBytes(SmallRecord());
  const size_t first = good.size() - 4 * sizeof(flight::NoticeEntry);
  const auto with = [&](size_t field, auto value) {
    return *ParseRecord(With(good, first + field, value), "r");
  };
  EXPECT_EQ(with(offsetof(flight::NoticeEntry, sequence), uint64_t{0}).damaged, 0u);
  EXPECT_EQ(with(offsetof(flight::NoticeEntry, sequence), uint64_t{5}).damaged, 1u);
  EXPECT_EQ(with(offsetof(flight::NoticeEntry, reason), 0u).damaged, 1u);
  EXPECT_EQ(with(offsetof(flight::NoticeEntry, reason), 5u).damaged, 1u);
  EXPECT_EQ(with(offsetof(flight::NoticeEntry, gave_up), 2u).damaged, 1u);
  EXPECT_EQ(with(offsetof(flight::NoticeEntry, time_ns), int64_t{-1}).damaged, 1u);
  // A strange list of ranks names none.
  EXPECT_TRUE(with(offsetof(flight::NoticeEntry, ranks), '?').notices[0].notice.ranks.empty());
}

TEST(RanksIn, TakesListsOfRanksBelowTheSize) {
  EXPECT_THAT(RanksIn("0-2,5", 6), ::testing::ElementsAre(0, 1, 2, 5));
  EXPECT_THAT(RanksIn("0-2,5", 5), ::testing::IsEmpty());
  EXPECT_THAT(RanksIn("3,1", 5), ::testing::IsEmpty());
  EXPECT_THAT(RanksIn("1-", 5), ::testing::ElementsAre());
  EXPECT_THAT(RanksIn("", 5), ::testing::IsEmpty());
}

TEST(FateOf, KnowsTheProcessesOfThisHostOnly) {
  RankRecord record = SmallRecord();
  record.state = flight::State::kRunning;
  EXPECT_EQ(FateOf(record), ProcessFate::kUnknown);
  record.boot_id = BootId();
  record.process = getpid();
  record.process_start = ProcessStart(getpid());
  record.process_space = ProcessSpace();
  EXPECT_EQ(FateOf(record), ProcessFate::kRunning);
  ++record.process_start;  // its number has been given to another process
  EXPECT_EQ(FateOf(record), ProcessFate::kGone);
  ++record.process_space;
  EXPECT_EQ(FateOf(record), ProcessFate::kUnknown);
  record.process_space = ProcessSpace();
  record.state = flight::State::kShutDown;
  EXPECT_EQ(FateOf(record), ProcessFate::kUnknown);
}

TEST(RecordFile, TextIsMadePrintable) {
  RankRecord record = SmallRecord();
  record.calls[0].node = "a\x1b[31m\n";
  EXPECT_EQ(ParseRecord(ToBytes(record), "r")->calls[0].node, "a?[31m?");
}

TEST(ReadRecords, TakesAllOfAFolder) {
  const TemporaryFolder folder;
  EXPECT_EQ(ReadRecords(folder.Path("none")).status().code(), Code::kNotFound);
  EXPECT_THAT(std::string(ReadRecords(folder.path()).status().message()),
              HasSubstr("has no rank_<R>.npr; start the ranks with NPUMESH_RECORD"));
  ASSERT_TRUE(WriteFile(folder.Path("notes.txt"), "x", FileKind::kData).ok());
  ASSERT_TRUE(WriteFile(folder.Path("rank_01.npr"), "x", FileKind::kData).ok());
  ASSERT_TRUE(WriteFile(folder.Path("rank_1.npr"), ToBytes(SmallRecord()), FileKind::kData).ok());
  const auto records = ReadRecords(folder.path());
  ASSERT_TRUE(records.ok()) << records.status().ToString();
  EXPECT_EQ(records->size(), 1u);
  ASSERT_TRUE(WriteFile(folder.Path("rank_0.npr"), ToBytes(SmallRecord()), FileKind::kData).ok());
  EXPECT_THAT(std::string(ReadRecords(folder.path()).status().message()),
              HasSubstr("rank_0.npr is the record of rank 1; was it renamed?"));
}

}  // namespace
}  // namespace npumesh::testing
