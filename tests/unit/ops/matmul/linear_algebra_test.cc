// Triangular systems, inverses, determinants, Cholesky and Qr: what comes out is multiplied back,
// and determinants are summed over all permutations.
#include <algorithm>
#include <complex>
#include <numeric>
#include <random>

#include "tests/unit/op_values.h"

namespace npumesh {
namespace {

using C = std::complex<double>;
using Matrix = std::vector<C>;  // row by row

Tensor MatrixTensor(DataType dtype, Shape shape, const Matrix& values) {
  if (dtype == DataType::kComplex64) {
    std::vector<std::complex<float>> narrow(values.begin(), values.end());
    return Make<std::complex<float>>(dtype, std::move(shape), narrow);
  }
  if (dtype == DataType::kComplex128) return Make<C>(dtype, std::move(shape), values);
  std::vector<double> parts;
  for (const C value : values) parts.push_back(value.real());
  return FromDoubles(dtype, std::move(shape), parts);
}

Matrix ToMatrix(const Tensor& tensor) {
  Matrix values;
  if (tensor.dtype() == DataType::kComplex64) {
    for (const auto value : tensor.as<std::complex<float>>()) values.emplace_back(value);
  } else if (tensor.dtype() == DataType::kComplex128) {
    for (const C value : tensor.as<C>()) values.push_back(value);
  } else {
    for (const double value : ToDoubles(tensor)) values.emplace_back(value);
  }
  return values;
}

bool Complex(DataType dtype) {
  return dtype == DataType::kComplex64 || dtype == DataType::kComplex128;
}

// Values in [-1, 1], and `diagonal` more on the diagonal.
Matrix Drawn(DataType dtype, int64_t count, int64_t rows, int64_t columns, double diagonal,
             uint32_t seed) {
  std::mt19937 random(seed);
  const auto draw = [&] { return static_cast<double>(random() % 2001) / 1000 - 1; };
  Matrix values;
  for (int64_t i = 0; i < count * rows * columns; ++i) {
    const int64_t place = i % (rows * columns);
    const double real = draw() + (place / columns == place % columns ? diagonal : 0);
    values.emplace_back(real, Complex(dtype) ? draw() : 0);
  }
  return ToMatrix(MatrixTensor(dtype, {count, rows, columns}, values));  // rounded
}

Matrix Part(const Matrix& all, int64_t index, int64_t elements) {
  return {all.begin() + index * elements, all.begin() + (index + 1) * elements};
}

Matrix MatrixProduct(const Matrix& a, const Matrix& b, int64_t m, int64_t k, int64_t n) {
  Matrix c(static_cast<size_t>(m * n), 0);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t l = 0; l < k; ++l) {
        c[static_cast<size_t>(i * n + j)] +=
            a[static_cast<size_t>(i * k + l)] * b[static_cast<size_t>(l * n + j)];
      }
    }
  }
  return c;
}

Matrix Adjoint(const Matrix& a, int64_t rows, int64_t columns) {
  Matrix turned(a.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      turned[static_cast<size_t>(j * rows + i)] =
          std::conj(a[static_cast<size_t>(i * columns + j)]);
    }
  }
  return turned;
}

Matrix Unit(int64_t n) {
  Matrix unit(static_cast<size_t>(n * n), 0);
  for (int64_t i = 0; i < n; ++i) unit[static_cast<size_t>(i * n + i)] = 1;
  return unit;
}

double Tolerance(DataType dtype) {
  if (dtype == DataType::kFloat16) return 3e-2;
  return dtype == DataType::kDouble || dtype == DataType::kComplex128 ? 1e-12 : 1e-4;
}

void ExpectNear(const Matrix& seen, const Matrix& expected, double error) {
  ASSERT_EQ(seen.size(), expected.size());
  op_test::NoteNear(1, error);
  for (size_t i = 0; i < seen.size(); ++i) {
    EXPECT_LE(std::abs(seen[i] - expected[i]), error) << i << ": " << seen[i] << expected[i];
  }
}

const DataType kTypes[] = {DataType::kFloat, DataType::kDouble, DataType::kComplex64,
                           DataType::kComplex128};

TEST(MatrixTriangularSolve, SolvesWithOneTriangle) {
  for (const DataType dtype : kTypes) {
    for (int mode = 0; mode < 4; ++mode) {
      const bool lower = mode % 2 == 0, adjoint = mode >= 2;
      for (const int64_t n : {0, 1, 4, 7}) {
        const int64_t columns = n % 3 + 1;
        const Matrix a = Drawn(dtype, 2, n, n, 3, 5), b = Drawn(dtype, 2, n, columns, 0, 6);
        const Tensor x = RunOne(
            {.type = "MatrixTriangularSolve",
             .inputs = {{"matrix", MatrixTensor(dtype, {2, n, n}, a)},
                        {"rhs", MatrixTensor(dtype, {2, n, columns}, b)}},
             .attrs = {{"lower", AttrValue::Bool(lower)}, {"adjoint", AttrValue::Bool(adjoint)}}});
        ASSERT_EQ(x.shape(), Shape({2, n, columns}));
        for (int64_t i = 0; i < 2; ++i) {
          Matrix triangle = Part(a, i, n * n);
          for (int64_t k = 0; k < n * n; ++k) {
            if (lower ? k % n > k / n : k % n < k / n) triangle[static_cast<size_t>(k)] = 0;
          }
          if (adjoint) triangle = Adjoint(triangle, n, n);
          ExpectNear(MatrixProduct(triangle, Part(ToMatrix(x), i, n * columns), n, n, columns),
                     Part(b, i, n * columns), Tolerance(dtype));
        }
      }
    }
  }
}

TEST(MatrixInverse, TimesTheMatrixIsTheUnit) {
  for (const DataType dtype : kTypes) {
    for (const bool adjoint : {false, true}) {
      for (const int64_t n : {0, 1, 3, 6}) {
        const Matrix a = Drawn(dtype, 3, n, n, n % 2 == 0 ? 0.5 : 0, 7);
        const Tensor y = RunOne({.type = "MatrixInverse",
                                 .inputs = {{"x", MatrixTensor(dtype, {3, n, n}, a)}},
                                 .attrs = {{"adjoint", AttrValue::Bool(adjoint)}}});
        for (int64_t i = 0; i < 3; ++i) {
          const Matrix x = Part(a, i, n * n);
          ExpectNear(
              MatrixProduct(adjoint ? Adjoint(x, n, n) : x, Part(ToMatrix(y), i, n * n), n, n, n),
              Unit(n), 100 * Tolerance(dtype));
        }
      }
    }
  }
}

// Leibniz's sum.
C Determinant(const Matrix& a, int64_t n) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  C sum = 0;
  do {
    C product = 1;
    for (size_t i = 0; i < order.size(); ++i) {
      product *= a[i * order.size() + static_cast<size_t>(order[i])];
      for (size_t j = 0; j < i; ++j) product *= order[j] > order[i] ? -1 : 1;
    }
    sum += product;
  } while (std::next_permutation(order.begin(), order.end()));
  return sum;
}

TEST(Determinants, AreTheSumsOverPermutations) {
  for (const DataType dtype : {DataType::kFloat, DataType::kDouble, DataType::kComplex64,
                               DataType::kComplex128, DataType::kFloat16}) {
    for (const int64_t n : {0, 1, 2, 5}) {
      const Tensor x = MatrixTensor(dtype, {4, n, n}, Drawn(dtype, 4, n, n, 0, 9));
      Matrix expected, signs, sizes;
      for (int64_t i = 0; i < 4; ++i) {
        expected.push_back(Determinant(Part(ToMatrix(x), i, n * n), n));
        signs.push_back(expected.back() / std::abs(expected.back()));
        sizes.emplace_back(std::log(std::abs(expected.back())));
      }
      std::vector<std::string> types = {"Slogdet"};
      if (Complex(dtype)) types = {"LogMatrixDeterminant"};
      if (dtype == DataType::kFloat) types = {"Slogdet", "LogMatrixDeterminant"};
      for (const std::string& type : types) {
        const Result<std::vector<Tensor>> y = RunOp({.type = type, .inputs = {{"x", x}}});
        ASSERT_TRUE(y.ok()) << y.status().ToString();
        ExpectNear(ToMatrix((*y)[0]), signs, Tolerance(dtype));
        ExpectNear(ToMatrix((*y)[1]), sizes, Tolerance(dtype));
      }
      if (dtype == DataType::kFloat16) continue;
      ExpectNear(ToMatrix(RunOne({.type = "MatrixDeterminant", .inputs = {{"x", x}}})), expected,
                 Tolerance(dtype));
    }
  }
  const Tensor singular = FromDoubles(DataType::kFloat, {2, 2}, {1, 2, 2, 4});
  const auto y = RunOp({.type = "Slogdet", .inputs = {{"x", singular}}});
  ASSERT_TRUE(y.ok());
  EXPECT_EQ(ToDoubles((*y)[0])[0], 0);
  EXPECT_EQ(ToDoubles((*y)[1])[0], -INFINITY);
}

TEST(Cholesky, TimesItsAdjointIsTheMatrix) {
  for (const DataType dtype : {DataType::kFloat, DataType::kDouble, DataType::kComplex64,
                               DataType::kComplex128, DataType::kFloat16}) {
    for (const int64_t n : {0, 1, 4}) {
      Matrix all;
      for (uint32_t i = 0; i < 3; ++i) {
        const Matrix root = Drawn(dtype, 1, n, n, 2, i);
        const Matrix square = MatrixProduct(root, Adjoint(root, n, n), n, n, n);
        all.insert(all.end(), square.begin(), square.end());
      }
      const Tensor x = MatrixTensor(dtype, {3, n, n}, all);
      const Matrix y = ToMatrix(RunOne({.type = "Cholesky", .inputs = {{"x", x}}}));
      for (int64_t i = 0; i < 3; ++i) {
        const Matrix lower = Part(y, i, n * n);
        for (int64_t k = 0; k < n * n; ++k) {
          if (k % n <= k / n) continue;
          EXPECT_EQ(lower[static_cast<size_t>(k)], C(0));
        }
        ExpectNear(MatrixProduct(lower, Adjoint(lower, n, n), n, n, n), Part(ToMatrix(x), i, n * n),
                   10 * Tolerance(dtype));
      }
    }
  }
}

TEST(Qr, IsUnitaryTimesUpper) {
  for (const DataType dtype : {DataType::kFloat, DataType::kDouble, DataType::kComplex64,
                               DataType::kComplex128, DataType::kFloat16}) {
    for (const bool full : {false, true}) {
      for (const auto& [rows, width] : std::vector<std::pair<int64_t, int64_t>>{
               {4, 4}, {5, 3}, {2, 6}, {1, 1}, {3, 0}, {0, 2}}) {
        const int64_t columns = full ? rows : std::min(rows, width);
        const Tensor x = MatrixTensor(dtype, {2, rows, width}, Drawn(dtype, 2, rows, width, 0, 3));
        const auto y = RunOp({.type = "Qr",
                              .inputs = {{"x", x}},
                              .attrs = {{"full_matrices", AttrValue::Bool(full)}}});
        ASSERT_TRUE(y.ok()) << y.status().ToString();
        ASSERT_EQ((*y)[0].shape(), Shape({2, rows, columns}));
        ASSERT_EQ((*y)[1].shape(), Shape({2, columns, width}));
        for (int64_t i = 0; i < 2; ++i) {
          const Matrix q = Part(ToMatrix((*y)[0]), i, rows * columns);
          const Matrix r = Part(ToMatrix((*y)[1]), i, columns * width);
          ExpectNear(MatrixProduct(q, r, rows, columns, width), Part(ToMatrix(x), i, rows * width),
                     Tolerance(dtype));
          ExpectNear(MatrixProduct(Adjoint(q, rows, columns), q, columns, rows, columns),
                     Unit(columns), Tolerance(dtype));
          for (int64_t k = 0; k < columns * width; ++k) {
            if (k % width >= k / width) continue;
            EXPECT_EQ(r[static_cast<size_t>(k)], C(0));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace npumesh
