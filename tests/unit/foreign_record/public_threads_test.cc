// Logs rebuilt after public threads: the rank that was at fault, and why.
#include <gmock/gmock.h>

#include "launch/record/foreign/plog.h"
#include "launch/record/foreign/ras_report.h"
#include "launch/record/foreign/torch_record.h"
#include "launch/record/record_join.h"

namespace npumesh::testing {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Verdict {
  std::vector<int> ranks;
  Cause cause = Cause::kNone;
  std::string text;
  bool good = false;
};

Verdict VerdictOf(const std::vector<RankRecord>& records) {
  const Result<Joined> joined = Join(records);
  EXPECT_TRUE(joined.ok());
  return {joined->blame.ranks, joined->blame.cause, JoinedText(records, *joined),
          joined->problems.empty()};
}

Verdict OfPlog(const std::string& text) {
  EXPECT_TRUE(LooksLikePlog(text));
  PlogReader reader;
  reader.Read(text, "node0/plog/log");
  return VerdictOf(PlogRecords(reader.facts(), "node0"));
}

Verdict OfRas(const std::string& text) {
  const Result<RasReport> report = ReadRasText(text, "report.txt");
  EXPECT_TRUE(report.ok());
  return VerdictOf(RasRecords(*report, nullptr, "report.txt"));
}

std::string Timeout(int process, std::string_view tag, std::string_view group, int size, int rank) {
  return fmt::format(
      "EI0002: [PID: {}] 2025-03-26-13:49:01.670.614 The wait execution of the Notify register "
      "times out. Reason: The "
      "Notify register has not received the Notify record from remote rank: [unknown]. base "
      "information: "
      "[streamID:[293579240], taskID[9865], tag[{}_{}], AlgType(level "
      "0-1-2):[fullmesh-H-D-ring].]. task information: "
      "[]. group information: [group:[{}], user define information[], rankSize[{}], rankId[{}].]\n",
      process, tag, group, group, size, rank);
}

std::string StandsStill(int process, std::string_view place, int count) {
  return fmt::format(
      "[INFO] HCCL({},):2026-05-11-03:12:39.562.508 [heartbeat.cc:1616] [5816][HCCL_TRACE]rank:{}, "
      "count of currently "
      "executed operators:{}\n",
      process, place, count);
}

// lmdeploy 3354: eight ranks give up in one broadcast; the heartbeat of device 6 is stuck.
TEST(PublicThreads, OneStuckDeviceAmongEightThatTimeOut) {
  std::string text;
  for (int rank = 0; rank < 8; ++rank) {
    text += fmt::format(
        "[INFO] HCCL({},python):2025-03-26-13:00:00.000.000 [heartbeat.cc:951] [1][TaskExecStage]"
        "[HeartbeatAbnormal]local rank [172.16.38.219/{}]: crimer rank [172.16.38.219/6] "
        "status[STUCK] by informer rank [172.16.38.219/6]\n",
        900 + rank, rank);
    text +=
        Timeout(900 + rank, "Broadcast", "172.16.38.219%eth0_60000_0_1742963775856197", 8, rank);
  }
  const Verdict verdict = OfPlog(text);
  EXPECT_THAT(verdict.ranks, ElementsAre(6)) << verdict.text;
  EXPECT_EQ(verdict.cause, Cause::kStopped);
}

// vllm-ascend 13482: four ranks of a tensor-parallel group time out; what they print at that moment
// is where the heartbeat has found a process or a task stuck.
TEST(PublicThreads, TheExceptionLocationIsTheStuckRank) {
  std::string text;
  for (int rank = 0; rank < 4; ++rank) {
    const std::string front = fmt::format(
        "[ERROR] HCCL({},):2026-08-04-06:53:21.443.429 [task_exception_handler.cc:31] [3154]",
        2814 + rank);
    text += fmt::format(
        "[INFO] HCCL({},):2026-08-04-06:50:00.000.000 [heartbeat.cc:1616] [5816][HCCL_TRACE]rank:"
        "192.168.0.15/{}, count of currently executed operators:1338\n",
        2814 + rank, 4 + rank);
    text += front +
            "[TaskExecStage][Timeout][AICPU]Task run failed, para information is notify "
            "id:[0x29f], stage:[0], remote rank:[local], tag[AllGather_group_name_5].\n";
    text +=
        front + fmt::format(
                    "[TaskExecStage][Timeout][AICPU]Task run failed, groupRank information is "
                    "group:[group_name_5], user define information[tp], rankSize[4], rankId[{}], "
                    "tag[AllGather_group_name_5].\n",
                    rank);
    text += front +
            "[TaskExecStage][HeartbeatAbnormal]Cluster Exception Location[IP/ID]:[192.168.0.15/6], "
            "Arrival Time:[Tue Aug  4 06:51:57 2026], ExceptionType:[Stuck Occurred], Possible "
            "Reason:1.Host process is stuck, 2.Device task is stuck\n";
  }
  const Verdict verdict = OfPlog(text);
  EXPECT_THAT(verdict.ranks, ElementsAre(2)) << verdict.text;
  EXPECT_EQ(verdict.cause, Cause::kStopped);
}

// vllm-ascend 8975: all ranks of two nodes stand still after 2706 operators.
TEST(PublicThreads, AllRanksInOneCallBlameNone) {
  std::string text;
  for (int rank = 0; rank < 32; ++rank) {
    text +=
        StandsStill(100 + rank, fmt::format("10.119.14.{}/{}", 222 + rank / 16, rank % 16), 2706);
  }
  const Verdict verdict = OfPlog(text);
  EXPECT_THAT(verdict.ranks, IsEmpty()) << verdict.text;
  EXPECT_THAT(verdict.text, HasSubstr("all members are in call 2707 and none has left it"));
}

// After vllm-ascend 11172, with one rank behind.
TEST(PublicThreads, TheRankWithFewerOperatorsIsBehind) {
  std::string text;
  for (int rank = 0; rank < 8; ++rank) {
    text += StandsStill(100 + rank, fmt::format("172.18.1.121/{}", rank),
                        rank == 5 ? 214337458 : 214337459);
  }
  const Verdict verdict = OfPlog(text);
  EXPECT_THAT(verdict.ranks, ElementsAre(5)) << verdict.text;
}

// vllm-ascend 10591: rank 7 of 16 cannot connect to rank 15.
TEST(PublicThreads, ALinkThatIsNotMade) {
  std::string text;
  for (int rank = 0; rank < 15; ++rank) {
    text += fmt::format(
        "[INFO] HCCL({},):2026-06-17-02:00:00.000.000 [op_base.cc:1] "
        "[1]Entry-HcclCommInitRootInfoInner:"
        "ranks[16], rank[{}], rootinfo: host ip[80.5.5.39] port[60000] identifier[group_name_119], "
        "deviceLogicId[0]\n",
        80805 + rank, rank);
  }
  text +=
      "[ERROR] HCCL(80812,):2026-06-17-02:21:43.853.333 [transport_manager.cc:954] "
      "[86231][InitChannelStage]"
      "[RunFailed]Transport init error! createLink "
      "para:rank[7]-localUserrank[7]-localIpAddr[80.5.5.39/7], "
      "remoteRank[15]-remoteUserrank[15]-remoteIpAddr[80.5.5.67/7], machineType[0], linkMode[1], "
      "isUsedRdma[1], "
      "tag[AllGather_group_name_119]\n";
  const Verdict verdict = OfPlog(text);
  EXPECT_THAT(verdict.ranks, ElementsAre(15)) << verdict.text;
  EXPECT_EQ(verdict.cause, Cause::kMissing);
}

// hcomm's page on EI0002: rank 1 is in another operator.
TEST(PublicThreads, AnotherOperatorOnOneRank) {
  std::string text;
  for (int rank = 0; rank < 4; ++rank) {
    text += Timeout(2111665 + rank, rank == 1 ? "AllGather" : "AllReduce",
                    "127.10.0.1%enp_60000_0_1761275812718970", 4, rank);
  }
  const Verdict verdict = OfPlog(text);
  EXPECT_THAT(verdict.ranks, ElementsAre(1)) << verdict.text;
  EXPECT_EQ(verdict.cause, Cause::kMismatch);
}

// hcomm's page on the heartbeat: a process that has gone.
TEST(PublicThreads, AHeartbeatThatIsLost) {
  std::string text;
  for (int rank = 0; rank < 3; ++rank) {
    text += fmt::format(
        "[INFO] HCCL({},python):2025-10-23-07:52:59.191.363 [heartbeat.cc:951] "
        "[8970][TaskExecStage]"
        "[HeartbeatAbnormal]local rank [127.10.0.1/{}]: crimer rank [127.10.0.1/3] status[LOST] by "
        "informer rank [127.10.0.1/2]\n",
        686 + rank, rank);
  }
  const Verdict verdict = OfPlog(text);
  EXPECT_THAT(verdict.ranks, ElementsAre(3)) << verdict.text;
  EXPECT_EQ(verdict.cause, Cause::kEnded);
}

constexpr std::string_view kRasFront =
    "NCCL version 2.26.2 compiled with CUDA 12.6\nCUDA runtime version 12060, driver version "
    "12060\n\nJob summary\n"
    "===========\n\nCommunicators... (0.00s)\n=============\n\n"
    "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
    "    #  in group  per comm  per node  per comm  in group\n";

// nccl 1911: 30 of 32 ranks are an AllGather behind two.
TEST(PublicThreads, ThirtyRanksBehindTwo) {
  const Verdict verdict = OfRas(
      std::string(kRasFront) +
      "    0         1         4         8        32        32   RUNNING  "
      "MISMATCH\n\nErrors\n======\n\nWarnings\n"
      "========\n\n#0-0 (fa93daea854b060b) MISMATCH\n  Communicator ranks have different AllGather "
      "operation counts\n"
      "  30 ranks have launched up to operation 640\n  2 ranks have launched up to operation 641\n"
      "  Rank 12 -- GPU 4 managed by process 323032 on node 10.137.190.124\n"
      "  Rank 13 -- GPU 5 managed by process 323033 on node 10.137.190.124\n\n");
  EXPECT_EQ(verdict.ranks.size(), 30u) << verdict.text;
  EXPECT_THAT(verdict.text, HasSubstr("ranks 0-11,14-31 are at call 640, 1 behind ranks 12-13"));
}

// nccl 1730: RAS finds nothing.
TEST(PublicThreads, AHealthyReportRaisesNoAlarm) {
  const Verdict verdict = OfRas(std::string(kRasFront) +
                                "    0         1        32         8       256       256   RUNNING "
                                "     OK\n\nErrors\n======\n\nWarnings\n========\n\n");
  EXPECT_TRUE(verdict.good) << verdict.text;
}

json TorchEntry(uint64_t number, std::string_view name, uint64_t in, uint64_t out,
                std::string_view state) {
  return {{"record_id", number - 1},
          {"process_group", {"0", "default_pg"}},
          {"collective_seq_id", number},
          {"profiling_name", name},
          {"time_created_ns", 1000 + number},
          {"input_sizes", json::array({json::array({in})})},
          {"input_dtypes", {"Float"}},
          {"output_sizes", json::array({json::array({out})})},
          {"output_dtypes", {"Float"}},
          {"state", state},
          {"time_discovered_started_ns", 0},
          {"time_discovered_completed_ns", 0},
          {"is_p2p", false}};
}

Verdict OfTorch(const std::vector<json>& entries) {
  std::vector<RankRecord> records;
  std::string ranks = "0";
  for (size_t rank = 1; rank < entries.size(); ++rank) ranks += fmt::format(", {}", rank);
  for (size_t rank = 0; rank < entries.size(); ++rank) {
    const json dump = {
        {"version", "2.10"},
        {"entries", entries[rank]},
        {"pg_config",
         {{"0", {{"name", "0"}, {"desc", "default_pg"}, {"ranks", "[" + ranks + "]"}}}}}};
    const Result<RankRecord> record = TorchRecord(dump, static_cast<int>(rank), "trace");
    EXPECT_TRUE(record.ok());
    records.push_back(*record);
  }
  AlignTorchRecords(records);
  return VerdictOf(records);
}

// DeepSeek-v4-Flash-DSpark 117: rank 1 has called what rank 0 has not.
TEST(PublicThreads, ARankThatDidNotCallTheGather) {
  const json done = TorchEntry(1, "nccl:all_reduce", 8, 8, "completed");
  const Verdict verdict =
      OfTorch({json::array({done}),
               json::array({done, TorchEntry(2, "nccl:_all_gather_base", 8, 16, "scheduled")})});
  EXPECT_THAT(verdict.ranks, ElementsAre(0)) << verdict.text;
  EXPECT_EQ(verdict.cause, Cause::kMissing);
}

// LlamaFactory 7396: all ranks give up in allreduce 1580, behind which two more are queued.
TEST(PublicThreads, AllRanksInOneAllreduceOfTorchBlameNone) {
  std::vector<json> entries;
  for (int rank = 0; rank < 8; ++rank) {
    entries.push_back(
        json::array({TorchEntry(1579, "nccl:all_reduce", 466119168, 466119168, "completed"),
                     TorchEntry(1580, "nccl:all_reduce", 466119168, 466119168, "started"),
                     TorchEntry(1581, "nccl:all_reduce", 466119168, 466119168, "scheduled"),
                     TorchEntry(1582, "nccl:all_reduce", 8192, 8192, "scheduled")}));
  }
  const Verdict verdict = OfTorch(entries);
  EXPECT_THAT(verdict.ranks, IsEmpty()) << verdict.text;
  EXPECT_FALSE(verdict.good);
  EXPECT_THAT(verdict.text, HasSubstr("all members are in call 1580 and none has left it"));
}

// nccl 1610: what the ranks of an exchange hand in is not what they expect.
TEST(PublicThreads, AnExchangeThatDoesNotAddUp) {
  const Verdict verdict =
      OfTorch({json::array({TorchEntry(1, "nccl:all_to_all", 1379328, 1572864, "scheduled")}),
               json::array({TorchEntry(1, "nccl:all_to_all", 1379328, 1379328, "scheduled")})});
  EXPECT_EQ(verdict.cause, Cause::kMismatch) << verdict.text;
  EXPECT_THAT(verdict.text, HasSubstr("does not fit"));
}

}  // namespace
}  // namespace npumesh::testing
