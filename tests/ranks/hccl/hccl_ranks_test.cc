// Ring 2: the C interface, a device for each thread.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "hccl/hccl.h"
#include "hccl/hccl_sym_win.h"

namespace {

using testing::HasSubstr;

constexpr uint32_t kRanks = 4;
constexpr uint64_t kCount = 16;

struct Rank {
  uint32_t rank = 0;
  HcclComm comm = nullptr;
  aclrtStream stream = nullptr;
  float* send = nullptr;
  float* recv = nullptr;
};

class HcclRanks : public testing::Test {
 protected:
  static void SetUpTestSuite() { ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS); }
  static void TearDownTestSuite() { EXPECT_EQ(aclFinalize(), ACL_SUCCESS); }

  static HcclResult Destroy(const Rank& me) { return HcclCommDestroy(me.comm); }

  // Runs `body` on every rank of a communicator; `rank_of_device` says who is who. `end` gives the
  // communicator back.
  static void OnRanks(const std::vector<uint32_t>& rank_of_device,
                      const std::function<void(const Rank&)>& body,
                      const std::function<HcclResult(const Rank&)>& end = Destroy) {
    HcclRootInfo root;
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    ASSERT_EQ(HcclGetRootInfo(&root), HCCL_SUCCESS);
    std::vector<std::thread> threads;
    for (uint32_t device = 0; device < rank_of_device.size(); ++device) {
      threads.emplace_back([&, device] {
        ASSERT_EQ(aclrtSetDevice(static_cast<int32_t>(device)), ACL_SUCCESS);
        Rank me;
        me.rank = rank_of_device[device];
        const auto ranks = static_cast<uint32_t>(rank_of_device.size());
        ASSERT_EQ(HcclCommInitRootInfo(ranks, &root, me.rank, &me.comm), HCCL_SUCCESS);
        ASSERT_EQ(aclrtCreateStream(&me.stream), ACL_SUCCESS);
        me.send = Allocate();
        me.recv = Allocate();
        body(me);
        EXPECT_EQ(end(me), HCCL_SUCCESS);
        aclrtDestroyStream(me.stream);
        aclrtFree(me.send);
        aclrtFree(me.recv);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  static float* Allocate() {
    void* block = nullptr;
    EXPECT_EQ(aclrtMalloc(&block, kCount * kRanks * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST),
              ACL_SUCCESS);
    return static_cast<float*>(block);
  }
};

TEST_F(HcclRanks, ArgumentsAreCheckedInTheDocumentedOrder) {
  OnRanks({0}, [](const Rank& me) {
    const auto all_reduce = [&](uint64_t count, int dtype, int op, HcclComm comm,
                                aclrtStream stream, void* recv) {
      return HcclAllReduce(me.send, recv, count, static_cast<HcclDataType>(dtype),
                           static_cast<HcclReduceOp>(op), comm, stream);
    };
    constexpr uint64_t kTooMany = 0x800000000;
    constexpr int kInt16 = HCCL_DATA_TYPE_INT16;
    constexpr int kUint8 = HCCL_DATA_TYPE_UINT8;
    constexpr int kFp32 = HCCL_DATA_TYPE_FP32;
    int nothing = 0;
    void* const no_comm = &nothing;
    EXPECT_EQ(all_reduce(0, 99, 99, nullptr, nullptr, nullptr), HCCL_SUCCESS);
    EXPECT_EQ(all_reduce(kTooMany, 99, 99, nullptr, me.stream, me.recv), HCCL_E_PTR);
    EXPECT_EQ(all_reduce(kTooMany, 99, 99, me.comm, nullptr, me.recv), HCCL_E_PTR);
    EXPECT_EQ(all_reduce(kTooMany, 99, 99, me.comm, me.stream, nullptr), HCCL_E_PTR);
    EXPECT_EQ(all_reduce(kTooMany, 99, 99, me.comm, me.stream, me.recv), HCCL_E_PARA);
    EXPECT_EQ(all_reduce(1, 13, 0, me.comm, me.stream, me.recv), HCCL_E_NOT_SUPPORT);
    EXPECT_EQ(all_reduce(1, kUint8, 0, me.comm, me.stream, me.recv), HCCL_E_NOT_SUPPORT);
    EXPECT_EQ(all_reduce(1, kFp32, 4, me.comm, me.stream, me.recv), HCCL_E_NOT_SUPPORT);
    EXPECT_EQ(all_reduce(1, kInt16, 1, me.comm, me.stream, me.recv), HCCL_E_NOT_SUPPORT);
    EXPECT_EQ(all_reduce(1, kFp32, 0, no_comm, me.stream, me.recv), HCCL_E_PARA);
    float on_host = 0;
    EXPECT_EQ(all_reduce(1, kFp32, 0, me.comm, me.stream, &on_host), HCCL_E_PARA);
    EXPECT_THAT(std::string(aclGetRecentErrMsg()), HasSubstr("not in the memory of this device"));
    EXPECT_EQ(aclrtSynchronizeStream(me.stream), ACL_SUCCESS);
  });
}

// The memory behind a block is another's.
TEST_F(HcclRanks, OperatorsStayInTheirBlocks) {
  OnRanks({0, 1}, [](const Rank& me) {
    constexpr uint64_t kFloats = kCount * kRanks;  // in a block, of 512 bytes
    const auto fp32 = HCCL_DATA_TYPE_FP32;
    std::fill_n(me.recv, kFloats, 5.0f);
    EXPECT_EQ(
        HcclAllReduce(me.send, me.recv, kFloats + 128, fp32, HCCL_REDUCE_SUM, me.comm, me.stream),
        HCCL_E_PARA);
    EXPECT_THAT(std::string(aclGetRecentErrMsg()), HasSubstr("before the end of the block of"));
    EXPECT_NE(aclrtSynchronizeStream(me.stream), ACL_SUCCESS);  // the peers were told
    EXPECT_EQ(std::count(me.recv, me.recv + kFloats, 5.0f), static_cast<int64_t>(kFloats));
  });
  OnRanks({0}, [](const Rank& me) {
    constexpr uint64_t kFloats = kCount * kRanks;
    const auto fp32 = HCCL_DATA_TYPE_FP32;
    EXPECT_EQ(HcclAllGather(me.send + 1, me.recv, kFloats + 127, fp32, me.comm, me.stream),
              HCCL_E_PARA);
    EXPECT_EQ(HcclBroadcast(me.recv + kFloats, 128, fp32, 0, me.comm, me.stream), HCCL_E_PARA);
    void* freed = nullptr;
    ASSERT_EQ(aclrtMalloc(&freed, 512, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    ASSERT_EQ(aclrtFree(freed), ACL_SUCCESS);
    EXPECT_EQ(HcclBroadcast(freed, 1, fp32, 0, me.comm, me.stream), HCCL_E_PARA);
    EXPECT_THAT(std::string(aclGetRecentErrMsg()), HasSubstr("that was freed"));
    HcclCommSymWindow window = nullptr;
    EXPECT_EQ(HcclCommSymWinRegister(me.comm, me.send, (kFloats + 128) * 4, &window, 1),
              HCCL_E_PARA);
  });
}

// Peers see the pages of the HBM, not what is shown in their place here.
TEST_F(HcclRanks, OperatorsRefuseMemoryThatPeersDoNotSee) {
  OnRanks({0, 1}, [](const Rank& me) {
    constexpr size_t kBlock = size_t{2} << 20;
    aclrtPhysicalMemProp prop = {};
    prop.location = {me.rank, ACL_MEM_LOCATION_TYPE_DEVICE};
    aclrtDrvMemHandle own = nullptr;
    aclrtDrvMemHandle same = nullptr;
    uint64_t number = 0;
    void* here = nullptr;
    void* there = nullptr;
    ASSERT_EQ(aclrtMallocPhysical(&own, kBlock, &prop, 0), ACL_SUCCESS);
    ASSERT_EQ(aclrtReserveMemAddress(&here, kBlock, 0, nullptr, 0), ACL_SUCCESS);
    ASSERT_EQ(aclrtReserveMemAddress(&there, kBlock, 0, nullptr, 0), ACL_SUCCESS);
    ASSERT_EQ(aclrtMapMem(here, kBlock, 0, own, 0), ACL_SUCCESS);
    ASSERT_EQ(aclrtMemExportToShareableHandle(own, ACL_MEM_HANDLE_TYPE_NONE, 0, &number),
              ACL_SUCCESS);
    ASSERT_EQ(aclrtMemImportFromShareableHandle(number, static_cast<int32_t>(me.rank), &same),
              ACL_SUCCESS);
    ASSERT_EQ(aclrtMapMem(there, kBlock, 0, same, 0), ACL_SUCCESS);
    const auto fp32 = HCCL_DATA_TYPE_FP32;
    static_cast<float*>(there)[3] = static_cast<float>(me.rank + 1);  // the block's, at `here`
    ASSERT_EQ(HcclAllReduce(here, me.recv, 4, fp32, HCCL_REDUCE_SUM, me.comm, me.stream),
              HCCL_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeStream(me.stream), ACL_SUCCESS);
    EXPECT_EQ(me.recv[3], 3.0f);
    EXPECT_EQ(HcclAllReduce(there, me.recv, 4, fp32, HCCL_REDUCE_SUM, me.comm, me.stream),
              HCCL_E_PARA);
    EXPECT_THAT(std::string(aclGetRecentErrMsg()), HasSubstr("peers do not see"));
    for (void* const address : {here, there}) {
      EXPECT_EQ(aclrtUnmapMem(address), ACL_SUCCESS);
      EXPECT_EQ(aclrtReleaseMemAddress(address), ACL_SUCCESS);
    }
    EXPECT_EQ(aclrtFreePhysical(same), ACL_SUCCESS);
    EXPECT_EQ(aclrtFreePhysical(own), ACL_SUCCESS);
  });
}

TEST_F(HcclRanks, EveryOperatorHasItsOwnRules) {
  OnRanks({0}, [](const Rank& me) {
    const auto fp32 = HCCL_DATA_TYPE_FP32;
    const auto int128 = HCCL_DATA_TYPE_INT128;
    const uint64_t one[] = {1};
    const uint64_t two[] = {2};
    const uint64_t zero[] = {0};
    float* const a = me.send;
    float* const b = me.recv;
    HcclComm const c = me.comm;
    aclrtStream const s = me.stream;
    EXPECT_EQ(HcclBroadcast(a, 1, int128, 0, c, s), HCCL_E_NOT_SUPPORT);
    EXPECT_EQ(HcclBroadcast(a, 1, fp32, 1, c, s), HCCL_E_PARA);
    EXPECT_EQ(HcclReduce(a, b, 1, fp32, HCCL_REDUCE_SUM, 1, c, s), HCCL_E_PARA);
    EXPECT_EQ(HcclScatter(a, b, 1, fp32, 7, c, s), HCCL_E_PARA);
    EXPECT_EQ(HcclScatter(nullptr, b, 1, fp32, 0, c, s), HCCL_E_PTR);
    EXPECT_EQ(HcclAllGather(nullptr, b, 1, fp32, c, s), HCCL_E_PTR);
    EXPECT_EQ(HcclReduceScatter(a, nullptr, 1, fp32, HCCL_REDUCE_SUM, c, s), HCCL_E_PTR);
    EXPECT_EQ(HcclAllGatherV(a, 1, b, nullptr, zero, fp32, c, s), HCCL_E_PTR);
    EXPECT_EQ(HcclAllGatherV(a, 0, b, zero, zero, fp32, c, nullptr), HCCL_SUCCESS);
    EXPECT_EQ(HcclAllGatherV(a, 1, b, two, zero, fp32, c, s), HCCL_E_PARA);
    EXPECT_EQ(HcclAllGatherV(a, 1, a, one, zero, fp32, c, s), HCCL_E_PARA);
    EXPECT_EQ(HcclReduceScatterV(a, two, zero, b, 1, fp32, HCCL_REDUCE_SUM, c, s), HCCL_E_PARA);
    EXPECT_EQ(HcclAlltoAll(a, 1, fp32, b, 2, fp32, c, s), HCCL_E_PARA);
    EXPECT_EQ(HcclAlltoAll(a, 1, fp32, b, 1, HCCL_DATA_TYPE_INT8, c, s), HCCL_E_PARA);
    EXPECT_EQ(HcclAlltoAll(a, 1, fp32, a, 1, fp32, c, s), HCCL_E_PARA);
    EXPECT_EQ(HcclAlltoAll(nullptr, 0, int128, nullptr, 0, fp32, nullptr, nullptr), HCCL_SUCCESS);
    EXPECT_EQ(HcclAlltoAllV(a, one, zero, fp32, b, nullptr, zero, fp32, c, s), HCCL_E_PTR);
    EXPECT_EQ(HcclAlltoAllV(nullptr, one, zero, fp32, b, one, zero, fp32, c, s), HCCL_E_PTR);
    EXPECT_EQ(HcclAlltoAllVC(a, nullptr, fp32, b, fp32, c, s), HCCL_E_PTR);
    EXPECT_EQ(HcclAlltoAllVC(nullptr, zero, fp32, nullptr, fp32, c, nullptr), HCCL_SUCCESS);
    EXPECT_EQ(HcclSend(a, 1, fp32, 1, c, s), HCCL_E_PARA);
    EXPECT_EQ(HcclSend(a, 1, fp32, 0, c, s), HCCL_SUCCESS);  // alone: nothing to do
    EXPECT_EQ(HcclBatchSendRecv(nullptr, 0, nullptr, nullptr), HCCL_SUCCESS);
    EXPECT_EQ(HcclBatchSendRecv(nullptr, 1, c, s), HCCL_E_PTR);
    HcclSendRecvItem lonely = {HCCL_SEND, a, 1, fp32, 0};
    EXPECT_EQ(HcclBatchSendRecv(&lonely, 1, c, s), HCCL_E_PARA);
    EXPECT_EQ(HcclBarrier(c, nullptr), HCCL_E_PTR);
    EXPECT_EQ(aclrtSynchronizeStream(s), ACL_SUCCESS);
  });
}

TEST_F(HcclRanks, RanksMayBeInAnyOrder) {
  OnRanks({2, 0, 3, 1}, [](const Rank& me) {
    uint32_t rank = 99;
    uint32_t size = 0;
    char name[COMM_NAME_MAX_LENGTH];
    EXPECT_EQ(HcclGetRankId(me.comm, &rank), HCCL_SUCCESS);
    EXPECT_EQ(HcclGetRankSize(me.comm, &size), HCCL_SUCCESS);
    EXPECT_EQ(HcclGetCommName(me.comm, name), HCCL_SUCCESS);
    EXPECT_EQ(rank, me.rank);
    EXPECT_EQ(size, kRanks);
    EXPECT_THAT(std::string(name), testing::StartsWith("comm_"));
    me.send[0] = static_cast<float>(me.rank);
    EXPECT_EQ(HcclAllGather(me.send, me.recv, 1, HCCL_DATA_TYPE_FP32, me.comm, me.stream),
              HCCL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(me.stream), ACL_SUCCESS);
    for (uint32_t r = 0; r < kRanks; ++r) EXPECT_EQ(me.recv[r], static_cast<float>(r));
  });
}

TEST_F(HcclRanks, ASubGroupHasItsMembersOnly) {
  OnRanks({0, 1, 2, 3}, [](const Rank& me) {
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    uint32_t members[] = {3, 1};
    const bool member = me.rank % 2 == 1;
    HcclComm comm = me.comm;
    HcclComm sub = nullptr;
    ASSERT_EQ(HcclCreateSubCommConfig(&comm, 2, member ? members : nullptr, member ? 7 : 0xFFFFFFFF,
                                      me.rank == 3 ? 0 : 1, &config, &sub),
              HCCL_SUCCESS);
    EXPECT_EQ(HcclCreateSubCommConfig(&comm, 2, members, 0xFFFFFFFF, 0, &config, &sub),
              HCCL_E_PARA);
    if (!member) return;
    uint32_t rank = 9;
    EXPECT_EQ(HcclGetRankId(sub, &rank), HCCL_SUCCESS);
    EXPECT_EQ(rank, me.rank == 3 ? 0u : 1u);
    EXPECT_EQ(HcclCommDestroy(sub), HCCL_SUCCESS);
    EXPECT_EQ(HcclCommDestroy(sub), HCCL_E_PARA);
  });
}

TEST_F(HcclRanks, DisagreementIsSaidToAllWhenTheyWait) {
  OnRanks({0, 1}, [](const Rank& me) {
    EXPECT_EQ(HcclAllReduce(me.send, me.recv, 1 + me.rank, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM,
                            me.comm, me.stream),
              HCCL_SUCCESS);
    EXPECT_NE(aclrtSynchronizeStream(me.stream), ACL_SUCCESS);
    const char* why = aclGetRecentErrMsg();
    EXPECT_THAT(std::string(why ? why : ""), HasSubstr("count"));
    HcclResult error = HCCL_SUCCESS;
    EXPECT_EQ(HcclGetCommAsyncError(me.comm, &error), HCCL_SUCCESS);
    EXPECT_EQ(error, HCCL_E_PARA);
    why = aclGetRecentErrMsg();
    EXPECT_THAT(std::string(why ? why : ""), HasSubstr("count differs"));
  });
}

// The root is through with its broadcasts before it could know, and so are those that agree with
// it.
TEST_F(HcclRanks, DestroyTellsWhatBroadcastsThatRanAheadGotWrong) {
  constexpr int kBroadcasts = 12;
  constexpr uint32_t kDeviant = 2;
  const auto broadcasts = [](const Rank& me) {
    for (int i = 0; i < kBroadcasts; ++i) {
      const bool deviates = me.rank == kDeviant && i == kBroadcasts - 1;
      EXPECT_EQ(
          HcclBroadcast(me.send, deviates ? 5 : 4, HCCL_DATA_TYPE_FP32, 1, me.comm, me.stream),
          HCCL_SUCCESS);
      EXPECT_EQ(aclrtSynchronizeStream(me.stream) != ACL_SUCCESS, deviates);
    }
  };
  OnRanks({0, 1, 2, 3}, broadcasts, [](const Rank& me) {
    const HcclResult result = HcclCommDestroy(me.comm);
    EXPECT_EQ(result != HCCL_SUCCESS, me.rank != kDeviant) << "said once";
    EXPECT_THAT(aclGetRecentErrMsg(), HasSubstr("count differs: rank 2 has 5"));
    return HCCL_SUCCESS;
  });
}

TEST_F(HcclRanks, GroupedSendsAndReceivesDoNotWaitForEachOther) {
  OnRanks({0, 1, 2, 3}, [](const Rank& me) {
    me.send[0] = static_cast<float>(me.rank);
    me.recv[me.rank] = 0;
    ASSERT_EQ(HcclGroupStart(), HCCL_SUCCESS);
    for (uint32_t r = 0; r < kRanks; ++r) {
      if (r == me.rank) continue;
      EXPECT_EQ(HcclSend(me.send, 1, HCCL_DATA_TYPE_FP32, r, me.comm, me.stream), HCCL_SUCCESS);
      EXPECT_EQ(HcclRecv(me.recv + r, 1, HCCL_DATA_TYPE_FP32, r, me.comm, me.stream), HCCL_SUCCESS);
    }
    EXPECT_EQ(HcclBarrier(me.comm, me.stream), HCCL_E_PARA);  // another kind
    ASSERT_EQ(HcclGroupEnd(), HCCL_SUCCESS);
    EXPECT_EQ(HcclGroupEnd(), HCCL_E_PARA);
    ASSERT_EQ(aclrtSynchronizeStream(me.stream), ACL_SUCCESS);
    for (uint32_t r = 0; r < kRanks; ++r) {
      EXPECT_EQ(me.recv[r], r == me.rank ? 0.0f : static_cast<float>(r));
    }
  });
}

TEST_F(HcclRanks, MemoryIsRegisteredWithACommunicator) {
  OnRanks({0, 1}, [](const Rank& me) {
    void* handle = nullptr;
    uint32_t peer = 1 - me.rank;
    EXPECT_EQ(HcclCommRegister(me.comm, me.send, 0, &handle, 0), HCCL_E_PARA);
    EXPECT_EQ(HcclCommRegister(me.comm, me.send, 64, &handle, 1), HCCL_E_PARA);
    EXPECT_EQ(HcclCommRegister(me.comm, me.send, 1000, &handle, 0), HCCL_E_PARA);
    EXPECT_EQ(HcclCommRegister(me.comm, &handle, 8, &handle, 0), HCCL_E_PARA);
    EXPECT_EQ(HcclCommRegister(me.comm, me.send, 64, nullptr, 0), HCCL_E_PTR);
    ASSERT_EQ(HcclCommRegister(me.comm, me.send, 64, &handle, 0), HCCL_SUCCESS);
    EXPECT_EQ(HcclCommExchangeMem(me.comm, handle, &peer, 1), HCCL_SUCCESS);
    peer = 2;
    EXPECT_EQ(HcclCommExchangeMem(me.comm, handle, &peer, 1), HCCL_E_PARA);
    EXPECT_EQ(HcclCommExchangeMem(me.comm, handle, nullptr, 1), HCCL_E_PTR);
    EXPECT_EQ(HcclCommDeregister(me.comm, handle), HCCL_SUCCESS);
    EXPECT_EQ(HcclCommDeregister(me.comm, handle), HCCL_E_NOT_FOUND);
    EXPECT_EQ(HcclCommExchangeMem(me.comm, handle, &peer, 0), HCCL_E_NOT_FOUND);
    EXPECT_EQ(HcclCommDeregister(me.comm, nullptr), HCCL_E_PTR);
  });
}

TEST_F(HcclRanks, WindowsShowThePeersMemory) {
  OnRanks({0, 1}, [](const Rank& me) {
    HcclCommSymWindow window = nullptr;
    EXPECT_EQ(HcclCommSymWinRegister(me.comm, me.send, 64, &window, 0), HCCL_E_PARA);
    me.send[1] = static_cast<float>(me.rank + 5);
    ASSERT_EQ(HcclCommSymWinRegister(me.comm, me.send, 64, &window, 1), HCCL_SUCCESS);
    void* theirs = nullptr;
    ASSERT_EQ(HcclSymWinGetPeerPointer(window, sizeof(float), 1 - me.rank, &theirs), HCCL_SUCCESS);
    EXPECT_EQ(*static_cast<float*>(theirs), static_cast<float>(1 - me.rank + 5));
    size_t offset = 0;
    EXPECT_EQ(HcclCommSymWinGet(me.comm, me.send + 2, 8, &window, &offset), HCCL_SUCCESS);
    EXPECT_EQ(offset, 8u);
    EXPECT_EQ(HcclBarrier(me.comm, me.stream), HCCL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(me.stream), ACL_SUCCESS);
    EXPECT_EQ(HcclCommSymWinDeregister(window), HCCL_SUCCESS);
    EXPECT_EQ(HcclCommSymWinDeregister(window), HCCL_E_PARA);
  });
}

TEST_F(HcclRanks, ASuspendedCommunicatorTakesNothing) {
  OnRanks({0}, [](const Rank& me) {
    EXPECT_EQ(HcclCommSuspend(me.comm), HCCL_SUCCESS);
    EXPECT_EQ(HcclBarrier(me.comm, me.stream), HCCL_E_SUSPENDING);
    EXPECT_EQ(HcclCommResume(me.comm), HCCL_SUCCESS);
    EXPECT_EQ(HcclBarrier(me.comm, me.stream), HCCL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(me.stream), ACL_SUCCESS);
  });
}

// A thread keeps what it has found last, and an operator that is queued its communicator.
TEST_F(HcclRanks, AHandleThatAnotherThreadDestroysIsRefusedFromThenOn) {
  const auto nothing = [](const Rank&) { return HCCL_SUCCESS; };
  const auto body = [](const Rank& me) {
    ASSERT_EQ(HcclBarrier(me.comm, me.stream), HCCL_SUCCESS);
    std::thread([&] { EXPECT_EQ(HcclCommDestroy(me.comm), HCCL_SUCCESS); }).join();
    EXPECT_EQ(HcclBarrier(me.comm, me.stream), HCCL_E_PARA);
    EXPECT_THAT(aclGetRecentErrMsg(), HasSubstr("was destroyed"));
    EXPECT_EQ(aclrtSynchronizeStream(me.stream), ACL_SUCCESS);
    EXPECT_EQ(HcclCommDestroy(me.comm), HCCL_E_PARA);
  };
  OnRanks({0}, body, nothing);
}

TEST_F(HcclRanks, InitAllMakesOneForEachDevice) {
  int32_t devices[] = {1, 3};
  int32_t twice[] = {1, 1};
  HcclComm comms[2] = {};
  EXPECT_EQ(HcclCommInitAll(2, twice, comms), HCCL_E_PARA);
  EXPECT_EQ(HcclCommInitAll(0, devices, comms), HCCL_E_PARA);
  EXPECT_EQ(HcclCommInitAll(2, nullptr, comms), HCCL_E_PTR);
  ASSERT_EQ(HcclCommInitAll(2, devices, comms), HCCL_SUCCESS);
  for (uint32_t i = 0; i < 2; ++i) {
    uint32_t rank = 9;
    EXPECT_EQ(HcclGetRankId(comms[i], &rank), HCCL_SUCCESS);
    EXPECT_EQ(rank, i);
    EXPECT_EQ(HcclCommDestroy(comms[i]), HCCL_SUCCESS);
  }
}

TEST_F(HcclRanks, CreationChecksItsArguments) {
  HcclRootInfo root = {};
  HcclComm comm = nullptr;
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(HcclGetRootInfo(nullptr), HCCL_E_PTR);
  EXPECT_EQ(HcclCommInitRootInfo(1, nullptr, 0, &comm), HCCL_E_PTR);
  EXPECT_EQ(HcclCommInitRootInfo(1, &root, 0, nullptr), HCCL_E_PTR);
  EXPECT_EQ(HcclCommInitRootInfo(0, &root, 0, &comm), HCCL_E_PARA);
  EXPECT_EQ(HcclCommInitRootInfo(2, &root, 2, &comm), HCCL_E_PARA);
  EXPECT_EQ(HcclCommInitRootInfo(1, &root, 0, &comm), HCCL_E_PARA);  // not made by us
  EXPECT_EQ(HcclCommInitRootInfoConfig(1, &root, 0, nullptr, &comm), HCCL_E_PTR);
  EXPECT_EQ(HcclCommInitClusterInfo("/nowhere.json", 0, &comm), HCCL_E_PARA);
  EXPECT_EQ(HcclCommDestroy(nullptr), HCCL_SUCCESS);
  EXPECT_GE(HcclGetCommConfigCapability(), 7u);
  std::thread([&] { EXPECT_EQ(HcclGetRootInfo(&root), HCCL_E_RUNTIME); }).join();
}

}  // namespace
