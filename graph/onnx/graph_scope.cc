#include "graph/onnx/graph_scope.h"

#include <algorithm>

#include "graph/onnx/mistakes.h"
#include "graph/onnx/node_form.h"
#include "graph/onnx/node_order.h"
#include "graph/onnx/op_table.h"
#include "graph/onnx/operand_ranks.h"
#include "graph/onnx/own_operator.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

// Functions that call each other deeper than this are taken for ones that call themselves.
constexpr int kDeepestCall = 32;
// So many calls are put in the place of nodes: few functions that call each other twice each are
// billions of nodes.
constexpr int kMostCalls = 1 << 16;

// Attributes of a function's node, with what the caller says in place of references, also in the
// graphs that they hold.
std::vector<OnnxAttribute> FilledAttributes(const std::vector<OnnxAttribute>& attributes,
                                            const OnnxNode& caller) {
  std::vector<OnnxAttribute> filled;
  for (const OnnxAttribute& attribute : attributes) {
    if (attribute.reference.empty()) {
      filled.push_back(attribute);
      if (attribute.graph == nullptr) continue;
      OnnxGraph graph = *attribute.graph;
      for (OnnxNode& node : graph.nodes) {
        node.attributes = FilledAttributes(node.attributes, caller);
      }
      filled.back().graph = std::make_shared<OnnxGraph>(std::move(graph));
    } else if (const OnnxAttribute* const given = caller.Find(attribute.reference)) {
      filled.push_back(*given);
      filled.back().name = attribute.name;
    }
  }
  return filled;
}

// A node of a function's body, as `caller` calls it.
OnnxNode NodeCalledBy(const OnnxNode& node, const OnnxNode& caller) {
  OnnxNode called = node;
  called.attributes = FilledAttributes(node.attributes, caller);
  const std::string prefix = caller.name.empty() ? caller.op : caller.name;
  called.name = prefix + "/" + (node.name.empty() ? node.op : node.name);
  return called;
}

}  // namespace

GraphScope::GraphScope(const OnnxModel& model, const OpRegistry& registry, GraphScope* outer,
                       std::string name)
    : model_(model),
      registry_(registry),
      outer_(outer),
      host_(nullptr),
      own_(std::make_unique<GraphEmitter>(std::move(name), registry)),
      emitter_(own_.get()),
      opsets_(outer == nullptr ? &model.opsets : outer->opsets_),
      depth_(outer == nullptr ? 0 : outer->depth_ + 1),
      calls_(outer == nullptr ? std::make_shared<int>(kMostCalls) : outer->calls_) {}

GraphScope::GraphScope(GraphScope& host, bool sees_host)
    : model_(host.model_),
      registry_(host.registry_),
      outer_(sees_host ? &host : nullptr),
      host_(&host),
      emitter_(host.emitter_),
      opsets_(host.opsets_),
      depth_(host.depth_ + 1),
      calls_(host.calls_) {}

std::optional<OnnxValue> GraphScope::Find(const std::string& name) {
  const auto found = values_.find(name);
  if (found != values_.end()) return found->second;
  const auto borrowed = borrowed_.find(name);
  if (borrowed != borrowed_.end()) return borrowed->second;
  if (outer_ == nullptr) return std::nullopt;
  std::optional<OnnxValue> outer = outer_->Find(name);
  if (!outer || outer_->emitter_ == emitter_) return outer;
  for (Value& item : outer->items) item = CaptureOf(item);
  borrowed_[name] = *outer;
  return outer;
}

Value GraphScope::CaptureOf(Value outer) {
  if (host_ != nullptr) return host_->CaptureOf(outer);
  // Small constants are repeated, because bodies ask for their values.
  if (const Tensor* const constant = Around().constant(outer)) return emitter_->Const(*constant);
  return CaptureInput(outer);
}

Value GraphScope::CaptureInput(Value outer) {
  if (host_ != nullptr) return host_->CaptureInput(outer);
  const auto found = std::find_if(captures_.begin(), captures_.end(),
                                  [&](const Capture& capture) { return capture.outer == outer; });
  if (found != captures_.end()) return found->inner;
  const Value inner =
      emitter_->Data(fmt::format("captured_{}", captures_.size()), Around().type(outer));
  captures_.push_back({outer, inner});
  return inner;
}

std::vector<Status> GraphScope::Mistakes(const OnnxGraph& graph) {
  TakeHints(graph);
  for (const auto& [name, tensor] : graph.initialisers) {
    if (!emitter_->ok()) break;
    if (values_.count(name) == 0) Define(name, OnnxValue::Of(emitter_->Const(tensor, name)));
  }
  std::vector<Status> mistakes;
  if (!emitter_->ok()) return {emitter_->failure()};
  for (const OnnxNode& node : graph.nodes) TryNode(node, mistakes);
  return mistakes;
}

void GraphScope::Walk(const OnnxGraph& graph) {
  emitter_->Fail(OneOf(Mistakes(graph)));
}

bool GraphScope::IsBroken(const std::string& name) const {
  if (values_.count(name) > 0) return false;
  return broken_.count(name) > 0 || (outer_ != nullptr && outer_->IsBroken(name));
}

bool GraphScope::ReadsBroken(const OnnxNode& node) const {
  bool any = false;
  for (const GraphScope* scope = this; scope != nullptr; scope = scope->outer_) {
    any |= !scope->broken_.empty();
  }
  return any && std::ranges::any_of(NamesReadBy(node),
                                    [this](const std::string& name) { return IsBroken(name); });
}

void GraphScope::TryNode(const OnnxNode& node, std::vector<Status>& mistakes) {
  const bool broken = ReadsBroken(node);
  if (!broken) WalkNode(node);
  if (!broken && emitter_->ok()) return;
  if (!broken) mistakes.push_back(emitter_->TakeFailure());
  broken_.insert(node.outputs.begin(), node.outputs.end());
}

std::vector<OnnxValue> GraphScope::OutputsOf(const OnnxGraph& graph) {
  std::vector<OnnxValue> outputs;
  for (const OnnxValueInfo& info : graph.outputs) {
    std::optional<OnnxValue> value = Find(info.name);
    if (!value && IsBroken(info.name)) {
      emitter_->Fail(Unsaid());
      return {};
    }
    if (!value) {
      emitter_->Fail(Error(Code::kCorrupt, "graph \"{}\": no node makes its output \"{}\"",
                           Quotable(graph.name), Quotable(info.name)));
      return {};
    }
    outputs.push_back(*std::move(value));
  }
  return outputs;
}

std::string GraphScope::GraphName(const std::string& below) {
  if (host_ != nullptr) return host_->GraphName(below);
  return fmt::format("{}/{}_{}", emitter_->name(), below, graphs_++);
}

void GraphScope::TakeHints(const OnnxGraph& graph) {
  for (const OnnxValueInfo& info : graph.values) hints_[info.name] = &info.type;
  for (const OnnxValueInfo& info : graph.outputs) hints_[info.name] = &info.type;
}

void GraphScope::HintType(const std::string& name) {
  const auto hint = hints_.find(name);
  const auto value = values_.find(name);
  if (hint == hints_.end() || value == values_.end()) return;
  if (hint->second->kind != OnnxKind::kTensor || value->second.items.size() != 1) return;
  emitter_->Hint(value->second.items[0], hint->second->tensor);
}

std::vector<std::optional<OnnxValue>> GraphScope::OperandsOf(const OnnxNode& node) {
  std::vector<std::optional<OnnxValue>> operands;
  for (const std::string& name : node.inputs) {
    operands.push_back(name.empty() ? std::nullopt : Find(name));
    if (name.empty() || operands.back()) continue;
    emitter_->Fail(
        Error(Code::kCorrupt, "{}: reads \"{}\", which no node makes", node.Who(), Quotable(name)));
  }
  return operands;
}

const OnnxFunction* GraphScope::FunctionOf(const OnnxNode& node) const {
  const auto found = std::find_if(
      model_.functions.begin(), model_.functions.end(), [&](const OnnxFunction& function) {
        return function.name == node.op && function.domain == node.domain;
      });
  return found == model_.functions.end() ? nullptr : &*found;
}

std::vector<DataType> GraphScope::DtypesOf(
    const std::vector<std::optional<OnnxValue>>& operands) const {
  std::vector<DataType> dtypes;
  for (const std::optional<OnnxValue>& operand : operands) {
    const bool tensor = operand && operand->kind == OnnxKind::kTensor && !operand->items.empty();
    dtypes.push_back(tensor ? emitter_->type(operand->items[0]).dtype : DataType::kUndefined);
  }
  return dtypes;
}

void GraphScope::WalkNode(const OnnxNode& node) {
  std::vector<std::optional<OnnxValue>> operands = OperandsOf(node);
  if (!emitter_->ok()) return;
  if (const OnnxFunction* const function = FunctionOf(node)) {
    return Call(*function, node, std::move(operands));
  }
  const auto opset = opsets_->find(node.domain);
  const int64_t version = opset == opsets_->end() ? 0 : opset->second;
  const OnnxOp* const op = FindOnnxOp(node.domain, node.op, version);
  const Operator* const own = op == nullptr ? OwnOperatorOf(node, registry_) : nullptr;
  if (op == nullptr && own == nullptr) return emitter_->Fail(Unsaid());  // import.cc says it
  if (op != nullptr) {
    const Status fits = CheckForm(node, op->form, version, DtypesOf(operands));
    if (!fits.ok()) return emitter_->Fail(fits.WithContext(node.Who()));
  }
  Lowering lowering(node, version, *emitter_, std::move(operands), this);
  if (own != nullptr) {
    LowerOwnOperator(*own, lowering);
  } else {
    HintRanks(lowering);
    op->lower(lowering);
  }
  if (!emitter_->ok()) return emitter_->AddContext(node.Who());
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty() || !lowering.results()[i]) continue;
    DefineOutput(node, node.outputs[i], *lowering.results()[i]);
    HintType(node.outputs[i]);
  }
}

void GraphScope::DefineOutput(const OnnxNode& node, const std::string& name, OnnxValue value) {
  if (values_.emplace(name, std::move(value)).second) return;
  emitter_->Fail(
      Error(Code::kCorrupt, "{}: makes \"{}\", which was made before", node.Who(), Quotable(name)));
}

void GraphScope::Call(const OnnxFunction& function, const OnnxNode& node,
                      std::vector<std::optional<OnnxValue>> operands) {
  if (*calls_ == 0) return;  // refused already
  if (depth_ > kDeepestCall) {
    *calls_ = 0;
    emitter_->Fail(Error(Code::kUnsupported, "{}: functions call each other more than {} deep",
                         node.Who(), kDeepestCall));
    return;
  }
  if (--*calls_ == 0) {
    emitter_->Fail(Error(Code::kUnsupported, "{}: functions are called more than {} times",
                         node.Who(), kMostCalls));
    return;
  }
  GraphScope body(*this, false);
  body.set_opsets(function.opsets);
  for (size_t i = 0; i < function.inputs.size() && i < operands.size(); ++i) {
    if (operands[i]) body.Define(function.inputs[i], *operands[i]);
  }
  std::vector<Status> mistakes;
  for (const OnnxNode& inner : function.nodes) {
    OnnxNode filled = NodeCalledBy(inner, node);
    // An operand of the function that the caller left out is left out inside, too.
    for (std::string& name : filled.inputs) {
      const auto given = std::find(function.inputs.begin(), function.inputs.end(), name);
      if (given != function.inputs.end() && !body.Find(name)) name.clear();
    }
    body.TryNode(filled, mistakes);
  }
  emitter_->Fail(OneOf(mistakes));
  for (size_t i = 0; i < function.outputs.size() && i < node.outputs.size(); ++i) {
    const std::optional<OnnxValue> value = body.Find(function.outputs[i]);
    if (value && !node.outputs[i].empty()) DefineOutput(node, node.outputs[i], *value);
  }
}

}  // namespace npumesh
