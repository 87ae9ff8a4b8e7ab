// Ring 2: HCCL by names of groups, a device for each thread. Rank r of the table is device 3 - r,
// so that numbers of devices, ranks and members differ.
#include "hccl/hcom.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "hccl/hccl.h"
#include "tests/unit/base/temporary_folder.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint32_t kRanks = 4;

// A float array in device memory, which the host may read.
class Floats {
 public:
  explicit Floats(std::vector<float> values) : size_(values.size()) {
    void* memory = nullptr;
    EXPECT_EQ(aclrtMalloc(&memory, size_ * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    data_ = static_cast<float*>(memory);
    std::copy(values.begin(), values.end(), data_);
  }
  ~Floats() { aclrtFree(data_); }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;
  float* get() const { return data_; }
  std::vector<float> values(aclrtStream stream) const {
    EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    return {data_, data_ + size_};
  }

 private:
  size_t size_;
  float* data_ = nullptr;
};

class Hcom : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
    std::string devices;
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      devices += (rank == 0 ? "" : ", ") + (R"({"device_id": ")" + std::to_string(3 - rank) +
                                            R"(", "rank_id": ")" + std::to_string(rank) + "\"}");
    }
    std::ofstream(table_) << R"({"version": "1.0", "status": "completed", "server_count": "1",
        "server_list": [{"server_id": "here", "device": [)"
                          << devices << "]}]}";
  }
  void TearDown() override { EXPECT_EQ(aclFinalize(), ACL_SUCCESS); }

  // Runs `body` on the thread of each rank, after the world group was made.
  void OnRanks(const std::function<void(uint32_t rank, aclrtStream stream)>& body) {
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back([&, rank] {
        ASSERT_EQ(aclrtSetDevice(static_cast<int32_t>(3 - rank)), ACL_SUCCESS);
        ASSERT_EQ(HcomInitByFile(table_.c_str(), std::to_string(rank).c_str()), HCCL_SUCCESS);
        aclrtStream stream = nullptr;
        ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
        body(rank, stream);
        EXPECT_EQ(HcomDestroy(), HCCL_SUCCESS);
        EXPECT_EQ(HcomDestroy(), HCCL_E_NOT_FOUND);
        aclrtDestroyStream(stream);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  // The answer of a question with one number; `expected` is its code.
  template <typename Question>
  static uint32_t Number(const Question& question, HcclResult expected = HCCL_SUCCESS) {
    uint32_t number = 77;
    EXPECT_EQ(question(&number), expected);
    return number;
  }

  TemporaryFolder folder_;
  const std::string table_ = folder_.path() + "/ranks.json";
};

TEST_F(Hcom, TellsWhoIsWho) {
  OnRanks([](uint32_t rank, aclrtStream) {
    EXPECT_EQ(Number([](uint32_t* n) { return HcomGetRankSize(nullptr, n); }), kRanks);
    EXPECT_EQ(Number([](uint32_t* n) { return HcomGetRankId("hccl_world_group", n); }), rank);
    EXPECT_EQ(Number([](uint32_t* n) { return hcom_get_local_rank_size(nullptr, n); }), kRanks);
    EXPECT_EQ(Number([](uint32_t* n) { return HcomGetLocalRankId(nullptr, n); }), rank);
    std::vector<uint32_t> members = {3, 1};
    const HcclResult made = HcomCreateGroup("pair", 2, members.data());
    if (rank % 2 == 0) {
      EXPECT_EQ(made, HCCL_E_NOT_FOUND);
      EXPECT_THAT(aclGetRecentErrMsg(), HasSubstr("is not in rankIds of \"pair\""));
      // That of the other ranks, which are threads of this process, is not this one's.
      EXPECT_EQ(Number([](uint32_t* n) { return HcomGetRankSize("pair", n); }, HCCL_E_NOT_FOUND),
                77u);
      return;
    }
    ASSERT_EQ(made, HCCL_SUCCESS);
    EXPECT_EQ(Number([](uint32_t* n) { return HcomGetRankSize("pair", n); }), 2u);
    EXPECT_EQ(Number([](uint32_t* n) { return HcomGetRankId("pair", n); }), rank == 3 ? 0u : 1u);
    EXPECT_EQ(Number([](uint32_t* n) { return HcomGetLocalRankId("pair", n); }),
              rank == 3 ? 0u : 1u);
    const auto world_of = [](uint32_t member) {
      return Number([&](uint32_t* n) { return HcomGetWorldRankFromGroupRank("pair", member, n); });
    };
    const auto member_of = [](uint32_t world, HcclResult expected) {
      return Number([&](uint32_t* n) { return HcomGetGroupRankFromWorldRank(world, "pair", n); },
                    expected);
    };
    EXPECT_EQ(world_of(0), 3u);
    EXPECT_EQ(world_of(1), 1u);
    EXPECT_EQ(member_of(1, HCCL_SUCCESS), 1u);
    EXPECT_EQ(member_of(0, HCCL_E_PARA), 77u);
    EXPECT_EQ(member_of(4, HCCL_E_PARA), 77u);
    EXPECT_EQ(hcom_destroy_group("pair"), HCCL_SUCCESS);
    EXPECT_EQ(Number([](uint32_t* n) { return HcomGetRankSize("pair", n); }, HCCL_E_NOT_FOUND),
              77u);
  });
}

TEST_F(Hcom, RunsCollectivesInGroups) {
  OnRanks([](uint32_t rank, aclrtStream stream) {
    const auto own = static_cast<float>(rank);
    const Floats in({own, own, own, own});
    const Floats out({0, 0, 0, 0});
    ASSERT_EQ(HcomAllReduce("sum", in.get(), out.get(), 4, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM,
                            nullptr, stream),
              HCCL_SUCCESS);
    EXPECT_THAT(out.values(stream), ElementsAre(6, 6, 6, 6));
    ASSERT_EQ(HcomAllToAll(in.get(), 1, HCCL_DATA_TYPE_FP32, out.get(), 1, HCCL_DATA_TYPE_FP32,
                           nullptr, stream, "all"),
              HCCL_SUCCESS);
    EXPECT_THAT(out.values(stream), ElementsAre(0, 1, 2, 3));
    ASSERT_EQ(HcomReduceScatter("part", in.get(), out.get(), 1, HCCL_DATA_TYPE_FP32,
                                HCCL_REDUCE_MAX, nullptr, stream),
              HCCL_SUCCESS);
    EXPECT_EQ(out.values(stream)[0], 3);

    std::vector<uint32_t> members = {rank % 2, rank % 2 + 2};
    const std::string group = rank % 2 == 0 ? "even" : "odd";
    ASSERT_EQ(HcomCreateGroup(group.c_str(), 2, members.data()), HCCL_SUCCESS);
    ASSERT_EQ(
        HcomAllGather("both", in.get(), out.get(), 2, HCCL_DATA_TYPE_FP32, group.c_str(), stream),
        HCCL_SUCCESS);
    const auto first = static_cast<float>(rank % 2);
    EXPECT_THAT(out.values(stream), ElementsAre(first, first, first + 2, first + 2));
    ASSERT_EQ(HcomBroadcast("root", in.get(), 4, HCCL_DATA_TYPE_FP32, 1, group.c_str(), stream),
              HCCL_SUCCESS);
    EXPECT_EQ(in.values(stream)[3], first + 2);
    const HcclResult moved =
        rank < 2
            ? HcomSend("p2p", out.get(), 1, HCCL_DATA_TYPE_FP32, 1, 0, group.c_str(), stream)
            : HcomReceive("p2p", in.get(), 1, HCCL_DATA_TYPE_FP32, 0, 0, group.c_str(), stream);
    ASSERT_EQ(moved, HCCL_SUCCESS);
    EXPECT_EQ(in.values(stream)[0], rank < 2 ? first + 2 : first);
    HcclComm comm = nullptr;
    EXPECT_EQ(HcomGetCommHandleByGroup(group.c_str(), &comm), HCCL_SUCCESS);
    EXPECT_EQ(Number([&](uint32_t* n) { return HcclGetRankSize(comm, n); }), 2u);
  });
}

TEST_F(Hcom, RefusesWhatHasNoMeaning) {
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(HcomInitByFile(table_.c_str(), "1x"), HCCL_E_PARA);
  EXPECT_THAT(aclGetRecentErrMsg(), HasSubstr("identify is \"1x\""));
  EXPECT_EQ(HcomInitByFile(table_.c_str(), nullptr), HCCL_E_PTR);
  EXPECT_EQ(Number([](uint32_t* n) { return HcomGetRankSize(nullptr, n); }, HCCL_E_NOT_FOUND), 77u);
  EXPECT_THAT(aclGetRecentErrMsg(), HasSubstr("HcomInitByRankTable"));
  OnRanks([](uint32_t, aclrtStream stream) {
    uint32_t members[] = {0, 1, 2, 3};
    EXPECT_EQ(HcomGetRankSize(nullptr, nullptr), HCCL_E_PTR);
    EXPECT_EQ(HcomCreateGroup("hccl_world_group", 4, members), HCCL_E_PARA);
    EXPECT_EQ(HcomCreateGroup(nullptr, 4, members), HCCL_E_PTR);
    EXPECT_EQ(HcomDestroyGroup(nullptr), HCCL_E_PTR);
    EXPECT_EQ(HcomDestroyGroup("hccl_world_group"), HCCL_E_PARA);
    EXPECT_EQ(HcomAllReduce("t", nullptr, nullptr, 1, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, "none",
                            stream),
              HCCL_E_NOT_FOUND);
    EXPECT_THAT(aclGetRecentErrMsg(), HasSubstr("there is no group \"none\""));
    EXPECT_EQ(HcomSetGradFusionByIndex(nullptr, 0, members), HCCL_E_PTR);
    EXPECT_EQ(HcomSetGradFusionByIndex(nullptr, 4, members), HCCL_SUCCESS);
  });
}

}  // namespace
}  // namespace npumesh
