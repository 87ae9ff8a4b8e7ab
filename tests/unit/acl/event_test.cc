#include <chrono>
#include <string>
#include <thread>

#include "runtime/acl/process/device_context.h"
#include "tests/unit/acl/acl_test.h"

namespace npumesh {
namespace {

class AclEventTest : public AclTest {
 protected:
  static aclrtEvent NewEvent(uint32_t flag = 0) {
    aclrtEvent event = nullptr;
    EXPECT_EQ(flag == 0 ? aclrtCreateEvent(&event) : aclrtCreateEventWithFlag(&event, flag),
              ACL_SUCCESS);
    return event;
  }
  static aclrtEventRecordedStatus StatusOf(aclrtEvent event) {
    aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
    EXPECT_EQ(aclrtQueryEventStatus(event, &status), ACL_SUCCESS);
    return status;
  }
  static void Nap(void*) { std::this_thread::sleep_for(std::chrono::milliseconds(3)); }
};

TEST_F(AclEventTest, MeasuresMilliseconds) {
  const aclrtStream stream = NewStream();
  const aclrtEvent start = NewEvent();
  const aclrtEvent end = NewEvent(ACL_EVENT_TIME_LINE);
  EXPECT_EQ(aclrtRecordEvent(start, stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtLaunchHostFunc(stream, Nap, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtRecordEvent(end, stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  float ms = 0;
  EXPECT_EQ(aclrtEventElapsedTime(&ms, start, end), ACL_SUCCESS);
  EXPECT_GE(ms, 3.0f);
  uint64_t from = 0;
  uint64_t to = 0;
  EXPECT_EQ(aclrtEventGetTimestamp(start, &from), ACL_SUCCESS);
  EXPECT_EQ(aclrtEventGetTimestamp(end, &to), ACL_SUCCESS);
  EXPECT_GE(to - from, 2999u);
  EXPECT_EQ(aclrtEventElapsedTime(&ms, end, start), ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL);
  EXPECT_EQ(aclrtEventElapsedTime(nullptr, start, end), ACL_ERROR_INVALID_PARAM);
}

TEST_F(AclEventTest, HasNoTimeUnlessAskedForAndReached) {
  const aclrtEvent timed = NewEvent();
  const aclrtEvent untimed = NewEvent(ACL_EVENT_SYNC);
  const aclrtEvent never = NewEvent();
  float ms = 0;
  uint64_t timestamp = 0;
  for (const aclrtEvent event : {timed, untimed}) {
    EXPECT_EQ(aclrtRecordEvent(event, nullptr), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeEvent(event), ACL_SUCCESS);
  }
  EXPECT_EQ(aclrtEventElapsedTime(&ms, timed, untimed), ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
  EXPECT_EQ(aclrtEventElapsedTime(&ms, timed, never), ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
  EXPECT_EQ(aclrtEventGetTimestamp(untimed, &timestamp), ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
  EXPECT_EQ(aclrtEventGetTimestamp(never, &timestamp), ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
  EXPECT_EQ(aclrtEventGetTimestamp(timed, nullptr), ACL_ERROR_INVALID_PARAM);
}

TEST_F(AclEventTest, IsReadyWhenTheStreamReachesIt) {
  const aclrtStream stream = NewStream();
  const aclrtEvent event = NewEvent();
  EXPECT_EQ(StatusOf(event), ACL_EVENT_RECORDED_STATUS_NOT_READY);
  Gate gate(stream);
  EXPECT_EQ(aclrtRecordEvent(event, stream), ACL_SUCCESS);
  aclrtEventStatus old = ACL_EVENT_STATUS_RESERVED;
  EXPECT_EQ(aclrtQueryEvent(event, &old), ACL_SUCCESS);
  EXPECT_EQ(old, ACL_EVENT_STATUS_NOT_READY);
  EXPECT_EQ(aclrtSynchronizeEventWithTimeout(event, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSynchronizeEventWithTimeout(event, 2), ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
  gate.Open();
  EXPECT_EQ(aclrtSynchronizeEventWithTimeout(event, 10'000), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeEventWithTimeout(event, -1), ACL_SUCCESS);
  EXPECT_EQ(StatusOf(event), ACL_EVENT_RECORDED_STATUS_COMPLETE);
  EXPECT_EQ(aclrtQueryEvent(event, &old), ACL_SUCCESS);
  EXPECT_EQ(old, ACL_EVENT_STATUS_COMPLETE);
  EXPECT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyEvent(event), ACL_ERROR_RT_INVALID_HANDLE);
}

// hccl_test holds its stream so that all calls are queued before the first one runs.
TEST_F(AclEventTest, ASyncEventHoldsAStreamUntilItIsRecorded) {
  const aclrtStream held = NewStream();
  const aclrtStream other = NewStream();
  const aclrtEvent event = NewEvent(ACL_EVENT_SYNC);
  aclrtEventWaitStatus waits = ACL_EVENT_WAIT_STATUS_RESERVED;
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(aclrtStreamWaitEvent(held, event), ACL_SUCCESS);
    EXPECT_EQ(aclrtResetEvent(event, held), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(held, 2), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    EXPECT_EQ(aclrtQueryEventWaitStatus(event, &waits), ACL_SUCCESS);
    EXPECT_EQ(waits, ACL_EVENT_WAIT_STATUS_NOT_READY);
    EXPECT_EQ(aclrtRecordEvent(event, other), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(held), ACL_SUCCESS);
    EXPECT_EQ(aclrtQueryEventWaitStatus(event, &waits), ACL_SUCCESS);
    EXPECT_EQ(waits, ACL_EVENT_WAIT_STATUS_COMPLETE);
    EXPECT_EQ(StatusOf(event), ACL_EVENT_RECORDED_STATUS_NOT_READY);
  }
}

TEST_F(AclEventTest, OtherEventsHoldNoStreamBeforeTheirRecord) {
  aclrtEvent ex = nullptr;
  ASSERT_EQ(aclrtCreateEventExWithFlag(&ex, ACL_EVENT_SYNC), ACL_SUCCESS);
  const aclrtStream stream = NewStream();
  for (const aclrtEvent event : {NewEvent(), NewEvent(ACL_EVENT_TIME_LINE), ex}) {
    EXPECT_EQ(aclrtStreamWaitEvent(stream, event), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  }
  for (const aclrtEvent event : {NewEvent(ACL_EVENT_TIME_LINE), ex}) {
    EXPECT_EQ(aclrtResetEvent(event, stream), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    EXPECT_NE(std::string(aclGetRecentErrMsg()).find("can be reset"), std::string::npos);
  }
}

// One event orders two streams again and again: each wait is for the record before it, the reset in
// the stream that has waited concerns neither.
TEST_F(AclEventTest, AnEventWithoutFlagsIsResetAndRecordedAgain) {
  const aclrtStream first = NewStream();
  const aclrtStream second = NewStream();
  const aclrtEvent event = NewEvent();
  for (int round = 0; round < 3; ++round) {
    Gate gate(first);
    EXPECT_EQ(aclrtRecordEvent(event, first), ACL_SUCCESS);
    EXPECT_EQ(aclrtStreamWaitEvent(second, event), ACL_SUCCESS);
    EXPECT_EQ(aclrtResetEvent(event, second), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(second, 2), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    gate.Open();
    EXPECT_EQ(aclrtSynchronizeStream(second), ACL_SUCCESS);
    EXPECT_EQ(StatusOf(event), ACL_EVENT_RECORDED_STATUS_NOT_READY);
    EXPECT_EQ(aclrtStreamWaitEvent(first, event), ACL_SUCCESS);  // nothing to wait for
    EXPECT_EQ(aclrtSynchronizeStream(first), ACL_SUCCESS);
    EXPECT_EQ(aclrtRecordEvent(event, second), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeEvent(event), ACL_SUCCESS);
    EXPECT_EQ(StatusOf(event), ACL_EVENT_RECORDED_STATUS_COMPLETE);
  }
}

// The vendor on aclrtCreateEventExWithFlag: an event that was never recorded is complete.
TEST_F(AclEventTest, AnExEventIsCompleteBeforeItsFirstRecord) {
  const aclrtStream stream = NewStream();
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC), ACL_SUCCESS);
  EXPECT_EQ(StatusOf(event), ACL_EVENT_RECORDED_STATUS_COMPLETE);
  aclrtEventStatus old = ACL_EVENT_STATUS_RESERVED;
  EXPECT_EQ(aclrtQueryEvent(event, &old), ACL_SUCCESS);
  EXPECT_EQ(old, ACL_EVENT_STATUS_COMPLETE);
  EXPECT_EQ(aclrtSynchronizeEvent(event), ACL_SUCCESS);
  Gate gate(stream);
  EXPECT_EQ(aclrtRecordEvent(event, stream), ACL_SUCCESS);
  EXPECT_EQ(StatusOf(event), ACL_EVENT_RECORDED_STATUS_NOT_READY);
  gate.Open();
  EXPECT_EQ(aclrtSynchronizeEvent(event), ACL_SUCCESS);
  EXPECT_EQ(StatusOf(event), ACL_EVENT_RECORDED_STATUS_COMPLETE);
}

TEST_F(AclEventTest, AWaitCanHaveALimit) {
  const aclrtStream stream = NewStream();
  EXPECT_EQ(aclrtSetOpWaitTimeout(1), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamWaitEvent(stream, NewEvent(ACL_EVENT_SYNC)), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetOpWaitTimeout(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetOpExecuteTimeOut(5), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_TASK_TIMEOUT);
}

TEST_F(AclEventTest, RefusesWhatIsNone) {
  int foreign = 0;
  const aclrtEvent event = NewEvent();
  aclrtEvent made = nullptr;
  EXPECT_EQ(aclrtCreateEvent(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtCreateEventWithFlag(&made, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtCreateEventWithFlag(&made, 0x4), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtRecordEvent(nullptr, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtRecordEvent(&foreign, nullptr), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtRecordEvent(event, &foreign), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtStreamWaitEvent(&foreign, event), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtSynchronizeEvent(&foreign), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtQueryEventStatus(event, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtQueryEvent(event, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtQueryEventWaitStatus(event, nullptr), ACL_ERROR_INVALID_PARAM);
}

}  // namespace
}  // namespace npumesh
