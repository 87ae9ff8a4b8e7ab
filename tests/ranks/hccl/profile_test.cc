// Ring 2: two devices profile their collectives through the C interface.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "acl/acl_prof.h"
#include "hccl/hccl.h"
#include "runtime/profile/profile_file.h"

namespace npumesh {
namespace {

constexpr uint32_t kRanks = 2;
constexpr uint64_t kCount = 1024;
constexpr int kCalls = 3;

void* Allocate() {
  void* block = nullptr;
  EXPECT_EQ(aclrtMalloc(&block, kCount * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  return block;
}

void AllReduce(uint32_t rank, const HcclRootInfo& root) {
  ASSERT_EQ(aclrtSetDevice(static_cast<int32_t>(rank)), ACL_SUCCESS);
  HcclComm comm = nullptr;
  aclrtStream stream = nullptr;
  ASSERT_EQ(HcclCommInitRootInfo(kRanks, &root, rank, &comm), HCCL_SUCCESS);
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  void* send = Allocate();
  void* recv = Allocate();
  for (int i = 0; i < kCalls; ++i) {
    EXPECT_EQ(HcclAllReduce(send, recv, kCount, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, stream),
              HCCL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  }
  EXPECT_EQ(HcclCommDestroy(comm), HCCL_SUCCESS);
}

void OnRanks() {
  HcclRootInfo root;
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  ASSERT_EQ(HcclGetRootInfo(&root), HCCL_SUCCESS);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&root, rank] { AllReduce(rank, root); });
  }
  for (std::thread& thread : threads) thread.join();
}

// Runs the ranks with a profile of these data types.
std::vector<RankProfile> Profile(uint64_t data_types) {
  const std::string folder = testing::TempDir() + "hccl_profile_" + std::to_string(getpid());
  std::filesystem::remove_all(folder);
  uint32_t devices[] = {0, 1};
  aclprofConfig* config =
      aclprofCreateConfig(devices, kRanks, ACL_AICORE_NONE, nullptr, data_types);
  EXPECT_EQ(aclInit(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclprofInit(folder.c_str(), folder.size()), ACL_SUCCESS);
  EXPECT_EQ(aclprofStart(config), ACL_SUCCESS);
  OnRanks();
  EXPECT_EQ(aclprofStop(config), ACL_SUCCESS);
  EXPECT_EQ(aclprofDestroyConfig(config), ACL_SUCCESS);
  EXPECT_EQ(aclprofFinalize(), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  Result<std::vector<RankProfile>> profiles = ReadProfiles(folder);
  EXPECT_TRUE(profiles.ok()) << profiles.status().ToString();
  std::filesystem::remove_all(folder);
  return profiles.ok() ? *std::move(profiles) : std::vector<RankProfile>(kRanks);
}

// The allreduces, by the number of the call.
std::vector<Span> CollectivesOf(const RankProfile& profile) {
  std::vector<Span> spans;
  for (const Span& span : profile.spans) {
    if (span.kind == SpanKind::kCollective && profile.task(span).data_type == "float32" &&
        profile.task(span).count == kCount) {
      spans.push_back(span);
    }
  }
  return spans;
}

std::vector<std::string> CallsOf(const RankProfile& profile) {
  std::vector<std::string> names;
  for (const Span& span : profile.spans) {
    if (span.kind == SpanKind::kApi) names.push_back(profile.task(span).name);
  }
  return names;
}

// Both ranks share a clock, so none of them can have seen all members before the last one began.
TEST(HcclProfile, EachRankHasTheCollectives) {
  const std::vector<RankProfile> profiles = Profile(ACL_PROF_HCCL_TRACE | ACL_PROF_ACL_API);
  ASSERT_EQ(profiles.size(), kRanks);
  const std::vector<Span> first = CollectivesOf(profiles[0]);
  const std::vector<Span> second = CollectivesOf(profiles[1]);
  ASSERT_EQ(first.size(), size_t{kCalls});
  ASSERT_EQ(second.size(), size_t{kCalls});
  for (size_t i = 0; i < first.size(); ++i) {
    const int64_t last_began = std::max(first[i].begin_ns, second[i].begin_ns);
    EXPECT_EQ(first[i].number, second[i].number);
    EXPECT_EQ(first[i].bytes, second[i].bytes);
    EXPECT_EQ(profiles[0].group(first[i]).number, profiles[1].group(second[i]).number);
    for (const Span& span : {first[i], second[i]}) {
      EXPECT_EQ(span.lane, kCommunicationLane);
      EXPECT_GE(span.arrived_ns, last_began);
      EXPECT_LE(span.arrived_ns, span.end_ns);
    }
  }
  for (const RankProfile& profile : profiles) {
    EXPECT_TRUE(profile.ended);
    EXPECT_EQ(profile.owner.world_size, static_cast<int>(kRanks));
    EXPECT_EQ(profile.group(CollectivesOf(profile)[0]).world_ranks, (std::vector<int>{0, 1}));
    const std::vector<std::string> calls = CallsOf(profile);
    EXPECT_EQ(std::count(calls.begin(), calls.end(), "HcclAllReduce"), kCalls);
    EXPECT_EQ(std::count(calls.begin(), calls.end(), "aclrtSynchronizeStream"), kCalls);
  }
}

TEST(HcclProfile, WithoutTheTraceThereAreOnlyCalls) {
  for (const RankProfile& profile : Profile(ACL_PROF_ACL_API)) {
    EXPECT_TRUE(CollectivesOf(profile).empty());
    const std::vector<std::string> calls = CallsOf(profile);
    EXPECT_EQ(std::count(calls.begin(), calls.end(), "HcclAllReduce"), kCalls);
  }
}

TEST(HcclProfile, WithoutTheCallsThereAreOnlyCollectives) {
  for (const RankProfile& profile : Profile(ACL_PROF_HCCL_TRACE)) {
    EXPECT_TRUE(CallsOf(profile).empty());
    EXPECT_EQ(CollectivesOf(profile).size(), size_t{kCalls});
  }
}

}  // namespace
}  // namespace npumesh
