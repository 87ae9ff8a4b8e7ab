#include <gmock/gmock.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "runtime/acl/process/device_context.h"
#include "tests/unit/acl/acl_test.h"

namespace npumesh {
namespace {

class AclMemoryTest : public AclTest {};

TEST_F(AclMemoryTest, ComesFromTheHbmOfTheCurrentDevice) {
  void* block = Allocate(1000);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
  EXPECT_TRUE((*CurrentDevice())->memory.Contains(block, 1000));
  size_t free = 0;
  size_t total = 0;
  EXPECT_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total), ACL_SUCCESS);
  EXPECT_EQ(total, size_t{16} << 20);
  EXPECT_EQ(free, total - 1024);
  EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(block), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtGetMemInfo(ACL_DDR_MEM_HUGE, &free, &total), ACL_SUCCESS);
  EXPECT_EQ(free, total);
  EXPECT_EQ(aclrtGetMemInfo(ACL_HBM_MEM, nullptr, &total), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtGetMemInfo(static_cast<aclrtMemAttr>(18), &free, &total), ACL_ERROR_INVALID_PARAM);
}

TEST_F(AclMemoryTest, AllKindsOfAllocationAreOne) {
  for (const auto allocate : {aclrtMalloc, aclrtMallocAlign32, aclrtMallocCached}) {
    void* block = nullptr;
    EXPECT_EQ(allocate(&block, 64, ACL_MEM_MALLOC_NORMAL_ONLY_P2P), ACL_SUCCESS);
    EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
    EXPECT_EQ(allocate(&block, 0, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQ(allocate(nullptr, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQ(allocate(&block, size_t{1} << 40, ACL_MEM_MALLOC_HUGE_FIRST),
              ACL_ERROR_RT_MEMORY_ALLOCATION);
    EXPECT_EQ(allocate(&block, SIZE_MAX, ACL_MEM_MALLOC_HUGE_FIRST),
              ACL_ERROR_RT_MEMORY_ALLOCATION);
  }
  EXPECT_THAT(aclGetRecentErrMsg(), testing::HasSubstr("NPUMESH_HBM_SIZE"));
  std::thread([] {
    void* block = nullptr;
    EXPECT_EQ(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_CONTEXT_NULL);
  }).join();
}

TEST_F(AclMemoryTest, HostMemoryHasItsOwnFunctions) {
  void* block = nullptr;
  EXPECT_EQ(aclrtMallocHost(&block, 100), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(block), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtFreeHost(block), ACL_SUCCESS);
  EXPECT_EQ(aclrtFreeHost(block), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtFreeHost(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMallocHost(&block, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMallocHost(nullptr, 1), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMallocHost(&block, SIZE_MAX), ACL_ERROR_RT_MEMORY_ALLOCATION);
}

TEST_F(AclMemoryTest, CopiesBetweenHostAndDevice) {
  const std::vector<int> in = {1, 2, 3, 4};
  std::vector<int> out(4);
  void* first = Allocate(16);
  void* second = Allocate(16);
  EXPECT_EQ(aclrtMemcpy(first, 16, in.data(), 16, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy(second, 16, first, 16, ACL_MEMCPY_DEVICE_TO_DEVICE), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy(out.data(), 16, second, 16, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
  EXPECT_EQ(out, in);
  EXPECT_EQ(aclrtMemcpy(out.data(), 16, in.data(), 8, ACL_MEMCPY_HOST_TO_HOST), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy(out.data(), 16, first, 16, ACL_MEMCPY_DEFAULT), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy(nullptr, 0, nullptr, 0, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
}

TEST_F(AclMemoryTest, RefusesWrongCopies) {
  std::vector<int> host(4);
  void* device = Allocate(512);
  struct Case {
    void* dst;
    size_t max;
    const void* src;
    size_t count;
    int kind;
  };
  const std::vector<Case> cases = {
      {device, 8, host.data(), 16, ACL_MEMCPY_HOST_TO_DEVICE},
      {nullptr, 16, host.data(), 16, ACL_MEMCPY_HOST_TO_DEVICE},
      {device, 16, nullptr, 16, ACL_MEMCPY_HOST_TO_DEVICE},
      {device, 16, host.data(), 16, 8},
      {device, 16, host.data(), 16, -1},
      {host.data(), 16, device, 16, ACL_MEMCPY_HOST_TO_DEVICE},
      {host.data(), 16, host.data(), 16, ACL_MEMCPY_DEVICE_TO_HOST},
      {host.data(), 16, device, 16, ACL_MEMCPY_DEVICE_TO_DEVICE},
      {device, size_t{1} << 30, device, size_t{1} << 30, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE}};
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    const auto kind = static_cast<aclrtMemcpyKind>(c.kind);
    EXPECT_EQ(aclrtMemcpy(c.dst, c.max, c.src, c.count, kind), ACL_ERROR_INVALID_PARAM) << i;
    EXPECT_EQ(aclrtMemcpyAsync(c.dst, c.max, c.src, c.count, kind, nullptr),
              ACL_ERROR_INVALID_PARAM)
        << i;
  }
}

TEST_F(AclMemoryTest, AsyncCopiesKeepTheOrderOfTheStream) {
  const aclrtStream stream = NewStream();
  void* device = Allocate(4);
  void* pinned = nullptr;
  ASSERT_EQ(aclrtMallocHost(&pinned, 4), ACL_SUCCESS);
  auto* value = static_cast<int*>(pinned);
  *value = 1;
  Gate gate(stream);
  EXPECT_EQ(aclrtMemcpyAsync(device, 4, pinned, 4, ACL_MEMCPY_HOST_TO_DEVICE, stream), ACL_SUCCESS);
  *value = 2;  // not copied yet
  gate.Open();
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_EQ(*static_cast<int*>(device), 2);
  int pageable = 3;
  EXPECT_EQ(aclrtMemcpyAsync(device, 4, &pageable, 4, ACL_MEMCPY_HOST_TO_DEVICE, stream),
            ACL_SUCCESS);
  EXPECT_EQ(*static_cast<int*>(device), 3);  // pageable memory is copied before the call returns
  EXPECT_EQ(aclrtMemcpyAsync(pinned, 4, &pageable, 4, ACL_MEMCPY_HOST_TO_HOST, stream),
            ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(aclrtMemcpyAsync(device, 0, nullptr, 0, ACL_MEMCPY_HOST_TO_DEVICE, stream),
            ACL_SUCCESS);
  EXPECT_EQ(aclrtFreeHost(pinned), ACL_SUCCESS);
}

TEST_F(AclMemoryTest, FillsBytes) {
  auto* device = static_cast<uint8_t*>(Allocate(4));
  EXPECT_EQ(aclrtMemset(device, 4, 0x101, 4), ACL_SUCCESS);
  EXPECT_THAT(std::vector<uint8_t>(device, device + 4), testing::Each(1));
  EXPECT_EQ(aclrtMemsetAsync(device, 4, 7, 2, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  EXPECT_THAT(std::vector<uint8_t>(device, device + 4), testing::ElementsAre(7, 7, 1, 1));
  int host = 0;
  EXPECT_EQ(aclrtMemset(device, 3, 0, 4), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemset(nullptr, 4, 0, 4), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemsetAsync(&host, 4, 0, 4, nullptr), ACL_ERROR_INVALID_PARAM);
}

// Programs for real NPUs clear their staging memory so.
TEST_F(AclMemoryTest, FillsHostMemoryOfItsOwn) {
  void* block = nullptr;
  ASSERT_EQ(aclrtMallocHost(&block, 4), ACL_SUCCESS);
  const auto* bytes = static_cast<const uint8_t*>(block);
  EXPECT_EQ(aclrtMemset(block, 4, 9, 4), ACL_SUCCESS);
  EXPECT_THAT(std::vector<uint8_t>(bytes, bytes + 4), testing::Each(9));
  EXPECT_EQ(aclrtMemsetAsync(block, 4, 5, 2, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  EXPECT_THAT(std::vector<uint8_t>(bytes, bytes + 4), testing::ElementsAre(5, 5, 9, 9));
  EXPECT_EQ(aclrtMemset(block, 8192, 0, 8192), ACL_ERROR_INVALID_PARAM);  // beyond the block
  EXPECT_EQ(aclrtFreeHost(block), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemset(block, 4, 0, 4), ACL_ERROR_INVALID_PARAM);
}

}  // namespace
}  // namespace npumesh
