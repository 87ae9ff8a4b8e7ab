// Losses of classes.
#include "graph/onnx/op_table.h"

namespace npumesh {
namespace {

// -sum(weight[target] * logs[target]) for logs [N, C, ...] and targets [N, ...], reduced as the
// attribute says; a mean divides by the sum of the weights.
Value ClassLoss(Lowering& at, Value logs, Value targets, std::optional<Value> weights) {
  const bool ignores = at.has_attr("ignore_index");
  const DataType dtype = at.dtype(logs);
  Value safe = at.Cast(targets, DataType::kInt64);
  Value weight = at.Cast(at.Binary("Equal", safe, safe), dtype);  // ones
  if (ignores) {
    const Value kept = at.Binary("NotEqual", safe, at.IntScalar(at.Int("ignore_index", 0)));
    weight = at.Cast(kept, dtype);
    safe = at.Select(kept, safe, at.IntScalar(0));
  }
  if (weights) weight = at.Mul(weight, at.Gather(*weights, safe, 0));
  const Value index = at.Unsqueeze(safe, {1});
  const Value chosen = at.Squeeze(at.Op("GatherElements", {logs, index}, {{"dim", 1}}), {1});
  const Value loss = at.Unary("Neg", at.Mul(chosen, weight));
  const std::string reduction = at.Text("reduction", "mean");
  if (reduction == "none") return loss;
  const Value sum = at.Reduce("ReduceSum", loss, {}, false);
  if (reduction == "sum") return sum;
  return at.Div(sum, at.Reduce("ReduceSum", weight, {}, false));
}

void LowerLogLikelihood(Lowering& at) {
  at.Out(0, ClassLoss(at, at.in(0), at.in(1), at.Given(2)));
}

void LowerCrossEntropy(Lowering& at) {
  const Value logs = at.Op("LogSoftmaxV2", {at.in(0)}, {{"axes", AttrValue::Ints({1})}});
  at.Out(0, ClassLoss(at, logs, at.in(1), at.Given(2)));
  at.Out(1, logs);
}

}  // namespace

void AddLossRows(std::vector<OnnxOp>& rows) {
  const OnnxOp all[] = {
      {"NegativeLogLikelihoodLoss", 12, LowerLogLikelihood, "GatherElements, ReduceSumD",
       "T=R I T? ignore_index:int reduction:string"},
      {"SoftmaxCrossEntropyLoss", 12, LowerCrossEntropy, "LogSoftmaxV2, GatherElements, ReduceSumD",
       "T=R I T? ignore_index:int reduction:string"},
  };
  rows.insert(rows.end(), std::begin(all), std::end(all));
}

}  // namespace npumesh
