// Products with what is fused to them: bias, activation, attention, RmsNorm.
#include <algorithm>
#include <cmath>

#include "tests/fuzz/engine/draws.h"

namespace npumesh::fuzz {
namespace {

bool IsSmallFactor(const PlainTensor& x) {
  return IsFloat(x.dtype) &&
         std::all_of(x.v.begin(), x.v.end(), [](Number v) { return std::fabs(v) <= 32; });
}

AttrValue Yes(bool value) {
  return AttrValue::Bool(value);
}

void MaybeActivate(GraphWriter& w) {
  static const std::vector<std::string> activations = {"Relu",  "Gelu",    "GeluV2", "FastGelu",
                                                       "Swish", "Sigmoid", "Tanh"};
  if (w.dice().Chance(50)) w.Emit(w.dice().Pick(activations), {{"x", w.last().value}});
}

// By weights that are constant, so that they are packed, or fed; then maybe a bias and an
// activation.
bool DrawMatMul(GraphWriter& w) {
  const KnownValue* x = w.Pick([](const PlainTensor& x) {
    return IsSmallFactor(x) && x.rank() == 2 && !IsOpen(x.dims[1]) && x.count() > 0;
  });
  if (x == nullptr) return false;
  const int64_t k = x->now.dims[1], n = w.dice().Between(1, 5);
  const bool turned = w.dice().Chance(40);
  const Value weight = Operand(w, x->now.dtype, turned ? Extents{n, k} : Extents{k, n});
  std::vector<GraphBuilder::Input> inputs = {{"x1", x->value}, {"x2", weight}};
  if (w.dice().Chance(25)) inputs.emplace_back("bias", Operand(w, x->now.dtype, {n}));
  if (!w.Emit(w.dice().Chance(50) ? "MatMul" : "MatMulV2", inputs,
              {{"transpose_x2", Yes(turned)}})) {
    return false;
  }
  if (w.dice().Chance(50)) {
    const Value product = w.last().value;
    w.Emit("Add", {{"x1", product}, {"x2", Operand(w, x->now.dtype, {n})}});
  }
  MaybeActivate(w);
  return true;
}

// A linear layer as exporters write it: the weight is transposed in front of the product.
bool DrawLinear(GraphWriter& w) {
  const KnownValue* x = w.Pick([](const PlainTensor& x) {
    return IsSmallFactor(x) && x.rank() == 2 && !IsOpen(x.dims[1]) && x.count() > 0;
  });
  if (x == nullptr) return false;
  const Value weight = Operand(w, x->now.dtype, {w.dice().Between(1, 4), x->now.dims[1]});
  if (!w.Emit("Transpose", {{"x", weight}, {"perm", w.Ints({1, 0})}})) return false;
  if (!w.Emit("MatMul", {{"x1", x->value}, {"x2", w.last().value}})) return false;
  MaybeActivate(w);
  return true;
}

bool DrawBatchMatMul(GraphWriter& w) {
  const KnownValue* x = w.Pick([](const PlainTensor& x) {
    return IsSmallFactor(x) && x.rank() == 3 && !IsOpen(x.dims[2]) && x.count() > 0;
  });
  if (x == nullptr) return false;
  const int64_t k = x->now.dims[2], n = w.dice().Between(1, 4);
  const bool turned = w.dice().Chance(50);
  Extents dims = turned ? Extents{n, k} : Extents{k, n};
  dims.insert(dims.begin(), w.dice().Chance(50) ? x->now.dims[0] : 1);
  if (!w.Emit(w.dice().Chance(50) ? "BatchMatMul" : "BatchMatMulV2",
              {{"x1", x->value}, {"x2", Operand(w, x->now.dtype, dims)}},
              {{"adj_x2", Yes(turned)}})) {
    return false;
  }
  MaybeActivate(w);
  return true;
}

bool DrawSoftmax(GraphWriter& w) {
  const KnownValue* x = w.Pick(
      [](const PlainTensor& x) { return IsSmallFactor(x) && x.rank() >= 1 && x.dims.back() > 0; });
  return x != nullptr && w.Emit("SoftmaxV2", {{"x", x->value}}, {{"axes", AttrValue::Ints({-1})}});
}

// ---- attention ----

struct AttentionSizes {
  int64_t batch, rows, columns, head, width;
};

int64_t AttentionExtent(GraphWriter& w) {
  static const std::vector<int64_t> extents = {1, 1, 2, 3, 5};
  return w.dice().Chance(4) ? 0 : w.dice().Pick(extents);
}

bool MaskScores(GraphWriter& w, DataType dtype, const AttentionSizes& s) {
  const Value scores = w.last().value;
  const Extents dims = {w.dice().Chance(50) ? s.batch : 1, w.dice().Chance(50) ? s.rows : 1,
                        s.columns};
  switch (w.dice().Below(4)) {
    case 0:
      return true;
    case 1:
      return w.Emit("Add", {{"x1", scores}, {"x2", Operand(w, dtype, dims)}});
    case 2:
      return w.Emit("MaskedFill", {{"x", scores},
                                   {"mask", Operand(w, DataType::kBool, dims)},
                                   {"value", w.AddConst(w.Random(dtype, {})).value}});
    default:
      return w.Emit("SelectV2", {{"condition", Operand(w, DataType::kBool, dims)},
                                 {"then", w.AddConst(w.Random(dtype, {})).value},
                                 {"else", scores}});
  }
}

bool DrawAttention(GraphWriter& w) {
  static const std::vector<DataType> types = {DataType::kFloat, DataType::kFloat,
                                              DataType::kFloat16, DataType::kBfloat16};
  const DataType dtype = w.dice().Pick(types);
  const AttentionSizes s = {w.dice().Between(1, 2), AttentionExtent(w), AttentionExtent(w),
                            AttentionExtent(w), AttentionExtent(w)};
  const std::string product = w.dice().Chance(50) ? "BatchMatMul" : "BatchMatMulV2";
  const Value q = Operand(w, dtype, {s.batch, s.rows, s.head});
  const Value k = Operand(w, dtype, {s.batch, s.columns, s.head});
  const Value v = Operand(w, dtype, {s.batch, s.columns, s.width});
  if (!w.Emit(product, {{"x1", q}, {"x2", k}}, {{"adj_x2", Yes(true)}})) return false;
  if (w.dice().Chance(70)) {
    w.Emit("Muls", {{"x", w.last().value}}, {{"value", AttrValue::Float(0.5f)}});
  }
  if (!MaskScores(w, dtype, s) || s.columns == 0) return true;
  if (!w.Emit("SoftmaxV2", {{"x", w.last().value}}, {{"axes", AttrValue::Ints({-1})}})) return true;
  w.Emit(product, {{"x1", w.last().value}, {"x2", v}});
  return true;
}

// ---- norms of rows ----

bool IsSmallRow(const PlainTensor& x) {
  return IsSmallFactor(x) && x.rank() >= 1 && !IsOpen(x.dims.back()) && x.dims.back() > 0;
}

// Of the type and dimensions of x.
Value SmallLike(GraphWriter& w, const PlainTensor& x) {
  const KnownValue* held = w.Pick([&](const PlainTensor& y) {
    return IsSmallFactor(y) && y.dtype == x.dtype && y.dims == x.dims;
  });
  if (held != nullptr && w.dice().Chance(75)) return held->value;
  const PlainTensor made = w.Random(x.dtype, x.dims);
  return HasOpen(x.dims) ? w.AddInput(made, false).value : w.AddConst(made).value;
}

// As a layer has it: what follows the norm is added to the sum that was normalised.
bool DrawAddRmsNorm(GraphWriter& w) {
  const KnownValue* x = w.Pick(IsSmallRow);
  if (x == nullptr) return false;
  const PlainTensor like = x->now;
  const Value x1 = x->value;
  if (!w.Emit("AddRmsNorm",
              {{"x1", x1},
               {"x2", SmallLike(w, like)},
               {"gamma", Operand(w, like.dtype, {like.dims.back()})}},
              {{"epsilon", AttrValue::Float(0.25f)}}, 3)) {
    return false;
  }
  const Value norm = w.last().value;
  if (w.dice().Chance(60)) w.Emit("Add", {{"x1", {norm.node, 2}}, {"x2", norm}});
  if (w.dice().Chance(30)) w.Emit("Mul", {{"x1", {norm.node, 2}}, {"x2", {norm.node, 1}}});
  return true;
}

bool DrawLayerNorm(GraphWriter& w) {
  const KnownValue* x = w.Pick(IsSmallRow);
  if (x == nullptr) return false;
  const int64_t columns = x->now.dims.back();
  std::vector<GraphBuilder::Input> inputs = {{"x", x->value},
                                             {"normalized_shape", w.Ints({columns})}};
  if (w.dice().Chance(60)) {
    inputs.emplace_back("gamma", Operand(w, x->now.dtype, {columns}));
    inputs.emplace_back("beta", Operand(w, x->now.dtype, {columns}));
  }
  return w.Emit("LayerNormV4", inputs, {{"epsilon", AttrValue::Float(0.25f)}}, 3);
}

bool DrawRmsNorm(GraphWriter& w) {
  const KnownValue* x = w.Pick([](const PlainTensor& x) {
    return IsSmallFactor(x) && x.rank() >= 1 && !IsOpen(x.dims.back()) && x.dims.back() > 0;
  });
  return x != nullptr &&
         w.Emit("RmsNorm",
                {{"x", x->value}, {"gamma", Operand(w, x->now.dtype, {x->now.dims.back()})}},
                {{"epsilon", AttrValue::Float(0.25f)}}, 2);
}

bool EmitSquare(GraphWriter& w, Value x) {
  return w.dice().Chance(50) ? w.Emit("Square", {{"x", x}}) : w.Emit("Mul", {{"x1", x}, {"x2", x}});
}

bool EmitMean(GraphWriter& w, Value x) {
  return w.Emit("ReduceMean", {{"x", x}, {"axes", w.Ints({-1})}}, {{"keep_dims", Yes(true)}});
}

// kept / sqrt(sum), as a product with the root's reciprocal or as a quotient.
bool EmitQuotient(GraphWriter& w, Value kept, Value sum) {
  if (w.dice().Chance(50)) {
    if (!w.Emit("Rsqrt", {{"x", sum}})) return false;
  } else {
    if (!w.Emit("Sqrt", {{"x", sum}})) return false;
    if (w.dice().Chance(50)) {
      return w.Emit("RealDiv", {{"x1", kept}, {"x2", w.last().value}});
    }
    if (!w.Emit("Reciprocal", {{"x", w.last().value}})) return false;
  }
  return w.Emit("Mul", {{"x1", kept}, {"x2", w.last().value}});
}

// A RmsNorm as frameworks write it out, or a LayerNorm, which is one behind x - ReduceMean(x). Ends
// wherever an operator would leave the range that the plain interpreter answers for.
bool DrawNormPattern(GraphWriter& w) {
  const KnownValue* x = w.Pick([](const PlainTensor& x) {
    return IsSmallFactor(x) && x.dtype == DataType::kFloat && x.rank() >= 1 &&
           !IsOpen(x.dims.back()) && x.count() > 0;
  });
  if (x == nullptr) return false;
  PlainTensor epsilon = Zeros(DataType::kFloat, {});
  epsilon.at(0) = 0.25L;
  Value kept = x->value;
  const int64_t columns = x->now.dims.back();
  if (w.dice().Chance(50)) {
    if (!EmitMean(w, kept)) return false;
    if (!w.Emit("Sub", {{"x1", kept}, {"x2", w.last().value}})) return true;
    kept = w.last().value;
  }
  if (!EmitSquare(w, kept) || !EmitMean(w, w.last().value)) return true;
  const Value mean = w.last().value;
  w.Emit("Add", {{"x1", mean}, {"x2", w.AddConst(epsilon).value}});
  if (!EmitQuotient(w, kept, w.last().value)) return true;
  const Value normal = w.last().value;
  if (!w.Emit("Mul", {{"x1", normal}, {"x2", Operand(w, DataType::kFloat, {columns})}})) {
    return true;
  }
  const Value scaled = w.last().value;
  if (w.dice().Chance(50)) {
    w.Emit("Add", {{"x1", scaled}, {"x2", Operand(w, DataType::kFloat, {columns})}});
  }
  return true;
}

}  // namespace

std::vector<Draw> ProductDraws() {
  return {
      {{"MatMul", "MatMulV2", "Add"}, 4, DrawMatMul},
      {{"Transpose", "MatMul"}, 2, DrawLinear},
      {{"BatchMatMul", "BatchMatMulV2"}, 3, DrawBatchMatMul},
      {{"SoftmaxV2"}, 1, DrawSoftmax},
      {{"BatchMatMul", "BatchMatMulV2", "SoftmaxV2"}, 4, DrawAttention},
      {{"RmsNorm"}, 1, DrawRmsNorm},
      {{"AddRmsNorm", "Add", "Mul"}, 2, DrawAddRmsNorm},
      {{"LayerNormV4"}, 1, DrawLayerNorm},
      {{"ReduceMean", "Sub", "Sqrt", "Rsqrt", "Reciprocal", "RealDiv", "Mul"}, 3, DrawNormPattern}};
}

}  // namespace npumesh::fuzz
