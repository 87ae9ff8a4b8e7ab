// Models that run on streams beyond plain captures: task groups, conditions, models that are built
// of streams, and what clients list and change of them.
#include <gmock/gmock.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <sstream>
#include <thread>
#include <vector>

#include "acl/acl_mdl.h"
#include "nlohmann/json.hpp"
#include "tests/unit/acl/acl_test.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class AclRunModelsTest : public AclTest {
 protected:
  AclRunModelsTest() : AclTest(1) {}

  void SetUp() override {
    AclTest::SetUp();
    stream_ = NewStream();
  }

  void Launch(aclrtStream stream, std::function<void()> work) {
    works_.push_back(std::make_unique<std::function<void()>>(std::move(work)));
    EXPECT_EQ(aclrtLaunchHostFunc(stream, Call, works_.back().get()), ACL_SUCCESS);
  }
  // Appends `number` when it runs.
  void Note(aclrtStream stream, int number) {
    Launch(stream, [this, number] {
      const std::lock_guard lock(mutex_);
      seen_.push_back(number);
    });
  }
  std::vector<int> TakeSeen() { return std::exchange(seen_, {}); }

  static aclrtStream NewPersistent() {
    aclrtStream stream = nullptr;
    EXPECT_EQ(aclrtCreateStreamWithConfig(&stream, 0, ACL_STREAM_PERSISTENT), ACL_SUCCESS);
    return stream;
  }
  static aclrtLabel NewLabel() {
    aclrtLabel label = nullptr;
    EXPECT_EQ(aclrtCreateLabel(&label), ACL_SUCCESS);
    return label;
  }
  template <typename T>
  static T* NewWord(T value) {
    auto* word = static_cast<T*>(Allocate(sizeof(T)));
    *word = value;
    return word;
  }
  aclmdlRI Capture(const std::function<void()>& calls) {
    aclmdlRI model = nullptr;
    EXPECT_EQ(aclmdlRICaptureBegin(stream_, ACL_MODEL_RI_CAPTURE_MODE_RELAXED), ACL_SUCCESS);
    calls();
    EXPECT_EQ(aclmdlRICaptureEnd(stream_, &model), ACL_SUCCESS) << aclGetRecentErrMsg();
    return model;
  }
  // A model of persistent streams; the first one is its head.
  aclmdlRI Build(const std::vector<aclrtStream>& streams,
                 const std::function<void(aclmdlRI)>& calls) {
    aclmdlRI model = nullptr;
    EXPECT_EQ(aclmdlRIBuildBegin(&model, 0), ACL_SUCCESS);
    for (size_t i = 0; i < streams.size(); ++i) {
      EXPECT_EQ(
          aclmdlRIBindStream(model, streams[i],
                             i == 0 ? ACL_MODEL_STREAM_FLAG_HEAD : ACL_MODEL_STREAM_FLAG_DEFAULT),
          ACL_SUCCESS);
    }
    calls(model);
    EXPECT_EQ(aclmdlRIBuildEnd(model, nullptr), ACL_SUCCESS);
    return model;
  }
  aclError Run(aclmdlRI model) {
    const aclrtStream stream = NewStream();
    EXPECT_EQ(aclmdlRIExecuteAsync(model, stream), ACL_SUCCESS);
    const aclError error = aclrtSynchronizeStream(stream);
    EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
    return error;
  }
  static std::string Words() {
    const char* words = aclGetRecentErrMsg();
    return words == nullptr ? "" : words;
  }

  aclrtStream stream_ = nullptr;
  std::mutex mutex_;
  std::vector<int> seen_;

 private:
  static void Call(void* work) { (*static_cast<std::function<void()>*>(work))(); }
  std::vector<std::unique_ptr<std::function<void()>>> works_;
};

// ---- Task groups ----

TEST_F(AclRunModelsTest, AGroupIsExchangedAsAWhole) {
  aclrtTaskGrp group = nullptr;
  const aclmdlRI model = Capture([&] {
    Note(stream_, 1);
    EXPECT_EQ(aclmdlRICaptureTaskGrpBegin(stream_), ACL_SUCCESS);
    Note(stream_, 2);
    Note(stream_, 3);
    EXPECT_EQ(aclmdlRICaptureTaskGrpEnd(stream_, &group), ACL_SUCCESS);
    Note(stream_, 4);
  });
  EXPECT_EQ(Run(model), ACL_SUCCESS);
  EXPECT_THAT(TakeSeen(), ElementsAre(1, 2, 3, 4));
  const aclrtStream update = NewStream();
  ASSERT_EQ(aclmdlRICaptureTaskUpdateBegin(update, group), ACL_SUCCESS);
  Note(update, 20);
  Note(update, 30);
  EXPECT_EQ(aclmdlRICaptureTaskUpdateEnd(update), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(update), ACL_SUCCESS);
  EXPECT_THAT(TakeSeen(), ElementsAre());
  EXPECT_EQ(Run(model), ACL_SUCCESS);
  EXPECT_THAT(TakeSeen(), ElementsAre(1, 20, 30, 4));
  ASSERT_EQ(aclmdlRICaptureTaskUpdateBegin(update, group), ACL_SUCCESS);
  Note(update, 5);
  EXPECT_EQ(aclmdlRICaptureTaskUpdateEnd(update), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_THAT(Words(), HasSubstr("1 tasks cannot take the place of the 2 of the group"));
  EXPECT_EQ(Run(model), ACL_SUCCESS);
  EXPECT_THAT(TakeSeen(), ElementsAre(1, 20, 30, 4));
}

// The run waits in front of the group for an event from outside, which is recorded after the
// update.
TEST_F(AclRunModelsTest, AGroupIsExchangedWhileTheModelRuns) {
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateEventWithFlag(&event, ACL_EVENT_EXTERNAL), ACL_SUCCESS);
  aclrtTaskGrp group = nullptr;
  const aclmdlRI model = Capture([&] {
    EXPECT_EQ(aclrtStreamWaitEvent(stream_, event), ACL_SUCCESS);
    EXPECT_EQ(aclrtResetEvent(event, stream_), ACL_SUCCESS);
    EXPECT_EQ(aclmdlRICaptureTaskGrpBegin(stream_), ACL_SUCCESS);
    Note(stream_, 1);
    EXPECT_EQ(aclmdlRICaptureTaskGrpEnd(stream_, &group), ACL_SUCCESS);
  });
  const aclrtStream update = NewStream();
  for (int run = 2; run < 5; ++run) {
    ASSERT_EQ(aclmdlRIExecuteAsync(model, stream_), ACL_SUCCESS);
    ASSERT_EQ(aclmdlRICaptureTaskUpdateBegin(update, group), ACL_SUCCESS);
    Note(update, run);
    ASSERT_EQ(aclmdlRICaptureTaskUpdateEnd(update), ACL_SUCCESS);
    ASSERT_EQ(aclrtRecordEvent(event, update), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
    EXPECT_THAT(TakeSeen(), ElementsAre(run));
  }
}

TEST_F(AclRunModelsTest, RefusesWrongGroups) {
  aclrtTaskGrp group = nullptr;
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRICaptureTaskGrpBegin(stream_), ACL_ERROR_RT_STREAM_NOT_CAPTURED);
  const aclmdlRI model = Capture([&] {
    EXPECT_EQ(aclmdlRICaptureTaskGrpEnd(stream_, &group), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_EQ(aclmdlRICaptureTaskGrpBegin(stream_), ACL_SUCCESS);
    EXPECT_EQ(aclmdlRICaptureTaskGrpBegin(stream_), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_EQ(aclrtRecordEvent(event, stream_), ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT);
    EXPECT_EQ(aclrtStreamWaitEvent(stream_, event), ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT);
    EXPECT_EQ(aclmdlRICaptureTaskGrpEnd(stream_, &group), ACL_SUCCESS);
    EXPECT_EQ(aclmdlRICaptureTaskUpdateBegin(NewStream(), group), ACL_ERROR_RT_MODEL_CAPTURED);
  });
  EXPECT_EQ(aclmdlRICaptureTaskUpdateBegin(stream_, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclmdlRICaptureTaskUpdateBegin(stream_, model), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclmdlRICaptureTaskUpdateBegin(nullptr, group), ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT);
  EXPECT_EQ(aclmdlRICaptureTaskUpdateEnd(stream_), ACL_ERROR_RT_STREAM_NOT_CAPTURED);
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRICaptureTaskUpdateBegin(stream_, group), ACL_ERROR_RT_PARAM_INVALID);
}

// ---- Conditions ----

struct Branches {
  aclmdlRICondHandle handle = nullptr;
  uint64_t* word = nullptr;
  std::vector<aclmdlRI> models;
};

// A condition with its task in the captured stream; its branches are empty.
Branches AddCondition(aclrtStream stream, aclmdlRICondTaskType type, uint32_t count, uint32_t start,
                      aclmdlRICondHandleFlag flag) {
  Branches branches;
  aclmdlRICaptureStatus status;
  aclmdlRI model = nullptr;
  EXPECT_EQ(aclmdlRICaptureGetInfo(stream, &status, &model), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRICondHandleCreate(model, start, flag, &branches.handle), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRICondHandleGetCondPtr(branches.handle, &branches.word), ACL_SUCCESS);
  branches.models.resize(count);
  EXPECT_EQ(aclmdlRIAddCondTask({branches.handle, type, count, branches.models.data()}, stream, 0),
            ACL_SUCCESS);
  return branches;
}

constexpr auto kKeep = static_cast<aclmdlRICondHandleFlag>(0);

TEST_F(AclRunModelsTest, AConditionBeginsEachRunWithItsDefault) {
  const aclrtStream side = NewStream();
  Branches branches;
  const aclmdlRI model = Capture([&] {
    branches = AddCondition(stream_, ACL_MODEL_RI_COND_TYPE_IF, 2, 1,
                            ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT);
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(aclmdlRICaptureToModelRIBegin(side, branches.models[i],
                                              ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL),
                ACL_SUCCESS);
      Note(side, i);
      aclmdlRI ended = nullptr;
      ASSERT_EQ(aclmdlRICaptureEnd(side, &ended), ACL_SUCCESS);
      EXPECT_EQ(ended, branches.models[i]);
    }
  });
  EXPECT_EQ(Run(model), ACL_SUCCESS);
  *branches.word = 0;
  EXPECT_EQ(Run(model), ACL_SUCCESS);
  EXPECT_THAT(TakeSeen(), ElementsAre(0, 0));
}

// A random tree of conditional tasks: what runs is what an interpreter of the same tree says.
class ConditionTree {
 public:
  using Launch = std::function<void(aclrtStream, std::function<void()>)>;
  using NewStream = std::function<aclrtStream()>;
  ConditionTree(uint64_t seed, std::vector<int>* seen, Launch launch, NewStream new_stream)
      : random_(seed),
        seen_(seen),
        launch_(std::move(launch)),
        new_stream_(std::move(new_stream)) {}

  // Takes down what it draws, and returns the same for the interpreter.
  std::function<void(std::vector<int>*)> Draw(aclrtStream stream, int depth) {
    std::vector<std::function<void(std::vector<int>*)>> steps;
    const int count = 1 + static_cast<int>(random_() % 3);
    for (int i = 0; i < count; ++i) {
      steps.push_back(depth > 0 && random_() % 2 == 0 ? Branch(stream, depth) : Number(stream));
    }
    return [steps](std::vector<int>* expected) {
      for (const auto& step : steps) step(expected);
    };
  }

 private:
  std::function<void(std::vector<int>*)> Number(aclrtStream stream) {
    const int number = next_++;
    launch_(stream, [this, number] { seen_->push_back(number); });
    return [number](std::vector<int>* expected) { expected->push_back(number); };
  }
  std::function<void(std::vector<int>*)> Branch(aclrtStream stream, int depth) {
    const auto type = static_cast<aclmdlRICondTaskType>(random_() % 3);
    const uint32_t count = type == ACL_MODEL_RI_COND_TYPE_IF      ? 1 + random_() % 2
                           : type == ACL_MODEL_RI_COND_TYPE_WHILE ? 1
                                                                  : 1 + random_() % 3;
    const auto value = static_cast<uint64_t>(random_() % 4);
    // Set by a task in front: runs of an outer loop find it so again.
    auto word = std::make_shared<uint64_t*>(nullptr);
    launch_(stream, [word, value] { **word = value; });
    const Branches made = AddCondition(stream, type, count, 7, kKeep);
    *word = made.word;
    std::vector<std::function<void(std::vector<int>*)>> bodies;
    for (const aclmdlRI model : made.models) {
      const aclrtStream side = new_stream_();
      EXPECT_EQ(aclmdlRICaptureToModelRIBegin(side, model, ACL_MODEL_RI_CAPTURE_MODE_RELAXED),
                ACL_SUCCESS);
      bodies.push_back(Draw(side, depth - 1));
      if (type == ACL_MODEL_RI_COND_TYPE_WHILE) launch_(side, [word] { --**word; });
      aclmdlRI ended = nullptr;
      EXPECT_EQ(aclmdlRICaptureEnd(side, &ended), ACL_SUCCESS);
    }
    return [type, value, bodies](std::vector<int>* expected) {
      if (type == ACL_MODEL_RI_COND_TYPE_WHILE) {
        for (uint64_t i = 0; i < value; ++i) bodies[0](expected);
        return;
      }
      const uint64_t taken = type == ACL_MODEL_RI_COND_TYPE_IF ? (value != 0 ? 0 : 1) : value;
      if (taken < bodies.size()) bodies[taken](expected);
    };
  }

  std::mt19937_64 random_;
  std::vector<int>* const seen_;
  const Launch launch_;
  const NewStream new_stream_;
  int next_ = 0;
};

TEST_F(AclRunModelsTest, TreesOfConditionsRunAsAnInterpreterSays) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    ConditionTree tree(
        seed, &seen_, [this](aclrtStream stream, auto work) { Launch(stream, std::move(work)); },
        [] { return NewStream(); });
    std::function<void(std::vector<int>*)> interpreter;
    const aclmdlRI model = Capture([&] { interpreter = tree.Draw(stream_, 3); });
    for (int run = 0; run < 2; ++run) {
      std::vector<int> expected;
      interpreter(&expected);
      EXPECT_EQ(Run(model), ACL_SUCCESS);
      ASSERT_EQ(TakeSeen(), expected) << "seed " << seed;
    }
    EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
  }
  size_t free = 0, total = 0;
  ASSERT_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total), ACL_SUCCESS);
  EXPECT_EQ(free, total);  // all conditions are given back
}

TEST_F(AclRunModelsTest, AnEndlessLoopEndsWithItsStream) {
  std::atomic<int> rounds{0};
  const aclmdlRI model = Capture([&] {
    const Branches loop = AddCondition(stream_, ACL_MODEL_RI_COND_TYPE_WHILE, 1, 1, kKeep);
    const aclrtStream side = NewStream();
    ASSERT_EQ(
        aclmdlRICaptureToModelRIBegin(side, loop.models[0], ACL_MODEL_RI_CAPTURE_MODE_RELAXED),
        ACL_SUCCESS);
    Launch(side, [&] { ++rounds; });
    aclmdlRI ended = nullptr;
    ASSERT_EQ(aclmdlRICaptureEnd(side, &ended), ACL_SUCCESS);
  });
  const aclrtStream runner = NewStream();
  ASSERT_EQ(aclmdlRIExecuteAsync(model, runner), ACL_SUCCESS);
  aclrtStreamStatus status;
  ASSERT_EQ(aclrtStreamQuery(runner, &status), ACL_SUCCESS);
  while (rounds < 10) std::this_thread::yield();
  EXPECT_EQ(aclrtStreamAbort(runner), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(runner), ACL_SUCCESS);
}

TEST_F(AclRunModelsTest, RefusesWrongConditions) {
  aclmdlRICondHandle handle = nullptr;
  uint64_t* word = nullptr;
  std::vector<aclmdlRI> models(3);
  Branches branches;
  const auto add = [&](aclmdlRICondHandle condition, int type, uint32_t size, aclmdlRI* array) {
    return aclmdlRIAddCondTask({condition, static_cast<aclmdlRICondTaskType>(type), size, array},
                               stream_, 0);
  };
  const aclmdlRI model = Capture([&] {
    branches = AddCondition(stream_, ACL_MODEL_RI_COND_TYPE_IF, 1, 0, kKeep);
    EXPECT_EQ(add(branches.handle, 3, 1, models.data()), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQ(add(branches.handle, ACL_MODEL_RI_COND_TYPE_IF, 3, models.data()),
              ACL_ERROR_INVALID_PARAM);
    EXPECT_THAT(Words(), HasSubstr("COND_IF with 3 branches, expected 1 to 2"));
    EXPECT_EQ(add(branches.handle, ACL_MODEL_RI_COND_TYPE_WHILE, 0, models.data()),
              ACL_ERROR_INVALID_PARAM);
    EXPECT_EQ(add(branches.handle, ACL_MODEL_RI_COND_TYPE_SWITCH, 1, nullptr),
              ACL_ERROR_INVALID_PARAM);
    EXPECT_EQ(add(nullptr, 0, 1, models.data()), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQ(add(branches.models[0], 0, 1, models.data()), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_EQ(aclmdlRIExecute(branches.models[0], -1), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_EQ(aclmdlRIDestroy(branches.models[0]), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_THAT(Words(), HasSubstr("branch of a conditional task"));
  });
  EXPECT_EQ(add(branches.handle, 0, 1, models.data()), ACL_ERROR_RT_STREAM_NOT_CAPTURED);
  EXPECT_EQ(aclmdlRICondHandleCreate(model, 0, kKeep, &handle), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclmdlRICondHandleCreate(model, 0, static_cast<aclmdlRICondHandleFlag>(2), &handle),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclmdlRICaptureToModelRIBegin(stream_, model, ACL_MODEL_RI_CAPTURE_MODE_RELAXED),
            ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(Run(model), ACL_SUCCESS);  // a branch that was not captured does nothing
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRICondHandleGetCondPtr(branches.handle, &word), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(
      aclmdlRICaptureToModelRIBegin(stream_, branches.models[0], ACL_MODEL_RI_CAPTURE_MODE_RELAXED),
      ACL_ERROR_RT_PARAM_INVALID);
}

// ---- Models that are built of streams ----

TEST_F(AclRunModelsTest, ASwitchGoesOnAtTheLabelOfTheIndex) {
  auto* index = NewWord<uint32_t>(0);
  std::vector<aclrtLabel> labels = {NewLabel(), NewLabel(), NewLabel()};
  aclrtLabelList list = nullptr;
  ASSERT_EQ(aclrtCreateLabelList(labels.data(), 3, &list), ACL_SUCCESS);
  const aclrtStream head = NewPersistent(), other = NewPersistent();
  const aclmdlRI model = Build({head, other}, [&](aclmdlRI building) {
    EXPECT_EQ(aclrtSwitchLabelByIndex(index, 3, list, head), ACL_SUCCESS);
    Note(head, -1);
    EXPECT_EQ(aclrtSetLabel(labels[0], head), ACL_SUCCESS);
    Note(head, 0);
    EXPECT_EQ(aclrtSetLabel(labels[1], head), ACL_SUCCESS);
    Note(head, 1);
    EXPECT_EQ(aclmdlRIEndTask(building, head), ACL_SUCCESS);
    Note(head, -2);
    Note(other, -3);
    EXPECT_EQ(aclrtSetLabel(labels[2], other), ACL_SUCCESS);
    Note(other, 2);
    *index = 1;
  });
  *index = 0;
  EXPECT_EQ(Run(model), ACL_SUCCESS);
  EXPECT_THAT(TakeSeen(), ElementsAre(0, 1));
  *index = 1;
  EXPECT_EQ(Run(model), ACL_SUCCESS);
  EXPECT_THAT(TakeSeen(), ElementsAre(1));
  for (const uint32_t last : {2U, 3U, 4000000000U}) {
    *index = last;
    EXPECT_NE(Run(model), ACL_SUCCESS);
    EXPECT_THAT(Words(), HasSubstr("none came to the end that aclmdlRIEndTask marks"));
    EXPECT_THAT(TakeSeen(), ElementsAre(2));
  }
  EXPECT_EQ(aclmdlRIUnbindStream(model, head), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIUnbindStream(model, head), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyLabelList(list), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyLabelList(list), ACL_ERROR_RT_PARAM_INVALID);
  for (const aclrtLabel label : labels) EXPECT_EQ(aclrtDestroyLabel(label), ACL_SUCCESS);
}

TEST_F(AclRunModelsTest, ASwitchComparesTwoNumbers) {
  auto* left = NewWord<int64_t>(0);
  auto* right = NewWord<int64_t>(0);
  const std::vector<std::function<bool(int64_t, int64_t)>> holds = {
      std::equal_to<>(),      std::not_equal_to<>(), std::greater<>(),
      std::greater_equal<>(), std::less<>(),         std::less_equal<>()};
  for (const aclrtCompareDataType type : {ACL_RT_SWITCH_INT32, ACL_RT_SWITCH_INT64}) {
    for (int condition = 0; condition < 6; ++condition) {
      const aclrtStream head = NewPersistent(), yes = NewPersistent(), end = NewPersistent();
      const aclmdlRI model = Build({head, yes, end}, [&](aclmdlRI building) {
        EXPECT_EQ(aclrtSwitchStream(left, static_cast<aclrtCondition>(condition), right, type, yes,
                                    nullptr, head),
                  ACL_SUCCESS);
        Note(head, 0);
        EXPECT_EQ(aclrtActiveStream(end, head), ACL_SUCCESS);
        Note(yes, 1);
        EXPECT_EQ(aclrtActiveStream(end, yes), ACL_SUCCESS);
        EXPECT_EQ(aclmdlRIEndTask(building, end), ACL_SUCCESS);
      });
      const int64_t low = type == ACL_RT_SWITCH_INT64 ? int64_t{-5} << 33 : -5;
      for (const auto& [a, b] : {std::pair(low, int64_t{5}), {int64_t{5}, low}, {low, low}}) {
        *left = a;
        *right = b;
        EXPECT_EQ(Run(model), ACL_SUCCESS);
        EXPECT_THAT(TakeSeen(), ElementsAre(holds[condition](a, b) ? 1 : 0)) << condition;
      }
    }
  }
}

// Two heads wait for each other by events, which the order of the calls alone would not allow.
TEST_F(AclRunModelsTest, StreamsOfABuiltModelRunBesideEachOther) {
  const aclrtStream first = NewPersistent(), second = NewPersistent();
  aclrtEvent there = nullptr, back = nullptr;
  ASSERT_EQ(aclrtCreateEventExWithFlag(&there, ACL_EVENT_SYNC), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateEventExWithFlag(&back, ACL_EVENT_SYNC), ACL_SUCCESS);
  std::atomic<bool> met{false};
  const aclmdlRI model = Build({first, second}, [&](aclmdlRI building) {
    EXPECT_EQ(aclrtActiveStream(second, first), ACL_SUCCESS);
    Launch(first, [&] {
      while (!met) std::this_thread::yield();
    });
    EXPECT_EQ(aclrtRecordEvent(there, first), ACL_SUCCESS);
    Launch(second, [&] { met = true; });
    EXPECT_EQ(aclrtStreamWaitEvent(second, there), ACL_SUCCESS);
    Note(second, 1);
    EXPECT_EQ(aclrtRecordEvent(back, second), ACL_SUCCESS);
    EXPECT_EQ(aclrtStreamWaitEvent(first, back), ACL_SUCCESS);
    Note(first, 2);
    EXPECT_EQ(aclmdlRIEndTask(building, first), ACL_SUCCESS);
  });
  for (int run = 0; run < 20; ++run) {
    met = false;
    ASSERT_EQ(Run(model), ACL_SUCCESS);
    ASSERT_THAT(TakeSeen(), ElementsAre(1, 2));
  }
}

TEST_F(AclRunModelsTest, AFailureOrAnAbortEndsAllStreams) {
  auto* never = NewWord<uint64_t>(0);
  const aclrtStream first = NewPersistent(), second = NewPersistent();
  std::atomic<int> begun{0};
  const aclmdlRI model = Build({first, second}, [&](aclmdlRI building) {
    EXPECT_EQ(aclrtActiveStream(second, first), ACL_SUCCESS);
    Launch(first, [&] { ++begun; });
    EXPECT_EQ(aclrtValueWait(never, 1, ACL_STREAM_WAIT_VALUE_EQ, first), ACL_SUCCESS);
    EXPECT_EQ(aclmdlRIEndTask(building, first), ACL_SUCCESS);
    Launch(second, [&] { ++begun; });
    EXPECT_EQ(aclrtValueWait(never, 1, ACL_STREAM_WAIT_VALUE_EQ, second), ACL_SUCCESS);
  });
  const aclrtStream runner = NewStream();
  for (const bool by_stream : {false, true}) {
    begun = 0;
    ASSERT_EQ(aclmdlRIExecuteAsync(model, runner), ACL_SUCCESS);
    aclrtStreamStatus status;
    ASSERT_EQ(aclrtStreamQuery(runner, &status), ACL_SUCCESS);
    while (begun < 2) std::this_thread::yield();
    if (by_stream) {
      EXPECT_EQ(aclrtStreamAbort(runner), ACL_SUCCESS);
    } else {
      EXPECT_EQ(aclmdlRIAbort(model), ACL_SUCCESS);
      EXPECT_NE(aclrtSynchronizeStream(runner), ACL_SUCCESS);
      EXPECT_THAT(Words(), HasSubstr("the run of the model was aborted"));
    }
  }
  *never = 1;
  EXPECT_EQ(Run(model), ACL_SUCCESS);
}

TEST_F(AclRunModelsTest, RefusesWrongBuilding) {
  aclmdlRI model = nullptr;
  const aclrtStream stream = NewPersistent(), other = NewPersistent();
  auto* word = NewWord<uint32_t>(0);
  EXPECT_EQ(aclmdlRIBuildBegin(&model, 1), ACL_ERROR_INVALID_PARAM);
  ASSERT_EQ(aclmdlRIBuildBegin(&model, 0), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIBindStream(model, nullptr, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclmdlRIBindStream(model, stream_, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_THAT(Words(), HasSubstr("without ACL_STREAM_PERSISTENT"));
  EXPECT_EQ(aclmdlRIBindStream(model, stream, 5), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtActiveStream(stream, stream), ACL_ERROR_RT_PARAM_INVALID);
  ASSERT_EQ(aclmdlRIBindStream(model, stream, 0), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIBindStream(model, stream, 0), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED),
            ACL_ERROR_RT_STREAM_CAPTURED);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_STREAM_CAPTURED);
  EXPECT_THAT(Words(), HasSubstr("aclmdlRIBuildEnd ends that"));
  EXPECT_EQ(aclrtActiveStream(other, stream), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(
      aclrtSwitchStream(word, ACL_RT_EQUAL, &model, ACL_RT_SWITCH_INT32, stream, nullptr, stream),
      ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSwitchStream(word, static_cast<aclrtCondition>(6), word, ACL_RT_SWITCH_INT32,
                              stream, nullptr, stream),
            ACL_ERROR_INVALID_PARAM);
  aclrtLabel label = NewLabel(), unset = NewLabel();
  aclrtLabelList list = nullptr;
  EXPECT_EQ(aclrtSetLabel(label, other), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtSetLabel(label, stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetLabel(label, stream), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtCreateLabelList(&label, 0, &list), ACL_ERROR_INVALID_PARAM);
  ASSERT_EQ(aclrtCreateLabelList(&unset, 1, &list), ACL_SUCCESS);
  EXPECT_EQ(aclrtSwitchLabelByIndex(word, 2, list, stream), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSwitchLabelByIndex(&model, 1, list, stream), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSwitchLabelByIndex(word, 1, list, stream), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIExecute(model, -1), ACL_ERROR_RT_MODEL_CAPTURED);
  EXPECT_EQ(aclmdlRIUnbindStream(model, stream), ACL_ERROR_RT_MODEL_CAPTURED);
  EXPECT_EQ(aclmdlRIBuildEnd(model, nullptr), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclmdlRIEndTask(model, stream), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIEndTask(model, stream), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclmdlRIBuildEnd(model, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIBuildEnd(model, nullptr), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_NE(Run(model), ACL_SUCCESS);
  EXPECT_THAT(Words(), HasSubstr("label 0 of the list was not set in a stream of this model"));
  const aclmdlRI captured = Capture([] {});
  EXPECT_EQ(aclmdlRIAbort(captured), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(aclmdlRIBindStream(captured, other, 0), ACL_ERROR_RT_PARAM_INVALID);
}

// Random streams of numbers, labels and switches, of which one runs at a time: what runs is what an
// interpreter says. Each switch takes its index from a sequence; when that is over, it goes to the
// end.
class JumpProgram {
 public:
  explicit JumpProgram(uint64_t seed) : random_(seed) {
    const size_t streams = 1 + random_() % 4;
    streams_.resize(streams);
    const int labels = 1 + static_cast<int>(random_() % 5);
    for (int label = 0; label < labels; ++label) Put({Kind::kLabel, label});
    for (int number = 0; number < 12; ++number) Put({Kind::kNumber, number});
    for (int jump = 0; jump < 6; ++jump) Put({Kind::kSwitch, 0});
    auto& last = streams_[random_() % streams];
    last.push_back({Kind::kLabel, labels});
    last.push_back({Kind::kEnd, 0});
    labels_ = static_cast<uint32_t>(labels) + 1;
    for (int i = 0; i < 25; ++i) indices_.push_back(static_cast<uint32_t>(random_() % labels_));
  }

  enum class Kind { kNumber, kLabel, kSwitch, kEnd };
  struct Step {
    Kind kind;
    int number;
  };
  const std::vector<std::vector<Step>>& streams() const { return streams_; }
  uint32_t labels() const { return labels_; }
  uint32_t IndexAt(size_t jump) const {
    return jump < indices_.size() ? indices_[jump] : labels_ - 1;
  }

  // False when a stream stops before the end.
  bool Interpret(std::vector<int>* seen) const {
    size_t stream = 0, at = 0, jumps = 0;
    while (at < streams_[stream].size()) {
      const Step& step = streams_[stream][at++];
      if (step.kind == Kind::kEnd) return true;
      if (step.kind == Kind::kNumber) seen->push_back(step.number);
      if (step.kind == Kind::kSwitch) {
        std::tie(stream, at) = PlaceOf(static_cast<int>(IndexAt(jumps++)));
      }
    }
    return false;
  }

 private:
  void Put(Step step) {
    auto& stream = streams_[random_() % streams_.size()];
    stream.insert(stream.begin() + static_cast<long>(random_() % (stream.size() + 1)), step);
  }
  std::pair<size_t, size_t> PlaceOf(int label) const {
    for (size_t s = 0; s < streams_.size(); ++s) {
      for (size_t i = 0; i < streams_[s].size(); ++i) {
        const Step& step = streams_[s][i];
        if (step.kind == Kind::kLabel && step.number == label) return {s, i};
      }
    }
    ADD_FAILURE() << "no label " << label;
    return {0, 0};
  }

  std::mt19937_64 random_;
  std::vector<std::vector<Step>> streams_;
  uint32_t labels_ = 0;
  std::vector<uint32_t> indices_;
};

TEST_F(AclRunModelsTest, RandomJumpsRunAsAnInterpreterSays) {
  auto* index = NewWord<uint32_t>(0);
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const JumpProgram program(seed);
    size_t jumps = 0;
    std::vector<aclrtLabel> labels;
    for (uint32_t i = 0; i < program.labels(); ++i) labels.push_back(NewLabel());
    aclrtLabelList list = nullptr;
    ASSERT_EQ(aclrtCreateLabelList(labels.data(), labels.size(), &list), ACL_SUCCESS);
    std::vector<aclrtStream> streams;
    for (size_t i = 0; i < program.streams().size(); ++i) streams.push_back(NewPersistent());
    const auto put = [&](aclmdlRI model, aclrtStream stream, const JumpProgram::Step& step) {
      switch (step.kind) {
        case JumpProgram::Kind::kNumber:
          return Note(stream, step.number);
        case JumpProgram::Kind::kLabel:
          EXPECT_EQ(aclrtSetLabel(labels[step.number], stream), ACL_SUCCESS);
          return;
        case JumpProgram::Kind::kSwitch:
          Launch(stream, [&] { *index = program.IndexAt(jumps++); });
          EXPECT_EQ(aclrtSwitchLabelByIndex(index, program.labels(), list, stream), ACL_SUCCESS);
          return;
        case JumpProgram::Kind::kEnd:
          EXPECT_EQ(aclmdlRIEndTask(model, stream), ACL_SUCCESS);
      }
    };
    const aclmdlRI model = Build(streams, [&](aclmdlRI building) {
      for (size_t s = 0; s < streams.size(); ++s) {
        for (const auto& step : program.streams()[s]) put(building, streams[s], step);
      }
    });
    std::vector<int> expected;
    const bool complete = program.Interpret(&expected);
    for (int run = 0; run < 2; ++run) {
      jumps = 0;
      EXPECT_EQ(Run(model) == ACL_SUCCESS, complete) << "seed " << seed;
      ASSERT_EQ(TakeSeen(), expected) << "seed " << seed;
    }
    EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
    for (const aclrtStream stream : streams) EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  }
}

// ---- What was taken down ----

std::vector<aclmdlRITask> TasksOf(aclrtStream stream) {
  uint32_t count = 0;
  EXPECT_EQ(aclmdlRIGetTasksByStream(stream, nullptr, &count), ACL_SUCCESS);
  std::vector<aclmdlRITask> tasks(count);
  EXPECT_EQ(aclmdlRIGetTasksByStream(stream, tasks.data(), &count), ACL_SUCCESS);
  return tasks;
}

std::vector<aclrtStream> StreamsOf(aclmdlRI model) {
  uint32_t count = 0;
  EXPECT_EQ(aclmdlRIGetStreams(model, nullptr, &count), ACL_SUCCESS);
  std::vector<aclrtStream> streams(count);
  EXPECT_EQ(aclmdlRIGetStreams(model, streams.data(), &count), ACL_SUCCESS);
  return streams;
}

TEST_F(AclRunModelsTest, TasksAreListedWithTheirParameters) {
  auto* word = NewWord<uint64_t>(0);
  const aclrtStream side = NewStream();
  aclrtEvent fork = nullptr, join = nullptr, outside = nullptr;
  for (aclrtEvent* event : {&fork, &join, &outside}) {
    ASSERT_EQ(aclrtCreateEventExWithFlag(event, ACL_EVENT_SYNC), ACL_SUCCESS);
  }
  const aclmdlRI model = Capture([&] {
    EXPECT_EQ(aclrtValueWrite(word, 5, 0, stream_), ACL_SUCCESS);
    EXPECT_EQ(aclrtRecordEvent(fork, stream_), ACL_SUCCESS);
    EXPECT_EQ(aclrtStreamWaitEvent(side, fork), ACL_SUCCESS);
    Note(side, 1);
    EXPECT_EQ(aclrtRecordEvent(join, side), ACL_SUCCESS);
    EXPECT_EQ(aclrtStreamWaitEvent(stream_, join), ACL_SUCCESS);
    EXPECT_EQ(aclrtRecordEventWithFlag(outside, stream_, ACL_EVENT_RECORD_EXTERNAL), ACL_SUCCESS);
  });
  const auto streams = StreamsOf(model);
  ASSERT_EQ(streams.size(), 2U);
  EXPECT_EQ(StreamsOf(model), streams);
  const auto types = [](aclrtStream stream) {
    std::vector<aclmdlRITaskType> found;
    for (const aclmdlRITask task : TasksOf(stream)) {
      aclmdlRITaskType type;
      EXPECT_EQ(aclmdlRITaskGetType(task, &type), ACL_SUCCESS);
      found.push_back(type);
    }
    return found;
  };
  EXPECT_THAT(types(streams[0]),
              ElementsAre(ACL_MODEL_RI_TASK_VALUE_WRITE, ACL_MODEL_RI_TASK_EVENT_RECORD,
                          ACL_MODEL_RI_TASK_EVENT_WAIT, ACL_MODEL_RI_TASK_EVENT_RECORD));
  EXPECT_THAT(types(streams[1]),
              ElementsAre(ACL_MODEL_RI_TASK_EVENT_WAIT, ACL_MODEL_RI_TASK_DEFAULT,
                          ACL_MODEL_RI_TASK_EVENT_RECORD));
  const auto tasks = TasksOf(streams[0]);
  EXPECT_EQ(TasksOf(streams[0]), tasks);
  uint32_t id = 7;
  EXPECT_EQ(aclmdlRITaskGetSeqId(tasks[1], &id), ACL_SUCCESS);
  EXPECT_EQ(id, 1U);
  aclmdlRITaskParams params{};
  EXPECT_EQ(aclmdlRITaskGetParams(tasks[0], &params), ACL_SUCCESS);
  EXPECT_EQ(params.valueWriteTaskParams.devAddr, word);
  EXPECT_EQ(params.valueWriteTaskParams.value, 5U);
  EXPECT_EQ(aclmdlRITaskGetParams(tasks[3], &params), ACL_SUCCESS);
  EXPECT_EQ(params.eventRecordTaskParams.event, outside);
  EXPECT_EQ(params.eventRecordTaskParams.recordFlag, uint32_t{ACL_EVENT_RECORD_EXTERNAL});

  uint32_t few = 1;
  std::vector<aclmdlRITask> room(1);
  EXPECT_EQ(aclmdlRIGetTasksByStream(streams[0], room.data(), &few), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclmdlRIGetTasksByStream(stream_, nullptr, &few), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclmdlRITaskGetType(nullptr, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRITaskGetSeqId(tasks[1], &id), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclmdlRIGetTasksByStream(streams[0], nullptr, &few), ACL_ERROR_RT_PARAM_INVALID);
}

TEST_F(AclRunModelsTest, ChangesHoldFromTheUpdateOn) {
  auto* word = NewWord<uint64_t>(0);
  auto* other = NewWord<uint64_t>(0);
  const aclmdlRI model = Capture([&] {
    EXPECT_EQ(aclrtValueWrite(word, 5, 0, stream_), ACL_SUCCESS);
    EXPECT_EQ(aclrtValueWait(word, 5, ACL_STREAM_WAIT_VALUE_EQ, stream_), ACL_SUCCESS);
    Note(stream_, 1);
  });
  const auto tasks = TasksOf(StreamsOf(model)[0]);
  aclmdlRITaskParams params{};
  ASSERT_EQ(aclmdlRITaskGetParams(tasks[0], &params), ACL_SUCCESS);
  params.valueWriteTaskParams = {other, 6};
  EXPECT_EQ(aclmdlRITaskSetParams(tasks[0], &params), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRITaskDisable(tasks[2]), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRITaskSetParams(tasks[1], &params), ACL_ERROR_INVALID_PARAM);  // another type
  EXPECT_EQ(aclmdlRITaskSetParams(tasks[2], &params), ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT);
  ASSERT_EQ(aclmdlRITaskGetParams(tasks[1], &params), ACL_SUCCESS);
  params.valueWaitTaskParams = {other, 6, 9};
  EXPECT_EQ(aclmdlRITaskSetParams(tasks[1], &params), ACL_ERROR_INVALID_PARAM);
  params.valueWaitTaskParams = {&params, 6, ACL_STREAM_WAIT_VALUE_EQ};
  EXPECT_EQ(aclmdlRITaskSetParams(tasks[1], &params), ACL_ERROR_INVALID_PARAM);
  params.valueWaitTaskParams = {other, 6, ACL_STREAM_WAIT_VALUE_EQ};
  EXPECT_EQ(aclmdlRITaskSetParams(tasks[1], &params), ACL_SUCCESS);
  EXPECT_EQ(Run(model), ACL_SUCCESS);
  EXPECT_EQ(*word, 5U);
  EXPECT_THAT(TakeSeen(), ElementsAre(1));
  *word = 0;
  EXPECT_EQ(aclmdlRIUpdate(model), ACL_SUCCESS);
  EXPECT_EQ(Run(model), ACL_SUCCESS);
  EXPECT_EQ(*word, 0U);
  EXPECT_EQ(*other, 6U);
  EXPECT_THAT(TakeSeen(), ElementsAre());
}

TEST_F(AclRunModelsTest, AModelThatRunsIsNotUpdated) {
  aclrtEvent before = nullptr, after = nullptr;
  ASSERT_EQ(aclrtCreateEventExWithFlag(&before, ACL_EVENT_SYNC), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateEventExWithFlag(&after, ACL_EVENT_SYNC), ACL_SUCCESS);
  std::atomic<bool> runs{false};
  const aclmdlRI model = Capture([&] {
    Launch(stream_, [&] { runs = true; });
    EXPECT_EQ(aclrtStreamWaitEventWithFlag(stream_, before, 0, ACL_EVENT_WAIT_EXTERNAL),
              ACL_SUCCESS);
  });
  const auto tasks = TasksOf(StreamsOf(model)[0]);
  aclmdlRITaskParams params{};
  ASSERT_EQ(aclmdlRITaskGetParams(tasks[1], &params), ACL_SUCCESS);
  params.eventWaitTaskParams.event = stream_;
  EXPECT_EQ(aclmdlRITaskSetParams(tasks[1], &params), ACL_ERROR_RT_INVALID_HANDLE);
  params.eventWaitTaskParams.event = after;
  ASSERT_EQ(aclmdlRITaskSetParams(tasks[1], &params), ACL_SUCCESS);
  ASSERT_EQ(aclmdlRIExecuteAsync(model, stream_), ACL_SUCCESS);
  aclrtStreamStatus status;
  ASSERT_EQ(aclrtStreamQuery(stream_, &status), ACL_SUCCESS);
  while (!runs) std::this_thread::yield();
  EXPECT_EQ(aclmdlRIUpdate(model), ACL_ERROR_RT_PARAM_INVALID);
  ASSERT_EQ(aclrtRecordEvent(before, NewStream()), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIUpdate(model), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(after, NewStream()), ACL_SUCCESS);
  EXPECT_EQ(Run(model), ACL_SUCCESS);
}

TEST_F(AclRunModelsTest, NamesIdsAndCallbacks) {
  const aclmdlRI first = Capture([] {}), second = Capture([] {});
  uint32_t a = 0, b = 0;
  EXPECT_EQ(aclmdlRIGetId(first, &a), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIGetId(second, &b), ACL_SUCCESS);
  EXPECT_NE(a, b);
  char name[8] = "?";
  EXPECT_EQ(aclmdlRIGetName(first, sizeof name, name), ACL_SUCCESS);
  EXPECT_STREQ(name, "");
  EXPECT_EQ(aclmdlRISetName(first, "decoder step"), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIGetName(first, sizeof name, name), ACL_SUCCESS);
  EXPECT_STREQ(name, "decoder");
  EXPECT_EQ(aclmdlRIGetName(first, 0, name), ACL_ERROR_INVALID_PARAM);
  int count = 0;
  const auto add = [](void* counter) { ++*static_cast<int*>(counter); };
  const auto add_ten = [](void* counter) { *static_cast<int*>(counter) += 10; };
  EXPECT_EQ(aclmdlRIDestroyRegisterCallback(first, add, &count), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIDestroyRegisterCallback(first, add, &count), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclmdlRIDestroyRegisterCallback(first, add_ten, &count), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIDestroyUnregisterCallback(first, add_ten), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIDestroyUnregisterCallback(first, add_ten), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclmdlRIDestroy(first), ACL_SUCCESS);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(aclmdlRISetName(first, "x"), ACL_ERROR_RT_PARAM_INVALID);
}

TEST_F(AclRunModelsTest, AModelIsPrintedAsTraceEvents) {
  auto* word = NewWord<uint64_t>(0);
  const aclmdlRI model = Capture([&] {
    EXPECT_EQ(aclrtValueWrite(word, 5, 0, stream_), ACL_SUCCESS);
    Note(stream_, 1);
  });
  const std::string path = testing::TempDir() + "npumesh_model_ri.json";
  EXPECT_EQ(aclmdlRIDebugJsonPrint(model, path.c_str(), ACL_MDLRI_DEBUG_JSON_PRINT_VERBOSE),
            ACL_SUCCESS);
  int32_t id = 0;
  EXPECT_EQ(aclrtStreamGetId(stream_, &id), ACL_SUCCESS);
  std::ifstream file(path);
  const auto events = nlohmann::json::parse(file);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0]["name"], "MEM_WRITE_VALUE");
  EXPECT_EQ(events[0]["tid"], "stream" + std::to_string(id));
  EXPECT_EQ(events[1]["args"]["Task Id"], 1);
  EXPECT_EQ(events[1]["args"]["Stream Id"], id);
  EXPECT_EQ(aclmdlRIDebugJsonPrint(model, "/nowhere/model.json", 0), ACL_ERROR_RT_INTERNAL_ERROR);
  EXPECT_EQ(aclmdlRIDebugJsonPrint(model, path.c_str(), 2), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclmdlRIDebugPrint(model), ACL_SUCCESS);
  static_cast<void>(remove(path.c_str()));
}

}  // namespace
}  // namespace npumesh
