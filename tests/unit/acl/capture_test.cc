// Tasks of streams that are taken down and run again.
#include <gmock/gmock.h>

#include <thread>
#include <vector>

#include "tests/unit/acl/acl_test.h"

namespace npumesh {
namespace {

class AclCaptureTest : public AclTest {
 protected:
  AclCaptureTest() : AclTest(1) {}

  void SetUp() override {
    AclTest::SetUp();
    stream_ = NewStream();
  }
  aclmdlRI Capture(const std::function<void()>& calls) {
    aclmdlRI model = nullptr;
    EXPECT_EQ(aclmdlRICaptureBegin(stream_, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), ACL_SUCCESS);
    calls();
    EXPECT_EQ(aclmdlRICaptureEnd(stream_, &model), ACL_SUCCESS);
    return model;
  }
  // Appends `number` when it runs.
  void Launch(aclrtStream stream, int number) {
    notes_.push_back(std::make_unique<Note>(Note{this, number}));
    EXPECT_EQ(aclrtLaunchHostFunc(stream, Append, notes_.back().get()), ACL_SUCCESS);
  }
  void Run(aclmdlRI model) {
    EXPECT_EQ(aclmdlRIExecuteAsync(model, stream_), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  }
  static aclrtEvent NewEvent() {
    aclrtEvent event = nullptr;
    EXPECT_EQ(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC), ACL_SUCCESS);
    return event;
  }

  aclrtStream stream_ = nullptr;
  std::vector<int> seen_;

 private:
  struct Note {
    AclCaptureTest* test;
    int number;
  };
  static void Append(void* note) {
    const auto* that = static_cast<Note*>(note);
    that->test->seen_.push_back(that->number);
  }
  std::vector<std::unique_ptr<Note>> notes_;
};

TEST_F(AclCaptureTest, RunsWhatWasTakenDownAsOftenAsAsked) {
  const aclmdlRI model = Capture([this] {
    Launch(stream_, 1);
    Launch(stream_, 2);
  });
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_THAT(seen_, testing::IsEmpty());
  Run(model);
  Launch(stream_, 3);
  Run(model);
  EXPECT_THAT(seen_, testing::ElementsAre(1, 2, 3, 1, 2));
  EXPECT_EQ(aclmdlRIExecute(model, -1), ACL_SUCCESS);
  EXPECT_THAT(seen_, testing::ElementsAre(1, 2, 3, 1, 2, 1, 2));
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIExecuteAsync(model, stream_), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_ERROR_RT_PARAM_INVALID);
}

TEST_F(AclCaptureTest, CopiesAndFillsKeepTheirAddresses) {
  auto* from = static_cast<int*>(Allocate(sizeof(int)));
  auto* to = static_cast<int*>(Allocate(sizeof(int)));
  *from = 1;
  *to = 0;
  const aclmdlRI model = Capture([&] {
    EXPECT_EQ(aclrtMemcpyAsync(to, 4, from, 4, ACL_MEMCPY_DEVICE_TO_DEVICE, stream_), ACL_SUCCESS);
    EXPECT_EQ(aclrtMemsetAsync(from, 4, 0, 4, stream_), ACL_SUCCESS);
  });
  *from = 7;
  Run(model);
  EXPECT_EQ(*to, 7);
  EXPECT_EQ(*from, 0);
  Run(model);
  EXPECT_EQ(*to, 0);
}

TEST_F(AclCaptureTest, SaysWhatGoesOn) {
  aclmdlRICaptureStatus status = ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED;
  aclmdlRI seen = this;
  EXPECT_EQ(aclmdlRICaptureGetInfo(stream_, &status, &seen), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_MODEL_RI_CAPTURE_STATUS_NONE);
  EXPECT_EQ(seen, nullptr);
  const aclmdlRI model = Capture([&] {
    EXPECT_EQ(aclmdlRICaptureGetInfo(stream_, &status, &seen), ACL_SUCCESS);
    EXPECT_EQ(aclmdlRICaptureGetInfo(stream_, &status, nullptr), ACL_SUCCESS);
    EXPECT_EQ(aclmdlRIExecuteAsync(seen, NewStream()), ACL_ERROR_RT_MODEL_CAPTURED);
    EXPECT_EQ(aclmdlRIDestroy(seen), ACL_ERROR_RT_MODEL_CAPTURED);
  });
  EXPECT_EQ(status, ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE);
  EXPECT_EQ(seen, model);
}

// Fork and join by events: the order of the calls is the order of the tasks.
TEST_F(AclCaptureTest, OtherStreamsJoinThroughEvents) {
  const aclrtStream side = NewStream();
  const aclrtEvent fork = NewEvent(), join = NewEvent();
  const aclmdlRI model = Capture([&] {
    Launch(stream_, 1);
    EXPECT_EQ(aclrtRecordEvent(fork, stream_), ACL_SUCCESS);
    EXPECT_EQ(aclrtStreamWaitEvent(side, fork), ACL_SUCCESS);
    Launch(side, 2);
    EXPECT_EQ(aclrtRecordEvent(join, side), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(side), ACL_ERROR_RT_STREAM_CAPTURED);
    aclmdlRI model_of_side = nullptr;
    EXPECT_EQ(aclmdlRICaptureEnd(side, &model_of_side), ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED);
    EXPECT_EQ(aclrtSynchronizeEvent(join), ACL_ERROR_RT_EVENT_CAPTURED);
    EXPECT_EQ(aclrtStreamWaitEvent(stream_, join), ACL_SUCCESS);
    Launch(stream_, 3);
  });
  Launch(side, 4);  // it is free again
  EXPECT_EQ(aclrtSynchronizeStream(side), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeEvent(join), ACL_SUCCESS);
  Run(model);
  EXPECT_THAT(seen_, testing::ElementsAre(4, 1, 2, 3));
}

TEST_F(AclCaptureTest, AStreamThatNobodyWaitsForIsAnError) {
  const aclrtStream side = NewStream();
  const aclrtEvent fork = NewEvent(), join = NewEvent();
  for (const bool late_task : {false, true}) {
    ASSERT_EQ(aclmdlRICaptureBegin(stream_, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), ACL_SUCCESS);
    EXPECT_EQ(aclrtRecordEvent(fork, stream_), ACL_SUCCESS);
    EXPECT_EQ(aclrtStreamWaitEvent(side, fork), ACL_SUCCESS);
    Launch(side, 1);
    if (late_task) {
      EXPECT_EQ(aclrtRecordEvent(join, side), ACL_SUCCESS);
      Launch(side, 2);
      EXPECT_EQ(aclrtStreamWaitEvent(stream_, join), ACL_SUCCESS);
    }
    aclmdlRI model = this;
    EXPECT_EQ(aclmdlRICaptureEnd(stream_, &model), ACL_ERROR_RT_STREAM_UNJOINED);
    EXPECT_EQ(model, nullptr);
    EXPECT_EQ(aclrtSynchronizeStream(side), ACL_SUCCESS);
  }
}

TEST_F(AclCaptureTest, RefusesEventsFromOutside) {
  const aclrtEvent before = NewEvent(), other = NewEvent();
  const aclrtStream second = NewStream();
  ASSERT_EQ(aclrtRecordEvent(before, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclmdlRICaptureBegin(second, ACL_MODEL_RI_CAPTURE_MODE_RELAXED), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(other, second), ACL_SUCCESS);
  static_cast<void>(Capture([&] {
    aclrtEvent external = nullptr;
    ASSERT_EQ(aclrtCreateEventExWithFlag(&external, ACL_EVENT_SYNC | ACL_EVENT_EXTERNAL),
              ACL_SUCCESS);
    EXPECT_EQ(aclrtRecordEvent(external, stream_), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  }));
  // A wait that fails makes the capture invalid; the next one is not.
  for (const auto& [event, code] : {std::pair(before, ACL_ERROR_RT_CAPTURE_DEPENDENCY),
                                    std::pair(other, ACL_ERROR_STREAM_CAPTURE_CONFLICT)}) {
    ASSERT_EQ(aclmdlRICaptureBegin(stream_, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), ACL_SUCCESS);
    Launch(stream_, 1);
    EXPECT_EQ(aclrtStreamWaitEvent(stream_, event), code);
    aclmdlRICaptureStatus status = ACL_MODEL_RI_CAPTURE_STATUS_NONE;
    EXPECT_EQ(aclmdlRICaptureGetInfo(stream_, &status, nullptr), ACL_SUCCESS);
    EXPECT_EQ(status, ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED);
    aclmdlRI model = nullptr;
    EXPECT_EQ(aclmdlRICaptureEnd(stream_, &model), ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(model, nullptr);
  }
  Run(Capture([&] { Launch(stream_, 2); }));
  EXPECT_THAT(seen_, testing::ElementsAre(2));
}

TEST_F(AclCaptureTest, ForbidsWhatDoesNotOnlyQueueWork) {
  auto* device = static_cast<int*>(Allocate(sizeof(int)));
  int host = 0;
  const auto copy = [&] { return aclrtMemcpy(device, 4, &host, 4, ACL_MEMCPY_HOST_TO_DEVICE); };
  const auto elsewhere = [&] {
    aclError error = ACL_SUCCESS;
    std::thread([&] { error = copy(); }).join();
    return error;
  };
  const std::vector<std::pair<aclmdlRICaptureMode, std::pair<aclError, aclError>>> cases = {
      {ACL_MODEL_RI_CAPTURE_MODE_GLOBAL,
       {ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT}},
      {ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL,
       {ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, ACL_SUCCESS}},
      {ACL_MODEL_RI_CAPTURE_MODE_RELAXED, {ACL_SUCCESS, ACL_SUCCESS}}};
  for (const auto& [mode, expected] : cases) {
    aclmdlRI model = nullptr;
    ASSERT_EQ(aclmdlRICaptureBegin(stream_, mode), ACL_SUCCESS);
    EXPECT_EQ(copy(), expected.first) << mode;
    EXPECT_EQ(elsewhere(), expected.second) << mode;
    EXPECT_EQ(aclrtMemset(device, 4, 0, 4), expected.first) << mode;
    aclmdlRICaptureMode mine = ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
    EXPECT_EQ(aclmdlRICaptureThreadExchangeMode(&mine), ACL_SUCCESS);
    EXPECT_EQ(mine, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL);
    EXPECT_EQ(copy(), ACL_SUCCESS) << mode;
    EXPECT_EQ(aclmdlRICaptureThreadExchangeMode(&mine), ACL_SUCCESS);
    EXPECT_EQ(aclmdlRICaptureEnd(stream_, &model), ACL_SUCCESS);
    EXPECT_EQ(copy(), ACL_SUCCESS);
  }
}

TEST_F(AclCaptureTest, RefusesWrongCalls) {
  aclmdlRI model = nullptr;
  EXPECT_EQ(aclmdlRICaptureBegin(nullptr, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL),
            ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT);
  EXPECT_EQ(aclmdlRICaptureBegin(stream_, static_cast<aclmdlRICaptureMode>(3)),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclmdlRICaptureEnd(stream_, &model), ACL_ERROR_RT_STREAM_NOT_CAPTURED);
  EXPECT_EQ(aclmdlRIExecuteAsync(nullptr, stream_), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclmdlRIExecute(nullptr, 0), ACL_ERROR_INVALID_PARAM);
  model = Capture([this] {
    EXPECT_EQ(aclmdlRICaptureBegin(stream_, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL),
              ACL_ERROR_RT_STREAM_CAPTURED);
    EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_ERROR_RT_STREAM_CAPTURED);
    EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream_, 1), ACL_ERROR_RT_STREAM_CAPTURED);
    EXPECT_EQ(aclrtDestroyStream(stream_), ACL_ERROR_RT_STREAM_CAPTURED);
    std::thread([this] {
      aclmdlRI taken = nullptr;
      EXPECT_EQ(aclmdlRICaptureEnd(stream_, &taken), ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD);
    }).join();
  });
  ASSERT_EQ(aclmdlRICaptureBegin(stream_, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIExecuteAsync(model, stream_), ACL_ERROR_RT_STREAM_CAPTURED);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);  // with a capture that goes on
  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIExecute(model, -1), ACL_ERROR_RT_PARAM_INVALID);
}

}  // namespace
}  // namespace npumesh
