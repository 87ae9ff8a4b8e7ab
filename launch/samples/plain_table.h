// Tables of numbers in double precision and plain loops: what the goldens of the samples are
// computed with. Nothing here knows of graphs or of the engine.
//
// Thread-safety: values.
#ifndef NPUMESH_LAUNCH_SAMPLES_PLAIN_TABLE_H_
#define NPUMESH_LAUNCH_SAMPLES_PLAIN_TABLE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "graph/ir/tensor.h"

namespace npumesh {

// Row-major.
struct Table {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<double> values;

  static Table Zeros(int64_t rows, int64_t columns);
  // Uniform in [-scale, scale); every value is a float32.
  static Table Random(int64_t rows, int64_t columns, double scale, uint64_t seed);

  double& at(int64_t row, int64_t column) {
    return values[static_cast<size_t>(row * columns + column)];
  }
  double at(int64_t row, int64_t column) const {
    return values[static_cast<size_t>(row * columns + column)];
  }
};

// As float32, rounded once; `shape` has as many elements as the table.
Tensor TensorOf(const Table& table, Shape shape);
Tensor TensorOf(const Table& table);  // [rows, columns]

// REQUIRES of all below: the sizes fit.
Table Product(const Table& a, const Table& b);
Table Turned(const Table& a);  // transposed
Table Sum(const Table& a, const Table& b);
Table SumOfRow(const Table& a, const Table& row);  // a plus `row` [1, columns] in each row
Table Each(Table a, const std::function<double(double)>& function);
Table ColumnsOf(const Table& a, int64_t begin, int64_t count);
// Of each row: x / sqrt(mean(x^2) + epsilon) * gamma, and softmax.
Table RmsNormOf(Table x, const Table& gamma, double epsilon);
Table SoftmaxOf(Table x);

double Relu(double x);
double Silu(double x);  // x * sigmoid(x)

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_SAMPLES_PLAIN_TABLE_H_
