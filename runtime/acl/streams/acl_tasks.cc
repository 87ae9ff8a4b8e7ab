// Tasks of streams on device memory: values, reductions, random numbers; a part of acl_rt.h.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <numbers>
#include <optional>
#include <type_traits>

#include "acl/acl_rt.h"
#include "runtime/acl/process/api_span.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/process.h"
#include "runtime/base/float16.h"
#include "runtime/base/philox.h"
#include "runtime/device/running_task.h"

using npumesh::AclProcess;
using npumesh::AclStream;
using npumesh::AclTaskNote;
using npumesh::Bfloat16;
using npumesh::Fail;
using npumesh::Float16;
using npumesh::Recording;
using npumesh::Status;
using npumesh::Task;
using npumesh::WorkSpan;

namespace {

bool Holds(uint64_t seen, uint64_t value, uint32_t flag) {
  switch (flag) {
    case ACL_STREAM_WAIT_VALUE_GEQ:
      return static_cast<int64_t>(seen - value) >= 0;
    case ACL_STREAM_WAIT_VALUE_EQ:
      return seen == value;
    case ACL_STREAM_WAIT_VALUE_AND:
      return (seen & value) != 0;
    default:
      return ~(seen | value) != 0;
  }
}

// ---- Values in device memory, whose tasks clients can change in a model ----

aclError CheckWord(std::string_view function, void* address) {
  if (address != nullptr && reinterpret_cast<uintptr_t>(address) % sizeof(uint64_t) == 0 &&
      AclProcess::Get().memory.OnDevice(address, sizeof(uint64_t))) {
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_INVALID_PARAM, function,
              "devAddr is {}, expected 8 bytes of device memory at a multiple of 8",
              fmt::ptr(address));
}

Task WriteTask(const aclmdlRIValueWriteTaskParams& write) {
  return [word = static_cast<uint64_t*>(write.devAddr), value = write.value] {
    std::atomic_ref(*word).store(value, std::memory_order_release);
    return Status();
  };
}

Task WaitTask(const aclmdlRIValueWaitTaskParams& wait) {
  const std::chrono::seconds limit(AclProcess::Get().event_wait_seconds);
  return [word = static_cast<uint64_t*>(wait.devAddr), wait, limit] {
    const auto ready = [&] {
      return Holds(std::atomic_ref(*word).load(std::memory_order_acquire), wait.value, wait.flag);
    };
    return npumesh::AwaitInTask(ready, {.what = "for a value in device memory", .limit = limit});
  };
}

std::shared_ptr<AclTaskNote> NoteOfWrite(const aclmdlRIValueWriteTaskParams& write) {
  aclmdlRITaskParams params{};
  params.type = ACL_MODEL_RI_TASK_VALUE_WRITE;
  params.valueWriteTaskParams = write;
  return std::make_shared<AclTaskNote>(
      "MEM_WRITE_VALUE", params,
      [](std::string_view function, const aclmdlRITaskParams& asked, Recording::Change* change) {
        NPUMESH_ACL_TRY(CheckWord(function, asked.valueWriteTaskParams.devAddr));
        change->work = WriteTask(asked.valueWriteTaskParams);
        change->note = NoteOfWrite(asked.valueWriteTaskParams);
        return ACL_SUCCESS;
      });
}

std::shared_ptr<AclTaskNote> NoteOfWait(const aclmdlRIValueWaitTaskParams& wait) {
  aclmdlRITaskParams params{};
  params.type = ACL_MODEL_RI_TASK_VALUE_WAIT;
  params.valueWaitTaskParams = wait;
  return std::make_shared<AclTaskNote>(
      "MEM_WAIT_VALUE", params,
      [](std::string_view function, const aclmdlRITaskParams& asked,
         Recording::Change* change) -> aclError {
        NPUMESH_ACL_TRY(CheckWord(function, asked.valueWaitTaskParams.devAddr));
        if (asked.valueWaitTaskParams.flag > ACL_STREAM_WAIT_VALUE_NOR) {
          return Fail(ACL_ERROR_INVALID_PARAM, function, "flag is {}, expected 0 to 3",
                      asked.valueWaitTaskParams.flag);
        }
        change->work = WaitTask(asked.valueWaitTaskParams);
        change->note = NoteOfWait(asked.valueWaitTaskParams);
        return ACL_SUCCESS;
      });
}

// ---- Reductions ----

template <typename T>
struct Plain {
  using Stored = T;
  static T Load(T value) { return value; }
  static T Store(T value) { return value; }
};
template <typename T>
struct Half {
  using Stored = uint16_t;
  static float Load(uint16_t bits) { return T::ToFloat(bits); }
  static uint16_t Store(float value) { return T::FromFloat(value); }
};

// Integers wrap.
template <typename Value>
Value Sum(Value a, Value b) {
  if constexpr (std::is_integral_v<Value>) {
    return static_cast<Value>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}

// a (kind) b; equal: 1 where both are, else 0.
template <typename Value>
Value Reduced(Value a, Value b, aclrtReduceKind kind) {
  switch (kind) {
    case ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM:
      return Sum(a, b);
    case ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX:
      return std::max(a, b);
    case ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN:
      return std::min(a, b);
    default:
      return static_cast<Value>(a == b ? 1 : 0);
  }
}

// to[i] = to[i] (kind) from[i], at any addresses.
template <typename Number>
void ReduceInto(void* to, const void* from, uint64_t bytes, aclrtReduceKind kind) {
  typename Number::Stored a;
  typename Number::Stored b;
  for (uint64_t at = 0; at + sizeof a <= bytes; at += sizeof a) {
    std::memcpy(&a, static_cast<std::byte*>(to) + at, sizeof a);
    std::memcpy(&b, static_cast<const std::byte*>(from) + at, sizeof b);
    a = Number::Store(Reduced(Number::Load(a), Number::Load(b), kind));
    std::memcpy(static_cast<std::byte*>(to) + at, &a, sizeof a);
  }
}

using Reduction = void (*)(void*, const void*, uint64_t, aclrtReduceKind);

// Null: a device does not reduce this type. `bytes`: of an element.
Reduction FindReduction(aclDataType type) {
  switch (type) {
    case ACL_FLOAT:
      return ReduceInto<Plain<float>>;
    case ACL_FLOAT16:
      return ReduceInto<Half<Float16>>;
    case ACL_BF16:
      return ReduceInto<Half<Bfloat16>>;
    case ACL_INT8:
      return ReduceInto<Plain<int8_t>>;
    case ACL_UINT8:
      return ReduceInto<Plain<uint8_t>>;
    case ACL_INT16:
      return ReduceInto<Plain<int16_t>>;
    case ACL_UINT16:
      return ReduceInto<Plain<uint16_t>>;
    case ACL_INT32:
      return ReduceInto<Plain<int32_t>>;
    case ACL_UINT32:
      return ReduceInto<Plain<uint32_t>>;
    default:
      return nullptr;
  }
}

// Eight bytes of a parameter, which stand in the task or where it points to.
uint64_t BitsOf(const aclrtRandomParaInfo& parameter) {
  uint64_t bits = 0;
  if (parameter.isAddr == 0) {
    std::memcpy(&bits, parameter.valueOrAddr, std::min<size_t>(parameter.size, sizeof bits));
    return bits;
  }
  const void* address = nullptr;
  std::memcpy(&address, parameter.valueOrAddr, sizeof address);
  std::memcpy(&bits, address, sizeof bits);
  return bits;
}

aclError CheckParameter(const char* function, const char* name,
                        const aclrtRandomParaInfo& parameter) {
  if (parameter.isAddr > 1 || parameter.size > sizeof parameter.valueOrAddr) {
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "{}: isAddr is {}, size is {}, expected 0 or 1 and at most 8", name,
                parameter.isAddr, parameter.size);
  }
  if (parameter.isAddr == 0) return ACL_SUCCESS;
  const void* address = nullptr;
  std::memcpy(&address, parameter.valueOrAddr, sizeof address);
  if (AclProcess::Get().memory.OnDevice(address, sizeof(uint64_t))) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, function, "{}: {} is no device memory", name,
              fmt::ptr(address));
}

template <typename T>
T FromBits(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// The real number that a parameter of type `type` has.
double RealOf(uint64_t bits, aclDataType type) {
  switch (type) {
    case ACL_FLOAT16:
      return Float16::ToFloat(static_cast<uint16_t>(bits));
    case ACL_BF16:
      return Bfloat16::ToFloat(static_cast<uint16_t>(bits));
    default:
      return FromBits<float>(bits);
  }
}

void PutReal(void* result, uint64_t index, double value, aclDataType type) {
  const auto real = static_cast<float>(value);
  switch (type) {
    case ACL_FLOAT16:
      static_cast<uint16_t*>(result)[index] = Float16::FromFloat(real);
      break;
    case ACL_BF16:
      static_cast<uint16_t*>(result)[index] = Bfloat16::FromFloat(real);
      break;
    default:
      static_cast<float*>(result)[index] = real;
      break;
  }
}

// Uniform in [0, 1).
double Unit(npumesh::PhiloxStream& words) {
  return words.Next() * 0x1p-32;
}

double Normal(npumesh::PhiloxStream& words) {
  const double radius = std::sqrt(-2 * std::log(1 - Unit(words)));
  return radius * std::cos(2 * std::numbers::pi * Unit(words));
}

// A random task with its parameters as they are when it runs.
struct RandomWork {
  aclrtRandomNumTaskInfo task;

  uint64_t count() const { return BitsOf(task.randomNum); }
  Status operator()() const;

 private:
  void Bits(npumesh::PhiloxStream& words) const;
  void Uniform(npumesh::PhiloxStream& words) const;
  template <typename T>
  void UniformIntegers(npumesh::PhiloxStream& words) const;
  void Gaussian(npumesh::PhiloxStream& words) const;
};

bool IsReal(aclDataType type) {
  return type == ACL_FLOAT || type == ACL_FLOAT16 || type == ACL_BF16;
}

size_t BytesOfRandom(const aclrtRandomNumTaskInfo& task, uint64_t count) {
  if (task.randomNumFuncParaInfo.funcType == ACL_RT_RANDOM_NUM_FUNC_TYPE_DROPOUT_BITMASK) {
    return (count + 7) / 8;
  }
  return count * aclDataTypeSize(task.dataType);
}

// A bit is 1 where an element stays.
void RandomWork::Bits(npumesh::PhiloxStream& words) const {
  const auto& info = task.randomNumFuncParaInfo.paramInfo.dropoutBitmaskInfo;
  const double dropped = RealOf(BitsOf(info.dropoutRation), task.dataType);
  auto* bytes = static_cast<uint8_t*>(task.randomResultAddr);
  std::fill_n(bytes, BytesOfRandom(task, count()), uint8_t{0});
  for (uint64_t i = 0; i < count(); ++i) {
    if (Unit(words) >= dropped) bytes[i / 8] |= static_cast<uint8_t>(1U << (i % 8));
  }
}

template <typename T>
void RandomWork::UniformIntegers(npumesh::PhiloxStream& words) const {
  const auto& info = task.randomNumFuncParaInfo.paramInfo.uniformDisInfo;
  const T low = FromBits<T>(BitsOf(info.min));
  const T high = FromBits<T>(BitsOf(info.max));
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  for (uint64_t i = 0; i < count(); ++i) {
    const uint64_t word = uint64_t{words.Next()} << 32 | words.Next();
    const uint64_t step = range == 0 ? 0 : word % range;
    static_cast<T*>(task.randomResultAddr)[i] = static_cast<T>(static_cast<uint64_t>(low) + step);
  }
}

void RandomWork::Uniform(npumesh::PhiloxStream& words) const {
  switch (task.dataType) {
    case ACL_INT32:
      return UniformIntegers<int32_t>(words);
    case ACL_UINT32:
      return UniformIntegers<uint32_t>(words);
    case ACL_INT64:
      return UniformIntegers<int64_t>(words);
    case ACL_UINT64:
      return UniformIntegers<uint64_t>(words);
    default:
      break;
  }
  const auto& info = task.randomNumFuncParaInfo.paramInfo.uniformDisInfo;
  const double low = RealOf(BitsOf(info.min), task.dataType);
  const double high = RealOf(BitsOf(info.max), task.dataType);
  for (uint64_t i = 0; i < count(); ++i) {
    PutReal(task.randomResultAddr, i, low + (high - low) * Unit(words), task.dataType);
  }
}

void RandomWork::Gaussian(npumesh::PhiloxStream& words) const {
  const auto& info = task.randomNumFuncParaInfo.paramInfo.normalDisInfo;
  const double mean = RealOf(BitsOf(info.mean), task.dataType);
  const double deviation = RealOf(BitsOf(info.stddev), task.dataType);
  const bool truncated =
      task.randomNumFuncParaInfo.funcType == ACL_RT_RANDOM_NUM_FUNC_TYPE_TRUNCATED_NORMAL_DIS;
  for (uint64_t i = 0; i < count(); ++i) {
    double value = Normal(words);
    while (truncated && std::abs(value) > 2) value = Normal(words);
    PutReal(task.randomResultAddr, i, mean + deviation * value, task.dataType);
  }
}

Status RandomWork::operator()() const {
  std::array<uint64_t, 2> counter = {};
  std::memcpy(counter.data(), task.randomCounterAddr, sizeof counter);
  npumesh::PhiloxStream words(BitsOf(task.randomSeed), counter[0], counter[1]);
  if (!AclProcess::Get().memory.OnDevice(task.randomResultAddr, BytesOfRandom(task, count()))) {
    return npumesh::Error(npumesh::Code::kInvalidArgument,
                          "aclrtRandomNumAsync: {} numbers do not fit into the device memory at {}",
                          count(), fmt::ptr(task.randomResultAddr));
  }
  switch (task.randomNumFuncParaInfo.funcType) {
    case ACL_RT_RANDOM_NUM_FUNC_TYPE_DROPOUT_BITMASK:
      Bits(words);
      break;
    case ACL_RT_RANDOM_NUM_FUNC_TYPE_UNIFORM_DIS:
      Uniform(words);
      break;
    default:
      Gaussian(words);
      break;
  }
  return Status();
}

aclError CheckRandomParameters(const char* function, const aclrtRandomNumTaskInfo& task) {
  NPUMESH_ACL_TRY(CheckParameter(function, "randomSeed", task.randomSeed));
  NPUMESH_ACL_TRY(CheckParameter(function, "randomNum", task.randomNum));
  const auto& info = task.randomNumFuncParaInfo.paramInfo;
  if (task.randomNumFuncParaInfo.funcType == ACL_RT_RANDOM_NUM_FUNC_TYPE_DROPOUT_BITMASK) {
    return CheckParameter(function, "dropoutRation", info.dropoutBitmaskInfo.dropoutRation);
  }
  NPUMESH_ACL_TRY(CheckParameter(function, "min or mean", info.uniformDisInfo.min));
  return CheckParameter(function, "max or stddev", info.uniformDisInfo.max);
}

aclError CheckRandomTask(const char* function, const aclrtRandomNumTaskInfo& task) {
  const auto kind = task.randomNumFuncParaInfo.funcType;
  if (kind < ACL_RT_RANDOM_NUM_FUNC_TYPE_DROPOUT_BITMASK ||
      kind > ACL_RT_RANDOM_NUM_FUNC_TYPE_TRUNCATED_NORMAL_DIS) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "funcType is {}, expected 0 to 3",
                static_cast<int>(kind));
  }
  const aclDataType type = task.dataType;
  const bool integers =
      kind == ACL_RT_RANDOM_NUM_FUNC_TYPE_UNIFORM_DIS &&
      (type == ACL_INT32 || type == ACL_UINT32 || type == ACL_INT64 || type == ACL_UINT64);
  if (!IsReal(type) && !integers) {
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "dataType is {}, expected float32, float16 or bfloat16, or for uniform numbers an "
                "integer of 32 or 64 bits",
                static_cast<int>(type));
  }
  const auto& memory = AclProcess::Get().memory;
  if (!memory.OnDevice(task.randomResultAddr, 1) || !memory.OnDevice(task.randomCounterAddr, 16)) {
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "randomResultAddr is {}, randomCounterAddr is {}, expected device memory, of the "
                "counter 16 bytes",
                fmt::ptr(task.randomResultAddr), fmt::ptr(task.randomCounterAddr));
  }
  return CheckRandomParameters(function, task);
}

}  // namespace

aclError aclrtValueWrite(void* devAddr, uint64_t value, uint32_t flag, aclrtStream stream) try {
  NPUMESH_ACL_EXPECT(flag == 0, "flag is {}, expected 0", flag);
  NPUMESH_ACL_TRY(CheckWord(__func__, devAddr));
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedReadyStream(__func__, stream, &found));
  const aclmdlRIValueWriteTaskParams write{devAddr, value};
  found->stream.Enqueue(WriteTask(write), found->stream.records() ? NoteOfWrite(write) : nullptr);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtValueWait(void* devAddr, uint64_t value, uint32_t flag, aclrtStream stream) try {
  NPUMESH_ACL_EXPECT(flag <= ACL_STREAM_WAIT_VALUE_NOR, "flag is {}, expected 0 to 3", flag);
  NPUMESH_ACL_TRY(CheckWord(__func__, devAddr));
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedReadyStream(__func__, stream, &found));
  const aclmdlRIValueWaitTaskParams wait{devAddr, value, flag};
  found->stream.Enqueue(WaitTask(wait), found->stream.records() ? NoteOfWait(wait) : nullptr);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtReduceAsync(void* dst, const void* src, uint64_t count, aclrtReduceKind kind,
                          aclDataType type, aclrtStream stream, void* reserve) try {
  const npumesh::ApiSpan span(__func__);
  NPUMESH_ACL_EXPECT(reserve == nullptr, "reserve is not null");
  NPUMESH_ACL_EXPECT(
      kind >= ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM && kind <= ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL,
      "kind is {}, expected 10 to 13", static_cast<int>(kind));
  const Reduction reduce = FindReduction(type);
  NPUMESH_ACL_EXPECT(reduce != nullptr, "type is {}, which a device does not reduce",
                     static_cast<int>(type));
  NPUMESH_ACL_EXPECT(count % aclDataTypeSize(type) == 0,
                     "count is {} bytes, expected whole elements of {}", count,
                     aclDataTypeSize(type));
  const auto& memory = AclProcess::Get().memory;
  NPUMESH_ACL_EXPECT(memory.OnDevice(dst, count) && memory.OnDevice(src, count),
                     "{} bytes at dst or src are not all device memory", count);
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedReadyStream(__func__, stream, &found));
  const uint16_t lane = npumesh::LaneOfStream(found->id);
  found->stream.Enqueue([dst, src, count, kind, reduce, device = found->device, lane] {
    const WorkSpan work(
        device, {.name = "aclrtReduceAsync", .type = "Reduce", .bytes = count, .lane = lane});
    reduce(dst, src, count, kind);
    return Status();
  });
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtRandomNumAsync(const aclrtRandomNumTaskInfo* taskInfo, const aclrtStream stream,
                             void* reserve) try {
  const npumesh::ApiSpan span(__func__);
  NPUMESH_ACL_EXPECT(taskInfo != nullptr && reserve == nullptr,
                     "taskInfo is null, or reserve is not");
  NPUMESH_ACL_TRY(CheckRandomTask(__func__, *taskInfo));
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedReadyStream(__func__, stream, &found));
  found->stream.Enqueue(RandomWork{*taskInfo});
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtStreamStop(aclrtStream stream) try { return aclrtStreamAbort(stream); } catch (...) {
  return npumesh::FailThrown(__func__);
}
