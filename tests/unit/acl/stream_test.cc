#include <gmock/gmock.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "runtime/acl/process/device_context.h"
#include "tests/unit/acl/acl_test.h"

namespace npumesh {
namespace {

class AclStreamTest : public AclTest {
 protected:
  static void Append(void* seen) {
    auto* all = static_cast<std::vector<int>*>(seen);
    all->push_back(static_cast<int>(all->size()));
  }
  static Stream& Inside(aclrtStream stream) { return **StreamOf(stream); }
};

TEST_F(AclStreamTest, RunsInOrder) {
  const aclrtStream stream = NewStream();
  std::vector<int> seen;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(aclrtLaunchHostFunc(stream, Append, &seen), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_THAT(seen, testing::ElementsAre(0, 1, 2));
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(StreamOf(stream).status().code(), Code::kInvalidArgument);
}

// A thread keeps what it looked up last; a stream that another thread has destroyed is dead all the
// same, and one that comes back at its address is another one.
TEST_F(AclStreamTest, AnotherThreadMayDestroyWhatThisOneUsed) {
  const aclrtStream stream = NewStream();
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  std::thread([&] { EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS); }).join();
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(StreamOf(stream).status().code(), Code::kInvalidArgument);
  const aclrtStream next = NewStream();
  EXPECT_EQ(aclrtSynchronizeStream(next), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(next), ACL_SUCCESS);
}

// The task of a stream may use another one while its own is being synchronised.
TEST_F(AclStreamTest, ATaskMayUseAnotherStream) {
  const aclrtStream outer = NewStream();
  aclrtStream inner = NewStream();
  const auto work = [](void* stream) {
    EXPECT_EQ(aclrtSynchronizeStream(*static_cast<aclrtStream*>(stream)), ACL_SUCCESS);
  };
  EXPECT_EQ(aclrtLaunchHostFunc(outer, work, &inner), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(outer), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(outer), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(inner), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(outer), ACL_SUCCESS);
}

// And destroy it, which makes the thread forget the one that it is using.
TEST_F(AclStreamTest, ATaskMayDestroyAnotherStream) {
  const aclrtStream outer = NewStream();
  std::vector<int> seen;
  for (int i = 0; i < 3; ++i) {
    aclrtStream inner = NewStream();
    const auto work = [](void* stream) {
      EXPECT_EQ(aclrtSynchronizeStream(*static_cast<aclrtStream*>(stream)), ACL_SUCCESS);
      EXPECT_EQ(aclrtDestroyStream(*static_cast<aclrtStream*>(stream)), ACL_SUCCESS);
      EXPECT_EQ(aclrtSynchronizeStream(*static_cast<aclrtStream*>(stream)),
                ACL_ERROR_RT_INVALID_HANDLE);
    };
    EXPECT_EQ(aclrtLaunchHostFunc(outer, work, &inner), ACL_SUCCESS);
    EXPECT_EQ(aclrtLaunchHostFunc(outer, Append, &seen), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(outer), ACL_SUCCESS);
  }
  EXPECT_THAT(seen, testing::ElementsAre(0, 1, 2));
  EXPECT_EQ(aclrtDestroyStream(outer), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(outer), ACL_ERROR_RT_INVALID_HANDLE);
}

TEST_F(AclStreamTest, NullIsTheDefaultStream) {
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCtxGetCurrentDefaultStream(&stream), ACL_SUCCESS);
  EXPECT_EQ(*StreamOf(nullptr), *StreamOf(stream));
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtDestroyStream(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtCtxGetCurrentDefaultStream(nullptr), ACL_ERROR_INVALID_PARAM);
}

TEST_F(AclStreamTest, TheFirstFailureStays) {
  const aclrtStream stream = NewStream();
  Inside(stream).Enqueue([] { return Error(Code::kPeerLost, "rank 3 has ended"); });
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_SUSPECT_REMOTE_ERROR);
  EXPECT_THAT(aclGetRecentErrMsg(), testing::HasSubstr("rank 3 has ended"));
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_SUSPECT_REMOTE_ERROR);
  EXPECT_EQ(aclrtSynchronizeDevice(), ACL_ERROR_RT_SUSPECT_REMOTE_ERROR);
}

TEST_F(AclStreamTest, EveryKindOfFailureHasACode) {
  const std::vector<std::pair<Code, aclError>> codes = {
      {Code::kInvalidArgument, ACL_ERROR_INVALID_PARAM},
      {Code::kUnsupported, ACL_ERROR_RT_FEATURE_NOT_SUPPORT},
      {Code::kOutOfMemory, ACL_ERROR_RT_MEMORY_ALLOCATION},
      {Code::kMismatch, ACL_ERROR_RT_INTERNAL_ERROR},
      {Code::kTimeout, ACL_ERROR_RT_TASK_TIMEOUT},
      {Code::kPeerLost, ACL_ERROR_RT_SUSPECT_REMOTE_ERROR},
      {Code::kInternal, ACL_ERROR_RT_INTERNAL_ERROR}};
  for (const auto& [code, expected] : codes) {
    const aclrtStream stream = NewStream();
    Inside(stream).Enqueue([code = code] { return Error(code, "no"); });
    EXPECT_EQ(aclrtSynchronizeStream(stream), expected) << CodeName(code);
    EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  }
}

TEST_F(AclStreamTest, FailureModeSaysWhatFollows) {
  for (const uint64_t mode : {ACL_CONTINUE_ON_FAILURE, ACL_STOP_ON_FAILURE}) {
    const aclrtStream stream = NewStream();
    std::vector<int> seen;
    EXPECT_EQ(aclrtSetStreamFailureMode(stream, mode), ACL_SUCCESS);
    Inside(stream).Enqueue([] { return Error(Code::kIo, "no"); });
    EXPECT_EQ(aclrtLaunchHostFunc(stream, Append, &seen), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_INTERNAL_ERROR);
    EXPECT_EQ(seen.size(), mode == ACL_STOP_ON_FAILURE ? 0u : 1u);
    EXPECT_EQ(aclrtSetStreamFailureMode(stream, mode), ACL_ERROR_RT_PARAM_INVALID);
  }
  EXPECT_EQ(aclrtSetStreamFailureMode(nullptr, 1), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSetStreamFailureMode(NewStream(), 2), ACL_ERROR_INVALID_PARAM);
}

TEST_F(AclStreamTest, TimeoutsLeaveTheWorkGoingOn) {
  const aclrtStream stream = NewStream();
  Gate gate(stream);
  aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
  EXPECT_EQ(aclrtStreamQuery(stream, &status), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_STREAM_STATUS_NOT_READY);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream, -2), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream, 2), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  gate.Open();
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream, 10'000), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream, -1), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamQuery(stream, &status), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_STREAM_STATUS_COMPLETE);
  EXPECT_EQ(aclrtStreamQuery(stream, nullptr), ACL_ERROR_INVALID_PARAM);
}

TEST_F(AclStreamTest, ForceAndAbortDropWhatIsQueued) {
  aclrtEvent never = nullptr;
  ASSERT_EQ(aclrtCreateEventWithFlag(&never, ACL_EVENT_SYNC), ACL_SUCCESS);
  const aclrtStream stream = NewStream();
  std::vector<int> seen;
  for (const bool destroy : {false, true}) {
    EXPECT_EQ(aclrtStreamWaitEvent(stream, never), ACL_SUCCESS);
    EXPECT_EQ(aclrtLaunchHostFunc(stream, Append, &seen), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream, 2), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    if (destroy) {
      EXPECT_EQ(aclrtDestroyStreamForce(stream), ACL_SUCCESS);
    } else {
      EXPECT_EQ(aclrtStreamAbort(stream), ACL_SUCCESS);
      EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    }
  }
  EXPECT_TRUE(seen.empty());
  EXPECT_EQ(aclrtStreamAbort(stream), ACL_ERROR_RT_INVALID_HANDLE);
}

TEST_F(AclStreamTest, HaveDifferentIds) {
  int32_t first = -1;
  int32_t second = -1;
  aclrtStream stream = nullptr;
  EXPECT_EQ(aclrtStreamGetId(NewStream(), &first), ACL_SUCCESS);
  EXPECT_EQ(aclrtCreateStreamWithConfig(&stream, 7, ACL_STREAM_FAST_SYNC), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamGetId(stream, &second), ACL_SUCCESS);
  EXPECT_NE(first, second);
  EXPECT_EQ(aclrtStreamGetId(stream, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtCreateStream(nullptr), ACL_ERROR_INVALID_PARAM);
}

TEST_F(AclStreamTest, RefuseForeignHandles) {
  int foreign = 0;
  aclrtStreamStatus status;
  int32_t id;
  EXPECT_EQ(aclrtSynchronizeStream(&foreign), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtStreamQuery(&foreign, &status), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtStreamGetId(&foreign, &id), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtDestroyStream(&foreign), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtLaunchHostFunc(&foreign, Append, nullptr), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtLaunchHostFunc(nullptr, nullptr, nullptr), ACL_ERROR_INVALID_PARAM);
}

TEST_F(AclStreamTest, EndWithTheProcess) {
  const aclrtStream stream = NewStream();
  std::vector<int> seen;
  EXPECT_EQ(aclrtLaunchHostFunc(stream, Append, &seen), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  EXPECT_EQ(seen.size(), 1u);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclInit(nullptr), ACL_SUCCESS);
}

// What the callbacks of failures were told.
struct Told {
  uint32_t task;
  uint32_t stream;
  uint32_t thread;
  uint32_t device;
  uint32_t code;
  bool operator==(const Told&) const = default;
};
std::vector<Told> told_by_set;
std::vector<Told> told_by_registered;

Told Ask(const aclrtExceptionInfo* info) {
  return {aclrtGetTaskIdFromExceptionInfo(info), aclrtGetStreamIdFromExceptionInfo(info),
          aclrtGetThreadIdFromExceptionInfo(info), aclrtGetDeviceIdFromExceptionInfo(info),
          aclrtGetErrorCodeFromExceptionInfo(info)};
}

TEST_F(AclStreamTest, CallbacksAreToldOfFailures) {
  told_by_set.clear();
  told_by_registered.clear();
  const aclrtStream stream = NewStream();
  int32_t id = 0;
  ASSERT_EQ(aclrtStreamGetId(stream, &id), ACL_SUCCESS);
  const auto set = [](aclrtExceptionInfo* info) { told_by_set.push_back(Ask(info)); };
  const auto other = [](aclrtExceptionInfo* info) { told_by_registered.push_back(Ask(info)); };
  ASSERT_EQ(aclrtSetExceptionInfoCallback(set), ACL_SUCCESS);
  ASSERT_EQ(aclrtExceptionInfoCallbackRegister(other), ACL_SUCCESS);
  EXPECT_EQ(aclrtExceptionInfoCallbackRegister(other), ACL_ERROR_INVALID_PARAM);
  void* const memory = Allocate(64);
  ASSERT_EQ(aclrtMemsetAsync(memory, 64, 1, 64, stream), ACL_SUCCESS);
  uint32_t task = 0;
  ASSERT_EQ(aclrtGetThreadLastTaskId(&task), ACL_SUCCESS);
  EXPECT_EQ(task, 1u);
  Inside(stream).Enqueue([] { return Error(Code::kIo, "no"); });
  ASSERT_EQ(aclrtGetThreadLastTaskId(&task), ACL_SUCCESS);
  EXPECT_EQ(task, 2u);
  const aclError code = aclrtSynchronizeStream(stream);
  EXPECT_EQ(code, ACL_ERROR_RT_INTERNAL_ERROR);
  const std::vector<Told> expected = {{2, static_cast<uint32_t>(id),
                                       static_cast<uint32_t>(gettid()), 0,
                                       static_cast<uint32_t>(code)}};
  EXPECT_EQ(told_by_set, expected);
  EXPECT_EQ(told_by_registered, expected);
  ASSERT_EQ(aclrtSetExceptionInfoCallback(nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclrtExceptionInfoCallbackUnregister(other), ACL_SUCCESS);
  EXPECT_EQ(aclrtExceptionInfoCallbackUnregister(other), ACL_ERROR_INVALID_PARAM);
  Inside(stream).Enqueue([] { return Error(Code::kIo, "no"); });
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_INTERNAL_ERROR);
  EXPECT_EQ(told_by_set, expected);  // no more
}

TEST_F(AclStreamTest, AThreadWithoutTasksHasNoLastOne) {
  std::thread([] {
    uint32_t task = 0;
    EXPECT_EQ(aclrtGetThreadLastTaskId(&task), ACL_ERROR_FAILURE);
  }).join();
  EXPECT_EQ(aclrtGetThreadLastTaskId(nullptr), ACL_ERROR_INVALID_PARAM);
}

TEST_F(AclStreamTest, NoInformationHasNoNumbers) {
  constexpr uint32_t kNone = 0xFFFFFFFF;
  EXPECT_EQ(Ask(nullptr), (Told{kNone, kNone, kNone, kNone, kNone}));
  void* pointer = nullptr;
  uint32_t bytes = 0;
  EXPECT_EQ(aclrtGetArgsFromExceptionInfo(nullptr, &pointer, &bytes),
            ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(aclrtGetFuncHandleFromExceptionInfo(nullptr, &pointer),
            ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(aclrtExceptionInfoCallbackRegister(nullptr), ACL_ERROR_INVALID_PARAM);
}

}  // namespace
}  // namespace npumesh
