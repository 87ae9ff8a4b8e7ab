// Layers written out in loops, for the references of whole models. Everything is row-major; a
// matrix is a vector of rows * columns numbers.
#ifndef NPUMESH_TESTS_MODELS_PLAIN_MATH_H_
#define NPUMESH_TESTS_MODELS_PLAIN_MATH_H_

#include <algorithm>
#include <numbers>

#include "tests/models/tape.h"

namespace npumesh::models {

inline size_t At(int64_t i) {
  return static_cast<size_t>(i);
}

// x [rows, in] times the transpose of w [out, in].
inline Reals LinearOf(const Reals& x, const Reals& w, int64_t in, int64_t out) {
  const int64_t rows = static_cast<int64_t>(x.size()) / in;
  Reals y(At(rows * out));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t o = 0; o < out; ++o) {
      Real sum;
      for (int64_t i = 0; i < in; ++i) sum += x[At(r * in + i)] * w[At(o * in + i)];
      y[At(r * out + o)] = sum;
    }
  }
  return y;
}

// Adds `bias` to each row.
inline Reals WithBias(Reals x, const Reals& bias) {
  for (size_t i = 0; i < x.size(); ++i) x[i] = x[i] + bias[i % bias.size()];
  return x;
}

inline Reals SumOf(Reals a, const Reals& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] = a[i] + b[i];
  return a;
}

inline Reals LayerNormOf(const Reals& x, const Reals& gamma, const Reals& beta, double epsilon) {
  const size_t width = gamma.size();
  const auto count = static_cast<double>(width);
  Reals y(x.size());
  for (size_t row = 0; row < x.size(); row += width) {
    Real mean, variance;
    for (size_t i = 0; i < width; ++i) mean += x[row + i] / count;
    for (size_t i = 0; i < width; ++i) {
      const Real off = x[row + i] - mean;
      variance += off * off / count;
    }
    const Real root = Sqrt(variance + epsilon);
    for (size_t i = 0; i < width; ++i) y[row + i] = (x[row + i] - mean) / root * gamma[i] + beta[i];
  }
  return y;
}

inline Reals RmsNormOf(const Reals& x, const Reals& gamma, double epsilon) {
  const size_t width = gamma.size();
  Reals y(x.size());
  for (size_t row = 0; row < x.size(); row += width) {
    Real square;
    for (size_t i = 0; i < width; ++i) square += x[row + i] * x[row + i];
    const Real root = Sqrt(square / static_cast<double>(width) + epsilon);
    for (size_t i = 0; i < width; ++i) y[row + i] = x[row + i] / root * gamma[i];
  }
  return y;
}

// Of each row of `width`.
inline Reals SoftmaxOf(const Reals& x, int64_t width) {
  Reals y(x.size());
  for (size_t row = 0; row < x.size(); row += At(width)) {
    double largest = x[row].value;
    for (int64_t i = 0; i < width; ++i) largest = std::max(largest, x[row + At(i)].value);
    Real sum;
    for (int64_t i = 0; i < width; ++i) sum += y[row + At(i)] = Exp(x[row + At(i)] - largest);
    for (int64_t i = 0; i < width; ++i) y[row + At(i)] = y[row + At(i)] / sum;
  }
  return y;
}

// The tanh form, which is what TorchAir makes of aten.gelu.
inline Real GeluOf(const Real& x) {
  const double factor = std::sqrt(2 / std::numbers::pi);
  return 0.5 * x * (1 + Tanh(factor * (x + 0.044715 * x * x * x)));
}

inline Real SiluOf(const Real& x) {
  return x * Sigmoid(x);
}

// Mean over the rows of -log softmax(logits)[target].
inline Real CrossEntropyOf(const Reals& logits, const std::vector<int64_t>& targets,
                           int64_t classes) {
  Real loss;
  for (size_t row = 0; row < targets.size(); ++row) {
    const size_t first = row * At(classes);
    double largest = logits[first].value;
    for (int64_t i = 0; i < classes; ++i) largest = std::max(largest, logits[first + At(i)].value);
    Real sum;
    for (int64_t i = 0; i < classes; ++i) sum += Exp(logits[first + At(i)] - largest);
    loss += Log(sum) + largest - logits[first + At(targets[row])];
  }
  return loss / static_cast<double>(targets.size());
}

}  // namespace npumesh::models

#endif  // NPUMESH_TESTS_MODELS_PLAIN_MATH_H_
