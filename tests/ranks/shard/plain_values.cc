#include "tests/ranks/shard/plain_values.h"

#include <algorithm>
#include <cmath>

namespace npumesh {
namespace {

Plain Zeros(std::vector<int64_t> shape) {
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;
  return {std::move(shape), std::vector<double>(static_cast<size_t>(count))};
}

double& At(Plain& x, int64_t row, int64_t column) {
  return x.values[static_cast<size_t>(row * x.columns() + column)];
}

double At(const Plain& x, int64_t row, int64_t column) {
  return x.values[static_cast<size_t>(row * x.columns() + column)];
}

std::vector<int64_t> WithColumns(const Plain& x, int64_t columns) {
  std::vector<int64_t> shape = x.shape;
  shape.back() = columns;
  return shape;
}

}  // namespace

Plain PlainProduct(const Plain& x, const Plain& weight, bool transposed) {
  const int64_t columns = transposed ? weight.shape[0] : weight.shape[1];
  Plain y = Zeros(WithColumns(x, columns));
  for (int64_t row = 0; row < x.rows(); ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      double sum = 0;
      for (int64_t k = 0; k < x.columns(); ++k) {
        sum += At(x, row, k) * (transposed ? At(weight, column, k) : At(weight, k, column));
      }
      At(y, row, column) = sum;
    }
  }
  return y;
}

Plain PlainWith(const Plain& a, const Plain& b, const std::function<double(double, double)>& f) {
  Plain y = a;
  for (size_t i = 0; i < y.values.size(); ++i) {
    y.values[i] = f(a.values[i], b.values[i % b.values.size()]);
  }
  return y;
}

Plain PlainEach(const Plain& x, const std::function<double(double)>& f) {
  Plain y = x;
  for (double& value : y.values) value = f(value);
  return y;
}

Plain PlainRmsNorm(const Plain& x, const Plain& gamma, double epsilon) {
  Plain y = x;
  for (int64_t row = 0; row < x.rows(); ++row) {
    double squares = 0;
    for (int64_t i = 0; i < x.columns(); ++i) squares += At(x, row, i) * At(x, row, i);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(x.columns()) + epsilon);
    for (int64_t i = 0; i < x.columns(); ++i) {
      At(y, row, i) = At(x, row, i) * scale * gamma.values[static_cast<size_t>(i)];
    }
  }
  return y;
}

Plain PlainLayerNorm(const Plain& x, const Plain& gamma, const Plain& beta, double epsilon) {
  Plain centred = x;
  for (int64_t row = 0; row < x.rows(); ++row) {
    double sum = 0;
    for (int64_t i = 0; i < x.columns(); ++i) sum += At(x, row, i);
    for (int64_t i = 0; i < x.columns(); ++i) {
      At(centred, row, i) -= sum / static_cast<double>(x.columns());
    }
  }
  const Plain scaled = PlainRmsNorm(centred, gamma, epsilon);
  return PlainWith(scaled, beta, [](double a, double b) { return a + b; });
}

Plain PlainColumns(const Plain& x, int64_t from, int64_t count) {
  Plain y = Zeros(WithColumns(x, count));
  for (int64_t row = 0; row < x.rows(); ++row) {
    for (int64_t i = 0; i < count; ++i) At(y, row, i) = At(x, row, from + i);
  }
  return y;
}

Plain PlainRows(const Plain& table, const std::vector<int64_t>& rows) {
  Plain y = Zeros({static_cast<int64_t>(rows.size()), table.columns()});
  for (size_t row = 0; row < rows.size(); ++row) {
    for (int64_t i = 0; i < table.columns(); ++i) {
      At(y, static_cast<int64_t>(row), i) = At(table, rows[row], i);
    }
  }
  return y;
}

Plain PlainBelow(const Plain& a, const Plain& b) {
  Plain y{{a.rows() + b.rows(), a.columns()}, a.values};
  y.values.insert(y.values.end(), b.values.begin(), b.values.end());
  return y;
}

Plain PlainJoined(const Plain& x) {
  const int64_t heads = x.shape[0], rows = x.shape[1], size = x.shape[2];
  Plain y = Zeros({rows, heads * size});
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i < size; ++i) {
        At(y, row, head * size + i) = At(x, head * rows + row, i);
      }
    }
  }
  return y;
}

Plain PlainApart(const Plain& x, int64_t heads) {
  const int64_t rows = x.rows(), size = x.columns() / heads;
  Plain y = Zeros({heads, rows, size});
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i < size; ++i) {
        At(y, head * rows + row, i) = At(x, row, head * size + i);
      }
    }
  }
  return y;
}

Plain PlainAttention(const Plain& query, const Plain& key, const Plain& value,
                     const PlainHeads& heads) {
  const int64_t size = query.columns() / heads.heads;
  Plain y = Zeros(query.shape);
  for (int head = 0; head < heads.heads; ++head) {
    const int64_t mine = head * size;
    const int64_t theirs = head / (heads.heads / heads.shared) * size;
    for (int64_t row = 0; row < query.rows(); ++row) {
      const int64_t seen = heads.before + row + 1;
      std::vector<double> weights(static_cast<size_t>(seen));
      double sum = 0;
      for (int64_t other = 0; other < seen; ++other) {
        double score = 0;
        for (int64_t i = 0; i < size; ++i) {
          score += At(query, row, mine + i) * At(key, other, theirs + i);
        }
        double& weight = weights[static_cast<size_t>(other)];
        weight = std::exp(score / std::sqrt(static_cast<double>(size)));
        sum += weight;
      }
      for (int64_t other = 0; other < seen; ++other) {
        const double weight = weights[static_cast<size_t>(other)] / sum;
        for (int64_t i = 0; i < size; ++i) {
          At(y, row, mine + i) += weight * At(value, other, theirs + i);
        }
      }
    }
  }
  return y;
}

}  // namespace npumesh
