// complex64: arithmetic on small integers, where everything is exact, and the Fourier transform
// against its defining sum.
#include <complex>
#include <numbers>

#include "tests/unit/op_test.h"

namespace npumesh {
namespace {

using C = std::complex<float>;

constexpr DataType kC64 = DataType::kComplex64;

Result<std::vector<Tensor>> Compute(const std::string& type, std::vector<OpInput> inputs,
                                    std::vector<std::pair<std::string, AttrValue>> attrs = {}) {
  return RunOp({.type = type, .inputs = std::move(inputs), .attrs = std::move(attrs)});
}

// The same small numbers in the other widths.
TEST(Complex, OtherWidths) {
  using D = std::complex<double>;
  const std::vector<D> a = {{1, 2}, {-3, 4}, {0, 5}}, b = {{3, -1}, {0, 2}, {0, 5}};
  const std::vector<std::pair<std::string, std::vector<D>>> cases = {
      {"Add", {{4, 1}, {-3, 6}, {0, 10}}},
      {"Sub", {{-2, 3}, {-3, 2}, {0, 0}}},
      {"Mul", {{5, 5}, {-8, -6}, {-25, 0}}},
      {"RealDiv", {{0.1, 0.7}, {2, 1.5}, {1, 0}}}};
  const auto cast = [](const Tensor& x, DataType to) {
    const auto out =
        Compute("Cast", {{"x", x}}, {{"dst_type", AttrValue::Int(static_cast<int64_t>(to))}});
    EXPECT_TRUE(out.ok()) << out.status().ToString();
    return out.ok() ? (*out)[0] : Tensor::Allocate({to, {0}});
  };
  constexpr DataType kC128 = DataType::kComplex128;
  for (const DataType dtype : {DataType::kComplex32, kC64, kC128}) {
    const double bound = dtype == kC128 ? 1e-16 : dtype == kC64 ? 1e-7 : 1e-3;
    const Tensor x1 = cast(Make<D>(kC128, {3}, a), dtype), x2 = cast(Make<D>(kC128, {3}, b), dtype);
    for (const auto& [type, expected] : cases) {
      const auto out = Compute(type, {{"x1", x1}, {"x2", x2}});
      ASSERT_TRUE(out.ok()) << type << out.status().ToString();
      EXPECT_EQ((*out)[0].dtype(), dtype);
      const Tensor wide = cast((*out)[0], kC128);
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_LE(std::abs(wide.as<D>()[i] - expected[i]), bound) << type << " " << Name(dtype);
      }
    }
    const auto size = Compute("Abs", {{"x", cast(Make<D>(kC128, {1}, {{3, -4}}), dtype)}});
    ASSERT_TRUE(size.ok());
    EXPECT_EQ(BitsOf((*size)[0].dtype()) * 2, BitsOf(dtype));
  }
}

// y[k] = sum x[j] e^(-2 pi i j k / n) along lines of n elements, `stride` apart.
std::vector<std::complex<double>> Sum(const std::vector<std::complex<double>>& x, size_t n,
                                      size_t stride) {
  std::vector<std::complex<double>> y(x.size());
  for (size_t at = 0; at < x.size(); ++at) {
    const size_t k = at / stride % n;
    for (size_t j = 0; j < n; ++j) {
      const double angle =
          -2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n);
      y[at] += x[at - k * stride + j * stride] * std::polar(1.0, angle);
    }
  }
  return y;
}

std::vector<std::complex<double>> Numbers(size_t count) {
  std::vector<std::complex<double>> x;
  for (size_t i = 0; i < count; ++i) {
    x.emplace_back(static_cast<double>(i * 7 % 11) - 5, static_cast<double>(i * 3 % 13) - 6);
  }
  return x;
}

void ExpectNear(std::span<const C> seen, const std::vector<std::complex<double>>& expected) {
  ASSERT_EQ(seen.size(), expected.size());
  for (size_t i = 0; i < seen.size(); ++i) {
    // One rounding of a sum whose terms are at most 8.5 in size.
    const double bound = std::abs(expected[i]) * 0x1p-22 + 1e-9;
    EXPECT_NEAR(seen[i].real(), expected[i].real(), bound) << i;
    EXPECT_NEAR(seen[i].imag(), expected[i].imag(), bound) << i;
  }
}

Tensor AsTensor(const std::vector<std::complex<double>>& x, Shape shape) {
  std::vector<C> values(x.begin(), x.end());
  return Make<C>(kC64, std::move(shape), values);
}

TEST(Complex, FourierTransformOfEveryKindOfLength) {
  for (const int64_t n : {1, 2, 3, 4, 5, 8, 12, 17, 30, 49, 64}) {
    const auto x = Numbers(static_cast<size_t>(3 * n));
    const auto out = Compute("FFT", {{"x", AsTensor(x, {3, n})}});
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    ExpectNear((*out)[0].as<C>(), Sum(x, static_cast<size_t>(n), 1));
  }
}

TEST(Complex, FourierTransformOfTwoDimensions) {
  const auto x = Numbers(2 * 6 * 5);
  const auto out = Compute("FFT2D", {{"x", AsTensor(x, {2, 6, 5})}});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  ExpectNear((*out)[0].as<C>(), Sum(Sum(x, 5, 1), 6, 5));
}

}  // namespace
}  // namespace npumesh
