// Reserved addresses and physical blocks, as hccl_test's zero-copy mode uses them.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/acl/process/device_context.h"
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
  static char* Mapped(aclrtDrvMemHandle block, size_t bytes = kBlock) {
    char* const address = Reserve(bytes);
    EXPECT_EQ(aclrtMapMem(address, bytes, 0, block, 0), ACL_SUCCESS);
    return address;
  }
  static aclError SetAccess(char* address, aclrtMemAccessFlags flags, size_t bytes = kBlock,
                            uint32_t device = 0) {
    aclrtMemAccessDesc wish = {flags, {device, ACL_MEM_LOCATION_TYPE_DEVICE}, {}};
    return aclrtMemSetAccess(address, bytes, &wish, 1);
  }
  // Whether the system lets this process read and write there.
  static bool Readable(char* address) {
    int pipe_ends[2];
    EXPECT_EQ(pipe(pipe_ends), 0);
    const bool read_it = write(pipe_ends[1], address, 1) == 1;
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    return read_it;
  }
  static bool Writable(char* address) {
    const int zeros = open("/dev/zero", O_RDONLY);
    const bool written = read(zeros, address, 1) == 1;
    close(zeros);
    return written;
  }
  static std::string Words() {
    const char* const words = aclGetRecentErrMsg();
    return words == nullptr ? "" : words;
  }
  static char* Reserve(size_t bytes) {
    void* address = nullptr;
    EXPECT_EQ(aclrtReserveMemAddress(&address, bytes, 0, nullptr, 1), ACL_SUCCESS);
    return static_cast<char*>(address);
  }
};

size_t FreeBytes() {
  size_t free = 0, total = 0;
  EXPECT_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total), ACL_SUCCESS);
  return free;
}

// Pools of clients reserve more addresses than a device has memory.
TEST_F(AclAddressTest, AddressesAreNoMemoryAndBlocksAre) {
  size_t free = 0, total = 0;
  ASSERT_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total), ACL_SUCCESS);
  std::vector<char*> rows;
  for (int i = 0; i < 6; ++i) rows.push_back(Reserve(total + total / 8));
  EXPECT_EQ(FreeBytes(), free);
  void* beyond = nullptr;
  EXPECT_EQ(aclrtReserveMemAddress(&beyond, 9 * total, 0, nullptr, 1),
            ACL_ERROR_RT_MEMORY_ALLOCATION);
  EXPECT_THAT(Words(), testing::HasSubstr("addresses: "));

  const aclrtPhysicalMemProp prop = OnDevice(0);
  std::vector<aclrtDrvMemHandle> blocks;
  aclrtDrvMemHandle block = nullptr;
  while (aclrtMallocPhysical(&block, kBlock, &prop, 0) == ACL_SUCCESS) blocks.push_back(block);
  EXPECT_THAT(Words(), testing::HasSubstr("device memory: 2097152 bytes asked"));
  EXPECT_EQ(blocks.size(), free / kBlock);
  EXPECT_EQ(FreeBytes(), free - blocks.size() * kBlock);
  void* memory = nullptr;
  EXPECT_EQ(aclrtMalloc(&memory, kBlock, ACL_MEM_MALLOC_HUGE_FIRST),
            ACL_ERROR_RT_MEMORY_ALLOCATION);

  for (size_t i = 0; i < 6; ++i) {  // at the far end of each row
    char* const at = rows[i] + (total / kBlock - 1) * kBlock;
    ASSERT_EQ(aclrtMapMem(at, kBlock, 0, blocks[i], 0), ACL_SUCCESS) << Words();
    ASSERT_EQ(aclrtMemset(at, kBlock, static_cast<int>(i + 1), kBlock), ACL_SUCCESS);
  }
  for (size_t i = 0; i < 6; ++i) {
    char* const at = rows[i] + (total / kBlock - 1) * kBlock;
    EXPECT_EQ(at[kBlock - 1], static_cast<char>(i + 1));
    EXPECT_EQ(aclrtUnmapMem(at), ACL_SUCCESS);
  }
  for (const aclrtDrvMemHandle each : blocks) EXPECT_EQ(aclrtFreePhysical(each), ACL_SUCCESS);
  for (char* const row : rows) EXPECT_EQ(aclrtReleaseMemAddress(row), ACL_SUCCESS);
  EXPECT_EQ(FreeBytes(), free);
  EXPECT_EQ(aclrtMalloc(&memory, free / 2, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
}

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

TEST_F(AclAddressTest, BytesFollowTheBlock) {
  char* const address = Reserve(2 * kBlock);
  const aclrtDrvMemHandle first = NewBlock();
  const aclrtDrvMemHandle second = NewBlock();
  ASSERT_EQ(aclrtMapMem(address, kBlock, 0, first, 0), ACL_SUCCESS);
  std::memset(address, 1, kBlock);
  ASSERT_EQ(aclrtUnmapMem(address), ACL_SUCCESS);
  ASSERT_EQ(aclrtMapMem(address, kBlock, 0, first, 0), ACL_SUCCESS);  // at the same place
  EXPECT_EQ(std::string(address, kBlock), std::string(kBlock, 1));
  ASSERT_EQ(aclrtUnmapMem(address), ACL_SUCCESS);
  ASSERT_EQ(aclrtMapMem(address, kBlock, 0, second, 0), ACL_SUCCESS);  // another block there
  std::memset(address, 2, kBlock);
  ASSERT_EQ(aclrtMapMem(address + kBlock, kBlock, 0, first, 0), ACL_SUCCESS);
  EXPECT_EQ(std::string(address + kBlock, kBlock), std::string(kBlock, 1));
  ASSERT_EQ(aclrtUnmapMem(address), ACL_SUCCESS);
  ASSERT_EQ(aclrtUnmapMem(address + kBlock), ACL_SUCCESS);
  ASSERT_EQ(aclrtReleaseMemAddress(address), ACL_SUCCESS);
  // The reservation is gone, the bytes are not.
  char* const elsewhere = Mapped(second);
  EXPECT_EQ(std::string(elsewhere, kBlock), std::string(kBlock, 2));
  EXPECT_EQ(aclrtFreePhysical(first), ACL_SUCCESS);
}

TEST_F(AclAddressTest, FreedMemoryComesBack) {
  size_t before = 0;
  size_t total = 0;
  ASSERT_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &before, &total), ACL_SUCCESS);
  for (int i = 0; i < 20; ++i) {
    const aclrtDrvMemHandle block = NewBlock();
    uint64_t number = 0;
    ASSERT_EQ(aclrtMemExportToShareableHandle(block, ACL_MEM_HANDLE_TYPE_NONE, 0, &number),
              ACL_SUCCESS);  // before it is mapped, so it gets own memory
    char* const address = Mapped(block);
    ASSERT_EQ(aclrtUnmapMem(address), ACL_SUCCESS);
    ASSERT_EQ(aclrtReleaseMemAddress(address), ACL_SUCCESS);
    ASSERT_EQ(aclrtFreePhysical(block), ACL_SUCCESS);
  }
  size_t after = 0;
  ASSERT_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &after, &total), ACL_SUCCESS);
  EXPECT_EQ(after, before);
}

TEST_F(AclAddressTest, AccessIsTheSystems) {
  char* const address = Mapped(NewBlock());
  void* const other = Allocate(kBlock);
  aclrtMemLocation here = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
  uint64_t flags = 0;
  ASSERT_EQ(aclrtMemGetAccess(address + 1, &here, &flags), ACL_SUCCESS);
  EXPECT_EQ(flags, uint64_t{ACL_RT_MEM_ACCESS_FLAGS_READWRITE});

  ASSERT_EQ(SetAccess(address, ACL_RT_MEM_ACCESS_FLAGS_READ), ACL_SUCCESS);
  EXPECT_TRUE(Readable(address));
  EXPECT_FALSE(Writable(address));
  EXPECT_EQ(aclrtMemcpy(other, kBlock, address, kBlock, ACL_MEMCPY_DEVICE_TO_DEVICE), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy(address, kBlock, other, kBlock, ACL_MEMCPY_DEVICE_TO_DEVICE),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_NE(Words().find("be read only"), std::string::npos);
  EXPECT_EQ(aclrtMemset(address, kBlock, 1, 1), ACL_ERROR_INVALID_PARAM);
  ASSERT_EQ(aclrtMemGetAccess(address, &here, &flags), ACL_SUCCESS);
  EXPECT_EQ(flags, uint64_t{ACL_RT_MEM_ACCESS_FLAGS_READ});

  ASSERT_EQ(SetAccess(address, ACL_RT_MEM_ACCESS_FLAGS_NONE), ACL_SUCCESS);
  EXPECT_FALSE(Readable(address));
  EXPECT_EQ(aclrtMemcpy(other, kBlock, address, kBlock, ACL_MEMCPY_DEFAULT),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_NE(Words().find("not be used"), std::string::npos);

  ASSERT_EQ(SetAccess(address, ACL_RT_MEM_ACCESS_FLAGS_READWRITE), ACL_SUCCESS);
  EXPECT_TRUE(Writable(address));
  EXPECT_EQ(aclrtMemset(address, kBlock, 1, kBlock), ACL_SUCCESS);

  ASSERT_EQ(SetAccess(address, ACL_RT_MEM_ACCESS_FLAGS_NONE), ACL_SUCCESS);
  ASSERT_EQ(aclrtUnmapMem(address), ACL_SUCCESS);
  EXPECT_TRUE(Writable(address));  // for what is mapped there next
}

TEST_F(AclAddressTest, MapsWithoutAccess) {
  char* const address = Reserve(2 * kBlock);
  EXPECT_EQ(aclrtMemMapNoAccess(address, kBlock, 0, NewBlock(), 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemMapNoAccess(address + kBlock, kBlock, 0, NewBlock(), 0), ACL_SUCCESS);
  EXPECT_FALSE(Readable(address));
  EXPECT_EQ(aclrtMemset(address, kBlock, 1, kBlock), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(SetAccess(address, ACL_RT_MEM_ACCESS_FLAGS_READ, kBlock + 1), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(SetAccess(address + 1, ACL_RT_MEM_ACCESS_FLAGS_READ), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(SetAccess(address, ACL_RT_MEM_ACCESS_FLAGS_READ, 3 * kBlock), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(SetAccess(address, ACL_RT_MEM_ACCESS_FLAGS_READWRITE, 2 * kBlock), ACL_SUCCESS);
  EXPECT_TRUE(Writable(address + 2 * kBlock - 1));
}

TEST_F(AclAddressTest, RefusesWrongAccess) {
  char* const address = Mapped(NewBlock());
  aclrtMemLocation nowhere = {9, ACL_MEM_LOCATION_TYPE_DEVICE};
  uint64_t flags = 0;
  EXPECT_EQ(aclrtMemGetAccess(address, &nowhere, &flags), ACL_ERROR_RT_INVALID_DEVICEID);
  nowhere = {0, ACL_MEM_LOCATION_TYPE_MANAGED};
  EXPECT_EQ(aclrtMemGetAccess(address, &nowhere, &flags), ACL_ERROR_INVALID_PARAM);
  nowhere = {0, ACL_MEM_LOCATION_TYPE_HOST};
  EXPECT_EQ(aclrtMemGetAccess(address, &nowhere, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemGetAccess(&flags, &nowhere, &flags), ACL_ERROR_INVALID_PARAM);
  ASSERT_EQ(aclrtMemGetAccess(address, &nowhere, &flags), ACL_SUCCESS);
  EXPECT_EQ(flags, 0u);
  EXPECT_EQ(SetAccess(address, static_cast<aclrtMemAccessFlags>(2)), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(SetAccess(address, ACL_RT_MEM_ACCESS_FLAGS_READ, kBlock, 9),
            ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtMemSetAccess(address, kBlock, nullptr, 1), ACL_ERROR_INVALID_PARAM);
}

TEST_F(AclAddressTest, KnowsTheBlockOfAnAddress) {
  const aclrtDrvMemHandle block = NewBlock();
  char* const address = Mapped(block);
  aclrtDrvMemHandle found = nullptr;
  ASSERT_EQ(aclrtMemRetainAllocationHandle(address + kBlock - 1, &found), ACL_SUCCESS);
  EXPECT_EQ(found, block);
  aclrtPhysicalMemProp prop = {};
  ASSERT_EQ(aclrtMemGetAllocationPropertiesFromHandle(found, &prop), ACL_SUCCESS);
  EXPECT_EQ(prop.memAttr, ACL_HBM_MEM_HUGE);
  EXPECT_EQ(prop.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_EQ(aclrtFreePhysical(block), ACL_SUCCESS);
  EXPECT_EQ(aclrtUnmapMem(address), ACL_SUCCESS);
  EXPECT_EQ(aclrtMapMem(address, kBlock, 0, found, 0), ACL_SUCCESS);  // one reference is left
  EXPECT_EQ(aclrtFreePhysical(found), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemGetAllocationPropertiesFromHandle(found, &prop), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemRetainAllocationHandle(address + kBlock, &found), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemRetainAllocationHandle(address, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemGetAllocationPropertiesFromHandle(&prop, nullptr), ACL_ERROR_INVALID_PARAM);
}

// Of one process; those of several are in tests/mpi/acl/processes.cc.
TEST_F(AclAddressTest, SharedBlocksAreOneMemory) {
  for (const bool mapped_first : {true, false}) {
    const aclrtDrvMemHandle block = NewBlock();
    char* address = mapped_first ? Mapped(block) : nullptr;
    uint64_t number = 0;
    ASSERT_EQ(aclrtMemExportToShareableHandle(block, ACL_MEM_HANDLE_TYPE_NONE, 0, &number),
              ACL_SUCCESS);
    aclrtMemFabricHandle fabric = {};
    ASSERT_EQ(
        aclrtMemExportToShareableHandleV2(block, 0, ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, &fabric),
        ACL_SUCCESS);
    if (!mapped_first) address = Mapped(block);
    aclrtDrvMemHandle first = nullptr;
    aclrtDrvMemHandle second = nullptr;
    ASSERT_EQ(aclrtMemImportFromShareableHandle(number, 0, &first), ACL_SUCCESS);
    ASSERT_EQ(
        aclrtMemImportFromShareableHandleV2(&fabric, ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, 0, &second),
        ACL_SUCCESS);
    char* const there = Mapped(first);
    char* const also = Mapped(second);
    std::memset(address, 5, kBlock);
    EXPECT_EQ(there[kBlock - 1], 5);
    also[7] = 6;
    EXPECT_EQ(address[7], 6);
    EXPECT_EQ(aclrtMemset(there, kBlock, 4, kBlock), ACL_SUCCESS);
    EXPECT_EQ(also[7], 4);
    EXPECT_EQ(aclrtMemExportToShareableHandle(first, ACL_MEM_HANDLE_TYPE_NONE, 0, &number),
              ACL_ERROR_INVALID_PARAM);  // its owner alone shares it
    for (char* each : {there, also, address}) {
      EXPECT_EQ(aclrtUnmapMem(each), ACL_SUCCESS);
      EXPECT_EQ(aclrtReleaseMemAddress(each), ACL_SUCCESS);
    }
    for (aclrtDrvMemHandle each : {first, second, block}) {
      EXPECT_EQ(aclrtFreePhysical(each), ACL_SUCCESS);
    }
    EXPECT_EQ(aclrtMemImportFromShareableHandle(number, 0, &first), ACL_ERROR_INVALID_PARAM);
  }
}

TEST_F(AclAddressTest, RefusesWrongShareableHandles) {
  const aclrtDrvMemHandle block = NewBlock();
  uint64_t number = 0;
  EXPECT_EQ(aclrtMemExportToShareableHandle(block, ACL_MEM_HANDLE_TYPE_NONE, 0, nullptr),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemExportToShareableHandle(block, ACL_MEM_HANDLE_TYPE_POSIX, 0, &number),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemExportToShareableHandle(block, ACL_MEM_HANDLE_TYPE_NONE, 2, &number),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemExportToShareableHandle(&number, ACL_MEM_HANDLE_TYPE_NONE, 0, &number),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemExportToShareableHandleV2(block, 0, static_cast<aclrtMemSharedHandleType>(3),
                                              &number),
            ACL_ERROR_INVALID_PARAM);
  ASSERT_EQ(aclrtMemExportToShareableHandleV2(block, ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION,
                                              ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT, &number),
            ACL_SUCCESS);
  aclrtDrvMemHandle imported = nullptr;
  EXPECT_EQ(aclrtMemImportFromShareableHandle(0, 0, &imported), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemImportFromShareableHandle(number + 1, 0, &imported), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemImportFromShareableHandle(number, 7, &imported), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtMemImportFromShareableHandle(number, 0, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(
      aclrtMemImportFromShareableHandleV2(&number, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT, 1, &imported),
      ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(
      aclrtMemImportFromShareableHandleV2(nullptr, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT, 0, &imported),
      ACL_ERROR_INVALID_PARAM);
  aclrtMemFabricHandle fabric = {};
  std::memset(fabric.data, 'x', sizeof fabric.data);
  EXPECT_EQ(
      aclrtMemImportFromShareableHandleV2(&fabric, ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, 0, &imported),
      ACL_ERROR_INVALID_PARAM);
  int32_t process = getpid();
  EXPECT_EQ(aclrtMemSetPidToShareableHandle(number, &process, 1), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemSetPidToShareableHandle(number, nullptr, 1), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemSetPidToShareableHandle(number + 1, &process, 1), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(
      aclrtMemSetPidToShareableHandleV2(&fabric, ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, &process, 1),
      ACL_ERROR_INVALID_PARAM);
  // Of another kind: a key of aclrtIpcMemGetExportKey is no fabric handle.
  void* const memory = Allocate(4096);
  char key[65] = "";
  ASSERT_EQ(aclrtIpcMemGetExportKey(memory, 4096, key, sizeof key, 0), ACL_SUCCESS);
  std::memset(fabric.data, 0, sizeof fabric.data);
  std::memcpy(fabric.data, key, std::strlen(key));
  EXPECT_EQ(
      aclrtMemImportFromShareableHandleV2(&fabric, ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, 0, &imported),
      ACL_ERROR_INVALID_PARAM);
}

TEST_F(AclAddressTest, LinksHaveNoEffectAndAddressesAreNotChosen) {
  const aclrtDrvMemHandle block = NewBlock();
  char* const address = Mapped(block);
  EXPECT_EQ(aclrtMemMapSetLink(block, ACL_RT_MEM_ACCESS_LINK_HCCS), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemMapSetLink(nullptr, ACL_RT_MEM_ACCESS_LINK_HCCS), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemP2PMap(address, kBlock, 0, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemP2PMap(address, kBlock, 0, 1), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemP2PMap(nullptr, kBlock, 0, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemMapSelectedLink(address, kBlock, address, 0), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  void* chosen = nullptr;
  EXPECT_EQ(aclrtReserveMemAddressNoUCMemory(&chosen, kBlock, 0, address, 0),
            ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
}

}  // namespace
}  // namespace npumesh
