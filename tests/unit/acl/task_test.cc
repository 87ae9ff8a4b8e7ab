// Tasks on device memory, notifies, and what other processes of the host share.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/unit/acl/acl_test.h"

namespace npumesh {
namespace {

class TaskTest : public AclTest {
 protected:
  static uint64_t* Word(uint64_t value) {
    auto* word = static_cast<uint64_t*>(Allocate(sizeof(uint64_t)));
    *word = value;
    return word;
  }
  static aclError Synchronize(aclrtStream stream) { return aclrtSynchronizeStream(stream); }
  static bool Idle(aclrtStream stream) {
    aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
    EXPECT_EQ(aclrtStreamQuery(stream, &status), ACL_SUCCESS);
    return status == ACL_STREAM_STATUS_COMPLETE;
  }
};

TEST_F(TaskTest, AStreamWaitsForAValueThatAnotherWrites) {
  struct Case {
    uint64_t before, awaited;
    uint32_t flag;
    uint64_t written;
  };
  const uint64_t most = std::numeric_limits<uint64_t>::max();
  for (const Case& c :
       {Case{0, 5, ACL_STREAM_WAIT_VALUE_GEQ, 6}, Case{4, 5, ACL_STREAM_WAIT_VALUE_EQ, 5},
        Case{1, 6, ACL_STREAM_WAIT_VALUE_AND, 4},
        Case{most, 5, ACL_STREAM_WAIT_VALUE_NOR, most - 2}}) {
    uint64_t* const word = Word(c.before);
    const aclrtStream waits = NewStream();
    const aclrtStream writes = NewStream();
    ASSERT_EQ(aclrtValueWait(word, c.awaited, c.flag, waits), ACL_SUCCESS);
    EXPECT_FALSE(Idle(waits));
    ASSERT_EQ(aclrtValueWrite(word, c.written, 0, writes), ACL_SUCCESS);
    EXPECT_EQ(Synchronize(waits), ACL_SUCCESS);
    EXPECT_EQ(*word, c.written);
  }
}

TEST_F(TaskTest, AnAbortEndsAWaitForAValue) {
  uint64_t* const word = Word(0);
  const aclrtStream stream = NewStream();
  ASSERT_EQ(aclrtValueWait(word, 1, ACL_STREAM_WAIT_VALUE_EQ, stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtValueWrite(word, 7, 0, stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamStop(stream), ACL_SUCCESS);
  EXPECT_EQ(Synchronize(stream), ACL_SUCCESS);
  EXPECT_EQ(*word, 0u);
}

TEST_F(TaskTest, AWaitForAValueEndsAfterItsLimit) {
  ASSERT_EQ(aclrtSetOpWaitTimeout(1), ACL_SUCCESS);
  const aclrtStream stream = NewStream();
  ASSERT_EQ(aclrtValueWait(Word(0), 1, ACL_STREAM_WAIT_VALUE_EQ, stream), ACL_SUCCESS);
  EXPECT_EQ(Synchronize(stream), ACL_ERROR_RT_TASK_TIMEOUT);
  EXPECT_THAT(aclGetRecentErrMsg(), testing::HasSubstr("waited 1 s for a value in device memory"));
  ASSERT_EQ(aclrtSetOpWaitTimeout(0), ACL_SUCCESS);
}

TEST_F(TaskTest, WordsAreChecked) {
  uint64_t* const word = Word(0);
  uint64_t on_host = 0;
  EXPECT_EQ(aclrtValueWrite(&on_host, 1, 0, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtValueWrite(nullptr, 1, 0, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtValueWrite(reinterpret_cast<char*>(word) + 4, 1, 0, nullptr),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtValueWrite(word, 1, 1, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtValueWait(word, 1, 4, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtValueWait(word, 1, 0, &on_host), ACL_ERROR_RT_INVALID_HANDLE);
}

// Every kind and type against a loop over doubles of small whole numbers, which are exact.
template <typename T>
void Reduces(aclDataType type, aclrtReduceKind kind, uint16_t (*half)(float) = nullptr) {
  std::mt19937 random(static_cast<unsigned>(type) * 16 + static_cast<unsigned>(kind));
  constexpr size_t kCount = 37;
  std::array<int, kCount> a;
  std::array<int, kCount> b;
  void* device[2] = {};
  const size_t bytes = kCount * sizeof(T);
  for (auto& block : device) {
    ASSERT_EQ(aclrtMalloc(&block, bytes, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  }
  const auto stored = [half](int value) {
    return half == nullptr ? static_cast<T>(value)
                           : static_cast<T>(half(static_cast<float>(value)));
  };
  for (size_t i = 0; i < kCount; ++i) {
    a[i] = static_cast<int>(random() % 20);
    b[i] = static_cast<int>(random() % 20);
    static_cast<T*>(device[0])[i] = stored(a[i]);
    static_cast<T*>(device[1])[i] = stored(b[i]);
  }
  ASSERT_EQ(aclrtReduceAsync(device[0], device[1], bytes, kind, type, nullptr, nullptr),
            ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  for (size_t i = 0; i < kCount; ++i) {
    const int expected = kind == ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM   ? a[i] + b[i]
                         : kind == ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX ? std::max(a[i], b[i])
                         : kind == ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN
                             ? std::min(a[i], b[i])
                             : static_cast<int>(a[i] == b[i]);
    EXPECT_EQ(static_cast<T*>(device[0])[i], stored(expected)) << "type " << type << " at " << i;
  }
  for (void* block : device) ASSERT_EQ(aclrtFree(block), ACL_SUCCESS);
}

TEST_F(TaskTest, ReductionsAreThoseOfALoop) {
  for (const auto kind : {ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX,
                          ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN, ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL}) {
    Reduces<float>(ACL_FLOAT, kind);
    Reduces<uint16_t>(ACL_FLOAT16, kind, aclFloatToFloat16);
    Reduces<int8_t>(ACL_INT8, kind);
    Reduces<uint8_t>(ACL_UINT8, kind);
    Reduces<int16_t>(ACL_INT16, kind);
    Reduces<uint16_t>(ACL_UINT16, kind);
    Reduces<int32_t>(ACL_INT32, kind);
    Reduces<uint32_t>(ACL_UINT32, kind);
    Reduces<uint16_t>(ACL_BF16, kind, [](float value) {
      uint32_t bits;
      std::memcpy(&bits, &value, sizeof bits);
      return static_cast<uint16_t>(bits >> 16);  // small whole numbers need no rounding
    });
  }
}

TEST_F(TaskTest, ReductionsAreChecked) {
  void* const block = Allocate(64);
  const auto sum = ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM;
  float host = 0;
  EXPECT_EQ(aclrtReduceAsync(block, &host, 4, sum, ACL_FLOAT, nullptr, nullptr),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtReduceAsync(block, block, 6, sum, ACL_FLOAT, nullptr, nullptr),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtReduceAsync(block, block, 8, sum, ACL_DOUBLE, nullptr, nullptr),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtReduceAsync(block, block, 8, static_cast<aclrtReduceKind>(9), ACL_FLOAT, nullptr,
                             nullptr),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtReduceAsync(block, block, 8, sum, ACL_FLOAT, nullptr, &host),
            ACL_ERROR_INVALID_PARAM);
}

template <typename T>
aclrtRandomParaInfo Parameter(T value) {
  aclrtRandomParaInfo parameter = {};
  parameter.size = sizeof value;
  std::memcpy(parameter.valueOrAddr, &value, sizeof value);
  return parameter;
}

class RandomTaskTest : public TaskTest {
 protected:
  void SetUp() override {
    TaskTest::SetUp();
    result_ = Allocate(kCount * 8);
    counter_ = Allocate(16);
    ASSERT_EQ(aclrtMemset(counter_, 16, 0, 16), ACL_SUCCESS);
  }
  // A task of `kCount` numbers between `low` and `high`, or with this mean and deviation.
  template <typename T>
  aclrtRandomNumTaskInfo Task(aclrtRandomNumFuncType kind, aclDataType type, T low, T high) const {
    aclrtRandomNumTaskInfo task = {};
    task.dataType = type;
    task.randomNumFuncParaInfo.funcType = kind;
    task.randomNumFuncParaInfo.paramInfo.uniformDisInfo = {Parameter(low), Parameter(high)};
    task.randomResultAddr = result_;
    task.randomCounterAddr = counter_;
    task.randomSeed = Parameter(uint64_t{42});
    task.randomNum = Parameter(uint64_t{kCount});
    return task;
  }
  template <typename T>
  std::vector<T> Run(const aclrtRandomNumTaskInfo& task) const {
    EXPECT_EQ(aclrtRandomNumAsync(&task, nullptr, nullptr), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
    const T* const numbers = static_cast<const T*>(result_);
    return std::vector<T>(numbers, numbers + kCount);
  }

  static constexpr size_t kCount = 10000;
  void* result_ = nullptr;
  void* counter_ = nullptr;
};

TEST_F(RandomTaskTest, UniformNumbersFillTheirRange) {
  const auto kind = ACL_RT_RANDOM_NUM_FUNC_TYPE_UNIFORM_DIS;
  const auto reals = Run<float>(Task(kind, ACL_FLOAT, -1.0f, 3.0f));
  const auto [low, high] = std::minmax_element(reals.begin(), reals.end());
  EXPECT_GE(*low, -1.0f);
  EXPECT_LT(*low, -0.99f);
  EXPECT_GT(*high, 2.99f);
  EXPECT_LE(*high, 3.0f);
  EXPECT_EQ(reals, Run<float>(Task(kind, ACL_FLOAT, -1.0f, 3.0f)));
  const auto whole = Run<int64_t>(Task(kind, ACL_INT64, int64_t{-3}, int64_t{4}));
  EXPECT_EQ(*std::min_element(whole.begin(), whole.end()), -3);
  EXPECT_EQ(*std::max_element(whole.begin(), whole.end()), 3);
  const auto positive = Run<uint32_t>(Task(kind, ACL_UINT32, uint32_t{5}, uint32_t{6}));
  EXPECT_EQ(positive, std::vector<uint32_t>(kCount, 5));
}

TEST_F(RandomTaskTest, NormalNumbersHaveTheirMoments) {
  for (const auto kind :
       {ACL_RT_RANDOM_NUM_FUNC_TYPE_NORMAL_DIS, ACL_RT_RANDOM_NUM_FUNC_TYPE_TRUNCATED_NORMAL_DIS}) {
    const auto numbers = Run<float>(Task(kind, ACL_FLOAT, 3.0f, 2.0f));
    double sum = 0;
    double squares = 0;
    double farthest = 0;
    for (const float number : numbers) {
      sum += number;
      squares += (number - 3.0) * (number - 3.0);
      farthest = std::max(farthest, std::abs(number - 3.0));
    }
    const bool truncated = kind == ACL_RT_RANDOM_NUM_FUNC_TYPE_TRUNCATED_NORMAL_DIS;
    EXPECT_NEAR(sum / kCount, 3.0, 0.1);
    EXPECT_NEAR(std::sqrt(squares / kCount), truncated ? 2.0 * 0.8796 : 2.0, 0.1);
    EXPECT_EQ(farthest <= 4.0001, truncated);
  }
}

TEST_F(RandomTaskTest, AMaskKeepsItsShare) {
  aclrtRandomNumTaskInfo task =
      Task(ACL_RT_RANDOM_NUM_FUNC_TYPE_DROPOUT_BITMASK, ACL_FLOAT, 0.25f, 0.0f);
  ASSERT_EQ(aclrtMemset(result_, kCount, 0xff, kCount), ACL_SUCCESS);
  const auto bytes = Run<uint8_t>(task);
  size_t kept = 0;
  for (size_t i = 0; i < kCount; ++i) kept += bytes[i / 8] >> (i % 8) & 1;
  EXPECT_NEAR(static_cast<double>(kept) / kCount, 0.75, 0.02);
  EXPECT_EQ(bytes[kCount / 8], 0xff);  // behind the mask
  // A parameter by address is read when the task runs.
  auto* const number = static_cast<uint64_t*>(Allocate(8));
  *number = 16;
  task.randomNum = Parameter(number);
  task.randomNum.isAddr = 1;
  ASSERT_EQ(aclrtMemset(result_, kCount, 0xff, kCount), ACL_SUCCESS);
  EXPECT_EQ(Run<uint8_t>(task)[2], 0xff);
}

TEST_F(RandomTaskTest, TasksAreChecked) {
  const auto kind = ACL_RT_RANDOM_NUM_FUNC_TYPE_NORMAL_DIS;
  auto task = Task(kind, ACL_INT32, 0, 1);
  EXPECT_EQ(aclrtRandomNumAsync(&task, nullptr, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtRandomNumAsync(nullptr, nullptr, nullptr), ACL_ERROR_INVALID_PARAM);
  task = Task(kind, ACL_FLOAT, 0.0f, 1.0f);
  task.randomNumFuncParaInfo.funcType = static_cast<aclrtRandomNumFuncType>(4);
  EXPECT_EQ(aclrtRandomNumAsync(&task, nullptr, nullptr), ACL_ERROR_INVALID_PARAM);
  task = Task(kind, ACL_FLOAT, 0.0f, 1.0f);
  task.randomCounterAddr = nullptr;
  EXPECT_EQ(aclrtRandomNumAsync(&task, nullptr, nullptr), ACL_ERROR_INVALID_PARAM);
  task = Task(kind, ACL_FLOAT, 0.0f, 1.0f);
  task.randomSeed.isAddr = 1;  // the seed is no address
  EXPECT_EQ(aclrtRandomNumAsync(&task, nullptr, nullptr), ACL_ERROR_INVALID_PARAM);
  task = Task(kind, ACL_FLOAT, 0.0f, 1.0f);
  task.randomNum = Parameter(uint64_t{1} << 40);
  const aclrtStream stream = NewStream();
  EXPECT_EQ(aclrtRandomNumAsync(&task, stream, nullptr), ACL_SUCCESS);
  EXPECT_EQ(Synchronize(stream), ACL_ERROR_INVALID_PARAM);
}

class NotifyTest : public TaskTest {
 protected:
  static aclrtNotify NewNotify() {
    aclrtNotify notify = nullptr;
    EXPECT_EQ(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT), ACL_SUCCESS);
    return notify;
  }
};

TEST_F(NotifyTest, OneWaitTakesOneRecord) {
  const aclrtNotify notify = NewNotify();
  const aclrtStream waits = NewStream();
  const aclrtStream records = NewStream();
  uint64_t* const word = Word(0);
  ASSERT_EQ(aclrtWaitAndResetNotify(notify, waits, 0), ACL_SUCCESS);
  ASSERT_EQ(aclrtValueWrite(word, 1, 0, waits), ACL_SUCCESS);
  ASSERT_EQ(aclrtWaitAndResetNotify(notify, waits, 0), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordNotify(notify, records), ACL_SUCCESS);
  ASSERT_EQ(aclrtValueWait(word, 1, ACL_STREAM_WAIT_VALUE_EQ, records), ACL_SUCCESS);
  ASSERT_EQ(Synchronize(records), ACL_SUCCESS);
  EXPECT_FALSE(Idle(waits));
  ASSERT_EQ(aclrtRecordNotify(notify, records), ACL_SUCCESS);
  EXPECT_EQ(Synchronize(waits), ACL_SUCCESS);
  uint32_t id = 0;
  EXPECT_EQ(aclrtGetNotifyId(notify, &id), ACL_SUCCESS);
  ASSERT_EQ(aclrtDestroyNotify(notify), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyNotify(notify), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtRecordNotify(notify, records), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtWaitAndResetNotify(nullptr, waits, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtCreateNotify(nullptr, 0), ACL_ERROR_INVALID_PARAM);
}

TEST_F(NotifyTest, AResetTakesARecordAway) {
  aclrtNotify notify = NewNotify();
  const aclrtStream stream = NewStream();
  ASSERT_EQ(aclrtRecordNotify(notify, stream), ACL_SUCCESS);
  ASSERT_EQ(Synchronize(stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtNotifyBatchReset(&notify, 1), ACL_SUCCESS);
  ASSERT_EQ(aclrtWaitAndResetNotify(notify, stream, 1), ACL_SUCCESS);
  EXPECT_EQ(Synchronize(stream), ACL_ERROR_RT_TASK_TIMEOUT);
  EXPECT_EQ(aclrtNotifyBatchReset(nullptr, 1), ACL_ERROR_INVALID_PARAM);
}

TEST_F(NotifyTest, CountersChangeAndCompare) {
  aclrtCntNotify counter = nullptr;
  ASSERT_EQ(aclrtCntNotifyCreate(&counter, 0), ACL_SUCCESS);
  const aclrtStream waits = NewStream();
  const aclrtStream records = NewStream();
  aclrtCntNotifyWaitInfo wait = {};
  wait.mode = ACL_RT_CNT_NOTIFY_WAIT_BIGGER_OR_EQUAL_MODE;
  wait.value = 3;
  wait.isClear = 1;
  ASSERT_EQ(aclrtCntNotifyWaitWithTimeout(counter, waits, &wait), ACL_SUCCESS);
  aclrtCntNotifyRecordInfo add = {ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE, 1};
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(Idle(waits));
    ASSERT_EQ(aclrtCntNotifyRecord(counter, records, &add), ACL_SUCCESS);
    ASSERT_EQ(Synchronize(records), ACL_SUCCESS);
  }
  EXPECT_EQ(Synchronize(waits), ACL_SUCCESS);
  aclrtCntNotifyRecordInfo bits = {ACL_RT_CNT_NOTIFY_RECORD_BIT_OR_MODE, 6};
  ASSERT_EQ(aclrtCntNotifyRecord(counter, records, &bits), ACL_SUCCESS);
  bits = {ACL_RT_CNT_NOTIFY_RECORD_BIT_AND_MODE, 3};
  ASSERT_EQ(aclrtCntNotifyRecord(counter, records, &bits), ACL_SUCCESS);
  wait = {};
  wait.mode = ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE;
  wait.value = 2;  // 0, cleared; then 6; then 2
  ASSERT_EQ(aclrtCntNotifyWaitWithTimeout(counter, records, &wait), ACL_SUCCESS);
  EXPECT_EQ(Synchronize(records), ACL_SUCCESS);
  bits.mode = static_cast<aclrtCntNotifyRecordMode>(3);
  EXPECT_EQ(aclrtCntNotifyRecord(counter, records, &bits), ACL_ERROR_INVALID_PARAM);
  wait.mode = static_cast<aclrtCntNotifyWaitMode>(5);
  EXPECT_EQ(aclrtCntNotifyWaitWithTimeout(counter, waits, &wait), ACL_ERROR_INVALID_PARAM);
  ASSERT_EQ(aclrtCntNotifyReset(counter, records), ACL_SUCCESS);
  ASSERT_EQ(aclrtCntNotifyDestroy(counter), ACL_SUCCESS);
  EXPECT_EQ(aclrtCntNotifyReset(counter, records), ACL_ERROR_RT_INVALID_HANDLE);
}

TEST_F(NotifyTest, AModelAndAStreamWaitForEachOther) {
  aclrtEvent begin = nullptr;
  aclrtEvent end = nullptr;
  ASSERT_EQ(aclrtCreateEventExWithFlag(&begin, ACL_EVENT_SYNC), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateEventExWithFlag(&end, ACL_EVENT_SYNC), ACL_SUCCESS);
  const aclrtStream captured = NewStream();
  const aclrtStream runs = NewStream();
  const aclrtStream outside = NewStream();
  uint64_t* const word = Word(0);
  EXPECT_EQ(aclrtRecordEventWithFlag(end, captured, ACL_EVENT_RECORD_EXTERNAL),
            ACL_ERROR_RT_STREAM_NOT_CAPTURED);
  ASSERT_EQ(aclmdlRICaptureBegin(captured, ACL_MODEL_RI_CAPTURE_MODE_RELAXED), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEventWithFlag(captured, begin, 0, ACL_EVENT_WAIT_EXTERNAL), ACL_SUCCESS);
  ASSERT_EQ(aclrtValueWrite(word, 9, 0, captured), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEventWithFlag(end, captured, ACL_EVENT_RECORD_EXTERNAL), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamWaitEventWithFlag(captured, begin, 1, ACL_EVENT_WAIT_EXTERNAL),
            ACL_ERROR_INVALID_PARAM);
  aclmdlRI model = nullptr;
  ASSERT_EQ(aclmdlRICaptureEnd(captured, &model), ACL_SUCCESS);
  ASSERT_EQ(aclmdlRIExecuteAsync(model, runs), ACL_SUCCESS);
  EXPECT_FALSE(Idle(runs));
  EXPECT_EQ(*word, 0u);
  ASSERT_EQ(aclrtRecordEvent(begin, outside), ACL_SUCCESS);
  EXPECT_EQ(Synchronize(runs), ACL_SUCCESS);
  EXPECT_EQ(*word, 9u);
  aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
  ASSERT_EQ(aclrtQueryEventStatus(end, &status), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_EVENT_RECORDED_STATUS_COMPLETE);
  EXPECT_EQ(aclrtStreamWaitEventWithTimeout(outside, end, -1), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtStreamWaitEventWithTimeout(outside, end, 5), ACL_SUCCESS);
  EXPECT_EQ(aclrtRecordEventWithFlag(end, outside, 2), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(Synchronize(outside), ACL_SUCCESS);
}

// Other processes: tests/mpi/acl/processes_test.
TEST_F(NotifyTest, KeysAreChecked) {
  char key[65] = {};
  void* const block = Allocate(4096);
  int32_t pid = 1;
  EXPECT_EQ(aclrtIpcMemGetExportKey(block, 4096, key, 64, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtIpcMemGetExportKey(block, 4097, key, 65, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtIpcMemGetExportKey(&pid, 4, key, 65, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtIpcMemGetExportKey(block, 4096, key, 65, 2), ACL_ERROR_INVALID_PARAM);
  ASSERT_EQ(aclrtIpcMemGetExportKey(block, 4096, key, 65, 0), ACL_SUCCESS);
  ASSERT_EQ(aclrtIpcMemSetImportPid(key, &pid, 1), ACL_SUCCESS);
  EXPECT_EQ(aclrtIpcMemSetImportPid(key, nullptr, 1), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtIpcMemSetImportPid("no key", &pid, 1), ACL_ERROR_INVALID_PARAM);
  const std::vector<int32_t> many(256, 7);
  EXPECT_EQ(aclrtIpcMemSetImportPid(key, const_cast<int32_t*>(many.data()), many.size()),
            ACL_ERROR_INVALID_PARAM);
  void* same = nullptr;  // its own memory, a second time
  ASSERT_EQ(aclrtIpcMemImportByKey(&same, key, 0), ACL_SUCCESS);
  ASSERT_EQ(aclrtMemset(block, 4096, 5, 4096), ACL_SUCCESS);
  EXPECT_EQ(std::memcmp(same, block, 4096), 0);
  aclrtNotify notify = nullptr;
  EXPECT_EQ(aclrtNotifyImportByKey(&notify, key, 0), ACL_ERROR_INVALID_PARAM);
  ASSERT_EQ(aclrtIpcMemClose(key), ACL_SUCCESS);  // the import
  EXPECT_EQ(aclrtMemset(same, 1, 0, 1), ACL_ERROR_INVALID_PARAM);
  ASSERT_EQ(aclrtIpcMemClose(key), ACL_SUCCESS);  // the export
  EXPECT_EQ(aclrtIpcMemClose(key), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtIpcMemImportByKey(&same, key, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtIpcMemImportByKey(&same, "npumesh-1", 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtIpcMemImportByKey(&same, "npumesh-3fffffff-1-1-0000000000000001", 0),
            ACL_ERROR_RT_SUSPECT_REMOTE_ERROR);
  aclrtEvent event = nullptr;
  aclrtIpcEventHandle handle = {};
  ASSERT_EQ(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC), ACL_SUCCESS);
  EXPECT_EQ(aclrtIpcGetEventHandle(event, &handle), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtIpcOpenEventHandle(handle, &event), ACL_ERROR_INVALID_PARAM);
}

}  // namespace
}  // namespace npumesh
