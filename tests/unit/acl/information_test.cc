// Limits of cores, what devices and packages are, options of streams, overflow.
#include <array>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/acl/acl_test.h"

namespace npumesh {
namespace {

class InformationTest : public AclTest {
 protected:
  InformationTest() : AclTest(2) {}

  static uint32_t CoresOfThread(aclrtDevResLimitType kind) {
    uint32_t value = 0;
    EXPECT_EQ(aclrtGetResInCurrentThread(kind, &value), ACL_SUCCESS);
    return value;
  }
  static int64_t Attribute(aclrtDevAttr attribute) {
    int64_t value = -1;
    EXPECT_EQ(aclrtGetDeviceInfo(0, attribute, &value), ACL_SUCCESS);
    return value;
  }
};

TEST_F(InformationTest, LimitsOfAStreamGoBeforeThoseOfTheDevice) {
  const auto cube = ACL_RT_DEV_RES_CUBE_CORE;
  EXPECT_EQ(CoresOfThread(cube), 24u);
  EXPECT_EQ(CoresOfThread(ACL_RT_DEV_RES_VECTOR_CORE), 48u);
  ASSERT_EQ(aclrtSetDeviceResLimit(0, cube, 10), ACL_SUCCESS);
  EXPECT_EQ(CoresOfThread(cube), 10u);
  uint32_t other_device = 0;
  ASSERT_EQ(aclrtGetDeviceResLimit(1, cube, &other_device), ACL_SUCCESS);
  EXPECT_EQ(other_device, 24u);

  const aclrtStream stream = NewStream();
  uint32_t of_stream = 0;
  ASSERT_EQ(aclrtGetStreamResLimit(stream, cube, &of_stream), ACL_SUCCESS);
  EXPECT_EQ(of_stream, 10u);
  ASSERT_EQ(aclrtSetStreamResLimit(stream, cube, 3), ACL_SUCCESS);
  EXPECT_EQ(CoresOfThread(cube), 10u);
  ASSERT_EQ(aclrtUseStreamResInCurrentThread(stream), ACL_SUCCESS);
  EXPECT_EQ(CoresOfThread(cube), 3u);
  std::thread([] {
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    EXPECT_EQ(CoresOfThread(ACL_RT_DEV_RES_CUBE_CORE), 10u);
  }).join();
  ASSERT_EQ(aclrtResetStreamResLimit(stream), ACL_SUCCESS);
  EXPECT_EQ(CoresOfThread(cube), 10u);
  ASSERT_EQ(aclrtUnuseStreamResInCurrentThread(stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtUnuseStreamResInCurrentThread(stream), ACL_ERROR_INVALID_PARAM);
  ASSERT_EQ(aclrtResetDeviceResLimit(0), ACL_SUCCESS);
  EXPECT_EQ(CoresOfThread(cube), 24u);
}

TEST_F(InformationTest, LimitsAreChecked) {
  uint32_t value = 0;
  const auto cube = ACL_RT_DEV_RES_CUBE_CORE;
  const auto unknown = static_cast<aclrtDevResLimitType>(2);
  aclGetRecentErrMsg();  // of other tests
  EXPECT_EQ(aclrtSetDeviceResLimit(0, cube, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSetDeviceResLimit(0, cube, 25), ACL_ERROR_INVALID_PARAM);
  EXPECT_STREQ(aclGetRecentErrMsg(),
               "aclrtSetDeviceResLimit: value is 0, expected 1 to 24 (100000)\n"
               "aclrtSetDeviceResLimit: value is 25, expected 1 to 24 (100000)");
  EXPECT_EQ(aclrtSetDeviceResLimit(0, unknown, 1), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSetDeviceResLimit(2, cube, 1), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtGetDeviceResLimit(0, cube, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtGetDeviceResLimit(0, unknown, &value), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSetStreamResLimit(&value, cube, 1), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtUseStreamResInCurrentThread(&value), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtGetResInCurrentThread(unknown, &value), ACL_ERROR_INVALID_PARAM);
}

TEST_F(InformationTest, ADeviceHasTheNumbersOfItsSoc) {
  EXPECT_EQ(Attribute(ACL_DEV_ATTR_AICORE_CORE_NUM), 24);
  EXPECT_EQ(Attribute(ACL_DEV_ATTR_VECTOR_CORE_NUM), 48);
  EXPECT_EQ(Attribute(ACL_DEV_ATTR_WARP_SIZE), 0);
  EXPECT_EQ(Attribute(ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE), 16 << 20);
  int64_t value = 0;
  EXPECT_EQ(aclGetDeviceCapability(0, ACL_DEVICE_INFO_VECTOR_CORE_NUM, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 48);
  EXPECT_EQ(aclGetDeviceCapability(0, ACL_DEVICE_INFO_UNDEFINED, &value), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_MAINBOARD_ID, &value),
            ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(aclrtGetDeviceInfo(2, ACL_DEV_ATTR_NPU_ARCH, &value), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_NPU_ARCH, nullptr), ACL_ERROR_INVALID_PARAM);
  int32_t compatible = -1;
  EXPECT_EQ(aclrtCheckArchCompatibility(aclrtGetSocName(), &compatible), ACL_SUCCESS);
  EXPECT_EQ(compatible, 1);
  EXPECT_EQ(aclrtCheckArchCompatibility("Ascend310P3", &compatible), ACL_SUCCESS);
  EXPECT_EQ(compatible, 0);
}

TEST_F(InformationTest, ADeviceIsBusyWhileAStreamHasWork) {
  aclrtUtilizationInfo use = {};
  void* const block = Allocate(8 << 20);
  ASSERT_EQ(aclrtGetDeviceUtilizationRate(0, &use), ACL_SUCCESS);
  EXPECT_EQ(use.vectorUtilization, 0);
  EXPECT_EQ(use.memoryUtilization, 50);
  Gate gate(NewStream());
  ASSERT_EQ(aclrtGetDeviceUtilizationRate(0, &use), ACL_SUCCESS);
  EXPECT_EQ(use.vectorUtilization, 100);
  ASSERT_EQ(aclrtGetDeviceUtilizationRate(1, &use), ACL_SUCCESS);
  EXPECT_EQ(use.vectorUtilization, 0);
  gate.Open();
  ASSERT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
  ASSERT_EQ(aclrtFree(block), ACL_SUCCESS);
  std::array<aclrtMemUsageInfo, 2> memory = {};
  size_t entries = 0;
  ASSERT_EQ(aclrtGetMemUsageInfo(0, memory.data(), memory.size(), &entries), ACL_SUCCESS);
  ASSERT_EQ(entries, 1u);
  EXPECT_STREQ(memory[0].name, "npumesh");
  EXPECT_EQ(memory[0].curMemSize, 0u);
  EXPECT_EQ(memory[0].memPeakSize, uint64_t{8} << 20);
  EXPECT_EQ(aclrtGetMemUsageInfo(0, memory.data(), 0, &entries), ACL_ERROR_INVALID_PARAM);
}

TEST_F(InformationTest, ADeviceHasNoFaults) {
  aclrtErrorInfo error;
  std::memset(&error, 0xff, sizeof error);
  ASSERT_EQ(aclrtGetErrorVerbose(1, &error), ACL_SUCCESS);
  EXPECT_EQ(error.errorType, ACL_RT_NO_ERROR);
  EXPECT_EQ(error.tryRepair, 0);
  EXPECT_EQ(error.hasDetail, 0);
  EXPECT_EQ(aclrtGetErrorVerbose(2, &error), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtGetErrorVerbose(0, nullptr), ACL_ERROR_INVALID_PARAM);
}

TEST_F(InformationTest, BusIdsNameDevices) {
  char id[14] = {};
  ASSERT_EQ(aclrtDeviceGetPCIBusId(1, id, sizeof id), ACL_SUCCESS);
  int32_t device = -1;
  ASSERT_EQ(aclrtDeviceGetByPCIBusId(id, &device), ACL_SUCCESS);
  EXPECT_EQ(device, 1);
  EXPECT_EQ(aclrtDeviceGetByPCIBusId("0000:77:00.0", &device), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtDeviceGetPCIBusId(1, id, 12), ACL_ERROR_INVALID_PARAM);
}

TEST_F(InformationTest, PackagesHaveOneVersion) {
  std::string package = "runtime";
  char text[ACL_PKG_VERSION_MAX_SIZE] = {};
  int32_t number = 0;
  ASSERT_EQ(aclsysGetVersionStr(package.data(), text), ACL_SUCCESS);
  ASSERT_EQ(aclsysGetVersionNum(package.data(), &number), ACL_SUCCESS);
  int major = 0;
  int minor = 0;
  int patch = 0;
  ASSERT_EQ(std::sscanf(text, "%d.%d.%d", &major, &minor, &patch), 3);
  EXPECT_EQ(number, major * 10000000 + minor * 100000 + patch * 1000);
  aclCANNPackageVersion version;
  ASSERT_EQ(aclsysGetCANNVersion(ACL_PKG_NAME_HCCL, &version), ACL_SUCCESS);
  EXPECT_STREQ(version.version, text);
  EXPECT_EQ(std::to_string(major), version.majorVersion);
  package = "no_such_package";
  EXPECT_EQ(aclsysGetVersionStr(package.data(), text), ACL_ERROR_INVALID_FILE);
  EXPECT_EQ(aclsysGetVersionNum(nullptr, &number), ACL_ERROR_INVALID_PARAM);
  const aclCannAttr* attributes = nullptr;
  size_t count = 0;
  ASSERT_EQ(aclGetCannAttributeList(&attributes, &count), ACL_SUCCESS);
  for (size_t i = 0; i < count; ++i) {
    int32_t supported = -1;
    EXPECT_EQ(aclGetCannAttribute(attributes[i], &supported), ACL_SUCCESS);
    EXPECT_EQ(supported, 1);
  }
  int32_t value = 0;
  EXPECT_EQ(aclGetCannAttribute(ACL_CANN_ATTR_UNDEFINED, &value), ACL_ERROR_INVALID_PARAM);
}

TEST_F(InformationTest, StreamsHaveTheOptionsOfTheirConfiguration) {
  aclrtStreamConfigHandle* const config = aclrtCreateStreamConfigHandle();
  ASSERT_NE(config, nullptr);
  const size_t flags = ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC;
  const uint32_t priority = 5;
  ASSERT_EQ(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_FLAG, &flags, sizeof flags), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_PRIORITY, &priority, sizeof priority),
            ACL_SUCCESS);
  const uint32_t short_flags = ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC;
  ASSERT_EQ(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_FLAG, &short_flags, sizeof short_flags),
            ACL_SUCCESS);
  EXPECT_EQ(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_PRIORITY, &flags, sizeof flags),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_FLAG, nullptr, sizeof flags),
            ACL_ERROR_INVALID_PARAM);
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStreamV2(&stream, config), ACL_SUCCESS);
  uint32_t seen = 0;
  EXPECT_EQ(aclrtStreamGetFlags(stream, &seen), ACL_SUCCESS);
  EXPECT_EQ(seen, flags);
  EXPECT_EQ(aclrtStreamGetPriority(stream, &seen), ACL_SUCCESS);
  EXPECT_EQ(seen, priority);
  ASSERT_EQ(aclrtDestroyStreamConfigHandle(config), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStreamConfigHandle(config), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtCreateStreamV2(&stream, config), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtCreateStreamWithConfig(&stream, 8, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtCreateStreamWithConfig(&stream, 0, 0x80), ACL_ERROR_INVALID_PARAM);
}

TEST_F(InformationTest, AttributesOfStreamsAreKept) {
  const aclrtStream stream = NewStream();
  aclrtStreamAttrValue value = {};
  for (const auto attribute :
       {ACL_STREAM_ATTR_FAILURE_MODE, ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK,
        ACL_STREAM_ATTR_USER_CUSTOM_TAG, ACL_STREAM_ATTR_CACHE_OP_INFO, ACL_STREAM_ATTR_PRIORITY}) {
    value = {};
    ASSERT_EQ(aclrtGetStreamAttribute(stream, attribute, &value), ACL_SUCCESS);
    EXPECT_EQ(value.failureMode, 0u);
    value.failureMode = 1;
    ASSERT_EQ(aclrtSetStreamAttribute(stream, attribute, &value), ACL_SUCCESS);
    value = {};
    ASSERT_EQ(aclrtGetStreamAttribute(stream, attribute, &value), ACL_SUCCESS);
    EXPECT_EQ(value.failureMode, 1u);
  }
  EXPECT_EQ(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_PRIORITY, nullptr),
            ACL_ERROR_INVALID_PARAM);
  value.streamPriority = 8;
  EXPECT_EQ(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_PRIORITY, &value),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtGetStreamAttribute(stream, static_cast<aclrtStreamAttr>(6), &value),
            ACL_ERROR_INVALID_PARAM);
}

// What callbacks have heard.
struct Heard {
  std::vector<aclrtStreamState> streams;
  std::vector<aclrtDeviceState> devices;
  aclrtStream last = nullptr;

  static void OfStream(aclrtStream stream, aclrtStreamState state, void* heard) {
    static_cast<Heard*>(heard)->streams.push_back(state);
    static_cast<Heard*>(heard)->last = stream;
    int32_t id = 0;
    EXPECT_EQ(aclrtStreamGetId(stream, &id), ACL_SUCCESS);  // they may call the interface
  }
  static void OfDevice(int32_t, aclrtDeviceState state, void* heard) {
    static_cast<Heard*>(heard)->devices.push_back(state);
  }
};

TEST_F(InformationTest, CallbacksHearOfStreamsAndDevices) {
  Heard heard;
  ASSERT_EQ(aclrtRegStreamStateCallback("a", Heard::OfStream, &heard), ACL_SUCCESS);
  EXPECT_EQ(aclrtRegStreamStateCallback("a", Heard::OfStream, &heard), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtRegStreamStateCallback("", Heard::OfStream, &heard), ACL_ERROR_INVALID_PARAM);
  ASSERT_EQ(aclrtRegDeviceStateCallback("a", Heard::OfDevice, &heard), ACL_SUCCESS);
  const aclrtStream stream = NewStream();
  EXPECT_EQ(heard.last, stream);
  ASSERT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(1), ACL_SUCCESS);    // with its default stream
  ASSERT_EQ(aclrtResetDevice(1), ACL_SUCCESS);  // which ends
  const std::vector<aclrtStreamState> twice = {
      ACL_RT_STREAM_STATE_CREATE_POST, ACL_RT_STREAM_STATE_DESTROY_PRE,
      ACL_RT_STREAM_STATE_CREATE_POST, ACL_RT_STREAM_STATE_DESTROY_PRE};
  EXPECT_EQ(heard.streams, twice);
  const std::vector<aclrtDeviceState> once = {
      ACL_RT_DEVICE_STATE_SET_PRE, ACL_RT_DEVICE_STATE_SET_POST, ACL_RT_DEVICE_STATE_RESET_PRE,
      ACL_RT_DEVICE_STATE_RESET_POST};
  EXPECT_EQ(heard.devices, once);
  ASSERT_EQ(aclrtRegStreamStateCallback("a", nullptr, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtRegStreamStateCallback("a", nullptr, nullptr), ACL_ERROR_INVALID_PARAM);
  ASSERT_EQ(aclrtRegDeviceStateCallback("a", nullptr, nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  NewStream();
  EXPECT_EQ(heard.streams.size(), 4u);
}

TEST_F(InformationTest, NothingOverflows) {
  void* const status = Allocate(64);
  ASSERT_EQ(aclrtMemset(status, 64, 0xff, 64), ACL_SUCCESS);
  const aclrtStream stream = NewStream();
  ASSERT_EQ(aclrtSetStreamOverflowSwitch(stream, 1), ACL_SUCCESS);
  uint32_t flag = 0;
  ASSERT_EQ(aclrtGetStreamOverflowSwitch(stream, &flag), ACL_SUCCESS);
  EXPECT_EQ(flag, 1u);
  ASSERT_EQ(aclrtResetOverflowStatus(stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtGetOverflowStatus(status, 64, stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  const std::array<char, 64> zeros = {};
  EXPECT_EQ(std::memcmp(status, zeros.data(), zeros.size()), 0);
  EXPECT_EQ(aclrtGetOverflowStatus(status, 63, stream), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtGetOverflowStatus(nullptr, 64, stream), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSetStreamOverflowSwitch(stream, 2), ACL_ERROR_INVALID_PARAM);
}

TEST_F(InformationTest, WhatHasNoEffectIsChecked) {
  void* const block = Allocate(1024);
  uint64_t actual = 0;
  EXPECT_EQ(aclrtCmoAsync(block, 1024, ACL_RT_CMO_TYPE_PREFETCH, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtCmoAsync(&actual, 8, ACL_RT_CMO_TYPE_PREFETCH, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemFlush(block, 1024), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemFlush(block, size_t{1} << 40), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemInvalidate(block, 1024), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemInvalidate(nullptr, 1024), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSetTsDevice(ACL_TS_ID_AIVECTOR), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetTsDevice(ACL_TS_ID_RESERVED), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSetOpExecuteTimeOutWithMs(5), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetOpExecuteTimeOutV2(7, &actual), ACL_SUCCESS);
  EXPECT_EQ(actual, 7u);
  EXPECT_EQ(aclrtSetOpExecuteTimeOutV2(7, nullptr), ACL_ERROR_INVALID_PARAM);
}

}  // namespace
}  // namespace npumesh
