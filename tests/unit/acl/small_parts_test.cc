// Pools of memory, copies whose places are learned late, the end of all tasks, and small questions.
#include <gmock/gmock.h>

#include <cstring>
#include <string>
#include <vector>

#include "acl/acl_rt_memory_soma.h"
#include "tests/unit/acl/acl_test.h"

namespace npumesh {
namespace {

class SmallPartsTest : public AclTest {
 protected:
  static uint64_t AttributeOf(aclrtMemPool pool, aclrtMemPoolAttr attr) {
    uint64_t value = 99;
    EXPECT_EQ(aclrtMemPoolGetAttr(pool, attr, &value), ACL_SUCCESS);
    return value;
  }
  static aclrtMemPool NewPool(size_t most = 0) {
    aclrtMemPoolProps props = {};
    props.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    props.maxSize = most;
    aclrtMemPool pool = nullptr;
    EXPECT_EQ(aclrtMemPoolCreate(&pool, &props), ACL_SUCCESS);
    return pool;
  }
};

TEST_F(SmallPartsTest, PoolsFreeInTheOrderOfTheStream) {
  const aclrtMemPool pool = NewPool();
  const aclrtStream stream = NewStream();
  void* block = nullptr;
  ASSERT_EQ(aclrtMemPoolMallocAsync(&block, 1000, pool, stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemset(block, 1000, 1, 1000), ACL_SUCCESS);
  EXPECT_EQ(AttributeOf(pool, ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT), 1000u);
  Gate gate(stream);
  ASSERT_EQ(aclrtMemsetAsync(block, 1000, 2, 1000, stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtMemPoolFreeAsync(block, stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemPoolFreeAsync(block, stream), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(AttributeOf(pool, ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT), 1000u);
  EXPECT_EQ(aclrtMemPoolDestroy(pool), ACL_ERROR_INVALID_PARAM);
  gate.Open();
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemset(block, 1000, 1, 1000), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(AttributeOf(pool, ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT), 0u);
  EXPECT_EQ(AttributeOf(pool, ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH), 1000u);
  uint64_t zero = 0;
  EXPECT_EQ(aclrtMemPoolSetAttr(pool, ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH, &zero), ACL_SUCCESS);
  EXPECT_EQ(AttributeOf(pool, ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH), 0u);
  EXPECT_EQ(aclrtMemPoolTrimTo(pool, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemPoolDestroy(pool), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemPoolDestroy(pool), ACL_ERROR_INVALID_PARAM);
}

TEST_F(SmallPartsTest, WhatAStreamDropsIsFreed) {
  const aclrtMemPool pool = NewPool();
  const aclrtStream stream = NewStream();
  void* block = nullptr;
  ASSERT_EQ(aclrtMemPoolMallocAsync(&block, 64, pool, stream), ACL_SUCCESS);
  aclrtEvent never = nullptr;
  ASSERT_EQ(aclrtCreateEventExWithFlag(&never, ACL_EVENT_SYNC), ACL_SUCCESS);
  ASSERT_EQ(aclrtMemPoolFreeAsync(block, stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamAbort(stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_EQ(AttributeOf(pool, ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT), 0u);
  EXPECT_EQ(aclrtMemPoolDestroy(pool), ACL_SUCCESS);
}

TEST_F(SmallPartsTest, PoolsHaveRules) {
  aclrtMemPoolProps props = {};
  aclrtMemPool pool = nullptr;
  EXPECT_EQ(aclrtMemPoolCreate(&pool, &props), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  props.location = {7, ACL_MEM_LOCATION_TYPE_DEVICE};
  EXPECT_EQ(aclrtMemPoolCreate(&pool, &props), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtMemPoolCreate(nullptr, &props), ACL_ERROR_INVALID_PARAM);
  pool = NewPool(1024);
  void* block = nullptr;
  EXPECT_EQ(aclrtMemPoolMallocAsync(&block, 1025, pool, nullptr), ACL_ERROR_RT_MEMORY_ALLOCATION);
  EXPECT_EQ(aclrtMemPoolMallocAsync(&block, 0, pool, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemPoolMallocAsync(&block, 8, &props, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemPoolFreeAsync(&props, nullptr), ACL_ERROR_INVALID_PARAM);
  uint64_t value = 5;
  EXPECT_EQ(aclrtMemPoolSetAttr(pool, ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD, &value), ACL_SUCCESS);
  EXPECT_EQ(AttributeOf(pool, ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD), 5u);
  EXPECT_EQ(AttributeOf(pool, ACL_RT_MEM_POOL_REUSE_ALLOW_OPPORTUNISTIC), 0u);
  EXPECT_EQ(aclrtMemPoolSetAttr(pool, ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT, &value),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemPoolSetAttr(pool, ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH, &value),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemPoolGetAttr(pool, static_cast<aclrtMemPoolAttr>(9), &value),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemPoolGetAttr(pool, ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD, nullptr),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemPoolTrimTo(&props, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemPoolDestroy(pool), ACL_SUCCESS);
}

TEST_F(SmallPartsTest, DescribedCopiesReadTheirDescriptionLate) {
  constexpr auto kKind = ACL_MEMCPY_DEVICE_TO_DEVICE;
  size_t bytes = 0;
  ASSERT_EQ(aclrtGetMemcpyDescSize(kKind, &bytes), ACL_SUCCESS);
  void* const description = Allocate(bytes);
  auto* const from = static_cast<int32_t*>(Allocate(8));
  auto* const to = static_cast<int32_t*>(Allocate(8));
  from[0] = 1;
  from[1] = 2;
  to[0] = to[1] = 0;
  const aclrtStream stream = NewStream();
  ASSERT_EQ(aclrtSetMemcpyDesc(description, kKind, from, to, 4, nullptr), ACL_SUCCESS);
  Gate gate(stream);
  ASSERT_EQ(aclrtMemcpyAsyncWithDesc(description, kKind, stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetMemcpyDesc(description, kKind, from + 1, to + 1, 4, nullptr), ACL_SUCCESS);
  gate.Open();
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_EQ(to[0], 0);
  EXPECT_EQ(to[1], 2);

  EXPECT_EQ(aclrtGetMemcpyDescSize(ACL_MEMCPY_HOST_TO_DEVICE, &bytes), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtGetMemcpyDescSize(kKind, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSetMemcpyDesc(&bytes, kKind, from, to, 4, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSetMemcpyDesc(description, kKind, &bytes, to, 4, nullptr),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSetMemcpyDesc(description, kKind, from, to, 4096, nullptr),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSetMemcpyDesc(description, kKind, from, to, 4, &bytes), ACL_ERROR_INVALID_PARAM);
  std::memset(description, 0, 64);
  ASSERT_EQ(aclrtMemcpyAsyncWithDesc(description, kKind, stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_INVALID_PARAM);
  EXPECT_THAT(aclGetRecentErrMsg(), testing::HasSubstr("is not what aclrtSetMemcpyDesc wrote"));
}

TEST_F(SmallPartsTest, OffsetsCountFromWhereThePointersLead) {
  constexpr auto kKind = ACL_MEMCPY_DEVICE_TO_DEVICE;
  auto* const pointers = static_cast<void**>(Allocate(16));
  auto* const from = static_cast<int32_t*>(Allocate(16));
  auto* const to = static_cast<int32_t*>(Allocate(16));
  for (int32_t i = 0; i < 4; ++i) from[i] = i;
  std::memset(to, 0, 16);
  pointers[0] = nullptr;
  pointers[1] = from;
  const aclrtStream stream = NewStream();
  auto* const source = const_cast<const void**>(pointers + 1);
  Gate gate(stream);
  ASSERT_EQ(aclrtMemcpyAsyncWithOffset(pointers, 8, 4, source, 8, 8, kKind, stream), ACL_SUCCESS);
  pointers[0] = to;  // before the stream comes there
  gate.Open();
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_THAT(std::vector<int32_t>(to, to + 4), testing::ElementsAre(0, 2, 3, 0));
  EXPECT_EQ(aclrtMemcpyAsyncWithOffset(pointers, 7, 4, source, 8, 8, kKind, stream),
            ACL_ERROR_INVALID_PARAM);
  void* on_host = to;
  EXPECT_EQ(aclrtMemcpyAsyncWithOffset(&on_host, 8, 4, source, 8, 8, kKind, stream),
            ACL_ERROR_INVALID_PARAM);
  ASSERT_EQ(aclrtMemcpyAsyncWithOffset(pointers, 8, 600, source, 8, 0, kKind, stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_INVALID_PARAM);
}

std::string told;

int32_t TellAbort(int32_t device, aclrtDeviceTaskAbortStage stage, uint32_t timeout, void* args) {
  told += std::string(static_cast<const char*>(args)) + std::to_string(device) +
          (stage == ACL_RT_DEVICE_TASK_ABORT_PRE ? "before" : "after") + std::to_string(timeout) +
          " ";
  return 0;
}

TEST_F(SmallPartsTest, AbortingADeviceDropsItsTasks) {
  told.clear();
  char first[] = "a";
  char second[] = "b";
  ASSERT_EQ(aclrtSetDeviceTaskAbortCallback("2", TellAbort, second), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDeviceTaskAbortCallback("1", TellAbort, first), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetDeviceTaskAbortCallback("1", TellAbort, first), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSetDeviceTaskAbortCallback("", TellAbort, first), ACL_ERROR_INVALID_PARAM);
  const aclrtStream stream = NewStream();
  aclrtEvent never = nullptr;
  ASSERT_EQ(aclrtCreateEventExWithFlag(&never, ACL_EVENT_SYNC), ACL_SUCCESS);
  auto* const memory = static_cast<char*>(Allocate(8));
  std::memset(memory, 0, 8);
  ASSERT_EQ(aclrtStreamWaitEvent(stream, never), ACL_SUCCESS);
  ASSERT_EQ(aclrtMemsetAsync(memory, 8, 1, 8, stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtDeviceTaskAbort(0, 5), ACL_SUCCESS);
  EXPECT_EQ(told, "a0before5 b0before5 a0after5 b0after5 ");
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_EQ(memory[0], 0);
  ASSERT_EQ(aclrtMemsetAsync(memory, 8, 1, 8, stream), ACL_SUCCESS);  // it can be used again
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_EQ(memory[0], 1);
  EXPECT_EQ(aclrtDeviceTaskAbort(9, 5), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtSetDeviceTaskAbortCallback("1", nullptr, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetDeviceTaskAbortCallback("2", nullptr, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetDeviceTaskAbortCallback("2", nullptr, nullptr), ACL_ERROR_INVALID_PARAM);
}

TEST_F(SmallPartsTest, AnswersSmallQuestions) {
  aclrtEvent one = nullptr;
  aclrtEvent two = nullptr;
  uint32_t before = 0;
  uint32_t after = 0;
  ASSERT_EQ(aclrtGetEventAvailNum(&before), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateEvent(&one), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateEvent(&two), ACL_SUCCESS);
  ASSERT_EQ(aclrtGetEventAvailNum(&after), ACL_SUCCESS);
  EXPECT_EQ(after, before - 2);
  uint32_t first = 0;
  uint32_t second = 0;
  ASSERT_EQ(aclrtGetEventId(one, &first), ACL_SUCCESS);
  ASSERT_EQ(aclrtGetEventId(two, &second), ACL_SUCCESS);
  EXPECT_NE(first, second);
  EXPECT_EQ(aclrtGetEventId(&first, &second), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtGetEventId(one, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtGetEventAvailNum(nullptr), ACL_ERROR_INVALID_PARAM);

  uint32_t milliseconds = 0;
  EXPECT_EQ(aclrtSetOpExecuteTimeOut(3), ACL_SUCCESS);
  ASSERT_EQ(aclrtGetOpExecuteTimeout(&milliseconds), ACL_SUCCESS);
  EXPECT_EQ(milliseconds, 3000u);
  EXPECT_EQ(aclrtSetOpExecuteTimeOutWithMs(7), ACL_SUCCESS);
  ASSERT_EQ(aclrtGetOpExecuteTimeout(&milliseconds), ACL_SUCCESS);
  EXPECT_EQ(milliseconds, 7u);
  EXPECT_EQ(aclrtSetOpExecuteTimeOut(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetOpExecuteTimeout(nullptr), ACL_ERROR_INVALID_PARAM);
  uint64_t interval = 0;
  ASSERT_EQ(aclrtGetOpTimeOutInterval(&interval), ACL_SUCCESS);
  EXPECT_EQ(interval, 1u);
  EXPECT_EQ(aclrtGetOpTimeOutInterval(nullptr), ACL_ERROR_INVALID_PARAM);

  void* addresses[] = {Allocate(8), Allocate(8)};
  uint32_t result = 9;
  ASSERT_EQ(aclrtCheckMemType(addresses, 2, ACL_RT_MEM_TYPE_DEV, &result, 0), ACL_SUCCESS);
  EXPECT_EQ(result, 1u);
  ASSERT_EQ(aclrtCheckMemType(addresses, 2, ACL_RT_MEM_TYPE_DVPP, &result, 0), ACL_SUCCESS);
  EXPECT_EQ(result, 0u);
  addresses[1] = &result;
  ASSERT_EQ(aclrtCheckMemType(addresses, 2, ACL_RT_MEM_TYPE_DEV, &result, 0), ACL_SUCCESS);
  EXPECT_EQ(result, 0u);
  EXPECT_EQ(aclrtCheckMemType(addresses, 2, 1, &result, 0), ACL_ERROR_INVALID_PARAM);

  aclrtMemUceInfo faults[2] = {};
  size_t count = 9;
  ASSERT_EQ(aclrtGetMemUceInfo(0, faults, 2, &count), ACL_SUCCESS);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(aclrtGetMemUceInfo(7, faults, 2, &count), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtGetMemUceInfo(0, nullptr, 2, &count), ACL_ERROR_INVALID_PARAM);

  auto* const status = static_cast<char*>(Allocate(64));
  std::memset(status, 1, 64);
  ASSERT_EQ(aclrtNpuGetFloatOverFlowStatus(status, 64, 0, nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  EXPECT_EQ(status[0], 0);
  EXPECT_EQ(aclrtNpuGetFloatOverFlowStatus(status, 64, 1, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtNpuClearFloatOverFlowStatus(0, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtNpuClearFloatOverFlowStatus(1, nullptr), ACL_ERROR_INVALID_PARAM);
}

TEST_F(SmallPartsTest, WhatHasNoEffectIsChecked) {
  void* const memory = Allocate(64);
  int on_host = 0;
  size_t bytes = 0;
  EXPECT_EQ(aclrtCmoGetDescSize(&bytes), ACL_SUCCESS);
  EXPECT_EQ(aclrtCmoGetDescSize(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtCmoSetDesc(memory, memory, 64), ACL_SUCCESS);
  EXPECT_EQ(aclrtCmoSetDesc(&on_host, memory, 64), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtCmoAsyncWithDesc(memory, ACL_RT_CMO_TYPE_PREFETCH, nullptr, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtCmoAsyncWithDesc(memory, static_cast<aclrtCmoType>(4), nullptr, nullptr),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtCmoAsyncWithBarrier(memory, 64, ACL_RT_CMO_TYPE_FLUSH, 0, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtCmoAsyncWithBarrier(&on_host, 4, ACL_RT_CMO_TYPE_FLUSH, 0, nullptr),
            ACL_ERROR_INVALID_PARAM);
  aclrtBarrierTaskInfo barriers = {};
  EXPECT_EQ(aclrtCmoWaitBarrier(&barriers, nullptr, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtCmoWaitBarrier(nullptr, nullptr, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtDeviceL2CacheFlush(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtDeviceL2CacheFlush(memory), ACL_ERROR_INVALID_PARAM);
  const void* pointers[] = {memory};
  size_t sizes[] = {64};
  size_t starts[] = {0};
  aclrtMemManagedLocation place = {ACL_MEM_LOCATIONTYPE_DEVICE, 0};
  EXPECT_EQ(aclrtMemManagedPrefetchBatchAsync(pointers, sizes, 1, &place, starts, 1, 0, nullptr),
            ACL_SUCCESS);
  EXPECT_EQ(aclrtMemManagedPrefetchBatchAsync(pointers, sizes, 1, nullptr, starts, 1, 0, nullptr),
            ACL_ERROR_INVALID_PARAM);
  char key[65] = "";
  ASSERT_EQ(aclrtIpcMemGetExportKey(memory, 64, key, sizeof key, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtIpcMemSetAttr(key, ACL_RT_IPC_MEM_ATTR_ACCESS_LINK, 1), ACL_SUCCESS);
  EXPECT_EQ(aclrtIpcMemSetAttr(key, ACL_RT_IPC_MEM_ATTR_ACCESS_LINK, 9), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtIpcMemSetAttr("none", ACL_RT_IPC_MEM_ATTR_ACCESS_LINK, 1),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtCacheLastTaskOpInfo("info", 4), ACL_SUCCESS);
  EXPECT_EQ(aclrtCacheLastTaskOpInfo(nullptr, 4), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtCacheLastTaskExtendInfo("info", 4), ACL_SUCCESS);
  EXPECT_EQ(aclrtCacheLastTaskExtendInfo("info", 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtPersistentTaskClean(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtPersistentTaskClean(&on_host), ACL_ERROR_RT_INVALID_HANDLE);
  aclrtErrorInfo error = {};
  EXPECT_EQ(aclrtRepairError(0, &error), ACL_SUCCESS);
  EXPECT_EQ(aclrtRepairError(0, nullptr), ACL_ERROR_INVALID_PARAM);
  aclrtMemUceInfo fault = {};
  EXPECT_EQ(aclrtMemUceRepair(0, &fault, 1), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemUceRepair(0, &fault, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclRecoverAllHcclTasks(0), ACL_SUCCESS);
  EXPECT_EQ(aclRecoverAllHcclTasks(5), ACL_ERROR_RT_INVALID_DEVICEID);
}

TEST_F(SmallPartsTest, WhatIsRefusedSaysWhy) {
  constexpr auto kRefused = ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
  uint32_t number = 0;
  size_t size = 0;
  void* pointer = nullptr;
  EXPECT_EQ(aclrtCreateGroupInfo(), nullptr);
  EXPECT_THAT(aclGetRecentErrMsg(), testing::HasSubstr("not divided into groups"));
  EXPECT_EQ(aclrtDestroyGroupInfo(nullptr), kRefused);
  EXPECT_EQ(aclrtGetGroupCount(&number), kRefused);
  EXPECT_EQ(aclrtGetAllGroupInfo(nullptr), kRefused);
  EXPECT_EQ(aclrtGetGroupInfoDetail(nullptr, 0, ACL_GROUP_AICORE_INT, &number, 4, &size), kRefused);
  EXPECT_EQ(aclrtSetGroup(0), kRefused);
  EXPECT_EQ(aclrtGetHardwareSyncAddr(&pointer), kRefused);
  EXPECT_EQ(aclrtCtxGetFloatOverflowAddr(&pointer), kRefused);
  const aclrtAtomicOperation add = ACL_RT_ATOMIC_OPERATION_INTEGER_ADD;
  EXPECT_EQ(aclrtDeviceGetHostAtomicCapabilities(&number, &add, 1, 0), kRefused);
  EXPECT_EQ(aclrtDeviceGetP2PAtomicCapabilities(&number, &add, 1, 0, 0), kRefused);
  EXPECT_EQ(aclrtDeviceGetLimit(ACL_RT_DEV_LIMIT_SIMD_STACK_SIZE, &size), kRefused);
  EXPECT_EQ(aclrtDeviceSetLimit(ACL_RT_DEV_LIMIT_SIMD_STACK_SIZE, 1), kRefused);
  EXPECT_EQ(aclrtIpcMemImportPidInterServer("", nullptr, 0), kRefused);
  EXPECT_EQ(aclrtNotifySetImportPidInterServer(nullptr, nullptr, 0), kRefused);
  EXPECT_EQ(aclrtMemManagedGetAttr(ACL_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, nullptr, 0, nullptr, 0),
            kRefused);
  EXPECT_EQ(aclrtMemManagedGetAttrs(nullptr, 0, nullptr, 0, nullptr, nullptr), kRefused);
  EXPECT_THAT(aclGetRecentErrMsg(), testing::HasSubstr("no kernels of cores run here"));
}

}  // namespace
}  // namespace npumesh
