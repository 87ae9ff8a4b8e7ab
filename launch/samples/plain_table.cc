#include "launch/samples/plain_table.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace npumesh {

Table Table::Zeros(int64_t rows, int64_t columns) {
  return {rows, columns, std::vector<double>(static_cast<size_t>(rows * columns))};
}

Table Table::Random(int64_t rows, int64_t columns, double scale, uint64_t seed) {
  Table table = Zeros(rows, columns);
  std::mt19937_64 random(seed);
  for (double& value : table.values) {
    const double unit = static_cast<double>(random() >> 40) * 0x1p-23 - 1;
    value = static_cast<float>(unit * scale);
  }
  return table;
}

Tensor TensorOf(const Table& table, Shape shape) {
  const std::vector<float> narrow(table.values.begin(), table.values.end());
  return Tensor::FromVector<float>({DataType::kFloat, std::move(shape)}, narrow);
}

Tensor TensorOf(const Table& table) {
  return TensorOf(table, {table.rows, table.columns});
}

Table Product(const Table& a, const Table& b) {
  Table c = Table::Zeros(a.rows, b.columns);
  for (int64_t row = 0; row < a.rows; ++row) {
    for (int64_t column = 0; column < b.columns; ++column) {
      for (int64_t k = 0; k < a.columns; ++k) c.at(row, column) += a.at(row, k) * b.at(k, column);
    }
  }
  return c;
}

Table Turned(const Table& a) {
  Table turned = Table::Zeros(a.columns, a.rows);
  for (int64_t row = 0; row < a.rows; ++row) {
    for (int64_t column = 0; column < a.columns; ++column) {
      turned.at(column, row) = a.at(row, column);
    }
  }
  return turned;
}

Table Sum(const Table& a, const Table& b) {
  Table sum = a;
  for (size_t i = 0; i < sum.values.size(); ++i) sum.values[i] += b.values[i];
  return sum;
}

Table SumOfRow(const Table& a, const Table& row) {
  Table sum = a;
  for (int64_t r = 0; r < a.rows; ++r) {
    for (int64_t column = 0; column < a.columns; ++column) sum.at(r, column) += row.at(0, column);
  }
  return sum;
}

Table Each(Table a, const std::function<double(double)>& function) {
  std::transform(a.values.begin(), a.values.end(), a.values.begin(), function);
  return a;
}

Table ColumnsOf(const Table& a, int64_t begin, int64_t count) {
  Table part = Table::Zeros(a.rows, count);
  for (int64_t row = 0; row < a.rows; ++row) {
    for (int64_t column = 0; column < count; ++column) {
      part.at(row, column) = a.at(row, begin + column);
    }
  }
  return part;
}

Table RmsNormOf(Table x, const Table& gamma, double epsilon) {
  for (int64_t row = 0; row < x.rows; ++row) {
    double squares = 0;
    for (int64_t i = 0; i < x.columns; ++i) squares += x.at(row, i) * x.at(row, i);
    const double root = std::sqrt(squares / static_cast<double>(x.columns) + epsilon);
    for (int64_t i = 0; i < x.columns; ++i) x.at(row, i) *= gamma.at(0, i) / root;
  }
  return x;
}

Table SoftmaxOf(Table x) {
  for (int64_t row = 0; row < x.rows; ++row) {
    double largest = x.at(row, 0), sum = 0;
    for (int64_t i = 0; i < x.columns; ++i) largest = std::max(largest, x.at(row, i));
    for (int64_t i = 0; i < x.columns; ++i) {
      x.at(row, i) = std::exp(x.at(row, i) - largest);
      sum += x.at(row, i);
    }
    for (int64_t i = 0; i < x.columns; ++i) x.at(row, i) /= sum;
  }
  return x;
}

double Relu(double x) {
  return std::max(x, 0.0);
}

double Silu(double x) {
  return x / (1 + std::exp(-x));
}

}  // namespace npumesh
