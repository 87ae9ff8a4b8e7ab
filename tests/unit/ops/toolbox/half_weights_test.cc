// Products with constant weights that stay in 16 bits, for both types whatever the processor has
// instructions for, against a triple loop in double.
#include "graph/ops/toolbox/product/matmul.h"
#include "graph/ops/toolbox/product/panel_product.h"
#include "tests/unit/op_values.h"

namespace npumesh {
namespace {

struct Case {
  int64_t m, k, n;
  bool transposed1 = false;
  bool transposed2 = false;
  bool biased = false;

  std::string ToString() const {
    return fmt::format("[{},{}]{} [{},{}]{}{}", m, k, transposed1 ? "^T" : "", k, n,
                       transposed2 ? "^T" : "", biased ? " + bias" : "");
  }
};

// Few rows and many, columns and rows beside the sizes of panels, several groups of panels.
const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {1, 1, 1},
      {1, 5, 3, false, true, true},
      {2, 48, 64},
      {3, 100, 130, false, false, true},
      {7, 33, 200, false, true},
      {12, 64, 192, false, true, true},
      {5, 40, 70, true, false, true},
      {13, 17, 65, false, true},
      {40, 1000, 330, false, false, true},
      {20, 1000, 330, false, true},
      {33, 1000, 256, true, true, true},
  };
  return cases;
}

struct Operands {
  std::vector<double> x1, x2, bias;  // [m, k], [k, n], [n]

  std::vector<double> Product(const Case& c) const {
    std::vector<double> y;
    for (int64_t i = 0; i < c.m; ++i) {
      for (int64_t j = 0; j < c.n; ++j) {
        double sum = c.biased ? bias[static_cast<size_t>(j)] : 0;
        for (int64_t l = 0; l < c.k; ++l) {
          sum += x1[static_cast<size_t>(i * c.k + l)] * x2[static_cast<size_t>(l * c.n + j)];
        }
        y.push_back(sum);
      }
    }
    return y;
  }
};

Tensor Stored(DataType dtype, const std::vector<double>& values, int64_t rows, int64_t columns,
              bool transposed) {
  if (!transposed) return FromDoubles(dtype, {rows, columns}, values);
  std::vector<double> turned;
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i) {
      turned.push_back(values[static_cast<size_t>(i * columns + j)]);
    }
  }
  return FromDoubles(dtype, {columns, rows}, turned);
}

Tensor RunHalves(const Case& c, DataType dtype, const Operands& operands) {
  const Tensor x1 = Stored(dtype, operands.x1, c.m, c.k, c.transposed1);
  const Tensor x2 = Stored(dtype, operands.x2, c.k, c.n, c.transposed2);
  const Tensor bias = FromDoubles(dtype, {c.n}, operands.bias);
  Matmul matmul;
  matmul.who = "test";
  matmul.x1 = {0, dtype, {}, c.transposed1};
  matmul.x2 = {1, dtype, {}, c.transposed2};
  if (c.biased) matmul.bias = {2, dtype, {}, false};
  matmul.y_dtype = dtype;
  matmul.m = c.m;
  matmul.n = c.n;
  matmul.k = c.k;
  matmul.x2_value = &x2;
  Tensor y = Tensor::Allocate({dtype, {c.m, c.n}});
  const Result<std::unique_ptr<Kernel>> kernel = MakePanelMatmul(matmul);
  EXPECT_TRUE(kernel.ok()) << kernel.status().ToString();
  if (!kernel.ok()) return y;
  EXPECT_TRUE((*kernel)->reads(0));
  EXPECT_FALSE((*kernel)->reads(1));
  const Tensor scratch =
      Tensor::Allocate({DataType::kUint8, {static_cast<int64_t>((*kernel)->scratch_bytes())}});
  const void* in[] = {x1.data(), nullptr, bias.data()};
  void* out[] = {y.mutable_data()};
  for (int run = 0; run < 2; ++run) {
    const Status status = (*kernel)->Run({in, out, const_cast<std::byte*>(scratch.data())});
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  return y;
}

// Integers, few of x1 not zero: all sums are exact.
Operands ExactOperands(const Case& c) {
  Operands operands;
  for (int64_t i = 0; i < c.m; ++i) {
    for (int64_t l = 0; l < c.k; ++l) {
      operands.x1.push_back((l * 7 + i) % 50 == 0 ? static_cast<double>((i + l) % 5 - 2) : 0);
    }
  }
  for (int64_t i = 0; i < c.k * c.n; ++i) {
    operands.x2.push_back(static_cast<double>(i * 31 % 13 - 6));
  }
  for (int64_t j = 0; j < c.n; ++j) operands.bias.push_back(static_cast<double>(j % 9 - 4));
  return operands;
}

TEST(HalfWeights, GiveTheExactProduct) {
  for (const DataType dtype : {DataType::kFloat16, DataType::kBfloat16}) {
    for (const Case& c : Cases()) {
      SCOPED_TRACE(c.ToString() + " " + std::string(Name(dtype)));
      const Operands operands = ExactOperands(c);
      EXPECT_TRUE(SameBytes(RunHalves(c, dtype, operands),
                            FromDoubles(dtype, {c.m, c.n}, operands.Product(c))));
    }
  }
}

// One rounding to the type, of a sum in float32, whose error is at most 2^-24 of the sum of all
// magnitudes for each of its terms.
TEST(HalfWeights, AddInFloatAndRoundOnce) {
  for (const DataType dtype : {DataType::kFloat16, DataType::kBfloat16}) {
    const double unit = dtype == DataType::kFloat16 ? 0x1p-11 : 0x1p-8;
    for (const Case& c : {Case{3, 300, 70}, Case{40, 300, 70, false, true}}) {
      SCOPED_TRACE(c.ToString() + " " + std::string(Name(dtype)));
      Operands operands, magnitudes;
      for (int64_t i = 0; i < c.m * c.k; ++i) {
        operands.x1.push_back(Rounded(dtype, std::sin(0.37 * static_cast<double>(i))));
        magnitudes.x1.push_back(std::fabs(operands.x1.back()));
      }
      for (int64_t i = 0; i < c.k * c.n; ++i) {
        operands.x2.push_back(Rounded(dtype, std::cos(0.61 * static_cast<double>(i))));
        magnitudes.x2.push_back(std::fabs(operands.x2.back()));
      }
      operands.bias.resize(static_cast<size_t>(c.n));
      const std::vector<double> seen = ToDoubles(RunHalves(c, dtype, operands));
      const std::vector<double> exact = operands.Product(c), all = magnitudes.Product(c);
      for (size_t i = 0; i < seen.size(); ++i) {
        const double sum_error = static_cast<double>(c.k) * 0x1p-24 * all[i];
        EXPECT_NEAR(seen[i], exact[i], unit * (std::fabs(exact[i]) + sum_error) + sum_error);
      }
    }
  }
}

TEST(HalfWeights, PassNotANumberAndInfinityOn) {
  for (const DataType dtype : {DataType::kFloat16, DataType::kBfloat16}) {
    for (const int64_t m : {int64_t{1}, int64_t{20}}) {
      Case c{m, 2, 3};
      Operands operands;
      operands.x1.assign(static_cast<size_t>(2 * m), 1);
      operands.x2 = {NAN, INFINITY, 1, 1, 1, 1};
      operands.bias.resize(3);
      const std::vector<double> seen = ToDoubles(RunHalves(c, dtype, operands));
      for (size_t i = 0; i < seen.size(); i += 3) {
        EXPECT_TRUE(std::isnan(seen[i]));
        EXPECT_EQ(seen[i + 1], INFINITY);
        EXPECT_EQ(seen[i + 2], 2);
      }
    }
  }
}

TEST(HalfWeights, ArePackedOnceForAllWhoAsk) {
  PackedWeights shared;
  const Tensor weight = Pattern(DataType::kFloat16, {70, 40});
  const auto first = PackPanels(weight, 70, 40, false, &shared);
  EXPECT_EQ(PackPanels(weight, 70, 40, false, &shared), first);
  EXPECT_NE(PackPanels(weight, 40, 70, true, &shared), first);
  EXPECT_EQ(first->rows, 70);
  EXPECT_EQ(first->dtype, DataType::kFloat16);
}

}  // namespace
}  // namespace npumesh
