// Formulas of activations that several tests compare with.
#ifndef NPUMESH_TESTS_UNIT_OPS_ELEMENTWISE_ACTIVATION_FORMULAS_H_
#define NPUMESH_TESTS_UNIT_OPS_ELEMENTWISE_ACTIVATION_FORMULAS_H_

#include <cmath>

namespace npumesh {

// The logistic function.
inline long double Sigma(long double x) {
  return 1 / (1 + expl(-x));
}
// The tanh form of GELU. Digits are lost where the result is near 0.
inline long double GeluTanh(long double x) {
  return 0.5L * x * (1 + tanhl(sqrtl(2 / acosl(-1)) * (x + 0.044715L * x * x * x)));
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_OPS_ELEMENTWISE_ACTIVATION_FORMULAS_H_
