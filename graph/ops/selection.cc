// Operators whose output sizes follow from values: NonZero, Where, MaskedSelect, Unique and its
// relatives. Ops reference 5.4 and 5.10; UniqueExt2 and UniqueWithCountsExt2 as Unique along an
// axis.
#include <cstring>
#include <string>
#include <unordered_map>

#include "graph/ops/broadcast.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/op_families.h"
#include "graph/ops/truth.h"

namespace npumesh {
namespace {

using Tensors = std::vector<Tensor>;
using Addresses = std::span<const void* const>;

// Sets an output of which some dimensions may be unknown.
Status SetLateOutput(OpContext& op, int port, DataType dtype, Shape shape) {
  if (port >= op.outputs()) {
    return Error(Code::kCorrupt, "{}: output port {} is missing", op.Who(), port);
  }
  op.set_out(port, {dtype, std::move(shape)});
  return Status();
}

Result<DataType> IndexType(const OpContext& op, std::string_view attribute) {
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, op.attr_dtype(attribute));
  if (dtype == DataType::kInt32 || dtype == DataType::kInt64) return dtype;
  return Error(Code::kInvalidArgument, "{}: attribute \"{}\" is {}, expected int32 or int64",
               op.Who(), attribute, Name(dtype));
}

// Values as int32 or int64.
Tensor IndexTensor(DataType dtype, Shape shape, const std::vector<int64_t>& values) {
  const TensorType type{dtype, std::move(shape)};
  if (dtype == DataType::kInt64) return Tensor::FromVector<int64_t>(type, values);
  return Tensor::FromVector<int32_t>(type, std::vector<int32_t>(values.begin(), values.end()));
}

// ---- NonZero, Where ----

Result<DataType> CoordinateType(const OpContext& op) {
  if (op.schema().type == "Where") return DataType::kInt64;
  return IndexType(op, "dtype");
}

bool Transposed(const OpContext& op) {
  return op.schema().type == "NonZero" && op.attr_bool("transpose");
}

Status InferNonZero(OpContext& op) {
  const TensorType& x = op.in("x");
  if (!HasZero(x.dtype)) {
    return Error(Code::kUnsupported, "{}: \"x\" is {}", op.Who(), Name(x.dtype));
  }
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, CoordinateType(op));
  const int64_t rank = x.shape.has_rank() ? x.shape.rank() : kUnknownDim;
  return SetLateOutput(op, 0, dtype,
                       Transposed(op) ? Shape{rank, kUnknownDim} : Shape{kUnknownDim, rank});
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
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, CoordinateType(op));
  const std::vector<int64_t> positions = NonZeroPositions(x, in[0]);
  const size_t count = positions.size();
  const auto rank = static_cast<size_t>(x.shape.rank());
  const bool transposed = Transposed(op);
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
  return Tensors{IndexTensor(dtype, {rows, columns}, coordinates)};
}

// ---- MaskedSelect ----

Status InferMaskedSelect(OpContext& op) {
  const TensorType& x = op.in("x");
  if (const DataType mask = op.in("mask").dtype; mask != DataType::kBool) {
    return Error(Code::kInvalidArgument, "{}: \"mask\" is {}, expected bool", op.Who(), Name(mask));
  }
  NPUMESH_RETURN_IF_ERROR(ElementBytes(op, x.dtype).status());
  return SetLateOutput(op, 0, x.dtype, {kUnknownDim});
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

Status InferUnique(OpContext& op) {
  const TensorType& x = op.in("x");
  if (!HasZero(x.dtype)) {
    return Error(Code::kUnsupported, "{}: \"x\" is {}", op.Who(), Name(x.dtype));
  }
  const bool vector = !x.shape.has_rank() || x.shape.rank() == 1;
  if (!HasAxis(op) && !vector) {
    return Error(Code::kInvalidArgument, "{}: \"x\" has shape {}, expected one dimension", op.Who(),
                 x.shape.ToString());
  }
  NPUMESH_ASSIGN_OR_RETURN(const DataType index, IndexType(op, "out_idx"));
  Shape shape = x.shape;
  if (shape.has_rank()) {
    // The axis may be a value that is not known yet.
    for (int64_t& dim : shape.mutable_dims()) dim = kUnknownDim;
  }
  NPUMESH_RETURN_IF_ERROR(SetLateOutput(op, 0, x.dtype, shape));
  NPUMESH_RETURN_IF_ERROR(
      SetLateOutput(op, 1, index, {HasAxis(op) || !x.shape.has_rank() ? kUnknownDim : x.shape[0]}));
  if (op.schema().outputs.size() < 3) return Status();
  return SetLateOutput(op, 2, index, {kUnknownDim});
}

// The axis input: no element means that x has one dimension.
Result<int> UniqueAxis(const OpContext& op, Addresses in) {
  const int rank = op.in("x").shape.rank();
  const bool given = HasAxis(op) && op.in("axis").shape.elements() > 0;
  if (!given) {
    if (rank == 1) return 0;
    return Error(Code::kInvalidArgument, "{}: \"x\" has shape {} and \"axis\" is empty", op.Who(),
                 op.in("x").shape.ToString());
  }
  const TensorType& axis = op.in("axis");
  const bool wide = axis.dtype == DataType::kInt64;
  if ((!wide && axis.dtype != DataType::kInt32) || axis.shape.elements() != 1) {
    return Error(Code::kInvalidArgument, "{}: \"axis\" is {}, expected one int32 or int64",
                 op.Who(), axis.ToString());
  }
  int64_t value = 0;
  int32_t narrow = 0;
  if (wide) {
    std::memcpy(&value, in[1], sizeof value);
  } else {
    std::memcpy(&narrow, in[1], sizeof narrow);
    value = narrow;
  }
  return AxisOf(op, value, rank, "axis");
}

bool IsNan(DataType dtype, const std::byte* element) {
  switch (dtype) {
    case DataType::kFloat16:
    case DataType::kBfloat16: {
      uint16_t bits = 0;
      std::memcpy(&bits, element, sizeof bits);
      return (bits & 0x7FFF) > (dtype == DataType::kFloat16 ? 0x7C00 : 0x7F80);
    }
    case DataType::kFloat: {
      float value = 0;
      std::memcpy(&value, element, sizeof value);
      return value != value;
    }
    case DataType::kDouble: {
      double value = 0;
      std::memcpy(&value, element, sizeof value);
      return value != value;
    }
    default:
      return false;
  }
}

// x as `count` slices along an axis, each `blocks` runs of `block_bytes`.
struct Slices {
  const std::byte* data;
  int64_t count;
  int64_t blocks;
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
  NPUMESH_ASSIGN_OR_RETURN(const DataType index_type, IndexType(op, "out_idx"));
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

void AddUnique(OpRegistry& registry, std::string_view type, bool axis, bool counts,
               const AttrSpec& index_type) {
  std::vector<PortSpec> inputs = {{"x"}};
  if (axis) inputs.push_back({"axis"});
  std::vector<PortSpec> outputs = {{"y"}, {"idx"}};
  if (counts) outputs.push_back({"count"});
  registry.Add({.schema = {type, inputs, outputs, {index_type}},
                .infer = InferUnique,
                .evaluate = EvaluateUnique});
}

}  // namespace

void RegisterSelectionOps(OpRegistry& registry) {
  registry.Add({.schema = {"NonZero",
                           {{"x"}},
                           {{"y"}},
                           {{"transpose", AttrValue::Bool(false)}, {"dtype", AttrValue::Int(9)}}},
                .infer = InferNonZero,
                .evaluate = EvaluateNonZero});
  registry.Add({.schema = {"Where", {{"x"}}, {{"y"}}, {}},
                .infer = InferNonZero,
                .evaluate = EvaluateNonZero});
  for (const std::string_view type : {"MaskedSelect", "MaskedSelectV2", "MaskedSelectV3"}) {
    registry.Add({.schema = {type, {{"x"}, {"mask"}}, {{"y"}}, {}},
                  .infer = InferMaskedSelect,
                  .evaluate = EvaluateMaskedSelect});
  }
  const AttrSpec optional = {"out_idx", AttrValue::Int(3)};
  const AttrSpec required = {"out_idx", Required::kType};
  AddUnique(registry, "Unique", false, false, optional);
  AddUnique(registry, "UniqueExt2", true, false, optional);
  AddUnique(registry, "UniqueWithCounts", false, true, required);
  AddUnique(registry, "UniqueWithCountsExt2", true, true, required);
}

}  // namespace npumesh
