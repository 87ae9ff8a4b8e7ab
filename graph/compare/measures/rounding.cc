#include "graph/compare/measures/rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "graph/compare/measures/elements.h"
#include "graph/compare/sources/tensor_source.h"
#include "graph/passes/analysis/bound_graph.h"

namespace npumesh {
namespace {

// What may be large without being an outlier, in lower quartiles of the magnitudes.
constexpr double kOutlier = 128;
constexpr size_t kSamples = 65'536;

double SmallestOf(DataType dtype) {
  switch (dtype) {
    case DataType::kDouble:
      return std::numeric_limits<double>::denorm_min();
    case DataType::kFloat16:
      return 0x1p-24;
    default:
      return std::numeric_limits<float>::denorm_min();
  }
}

// The lower quartile of some magnitudes that are not zero; 0 when there are none.
double LowerQuartile(const std::vector<double>& magnitudes) {
  std::vector<double> samples;
  const size_t stride = magnitudes.size() / kSamples + 1;
  for (size_t i = 0; i < magnitudes.size(); i += stride) {
    if (magnitudes[i] > 0) samples.push_back(magnitudes[i]);
  }
  if (samples.empty()) return 0;
  const auto quarter = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 4);
  std::nth_element(samples.begin(), quarter, samples.end());
  return *quarter;
}

TensorType TypeOf(const TensorDesc& desc) {
  return {desc.dtype, desc.shape.value_or(Shape::UnknownRank())};
}

std::vector<TensorType> TypesOf(const std::vector<TensorDesc>& descs) {
  std::vector<TensorType> types;
  for (const TensorDesc& desc : descs) types.push_back(TypeOf(desc));
  return types;
}

bool MayRound(DataType dtype) {
  return IsFloating(dtype) || dtype == DataType::kFloat8E5M2 || dtype == DataType::kFloat8E4M3Fn;
}

// 0 when it is not known.
double CountOf(const TensorType& type) {
  return type.shape.is_static() ? static_cast<double>(type.shape.elements()) : 0;
}

bool AnyReal(const std::vector<TensorType>& types) {
  return std::any_of(types.begin(), types.end(),
                     [](const TensorType& type) { return MayRound(type.dtype); });
}

// Terms of the sums behind one element of `output`, by sizes.
double SumLength(const std::vector<TensorType>& inputs, const TensorType& output) {
  std::vector<double> sizes = {0, 0};
  for (const TensorType& input : inputs) sizes.push_back(CountOf(input));
  std::sort(sizes.rbegin(), sizes.rend());
  const double size = CountOf(output);
  if (size == 0) return 1;
  return std::max({1.0, sizes[0] / size, std::sqrt(sizes[0] * sizes[1] / size)});
}

double Square(double x) {
  return x * x;
}

// The largest magnitude of the logarithms of some values, which are the arguments if the values are
// exponentials; 0 when one is below zero, because they are none then. Zeros have no part in it.
double LargestArgument(const Tensor& golden) {
  const Result<std::vector<double>> values = ElementsOf(golden);
  if (!values.ok()) return 0;
  double largest = 0;
  for (const double value : *values) {
    if (value < 0) return 0;
    if (value > 0 && std::isfinite(value)) largest = std::max(largest, std::abs(std::log(value)));
  }
  return largest;
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

double ScaleOf(const Tensor& tensor) {
  if (!IsFloating(tensor.dtype())) return 0;
  Result<std::vector<double>> values = ElementsOf(tensor);
  if (!values.ok()) return 0;
  double largest = 0;
  for (double& value : *values) {
    value = std::isfinite(value) ? std::abs(value) : 0;
    largest = std::max(largest, value);
  }
  return std::min(largest, kOutlier * LowerQuartile(*values));
}

Allowance CloseAllowance(const RoundingPath& rounding, const Tensor& golden) {
  if (!IsFloating(golden.dtype())) return {};
  // One deviation of the largest values, which are some four times the others: four deviations of
  // those, of roundings that are mostly smaller than the bound. The output itself is rounded, too.
  const double own = UnitRoundoff(golden.dtype());
  double variance = rounding.variance + Square(own);
  if (rounding.of_argument > 0) {
    variance += rounding.of_argument * Square(LargestArgument(golden));
  }
  const double relative = std::sqrt(variance);
  return {.absolute = relative * ScaleOf(golden) + 4 * SmallestOf(golden.dtype()),
          .relative = relative};
}

Allowance CloseAllowanceInside(const RoundingPath& rounding, const Tensor& golden) {
  Allowance allowance = CloseAllowance(rounding, golden);
  allowance.of_peak = ReorderAllowance(golden.dtype()).of_peak;
  return allowance;
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
      Keep(graph.node(id), roundings[static_cast<size_t>(id)]);
    }
    std::vector<RoundingPath> outputs;
    if (graph.NetOutput() == kNoNode) return outputs;
    for (const auto& value : graph.node(graph.NetOutput()).inputs) {
      outputs.push_back(value ? roundings[static_cast<size_t>(value->node)] : RoundingPath());
    }
    return outputs;
  }

  // Of the operators that OutputsOf has passed.
  OperatorRoundings TakeOperators() { return std::move(operators_); }

 private:
  void Keep(const Node& node, RoundingPath path) {
    if (!estimate_.types_.contains(node.name)) return;
    Append(before_call_, &path);
    operators_[OperatorKey(node.name)] = path;
  }

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
    const RoundingPath outer = before_call_;
    Append(*rounding, &before_call_);
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<RoundingPath> outputs, OutputsOf(*graph));
    before_call_ = outer;
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
    if (op.precision == PrecisionClass::kBlack) {
      rounding->of_argument = rounding->variance;
    } else if (own.longest_sum > 1) {
      rounding->of_argument = 0;
    }
    Append(own, rounding);
  }

  // Integers become real numbers: a dequantisation, or a cast.
  static void AddConversion(const Types* types, RoundingPath* rounding) {
    if (types == nullptr || types->outputs.empty() || !MayRound(types->outputs[0].dtype)) return;
    const DataType dtype = types->outputs[0].dtype;
    Append({Square(UnitRoundoff(dtype)), 1, 1, dtype}, rounding);
  }

  RoundingPath OfOutput(const std::vector<TensorType>& inputs, const TensorType& output,
                        const Operator& op) const {
    const double kept = UnitRoundoff(output.dtype);
    if (kept == 0) return {};
    const double sum = op.axes.elementwise() ? 1 : SumLength(inputs, output);
    const DataType accumulator =
        output.dtype == DataType::kDouble ? DataType::kDouble : DataType::kFloat;
    // Partial results of ranks are added in the dtype that they travel in.
    const double roundings = op.collective ? ranks_ : 1;
    const double of_sum = sum > 1 ? sum * Square(UnitRoundoff(accumulator)) : 0;
    return {roundings * Square(kept) + of_sum, 1, sum, output.dtype};
  }

  static void Append(const RoundingPath& behind, RoundingPath* rounding) {
    if (behind.of_argument > 0) rounding->of_argument = rounding->variance + behind.of_argument;
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
  RoundingPath before_call_;  // of the subgraph that is walked
  OperatorRoundings operators_;
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

Result<OperatorRoundings> RoundingEstimate::OperatorsOf(const Model& model,
                                                        const OpRegistry& registry,
                                                        int ranks) const {
  Walk walk(*this, model, registry, ranks);
  NPUMESH_RETURN_IF_ERROR(walk.OutputsOf(model.graph).status());
  return walk.TakeOperators();
}

}  // namespace npumesh
