#include "graph/c_interface/tensor_binding.h"

#include <cstdlib>

#include "graph/c_interface/call.h"

namespace npumesh {
namespace {

constexpr uint64_t kFreshAlignment = 64;

// True for a tensor that stands for none.
bool IsAbsent(const npumesh_tensor& tensor) {
  return tensor.data == nullptr && tensor.dtype == NPUMESH_UNDEFINED;
}

Result<TensorType> TypeOf(const npumesh_tensor& tensor) {
  const std::optional<DataType> dtype = DataTypeFromRuntime(tensor.dtype);
  if (!dtype || BitsOf(*dtype) == 0) {
    return Error(Code::kInvalidArgument, "expected a dtype with a width, seen {} ({})",
                 tensor.dtype, dtype ? Name(*dtype) : "unknown");
  }
  if (tensor.rank == NPUMESH_OPEN_RANK) return TensorType{*dtype, Shape::UnknownRank()};
  if (tensor.rank < 0 || (tensor.rank > 0 && tensor.dims == nullptr)) {
    return Error(Code::kInvalidArgument, "expected a rank and its dims, seen rank {}{}",
                 tensor.rank, tensor.dims == nullptr ? " and dims NULL" : "");
  }
  TensorType type{*dtype, Shape(std::vector<int64_t>(tensor.dims, tensor.dims + tensor.rank))};
  NPUMESH_RETURN_IF_ERROR(type.shape.Check());
  if (type.shape.is_static() &&
      !BytesOf(type.dtype, static_cast<uint64_t>(type.shape.elements()))) {
    return Error(Code::kInvalidArgument, "{} has more bytes than there can be", type.ToString());
  }
  return type;
}

Status CheckMemory(const npumesh_tensor& tensor, const TensorType& type, BindFor purpose) {
  if (!type.shape.is_static()) {
    if (purpose == BindFor::kTypes) return Status();
    return Error(Code::kInvalidArgument, "expected known dimensions, seen {}", type.ToString());
  }
  if (type.bytes() == 0 || (tensor.data == nullptr && purpose == BindFor::kTypes)) return Status();
  if (tensor.data == nullptr) {
    return Error(Code::kInvalidArgument, "expected memory for {}, seen NULL", type.ToString());
  }
  if (tensor.bytes >= type.bytes()) return Status();
  return Error(Code::kInvalidArgument, "{} has {} bytes, seen memory of {}", type.ToString(),
               type.bytes(), tensor.bytes);
}

Result<PlanOperand> Bind(const InputSpec& spec, const npumesh_tensor& tensor, BindFor purpose) {
  if (IsAbsent(tensor)) return PlanOperand();
  if ((tensor.flags & ~NPUMESH_IN_PLACE) != 0) {
    return Error(Code::kInvalidArgument, "flags {:#x} are not known", tensor.flags);
  }
  NPUMESH_ASSIGN_OR_RETURN(TensorType type, TypeOf(tensor));
  NPUMESH_RETURN_IF_ERROR(CheckMemory(tensor, type, purpose));
  const bool in_place = (tensor.flags & NPUMESH_IN_PLACE) != 0;
  // A RefData keeps its content in a buffer of the session.
  const Lending lending = in_place   ? Lending::kInPlace
                          : spec.ref ? Lending::kNone
                                     : Lending::kReadOnly;
  return PlanOperand{std::move(type), tensor.data, lending};
}

}  // namespace

Status BindInputs(const std::vector<InputSpec>& specs, const npumesh_tensor* inputs, size_t count,
                  BindFor purpose, std::vector<PlanOperand>& operands) {
  if (count != specs.size()) {
    return Error(Code::kInvalidArgument, "the graph has {} inputs, {} were given", specs.size(),
                 count);
  }
  if (count > 0) NPUMESH_RETURN_IF_ERROR(CheckPointer(inputs, "inputs"));
  operands.clear();
  for (size_t i = 0; i < count; ++i) {
    Result<PlanOperand> operand = Bind(specs[i], inputs[i], purpose);
    if (!operand.ok()) {
      return operand.status().WithContext(
          fmt::format("input {} \"{}\"", specs[i].index, specs[i].name));
    }
    operands.push_back(*std::move(operand));
  }
  return Status();
}

OutputBinding::~OutputBinding() {
  for (void* const memory : fresh_) std::free(memory);
}

Result<std::vector<void*>> OutputBinding::Place(const std::vector<TensorType>& types) {
  places_.clear();
  for (size_t i = 0; i < types.size(); ++i) {
    const Result<void*> place = PlaceOf(i, types[i]);
    if (!place.ok()) return place.status().WithContext(fmt::format("output {}", i));
    places_.push_back(*place);
  }
  return places_;
}

Result<void*> OutputBinding::PlaceOf(size_t position, const TensorType& type) {
  const npumesh_tensor& output = outputs_[position];
  if (output.data != nullptr) {
    if (output.dtype != NPUMESH_UNDEFINED && output.dtype != static_cast<int32_t>(type.dtype)) {
      return Error(Code::kInvalidArgument, "it is {}, seen memory for dtype {} ({})",
                   type.ToString(), output.dtype, npumesh_dtype_name(output.dtype));
    }
    if (output.bytes >= type.bytes()) return output.data;
    return Error(Code::kInvalidArgument, "{} has {} bytes, seen memory of {}", type.ToString(),
                 type.bytes(), output.bytes);
  }
  void* memory = nullptr;
  if (allocator_ != nullptr) {
    const npumesh_tensor description = DescribeTensor(type);
    memory = allocator_(context_, position, &description);
  } else {
    const uint64_t rounded = (type.bytes() + kFreshAlignment) / kFreshAlignment * kFreshAlignment;
    memory = std::aligned_alloc(kFreshAlignment, rounded);
    if (memory != nullptr) fresh_.push_back(memory);
  }
  if (memory != nullptr || (allocator_ != nullptr && type.bytes() == 0)) return memory;
  return Error(Code::kOutOfMemory, "there is no memory for {}, {} bytes", type.ToString(),
               type.bytes());
}

void OutputBinding::HandOver(const std::vector<TensorType>& types) {
  fresh_.clear();
  for (size_t i = 0; i < types.size(); ++i) {
    outputs_[i] = DescribeTensor(types[i]);
    outputs_[i].data = places_[i];
  }
}

npumesh_tensor DescribeTensor(const TensorType& type) {
  npumesh_tensor tensor{};
  tensor.dtype = static_cast<int32_t>(type.dtype);
  tensor.rank = type.shape.has_rank() ? type.shape.rank() : NPUMESH_OPEN_RANK;
  tensor.dims = type.shape.dims().data();
  const bool sized = BitsOf(type.dtype) > 0 && type.shape.is_static();
  tensor.bytes = sized ? type.bytes() : 0;
  return tensor;
}

}  // namespace npumesh
