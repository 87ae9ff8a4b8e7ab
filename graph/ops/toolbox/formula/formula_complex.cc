// Formulas on complex64. Products and quotients are computed in double and rounded once, so that
// nothing overflows on the way.
#include <cmath>
#include <complex>

#include "graph/ops/toolbox/formula/formula_loops.h"

namespace npumesh {
namespace {

using C = std::complex<float>;
using Wide = std::complex<double>;

C Rounded(double real, double imag) {
  return {static_cast<float>(real), static_cast<float>(imag)};
}

C Mul(C a, C b) {
  const Wide x = a;
  const Wide y = b;
  return Rounded(x.real() * y.real() - x.imag() * y.imag(),
                 x.real() * y.imag() + x.imag() * y.real());
}
C Div(C a, C b) {
  const Wide x = a;
  const Wide y = b;
  const double size = y.real() * y.real() + y.imag() * y.imag();
  return Rounded((x.real() * y.real() + x.imag() * y.imag()) / size,
                 (x.imag() * y.real() - x.real() * y.imag()) / size);
}
double Magnitude(C x) {
  return std::hypot(static_cast<double>(x.real()), x.imag());
}
C Sign(C x) {
  const double size = Magnitude(x);
  return size == 0 ? C() : Rounded(x.real() / size, x.imag() / size);
}

constexpr FormulaRow kComplexRows[] = {
    {Formula::kAdd, PairsOf<C>(std::plus<>())},
    {Formula::kSub, PairsOf<C>(std::minus<>())},
    {Formula::kMul, PairsOf<C>([](C a, C b) { return Mul(a, b); })},
    {Formula::kDiv, PairsOf<C>([](C a, C b) { return Div(a, b); })},
    {Formula::kEqual, PairsOf<C, uint8_t>(std::equal_to<>())},
    {Formula::kNotEqual, PairsOf<C, uint8_t>(std::not_equal_to<>())},
    {Formula::kScale, EachOf<C>([](C x, const FormulaParams& params) {
       return C(x.real() * params[0], x.imag() * params[0]);
     })},
    {Formula::kNeg, EachOf<C>(std::negate<>())},
    {Formula::kReciprocal, EachOf<C>([](C x) {
       return Div({1.0f, 0.0f}, x);
     })},
    {Formula::kSquare, EachOf<C>([](C x) { return Mul(x, x); })},
    {Formula::kAbs, EachOf<C, float>([](C x) { return static_cast<float>(Magnitude(x)); })},
    {Formula::kSign, EachOf<C>([](C x) { return Sign(x); })},
};

}  // namespace

BlockFn ComplexBlock(Formula formula) {
  return FindBlock(kComplexRows, formula);
}

}  // namespace npumesh
