// GEMM against a triple loop in double. Operands are small integers, so results are compared with
// ==.
#include "tests/unit/op_reference.h"
#include "tests/unit/op_values.h"

namespace npumesh {
namespace {

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

// Integers wrap, as those of products do.
TEST(GemmTest, IntegersAreModuloTwoToThe32) {
  OpCall call = GemmCall({1, 1, 1, DataType::kInt8, DataType::kInt32});
  call.inputs[0].value = FromDoubles(DataType::kInt8, {1, 1}, {100});
  call.inputs[1].value = FromDoubles(DataType::kInt8, {1, 1}, {100});
  call.inputs[3].value = FromDoubles(DataType::kInt32, {}, {1 << 20});
  call.inputs[2].value = FromDoubles(DataType::kInt32, {1, 1}, {5});
  const Result<std::vector<Tensor>> y = RunOp(call);
  ASSERT_TRUE(y.ok()) << y.status().ToString();
  const auto wrapped = static_cast<int32_t>(static_cast<uint32_t>(10000) << 20) + 5;
  EXPECT_EQ((*y)[0].as<int32_t>()[0], wrapped);
}

TEST(GemmTest, WhatDoesNotFitIsNamed) {
  const auto expect = [](OpCall call, std::string_view text) {
    const Result<std::vector<Tensor>> y = RunOp(call);
    ASSERT_FALSE(y.ok()) << text;
    EXPECT_THAT(y.status().message(), testing::HasSubstr(std::string(text)));
  };
  OpCall call = GemmCall({2, 3, 4, kF32, kF32});
  call.inputs[1].value = Pattern(kF32, {5, 3});
  expect(call, "a [2,4] and b [5,3] cannot be multiplied");
  call = GemmCall({2, 3, 4, kF32, kF32});
  call.inputs[2].value = Pattern(kF32, {3, 2});
  expect(call, "[2,3]");
  call = GemmCall({2, 3, 4, kF32, kF16});
  expect(call, "products of float32 that are float16");
  call = GemmCall({2, 3, 4, kF32, kF32});
  call.inputs[3].value = Pattern(kF32, {2});
  expect(call, "alpha");
  call = GemmCall({2, 3, 4, kF32, kF32});
  call.inputs[4].value = Pattern(kF16, {});
  expect(call, "beta");
}

}  // namespace
}  // namespace npumesh
