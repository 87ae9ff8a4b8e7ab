// The matrix multiplication family against a triple loop in double. Operands are small integers:
// sums stay exact in float32, and small enough in the 16-bit types, so results are compared with
// ==.
#include "tests/unit/op_values.h"

namespace npumesh {
namespace {

struct Case {
  std::string type;
  Shape x1;
  Shape x2;
  Shape y;
  bool transpose1 = false;
  bool transpose2 = false;
  std::optional<Shape> bias = std::nullopt;

  std::string ToString() const {
    return type + " " + x1.ToString() + (transpose1 ? "^T" : "") + " " + x2.ToString() +
           (transpose2 ? "^T" : "") + (bias ? " + " + bias->ToString() : "");
  }
};

// Element of a tensor at `at`, whose leading positions are dropped and which is 0 where the
// dimension is 1.
double At(const std::vector<double>& values, const Shape& shape, std::vector<int64_t> at) {
  at.erase(at.begin(), at.end() - shape.rank());
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] == 1) at[static_cast<size_t>(d)] = 0;
  }
  return values[Index(shape, at)];
}

std::vector<double> Reference(const Case& c, const Tensor& x1, const Tensor& x2,
                              const Tensor* bias) {
  const std::vector<double> a = ToDoubles(x1);
  const std::vector<double> b = ToDoubles(x2);
  Shape sa = c.x1.rank() == 1 ? Shape{1, c.x1[0]} : c.x1;
  Shape sb = c.x2.rank() == 1 ? Shape{c.x2[0], 1} : c.x2;
  Shape full = c.y;  // with the dimensions that vectors drop
  if (c.x2.rank() == 1) full.mutable_dims().push_back(1);
  if (c.x1.rank() == 1) full.mutable_dims().insert(full.mutable_dims().end() - 1, 1);
  const int64_t k = c.transpose1 && c.x1.rank() > 1 ? sa[sa.rank() - 2] : sa[sa.rank() - 1];
  std::vector<double> y;
  for (const std::vector<int64_t>& at : Positions(full)) {
    const int64_t row = at[at.size() - 2];
    const int64_t column = at.back();
    double sum = bias != nullptr ? At(ToDoubles(*bias), bias->shape(), at) : 0;
    for (int64_t l = 0; l < k; ++l) {
      std::vector<int64_t> left = at;
      std::vector<int64_t> right = at;
      const bool t1 = c.transpose1 && c.x1.rank() > 1;
      const bool t2 = c.transpose2 && c.x2.rank() > 1;
      left[at.size() - 2] = t1 ? l : row;
      left.back() = t1 ? row : l;
      right[at.size() - 2] = t2 ? column : l;
      right.back() = t2 ? l : column;
      // A unit row or column must not be mistaken for a broadcast one: At only zeroes unit dims.
      sum += At(a, sa, left) * At(b, sb, right);
    }
    y.push_back(sum);
  }
  return y;
}

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {"MatMul", {2, 3}, {3, 4}, {2, 4}},
      {"MatMul", {3, 2}, {3, 4}, {2, 4}, true, false},
      {"MatMul", {2, 3}, {4, 3}, {2, 4}, false, true},
      {"MatMul", {3, 2}, {4, 3}, {2, 4}, true, true},
      {"MatMul", {2, 3}, {3, 4}, {2, 4}, false, false, Shape{4}},
      {"MatMul", {2, 3}, {3, 4}, {2, 4}, false, false, Shape{1, 4}},
      {"MatMul", {1, 1}, {1, 1}, {1, 1}},
      {"MatMul", {33, 17}, {17, 65}, {33, 65}, false, false, Shape{65}},
      {"MatMul", {3}, {3, 4}, {4}},
      {"MatMul", {3}, {3, 4}, {4}, true, false},
      {"MatMul", {2, 3}, {3}, {2}},
      {"MatMul", {3}, {3}, {}},
      {"MatMul", {2, 0}, {0, 3}, {2, 3}},
      {"MatMul", {2, 0}, {0, 3}, {2, 3}, false, false, Shape{3}},
      {"MatMul", {0, 3}, {3, 4}, {0, 4}},
      {"MatMul", {2, 3}, {3, 0}, {2, 0}},
      {"MatMulV2", {2, 3}, {4, 3}, {2, 4}, false, true, Shape{4}},
      {"BatchMatMul", {2, 3, 4}, {2, 4, 5}, {2, 3, 5}},
      {"BatchMatMul", {2, 4, 3}, {2, 5, 4}, {2, 3, 5}, true, true},
      {"BatchMatMul", {2, 3, 4}, {4, 5}, {2, 3, 5}},
      {"BatchMatMul", {2, 4, 3}, {4, 5}, {2, 3, 5}, true, false},
      {"BatchMatMul", {3, 4}, {2, 4, 5}, {2, 3, 5}},
      {"BatchMatMul", {2, 1, 3, 4}, {1, 3, 4, 2}, {2, 3, 3, 2}},
      {"BatchMatMul", {2, 1, 3, 4}, {3, 2, 4}, {2, 3, 3, 2}, false, true},
      {"BatchMatMul", {2, 3, 2, 4}, {2, 3, 4, 2}, {2, 3, 2, 2}},
      {"BatchMatMul", {1, 2, 3, 4}, {1, 2, 4, 5}, {1, 2, 3, 5}},
      {"BatchMatMul", {4}, {2, 4, 5}, {2, 5}},
      {"BatchMatMul", {2, 3, 4}, {4}, {2, 3}},
      {"BatchMatMul", {2, 3, 0}, {2, 0, 5}, {2, 3, 5}},
      {"BatchMatMul", {0, 3, 4}, {0, 4, 5}, {0, 3, 5}},
      {"BatchMatMul", {2, 1, 1, 2}, {2, 2, 2, 3}, {2, 2, 1, 3}},
      {"BatchMatMulV2", {2, 3, 4}, {2, 4, 5}, {2, 3, 5}, false, false, Shape{5}},
      {"BatchMatMulV2", {2, 3, 4}, {2, 4, 5}, {2, 3, 5}, false, false, Shape{2, 1, 5}},
      {"BatchMatMulV2", {2, 3, 4}, {4, 5}, {2, 3, 5}, false, false, Shape{1, 1, 5}},
  };
  return cases;
}

OpCall Call(const Case& c, DataType dtype, Known known) {
  OpCall call{.type = c.type,
              .inputs = {{"x1", Pattern(dtype, c.x1, 1)}, {"x2", Pattern(dtype, c.x2, 2), known}}};
  const bool adjoint = c.type.substr(0, 5) == "Batch";
  call.attrs = {{adjoint ? "adj_x1" : "transpose_x1", AttrValue::Bool(c.transpose1)},
                {adjoint ? "adj_x2" : "transpose_x2", AttrValue::Bool(c.transpose2)}};
  if (c.bias) call.inputs.push_back({"bias", Pattern(dtype, *c.bias, 3)});
  return call;
}

TEST(Matmul, EqualsTripleLoopForEveryDtype) {
  for (const Case& c : Cases()) {
    for (const DataType dtype :
         {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16, DataType::kInt32}) {
      for (const Known known : {Known::kNo, Known::kYes}) {
        SCOPED_TRACE(c.ToString() + " " + std::string(Name(dtype)) +
                     (known == Known::kYes ? " constant x2" : ""));
        const OpCall call = Call(c, dtype, known);
        const Tensor y = RunOne(call);
        const Tensor* bias = c.bias ? &call.inputs[2].value : nullptr;
        const std::vector<double> exact =
            Reference(c, call.inputs[0].value, call.inputs[1].value, bias);
        ASSERT_EQ(y.type(), (TensorType{dtype, c.y})) << y.type().ToString();
        EXPECT_TRUE(SameBytes(y, FromDoubles(dtype, c.y, exact)));
      }
    }
  }
}

TEST(Matmul, AccumulatesSixteenBitsInFloatAndRoundsOnce) {
  // 512 products of 1 * 1: a bfloat16 accumulator would stop at 256, a float16 one at 2048.
  for (const DataType dtype : {DataType::kBfloat16, DataType::kFloat16}) {
    const int64_t k = 4098;
    const Tensor ones = FromDoubles(dtype, {1, k}, std::vector<double>(k, 1.0));
    const Tensor y = RunOne({.type = "MatMul",
                             .inputs = {{"x1", ones}, {"x2", ones}},
                             .attrs = {{"transpose_x2", AttrValue::Bool(true)}}});
    EXPECT_EQ(ToDoubles(y), std::vector<double>{Rounded(dtype, static_cast<double>(k))});
  }
}

TEST(Matmul, TakesFloatBiasWithSixteenBitOperands) {
  for (const DataType dtype : {DataType::kBfloat16, DataType::kFloat16}) {
    const Tensor y =
        RunOne({.type = "MatMulV2",
                .inputs = {{"x1", FromDoubles(dtype, {1, 2}, {1, 2})},
                           {"x2", FromDoubles(dtype, {2, 2}, {1, 2, 3, 4})},
                           {"bias", FromDoubles(DataType::kFloat, {2}, {0.5, -0.25})}}});
    EXPECT_EQ(ToDoubles(y), (std::vector<double>{7.5, 9.75}));
  }
}

TEST(Matmul, ManyRowsMatchWithinFloatRounding) {
  const int64_t m = 37, k = 301, n = 53;
  std::vector<double> a, b;
  for (int64_t i = 0; i < m * k; ++i) a.push_back(Rounded(DataType::kFloat, std::sin(0.37 * i)));
  for (int64_t i = 0; i < k * n; ++i) b.push_back(Rounded(DataType::kFloat, std::cos(0.61 * i)));
  const Tensor y = RunOne({.type = "MatMul",
                           .inputs = {{"x1", FromDoubles(DataType::kFloat, {m, k}, a)},
                                      {"x2", FromDoubles(DataType::kFloat, {k, n}, b)}}});
  const std::vector<double> got = ToDoubles(y);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l) sum += a[i * k + l] * b[l * n + j];
      EXPECT_NEAR(got[static_cast<size_t>(i * n + j)], sum, 1e-4);
    }
  }
}

TEST(Matmul, IntegersWrap) {
  const Tensor y =
      RunOne({.type = "MatMul",
              .inputs = {{"x1", Make<int32_t>(DataType::kInt32, {1, 2}, {INT32_MAX, 2})},
                         {"x2", Make<int32_t>(DataType::kInt32, {2, 1}, {2, 3})}}});
  EXPECT_EQ(ValuesOf<int32_t>(y), std::vector<int32_t>{4});
}

TEST(Matmul, EightBitOperandsGiveInt32AndSubtractOffset) {
  for (const std::string type : {"MatMulV2", "BatchMatMulV2"}) {
    const Tensor y = RunOne({.type = type,
                             .inputs = {{"x1", Make<int8_t>(DataType::kInt8, {1, 2}, {-128, 127})},
                                        {"x2", Make<int8_t>(DataType::kInt8, {2, 1}, {-128, 127})},
                                        {"bias", Make<int32_t>(DataType::kInt32, {1}, {5})}},
                             .attrs = {{"offset_x", AttrValue::Int(2)}}});
    EXPECT_EQ(y.dtype(), DataType::kInt32);
    EXPECT_EQ(ValuesOf<int32_t>(y), std::vector<int32_t>{130 * 128 + 125 * 127 + 5});
  }
}

TEST(Matmul, PropagatesNotANumber) {
  const Tensor x = FromDoubles(DataType::kFloat, {1, 2}, {NAN, 1});
  const Tensor y =
      RunOne({.type = "MatMul", .inputs = {{"x1", x}, {"x2", Pattern(DataType::kFloat, {2, 2})}}});
  for (const double value : ToDoubles(y)) EXPECT_TRUE(std::isnan(value));
}

TEST(Matmul, ErrorsNameShapesAndTypes) {
  const auto f = [](Shape shape) { return Pattern(DataType::kFloat, std::move(shape)); };
  const auto call = [&](std::string type, Tensor x1, Tensor x2) {
    return OpCall{.type = std::move(type), .inputs = {{"x1", x1}, {"x2", x2}}};
  };
  ExpectFails(call("MatMul", f({2, 3}), f({4, 3})), Code::kInvalidArgument, {"[2,3]", "[4,3]"});
  ExpectFails(call("BatchMatMul", f({2, 2, 3}), f({3, 3, 2})), Code::kInvalidArgument,
              {"[2,2,3]", "[3,3,2]"});
  ExpectFails(call("MatMul", f({}), f({4, 3})), Code::kInvalidArgument, {"x1", "scalar"});
  ExpectFails(call("MatMul", f({2, 3}), Pattern(DataType::kFloat16, {3, 2})),
              Code::kInvalidArgument, {"float32", "float16"});
  ExpectFails(call("MatMul", Pattern(DataType::kInt8, {1, 1}), Pattern(DataType::kInt8, {1, 1})),
              Code::kUnsupported, {"int8"});
  ExpectFails(
      call("MatMul", Pattern(DataType::kDouble, {1, 1}), Pattern(DataType::kDouble, {1, 1})),
      Code::kUnsupported, {"float64"});
  for (const Shape& bias : {Shape{3}, Shape{2, 4}, Shape{}, Shape{2, 1, 4}}) {
    OpCall wrong = call("MatMul", f({2, 3}), f({3, 4}));
    wrong.inputs.push_back({"bias", f(bias)});
    ExpectFails(wrong, Code::kInvalidArgument, {"bias", bias.ToString()});
  }
  OpCall wrong = call("MatMul", f({2, 3}), f({3, 4}));
  wrong.inputs.push_back({"bias", Pattern(DataType::kInt32, {4})});
  ExpectFails(wrong, Code::kInvalidArgument, {"bias", "int32"});
}

}  // namespace
}  // namespace npumesh
