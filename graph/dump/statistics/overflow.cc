#include "graph/dump/statistics/overflow.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "graph/dump/statistics/statistics.h"

namespace npumesh {
namespace {

constexpr double kFloat16Max = 65504;
constexpr size_t kRecordBytes = 2048;
constexpr uint32_t kMagic = 0x5A5A5A5A;
constexpr uint32_t kRecordVersion = 0;
constexpr uint32_t kAiCore = 0;
constexpr uint32_t kSdma = 3;
constexpr uint64_t kTaskAiCore = 0;
constexpr uint64_t kTaskHccl = 3;
constexpr uint64_t kNoId = 65535;
constexpr uint64_t kOverflowed = 1;

bool OutOfRange(const DumpOperand& operand) {
  const TensorType& type = operand.tensor.type;
  if (!IsFloating(type.dtype) || operand.tensor.size == 0) return false;
  const auto elements = static_cast<uint64_t>(type.shape.elements());
  const auto statistics = ComputeStatistics(type.dtype, operand.data, elements, L2Norm::kSkip);
  if (!statistics) return false;
  if (!statistics->finite()) return true;
  if (type.dtype != DataType::kFloat16) return false;
  return std::max(std::fabs(std::get<double>(statistics->max)),
                  std::fabs(std::get<double>(statistics->min))) >= kFloat16Max;
}

template <typename T>
void Put(T value, std::string* bytes) {
  char raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof(T));
  bytes->append(raw, sizeof(T));
}

}  // namespace

bool OutOfRange(const std::vector<DumpOperand>& operands) {
  return std::any_of(operands.begin(), operands.end(),
                     [](const DumpOperand& operand) { return OutOfRange(operand); });
}

std::string OverflowRecord(uint32_t model_id, uint32_t stream, uint32_t task, bool collective) {
  std::vector<uint64_t> fields = {model_id, stream, task, collective ? kTaskHccl : kTaskAiCore,
                                  kNoId,    kNoId};  // context, thread
  // AI core: program counter, parameters, core, block; SDMA: source, target, channel.
  fields.resize(fields.size() + (collective ? 3 : 4), 0);
  fields.push_back(kOverflowed);
  std::string bytes;
  Put(kMagic, &bytes);
  Put(kRecordVersion, &bytes);
  Put(uint32_t{1}, &bytes);  // valid
  Put(collective ? kSdma : kAiCore, &bytes);
  Put(uint32_t{0}, &bytes);  // reserved
  Put(static_cast<uint32_t>(fields.size() * sizeof(uint64_t)), &bytes);
  for (const uint64_t field : fields) Put(field, &bytes);
  bytes.resize(kRecordBytes);
  return bytes;
}

DumpRecord DescribeOverflowRecord(uint64_t time_us, uint64_t bytes) {
  DumpRecord record;
  record.op_name = kOverflowName;
  record.time_us = time_us;
  DumpTensor& output = record.outputs.emplace_back();
  output.type = {DataType::kUint8, Shape({static_cast<int64_t>(bytes)})};
  output.original_shape = output.type.shape;
  output.size = bytes;
  output.original_name = kOverflowName;
  return record;
}

}  // namespace npumesh
