// Compiled once for each instruction set by Highway's foreach_target; the last pass (HWY_ONCE) adds
// the functions that pick one at run time.
#include "collectives/reduce/reduce.h"

#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

#include "collectives/reduce/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "collectives/reduce/reduce.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks for.
#include "collectives/reduce/vector_ops-inl.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace npumesh {
namespace HWY_NAMESPACE {

// What is too short for a block goes through padded buffers and the same vector operations, so that
// the last elements round like all others.
template <class Kind, class Op>
void ReduceTail(const void* const* in, int inputs, void* const* out, int outputs, uint64_t at,
                uint64_t bytes) {
  HWY_ALIGN uint8_t buffer[HWY_MAX_BYTES] = {};
  std::memcpy(buffer, static_cast<const uint8_t*>(in[0]) + at, bytes);
  auto acc = Kind::Load(buffer);
  for (int i = 1; i < inputs; ++i) {
    std::memcpy(buffer, static_cast<const uint8_t*>(in[i]) + at, bytes);
    acc = Kind::template Combine<Op>(acc, Kind::Load(buffer));
  }
  Kind::Store(Kind::Finish(acc), buffer);
  for (int o = 0; o < outputs; ++o) {
    std::memcpy(static_cast<uint8_t*>(out[o]) + at, buffer, bytes);
  }
}

template <class Kind, class Op>
void ReduceOneBlock(const void* const* in, int inputs, void* const* out, int outputs, uint64_t at) {
  auto acc = Kind::Load(static_cast<const uint8_t*>(in[0]) + at);
  for (int i = 1; i < inputs; ++i) {
    acc = Kind::template Combine<Op>(acc, Kind::Load(static_cast<const uint8_t*>(in[i]) + at));
  }
  acc = Kind::Finish(acc);
  for (int o = 0; o < outputs; ++o) Kind::Store(acc, static_cast<uint8_t*>(out[o]) + at);
}

// Four blocks at a time: four independent chains of operations hide each other's latency, and every
// input is read in runs of whole cache lines.
template <class Kind, class Op>
void ReduceFourBlocks(const void* const* in, int inputs, void* const* out, int outputs, uint64_t at,
                      bool stream) {
  const uint64_t block = Kind::BlockBytes();
  const auto* first = static_cast<const uint8_t*>(in[0]) + at;
  auto acc0 = Kind::Load(first);
  auto acc1 = Kind::Load(first + block);
  auto acc2 = Kind::Load(first + 2 * block);
  auto acc3 = Kind::Load(first + 3 * block);
  for (int i = 1; i < inputs; ++i) {
    const auto* next = static_cast<const uint8_t*>(in[i]) + at;
    acc0 = Kind::template Combine<Op>(acc0, Kind::Load(next));
    acc1 = Kind::template Combine<Op>(acc1, Kind::Load(next + block));
    acc2 = Kind::template Combine<Op>(acc2, Kind::Load(next + 2 * block));
    acc3 = Kind::template Combine<Op>(acc3, Kind::Load(next + 3 * block));
  }
  acc0 = Kind::Finish(acc0);
  acc1 = Kind::Finish(acc1);
  acc2 = Kind::Finish(acc2);
  acc3 = Kind::Finish(acc3);
  for (int o = 0; o < outputs; ++o) {
    auto* to = static_cast<uint8_t*>(out[o]) + at;
    if (stream && reinterpret_cast<uintptr_t>(to) % block == 0) {
      Kind::Stream(acc0, to);
      Kind::Stream(acc1, to + block);
      Kind::Stream(acc2, to + 2 * block);
      Kind::Stream(acc3, to + 3 * block);
    } else {
      Kind::Store(acc0, to);
      Kind::Store(acc1, to + block);
      Kind::Store(acc2, to + 2 * block);
      Kind::Store(acc3, to + 3 * block);
    }
  }
}

template <class Kind, class Op>
void Reduce(const void* const* in, int inputs, void* const* out, int outputs, uint64_t count,
            bool stream) {
  const uint64_t bytes = count * sizeof(typename Kind::Element);
  const uint64_t block = Kind::BlockBytes();
  uint64_t at = 0;
  for (; bytes - at >= 4 * block; at += 4 * block) {
    ReduceFourBlocks<Kind, Op>(in, inputs, out, outputs, at, stream);
  }
  for (; bytes - at >= block; at += block) {
    ReduceOneBlock<Kind, Op>(in, inputs, out, outputs, at);
  }
  if (at < bytes) ReduceTail<Kind, Op>(in, inputs, out, outputs, at, bytes - at);
  if (stream) hwy::FlushStream();
}

// `Arithmetic` is the kind that adds and multiplies, `Ordered` the one that compares.
template <class Arithmetic, class Ordered>
ReduceFn Select(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return Reduce<Arithmetic, Sum>;
    case ReduceOp::kProd:
      return Reduce<Arithmetic, Prod>;
    case ReduceOp::kMax:
      return Reduce<Ordered, Max>;
    case ReduceOp::kMin:
      return Reduce<Ordered, Min>;
  }
  return nullptr;
}

template <class Kind>
ReduceFn SelectFloating(ReduceOp op) {
  return Select<Kind, Kind>(op);
}

// Sums and products that wrap have the same bits with and without sign.
template <typename T>
ReduceFn SelectInteger(ReduceOp op) {
  return Select<Direct<std::make_unsigned_t<T>>, Direct<T>>(op);
}

ReduceFn FindHere(DataType dtype, ReduceOp op) {
  switch (dtype) {
    case DataType::kFloat:
      return SelectFloating<Direct<float>>(op);
    case DataType::kDouble:
      return SelectFloating<Direct<double>>(op);
    case DataType::kFloat16:
      return SelectFloating<Widened<HalfCodec>>(op);
    case DataType::kBfloat16:
      return SelectFloating<Widened<BrainCodec>>(op);
    case DataType::kInt8:
      return SelectInteger<int8_t>(op);
    case DataType::kInt16:
      return SelectInteger<int16_t>(op);
    case DataType::kInt32:
      return SelectInteger<int32_t>(op);
    case DataType::kInt64:
      return SelectInteger<int64_t>(op);
    case DataType::kUint8:
      return SelectInteger<uint8_t>(op);
    case DataType::kUint16:
      return SelectInteger<uint16_t>(op);
    case DataType::kUint32:
      return SelectInteger<uint32_t>(op);
    case DataType::kUint64:
      return SelectInteger<uint64_t>(op);
    default:
      return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace npumesh
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace npumesh {
namespace {

HWY_EXPORT(FindHere);

template <DataType dtype, ReduceOp op>
void Combine(const void* left, void* inout, uint64_t count) {
  const void* const in[] = {left, inout};
  void* const out[] = {inout};
  FindReduce(dtype, op)(in, 2, out, 1, count, false);
}

constexpr std::array kReduced = {DataType::kFloat,  DataType::kFloat16, DataType::kBfloat16,
                                 DataType::kDouble, DataType::kInt8,    DataType::kInt16,
                                 DataType::kInt32,  DataType::kInt64,   DataType::kUint8,
                                 DataType::kUint16, DataType::kUint32,  DataType::kUint64};

// Combine functions of one type, indexed by ReduceOp.
using CombineRow = std::array<CombineFn, 4>;

template <size_t... i>
constexpr std::array<CombineRow, sizeof...(i)> MakeCombineRows(std::index_sequence<i...>) {
  return {CombineRow{Combine<kReduced[i], ReduceOp::kSum>, Combine<kReduced[i], ReduceOp::kProd>,
                     Combine<kReduced[i], ReduceOp::kMax>,
                     Combine<kReduced[i], ReduceOp::kMin>}...};
}

constexpr auto kCombineRows = MakeCombineRows(std::make_index_sequence<kReduced.size()>());

}  // namespace

ReduceFn FindReduce(DataType dtype, ReduceOp op) {
  return HWY_DYNAMIC_DISPATCH(FindHere)(dtype, op);
}

CombineFn FindCombine(DataType dtype, ReduceOp op) {
  const auto index = static_cast<size_t>(op);
  for (size_t i = 0; i < kReduced.size(); ++i) {
    if (kReduced[i] == dtype && index < kCombineRows[i].size()) return kCombineRows[i][index];
  }
  return nullptr;
}

}  // namespace npumesh

#endif  // HWY_ONCE
