#include <gmock/gmock.h>

#include <thread>

#include "runtime/acl/process/device_context.h"
#include "tests/unit/acl/acl_test.h"

namespace npumesh {
namespace {

class AclDeviceTest : public AclTest {
 protected:
  AclDeviceTest() : AclTest(2) {}
};

TEST_F(AclDeviceTest, SetDeviceRefusesOtherIds) {
  EXPECT_EQ(aclrtSetDevice(2), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtSetDevice(-1), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_THAT(aclGetRecentErrMsg(), testing::HasSubstr("NPUMESH_DEVICE_COUNT"));
}

TEST_F(AclDeviceTest, CurrentDeviceIsTheThreads) {
  int32_t id = -1;
  EXPECT_EQ(aclrtGetDevice(&id), ACL_SUCCESS);
  EXPECT_EQ(id, 0);
  EXPECT_EQ((*CurrentDevice())->world.rank(), 0);
  std::thread([] {
    int32_t mine = -1;
    EXPECT_EQ(aclrtGetDevice(&mine), ACL_ERROR_RT_CONTEXT_NULL);
    EXPECT_EQ(CurrentDevice().status().code(), Code::kNotFound);
    EXPECT_EQ(StreamOf(nullptr).status().code(), Code::kNotFound);
    EXPECT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
    EXPECT_EQ(aclrtGetDevice(&mine), ACL_SUCCESS);
    EXPECT_EQ(mine, 1);
    EXPECT_EQ((*CurrentDevice())->world.rank(), 1);
  }).join();
  EXPECT_EQ((*CurrentDevice())->world.rank(), 0);
  EXPECT_EQ((*CurrentDevice())->world.size(), 2);
}

TEST_F(AclDeviceTest, ThreadsOfADeviceShareItsContextAndStream) {
  aclrtContext context = nullptr;
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtGetCurrentContext(&context), ACL_SUCCESS);
  ASSERT_EQ(aclrtCtxGetCurrentDefaultStream(&stream), ACL_SUCCESS);
  std::thread([&] {
    aclrtContext theirs = nullptr;
    aclrtStream their_stream = nullptr;
    EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    EXPECT_EQ(aclrtGetCurrentContext(&theirs), ACL_SUCCESS);
    EXPECT_EQ(aclrtCtxGetCurrentDefaultStream(&their_stream), ACL_SUCCESS);
    EXPECT_EQ(theirs, context);
    EXPECT_EQ(their_stream, stream);
  }).join();
}

TEST_F(AclDeviceTest, TheLastResetEndsStreamsAndMemory) {
  const aclrtStream stream = NewStream();
  void* block = Allocate(1 << 20);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtFree(block), ACL_ERROR_INVALID_PARAM);
  int32_t id = -1;
  EXPECT_EQ(aclrtGetDevice(&id), ACL_ERROR_RT_CONTEXT_NULL);
  EXPECT_EQ(aclrtResetDevice(0), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtResetDevice(7), ACL_ERROR_RT_INVALID_DEVICEID);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  size_t free = 0;
  size_t total = 0;
  EXPECT_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total), ACL_SUCCESS);
  EXPECT_EQ(free, total);
}

TEST_F(AclDeviceTest, AForcedResetAsksForNoReferences) {
  const aclrtStream stream = NewStream();
  void* block = Allocate(1 << 20);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);  // the second reference
  EXPECT_EQ(aclrtResetDeviceForce(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtFree(block), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtResetDevice(0), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtResetDeviceForce(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDeviceForce(1), ACL_SUCCESS);  // never set
  EXPECT_EQ(aclrtResetDeviceForce(2), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
}

// Threads of a program reset their device after the main thread has finalized.
TEST_F(AclDeviceTest, AResetAfterFinalizeIsFine) {
  ASSERT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
  ASSERT_EQ(aclFinalize(), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDevice(1), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDeviceForce(1), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDevice(2), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtResetDevice(-1), ACL_ERROR_RT_INVALID_DEVICEID);
  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDevice(0), ACL_ERROR_RT_INVALID_DEVICEID);  // another time, not set in it
}

TEST_F(AclDeviceTest, SaturationModeIsKept) {
  aclrtFloatOverflowMode mode = ACL_RT_OVERFLOW_MODE_UNDEF;
  EXPECT_EQ(aclrtGetDeviceSatMode(&mode), ACL_SUCCESS);
  EXPECT_EQ(mode, ACL_RT_OVERFLOW_MODE_SATURATION);
  EXPECT_EQ(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_INFNAN), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetDeviceSatMode(&mode), ACL_SUCCESS);
  EXPECT_EQ(mode, ACL_RT_OVERFLOW_MODE_INFNAN);
  EXPECT_EQ(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_UNDEF), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtGetDeviceSatMode(nullptr), ACL_ERROR_INVALID_PARAM);
}

TEST_F(AclDeviceTest, PeersReachEachOther) {
  int32_t can = 0;
  EXPECT_EQ(aclrtDeviceCanAccessPeer(&can, 0, 1), ACL_SUCCESS);
  EXPECT_EQ(can, 1);
  EXPECT_EQ(aclrtDeviceCanAccessPeer(&can, 0, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtDeviceCanAccessPeer(&can, 0, 2), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtDeviceCanAccessPeer(nullptr, 0, 1), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtDeviceEnablePeerAccess(1, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtDeviceEnablePeerAccess(1, 1), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtDeviceEnablePeerAccess(2, 0), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtDeviceDisablePeerAccess(1), ACL_SUCCESS);
}

TEST_F(AclDeviceTest, IdsAreTheSameInEveryNumbering) {
  for (const auto convert : {aclrtGetPhyDevIdByLogicDevId, aclrtGetLogicDevIdByUserDevId,
                             aclrtGetUserDevIdByLogicDevId}) {
    int32_t id = -1;
    EXPECT_EQ(convert(1, &id), ACL_SUCCESS);
    EXPECT_EQ(id, 1);
    EXPECT_EQ(convert(2, &id), ACL_ERROR_RT_INVALID_DEVICEID);
    EXPECT_EQ(convert(0, nullptr), ACL_ERROR_INVALID_PARAM);
  }
}

TEST_F(AclDeviceTest, StatusIsNormal) {
  aclrtDeviceStatus status = ACL_RT_DEVICE_STATUS_END;
  EXPECT_EQ(aclrtQueryDeviceStatus(1, &status), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_RT_DEVICE_STATUS_NORMAL);
  EXPECT_EQ(aclrtQueryDeviceStatus(2, &status), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtQueryDeviceStatus(0, nullptr), ACL_ERROR_INVALID_PARAM);
}

TEST_F(AclDeviceTest, SynchronizeDeviceWaitsForAllStreams) {
  int order = 0;
  for (int i = 0; i < 3; ++i) {
    const auto count = [](void* at) { ++*static_cast<int*>(at); };
    EXPECT_EQ(aclrtLaunchHostFunc(NewStream(), count, &order), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
  }
  EXPECT_EQ(order, 3);
  Gate gate(NewStream());
  EXPECT_EQ(aclrtSynchronizeDeviceWithTimeout(0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSynchronizeDeviceWithTimeout(5), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  gate.Open();
  EXPECT_EQ(aclrtSynchronizeDeviceWithTimeout(10'000), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeDeviceWithTimeout(-1), ACL_SUCCESS);
}

}  // namespace
}  // namespace npumesh
