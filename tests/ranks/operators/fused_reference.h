// Matrices of small integers and their products in double, for fused operators over ranks.
#ifndef NPUMESH_TESTS_RANKS_OPERATORS_FUSED_REFERENCE_H_
#define NPUMESH_TESTS_RANKS_OPERATORS_FUSED_REFERENCE_H_

#include <string>
#include <vector>

#include "tests/ranks/operators/rank_op.h"

namespace npumesh {

// What one rank multiplies: [kRows,kInner] by [kInner,kColumns].
inline constexpr int64_t kRows = 4;
inline constexpr int64_t kInner = 6;
inline constexpr int64_t kColumns = 5;

// The weights of one expert, or of one rank: [kWeightRows,kWeightColumns].
inline constexpr int64_t kWeightRows = 3;
inline constexpr int64_t kWeightColumns = 5;

// The types of operands that are not quantised.
inline constexpr DataType kFloatTypes[] = {DataType::kFloat16, DataType::kBfloat16,
                                           DataType::kFloat};

// Rows of doubles.
struct Matrix {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<double> values;

  double& At(int64_t r, int64_t c) { return values[static_cast<size_t>(r * columns + c)]; }
  double At(int64_t r, int64_t c) const { return values[static_cast<size_t>(r * columns + c)]; }
};

inline Matrix Zeros(int64_t rows, int64_t columns) {
  return {rows, columns, std::vector<double>(static_cast<size_t>(rows * columns))};
}

// -3 to 3, different from element to element and from seed to seed.
inline Matrix Numbers(int64_t rows, int64_t columns, int seed) {
  Matrix matrix = Zeros(rows, columns);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      matrix.At(r, c) = static_cast<double>((r * 5 + c * 3 + r * c + 2 * seed) % 7 - 3);
    }
  }
  return matrix;
}

inline Matrix Transposed(const Matrix& a) {
  Matrix t = Zeros(a.columns, a.rows);
  for (int64_t r = 0; r < a.rows; ++r) {
    for (int64_t c = 0; c < a.columns; ++c) t.At(c, r) = a.At(r, c);
  }
  return t;
}

inline Matrix Times(const Matrix& a, const Matrix& b) {
  EXPECT_EQ(a.columns, b.rows);
  Matrix y = Zeros(a.rows, b.columns);
  for (int64_t r = 0; r < a.rows; ++r) {
    for (int64_t c = 0; c < b.columns; ++c) {
      for (int64_t k = 0; k < a.columns; ++k) y.At(r, c) += a.At(r, k) * b.At(k, c);
    }
  }
  return y;
}

// Rows [first, first + count).
inline Matrix RowsOf(const Matrix& a, int64_t first, int64_t count) {
  return {count, a.columns,
          std::vector<double>(a.values.begin() + first * a.columns,
                              a.values.begin() + (first + count) * a.columns)};
}

// b under a.
inline void Append(Matrix& a, const Matrix& b) {
  a.rows += b.rows;
  a.columns = b.columns;
  a.values.insert(a.values.end(), b.values.begin(), b.values.end());
}

inline Tensor ToTensor(DataType dtype, const Matrix& a) {
  return FromDoubles(dtype, {a.rows, a.columns}, a.values);
}

// A call of an operator of the group of all ranks.
inline OpCall GroupCall(const std::string& type, std::vector<OpInput> inputs,
                        std::vector<std::pair<std::string, AttrValue>> attrs = {}) {
  attrs.push_back({"group", AttrValue::String("ranks")});
  return {.type = type, .inputs = std::move(inputs), .attrs = std::move(attrs)};
}

// The error of a call on all of `ranks` ranks, as the first of them tells it.
inline std::string MessageOf(int ranks, const OpCall& call) {
  const std::vector<Status> statuses =
      OnRanks(ranks, [&](Communicator& group, DeviceMemory& memory) -> Status {
        return RunOnRank(BuiltinOps(), call, group, memory).status();
      });
  return std::string(statuses[0].message());
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_RANKS_OPERATORS_FUSED_REFERENCE_H_
