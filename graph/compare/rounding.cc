#include "graph/compare/rounding.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "graph/passes/bound_graph.h"

namespace npumesh {
namespace {

TensorType TypeOf(const TensorDesc& desc) {
  return {desc.dtype, desc.shape.value_or(Shape::UnknownRank())};
}

std::vector<TensorType> TypesOf(const std::vector<TensorDesc>& descs) {
  std::vector<TensorType> types;
  for (const TensorDesc& desc : descs) types.push_back(TypeOf(desc));
  return types;
}

bool IsReal(DataType dtype) {
  return IsFloating(dtype) || dtype == DataType::kFloat8E5M2 || dtype == DataType::kFloat8E4M3Fn;
}

// 0 when it is not known.
double ElementsOf(const TensorType& type) {
  return type.shape.is_static() ? static_cast<double>(type.shape.elements()) : 0;
}

bool AnyReal(const std::vector<TensorType>& types) {
  return std::any_of(types.begin(), types.end(),
                     [](const TensorType& type) { return IsReal(type.dtype); });
}

// Terms of the sums behind one element of `output`, by sizes.
double SumLength(const std::vector<TensorType>& inputs, const TensorType& output) {
  std::vector<double> sizes = {0, 0};
  for (const TensorType& input : inputs) sizes.push_back(ElementsOf(input));
  std::sort(sizes.rbegin(), sizes.rend());
  const double size = ElementsOf(output);
  if (size == 0) return 1;
  return std::max({1.0, sizes[0] / size, std::sqrt(sizes[0] * sizes[1] / size)});
}

double Square(double x) {
  return x * x;
}

}  // namespace

double UnitRoundoff(DataType dtype) {
  switch (dtype) {
    case DataType::kDouble:
      return 0x1p-53;
    case DataType::kFloat:
      return 0x1p-24;
    case DataType::kFloat16:
      return 0x1p-11;
    case DataType::kBfloat16:
    case DataType::kInt8:
      return 0x1p-8;
    case DataType::kFloat8E4M3Fn:
    case DataType::kInt4:
      return 0x1p-4;
    case DataType::kFloat8E5M2:
      return 0x1p-3;
    default:
      return 0;
  }
}

// One graph, producers before readers; subgraphs when a node runs them.
class RoundingEstimate::Walk {
 public:
  Walk(const RoundingEstimate& estimate, const Model& model, const OpRegistry& registry, int ranks)
      : estimate_(estimate), model_(model), registry_(registry), ranks_(ranks) {}

  Result<std::vector<RoundingPath>> OutputsOf(const Graph& graph) {
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.StableOrder());
    std::vector<RoundingPath> roundings(graph.nodes().size());
    for (const NodeId id : order) {
      NPUMESH_ASSIGN_OR_RETURN(roundings[static_cast<size_t>(id)], Behind(graph, id, roundings));
    }
    std::vector<RoundingPath> outputs;
    if (graph.NetOutput() == kNoNode) return outputs;
    for (const auto& value : graph.node(graph.NetOutput()).inputs) {
      outputs.push_back(value ? roundings[static_cast<size_t>(value->node)] : RoundingPath());
    }
    return outputs;
  }

 private:
  Result<RoundingPath> Behind(const Graph& graph, NodeId id,
                              const std::vector<RoundingPath>& roundings) {
    const Node& node = graph.node(id);
    RoundingPath most;
    for (const auto& value : node.inputs) {
      if (!value) continue;
      const RoundingPath& before = roundings[static_cast<size_t>(value->node)];
      if (before.variance > most.variance) most = before;
    }
    for (const std::string& name : node.subgraphs) {
      NPUMESH_RETURN_IF_ERROR(AddSubgraph(name, &most));
    }
    const Operator* op = registry_.Find(node.type);
    if (op != nullptr && !op->view && !IsFurniture(node)) AddOperator(node, *op, &most);
    return most;
  }

  // Graphs that call each other in a circle are refused elsewhere; here they end.
  Status AddSubgraph(const std::string& name, RoundingPath* rounding) {
    const Graph* graph = model_.FindSubgraph(name);
    if (graph == nullptr || !entered_.insert(name).second) return Status();
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<RoundingPath> outputs, OutputsOf(*graph));
    entered_.erase(name);
    const auto most = std::max_element(
        outputs.begin(), outputs.end(),
        [](const RoundingPath& x, const RoundingPath& y) { return x.variance < y.variance; });
    if (most != outputs.end()) Append(*most, rounding);
    return Status();
  }

  void AddOperator(const Node& node, const Operator& op, RoundingPath* rounding) const {
    const auto types = estimate_.types_.find(node.name);
    if (types == estimate_.types_.end() || !AnyReal(types->second.inputs)) {
      return AddConversion(types == estimate_.types_.end() ? nullptr : &types->second, rounding);
    }
    RoundingPath own;
    for (const TensorType& output : types->second.outputs) {
      const RoundingPath of_output = OfOutput(types->second.inputs, output, op);
      if (of_output.variance > own.variance) own = of_output;
    }
    Append(own, rounding);
  }

  // Integers become real numbers: a dequantisation, or a cast.
  static void AddConversion(const Types* types, RoundingPath* rounding) {
    if (types == nullptr || types->outputs.empty() || !IsReal(types->outputs[0].dtype)) return;
    const DataType dtype = types->outputs[0].dtype;
    Append({Square(UnitRoundoff(dtype)), 1, 1, dtype}, rounding);
  }

  RoundingPath OfOutput(const std::vector<TensorType>& inputs, const TensorType& output,
                        const Operator& op) const {
    const double kept = UnitRoundoff(output.dtype);
    if (kept == 0) return {};
    const double sum = op.elementwise ? 1 : SumLength(inputs, output);
    const DataType accumulator =
        output.dtype == DataType::kDouble ? DataType::kDouble : DataType::kFloat;
    // Partial results of ranks are added in the dtype that they travel in.
    const double roundings = op.collective ? ranks_ : 1;
    const double of_sum = sum > 1 ? sum * Square(UnitRoundoff(accumulator)) : 0;
    return {roundings * Square(kept) + of_sum, 1, sum, output.dtype};
  }

  static void Append(const RoundingPath& behind, RoundingPath* rounding) {
    rounding->variance += behind.variance;
    rounding->operators += behind.operators;
    rounding->longest_sum = std::max(rounding->longest_sum, behind.longest_sum);
    if (UnitRoundoff(behind.coarsest) > UnitRoundoff(rounding->coarsest)) {
      rounding->coarsest = behind.coarsest;
    }
  }

  const RoundingEstimate& estimate_;
  const Model& model_;
  const OpRegistry& registry_;
  int ranks_;
  std::set<std::string> entered_;
};

void RoundingEstimate::Note(const Model& typed) {
  for (const Node& node : typed.graph.nodes()) {
    if (node.removed) continue;
    types_.insert_or_assign(node.name,
                            Types{TypesOf(node.input_descs), TypesOf(node.output_descs)});
  }
}

Result<std::vector<RoundingPath>> RoundingEstimate::OutputsOf(const Model& model,
                                                              const OpRegistry& registry,
                                                              int ranks) const {
  return Walk(*this, model, registry, ranks).OutputsOf(model.graph);
}

}  // namespace npumesh
