#include "graph/passes/fusion/fusion.h"

#include <algorithm>

#include "graph/ops/toolbox/values/cast.h"
#include "graph/passes/fusion/fusion_view.h"

namespace npumesh {
namespace {

bool Inside(NodeId id, const std::vector<NodeId>& nodes) {
  return std::find(nodes.begin(), nodes.end(), id) != nodes.end();
}

}  // namespace

FusionView::FusionView(const FusionInput& input) : input_(input) {
  const size_t nodes = input.graph.graph().nodes().size();
  position_.assign(nodes, -1);
  readers_.resize(nodes);
  ordered_.assign(nodes, false);
  taken_.assign(nodes, false);
  int next = 0;
  for (const NodeId id : input.order) {
    position_[static_cast<size_t>(id)] = next++;
    for (const std::optional<Value>& value : node(id).inputs) {
      if (value) readers_[static_cast<size_t>(value->node)].push_back(id);
    }
    for (const NodeId before : node(id).controls) {
      ordered_[static_cast<size_t>(before)] = ordered_[static_cast<size_t>(id)] = true;
    }
  }
}

Result<Convolution> FusionView::ConvolutionOf(NodeId id) const {
  const Convolution* const blocked =
      input_.blocked_convolution != nullptr ? input_.blocked_convolution(id) : nullptr;
  if (blocked != nullptr) return *blocked;
  return PlanImageConvolution(PlainContext(id));
}

std::vector<std::optional<Value>> FusionView::SlotValues(NodeId id) const {
  std::vector<std::optional<Value>> values;
  for (int slot = 0; slot < context(id).slots(); ++slot) values.push_back(SlotValue(id, slot));
  return values;
}

bool FusionView::Free(NodeId id) const {
  if (id == kNoNode || position(id) < 0 || taken_[static_cast<size_t>(id)]) return false;
  return input_.graph.op(id) != nullptr && !input_.known({id, 0});
}

bool FusionView::Is(NodeId id, std::initializer_list<std::string_view> types) const {
  return Free(id) && std::find(types.begin(), types.end(), node(id).type) != types.end();
}

NodeId FusionView::Producer(NodeId id, int slot) const {
  const NodeId maker = Maker(id, slot);
  return maker != kNoNode && !op(maker).view ? maker : kNoNode;
}

NodeId FusionView::Maker(NodeId id, int slot) const {
  const std::optional<Value> value = SlotValue(id, slot);
  return value && value->port == 0 && Free(value->node) ? value->node : kNoNode;
}

NodeId FusionView::OnlyReader(NodeId id) const {
  const std::vector<NodeId>& readers = readers_[static_cast<size_t>(id)];
  if (readers.empty() || !Free(readers[0])) return kNoNode;
  const bool alone =
      std::all_of(readers.begin(), readers.end(), [&](NodeId r) { return r == readers[0]; });
  return alone ? readers[0] : kNoNode;
}

int FusionView::OtherSlot(NodeId id, NodeId producer) const {
  const bool first = Producer(id, 0) == producer;
  const bool second = Producer(id, 1) == producer;
  if (first == second) return -1;
  return first ? 1 : 0;
}

std::optional<double> FusionView::Scalar(NodeId id, int slot) const {
  const Tensor* constant = context(id).value(slot);
  if (constant == nullptr || constant->type().shape.elements() != 1) return std::nullopt;
  const ConvertFn convert = FindConvert(constant->dtype(), DataType::kDouble);
  if (convert == nullptr) return std::nullopt;
  double value = 0;
  convert(constant->data(), &value, 1);
  return value;
}

bool FusionView::Reads(NodeId reader, Value value) const {
  const std::vector<std::optional<Value>>& inputs = node(reader).inputs;
  return std::find(inputs.begin(), inputs.end(), value) != inputs.end();
}

bool FusionView::IsRead(Value value) const {
  const std::vector<NodeId>& readers = readers_[static_cast<size_t>(value.node)];
  return std::any_of(readers.begin(), readers.end(), [&](NodeId r) { return Reads(r, value); });
}

bool FusionView::IsReadOutside(Value value, const std::vector<NodeId>& nodes) const {
  const std::vector<NodeId>& readers = readers_[static_cast<size_t>(value.node)];
  return std::any_of(readers.begin(), readers.end(), [&](NodeId reader) {
    if (!Reads(reader, value)) return false;
    return !Inside(reader, nodes) || (op(reader).view && IsReadOutside({reader, 0}, nodes));
  });
}

// Views do no work: what counts is where their readers stand. The end of the graph reads last.
bool FusionView::IsReadUntil(Value value, const std::vector<NodeId>& nodes, int place) const {
  const std::vector<NodeId>& readers = readers_[static_cast<size_t>(value.node)];
  return std::any_of(readers.begin(), readers.end(), [&](NodeId reader) {
    if (!Reads(reader, value) || input_.graph.op(reader) == nullptr) return false;
    const bool view = op(reader).view && !ordered_[static_cast<size_t>(reader)];
    if (view && SlotValue(reader, 0) == value) return IsReadUntil({reader, 0}, nodes, place);
    return !Inside(reader, nodes) && position(reader) <= place;
  });
}

bool FusionView::IsComputedBy(const std::vector<NodeId>& nodes, Value value) const {
  for (std::optional<Value> at = value; at; at = input_.graph.StorageSource(*at)) {
    if (Inside(at->node, nodes)) return true;
  }
  return false;
}

bool FusionView::OnlyReadInside(NodeId id, const std::vector<NodeId>& nodes) const {
  const std::vector<NodeId>& readers = readers_[static_cast<size_t>(id)];
  return std::all_of(readers.begin(), readers.end(), [&](NodeId r) { return Inside(r, nodes); });
}

bool FusionView::StaysWhole(Value value, int first, int last) const {
  const Value root = input_.graph.StorageRoot(value);
  for (const InPlaceWrite& write : input_.graph.writes()) {
    const int at = position(write.node);
    if (at > first && at < last && input_.graph.StorageRoot(write.target) == root) return false;
  }
  return true;
}

std::string_view FusionView::WhyNotPartOf(const std::vector<NodeId>& nodes, NodeId id, int first,
                                          int last) const {
  const Operator& known = op(id);
  const bool inside = id != nodes.back();
  if (!known.pure || known.collective || known.side_effect || !known.in_place.empty()) {
    return "one of its operators does more than to compute its output";
  }
  if (!inside && known.view) return "it ends with a view";
  if (!Free(id)) return "another step has one of its operators";
  // A node alone keeps its place.
  if (nodes.size() > 1 && ordered_[static_cast<size_t>(id)]) {
    return "a control edge holds one of its operators";
  }
  for (const std::optional<Value>& value : SlotValues(id)) {
    if (value && !Inside(value->node, nodes) && !StaysWhole(*value, first, last)) {
      return "what it reads is overwritten before its end";
    }
  }
  return "";
}

std::string_view FusionView::WhyNotGive(const std::vector<NodeId>& nodes, NodeId id,
                                        const std::vector<Value>& outputs) const {
  const bool last = id == nodes.back();
  if (outputs.empty()) {
    for (int port = 1; port < context(id).outputs(); ++port) {
      if (IsRead({id, port})) return "one of its operators has several outputs";
    }
    return last || OnlyReadInside(id, nodes) ? "" : "others read what lies between";
  }
  // Who reads a view inside reads what it is a view of.
  if (op(id).view) return "";
  for (int port = 0; port < context(id).outputs(); ++port) {
    const Value value = {id, port};
    const bool given = std::find(outputs.begin(), outputs.end(), value) != outputs.end();
    if (!given && IsReadOutside(value, nodes)) return "others read what lies between";
    if (given && IsReadUntil(value, nodes, position(nodes.back()))) {
      return "others read what it gives before its end";
    }
  }
  return "";
}

std::string_view FusionView::WhyNotFuse(std::vector<NodeId>& nodes,
                                        const std::vector<std::optional<Value>>& inputs,
                                        const std::vector<Value>& outputs) const {
  for (const std::optional<Value>& input : inputs) {
    if (input && IsComputedBy(nodes, *input)) return "it computes what the step would read";
  }
  const auto before = [this](NodeId a, NodeId b) { return position(a) < position(b); };
  std::sort(nodes.begin(), nodes.end(), before);
  const int first = position(nodes.front());
  const int last = position(nodes.back());
  for (const NodeId id : nodes) {
    std::string_view why = WhyNotPartOf(nodes, id, first, last);
    if (why.empty()) why = WhyNotGive(nodes, id, outputs);
    if (!why.empty()) return why;
  }
  return "";
}

void FusionView::Take(FusedStep step) {
  if (step.outputs.empty()) step.outputs = {{step.nodes.back(), 0}};
  for (const NodeId id : step.nodes) {
    taken_[static_cast<size_t>(id)] = true;
    if (op(id).view) continue;
    if (!step.type.empty()) step.type += '+';
    step.type += node(id).type;
  }
  found_.steps.push_back(std::move(step));
}

Fusions Fuse(const FusionInput& input, const std::function<bool(std::string_view pass)>& on) {
  FusionView view(input);
  const auto run = [&](std::string_view pass, void (*fuse)(FusionView&)) {
    if (on != nullptr && on(pass)) fuse(view);
  };
  run(kAttentionFusionPass, FuseAttention);
  run(kRotaryFusionPass, FuseRotary);
  const auto run_norms = [&run] {
    run(kLayerNormFusionPass, FuseLayerNorm);
    run(kRmsNormFusionPass, FuseRmsNorm);
  };
  // A norm that is written out is a part of a larger static kernel.
  if (input.static_kernels == nullptr) run_norms();
  run(kMatMulFusionPass, FuseMatMul);
  run(kConvolutionFusionPass, FuseConvolution);
  if (input.static_kernels != nullptr) {
    FuseStatic(view, *input.static_kernels);
    run_norms();
  }
  run(kElementwiseFusionPass, FuseElementwise);
  return view.TakeFusions();
}

}  // namespace npumesh
