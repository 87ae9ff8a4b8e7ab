#include <pthread.h>
#include <cstdint>
#include <future>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/unit/acl/acl_test.h"

namespace npumesh {
namespace {

class AclCallbackTest : public AclTest {
 protected:
  static void NoteThread(void* at) {
    *static_cast<std::thread::id*>(at) = std::this_thread::get_id();
  }
  static uint64_t Me() { return static_cast<uint64_t>(pthread_self()); }
};

TEST_F(AclCallbackTest, RunsOnTheSubscribedThread) {
  const aclrtStream stream = NewStream();
  std::atomic<bool> subscribed{false};
  std::thread::id ran_on;
  std::thread reporter([&] {
    EXPECT_EQ(aclrtSubscribeReport(Me(), stream), ACL_SUCCESS);
    subscribed = true;
    EXPECT_EQ(aclrtProcessReport(-1), ACL_SUCCESS);
  });
  while (!subscribed) std::this_thread::yield();
  EXPECT_EQ(aclrtLaunchCallback(NoteThread, &ran_on, ACL_CALLBACK_BLOCK, stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_EQ(ran_on, reporter.get_id());
  reporter.join();
}

TEST_F(AclCallbackTest, OneThatDoesNotBlockWaitsForItsThread) {
  const aclrtStream stream = NewStream();
  std::thread::id ran_on;
  EXPECT_EQ(aclrtSubscribeReport(Me(), stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtLaunchCallback(NoteThread, &ran_on, ACL_CALLBACK_NO_BLOCK, stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_EQ(ran_on, std::thread::id());
  EXPECT_EQ(aclrtProcessReport(1000), ACL_SUCCESS);
  EXPECT_EQ(ran_on, std::this_thread::get_id());
  EXPECT_EQ(aclrtProcessReport(1), ACL_ERROR_WAIT_CALLBACK_TIMEOUT);
  EXPECT_EQ(aclrtProcessReport(0), ACL_ERROR_INVALID_PARAM);
}

TEST_F(AclCallbackTest, UnsubscribingLetsTheStreamGoOn) {
  const aclrtStream stream = NewStream();
  std::thread::id ran_on;
  EXPECT_EQ(aclrtSubscribeReport(Me(), stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtLaunchCallback(NoteThread, &ran_on, ACL_CALLBACK_BLOCK, stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream, 2), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  EXPECT_EQ(aclrtUnSubscribeReport(Me(), stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_EQ(ran_on, std::thread::id());
  EXPECT_EQ(aclrtProcessReport(1), ACL_ERROR_RT_THREAD_SUBSCRIBE);
}

TEST_F(AclCallbackTest, ForcingAStreamToEndDropsItsCallbacks) {
  const aclrtStream stream = NewStream();
  std::thread::id ran_on;
  EXPECT_EQ(aclrtSubscribeReport(Me(), stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtLaunchCallback(NoteThread, &ran_on, ACL_CALLBACK_BLOCK, stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream, 2), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  EXPECT_EQ(aclrtDestroyStreamForce(stream), ACL_SUCCESS);
  EXPECT_EQ(ran_on, std::thread::id());
}

TEST_F(AclCallbackTest, RefusesWithoutASubscriber) {
  const aclrtStream stream = NewStream();
  int foreign = 0;
  std::thread::id ran_on;
  EXPECT_EQ(aclrtLaunchCallback(NoteThread, &ran_on, ACL_CALLBACK_BLOCK, stream),
            ACL_ERROR_RT_STREAM_NO_CB_REG);
  EXPECT_EQ(aclrtLaunchCallback(nullptr, nullptr, ACL_CALLBACK_BLOCK, stream),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(
      aclrtLaunchCallback(NoteThread, &ran_on, static_cast<aclrtCallbackBlockType>(2), stream),
      ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtUnSubscribeReport(Me(), stream), ACL_ERROR_RT_THREAD_SUBSCRIBE);
  EXPECT_EQ(aclrtSubscribeReport(Me(), &foreign), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtSubscribeReport(Me(), stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtSubscribeReport(Me() + 1, stream), ACL_ERROR_RT_STREAM_SUBSCRIBE);
}

// A thread each: one takes callbacks, one host functions.
TEST_F(AclCallbackTest, HostFunctionsHaveTheirOwnSubscriber) {
  const aclrtStream stream = NewStream();
  std::atomic<bool> over{false};
  std::promise<uint64_t> of_reports;
  std::promise<uint64_t> of_functions;
  std::thread reports([&] {
    of_reports.set_value(pthread_self());
    while (!over) aclrtProcessReport(20);
  });
  std::thread functions([&] {
    of_functions.set_value(pthread_self());
    while (!over) aclrtProcessHostFunc(20);
  });
  const uint64_t reporter = of_reports.get_future().get();
  const uint64_t runner = of_functions.get_future().get();
  const auto note = [](void* where) { *static_cast<uint64_t*>(where) = pthread_self(); };
  ASSERT_EQ(aclrtSubscribeReport(reporter, stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtSubscribeHostFunc(runner, stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtSubscribeHostFunc(runner, stream), ACL_ERROR_RT_STREAM_SUBSCRIBE);
  uint64_t callback = 0;
  uint64_t function = 0;
  ASSERT_EQ(aclrtLaunchCallback(note, &callback, ACL_CALLBACK_BLOCK, stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtLaunchHostFunc(stream, note, &function), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_EQ(callback, reporter);
  EXPECT_EQ(function, runner);
  EXPECT_EQ(aclrtUnSubscribeHostFunc(reporter, stream), ACL_ERROR_RT_THREAD_SUBSCRIBE);
  EXPECT_EQ(aclrtUnSubscribeHostFunc(runner, stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtUnSubscribeReport(reporter, stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtLaunchHostFunc(stream, note, &function), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_NE(function, runner);  // without a subscriber: a thread of the stream
  over = true;
  reports.join();
  functions.join();
}

}  // namespace
}  // namespace npumesh
