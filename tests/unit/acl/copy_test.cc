// Copies of rows and batches, host memory for devices, pointers, allocators.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "tests/unit/acl/acl_test.h"

namespace npumesh {
namespace {

class CopyTest : public AclTest {
 protected:
  CopyTest() : AclTest(2) {}
};

// Rows with random pitches against a loop over bytes.
TEST_F(CopyTest, RowsAreCopiedAndNothingBetweenThem) {
  std::mt19937 random(7);
  const aclrtStream stream = NewStream();
  for (int round = 0; round < 40; ++round) {
    const size_t width = 1 + random() % 30;
    const size_t height = random() % 9;
    const size_t to_pitch = width + random() % 10;
    const size_t from_pitch = width + random() % 10;
    std::vector<char> from(from_pitch * (height + 1));
    std::iota(from.begin(), from.end(), static_cast<char>(round));
    const size_t bytes = to_pitch * (height + 1);
    auto* const to = static_cast<char*>(Allocate(bytes));
    std::memset(to, -1, bytes);
    std::vector<char> expected(to, to + bytes);
    for (size_t row = 0; row < height; ++row) {
      std::copy_n(&from[row * from_pitch], width, &expected[row * to_pitch]);
    }
    const auto kind = ACL_MEMCPY_HOST_TO_DEVICE;
    if (round % 2 == 0) {
      ASSERT_EQ(aclrtMemcpy2d(to, to_pitch, from.data(), from_pitch, width, height, kind),
                ACL_SUCCESS);
    } else {
      ASSERT_EQ(
          aclrtMemcpy2dAsync(to, to_pitch, from.data(), from_pitch, width, height, kind, stream),
          ACL_SUCCESS);
      ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    }
    EXPECT_EQ(std::vector<char>(to, to + bytes), expected) << "round " << round;
    ASSERT_EQ(aclrtFree(to), ACL_SUCCESS);
  }
}

TEST_F(CopyTest, RowsAreChecked) {
  void* const block = Allocate(512);
  char host[512] = {};
  const auto kind = ACL_MEMCPY_HOST_TO_DEVICE;
  EXPECT_EQ(aclrtMemcpy2d(block, 7, host, 8, 8, 2, kind), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemcpy2d(block, 8, host, 8, 8, SIZE_MAX, kind), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemcpy2d(host, 8, host, 8, 8, 2, kind), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemcpy2d(nullptr, 8, host, 8, 8, 2, kind), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemcpy2d(nullptr, 8, host, 8, 8, 0, kind), ACL_SUCCESS);
}

// Device memory may stand where the kind says host; what lies behind a device is no memory.
TEST_F(CopyTest, ACopyEndsWithItsDevice) {
  ASSERT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
  void* const block = Allocate(512);
  const size_t hbm = 16 << 20;
  const auto kind = ACL_MEMCPY_DEVICE_TO_HOST;
  EXPECT_EQ(aclrtMemcpy(block, 2 * hbm, block, hbm + 1, kind), ACL_ERROR_INVALID_PARAM);
  std::vector<char> host(hbm + 1);
  EXPECT_EQ(aclrtMemcpy(block, 2 * hbm, host.data(), host.size(), ACL_MEMCPY_HOST_TO_HOST),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemcpy2d(block, 4096, block, 0, 0, 5000, kind), ACL_SUCCESS);
  // Beyond both devices, which may be neighbours.
  EXPECT_EQ(aclrtMemcpy2d(block, 4096, block, 1, 1, 10000, kind), ACL_ERROR_INVALID_PARAM);
}

TEST_F(CopyTest, ABatchIsCopiedAsAWholeOrNotAtAll) {
  std::array<int, 3> host = {1, 2, 3};
  auto* const device = static_cast<int*>(Allocate(sizeof host));
  int back = 0;
  std::array<void*, 4> to = {&device[0], &device[1], &device[2], &back};
  std::array<void*, 4> from = {&host[0], &host[1], &host[2], &device[2]};
  std::array<size_t, 4> sizes = {4, 4, 4, 4};
  std::array<size_t, 4> most = sizes;
  const aclrtMemLocation on_host = {0, ACL_MEM_LOCATION_TYPE_HOST};
  const aclrtMemLocation on_device = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
  std::array<aclrtMemcpyBatchAttr, 2> attributes = {};
  attributes[0].srcLoc = on_host;
  attributes[0].dstLoc = on_device;
  attributes[1].srcLoc = on_device;
  attributes[1].dstLoc = on_host;
  std::array<size_t, 2> starts = {0, 3};
  size_t failed = 0;
  ASSERT_EQ(aclrtMemcpyBatch(to.data(), most.data(), from.data(), sizes.data(), 4,
                             attributes.data(), starts.data(), 2, &failed),
            ACL_SUCCESS);
  EXPECT_EQ(failed, SIZE_MAX);
  EXPECT_EQ(back, 3);
  back = 0;
  const aclrtStream stream = NewStream();
  ASSERT_EQ(aclrtMemcpyBatchAsyncV2(to.data(), most.data(), from.data(), sizes.data(), 4,
                                    attributes.data(), starts.data(), 2, stream),
            ACL_SUCCESS);
  EXPECT_EQ(back, 3);  // pageable memory may be used again
  host[0] = 9;
  most[2] = 3;
  EXPECT_EQ(aclrtMemcpyBatch(to.data(), most.data(), from.data(), sizes.data(), 4,
                             attributes.data(), starts.data(), 2, &failed),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(failed, 2u);
  EXPECT_EQ(device[0], 1);
  most[2] = 4;
  starts[1] = 2;  // then copy 2 would come from a device
  EXPECT_EQ(aclrtMemcpyBatch(to.data(), most.data(), from.data(), sizes.data(), 4,
                             attributes.data(), starts.data(), 2, &failed),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(failed, 2u);
  starts[1] = 0;
  EXPECT_EQ(aclrtMemcpyBatchV2(to.data(), most.data(), from.data(), sizes.data(), 4,
                               attributes.data(), starts.data(), 2),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemcpyBatch(nullptr, most.data(), from.data(), sizes.data(), 4, attributes.data(),
                             starts.data(), 2, &failed),
            ACL_ERROR_INVALID_PARAM);
}

TEST_F(CopyTest, WordsAreFilled) {
  auto* const words = static_cast<uint32_t*>(Allocate(16));
  std::fill_n(words, 4, 1u);
  ASSERT_EQ(aclrtMemsetD32(words, 16, 0xdeadbeef, 2), ACL_SUCCESS);
  ASSERT_EQ(aclrtMemsetD32Async(words + 2, 8, 5, 1, nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  EXPECT_EQ(std::vector<uint32_t>(words, words + 4),
            (std::vector<uint32_t>{0xdeadbeef, 0xdeadbeef, 5, 1}));
  EXPECT_EQ(aclrtMemsetD32(words, 16, 0, 5), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemsetD32(reinterpret_cast<char*>(words) + 1, 8, 0, 1), ACL_ERROR_INVALID_PARAM);
  uint32_t host = 0;
  EXPECT_EQ(aclrtMemsetD32Async(&host, 4, 0, 1, nullptr), ACL_ERROR_INVALID_PARAM);
}

TEST_F(CopyTest, HostMemoryIsRegisteredOnce) {
  std::vector<char> host(8192);
  void* device = nullptr;
  EXPECT_EQ(aclrtHostGetDevicePointer(host.data(), &device, 0),
            ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
  ASSERT_EQ(aclrtHostRegister(host.data(), 4096, ACL_HOST_REGISTER_MAPPED, &device), ACL_SUCCESS);
  EXPECT_EQ(device, host.data());
  ASSERT_EQ(aclrtHostGetDevicePointer(host.data() + 10, &device, 0), ACL_SUCCESS);
  EXPECT_EQ(device, host.data() + 10);
  ASSERT_EQ(aclrtMemset(host.data(), 4096, 3, 4096), ACL_SUCCESS);  // as pinned memory
  EXPECT_EQ(aclrtMemset(host.data(), 8192, 3, 4097), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtHostRegisterV2(host.data() + 4095, 10, ACL_HOST_REG_MAPPED),
            ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  ASSERT_EQ(aclrtHostRegisterV2(host.data() + 4096, 10, ACL_HOST_REG_PINNED), ACL_SUCCESS);
  EXPECT_EQ(aclrtHostRegisterV2(host.data() + 5000, 10, 1), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtHostRegisterV2(nullptr, 10, ACL_HOST_REG_MAPPED), ACL_ERROR_INVALID_PARAM);
  ASSERT_EQ(aclrtHostUnregister(host.data()), ACL_SUCCESS);
  EXPECT_EQ(aclrtHostUnregister(host.data()), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
  ASSERT_EQ(aclrtHostUnregister(host.data() + 4096), ACL_SUCCESS);
  aclrtHostMemMapCapability capability = ACL_RT_HOST_MEM_MAP_NOT_SUPPORTED;
  EXPECT_EQ(aclrtHostMemMapCapabilities(0, ACL_RT_HAC_TYPE_AIV, &capability), ACL_SUCCESS);
  EXPECT_EQ(capability, ACL_RT_HOST_MEM_MAP_SUPPORTED);
}

TEST_F(CopyTest, APointerSaysWhereItLeads) {
  const auto place = [](const void* pointer) {
    aclrtPtrAttributes attributes = {};
    EXPECT_EQ(aclrtPointerGetAttributes(pointer, &attributes), ACL_SUCCESS);
    return std::pair(attributes.location.type, attributes.location.id);
  };
  void* const first = Allocate(1000);
  ASSERT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
  void* managed = nullptr;
  ASSERT_EQ(aclrtMemAllocManaged(&managed, 100, ACL_RT_MEM_ATTACH_GLOBAL), ACL_SUCCESS);
  void* pinned = nullptr;
  ASSERT_EQ(aclrtMallocHostWithCfg(&pinned, 100, nullptr), ACL_SUCCESS);
  int local = 0;
  EXPECT_EQ(place(first), std::pair(ACL_MEM_LOCATION_TYPE_DEVICE, 0u));
  EXPECT_EQ(place(managed), std::pair(ACL_MEM_LOCATION_TYPE_DEVICE, 1u));
  EXPECT_EQ(place(pinned), std::pair(ACL_MEM_LOCATION_TYPE_HOST, 0u));
  EXPECT_EQ(place(&local), std::pair(ACL_MEM_LOCATION_TYPE_UNREGISTERED, 0u));
  EXPECT_EQ(aclrtPointerGetAttributes(nullptr, nullptr), ACL_ERROR_INVALID_PARAM);
  void* start = nullptr;
  size_t bytes = 0;
  ASSERT_EQ(aclrtMemGetAddressRange(static_cast<char*>(first) + 999, &start, &bytes), ACL_SUCCESS);
  EXPECT_EQ(start, first);
  EXPECT_EQ(bytes, 1024u);  // blocks are of whole 512 bytes
  EXPECT_EQ(aclrtMemGetAddressRange(&local, &start, &bytes), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemManagedAdvise(managed, 100, ACL_MEM_ADVISE_SET_READ_MOSTLY,
                                  {ACL_MEM_LOCATIONTYPE_DEVICE, 0}),
            ACL_SUCCESS);
  EXPECT_EQ(aclrtMemManagedPrefetchAsync(&local, 4, {ACL_MEM_LOCATIONTYPE_DEVICE, 0}, 0, nullptr),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemAllocManaged(&managed, 100, 2), ACL_ERROR_INVALID_PARAM);
  ASSERT_EQ(aclrtFreeHostWithDevSync(pinned), ACL_SUCCESS);
  ASSERT_EQ(aclrtFreeWithDevSync(managed), ACL_SUCCESS);
  EXPECT_EQ(aclrtFreeWithDevSync(managed), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemGetAddressRange(managed, &start, &bytes), ACL_ERROR_INVALID_PARAM);
}

void* AllocateBlock(aclrtAllocator, size_t) {
  return nullptr;
}
void FreeBlock(aclrtAllocator, aclrtAllocatorBlock) {}
void* AllocateNear(aclrtAllocator, size_t, aclrtAllocatorAddr) {
  return nullptr;
}
void* AddressOf(aclrtAllocatorBlock block) {
  return block;
}

TEST_F(CopyTest, AStreamKeepsItsAllocator) {
  const aclrtStream stream = NewStream();
  const aclrtAllocatorDesc desc = aclrtAllocatorCreateDesc();
  ASSERT_NE(desc, nullptr);
  int object = 0;
  EXPECT_EQ(aclrtAllocatorRegister(stream, desc), ACL_ERROR_INVALID_PARAM);  // empty
  ASSERT_EQ(aclrtAllocatorSetObjToDesc(desc, &object), ACL_SUCCESS);
  ASSERT_EQ(aclrtAllocatorSetAllocFuncToDesc(desc, AllocateBlock), ACL_SUCCESS);
  ASSERT_EQ(aclrtAllocatorSetFreeFuncToDesc(desc, FreeBlock), ACL_SUCCESS);
  ASSERT_EQ(aclrtAllocatorSetAllocAdviseFuncToDesc(desc, AllocateNear), ACL_SUCCESS);
  ASSERT_EQ(aclrtAllocatorSetGetAddrFromBlockFuncToDesc(desc, AddressOf), ACL_SUCCESS);
  EXPECT_EQ(aclrtAllocatorSetObjToDesc(desc, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtAllocatorRegister(nullptr, desc), ACL_ERROR_INVALID_PARAM);
  ASSERT_EQ(aclrtAllocatorRegister(stream, desc), ACL_SUCCESS);
  ASSERT_EQ(aclrtAllocatorDestroyDesc(desc), ACL_SUCCESS);
  EXPECT_EQ(aclrtAllocatorDestroyDesc(desc), ACL_ERROR_INVALID_PARAM);
  aclrtAllocatorDesc kept = nullptr;
  aclrtAllocator kept_object = nullptr;
  aclrtAllocatorAllocFunc allocate = nullptr;
  aclrtAllocatorFreeFunc free = nullptr;
  aclrtAllocatorAllocAdviseFunc near = nullptr;
  aclrtAllocatorGetAddrFromBlockFunc address = nullptr;
  ASSERT_EQ(
      aclrtAllocatorGetByStream(stream, &kept, &kept_object, &allocate, &free, &near, &address),
      ACL_SUCCESS);
  EXPECT_EQ(kept, desc);
  EXPECT_EQ(kept_object, &object);
  EXPECT_EQ(allocate, &AllocateBlock);
  EXPECT_EQ(free, &FreeBlock);
  EXPECT_EQ(near, &AllocateNear);
  EXPECT_EQ(address, &AddressOf);
  ASSERT_EQ(aclrtAllocatorUnregister(stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtAllocatorUnregister(stream), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(
      aclrtAllocatorGetByStream(stream, &kept, &kept_object, &allocate, &free, &near, &address),
      ACL_ERROR_INVALID_PARAM);
}

}  // namespace
}  // namespace npumesh
