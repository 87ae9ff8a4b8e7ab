// Operators of com.microsoft that ONNX Runtime's optimisers write into transformers: norms with a
// residual, activations with a bias, products, embeddings, rotations.
#include <numeric>

#include "graph/onnx/op_table.h"
#include "graph/onnx/rewrites.h"

namespace npumesh {
namespace {

constexpr float kSkipEpsilon = 1e-12F;

// ---- norms ----

// x / sqrt(mean of squares + epsilon) * gamma along the last axis.
void OutRmsNorm(Lowering& at, Value x, Value gamma, float epsilon, int scale_output) {
  const Value y = at.Op("RmsNorm", {at.Wide(x), at.Wide(gamma)}, {{"epsilon", epsilon}}, 2);
  at.Out(0, at.Cast(y, at.dtype(x)));
  if (at.wants(scale_output)) at.Out(scale_output, Lowering::Port(y, 1));
}

void LowerSimplifiedLayerNorm(Lowering& at) {
  const Value x = at.in(0);
  const int rank = at.Rank(x);
  if (at.Axis(at.Int("axis", -1), rank) != rank - 1 && at.ok()) {
    return at.Refuse("axis {} of {}; npumesh takes the last one", at.Int("axis", -1), rank);
  }
  OutRmsNorm(at, x, at.in(1), at.Float("epsilon", 1e-5F), 1);
}

// input + skip + bias, the last of which may be left out; it is the last output as well.
Value SkipSum(Lowering& at, int bias) {
  Value sum = at.Add(at.in(0), at.in(1));
  if (at.has(bias)) sum = at.Add(sum, at.in(bias));
  if (at.wants(3)) at.Out(3, sum);
  return sum;
}

void LowerSkipLayerNorm(Lowering& at) {
  const Value sum = SkipSum(at, 4);
  const int last = at.Rank(sum) - 1;
  if (!at.ok()) return;
  const NormedRows normed =
      LayerNorm(at, sum, last, at.in(2), at.Given(3), at.Float("epsilon", kSkipEpsilon));
  at.Out(0, at.Cast(normed.y, at.dtype(sum)));
  if (at.wants(1)) at.Out(1, normed.mean);
  if (at.wants(2)) at.Out(2, normed.scale);
}

void LowerSkipSimplifiedLayerNorm(Lowering& at) {
  const Value sum = SkipSum(at, 3);
  if (at.wants(1)) return at.Refuse("output 1 (mean) is asked for; no tool writes it");
  OutRmsNorm(at, sum, at.in(2), at.Float("epsilon", kSkipEpsilon), 2);
}

// Rows of three tables, added and normed: words, places, segments.
void LowerEmbedLayerNorm(Lowering& at) {
  const Value ids = at.in(0);
  const auto rows = [&](int table, Value places) { return at.Gather(at.in(table), places, 0); };
  Value sum = rows(2, ids);
  const Value length = at.Reshape(at.DimOf(ids, 1), {});
  sum = at.Add(sum, rows(3, at.has(8) ? at.in(8) : CountTo(at, length, DataType::kInt64)));
  if (at.has(1)) sum = at.Add(sum, rows(4, at.in(1)));
  const int last = at.Rank(sum) - 1;
  if (!at.ok()) return;
  const NormedRows normed =
      LayerNorm(at, sum, last, at.in(5), at.in(6), at.Float("epsilon", kSkipEpsilon));
  at.Out(0, at.Cast(normed.y, at.dtype(sum)));
  if (at.wants(1)) {
    // How many words of each row the mask has.
    const Value mask = at.has(7)
                           ? at.in(7)
                           : at.Mul(at.Cast(ids, DataType::kInt32), at.Scalar(0, DataType::kInt32));
    const Value ones = at.Cast(at.Binary("Equal", mask, at.Like(1, mask)), DataType::kInt32);
    at.Out(1, at.Reduce("ReduceSum", ones, {1}, false));
  }
  if (at.wants(2)) at.Out(2, sum);
}

// ---- activations ----

Value Gelu(Lowering& at, Value x, const std::string& approximate) {
  OnnxAttribute attribute;
  attribute.name = "approximate";
  attribute.kind = OnnxAttribute::Kind::kString;
  attribute.s = approximate;
  return AsNode(at, "Gelu", 20, {x}, {attribute})[0];
}

// The bias may be left out.
std::function<void(Lowering&)> GeluWithBias(std::string approximate) {
  return [approximate = std::move(approximate)](Lowering& at) {
    const Value x = at.has(1) ? at.Add(at.in(0), at.in(1)) : at.in(0);
    at.Out(0, Gelu(at, x, approximate));
  };
}

void LowerQuickGelu(Lowering& at) {
  const Value x = at.Wide(at.in(0));
  const Value gate = at.Unary("Sigmoid", at.Mul(x, at.Like(at.Float("alpha", 1.702F), x)));
  at.Out(0, at.Cast(at.Mul(x, gate), at.dtype(at.in(0))));
}

// ---- products ----

// An operand with its first dimension behind the ones after it (transBatch), and the last two
// exchanged (trans).
Value Turned(Lowering& at, Value x, bool batch, bool matrix) {
  const int rank = at.Rank(x);
  if (!at.ok() || rank < 2) return x;
  std::vector<int64_t> perm(static_cast<size_t>(rank));
  std::iota(perm.begin(), perm.end(), 0);
  if (batch) std::rotate(perm.begin(), perm.begin() + 1, perm.end() - 1);
  if (matrix) std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return at.Transpose(x, perm);
}

void LowerFusedMatMul(Lowering& at) {
  const Value a = Turned(at, at.in(0), at.Int("transBatchA", 0) != 0, at.Int("transA", 0) != 0);
  const Value b = Turned(at, at.in(1), at.Int("transBatchB", 0) != 0, at.Int("transB", 0) != 0);
  Value y = AsNode(at, "MatMul", 13, {a, b})[0];
  if (at.Float("alpha", 1) != 1) y = at.Mul(y, at.Like(at.Float("alpha", 1), y));
  at.Out(0, y);
}

}  // namespace

void AddMicrosoftRows(std::vector<OnnxOp>& rows) {
  constexpr std::string_view kHere = kMicrosoftDomain;
  const OnnxOp all[] = {
      {"BiasGelu", 1, GeluWithBias("none"), "Add, GeluV2", "T=R T", kHere},
      {"EmbedLayerNormalization", 1, LowerEmbedLayerNorm, "GatherV2, Add, ReduceMeanD, Mul",
       "J J? T=R T T? T T J? J? epsilon:float mask_index_type:int", kHere},
      {"FastGelu", 1, GeluWithBias("tanh"), "Add, GeluV2", "T=R T?", kHere},
      {"FusedMatMul", 1, LowerFusedMatMul, "TransposeD, BatchMatMulV2, Mul",
       "T=R T alpha:float transA:int transB:int transBatchA:int transBatchB:int", kHere},
      {"Gelu", 1, GeluWithBias("none"), "GeluV2", "R", kHere},
      {"QuickGelu", 1, LowerQuickGelu, "Sigmoid, Mul", "R alpha:float", kHere},
      {"SimplifiedLayerNormalization", 1, LowerSimplifiedLayerNorm, "RmsNorm",
       "R R axis:int epsilon:float stash_type:int"},
      {"SimplifiedLayerNormalization", 1, LowerSimplifiedLayerNorm, "RmsNorm",
       "R R axis:int epsilon:float stash_type:int", kHere},
      {"SkipLayerNormalization", 1, LowerSkipLayerNorm, "Add, ReduceMeanD, Mul",
       "T=R T T T? T? epsilon:float", kHere},
      {"SkipSimplifiedLayerNormalization", 1, LowerSkipSimplifiedLayerNorm, "Add, RmsNorm",
       "T=R T T T? epsilon:float", kHere},
  };
  rows.insert(rows.end(), std::begin(all), std::end(all));
  AddMicrosoftAttentionRows(rows);
  AddMicrosoftQuantRows(rows);
}

}  // namespace npumesh
