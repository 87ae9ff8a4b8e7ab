// RoundingEstimate: how far apart two correct results of one graph may be.
//
// Two programs that compute the same graph add in other orders, fuse other operators and use other
// instructions. Each operator then rounds its results differently, by up to half a unit of the
// dtype they are kept in, u = 2^-p with p bits of significand, and a sum of K terms by a random
// walk of K such steps in the dtype of its accumulator (float32, or float64 for float64). Errors of
// operators one after the other are independent, so their squares add:
//
//   variance = sum over the operators on the way of (u(dtype)^2 + K * u(accumulator)^2)
//
// of the error relative to the scale of the values, along the way from the inputs where it is
// largest (Higham and Mary, A new approach to probabilistic rounding error analysis, 2019). K is
// taken from sizes alone: the product of an [m,k] and a [k,n] matrix has sqrt(mk * kn / mn) = k
// terms, a reduction as many as it has inputs for each output.
//
// An exponential makes of an absolute error of its argument a relative one of its result: the
// argument's relative error times its size, which the logarithms of the results tell. So does a
// softmax, whose arguments count from the largest of their row.
//
// What it does not know: the values (cancellation, large arguments of sin, choices that a rounding
// turns over), and how often a loop runs, which counts once.
#ifndef NPUMESH_GRAPH_COMPARE_MEASURES_ROUNDING_H_
#define NPUMESH_GRAPH_COMPARE_MEASURES_ROUNDING_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/compare/measures/distance.h"
#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {

// What lies between the inputs of a graph and one value, along the way with most of it.
struct RoundingPath {
  double variance = 0;
  int64_t operators = 0;   // that round
  double longest_sum = 1;  // terms of the longest sum
  // The coarsest dtype that rounds; kUndefined: none does.
  DataType coarsest = DataType::kUndefined;
  // The variance before the last operator that may be an exponential (PrecisionClass::kBlack), as
  // long as only element-wise operators follow; else 0.
  double of_argument = 0;
};

// What lies between the inputs of a graph and the outputs of its operators, by OperatorKey.
using OperatorRoundings = std::map<std::string, RoundingPath>;

// 2^-p of a floating type; half a step relative to the range of a quantised int8 or int4; 0 of any
// other type.
double UnitRoundoff(DataType dtype);

// The size of a tensor's values: the largest magnitude, but at most 128 times the lower quartile of
// those that are not zero, so that a mask of -1e38 or a lone outlier does not excuse every other
// value. Infinities and NaN have no part in it; 0 for types without fractions.
double ScaleOf(const Tensor& tensor);

// As far as a correct result may be from `golden`, an output of the graph; exact for types without
// fractions.
Allowance CloseAllowance(const RoundingPath& rounding, const Tensor& golden);

// The same for a value inside of the graph: never less than ReorderAllowance, because such values
// often are small differences of large ones.
Allowance CloseAllowanceInside(const RoundingPath& rounding, const Tensor& golden);

// Thread-safety: none.
class RoundingEstimate {
 public:
  // Takes the types of all values from `typed`, a graph as it stands after inference (stage
  // AfterInfershape of CompileOptions::observer). Later notes of a node replace earlier ones.
  void Note(const Model& typed);

  // Of each output of the main graph, in their order; `ranks`: how many take part in a collective.
  // Nodes of which no types were noted do not round. Error: kCorrupt for a cycle.
  Result<std::vector<RoundingPath>> OutputsOf(const Model& model, const OpRegistry& registry,
                                              int ranks) const;

  // The same of each operator, of subgraphs with what lies before their call. Operators of which no
  // types were noted are left out.
  Result<OperatorRoundings> OperatorsOf(const Model& model, const OpRegistry& registry,
                                        int ranks) const;

 private:
  struct Types {
    std::vector<TensorType> inputs;
    std::vector<TensorType> outputs;
  };
  class Walk;

  std::map<std::string, Types> types_;  // by node name
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_COMPARE_MEASURES_ROUNDING_H_
