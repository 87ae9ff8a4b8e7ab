// What the writer leaves in the file, read back by the reader.
#include "collectives/contract/flight_record.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/record/record_file.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/process/process_state.h"
#include "tests/unit/base/temporary_folder.h"

namespace npumesh {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CallFacts Facts(uint64_t call, std::string_view node = "attn") {
  return {CollectiveKind::kBroadcast, DataType::kBfloat16, ReduceOp::kMax, 1, 64, node, call};
}

RankRecord Read(const std::string& path) {
  const Result<std::string> bytes = ReadFile(path);
  EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
  Result<RankRecord> record = ParseRecord(*bytes, path);
  EXPECT_TRUE(record.ok()) << record.status().ToString();
  return *std::move(record);
}

TEST(FlightRecord, KeepsCallsAndGroups) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("records/rank_1.npr");
  {
    auto record = FlightRecord::Create(folder.Path("records"), {1, 4, 0}, 8);
    ASSERT_TRUE(record.ok()) << record.status().ToString();
    const std::vector<int> ranks = {3, 1};
    (*record)->OpenGroup({99, "tp", ranks, 1});
    flight::CallEntry* entry = (*record)->Begin(99, Facts(1), 1000);
    EXPECT_EQ(Read(path).calls[0].stage, flight::Stage::kEntered);
    FlightRecord::Arrived(entry, 2000);
    EXPECT_EQ(Read(path).calls[0].stage, flight::Stage::kRunning);
    FlightRecord::Departing(entry);
    EXPECT_EQ(Read(path).calls[0].stage, flight::Stage::kDeparting);
    FlightRecord::Done(entry, Code::kTimeout, 3000);
    EXPECT_EQ(Read(path).state, flight::State::kRunning);
    (*record)->OnShutdown();
    EXPECT_EQ(Read(path).state, flight::State::kShutDown);
  }
  const RankRecord record = Read(path);
  EXPECT_EQ(record.state, flight::State::kShutDown);
  EXPECT_EQ(record.rank, 1);
  EXPECT_EQ(record.world_size, 4);
  EXPECT_EQ(record.process, getpid());
  EXPECT_EQ(record.boot_id.size(), 36u);
  ASSERT_EQ(record.groups.size(), 1u);
  EXPECT_EQ(record.groups[0].name, "tp");
  EXPECT_EQ(record.groups[0].members, "1,3");
  EXPECT_EQ(record.groups[0].size, 2u);
  EXPECT_EQ(record.groups[0].group_rank, 1);
  ASSERT_EQ(record.calls.size(), 1u);
  const RecordedCall& call = record.calls[0];
  EXPECT_EQ(call.group, 99u);
  EXPECT_EQ(call.kind, CollectiveKind::kBroadcast);
  EXPECT_EQ(call.dtype, static_cast<int>(DataType::kBfloat16));
  EXPECT_EQ(call.op, static_cast<uint32_t>(ReduceOp::kMax));
  EXPECT_EQ(call.root, 1);
  EXPECT_EQ(call.count, 64u);
  EXPECT_EQ(call.node, "attn");
  EXPECT_EQ(call.status, Code::kTimeout);
  EXPECT_EQ(std::vector<int64_t>({call.entered_ns, call.arrived_ns, call.done_ns}),
            std::vector<int64_t>({1000, 2000, 3000}));
}

TEST(FlightRecord, KeepsTheLastNotices) {
  const TemporaryFolder folder;
  const auto record = FlightRecord::Create(folder.path(), {0, 9, 0, std::chrono::seconds(10)}, 4);
  ASSERT_TRUE(record.ok());
  constexpr int kNotices = FlightRecord::kNoticeCapacity + 3;
  for (int i = 1; i <= kNotices; ++i) {
    const bool last = i == kNotices;
    (*record)->Note({last,
                     last ? WaitReason::kCircle : WaitReason::kLate,
                     {1, 2, 3, 8},
                     99,
                     5,
                     std::chrono::seconds(i),
                     std::string(2000, 'a')},
                    i);
  }
  const RankRecord read = Read(folder.Path("rank_0.npr"));
  EXPECT_EQ(read.soft_timeout_ns, 10'000'000'000);
  EXPECT_EQ(read.process_start, ProcessStart(getpid()));
  EXPECT_EQ(read.process_space, ProcessSpace());
  ASSERT_EQ(read.notices.size(), FlightRecord::kNoticeCapacity);
  EXPECT_EQ(read.forgotten_notices, 3u);
  EXPECT_EQ(read.notices.front().time_ns, 4);
  const WaitNotice& last = read.notices.back().notice;
  EXPECT_TRUE(last.gave_up);
  EXPECT_EQ(last.reason, WaitReason::kCircle);
  EXPECT_THAT(last.ranks, ElementsAre(1, 2, 3, 8));
  EXPECT_EQ(last.waited, std::chrono::seconds(kNotices));
  EXPECT_EQ(last.text, std::string(639, 'a'));
}

TEST(FlightRecord, TheRingForgetsTheOldestButNoOpenCall) {
  const TemporaryFolder folder;
  const auto record = FlightRecord::Create(folder.path(), {0, 1, 0}, 4);
  ASSERT_TRUE(record.ok());
  (*record)->Begin(99, Facts(100), 1);
  for (uint64_t call = 1; call <= 9; ++call) {
    FlightRecord::Done((*record)->Begin(99, Facts(call), 1), Code::kOk, 2);
  }
  std::vector<uint64_t> calls;
  for (const RecordedCall& call : Read(folder.Path("rank_0.npr")).calls) calls.push_back(call.call);
  EXPECT_THAT(calls, ElementsAre(100, 7, 8, 9));
}

TEST(FlightRecord, PermissionsAndLinks) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("new/rank_0.npr");
  ASSERT_TRUE(FlightRecord::Create(folder.Path("new"), {}).ok());
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777 & ~0640u, 0u);
  ASSERT_EQ(stat(folder.Path("new").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777 & ~0750u, 0u);
  EXPECT_EQ(Read(path).state, flight::State::kAbandoned);
  EXPECT_TRUE(FlightRecord::Create(folder.Path("new"), {}).ok()) << "an earlier record is replaced";

  ASSERT_EQ(unlink(path.c_str()), 0);
  ASSERT_EQ(symlink("/dev/null", path.c_str()), 0);
  const Status link = FlightRecord::Create(folder.Path("new"), {}).status();
  EXPECT_EQ(link.code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(link.message()), HasSubstr("it is a symbolic link"));
  ASSERT_EQ(symlink("new", folder.Path("alias").c_str()), 0);
  EXPECT_EQ(FlightRecord::Create(folder.Path("alias"), {}).status().code(), Code::kInvalidArgument);
}

TEST(FlightRecord, NothingIsLeftBesideIt) {
  const TemporaryFolder folder;
  ASSERT_TRUE(FlightRecord::Create(folder.path(), {}).ok());
  EXPECT_THAT(folder.List(), ElementsAre("rank_0.npr"));
}

TEST(FlightRecord, FingerprintsDifferWhereCallsDo) {
  const TemporaryFolder folder;
  const auto record = FlightRecord::Create(folder.path(), {}, 16);
  ASSERT_TRUE(record.ok());
  const std::string name(200, 'a');
  CallFacts other = Facts(1);
  other.count = 65;
  (*record)->Begin(1, Facts(1), 1);
  (*record)->Begin(1, Facts(1, "attn_3"), 1);
  (*record)->Begin(1, other, 1);
  (*record)->Begin(1, Facts(1, name), 1);
  (*record)->Begin(1, Facts(1, name + "b"), 1);
  const auto calls = Read(folder.Path("rank_0.npr")).calls;
  EXPECT_EQ(calls[0].fingerprint, calls[1].fingerprint);
  EXPECT_NE(calls[0].fingerprint, calls[2].fingerprint);
  EXPECT_EQ(calls[3].node, calls[4].node) << "cut alike";
  EXPECT_NE(calls[3].fingerprint, calls[4].fingerprint);
}

TEST(FlightRecord, SurvivesSigkill) {
  const TemporaryFolder folder;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto record = FlightRecord::Create(folder.path(), {0, 2, 0});
    if (!record.ok()) _exit(1);
    for (uint64_t call = 1; call <= 100; ++call) {
      flight::CallEntry* entry = (*record)->Begin(99, Facts(call), 1);
      FlightRecord::Arrived(entry, 2);
      if (call < 100) FlightRecord::Done(entry, Code::kOk, 3);
    }
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const RankRecord record = Read(folder.Path("rank_0.npr"));
  EXPECT_EQ(record.state, flight::State::kRunning);
  EXPECT_EQ(record.process, child);
  ASSERT_EQ(record.calls.size(), 100u);
  EXPECT_EQ(record.calls[99].call, 100u);
  EXPECT_EQ(record.calls[99].stage, flight::Stage::kRunning);
}

}  // namespace
}  // namespace npumesh
