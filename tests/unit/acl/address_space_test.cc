// Reserved addresses and physical blocks, as hccl_test's zero-copy mode uses them.
#include <cstdint>

#include "runtime/acl/device_context.h"
#include "tests/unit/acl/acl_test.h"

namespace npumesh {
namespace {

constexpr size_t kBlock = size_t{2} << 20;

class AclAddressTest : public AclTest {
 protected:
  static aclrtPhysicalMemProp OnDevice(uint32_t id) {
    return {ACL_MEM_HANDLE_TYPE_NONE,
            ACL_MEM_ALLOCATION_TYPE_PINNED,
            ACL_HBM_MEM_HUGE,
            {id, ACL_MEM_LOCATION_TYPE_DEVICE},
            0};
  }
  static aclrtDrvMemHandle NewBlock(size_t bytes = kBlock) {
    const aclrtPhysicalMemProp prop = OnDevice(0);
    aclrtDrvMemHandle handle = nullptr;
    EXPECT_EQ(aclrtMallocPhysical(&handle, bytes, &prop, 0), ACL_SUCCESS);
    return handle;
  }
  static char* Reserve(size_t bytes) {
    void* address = nullptr;
    EXPECT_EQ(aclrtReserveMemAddress(&address, bytes, 0, nullptr, 1), ACL_SUCCESS);
    return static_cast<char*>(address);
  }
};

TEST_F(AclAddressTest, MapsABlockIntoTheHbm) {
  char* address = Reserve(kBlock);
  const aclrtDrvMemHandle block = NewBlock();
  EXPECT_EQ(aclrtMapMem(address, kBlock, 0, block, 0), ACL_SUCCESS);
  EXPECT_TRUE((*CurrentDevice())->memory.Contains(address, kBlock));
  EXPECT_EQ(aclrtMemset(address, kBlock, 1, kBlock), ACL_SUCCESS);
  EXPECT_EQ(aclrtReleaseMemAddress(address), ACL_ERROR_INVALID_PARAM);  // still mapped
  EXPECT_EQ(aclrtUnmapMem(address), ACL_SUCCESS);
  EXPECT_EQ(aclrtUnmapMem(address), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtFreePhysical(block), ACL_SUCCESS);
  EXPECT_EQ(aclrtFreePhysical(block), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtReleaseMemAddress(address), ACL_SUCCESS);
  EXPECT_EQ(aclrtReleaseMemAddress(address), ACL_ERROR_INVALID_PARAM);
}

TEST_F(AclAddressTest, SeveralBlocksShareAReservation) {
  char* address = Reserve(2 * kBlock);
  const aclrtDrvMemHandle first = NewBlock();
  const aclrtDrvMemHandle second = NewBlock();
  EXPECT_EQ(aclrtMapMem(address, kBlock, 0, first, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtMapMem(address + kBlock, kBlock, 0, first, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMapMem(address + kBlock / 2, kBlock, 0, second, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMapMem(address + kBlock, kBlock, 0, second, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtFreePhysical(second), ACL_SUCCESS);  // takes effect with the unmapping
  EXPECT_EQ(aclrtUnmapMem(address + kBlock), ACL_SUCCESS);
  EXPECT_EQ(aclrtMapMem(address + kBlock, kBlock, 0, second, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMapMem(address + 2 * kBlock, kBlock, 0, NewBlock(), 0), ACL_ERROR_INVALID_PARAM);
}

TEST_F(AclAddressTest, RefusesWhatBreaksTheRules) {
  void* address = nullptr;
  EXPECT_EQ(aclrtReserveMemAddress(nullptr, 1, 0, nullptr, 1), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtReserveMemAddress(&address, 0, 0, nullptr, 1), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtReserveMemAddress(&address, 1, 64, nullptr, 1), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtReserveMemAddress(&address, 1, 0, &address, 1), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtReserveMemAddress(&address, size_t{1} << 40, 0, nullptr, 1),
            ACL_ERROR_RT_MEMORY_ALLOCATION);
  aclrtPhysicalMemProp prop = OnDevice(0);
  aclrtDrvMemHandle handle = nullptr;
  EXPECT_EQ(aclrtMallocPhysical(nullptr, kBlock, &prop, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMallocPhysical(&handle, kBlock, nullptr, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMallocPhysical(&handle, kBlock - 1, &prop, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMallocPhysical(&handle, kBlock, &prop, 1), ACL_ERROR_INVALID_PARAM);
  prop.location.id = 5;
  EXPECT_EQ(aclrtMallocPhysical(&handle, kBlock, &prop, 0), ACL_ERROR_RT_INVALID_DEVICEID);
  prop.location.type = ACL_MEM_LOCATION_TYPE_HOST;
  EXPECT_EQ(aclrtMallocPhysical(&handle, kBlock, &prop, 0), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  char* reserved = Reserve(kBlock);
  EXPECT_EQ(aclrtMapMem(reserved, kBlock, 1, NewBlock(), 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMapMem(reserved, kBlock, 0, NewBlock(), 1), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMapMem(reserved, kBlock, 0, NewBlock(2 * kBlock), 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMapMem(reserved, kBlock, 0, reserved, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMapMem(&prop, kBlock, 0, NewBlock(), 0), ACL_ERROR_INVALID_PARAM);
}

TEST_F(AclAddressTest, GranularityIsTwoMebibytes) {
  aclrtPhysicalMemProp prop = OnDevice(0);
  size_t granularity = 0;
  EXPECT_EQ(aclrtMemGetAllocationGranularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED,
                                             &granularity),
            ACL_SUCCESS);
  EXPECT_EQ(granularity, kBlock);
  EXPECT_EQ(
      aclrtMemGetAllocationGranularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_UNDEF, &granularity),
      ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(
      aclrtMemGetAllocationGranularity(nullptr, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &granularity),
      ACL_ERROR_INVALID_PARAM);
}

TEST_F(AclAddressTest, ResettingTheDeviceEndsEverything) {
  char* address = Reserve(kBlock);
  const aclrtDrvMemHandle block = NewBlock();
  EXPECT_EQ(aclrtMapMem(address, kBlock, 0, block, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtUnmapMem(address), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtFreePhysical(block), ACL_SUCCESS);  // the block is the client's until it says so
}

}  // namespace
}  // namespace npumesh
