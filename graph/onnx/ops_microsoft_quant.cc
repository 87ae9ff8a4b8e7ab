// Quantised operators of com.microsoft: what ONNX Runtime's quantisation tools write.
#include <algorithm>

#include "graph/onnx/byte_nodes.h"
#include "graph/onnx/op_table.h"
#include "graph/onnx/rewrites.h"
#include "graph/ops/toolbox/values/ceil_div.h"

namespace npumesh {
namespace {

// scale * (x - zero), and back. Scale and zero are those of a tensor, or along an axis.
Value Dequantised(Lowering& at, Value x, Value scale, std::optional<Value> zero) {
  return AsNode(at, "DequantizeLinear", 13, {x, scale, zero})[0];
}

Value Requantised(Lowering& at, Value x, Value scale, Value zero) {
  return AsNode(at, "QuantizeLinear", 13, {x, scale, zero})[0];
}

// The zero of operand `input`; 0 of the type of `like` where it is left out.
Value ZeroOr(Lowering& at, int input, Value like) {
  return at.has(input) ? at.in(input) : at.Like(0, like);
}

// ---- one operand: x, its scale and zero, scale and zero of y ----

// The operator in float, between a dequantisation and a quantisation.
template <typename Body>
void BetweenBytes(Lowering& at, const Body& body) {
  const Value x = Dequantised(at, at.in(0), at.in(1), at.Given(2));
  if (!at.ok()) return;
  const Value y = body(x);
  if (at.ok()) at.Out(0, Requantised(at, y, at.in(3), ZeroOr(at, 4, at.in(0))));
}

void LowerQLinearSigmoid(Lowering& at) {
  BetweenBytes(at, [&](Value x) { return at.Unary("Sigmoid", x); });
}

void LowerQLinearLeakyRelu(Lowering& at) {
  BetweenBytes(at, [&](Value x) {
    return at.Op("LeakyRelu", {x}, {{"negative_slope", at.Float("alpha", 0.01F)}});
  });
}

void LowerQLinearSoftmax(Lowering& at) {
  BetweenBytes(at, [&](Value x) {
    return AsNode(at, "Softmax", at.Int("opset", 13), {x}, AttributesOf(at, {"axis"}))[0];
  });
}

// A pool of ONNX, whose images may have their channels last.
Value Pooled(Lowering& at, std::string_view op, Value x, const std::vector<OnnxAttribute>& with) {
  const bool last = at.Int("channels_last", 0) != 0;
  const Value y = AsNode(at, op, 11, {last ? ChannelsSecond(at, x) : x}, with)[0];
  return last ? ChannelsLast(at, y) : y;
}

void LowerQLinearAveragePool(Lowering& at) {
  const std::vector<OnnxAttribute> with = AttributesOf(
      at, {"auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides"});
  BetweenBytes(at, [&](Value x) { return Pooled(at, "AveragePool", x, with); });
}

void LowerQLinearGlobalAveragePool(Lowering& at) {
  BetweenBytes(at, [&](Value x) { return Pooled(at, "GlobalAveragePool", x, {}); });
}

void LowerNhwcMaxPool(Lowering& at) {
  const std::vector<OnnxAttribute> with =
      AttributesOf(at, {"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides"});
  const Value x = ChannelsSecond(at, at.in(0));
  at.Out(0, ChannelsLast(at, AsNode(at, "MaxPool", 12, {x}, with)[0]));
}

// ---- two operands and more ----

// a, its scale and zero, b, its scale and zero, scale and zero of y.
std::function<void(Lowering&)> QLinearBinary(std::string type) {
  return [type = std::move(type)](Lowering& at) {
    const ScaledBytes left = {at.in(0), at.in(1), ZeroOr(at, 2, at.in(0))};
    const ScaledBytes right = {at.in(3), at.in(4), ZeroOr(at, 5, at.in(3))};
    const ScaledBytes whole = {{}, at.in(6), ZeroOr(at, 7, at.in(0))};
    if (!at.ok()) return;
    if (const auto y = CombinedBytes(at, "QLinear" + type, left, right, whole)) {
      return at.Out(0, *y);
    }
    const Value a = Dequantised(at, at.in(0), at.in(1), at.Given(2));
    const Value b = Dequantised(at, at.in(3), at.in(4), at.Given(5));
    if (!at.ok()) return;
    at.Out(0, Requantised(at, at.Binary(type, a, b), at.in(6), ZeroOr(at, 7, at.in(0))));
  };
}

// Scale and zero of y, then each operand with its scale and zero.
void LowerQLinearConcat(Lowering& at) {
  if (at.inputs() < 5 || at.inputs() % 3 != 2) {
    return at.Fail(Code::kCorrupt, "has {} inputs; expected two and three for each operand",
                   at.inputs());
  }
  std::vector<Value> parts;
  for (int i = 2; i < at.inputs() && at.ok(); i += 3) {
    const Value part = Dequantised(at, at.in(i), at.in(i + 1), at.Given(i + 2));
    if (at.ok()) parts.push_back(Requantised(at, part, at.in(0), at.in(1)));
  }
  if (at.ok()) at.Out(0, JoinedParts(at, parts, at.Int("axis", 0)));
}

// ---- products ----

// A scale as it multiplies a product: one for all, or one for each column.
Value OfColumns(Lowering& at, Value scale) {
  return at.Rank(scale) == 1 && at.KnownSize(scale, 0) == 1 ? at.Reshape(scale, {}) : scale;
}

void LowerMatMulIntegerToFloat(Lowering& at) {
  const auto flat = [&](int input) { return at.Wide(at.Reshape(at.in(input), {-1})); };
  const ByteMatrices form = {.a = at.in(0),
                             .b = at.in(1),
                             .a_zero = at.Given(4),
                             .b_zero = at.Given(5),
                             .scale = at.Mul(flat(2), flat(3)),
                             .dtype = DataType::kFloat};
  if (const std::optional<Value> product = MultipliedBytes(at, form)) {
    const Value y = at.has(6) ? at.Add(*product, at.Wide(at.in(6))) : *product;
    return at.Out(0, at.Cast(y, at.dtype(at.in(2))));
  }
  const Value sum = ByteProduct(at, at.in(0), at.Given(4), at.in(1), at.Given(5));
  const Value scale = at.Mul(OfColumns(at, at.in(2)), OfColumns(at, at.in(3)));
  Value y = at.Mul(at.Cast(sum, DataType::kFloat), at.Wide(scale));
  if (at.has(6)) y = at.Add(y, at.Wide(at.in(6)));
  at.Out(0, at.Cast(y, at.dtype(at.in(2))));
}

// The float operand becomes bytes by its extremes.
void LowerDynamicQuantizeMatMul(Lowering& at) {
  const std::vector<Value> a = AsNode(at, "DynamicQuantizeLinear", 11, {at.in(0)}, {}, 3);
  const ByteMatrices form = {.a = a[0],
                             .b = at.in(1),
                             .a_zero = a[2],
                             .b_zero = at.Given(3),
                             .scale = at.Mul(at.Reshape(a[1], {-1}), at.Reshape(at.in(2), {-1})),
                             .dtype = DataType::kFloat};
  if (!at.ok()) return;
  if (const std::optional<Value> product = MultipliedBytes(at, form)) {
    return at.Out(0, at.has(4) ? at.Add(*product, at.in(4)) : *product);
  }
  const Value sum = ByteProduct(at, a[0], a[2], at.in(1), at.Given(3));
  const Value scale = at.Mul(a[1], OfColumns(at, at.in(2)));
  Value y = at.Mul(at.Cast(sum, DataType::kFloat), scale);
  if (at.has(4)) y = at.Add(y, at.in(4));
  at.Out(0, y);
}

// a b' + c: a, its scale and zero, b, its scale and zero, c (int32 with the scale of the product),
// scale and zero of y, without which y are floats.
void LowerQGemm(Lowering& at) {
  const float alpha = at.Float("alpha", 1);
  const Value a = at.Int("transA", 0) != 0 ? at.Transpose(at.in(0), {1, 0}) : at.in(0);
  const Value b = at.in(3);
  if (!AreBytes(at, a, b)) return;
  const auto flat = [&](int input) { return at.Reshape(at.in(input), {-1}); };
  Value scale = at.Mul(flat(1), flat(4));
  if (alpha != 1) scale = at.Mul(scale, at.Like(alpha, scale));
  if (at.has(7)) scale = at.Div(scale, flat(7));
  const bool many = at.has(6) && at.shape(at.in(6)).elements() ==
                                     at.KnownSize(b, at.Int("transB", 0) != 0 ? 0 : 1);
  const ByteMatrices form = {.a = a,
                             .b = b,
                             .a_zero = at.Given(2),
                             .b_zero = at.Given(5),
                             .bias = many ? std::optional(flat(6)) : std::nullopt,
                             .scale = scale,
                             .dtype = at.has(7) ? at.dtype(at.in(0)) : DataType::kFloat,
                             .y_zero = at.Given(8),
                             .transposed_b = at.Int("transB", 0) != 0};
  if (at.has(6) && !many) return at.Refuse("a bias that is not one number for each column");
  const std::optional<Value> y = MultipliedBytes(at, form);
  if (at.ok() && !y) return at.Refuse("zeros and scales that are not one, or one for each column");
  if (y) at.Out(0, *y);
}

// ---- weights of few bits ----

// Numbers of `bits` that lie in bytes, the lowest first: the last dimension is 8 / bits times as
// long, as int32.
Value Unpacked(Lowering& at, Value bytes, int64_t bits) {
  const int rank = at.Rank(bytes);
  const Value wide = at.Cast(bytes, DataType::kInt32);
  if (bits == 8 || !at.ok()) return wide;
  const int64_t together = 8 / bits;
  std::vector<Value> parts;
  for (int64_t i = 0; i < together; ++i) {
    const Value shifted =
        at.Op("RightShift", {wide, at.Scalar(static_cast<double>(i * bits), DataType::kInt32)});
    const Value mask = at.Scalar(static_cast<double>((1 << bits) - 1), DataType::kInt32);
    parts.push_back(at.Unsqueeze(at.Binary("BitwiseAnd", shifted, mask), {rank}));
  }
  const Value all = at.Concat(parts, rank);
  return at.ReshapeAfter(all, rank - 1, {together * at.Dim(bytes, rank - 1)});
}

bool AreBits(Lowering& at, int64_t bits) {
  if (bits == 2 || bits == 4 || bits == 8) return true;
  at.Refuse("{} bits; expected 2, 4 or 8", bits);
  return false;
}

// y = a w', w [n, k] in blocks of numbers of few bits along k. Inputs: a, w [n, blocks, bytes],
// scales and zeros of the blocks of each row, order of the columns, bias.
void LowerMatMulNBits(Lowering& at) {
  const int64_t k = at.Int("K", 0), n = at.Int("N", 0), block = at.Int("block_size", 0);
  const int64_t bits = at.Int("bits", 4);
  if (!AreBits(at, bits)) return;
  if (at.has(4)) return at.Refuse("g_idx (an order of columns) is not translated");
  if (k < 1 || n < 1 || block < 1) {
    return at.Fail(Code::kCorrupt, "K {}, N {} and block_size {}; expected 1 and more", k, n,
                   block);
  }
  const int64_t blocks = CeilDiv(k, block);
  if (!at.Affords(n, blocks * block)) return;
  const Value numbers =
      at.Cast(Unpacked(at, at.Reshape(at.in(1), {n, blocks, -1}), bits), DataType::kFloat);
  Value zero = at.Scalar(static_cast<double>(1 << (bits - 1)), DataType::kFloat);
  if (at.has(3) && IsFloating(at.dtype(at.in(3)))) {
    zero = at.Reshape(at.Wide(at.in(3)), {n, blocks, 1});
  } else if (at.has(3)) {
    const Value all = Unpacked(at, at.Reshape(at.in(3), {n, -1}), bits);
    zero = at.Reshape(at.Cast(at.Slice(all, 1, 0, blocks), DataType::kFloat), {n, blocks, 1});
  }
  const Value scales = at.Reshape(at.Wide(at.in(2)), {n, blocks, 1});
  const Value padded = at.Reshape(at.Mul(at.Sub(numbers, zero), scales), {n, blocks * block});
  const Value w = blocks * block == k ? padded : at.Slice(padded, 1, 0, k);
  Value y = AsNode(at, "MatMul", 13, {at.Wide(at.in(0)), at.Transpose(w, {1, 0})})[0];
  if (at.has(5)) y = at.Add(y, at.Wide(at.in(5)));
  at.Out(0, at.Cast(y, at.dtype(at.in(0))));
}

// Rows of a table in blocks of numbers of few bits along the last dimension. Inputs: table, places,
// scales and zeros of the blocks.
void LowerGatherBlockQuantized(Lowering& at) {
  const Value table = at.in(0);
  const int rank = at.Rank(table);
  const int64_t bits = at.Int("bits", 4), block = at.Int("block_size", 128);
  if (!AreBits(at, bits)) return;
  const int axis = at.Axis(at.Int("gather_axis", 0), rank);
  const int along = at.Axis(at.Int("quantize_axis", 1), rank);
  if (!at.ok()) return;
  if (axis != 0 || along != rank - 1 || rank < 2) {
    return at.Refuse(
        "gather_axis {} and quantize_axis {} of {} dimensions; npumesh takes the first "
        "and the last one",
        axis, along, rank);
  }
  if (at.dtype(table) != DataType::kUint8) {
    return at.Refuse("a table of {}; npumesh takes uint8", Name(at.dtype(table)));
  }
  const Value places = at.in(1);
  const auto rows = [&](Value of) { return at.Gather(of, places, 0); };
  const Value numbers = Unpacked(at, rows(table), bits);
  const int last = at.Rank(numbers) - 1;
  const int64_t width = at.Dim(numbers, last);
  // The block of each column.
  std::vector<int64_t> blocks;
  for (int64_t i = 0; at.Affords(width) && i < width; ++i) blocks.push_back(i / block);
  const auto spread = [&](Value of) { return at.Gather(of, at.Ints(blocks), last); };
  Value zero = at.Scalar(static_cast<double>(1 << (bits - 1)), DataType::kInt32);
  if (at.has(3)) zero = spread(Unpacked(at, rows(at.in(3)), bits));
  const Value scales = spread(rows(at.in(2)));
  const Value y = at.Mul(at.Cast(at.Sub(numbers, zero), DataType::kFloat), at.Wide(scales));
  at.Out(0, at.Cast(y, at.dtype(at.in(2))));
}

}  // namespace

void AddMicrosoftQuantRows(std::vector<OnnxOp>& rows) {
  constexpr std::string_view kHere = kMicrosoftDomain;
  const std::string between = "Cast, Mul, Rint";
  const OnnxOp all[] = {
      {"DynamicQuantizeMatMul", 1, LowerDynamicQuantizeMatMul, "BatchMatMulV2, Cast, Mul",
       "F Y F Y? F?", kHere},
      {"GatherBlockQuantized", 1, LowerGatherBlockQuantized, "GatherV2, Cast, Mul",
       "_ I R _? bits:int block_size:int gather_axis:int quantize_axis:int", kHere},
      {"MatMulIntegerToFloat", 1, LowerMatMulIntegerToFloat, "BatchMatMulV2, Cast, Mul",
       "T=Y U=Y V=R V T? U? V?", kHere},
      {"MatMulNBits", 1, LowerMatMulNBits, "RightShift, Cast, Mul, BatchMatMulV2",
       "T=R _ T _? J? T? K:int! N:int! accuracy_level:int bits:int block_size:int! "
       "weight_prepacked:int",
       kHere},
      {"NhwcMaxPool", 1, LowerNhwcMaxPool, "TransposeD, GatherV2, ReduceMaxD",
       "Y auto_pad:string ceil_mode:int dilations:ints kernel_shape:ints! pads:ints strides:ints",
       kHere},
      {"QGemm", 1, LowerQGemm, "QLinearMatMul",
       "T=Y F T U=Y F U J? F? T? alpha:float transA:int transB:int", kHere},
      {"QLinearAdd", 1, QLinearBinary("Add"), "QLinearAdd; Add, " + between, "T=Y F T? T F T? F T?",
       kHere},
      {"QLinearAveragePool", 1, LowerQLinearAveragePool, "AvgPoolV2, " + between,
       "T=Y F T? F T? auto_pad:string ceil_mode:int channels_last:int count_include_pad:int "
       "kernel_shape:ints! pads:ints strides:ints",
       kHere},
      {"QLinearConcat", 1, LowerQLinearConcat, "ConcatD, " + between, "F Y _... axis:int!", kHere},
      {"QLinearGlobalAveragePool", 1, LowerQLinearGlobalAveragePool, "ReduceMeanD, " + between,
       "T=Y F T F T channels_last:int", kHere},
      {"QLinearLeakyRelu", 1, LowerQLinearLeakyRelu, "LeakyRelu, " + between,
       "T=Y F T? F T? alpha:float", kHere},
      {"QLinearMul", 1, QLinearBinary("Mul"), "QLinearMul; Mul, " + between, "T=Y F T? T F T? F T?",
       kHere},
      {"QLinearSigmoid", 1, LowerQLinearSigmoid, "Sigmoid, " + between, "T=Y F T? F T?", kHere},
      {"QLinearSoftmax", 1, LowerQLinearSoftmax, "SoftmaxV2, " + between,
       "T=Y F T? F T axis:int opset:int!", kHere},
  };
  rows.insert(rows.end(), std::begin(all), std::end(all));
}

}  // namespace npumesh
