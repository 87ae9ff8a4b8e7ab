// Systems of equations and decompositions of batches of matrices: MatrixTriangularSolve,
// MatrixInverse, MatrixDeterminant, LogMatrixDeterminant, Slogdet, Cholesky, Qr.
//
// Numbers are computed in double or as pairs of doubles and rounded once. Inverses and determinants
// come from Gaussian elimination with partial pivoting, Cholesky from the lower triangle alone, Qr
// from Householder reflections with the signs of LAPACK's geqrf: each makes the leading element of
// its column real, of the other sign.
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>
#include <utility>

#include "graph/ops/core/define.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/values/cast.h"

namespace npumesh {
namespace {

using Wide = std::complex<double>;

constexpr TypeSet kWideNumbers = {DataType::kFloat, DataType::kDouble, DataType::kComplex64,
                                  DataType::kComplex128};
constexpr TypeSet kWideAndHalf = kWideNumbers | DataType::kFloat16;

double Conjugate(double x) {
  return x;
}
Wide Conjugate(Wide x) {
  return std::conj(x);
}

// Matrices of doubles, or of pairs of them.
struct MatrixPlan : Planned {
  bool complex = false;
  int64_t count = 1;            // of matrices
  int64_t rows = 0, width = 0;  // of one
  int64_t columns = 0;          // of the second matrix
  bool lower = true, adjoint = false;
  size_t bytes = 0;  // of an element
  ConvertFn load = nullptr, store = nullptr;
  Workspace<double> first, second;
  Workspace<int64_t> order;
};

// Takes what the dtype decides.
void TakeType(MatrixPlan& plan, DataType dtype) {
  plan.complex = dtype == DataType::kComplex64 || dtype == DataType::kComplex128;
  const DataType wide = plan.complex ? DataType::kComplex128 : DataType::kDouble;
  plan.bytes = WidthOf(dtype);
  plan.load = FindNumberConvert(dtype, wide);
  plan.store = FindNumberConvert(wide, dtype);
}

// Of rows x columns; none where there are no matrices, whose sizes no tensor bounds then.
Workspace<double> TakeMatrix(MatrixPlan& plan, int64_t rows, int64_t columns, int64_t more = 0) {
  const int64_t elements = plan.count == 0 ? 0 : rows * columns + more;
  return plan.scratch.Take<double>(plan.complex ? 2 * elements : elements);
}

// The matrices of the only input; square ones where it is asked for.
MatrixPlan PlanMatrices(const OpContext& op, TypeSet types, bool square, Check& check) {
  check.RankAtLeast(op.schema().inputs[0].name, types, 2);
  if (!check.ok()) return {};
  const auto& [dtype, shape] = op.in(0);
  MatrixPlan plan;
  const int rank = shape.rank();
  plan.rows = shape[rank - 2];
  plan.width = shape[rank - 1];
  plan.count = ElementsBetween(shape, 0, rank - 2);
  check.That(!square || plan.rows == plan.width, "x {}: its matrices are not square", shape);
  TakeType(plan, dtype);
  plan.first = TakeMatrix(plan, plan.rows, plan.width);
  plan.columns = plan.width;
  return plan;
}

template <typename T>
T* Room(const Workspace<double>& room, const KernelArgs& args) {
  return reinterpret_cast<T*>(room(args));
}

// Calls run(Number()) with double or a pair of doubles.
template <typename F>
Status ByNumber(const MatrixPlan& plan, F run) {
  return plan.complex ? run(Wide()) : run(double());
}

void Load(const MatrixPlan& plan, const void* data, int64_t matrix, int64_t elements, void* to) {
  const auto count = static_cast<size_t>(elements);
  plan.load(static_cast<const std::byte*>(data) + static_cast<size_t>(matrix) * count * plan.bytes,
            to, count);
}

void Store(const MatrixPlan& plan, const void* from, void* data, int64_t matrix, int64_t elements) {
  const auto count = static_cast<size_t>(elements);
  plan.store(from, static_cast<std::byte*>(data) + static_cast<size_t>(matrix) * count * plan.bytes,
             count);
}

// ---- MatrixTriangularSolve ----

MatrixPlan PlanTriangularSolve(const OpContext& op, Check& check) {
  MatrixPlan plan = PlanMatrices(op, kWideNumbers, true, check);
  check.SameType("matrix", "rhs");
  check.RankAtLeast("rhs", kWideNumbers, 2);
  if (!check.ok()) return {};
  const Shape& rhs = op.in("rhs").shape;
  Shape expected = op.in("matrix").shape;
  expected[expected.rank() - 1] = rhs[rhs.rank() - 1];
  check.Shape("rhs", expected);
  plan.columns = rhs[rhs.rank() - 1];
  plan.lower = op.attr_bool("lower");
  plan.adjoint = op.attr_bool("adjoint");
  plan.second = TakeMatrix(plan, plan.rows, plan.columns);
  plan.outputs = {op.in("rhs")};
  return plan;
}

// b becomes the x of a x = b. Rows are solved from the one that has the diagonal alone.
template <typename T>
void SolveTriangle(const MatrixPlan& plan, const T* a, T* b) {
  const int64_t n = plan.rows, columns = plan.columns;
  const bool forward = plan.lower != plan.adjoint;
  const auto at = [&](int64_t row, int64_t column) {
    return plan.adjoint ? Conjugate(a[column * n + row]) : a[row * n + column];
  };
  for (int64_t step = 0; step < n; ++step) {
    const int64_t row = forward ? step : n - 1 - step;
    for (int64_t known = 0; known < step; ++known) {
      const int64_t other = forward ? known : n - 1 - known;
      const T factor = at(row, other);
      for (int64_t c = 0; c < columns; ++c) b[row * columns + c] -= factor * b[other * columns + c];
    }
    for (int64_t c = 0; c < columns; ++c) b[row * columns + c] /= at(row, row);
  }
}

Status RunTriangularSolve(const MatrixPlan& plan, const KernelArgs& args) {
  return ByNumber(plan, [&](auto number) {
    using T = decltype(number);
    T *a = Room<T>(plan.first, args), *b = Room<T>(plan.second, args);
    for (int64_t i = 0; i < plan.count; ++i) {
      Load(plan, args.in[0], i, plan.rows * plan.rows, a);
      Load(plan, args.in[1], i, plan.rows * plan.columns, b);
      SolveTriangle(plan, a, b);
      Store(plan, b, args.out[0], i, plan.rows * plan.columns);
    }
    return Status();
  });
}

// ---- Elimination: inverses and determinants ----

// a becomes its triangles L (with ones on the diagonal) and U, of the rows in `order`. Of each
// column the largest element that is left is the pivot. True: an odd number of rows changed places.
template <typename T>
bool Eliminate(int64_t n, T* a, int64_t* order) {
  bool odd = false;
  std::iota(order, order + n, 0);
  for (int64_t k = 0; k < n; ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < n; ++i) {
      if (std::abs(a[i * n + k]) > std::abs(a[pivot * n + k])) pivot = i;
    }
    if (pivot != k) {
      std::swap_ranges(a + k * n, a + (k + 1) * n, a + pivot * n);
      std::swap(order[k], order[pivot]);
      odd = !odd;
    }
    if (a[k * n + k] == T(0)) continue;
    for (int64_t i = k + 1; i < n; ++i) {
      const T factor = a[i * n + k] / a[k * n + k];
      a[i * n + k] = factor;
      for (int64_t j = k + 1; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
    }
  }
  return odd;
}

MatrixPlan PlanInverse(const OpContext& op, Check& check) {
  MatrixPlan plan = PlanMatrices(op, kWideNumbers, true, check);
  plan.adjoint = op.attr_bool("adjoint");
  plan.second = TakeMatrix(plan, plan.rows, plan.rows);
  plan.order = plan.scratch.Take<int64_t>(plan.rows);
  plan.outputs = {op.in(0)};
  return plan;
}

// x = the inverse of what was eliminated to a: L and U are solved for each unit vector.
template <typename T>
void InverseOf(int64_t n, const T* a, const int64_t* order, T* x) {
  for (int64_t c = 0; c < n; ++c) {
    for (int64_t i = 0; i < n; ++i) {
      T sum = order[i] == c ? T(1) : T(0);
      for (int64_t j = 0; j < i; ++j) sum -= a[i * n + j] * x[j * n + c];
      x[i * n + c] = sum;
    }
    for (int64_t i = n; i-- > 0;) {
      T sum = x[i * n + c];
      for (int64_t j = i + 1; j < n; ++j) sum -= a[i * n + j] * x[j * n + c];
      x[i * n + c] = sum / a[i * n + i];
    }
  }
}

Status RunInverse(const MatrixPlan& plan, const KernelArgs& args) {
  return ByNumber(plan, [&](auto number) -> Status {
    using T = decltype(number);
    const int64_t n = plan.rows;
    T *a = Room<T>(plan.first, args), *x = Room<T>(plan.second, args);
    int64_t* order = plan.order(args);
    for (int64_t i = 0; i < plan.count; ++i) {
      Load(plan, args.in[0], i, n * n, x);
      for (int64_t r = 0; r < n; ++r) {
        for (int64_t c = 0; c < n; ++c) {
          a[r * n + c] = plan.adjoint ? Conjugate(x[c * n + r]) : x[r * n + c];
        }
      }
      Eliminate(n, a, order);
      for (int64_t k = 0; k < n; ++k) {
        if (a[k * n + k] == T(0)) {
          return Error(Code::kInvalidArgument, "{}: matrix {} has no inverse", plan.who, i);
        }
      }
      InverseOf(n, a, order, x);
      Store(plan, x, args.out[0], i, n * n);
    }
    return Status();
  });
}

// Of one output, or of two: the sign and the logarithm of the absolute value.
template <bool kLogarithm, bool kComplexToo>
MatrixPlan PlanDeterminant(const OpContext& op, Check& check) {
  constexpr TypeSet kReals = {DataType::kFloat, DataType::kDouble, DataType::kFloat16};
  MatrixPlan plan = PlanMatrices(op, kComplexToo ? kWideNumbers : kReals, true, check);
  if (!check.ok()) return {};
  plan.order = plan.scratch.Take<int64_t>(plan.rows);
  const auto& [dtype, shape] = op.in(0);
  const Shape batch =
      Shape(std::vector<int64_t>(shape.dims().begin(), shape.dims().begin() + shape.rank() - 2));
  plan.outputs.assign(kLogarithm ? 2 : 1, {dtype, batch});
  return plan;
}

template <bool kLogarithm>
Status RunDeterminant(const MatrixPlan& plan, const KernelArgs& args) {
  return ByNumber(plan, [&](auto number) {
    using T = decltype(number);
    const int64_t n = plan.rows;
    T* a = Room<T>(plan.first, args);
    for (int64_t i = 0; i < plan.count; ++i) {
      Load(plan, args.in[0], i, n * n, a);
      T product = Eliminate(n, a, plan.order(args)) ? T(-1) : T(1);
      double logarithm = 0;
      for (int64_t k = 0; k < n; ++k) {
        const T pivot = a[k * n + k];
        if constexpr (kLogarithm) {
          const double size = std::abs(pivot);
          logarithm += std::log(size);
          product *= size == 0 ? T(0) : pivot / size;
        } else {
          product *= pivot;
        }
      }
      Store(plan, &product, args.out[0], i, 1);
      if constexpr (kLogarithm) {
        const T value = T(logarithm);
        Store(plan, &value, args.out[1], i, 1);
      }
    }
    return Status();
  });
}

// ---- Cholesky ----

MatrixPlan PlanCholesky(const OpContext& op, Check& check) {
  MatrixPlan plan = PlanMatrices(op, kWideAndHalf, true, check);
  plan.outputs = {op.in(0)};
  return plan;
}

// a becomes the lower L of L L^H = a. False: a is not positive definite.
template <typename T>
bool Factorise(int64_t n, T* a) {
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = j; i < n; ++i) {
      T sum = a[i * n + j];
      for (int64_t k = 0; k < j; ++k) sum -= a[i * n + k] * Conjugate(a[j * n + k]);
      if (i == j) {
        const double square = std::real(sum);
        if (!(square > 0)) return false;
        a[j * n + j] = T(std::sqrt(square));
      } else {
        a[i * n + j] = sum / a[j * n + j];
      }
    }
    for (int64_t i = 0; i < j; ++i) a[i * n + j] = T(0);
  }
  return true;
}

Status RunCholesky(const MatrixPlan& plan, const KernelArgs& args) {
  return ByNumber(plan, [&](auto number) -> Status {
    using T = decltype(number);
    const int64_t n = plan.rows;
    T* a = Room<T>(plan.first, args);
    for (int64_t i = 0; i < plan.count; ++i) {
      Load(plan, args.in[0], i, n * n, a);
      if (!Factorise(n, a)) {
        return Error(Code::kInvalidArgument, "{}: matrix {} is not positive definite", plan.who, i);
      }
      Store(plan, a, args.out[0], i, n * n);
    }
    return Status();
  });
}

// ---- Qr ----

MatrixPlan PlanQr(const OpContext& op, Check& check) {
  MatrixPlan plan = PlanMatrices(op, kWideAndHalf, false, check);
  if (!check.ok()) return {};
  const auto& [dtype, shape] = op.in(0);
  plan.columns = op.attr_bool("full_matrices") ? plan.rows : std::min(plan.rows, plan.width);
  Shape q = shape, r = shape;
  q[shape.rank() - 1] = plan.columns;
  r[shape.rank() - 2] = plan.columns;
  check.Keep(q.Check().WithContext(op.Who()));
  if (!check.ok()) return {};
  plan.second = TakeMatrix(plan, plan.rows, plan.columns, std::min(plan.rows, plan.width));
  plan.outputs = {{dtype, q}, {dtype, r}};
  return plan;
}

// x[k:, first:] -= factor * v v^H x[k:, first:], where v is 1 and what lies below the diagonal in
// column k of a.
template <typename T>
void Reflect(const T* a, int64_t width, int64_t rows, int64_t k, T factor, T* x, int64_t columns,
             int64_t first) {
  const auto v = [&](int64_t row) { return row == k ? T(1) : a[row * width + k]; };
  for (int64_t c = first; c < columns; ++c) {
    T sum = T(0);
    for (int64_t row = k; row < rows; ++row) sum += Conjugate(v(row)) * x[row * columns + c];
    sum *= factor;
    for (int64_t row = k; row < rows; ++row) x[row * columns + c] -= v(row) * sum;
  }
}

// Makes column k real and 0 below the diagonal, where it leaves the vector of the reflection;
// gives the factor of the reflection.
template <typename T>
T Reflection(T* a, int64_t width, int64_t rows, int64_t k) {
  double below = 0;
  for (int64_t row = k + 1; row < rows; ++row) below += std::norm(a[row * width + k]);
  const T lead = a[k * width + k];
  if (below == 0 && std::imag(lead) == 0) return T(0);
  const double size = std::sqrt(below + std::norm(lead));
  const double beta = -std::copysign(size, std::real(lead));
  for (int64_t row = k + 1; row < rows; ++row) a[row * width + k] /= lead - beta;
  a[k * width + k] = T(beta);
  return (beta - lead) / beta;
}

template <typename T>
void Decompose(const MatrixPlan& plan, T* a, T* q, T* factors) {
  const int64_t rows = plan.rows, width = plan.width, count = std::min(rows, width);
  for (int64_t k = 0; k < count; ++k) {
    factors[k] = Reflection(a, width, rows, k);
    Reflect(a, width, rows, k, Conjugate(factors[k]), a, width, k + 1);
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < plan.columns; ++j) q[i * plan.columns + j] = i == j ? T(1) : T(0);
  }
  for (int64_t k = count; k-- > 0;) {
    Reflect(a, width, rows, k, factors[k], q, plan.columns, 0);
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < std::min(i, width); ++j) a[i * width + j] = T(0);
  }
}

Status RunQr(const MatrixPlan& plan, const KernelArgs& args) {
  return ByNumber(plan, [&](auto number) {
    using T = decltype(number);
    T *a = Room<T>(plan.first, args), *q = Room<T>(plan.second, args);
    for (int64_t i = 0; i < plan.count; ++i) {
      Load(plan, args.in[0], i, plan.rows * plan.width, a);
      Decompose(plan, a, q, q + plan.rows * plan.columns);
      Store(plan, q, args.out[0], i, plan.rows * plan.columns);
      Store(plan, a, args.out[1], i, plan.columns * plan.width);
    }
    return Status();
  });
}

}  // namespace

void RegisterLinearAlgebraOps(OpRegistry& registry) {
  registry.Add(Define<PlanTriangularSolve, RunTriangularSolve>(
      "MatrixTriangularSolve(matrix, rhs; lower=true, adjoint=false) -> y"));
  registry.Add(Define<PlanInverse, RunInverse>("MatrixInverse(x; adjoint=false) -> y"));
  registry.Add(
      Define<PlanDeterminant<false, true>, RunDeterminant<false>>("MatrixDeterminant(x) -> y"));
  registry.Add(Define<PlanDeterminant<true, true>, RunDeterminant<true>>(
      "LogMatrixDeterminant(x) -> sign, y"));
  registry.Add(Define<PlanDeterminant<true, false>, RunDeterminant<true>>("Slogdet(x) -> sign, y"));
  registry.Add(Define<PlanCholesky, RunCholesky>("Cholesky(x) -> y"));
  registry.Add(Define<PlanQr, RunQr>("Qr(x; full_matrices=false) -> q, r"));
}

}  // namespace npumesh
