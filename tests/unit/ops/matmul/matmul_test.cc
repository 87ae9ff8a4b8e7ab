// The matrix multiplication family and GEMM against a triple loop in double. Operands are small
// integers: sums stay exact in float32, and small enough in the 16-bit types, so results are
// compared with ==.
#include "tests/unit/op_reference.h"
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

struct Gemm {
  int64_t m, n, k;
  DataType dtype, result;
  bool a_transposed = false, b_transposed = false;
  double alpha = 1, beta = 1;
};

Shape Stored(int64_t rows, int64_t columns, bool transposed) {
  return transposed ? Shape{columns, rows} : Shape{rows, columns};
}

OpCall GemmCall(const Gemm& g) {
  return {.type = "GEMM",
          .inputs = {{"a", Pattern(g.dtype, Stored(g.m, g.k, g.a_transposed), 1)},
                     {"b", Pattern(g.dtype, Stored(g.k, g.n, g.b_transposed), 2)},
                     {"c", Pattern(g.result, {g.m, g.n}, 3)},
                     {"alpha", FromDoubles(g.result, {}, {g.alpha})},
                     {"beta", FromDoubles(g.result, {1}, {g.beta})}},
          .attrs = {{"transpose_a", AttrValue::Bool(g.a_transposed)},
                    {"transpose_b", AttrValue::Bool(g.b_transposed)}}};
}

Tensor GemmReference(const Gemm& g, const OpCall& call) {
  const std::vector<double> a = ToDoubles(call.inputs[0].value);
  const std::vector<double> b = ToDoubles(call.inputs[1].value);
  std::vector<double> y = ToDoubles(call.inputs[2].value);
  for (int64_t i = 0; i < g.m; ++i) {
    for (int64_t j = 0; j < g.n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < g.k; ++l) {
        const int64_t left = g.a_transposed ? l * g.m + i : i * g.k + l;
        const int64_t right = g.b_transposed ? j * g.k + l : l * g.n + j;
        sum += a[static_cast<size_t>(left)] * b[static_cast<size_t>(right)];
      }
      double& element = y[static_cast<size_t>(i * g.n + j)];
      element = g.alpha * sum + g.beta * element;
    }
  }
  return FromDoubles(g.result, {g.m, g.n}, y);
}

TEST(GemmTest, IsAlphaTimesTheProductPlusBetaTimesC) {
  for (const Gemm& g :
       std::vector<Gemm>{{2, 3, 4, kF32, kF32},
                         {2, 3, 4, kF32, kF32, true, false, 2, -1},
                         {2, 3, 4, kF16, kF16, false, true, 2, 0},
                         {17, 33, 5, kF16, kF32, true, true, 0.5, 0.25},
                         {5, 1, 40, DataType::kBfloat16, kF32, false, false, 1, 2},
                         {3, 700, 8, kF32, kF32, false, false, -3, 1},
                         {4, 5, 33, DataType::kInt8, DataType::kInt32, false, false, 3, -2},
                         {4, 5, 33, DataType::kInt8, DataType::kInt32, true, true, 1, 0},
                         {4, 5, 33, DataType::kInt8, kF32, false, true, 0.5, 2},
                         {1, 1, 1, DataType::kInt8, DataType::kInt32}}) {
    SCOPED_TRACE(
        fmt::format("{} x {} x {} of {} and {}", g.m, g.n, g.k, Name(g.dtype), Name(g.result)));
    const OpCall call = GemmCall(g);
    const Result<std::vector<Tensor>> y = RunOp(call);
    ASSERT_TRUE(y.ok()) << y.status().ToString();
    EXPECT_TRUE(SameBytes((*y)[0], GemmReference(g, call)));
  }
}

}  // namespace
}  // namespace npumesh
