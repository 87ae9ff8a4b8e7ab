// Formulas on complex64 and complex128. Products and quotients are computed in the next wider type
// and rounded once, so that nothing overflows on the way.
#include <cmath>
#include <complex>

#include "graph/ops/toolbox/formula/formula_loops.h"

namespace npumesh {
namespace {

// Of complex numbers whose parts are T, computed in parts of type Wide.
template <typename T, typename WideT>
struct Of {
  using C = std::complex<T>;
  using Wide = std::complex<WideT>;

  static C Rounded(WideT real, WideT imag) { return {static_cast<T>(real), static_cast<T>(imag)}; }
  static Wide Widened(C x) { return {x.real(), x.imag()}; }

  static C Mul(C a, C b) {
    const Wide x = Widened(a);
    const Wide y = Widened(b);
    return Rounded(x.real() * y.real() - x.imag() * y.imag(),
                   x.real() * y.imag() + x.imag() * y.real());
  }
  static C Div(C a, C b) {
    const Wide x = Widened(a);
    const Wide y = Widened(b);
    const WideT size = y.real() * y.real() + y.imag() * y.imag();
    return Rounded((x.real() * y.real() + x.imag() * y.imag()) / size,
                   (x.imag() * y.real() - x.real() * y.imag()) / size);
  }
  static WideT Magnitude(C x) {
    return std::hypot(static_cast<WideT>(x.real()), static_cast<WideT>(x.imag()));
  }
  static C Sign(C x) {
    const WideT size = Magnitude(x);
    return size == 0 ? C() : Rounded(x.real() / size, x.imag() / size);
  }
};

template <typename T, typename WideT>
constexpr FormulaRow kComplexRows[] = {
    {Formula::kAdd, PairsOf<std::complex<T>>(std::plus<>())},
    {Formula::kSub, PairsOf<std::complex<T>>(std::minus<>())},
    {Formula::kMul, PairsOf<std::complex<T>>([](std::complex<T> a, std::complex<T> b) {
       return Of<T, WideT>::Mul(a, b);
     })},
    {Formula::kDiv, PairsOf<std::complex<T>>([](std::complex<T> a, std::complex<T> b) {
       return Of<T, WideT>::Div(a, b);
     })},
    {Formula::kEqual, PairsOf<std::complex<T>, uint8_t>(std::equal_to<>())},
    {Formula::kNotEqual, PairsOf<std::complex<T>, uint8_t>(std::not_equal_to<>())},
    {Formula::kScale, EachOf<std::complex<T>>([](std::complex<T> x, const FormulaParams& params) {
       const T factor = static_cast<T>(params[0]);
       return std::complex<T>(x.real() * factor, x.imag() * factor);
     })},
    {Formula::kNeg, EachOf<std::complex<T>>(std::negate<>())},
    {Formula::kReciprocal, EachOf<std::complex<T>>([](std::complex<T> x) {
       return Of<T, WideT>::Div({1, 0}, x);
     })},
    {Formula::kSquare,
     EachOf<std::complex<T>>([](std::complex<T> x) { return Of<T, WideT>::Mul(x, x); })},
    {Formula::kAbs, EachOf<std::complex<T>, T>([](std::complex<T> x) {
       return static_cast<T>(Of<T, WideT>::Magnitude(x));
     })},
    {Formula::kSign,
     EachOf<std::complex<T>>([](std::complex<T> x) { return Of<T, WideT>::Sign(x); })},
};

}  // namespace

BlockFn ComplexBlock(Formula formula, bool wide) {
  return wide ? FindBlock(kComplexRows<double, long double>, formula)
              : FindBlock(kComplexRows<float, double>, formula);
}

}  // namespace npumesh
