#include "graph/onnx/rewrites.h"

#include <algorithm>

#include "graph/onnx/op_table.h"

namespace npumesh {
namespace {

// Products of bytes less their zeros are below 2^16, so the sum of so many is exact in float32.
constexpr int64_t kExactTerms = 256;

bool HasProduct(DataType dtype) {
  return dtype == DataType::kFloat || dtype == DataType::kFloat16 || dtype == DataType::kBfloat16;
}

// a and b as matrices, `multiply`, and the dimensions of vectors taken off again.
template <typename Multiply>
Value WithMatrices(Lowering& at, Value a, Value b, const Multiply& multiply) {
  const int rank_a = at.Rank(a), rank_b = at.Rank(b);
  if (!at.ok()) return {};
  if (rank_a == 1) a = at.Unsqueeze(a, {0});
  if (rank_b == 1) b = at.Unsqueeze(b, {1});
  Value y = multiply(a, b);
  if (rank_b == 1) y = at.Squeeze(y, {-1});
  if (rank_a == 1) y = at.Squeeze(y, {rank_b == 1 ? -1 : -2});
  return y;
}

// Sum over k of a[.., i, k, 1] * b[.., 1, k, j].
Value ElementwiseProduct(Lowering& at, Value a, Value b) {
  return at.Reduce("ReduceSum", at.Mul(at.Unsqueeze(a, {-1}), at.Unsqueeze(b, {-3})), {-2}, false);
}

// A byte as float32, less its zero.
Value Centred(Lowering& at, Value x, std::optional<Value> zero, bool rows) {
  const Value wide = at.Cast(x, DataType::kFloat);
  if (!zero) return wide;
  Value offset = at.Cast(*zero, DataType::kFloat);
  const bool many = at.Rank(offset) == 1 && at.Dim(offset, 0) != 1;
  if (!many && at.Rank(offset) <= 1) offset = at.Reshape(offset, {});
  if (many && rows) offset = at.Unsqueeze(offset, {1});
  return at.Sub(wide, offset);
}

}  // namespace

Value GeneralProduct(Lowering& at, Value a, Value b) {
  return WithMatrices(at, a, b, [&](Value left, Value right) {
    return HasProduct(at.dtype(a)) ? at.MatMul(left, right) : ElementwiseProduct(at, left, right);
  });
}

Value Quantised(Lowering& at, Value x, std::optional<Value> zero, DataType dtype) {
  const int64_t values = int64_t{1} << BitsOf(dtype);
  const int64_t least = IsUnsignedInteger(dtype) ? 0 : -values / 2, most = least + values - 1;
  Value y = at.Unary("Rint", x);
  if (zero) y = at.Add(y, at.Cast(*zero, at.dtype(x)));
  y = at.Min(at.Max(y, at.Like(static_cast<double>(least), x)),
             at.Like(static_cast<double>(most), x));
  return at.Cast(y, dtype);
}

Value AlongAxis(Lowering& at, Value vector, int rank, int64_t axis) {
  if (at.Rank(vector) == 0) return vector;
  if (at.shape(vector).is_static() && at.shape(vector).elements() == 1) {
    return at.Reshape(vector, {});
  }
  return at.Along(vector, axis, rank);
}

std::vector<Value> AsNode(Lowering& at, std::string_view op, int64_t version,
                          const std::vector<std::optional<Value>>& operands,
                          std::vector<OnnxAttribute> attributes, int outputs) {
  OnnxNode node = at.node();
  node.op = op;
  node.domain.clear();
  node.inputs.clear();
  for (size_t i = 0; i < operands.size(); ++i) {
    node.inputs.push_back(operands[i] ? fmt::format("in{}", i) : "");
  }
  node.outputs.clear();
  for (int i = 0; i < outputs; ++i) node.outputs.push_back(fmt::format("out{}", i));
  node.attributes = std::move(attributes);
  std::vector<std::optional<OnnxValue>> values;
  for (const std::optional<Value>& operand : operands) {
    values.push_back(operand ? std::optional(OnnxValue::Of(*operand)) : std::nullopt);
  }
  std::vector<Value> results(static_cast<size_t>(outputs));
  const OnnxOp* const row = FindOnnxOp("", op, version);
  if (row == nullptr) {
    at.Fail(Code::kInternal, "there is no translation of {} of version {}", op, version);
    return results;
  }
  Lowering lowering(node, version, at.emitter(), std::move(values), &at.scope());
  row->lower(lowering);
  for (size_t i = 0; i < results.size() && at.ok(); ++i) {
    if (lowering.results()[i]) results[i] = lowering.results()[i]->items.at(0);
  }
  return results;
}

OnnxAttribute IntAttribute(std::string name, int64_t value) {
  OnnxAttribute attribute;
  attribute.name = std::move(name);
  attribute.kind = OnnxAttribute::Kind::kInt;
  attribute.i = value;
  return attribute;
}

OnnxAttribute FloatAttribute(std::string name, float value) {
  OnnxAttribute attribute;
  attribute.name = std::move(name);
  attribute.kind = OnnxAttribute::Kind::kFloat;
  attribute.f = value;
  return attribute;
}

OnnxAttribute IntsAttribute(std::string name, std::vector<int64_t> values) {
  OnnxAttribute attribute;
  attribute.name = std::move(name);
  attribute.kind = OnnxAttribute::Kind::kInts;
  attribute.ints = std::move(values);
  return attribute;
}

std::vector<OnnxAttribute> AttributesOf(const Lowering& at,
                                        const std::vector<std::string_view>& names) {
  std::vector<OnnxAttribute> attributes;
  for (const std::string_view name : names) {
    if (const OnnxAttribute* const given = at.node().Find(name)) attributes.push_back(*given);
  }
  return attributes;
}

bool AreBytes(Lowering& at, Value a, Value b) {
  for (const Value x : {a, b}) {
    if (IsByte(at.dtype(x))) continue;
    at.Fail(Code::kCorrupt, "multiplies {} and {}; expected int8 or uint8", Name(at.dtype(a)),
            Name(at.dtype(b)));
  }
  return at.ok();
}

std::optional<Value> MultipliedBytes(Lowering& at, const ByteMatrices& form) {
  const int rank_a = at.Rank(form.a), rank_b = at.Rank(form.b);
  if (!at.ok() || rank_a < 2 || rank_b < 2) return std::nullopt;
  const int64_t columns = at.KnownSize(form.b, form.transposed_b ? rank_b - 2 : rank_b - 1);
  const auto has = [&](const std::optional<Value>& value, int64_t many) {
    if (!value) return true;
    const Shape& shape = at.shape(*value);
    return shape.is_static() && (shape.elements() == 1 || shape.elements() == many) &&
           (shape.elements() == 1 || shape.rank() == 1);
  };
  bool fits = has(form.a_zero, 1) && has(form.b_zero, columns) && has(form.scale, columns) &&
              has(form.y_zero, 1) && columns >= 0;
  // Matrices side by side, one for one.
  for (int d = 0; rank_b > 2 && d + 2 < rank_b; ++d) {
    fits = fits && rank_a == rank_b && at.KnownSize(form.a, d) == at.KnownSize(form.b, d) &&
           at.KnownSize(form.a, d) >= 0;
  }
  if (!fits) return std::nullopt;
  return at.Op("QLinearMatMul",
               {form.a, form.b, form.a_zero, form.b_zero, form.bias, form.scale, form.y_zero},
               {{"dtype", form.dtype}, {"transpose_x2", form.transposed_b}});
}

Value ByteProduct(Lowering& at, Value a, std::optional<Value> a_zero, Value b,
                  std::optional<Value> b_zero) {
  if (!AreBytes(at, a, b)) return {};
  const ByteMatrices form = {.a = a, .b = b, .a_zero = a_zero, .b_zero = b_zero};
  if (const std::optional<Value> y = MultipliedBytes(at, form)) return *y;
  const Value left = Centred(at, a, a_zero, true), right = Centred(at, b, b_zero, false);
  return WithMatrices(at, left, right, [&](Value x, Value y) {
    const int rank_x = at.Rank(x), rank_y = at.Rank(y);
    const int64_t terms = at.shape(y).has_rank() ? at.Dim(y, rank_y - 2) : 0;
    if (!at.Affords(terms)) return x;
    if (terms <= kExactTerms) return at.Cast(at.MatMul(x, y), DataType::kInt32);
    Value sum;
    for (int64_t k = 0; k < terms && at.ok(); k += kExactTerms) {
      const int64_t end = std::min(terms, k + kExactTerms);
      const Value part =
          at.Cast(at.MatMul(at.Slice(x, rank_x - 1, k, end), at.Slice(y, rank_y - 2, k, end)),
                  DataType::kInt32);
      sum = k == 0 ? part : at.Add(sum, part);
    }
    return sum;
  });
}

Value ChannelsSecond(Lowering& at, Value x) {
  std::vector<int64_t> perm = {0, at.Rank(x) - 1};
  for (int d = 1; d + 1 < at.Rank(x); ++d) perm.push_back(d);
  return at.ok() ? at.Transpose(x, perm) : x;
}

Value ChannelsLast(Lowering& at, Value x) {
  std::vector<int64_t> perm = {0};
  for (int d = 2; d < at.Rank(x); ++d) perm.push_back(d);
  perm.push_back(1);
  return at.ok() ? at.Transpose(x, perm) : x;
}

Value CountTo(Lowering& at, Value count, DataType dtype) {
  const Value numbers = at.Range(at.IntScalar(0), count, at.IntScalar(1));
  at.emitter().Hint(numbers, {DataType::kInt64, Shape({kUnknownDim})});
  return at.Cast(numbers, dtype);
}

Value PlacesOfTrue(Lowering& at, Value condition) {
  const Value places =
      at.Op("NonZero", {condition}, {{"transpose", true}, {"dtype", DataType::kInt64}});
  at.emitter().Hint(places, {DataType::kInt64, Shape({1, kUnknownDim})});
  return at.Reshape(places, {-1});
}

}  // namespace npumesh
