#include "graph/aclnn/calls/plan.h"

#include <algorithm>
#include <cstring>

#include "graph/acl_model/device_turns.h"
#include "graph/acl_model/session_model.h"
#include "graph/aclnn/calls/objects.h"

namespace npumesh {
namespace {

constexpr uint64_t kAlign = 64;

// Copies an array of elements from one view to another, of the same dimensions.
struct StridedCopy {
  const std::vector<int64_t>& dims;
  const std::vector<int64_t>& to_strides;
  const std::vector<int64_t>& from_strides;
  size_t element;

  void Run(std::byte* to, const std::byte* from, size_t axis = 0) const {
    if (axis == dims.size()) {
      std::memcpy(to, from, element);
      return;
    }
    const int64_t count = dims[axis];
    if (axis + 1 == dims.size() && to_strides[axis] == 1 && from_strides[axis] == 1) {
      std::memcpy(to, from, static_cast<size_t>(count) * element);
      return;
    }
    for (int64_t i = 0; i < count; ++i) {
      Run(to + i * to_strides[axis] * static_cast<int64_t>(element),
          from + i * from_strides[axis] * static_cast<int64_t>(element), axis + 1);
    }
  }
};

size_t ElementBytes(DataType dtype) {
  return static_cast<size_t>(BitsOf(dtype)) / 8;
}

void Gather(const AclnnView& view, const void* tensor, void* packed) {
  const size_t element = ElementBytes(view.type.dtype);
  const auto strides = PackedStrides(view.type.shape.dims());
  StridedCopy{view.type.shape.dims(), strides, view.strides, element}.Run(
      static_cast<std::byte*>(packed),
      static_cast<const std::byte*>(tensor) + view.offset * static_cast<int64_t>(element));
}

void Scatter(const AclnnView& view, const void* packed, void* tensor) {
  const size_t element = ElementBytes(view.type.dtype);
  const auto strides = PackedStrides(view.type.shape.dims());
  StridedCopy{view.type.shape.dims(), view.strides, strides, element}.Run(
      static_cast<std::byte*>(tensor) + view.offset * static_cast<int64_t>(element),
      static_cast<const std::byte*>(packed));
}

}  // namespace

bool AclnnView::packed() const {
  int64_t stride = 1;
  const auto& dims = type.shape.dims();
  for (size_t i = dims.size(); i-- > 0;) {
    if (dims[i] == 0) return true;
    if (dims[i] != 1 && strides[i] != stride) return false;
    stride *= dims[i];
  }
  return true;
}

uint64_t AclnnView::extent() const {
  int64_t last = offset;
  for (size_t i = 0; i < strides.size(); ++i) {
    if (type.shape.dims()[i] == 0) return 0;
    last += (type.shape.dims()[i] - 1) * strides[i];
  }
  return BytesOf(type.dtype, static_cast<uint64_t>(last + 1)).value_or(0);
}

Result<std::unique_ptr<AclnnPlan>> AclnnPlan::Make(AclDevice& device, const AclnnFunction& function,
                                                   const std::vector<AclnnArgument>& arguments,
                                                   AclnnTensors tensors,
                                                   const std::vector<bool>& overlaps) {
  std::unique_ptr<AclnnPlan> plan(new AclnnPlan);
  plan->function_ = &function;
  plan->device_ = &device;
  plan->tensors_ = std::move(tensors);
  plan->used_.resize(plan->tensors_.views.size());
  NPUMESH_ASSIGN_OR_RETURN(AclnnMeaning meaning, MeaningOf(AclnnFunctions(), function, arguments));
  meaning.model.name = function.name;
  const auto port_of = [&](AclnnPlace place, bool aside) {
    Port port;
    port.tensor = plan->tensors_.first[place.param] + place.element;
    const AclnnView& view = plan->tensors_.views[port.tensor];
    plan->used_[port.tensor] = view.type.shape.elements() > 0;
    if (aside || !view.packed()) port.in_workspace = plan->Reserve(view.type.bytes());
    return port;
  };
  for (const AclnnPlace place : meaning.inputs) {
    plan->inputs_.push_back(port_of(place, false));
  }
  bool empty = true;
  for (const AclnnPlace place : meaning.outputs) {
    const size_t tensor = plan->tensors_.first[place.param] + place.element;
    const bool read = std::any_of(plan->inputs_.begin(), plan->inputs_.end(),
                                  [&](const Port& input) { return input.tensor == tensor; });
    plan->outputs_.push_back(port_of(place, read || overlaps[tensor]));
    empty = empty && plan->tensors_.views[tensor].type.shape.elements() == 0;
  }
  if (empty) return plan;
  ReadModel read;
  for (size_t i = 0; i < meaning.outputs.size(); ++i) {
    read.facts.output_names.push_back(function.params[meaning.outputs[i].param].name);
  }
  read.model = std::move(meaning.model);
  NPUMESH_ASSIGN_OR_RETURN(read.told, FactsOf(read.model, read.facts));
  NPUMESH_ASSIGN_OR_RETURN(
      plan->model_,
      SessionModel::Create(device, TurnOf(device), std::move(read), {.operator_alone = true}));
  return plan;
}

int64_t AclnnPlan::Reserve(uint64_t bytes) {
  const auto place = static_cast<int64_t>(workspace_bytes_);
  workspace_bytes_ += (bytes + kAlign - 1) / kAlign * kAlign;
  return place;
}

void* AclnnPlan::AddressOf(const Port& port, const std::vector<void*>& addresses,
                           void* workspace) const {
  if (port.in_workspace >= 0) return static_cast<std::byte*>(workspace) + port.in_workspace;
  const AclnnView& view = tensors_.views[port.tensor];
  const auto bytes = BytesOf(view.type.dtype, static_cast<uint64_t>(view.offset)).value_or(0);
  return static_cast<std::byte*>(addresses[port.tensor]) + bytes;
}

Status AclnnPlan::Run(const std::vector<void*>& addresses, void* workspace) {
  if (model_ == nullptr) return Status();
  const auto buffer_of = [&](const Port& port) {
    const AclnnView& view = tensors_.views[port.tensor];
    ModelBuffer buffer;
    buffer.data = AddressOf(port, addresses, workspace);
    buffer.bytes = view.type.bytes();
    buffer.dims = view.type.shape.dims();
    return buffer;
  };
  std::vector<ModelBuffer> inputs, outputs;
  for (const Port& port : inputs_) {
    inputs.push_back(buffer_of(port));
    const AclnnView& view = tensors_.views[port.tensor];
    if (port.in_workspace >= 0 && used_[port.tensor]) {
      Gather(view, addresses[port.tensor], inputs.back().data);
    }
  }
  for (const Port& port : outputs_) outputs.push_back(buffer_of(port));
  NPUMESH_RETURN_IF_ERROR(model_->Run(inputs, outputs, [](uint64_t) -> Result<void*> {
    return Error(Code::kInternal, "an output without memory");
  }));
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Port& port = outputs_[i];
    if (port.in_workspace < 0 || !used_[port.tensor]) continue;
    Scatter(tensors_.views[port.tensor], outputs[i].data, addresses[port.tensor]);
  }
  return Status();
}

}  // namespace npumesh
