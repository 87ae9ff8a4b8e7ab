#include "graph/aclnn/calls/plan.h"

#include <algorithm>
#include <cstring>

#include "graph/acl_model/device_turns.h"
#include "graph/acl_model/session_model.h"
#include "graph/ops/builtin_ops.h"
#include "graph/session/runnable.h"

namespace npumesh {
namespace {

constexpr uint64_t kAlign = 64;

}  // namespace

Result<std::unique_ptr<AclnnPlan>> AclnnPlan::Make(AclDevice& device, const AclnnFunction& function,
                                                   const std::vector<AclnnArgument>& arguments,
                                                   AclnnTensors tensors,
                                                   const std::vector<bool>& overlaps,
                                                   const std::shared_ptr<NodeWatch>& card) {
  std::unique_ptr<AclnnPlan> plan(new AclnnPlan);
  plan->function_ = &function;
  plan->device_ = &device;
  plan->tensors_ = std::move(tensors);
  plan->used_.resize(plan->tensors_.views.size());
  NPUMESH_ASSIGN_OR_RETURN(AclnnMeaning meaning, MeaningOf(AclnnFunctions(), function, arguments));
  meaning.model.name = function.name;
  const auto port_of = [&](size_t tensor, AclnnView view, bool aside) {
    Port port{tensor, std::move(view)};
    plan->used_[tensor] = port.view.type.shape.elements() > 0;
    if (aside || !port.view.packed()) port.in_workspace = plan->Reserve(port.view.type.bytes());
    port.scratch = plan->Reserve(port.view.scratch_bytes());
    return port;
  };
  for (const AclnnPlace place : meaning.inputs) {
    const size_t tensor = plan->tensors_.first[place.param] + place.element;
    plan->inputs_.push_back(port_of(tensor, plan->tensors_.views[tensor], false));
  }
  bool empty = true;
  for (const AclnnPlace place : meaning.outputs) {
    const size_t tensor = plan->tensors_.first[place.param] + place.element;
    const AclnnView& view = plan->tensors_.views[tensor];
    plan->outputs_.push_back(port_of(tensor, view.Written(), overlaps[tensor]));
    empty = empty && view.type.shape.elements() == 0;
    const AclnnParam& param = function.params[place.param];
    plan->outputs_.back().open = param.open;
    if (param.open && !view.packed()) {
      return Error(Code::kUnsupported, "{} has gaps, and a shape that only the run knows",
                   param.name);
    }
  }
  if (empty) return plan;
  ReadModel read;
  for (size_t i = 0; i < meaning.outputs.size(); ++i) {
    read.facts.output_names.push_back(function.params[meaning.outputs[i].param].name);
  }
  read.model = std::move(meaning.model);
  NPUMESH_ASSIGN_OR_RETURN(read.told, FactsOf(read.model, read.facts));
  if (card != nullptr) {
    NPUMESH_RETURN_IF_ERROR(CheckOnCard(read.model, BuiltinOps(), nullptr, *card));
  }
  NPUMESH_ASSIGN_OR_RETURN(plan->model_,
                           SessionModel::Create(device, TurnOf(device), std::move(read),
                                                {.operator_alone = true, .card = card}));
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
  const AclnnView& view = port.view;
  const auto bytes = BytesOf(view.type.dtype, static_cast<uint64_t>(view.offset)).value_or(0);
  return static_cast<std::byte*>(addresses[port.tensor]) + bytes;
}

// An open output has no gaps.
void AclnnPlan::Keep(const Port& port, const ModelBuffer& output, void* tensor) {
  if (port.in_workspace < 0) return;
  const TensorType type{port.view.type.dtype, Shape(output.dims)};
  if (type.bytes() > 0) std::memcpy(tensor, output.data, type.bytes());
}

Status AclnnPlan::Run(const std::vector<void*>& addresses, void* workspace, Shapes* shapes) {
  if (model_ == nullptr) return Status();
  const auto buffer_of = [&](const Port& port) {
    ModelBuffer buffer;
    buffer.data = AddressOf(port, addresses, workspace);
    buffer.bytes = port.view.type.bytes();
    buffer.dims = port.view.type.shape.dims();
    return buffer;
  };
  const auto scratch_of = [&](const Port& port) {
    return static_cast<std::byte*>(workspace) + port.scratch;
  };
  std::vector<ModelBuffer> inputs, outputs;
  for (const Port& port : inputs_) {
    inputs.push_back(buffer_of(port));
    if (port.in_workspace >= 0 && used_[port.tensor]) {
      Gather(port.view, addresses[port.tensor], inputs.back().data, scratch_of(port));
    }
  }
  for (const Port& port : outputs_) outputs.push_back(buffer_of(port));
  NPUMESH_RETURN_IF_ERROR(model_->Run(inputs, outputs, [](uint64_t) -> Result<void*> {
    return Error(Code::kInternal, "an output without memory");
  }));
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Port& port = outputs_[i];
    if (port.open) {
      Keep(port, outputs[i], addresses[port.tensor]);
      shapes->emplace(port.tensor, outputs[i].dims);
      continue;
    }
    if (port.in_workspace < 0 || !used_[port.tensor]) continue;
    Scatter(port.view, outputs[i].data, addresses[port.tensor], scratch_of(port));
  }
  return Status();
}

}  // namespace npumesh
