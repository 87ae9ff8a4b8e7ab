// Captured collectives on streams with limits of vector cores, against a card that has 48.
#include <gmock/gmock.h>

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "hccl/hccl.h"

namespace {

using testing::HasSubstr;

constexpr int kRanks = 2;
constexpr uint64_t kCount = 16;

// Two collectives of each rank in one captured graph, each on a stream that the first one forks.
struct Case {
  std::optional<uint32_t> first, second;  // limits
  bool ordered = false;                   // the second stream waits for the first one
};

class Rank {
 public:
  Rank(int device, const HcclRootInfo& root) {
    EXPECT_EQ(aclrtSetDevice(device), ACL_SUCCESS);
    EXPECT_EQ(HcclCommInitRootInfo(kRanks, &root, static_cast<uint32_t>(device), &comm_),
              HCCL_SUCCESS);
    for (aclrtStream& stream : streams_) EXPECT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
    for (void*& block : blocks_) {
      EXPECT_EQ(aclrtMalloc(&block, kCount * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST),
                ACL_SUCCESS);
      auto* const values = static_cast<float*>(block);
      for (uint64_t i = 0; i < kCount; ++i) values[i] = static_cast<float>(device + 1);
    }
  }
  ~Rank() {
    EXPECT_EQ(HcclCommDestroy(comm_), HCCL_SUCCESS);
    for (const aclrtStream stream : streams_) aclrtDestroyStream(stream);
    for (void* const block : blocks_) aclrtFree(block);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  // What the end of the capture answers.
  aclError Capture(const Case& drawn) {
    Limit(streams_[1], drawn.first);
    Limit(streams_[2], drawn.second);
    EXPECT_EQ(aclmdlRICaptureBegin(streams_[0], ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL),
              ACL_SUCCESS);
    Follow(streams_[0], streams_[1]);
    if (!drawn.ordered) Follow(streams_[0], streams_[2]);
    Reduce(blocks_[0], streams_[1]);
    if (drawn.ordered) Follow(streams_[1], streams_[2]);
    Reduce(blocks_[1], streams_[2]);
    Follow(streams_[1], streams_[0]);
    Follow(streams_[2], streams_[0]);
    return aclmdlRICaptureEnd(streams_[0], &model_);
  }
  void ExpectRuns() {
    ASSERT_EQ(aclmdlRIExecute(model_, -1), ACL_SUCCESS);
    for (void* const block : blocks_) {
      for (uint64_t i = 0; i < kCount; ++i) EXPECT_EQ(static_cast<float*>(block)[i], 3);
    }
    EXPECT_EQ(aclmdlRIDestroy(model_), ACL_SUCCESS);
  }

 private:
  static void Limit(aclrtStream stream, std::optional<uint32_t> cores) {
    if (!cores) return;
    EXPECT_EQ(aclrtSetStreamResLimit(stream, ACL_RT_DEV_RES_VECTOR_CORE, *cores), ACL_SUCCESS);
  }
  static void Follow(aclrtStream first, aclrtStream second) {
    aclrtEvent event = nullptr;
    EXPECT_EQ(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC), ACL_SUCCESS);
    EXPECT_EQ(aclrtRecordEvent(event, first), ACL_SUCCESS);
    EXPECT_EQ(aclrtStreamWaitEvent(second, event), ACL_SUCCESS);
  }
  void Reduce(void* block, aclrtStream stream) {
    EXPECT_EQ(
        HcclAllReduce(block, block, kCount, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm_, stream),
        HCCL_SUCCESS);
  }

  HcclComm comm_ = nullptr;
  aclrtStream streams_[3] = {};
  void* blocks_[2] = {};
  aclmdlRI model_ = nullptr;
};

class HcclCardTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS); }
  static void TearDownTestSuite() { EXPECT_EQ(aclFinalize(), ACL_SUCCESS); }

  static void Expect(const Case& drawn, aclError answer) {
    HcclRootInfo root;
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    ASSERT_EQ(HcclGetRootInfo(&root), HCCL_SUCCESS);
    std::vector<std::thread> threads;
    for (int device = 0; device < kRanks; ++device) {
      threads.emplace_back([&, device] {
        Rank rank(device, root);
        EXPECT_EQ(rank.Capture(drawn), answer);
        if (answer == ACL_SUCCESS) return rank.ExpectRuns();
        const char* const said = aclGetRecentErrMsg();
        ASSERT_NE(said, nullptr);
        EXPECT_THAT(said, HasSubstr("rule collective-cores"));
        EXPECT_THAT(said, HasSubstr("HcclAllReduce on stream"));
        EXPECT_THAT(said, HasSubstr("32 + 24 > 48"));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
};

TEST_F(HcclCardTest, TogetherMoreThanTheCardHas) {
  Expect({.first = 32, .second = 24}, ACL_ERROR_RT_VECTOR_CORE_TIMEOUT);
}

TEST_F(HcclCardTest, TheCardHasThemAll) {
  Expect({.first = 32, .second = 16}, ACL_SUCCESS);
}

TEST_F(HcclCardTest, OneWaitsForTheOther) {
  Expect({.first = 32, .second = 24, .ordered = true}, ACL_SUCCESS);
}

TEST_F(HcclCardTest, WithoutALimitNothingIsAsked) {
  Expect({.first = 32}, ACL_SUCCESS);
  Expect({}, ACL_SUCCESS);
}

}  // namespace
