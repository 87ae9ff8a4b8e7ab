// Numbers that remember how they were computed, so that a model written once in plain loops gives
// its value and, walked backwards, its gradients (reverse mode; Griewank and Walther, Evaluating
// Derivatives, 2008).
//
// The references of whole models are written with these, scalar by scalar and in double, and know
// nothing of tensors, operators or the engine. What a tape says of a gradient is itself checked by
// central differences (ExpectCentralDifferences of parameters.h, for each model).
#ifndef NPUMESH_TESTS_MODELS_TAPE_H_
#define NPUMESH_TESTS_MODELS_TAPE_H_

#include <cmath>
#include <cstdint>
#include <vector>

namespace npumesh::models {

class Tape;

// A number; a constant when it has no tape.
struct Real {
  Real() = default;
  Real(double constant) : value(constant) {}  // NOLINT: numbers mix with constants
  Real(double number, Tape* on, int32_t at) : value(number), tape(on), place(at) {}

  double value = 0;
  Tape* tape = nullptr;
  int32_t place = -1;
};

class Tape {
 public:
  // A number that gradients are asked for.
  Real Variable(double value) { return Record(value, {}, 0, {}, 0); }

  // `value` computed from a and b, with these partial derivatives.
  Real Record(double value, const Real& a, double slope_a, const Real& b, double slope_b) {
    entries_.push_back({a.place, b.place, slope_a, slope_b});
    return {value, this, static_cast<int32_t>(entries_.size()) - 1};
  }

  // d of / d v for every number v of the tape, by place.
  std::vector<double> Gradients(const Real& of) const {
    std::vector<double> slopes(entries_.size(), 0);
    if (of.place < 0) return slopes;
    slopes[static_cast<size_t>(of.place)] = 1;
    for (size_t i = entries_.size(); i-- > 0;) {
      const Entry& entry = entries_[i];
      if (entry.a >= 0) slopes[static_cast<size_t>(entry.a)] += slopes[i] * entry.slope_a;
      if (entry.b >= 0) slopes[static_cast<size_t>(entry.b)] += slopes[i] * entry.slope_b;
    }
    return slopes;
  }

 private:
  struct Entry {
    int32_t a;
    int32_t b;
    double slope_a;
    double slope_b;
  };
  std::vector<Entry> entries_;
};

inline Real Computed(double value, const Real& a, double slope_a, const Real& b = {},
                     double slope_b = 0) {
  Tape* const tape = a.tape != nullptr ? a.tape : b.tape;
  return tape == nullptr ? Real(value) : tape->Record(value, a, slope_a, b, slope_b);
}

inline Real operator+(const Real& a, const Real& b) {
  return Computed(a.value + b.value, a, 1, b, 1);
}
inline Real operator-(const Real& a, const Real& b) {
  return Computed(a.value - b.value, a, 1, b, -1);
}
inline Real operator*(const Real& a, const Real& b) {
  return Computed(a.value * b.value, a, b.value, b, a.value);
}
inline Real operator/(const Real& a, const Real& b) {
  return Computed(a.value / b.value, a, 1 / b.value, b, -a.value / (b.value * b.value));
}
inline Real operator-(const Real& a) {
  return Computed(-a.value, a, -1);
}
inline Real& operator+=(Real& a, const Real& b) {
  return a = a + b;
}
inline Real Exp(const Real& a) {
  return Computed(std::exp(a.value), a, std::exp(a.value));
}
inline Real Log(const Real& a) {
  return Computed(std::log(a.value), a, 1 / a.value);
}
inline Real Sqrt(const Real& a) {
  return Computed(std::sqrt(a.value), a, 0.5 / std::sqrt(a.value));
}
inline Real Tanh(const Real& a) {
  const double y = std::tanh(a.value);
  return Computed(y, a, 1 - y * y);
}
inline Real Relu(const Real& a) {
  return a.value > 0 ? a : Real(0);
}
inline Real Sigmoid(const Real& a) {
  const double y = 1 / (1 + std::exp(-a.value));
  return Computed(y, a, y * (1 - y));
}
// ln(1 + exp(-|x|)) + max(x, 0), which does not overflow.
inline Real Softplus(const Real& a) {
  const double y = std::log1p(std::exp(-std::abs(a.value))) + std::max(a.value, 0.0);
  return Computed(y, a, 1 / (1 + std::exp(-a.value)));
}

using Reals = std::vector<Real>;

}  // namespace npumesh::models

#endif  // NPUMESH_TESTS_MODELS_TAPE_H_
