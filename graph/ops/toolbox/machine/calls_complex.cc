// Complex numbers: complex64 and complex128. Products and quotients are computed in the next wider
// type and rounded once, so that nothing overflows on the way.
#include <cmath>
#include <complex>

#include "graph/ops/toolbox/machine/calls.h"

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

template <LoopType kType, typename T, typename WideT>
constexpr ElementCall kOfComplex[] = {
    {LoopOp::kAdd, kType, PairsOf<std::complex<T>>(std::plus<>())},
    {LoopOp::kSub, kType, PairsOf<std::complex<T>>(std::minus<>())},
    {LoopOp::kMul, kType, PairsOf<std::complex<T>>([](std::complex<T> a, std::complex<T> b) {
       return Of<T, WideT>::Mul(a, b);
     })},
    {LoopOp::kDiv, kType, PairsOf<std::complex<T>>([](std::complex<T> a, std::complex<T> b) {
       return Of<T, WideT>::Div(a, b);
     })},
    {LoopOp::kEqual, kType, PairsOf<std::complex<T>, uint8_t>(std::equal_to<>())},
    {LoopOp::kNotEqual, kType, PairsOf<std::complex<T>, uint8_t>(std::not_equal_to<>())},
    {LoopOp::kScale, kType,
     EachOf<std::complex<T>>([](std::complex<T> x, const LaneParams& params) {
       const T factor = static_cast<T>(params[0]);
       return std::complex<T>(x.real() * factor, x.imag() * factor);
     })},
    {LoopOp::kNeg, kType, EachOf<std::complex<T>>(std::negate<>())},
    {LoopOp::kReciprocal, kType, EachOf<std::complex<T>>([](std::complex<T> x) {
       return Of<T, WideT>::Div({1, 0}, x);
     })},
    {LoopOp::kSquare, kType,
     EachOf<std::complex<T>>([](std::complex<T> x) { return Of<T, WideT>::Mul(x, x); })},
    {LoopOp::kAbs, kType, EachOf<std::complex<T>, T>([](std::complex<T> x) {
       return static_cast<T>(Of<T, WideT>::Magnitude(x));
     })},
    {LoopOp::kSign, kType,
     EachOf<std::complex<T>>([](std::complex<T> x) { return Of<T, WideT>::Sign(x); })},
};

constexpr CallTable kComplexCalls[] = {
    kOfComplex<LoopType::kComplex, float, double>,
    kOfComplex<LoopType::kWideComplex, double, long double>,
};

}  // namespace

std::span<const CallTable> ComplexCalls() {
  return kComplexCalls;
}

}  // namespace npumesh
