#include "graph/compare/replay/input_cause.h"

#include <algorithm>
#include <array>

#include "graph/compare/measures/shards.h"
#include "graph/compare/replay/replay.h"
#include "graph/compare/sources/input_numbers.h"
#include "graph/compare/sources/weight_behind.h"
#include "graph/passes/analysis/bound_graph.h"

namespace npumesh {
namespace {

using Cause = InputCause::Kind;

// The axis along which one shape is a piece of the other; -1: none.
int ShardAxis(const TensorRow& tensor, int my_ranks, int golden_ranks) {
  const Shape& mine = tensor.mine.shape;
  const Shape& golden = tensor.golden.shape;
  if (tensor.mine.dtype != tensor.golden.dtype || mine == golden) return -1;
  if (my_ranks > golden_ranks) return PieceAxis(mine, golden, my_ranks / golden_ranks);
  return my_ranks < golden_ranks ? PieceAxis(golden, mine, golden_ranks / my_ranks) : -1;
}

// Through what has no step: views.
Value Producer(const Graph& graph, const OpRegistry& registry, Value value) {
  for (;;) {
    const Node& node = graph.node(value.node);
    const Operator* const op = registry.Find(node.type);
    const bool passes = op != nullptr && op->view && !node.inputs.empty() && node.inputs[0];
    if (!passes) return value;
    value = *node.inputs[0];
  }
}

// The value that a dumped input of a node is; nullopt: the graph lists fewer.
std::optional<Value> ValueOf(const Node& node, const OpRegistry& registry, int number) {
  const std::vector<size_t> fed = DumpedInputs(node, registry);
  const auto place = static_cast<size_t>(number);
  return place < fed.size() ? node.inputs[fed[place]] : std::nullopt;
}

void Trace(const Graph& graph, const OpRegistry& registry, const Comparison& comparison,
           const Node& node, InputCause& cause) {
  const std::optional<Value> value = ValueOf(node, registry, cause.tensor.index);
  if (!value) return;
  const Value producer = Producer(graph, registry, *value);
  if (const Node* weight = WeightBehind(graph, ConstantNodes(graph, registry), producer)) {
    cause.kind = Cause::kWeight;
    cause.name = weight->name;
    cause.file = WeightFileName(*weight);
    return;
  }
  const Node& maker = graph.node(producer.node);
  cause.name = maker.name;
  if (IsInputNode(maker)) {
    cause.kind = Cause::kGraphInput;
    return;
  }
  const std::string key = OperatorKey(maker.name);
  const bool dumped =
      std::any_of(comparison.rows.begin(), comparison.rows.end(),
                  [&](const OperatorRow& row) { return row.key == key && !row.differs(); });
  cause.kind = dumped ? Cause::kOverwritten : Cause::kNotDumped;
}

std::string Amount(const TensorRow& tensor) {
  if (!tensor.distance.reason.empty()) return "differs: " + tensor.distance.reason;
  return fmt::format("differs in {} of {} elements, first {}", tensor.distance.differing,
                     tensor.mine.shape.elements(),
                     PositionText(std::max<int64_t>(tensor.distance.first, 0), tensor.mine.shape));
}

}  // namespace

std::string_view Name(InputCause::Kind kind) {
  constexpr std::array<std::string_view, 6> kNames = {"weight",      "graph input", "not dumped",
                                                      "overwritten", "sharded",     "unknown"};
  return kNames[static_cast<size_t>(kind)];
}

std::optional<InputCause> FindInputCause(const Comparison& comparison, const OperatorRow& row,
                                         const Graph* graph, const OpRegistry& registry,
                                         int my_ranks, int golden_ranks) {
  InputCause cause;
  for (const TensorRow& tensor : row.tensors) {
    cause.axis = ShardAxis(tensor, my_ranks, golden_ranks);
    if (cause.axis < 0) continue;
    cause.kind = Cause::kSharded;
    cause.tensor = tensor;
    return cause;
  }
  const auto input = std::find_if(row.tensors.begin(), row.tensors.end(), [](const auto& tensor) {
    return tensor.side == Side::kInput && !tensor.distance.same();
  });
  if (input == row.tensors.end()) return std::nullopt;
  cause.tensor = *input;
  const Node* const node = graph != nullptr ? FindByKey(*graph, row.key) : nullptr;
  if (node != nullptr) Trace(*graph, registry, comparison, *node, cause);
  return cause;
}

std::string ToText(const InputCause& cause, int my_ranks, int golden_ranks) {
  const TensorRow& tensor = cause.tensor;
  switch (cause.kind) {
    case Cause::kWeight:
      return fmt::format("its weight {}{} {}", cause.name,
                         cause.file.empty() ? "" : fmt::format(" ({})", cause.file),
                         Amount(tensor));
    case Cause::kGraphInput:
      return fmt::format("the graph's input {} {}", cause.name, Amount(tensor));
    case Cause::kNotDumped:
      return fmt::format("its input {} {}; {}, which makes it, is not in both dumps", tensor.index,
                         Amount(tensor), cause.name);
    case Cause::kOverwritten:
      return fmt::format(
          "its input {} {}, although {}, which makes it, left the same: memory was "
          "overwritten in between",
          tensor.index, Amount(tensor), cause.name);
    case Cause::kSharded:
      return fmt::format(
          "its {} {} is {} on each of {} ranks and {} on each of {}: sharded along "
          "axis {}; use npumesh run --golden, which puts the pieces together",
          Name(tensor.side), tensor.index, tensor.mine.ToString(), my_ranks,
          tensor.golden.ToString(), golden_ranks, cause.axis);
    case Cause::kUnknown:
      break;
  }
  return fmt::format("its input {} {}, although no dumped operator before it does", tensor.index,
                     Amount(tensor));
}

}  // namespace npumesh
