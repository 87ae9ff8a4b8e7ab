#include "launch/record/foreign/foreign_call.h"

#include <array>

namespace npumesh {
namespace {

constexpr uint32_t kUnknownReduction = ~uint32_t{0};

struct KindName {
  std::string_view name;
  CollectiveKind kind;
};
constexpr std::array<KindName, 15> kKindNames = {{
    {"AllReduce", CollectiveKind::kAllReduce},
    {"AllGather", CollectiveKind::kAllGather},
    {"AllGatherV", CollectiveKind::kAllGatherV},
    {"ReduceScatter", CollectiveKind::kReduceScatter},
    {"ReduceScatterV", CollectiveKind::kReduceScatterV},
    {"Broadcast", CollectiveKind::kBroadcast},
    {"Reduce", CollectiveKind::kReduce},
    {"Scatter", CollectiveKind::kScatter},
    {"AlltoAll", CollectiveKind::kAllToAll},
    {"AlltoAllV", CollectiveKind::kAllToAllV},
    {"AlltoAllVC", CollectiveKind::kAllToAllVC},
    {"AllToAll", CollectiveKind::kAllToAll},
    {"AllToAllV", CollectiveKind::kAllToAllV},
    {"AllToAllVC", CollectiveKind::kAllToAllVC},
    {"Barrier", CollectiveKind::kBarrier},
}};

struct TorchType {
  std::string_view name;
  DataType dtype;
};
constexpr std::array<TorchType, 17> kTorchTypes = {{
    {"Float", DataType::kFloat},
    {"Half", DataType::kFloat16},
    {"BFloat16", DataType::kBfloat16},
    {"Double", DataType::kDouble},
    {"Char", DataType::kInt8},
    {"Byte", DataType::kUint8},
    {"Short", DataType::kInt16},
    {"Int", DataType::kInt32},
    {"Long", DataType::kInt64},
    {"UInt16", DataType::kUint16},
    {"UInt32", DataType::kUint32},
    {"UInt64", DataType::kUint64},
    {"Bool", DataType::kBool},
    {"Float8_e5m2", DataType::kFloat8E5M2},
    {"Float8_e4m3fn", DataType::kFloat8E4M3Fn},
    {"ComplexFloat", DataType::kComplex64},
    {"ComplexDouble", DataType::kComplex128},
}};

}  // namespace

RecordedCall UntypedCall() {
  RecordedCall call;
  call.dtype = static_cast<int32_t>(DataType::kUndefined);
  call.op = kUnknownReduction;
  call.root = -1;
  return call;
}

CollectiveKind KindNamed(std::string_view name) {
  for (const KindName& known : kKindNames) {
    if (known.name == name) return known.kind;
  }
  return CollectiveKind::kNone;
}

DataType TypeOfTorch(std::string_view name) {
  for (const TorchType& type : kTorchTypes) {
    if (type.name == name) return type.dtype;
  }
  return DataType::kUndefined;
}

std::string_view TorchNameOf(DataType dtype) {
  for (const TorchType& type : kTorchTypes) {
    if (type.dtype == dtype) return type.name;
  }
  return "Undefined";
}

}  // namespace npumesh
