// Formulas on complex64. Products and quotients are computed in double and rounded once, so that
// nothing overflows on the way.
#include <cmath>
#include <complex>

#include "graph/ops/toolbox/formula/formula.h"

namespace npumesh {
namespace {

using C = std::complex<float>;
using Wide = std::complex<double>;

template <typename To, To (*kFunction)(C)>
void EachComplex(const void* const* in, void* out, size_t count, const FormulaParams& /*params*/) {
  const C* x = static_cast<const C*>(in[0]);
  To* y = static_cast<To*>(out);
  for (size_t i = 0; i < count; ++i) y[i] = kFunction(x[i]);
}

template <typename To, To (*kFunction)(C, C)>
void ComplexPairs(const void* const* in, void* out, size_t count, const FormulaParams& /*params*/) {
  const C* a = static_cast<const C*>(in[0]);
  const C* b = static_cast<const C*>(in[1]);
  To* y = static_cast<To*>(out);
  for (size_t i = 0; i < count; ++i) y[i] = kFunction(a[i], b[i]);
}

void Scale(const void* const* in, void* out, size_t count, const FormulaParams& params) {
  const C* x = static_cast<const C*>(in[0]);
  C* y = static_cast<C*>(out);
  for (size_t i = 0; i < count; ++i) y[i] = {x[i].real() * params[0], x[i].imag() * params[0]};
}

C Rounded(double real, double imag) {
  return {static_cast<float>(real), static_cast<float>(imag)};
}

C Add(C a, C b) {
  return {a.real() + b.real(), a.imag() + b.imag()};
}
C Sub(C a, C b) {
  return {a.real() - b.real(), a.imag() - b.imag()};
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
uint8_t Equal(C a, C b) {
  return a.real() == b.real() && a.imag() == b.imag();
}
uint8_t NotEqual(C a, C b) {
  return Equal(a, b) == 0;
}

C Neg(C x) {
  return {-x.real(), -x.imag()};
}
C Reciprocal(C x) {
  return Div({1.0f, 0.0f}, x);
}
C Square(C x) {
  return Mul(x, x);
}
float Abs(C x) {
  return static_cast<float>(std::hypot(static_cast<double>(x.real()), x.imag()));
}
C Sign(C x) {
  const double size = std::hypot(static_cast<double>(x.real()), x.imag());
  return size == 0 ? C() : Rounded(x.real() / size, x.imag() / size);
}

constexpr FormulaRow kComplexRows[] = {
    {Formula::kAdd, ComplexPairs<C, Add>},
    {Formula::kSub, ComplexPairs<C, Sub>},
    {Formula::kMul, ComplexPairs<C, Mul>},
    {Formula::kDiv, ComplexPairs<C, Div>},
    {Formula::kEqual, ComplexPairs<uint8_t, Equal>},
    {Formula::kNotEqual, ComplexPairs<uint8_t, NotEqual>},
    {Formula::kScale, Scale},
    {Formula::kNeg, EachComplex<C, Neg>},
    {Formula::kReciprocal, EachComplex<C, Reciprocal>},
    {Formula::kSquare, EachComplex<C, Square>},
    {Formula::kAbs, EachComplex<float, Abs>},
    {Formula::kSign, EachComplex<C, Sign>},
};

}  // namespace

BlockFn ComplexBlock(Formula formula) {
  return FindBlock(kComplexRows, formula);
}

}  // namespace npumesh
