// Operators whose output sizes follow from values: NonZero, Where, MaskedSelect, Unique and its
// relatives; UniqueExt2 and UniqueWithCountsExt2 are Unique along an axis. The engine evaluates
// them.
#include <cmath>
#include <cstring>
#include <string>
#include <unordered_map>

#include "graph/ops/core/define.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/copy/broadcast.h"
#include "graph/ops/toolbox/values/element_io.h"

namespace npumesh {
namespace {

using Tensors = std::vector<Tensor>;
using Addresses = std::span<const void* const>;

// Sets the outputs of the plan, of which some dimensions may be unknown.
template <auto PlanFn>
Status InferLate(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const Planned plan, define::PlanCall<PlanFn>(op));
  for (size_t port = 0; port < plan.outputs.size(); ++port) {
    if (static_cast<int>(port) >= op.outputs()) {
      return Error(Code::kCorrupt, "{}: output port {} is missing", op.Who(), port);
    }
    op.set_out(static_cast<int>(port), plan.outputs[port]);
  }
  return Status();
}

// The int32 or int64 that an attribute asks for. Error (kInvalidArgument): it asks for another
// type.
Result<DataType> IndexTypeOf(const OpContext& op, std::string_view attribute) {
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, op.attr_dtype(attribute));
  if (kIndices.Contains(dtype)) return dtype;
  return Error(Code::kInvalidArgument, "{}: attribute \"{}\" is {}, expected {}", op.Who(),
               attribute, Name(dtype), kIndices.ToString());
}

// Objects (kUnsupported) to a type that has no zero to compare with.
void ExpectZeros(const OpContext& op, Check& check) {
  const DataType dtype = op.in("x").dtype;
  check.Supported(HasZero(dtype), "\"x\" is {}", Name(dtype));
}

// Values as int32 or int64.
Tensor IndexTensor(DataType dtype, Shape shape, const std::vector<int64_t>& values) {
  const TensorType type{dtype, std::move(shape)};
  if (dtype == DataType::kInt64) return Tensor::FromVector<int64_t>(type, values);
  return Tensor::FromVector<int32_t>(type, std::vector<int32_t>(values.begin(), values.end()));
}

// ---- NonZero, Where ----

// The result: [positions, rank], or transposed. Where has no attributes.
struct Coordinates {
  DataType dtype = DataType::kInt64;
  bool transposed = false;
};

Result<Coordinates> CoordinatesOf(const OpContext& op) {
  if (op.schema().attrs.empty()) return Coordinates();
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, IndexTypeOf(op, "dtype"));
  return Coordinates{dtype, op.attr_bool("transpose")};
}

Planned PlanNonZero(const OpContext& op, Check& check) {
  const Shape& x = op.in("x").shape;
  ExpectZeros(op, check);
  const auto [dtype, transposed] = check.Take(CoordinatesOf(op));
  const int64_t rank = x.has_rank() ? x.rank() : kUnknownDim;
  return {.outputs = {{dtype, transposed ? Shape{rank, kUnknownDim} : Shape{kUnknownDim, rank}}}};
}

// Positions of the elements that are not zero, in C order.
std::vector<int64_t> NonZeroPositions(const TensorType& type, const void* data) {
  const auto* bytes = static_cast<const std::byte*>(data);
  const size_t width = static_cast<size_t>(BitsOf(type.dtype)) / 8;
  std::vector<int64_t> positions;
  const int64_t elements = type.shape.elements();
  for (int64_t i = 0; i < elements; ++i) {
    if (IsNonZero(type.dtype, bytes + static_cast<size_t>(i) * width)) positions.push_back(i);
  }
  return positions;
}

Result<Tensors> EvaluateNonZero(const OpContext& op, Addresses in) {
  const TensorType& x = op.in("x");
  NPUMESH_ASSIGN_OR_RETURN(const Coordinates result, CoordinatesOf(op));
  const std::vector<int64_t> positions = NonZeroPositions(x, in[0]);
  const size_t count = positions.size();
  const auto rank = static_cast<size_t>(x.shape.rank());
  const bool transposed = result.transposed;
  std::vector<int64_t> coordinates(count * rank);
  for (size_t i = 0; i < count; ++i) {
    int64_t rest = positions[i];
    for (size_t axis = rank; axis-- > 0;) {
      const int64_t size = x.shape[static_cast<int>(axis)];
      coordinates[transposed ? axis * count + i : i * rank + axis] = rest % size;
      rest /= size;
    }
  }
  const auto rows = static_cast<int64_t>(transposed ? rank : count);
  const auto columns = static_cast<int64_t>(transposed ? count : rank);
  return Tensors{IndexTensor(result.dtype, {rows, columns}, coordinates)};
}

// ---- MaskedSelect ----

Planned PlanMaskedSelect(const OpContext& op, Check& check) {
  const DataType dtype = op.in("x").dtype;
  check.Type("mask", DataType::kBool);
  check.Keep(ElementBytes(op, dtype).status());
  return {.outputs = {{dtype, {kUnknownDim}}}};
}

Result<Tensors> EvaluateMaskedSelect(const OpContext& op, Addresses in) {
  const TensorType& x = op.in("x");
  const TensorType& mask = op.in("mask");
  NPUMESH_ASSIGN_OR_RETURN(const size_t width, ElementBytes(op, x.dtype));
  const Result<Shape> whole = Broadcast(x.shape, mask.shape);
  if (!whole.ok()) return whole.status().WithContext(op.Who());
  if (whole->rank() > BroadcastPlan::kMaxRank) {
    return Error(Code::kUnsupported, "{}: rank {}, at most {}", op.Who(), whole->rank(),
                 BroadcastPlan::kMaxRank);
  }
  const int64_t elements = whole->elements();
  std::vector<std::byte> chosen(static_cast<size_t>(elements));
  std::string selected;
  if (elements > 0) {
    BroadcastPlan(mask.shape, *whole, 1).Gather(in[1], 0, chosen.size(), chosen.data());
    const BroadcastPlan values(x.shape, *whole, width);
    std::vector<std::byte> all(chosen.size() * width);
    values.Gather(in[0], 0, chosen.size(), all.data());
    for (size_t i = 0; i < chosen.size(); ++i) {
      if (chosen[i] == std::byte{0}) continue;
      selected.append(reinterpret_cast<const char*>(all.data()) + i * width, width);
    }
  }
  Tensor y = Tensor::Allocate({x.dtype, {static_cast<int64_t>(selected.size() / width)}});
  if (!selected.empty()) std::memcpy(y.mutable_data(), selected.data(), selected.size());
  return Tensors{std::move(y)};
}

// ---- Unique, UniqueWithCounts, UniqueExt2, UniqueWithCountsExt2 ----

bool HasAxis(const OpContext& op) {
  return op.schema().inputs.size() > 1;
}

Planned PlanUnique(const OpContext& op, Check& check) {
  const auto& [dtype, x] = op.in("x");
  ExpectZeros(op, check);
  check.That(HasAxis(op) || !x.has_rank() || x.rank() == 1,
             "\"x\" has shape {}, expected one dimension", x);
  const DataType index = check.Take(IndexTypeOf(op, "out_idx"));
  const bool vector = !HasAxis(op) && x.has_rank() && check.ok();
  Shape y = x;
  if (y.has_rank()) {
    // The axis may be a value that is not known yet.
    for (int64_t& dim : y.mutable_dims()) dim = kUnknownDim;
  }
  Planned plan;
  plan.outputs = {{dtype, std::move(y)}, {index, {vector ? x[0] : kUnknownDim}}};
  if (op.schema().outputs.size() > 2) plan.outputs.push_back({index, {kUnknownDim}});
  return plan;
}

// The axis input: no element means that x has one dimension.
Result<int> UniqueAxis(const OpContext& op, Addresses in) {
  const Shape& x = op.in("x").shape;
  const bool given = HasAxis(op) && op.in("axis").shape.elements() > 0;
  Check check(op);
  check.That(given || x.rank() == 1, "\"x\" has shape {} and \"axis\" is empty", x);
  if (!given) return check.Done(0);
  check.Type("axis", kIndices);
  check.Elements("axis", {1});
  if (!check.ok()) return check.status();
  return AxisOf(op, IntegerAt(op.in("axis").dtype, in[1], 0), x.rank(), "axis");
}

template <typename T>
T Read(const std::byte* element) {
  T value;
  std::memcpy(&value, element, sizeof value);
  return value;
}

bool IsNan(DataType dtype, const std::byte* element) {
  switch (dtype) {
    case DataType::kFloat16:
      return (Read<uint16_t>(element) & 0x7FFF) > 0x7C00;
    case DataType::kBfloat16:
      return (Read<uint16_t>(element) & 0x7FFF) > 0x7F80;
    case DataType::kFloat:
      return std::isnan(Read<float>(element));
    case DataType::kDouble:
      return std::isnan(Read<double>(element));
    default:
      return false;
  }
}

// x as `count` slices along an axis, each `blocks` runs of `block_bytes`.
struct Slices {
  const std::byte* data;
  int64_t count, blocks;
  size_t block_bytes;

  const std::byte* block(int64_t slice, int64_t block) const {
    return data + static_cast<size_t>(block * count + slice) * block_bytes;
  }
};

// Bytes that are equal when slices are: zeros without a sign, and for a NaN, which equals nothing,
// the number of the slice.
std::string KeyOf(const Slices& slices, int64_t slice, DataType dtype) {
  const size_t width = static_cast<size_t>(BitsOf(dtype)) / 8;
  std::string key;
  bool nan = false;
  for (int64_t i = 0; i < slices.blocks; ++i) {
    const std::byte* block = slices.block(slice, i);
    for (size_t at = 0; at < slices.block_bytes; at += width) {
      nan = nan || IsNan(dtype, block + at);
      if (IsNonZero(dtype, block + at)) {
        key.append(reinterpret_cast<const char*>(block + at), width);
      } else {
        key.append(width, '\0');
      }
    }
  }
  if (nan) key += fmt::format("#{}", slice);
  return key;
}

Result<Tensors> EvaluateUnique(const OpContext& op, Addresses in) {
  const TensorType& x = op.in("x");
  NPUMESH_ASSIGN_OR_RETURN(const DataType index_type, IndexTypeOf(op, "out_idx"));
  NPUMESH_ASSIGN_OR_RETURN(const int axis, UniqueAxis(op, in));
  const auto width = static_cast<size_t>(BitsOf(x.dtype)) / 8;
  const Slices slices{
      static_cast<const std::byte*>(in[0]), x.shape[axis], ElementsBetween(x.shape, 0, axis),
      static_cast<size_t>(ElementsBetween(x.shape, axis + 1, x.shape.rank())) * width};
  std::unordered_map<std::string, int64_t> known;
  std::vector<int64_t> first;  // by unique slice: where it was seen first
  std::vector<int64_t> index;
  std::vector<int64_t> counts;
  for (int64_t slice = 0; slice < slices.count; ++slice) {
    const auto [entry, added] =
        known.try_emplace(KeyOf(slices, slice, x.dtype), static_cast<int64_t>(first.size()));
    if (added) {
      first.push_back(slice);
      counts.push_back(0);
    }
    index.push_back(entry->second);
    ++counts[static_cast<size_t>(entry->second)];
  }
  const auto kinds = static_cast<int64_t>(first.size());
  Shape shape = x.shape;
  shape[axis] = kinds;
  Tensor y = Tensor::Allocate({x.dtype, shape});
  std::byte* to = y.mutable_data();
  for (int64_t block = 0; y.bytes() > 0 && block < slices.blocks; ++block) {
    for (const int64_t slice : first) {
      std::memcpy(to, slices.block(slice, block), slices.block_bytes);
      to += slices.block_bytes;
    }
  }
  Tensors outputs = {std::move(y), IndexTensor(index_type, {slices.count}, index)};
  if (op.schema().outputs.size() > 2) {
    outputs.push_back(IndexTensor(index_type, {kinds}, counts));
  }
  return outputs;
}

template <auto PlanFn>
Operator Late(std::string_view signature, EvaluateFn evaluate) {
  return {
      .schema = Signature(signature), .infer = InferLate<PlanFn>, .evaluate = std::move(evaluate)};
}

}  // namespace

void RegisterSelectionOps(OpRegistry& registry) {
  for (const std::string_view signature :
       {"NonZero(x; transpose=false, dtype=9) -> y", "Where(x) -> y"}) {
    registry.Add(Late<PlanNonZero>(signature, EvaluateNonZero));
  }
  for (const std::string_view signature :
       {"MaskedSelect(x, mask) -> y", "MaskedSelectV2(x, mask) -> y",
        "MaskedSelectV3(x, mask) -> y"}) {
    registry.Add(Late<PlanMaskedSelect>(signature, EvaluateMaskedSelect));
  }
  for (const std::string_view signature :
       {"Unique(x; out_idx=3) -> y, idx", "UniqueExt2(x, axis; out_idx=3) -> y, idx",
        "UniqueWithCounts(x; out_idx:type) -> y, idx, count",
        "UniqueWithCountsExt2(x, axis; out_idx:type) -> y, idx, count"}) {
    registry.Add(Late<PlanUnique>(signature, EvaluateUnique));
  }
}

}  // namespace npumesh
