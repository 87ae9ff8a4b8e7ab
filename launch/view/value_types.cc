#include "launch/view/value_types.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/engine/analyse/model_inputs.h"
#include "graph/engine/analyse/partial_types.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

void Count(const TensorType& type, ValueTypes& types) {
  const std::vector<int64_t>& dims = type.shape.dims();
  const bool any = type.shape.has_rank() &&
                   std::any_of(dims.begin(), dims.end(), [](int64_t dim) { return dim >= 0; });
  if (type.dtype != DataType::kUndefined && type.shape.is_static()) {
    ++types.known;
  } else if (any || type.dtype != DataType::kUndefined) {
    ++types.partly;
  } else {
    ++types.unknown;
  }
}

}  // namespace

ValueTypes InferTypes(const OpRegistry& registry, GroupProvider* groups, Model& model) {
  ValueTypes types;
  const Result<std::vector<InputSpec>> inputs = InputsOf(model);
  const Result<std::vector<NodeId>> order = model.graph.StableOrder();
  if (!inputs.ok() || !order.ok()) return types;
  for (const InputSpec& input : *inputs) {
    types.open_inputs = types.open_inputs || !input.declared.shape.is_static();
  }
  const BoundGraph graph(model.graph, registry);
  const Result<PartialTypes> known =
      PartialTypes::Of(model, graph, *order, groups, PartialEffort::kThorough);
  if (!known.ok()) return types;
  types.contradiction = std::string(known->Contradictions().message());
  for (const NodeId id : *order) {
    const Node& node = model.graph.node(id);
    if (IsFurniture(node)) continue;
    for (size_t port = 0; port < node.output_descs.size(); ++port) {
      const TensorType& type = known->type({id, static_cast<int>(port)});
      types.values.push_back({fmt::format("{}:{}", node.name, port), type});
      Count(type, types);
    }
  }
  DescribePartly(*known, model.graph);
  return types;
}

std::string ToText(const ValueTypes& types) {
  std::string text = fmt::format("values ({}): {} known, {} in part, {} unknown\n",
                                 types.values.size(), types.known, types.partly, types.unknown);
  for (const ValueTypes::Line& value : types.values) {
    const bool nothing = value.type.dtype == DataType::kUndefined;
    text +=
        fmt::format("  {:<40} {}\n", Quotable(value.name), nothing ? "?" : value.type.ToString());
  }
  if (!types.contradiction.empty()) text += types.contradiction + "\n";
  return text;
}

}  // namespace npumesh
