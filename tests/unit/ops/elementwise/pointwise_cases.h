// Operators of one formula, against a reference in long double.
#ifndef NPUMESH_TESTS_UNIT_OPS_ELEMENTWISE_POINTWISE_CASES_H_
#define NPUMESH_TESTS_UNIT_OPS_ELEMENTWISE_POINTWISE_CASES_H_

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tests/unit/op_reference.h"

namespace npumesh {

using Attrs = std::vector<std::pair<std::string, AttrValue>>;
using Operands = std::vector<long double>;

// A float attribute.
inline AttrValue F(float value) {
  return AttrValue::Float(value);
}

struct PointCase {
  std::string type;
  std::vector<std::string> ports;
  std::function<long double(const Operands&)> reference;
  // Operands lie in [low, high].
  double low = -4;
  double high = 4;
  Attrs attrs = {};
  // Error allowed beside the rounding, as a part of the magnitude; for formulas that lose digits.
  double slack = 0;
};

// Numbers of [low, high], the ends and 0 among them, in an order that differs from port to port.
inline std::vector<double> Spread(const PointCase& test, size_t count, size_t port) {
  std::vector<double> values(count);
  for (size_t i = 0; i < count; ++i) {
    const size_t step = (i * (2 * port + 3) + port * 5) % count;
    values[i] = test.low +
                (test.high - test.low) * static_cast<double>(step) / static_cast<double>(count - 1);
  }
  if (test.low <= 0 && test.high >= 0) values[port % count] = 0;
  return values;
}

// One unit of the last place of `dtype` at `value`.
inline double LastPlace(DataType dtype, double value) {
  const int digits = dtype == kBf16 ? 8 : dtype == kF16 ? 11 : dtype == kF64 ? 50 : 24;
  const int least = dtype == kF16 ? -14 : -126;
  const int exponent = value == 0 ? least : std::max(std::ilogb(value), least);
  return std::ldexp(1.0, exponent - digits + 1);
}

inline void ExpectMatches(const PointCase& test, DataType dtype) {
  constexpr size_t kCount = 101;
  OpCall call{.type = test.type, .inputs = {}, .attrs = test.attrs};
  std::vector<std::vector<double>> operands;
  for (size_t port = 0; port < test.ports.size(); ++port) {
    const Tensor tensor =
        FromDoubles(dtype, Shape({static_cast<int64_t>(kCount)}), Spread(test, kCount, port));
    operands.push_back(ToDoubles(tensor));
    call.inputs.push_back({test.ports[port], tensor});
  }
  const Tensor y = RunOne(call);
  ASSERT_EQ(y.dtype(), dtype) << test.type;
  const std::vector<double> actual = ToDoubles(y);
  ASSERT_EQ(actual.size(), kCount) << test.type;
  for (size_t i = 0; i < kCount; ++i) {
    Operands in;
    for (const std::vector<double>& operand : operands) in.push_back(operand[i]);
    const auto expected = static_cast<double>(test.reference(in));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(actual[i])) << test.type << " at " << operands[0][i];
    } else if (std::isinf(expected) || std::fabs(expected) > 65504) {
      EXPECT_EQ(actual[i], ToDoubles(FromDoubles(dtype, Shape({1}), {expected}))[0]) << test.type;
    } else {
      EXPECT_NEAR(actual[i], expected,
                  LastPlace(dtype, expected) + test.slack * std::fabs(expected) + 1e-300)
          << test.type << " " << Name(dtype) << " at " << operands[0][i];
    }
  }
}

inline void ExpectMatches(const std::vector<PointCase>& cases) {
  for (const PointCase& test : cases) {
    for (const DataType dtype : kReals) ExpectMatches(test, dtype);
  }
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_OPS_ELEMENTWISE_POINTWISE_CASES_H_
