// aclInit to aclFinalize, recent errors, and the helpers that need no device.
#include <gmock/gmock.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "runtime/acl/process/device_context.h"
#include "runtime/acl/process/errors.h"
#include "tests/unit/acl/acl_test.h"

extern "C" int HeadersAreC(void);
int HeadersAreCpp11();

namespace npumesh {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(AclHeaders, CompileAsClientsCompileThem) {
  EXPECT_TRUE(HeadersAreC());
  EXPECT_TRUE(HeadersAreCpp11());
}

TEST(AclLifecycle, FinalizeWithoutInitIsFineOnce) {
  EXPECT_EQ(aclInit(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE);
  EXPECT_EQ(aclInit(""), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
}

TEST(AclLifecycle, ASecondInitRaisesTheCount) {
  uint64_t left = 99;
  EXPECT_EQ(aclInit(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclInit(nullptr), ACL_ERROR_REPEAT_INITIALIZE);
  EXPECT_EQ(aclFinalizeReference(&left), ACL_SUCCESS);
  EXPECT_EQ(left, 1u);
  EXPECT_EQ(aclFinalizeReference(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclFinalizeReference(&left), ACL_ERROR_REPEAT_FINALIZE);
}

TEST(AclLifecycle, ConfigMustBeReadable) {
  EXPECT_EQ(aclInit("/no/such/acl.json"), ACL_ERROR_INVALID_FILE);
  EXPECT_THAT(aclGetRecentErrMsg(), HasSubstr("/no/such/acl.json"));
}

TEST(AclLifecycle, SomeQuestionsNeedNoInit) {
  setenv("NPUMESH_DEVICE_COUNT", "3", 1);
  uint32_t count = 0;
  EXPECT_EQ(aclrtGetDeviceCount(&count), ACL_SUCCESS);
  EXPECT_EQ(count, 3u);
  unsetenv("NPUMESH_DEVICE_COUNT");
  EXPECT_EQ(aclrtGetDeviceCount(&count), ACL_SUCCESS);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(aclrtGetDeviceCount(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_STREQ(aclrtGetSocName(), "Ascend910B1");
  aclrtRunMode mode = ACL_DEVICE;
  EXPECT_EQ(aclrtGetRunMode(&mode), ACL_SUCCESS);
  EXPECT_EQ(mode, ACL_HOST);
  int32_t version[3] = {};
  EXPECT_EQ(aclrtGetVersion(&version[0], &version[1], &version[2]), ACL_SUCCESS);
  EXPECT_THAT(version, testing::ElementsAre(1, 17, 0));
}

TEST(AclLifecycle, AWrongEnvironmentIsNamed) {
  setenv("NPUMESH_DEVICE_COUNT", "many", 1);
  uint32_t count = 0;
  EXPECT_EQ(aclrtGetDeviceCount(&count), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSetDevice(0), ACL_ERROR_RT_NO_DEVICE);
  EXPECT_THAT(aclGetRecentErrMsg(), HasSubstr("NPUMESH_DEVICE_COUNT"));
  unsetenv("NPUMESH_DEVICE_COUNT");
  EXPECT_EQ(aclInit(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);  // also forgets that the start failed
}

TEST(AclErrors, BelongToTheThreadAndAreTakenOnce) {
  static_cast<void>(aclGetRecentErrMsg());
  static_cast<void>(aclrtGetLastError(ACL_RT_THREAD_LEVEL));
  EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
  EXPECT_EQ(aclrtFree(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtFreeHost(nullptr), ACL_ERROR_INVALID_PARAM);
  std::thread([] {
    EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
    EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS);
  }).join();
  EXPECT_STREQ(aclGetRecentErrMsg(),
               "aclrtFree: devPtr is null (100000)\naclrtFreeHost: hostPtr is null (100000)");
  EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
  EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS);
}

TEST(AclErrors, AreAddedByTheLibrariesAbove) {
  static_cast<void>(aclGetRecentErrMsg());
  RecordRecentError("HcclAllReduce: count differs");
  EXPECT_STREQ(aclGetRecentErrMsg(), "HcclAllReduce: count differs");
}

// What `thrown` becomes in the handler of a function.
template <typename Thrown>
aclError Caught(const Thrown& thrown) {
  try {
    throw thrown;
  } catch (...) {
    return FailThrown("aclTry");
  }
}

TEST(AclErrors, TellWhatWasThrown) {
  static_cast<void>(aclGetRecentErrMsg());
  EXPECT_EQ(Caught(std::bad_alloc()), ACL_ERROR_BAD_ALLOC);
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_BAD_ALLOC);
  EXPECT_STREQ(aclGetRecentErrMsg(), "aclTry: no host memory is left (200000)");
  EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
  RecordRecentError("before");
  EXPECT_EQ(Caught(std::runtime_error("x")), ACL_ERROR_INTERNAL_ERROR);
  EXPECT_STREQ(aclGetRecentErrMsg(), "before");
  EXPECT_STREQ(aclGetRecentErrMsg(), "aclTry: a bug of npumesh: x (500000)");
  EXPECT_EQ(Caught(7), ACL_ERROR_INTERNAL_ERROR);
  EXPECT_THAT(aclGetRecentErrMsg(), HasSubstr("an exception without words"));
  EXPECT_EQ(Caught(std::runtime_error(std::string(1000, 'x'))), ACL_ERROR_INTERNAL_ERROR);
  EXPECT_EQ(std::string_view(aclGetRecentErrMsg()).size(), 255u);
}

TEST(AclLifecycle, EndsInReverseOrder) {
  std::vector<int> order;
  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  AtFinalize([&order] { order.push_back(1); });
  AtFinalize([&order] { order.push_back(2); });
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  EXPECT_THAT(order, testing::ElementsAre(2, 1));
}

TEST(AclLifecycle, DestroysEventsAfterTheEnd) {
  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
  ASSERT_EQ(aclFinalize(), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyEvent(event), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
}

// A thread that has used a stream, and ends after all that the process's end runs.
std::atomic<bool> late_thread_may_end{false};
std::thread* late_thread = nullptr;

void UseStreamAndStay() {
  EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  aclrtStream stream = nullptr;
  EXPECT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  late_thread_may_end.wait(false);
}

void EndLateThread() {
  late_thread_may_end = true;
  late_thread_may_end.notify_all();
  late_thread->join();
}

[[noreturn]] void ExitBeforeItsThread() {
  std::atexit(EndLateThread);  // first in, so last out
  aclInit(nullptr);
  aclrtSetDevice(0);
  late_thread = new std::thread(UseStreamAndStay);
  aclrtStream stream = nullptr;
  aclrtCreateStream(&stream);
  aclFinalize();
  std::exit(0);
}

TEST(AclLifecycleDeathTest, AThreadMayOutliveMain) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(ExitBeforeItsThread(), testing::ExitedWithCode(0), "");
}

TEST(AclBase, ConvertsHalves) {
  EXPECT_EQ(aclFloatToFloat16(1.0f), 0x3c00);
  EXPECT_EQ(aclFloat16ToFloat(0xc000), -2.0f);
}

TEST(AclBase, KnowsTheSizesOfTypes) {
  const std::vector<std::pair<aclDataType, size_t>> sizes = {
      {ACL_DT_UNDEFINED, 0},  {ACL_FLOAT, 4},      {ACL_FLOAT16, 2},  {ACL_INT8, 1},
      {ACL_INT32, 4},         {ACL_UINT8, 1},      {ACL_INT16, 2},    {ACL_UINT16, 2},
      {ACL_UINT32, 4},        {ACL_INT64, 8},      {ACL_UINT64, 8},   {ACL_DOUBLE, 8},
      {ACL_BOOL, 1},          {ACL_BF16, 2},       {ACL_HIFLOAT8, 1}, {ACL_FLOAT8_E5M2, 1},
      {ACL_FLOAT8_E4M3FN, 1}, {ACL_FLOAT8_E8M0, 1}};
  for (const auto& [type, size] : sizes) EXPECT_EQ(aclDataTypeSize(type), size) << type;
}

}  // namespace
}  // namespace npumesh
