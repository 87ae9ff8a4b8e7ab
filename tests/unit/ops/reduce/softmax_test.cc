// SoftmaxV2 against the formula in double.
#include "tests/unit/op_values.h"

namespace npumesh {
namespace {

OpCall Softmax(Tensor x, std::vector<int64_t> axes) {
  return {.type = "SoftmaxV2",
          .inputs = {{"x", std::move(x)}},
          .attrs = {{"axes", AttrValue::Ints(std::move(axes))}}};
}

// Sums the exponentials of all positions that agree outside of `axes`.
std::vector<double> Reference(const Tensor& x, const std::vector<int64_t>& axes) {
  const Shape& shape = x.shape();
  const std::vector<double> values = ToDoubles(x);
  const auto group = [&](std::vector<int64_t> at) {
    for (const int64_t axis : axes)
      at[static_cast<size_t>(axis < 0 ? axis + shape.rank() : axis)] = 0;
    return Index(shape, at);
  };
  std::vector<double> most(values.size(), -INFINITY), sums(values.size(), 0), y(values.size());
  const auto positions = Positions(shape);
  for (size_t i = 0; i < values.size(); ++i) {
    most[group(positions[i])] = std::max(most[group(positions[i])], values[i]);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    y[i] = std::exp(values[i] - most[group(positions[i])]);
    sums[group(positions[i])] += y[i];
  }
  for (size_t i = 0; i < values.size(); ++i) y[i] /= sums[group(positions[i])];
  return y;
}

struct SoftmaxCase {
  Shape x;
  std::vector<int64_t> axes;
};

TEST(Softmax, FollowsTheFormulaOverAnyAxes) {
  const std::vector<SoftmaxCase> cases = {
      {{4, 7}, {-1}},      {{4, 7}, {0}},       {{2, 3, 4}, {1}},
      {{2, 3, 4}, {0, 2}}, {{2, 3, 4}, {1, 2}}, {{2, 3, 4}, {-1, -2, -3}},
      {{2, 3, 4}, {0, 1}}, {{5}, {0}},          {{3, 1}, {-1}},
      {{2, 100}, {1}},     {{0, 3}, {-1}},      {{3, 0}, {-1}},
      {{2, 3}, {}},        {{40, 33}, {0}},
  };
  for (const SoftmaxCase& c : cases) {
    for (const DataType dtype :
         {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16, DataType::kDouble}) {
      SCOPED_TRACE(c.x.ToString() + " " + Shape(c.axes).ToString() + " " +
                   std::string(Name(dtype)));
      std::vector<double> values(static_cast<size_t>(c.x.elements()));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = 5 * std::sin(2.1 * static_cast<double>(i));
      const Tensor x = FromDoubles(dtype, c.x, values);
      const Tensor y = RunOne(Softmax(x, c.axes));
      ASSERT_EQ(y.type(), x.type());
      const std::vector<double> expected = Reference(x, c.axes);
      const std::vector<double> got = ToDoubles(y);
      // The difference x - max, down to -10, is itself rounded: half a unit there is up to 8 of
      // the exponential.
      const double ulps = dtype == DataType::kFloat || dtype == DataType::kDouble ? 12 : 0.51;
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_NEAR(got[i], expected[i], ulps * Ulp(dtype, expected[i])) << "element " << i;
      }
    }
  }
}

// Rows of one element and a larger one: y is nearly e^x, from 1 down to where float32 ends.
TEST(Softmax, ExponentialsAreGoodToTwoUnits) {
  std::vector<double> rows;
  for (double x = 0; x > -110; x -= 0.0073) {
    rows.push_back(Rounded(DataType::kFloat, x));
    rows.push_back(0);
  }
  const auto count = static_cast<int64_t>(rows.size() / 2);
  const Tensor y = RunOne(Softmax(FromDoubles(DataType::kFloat, {count, 2}, rows), {-1}));
  const std::vector<double> got = ToDoubles(y);
  for (size_t i = 0; i < rows.size(); i += 2) {
    const double expected = std::exp(rows[i]) / (1 + std::exp(rows[i]));
    const double ulp = std::ldexp(1.0, std::max(std::ilogb(expected), -126) - 23);
    EXPECT_NEAR(got[i], expected, 2 * ulp) << rows[i];
  }
}

TEST(Softmax, HalfToFloatKeepsFloatPrecision) {
  const Tensor x = FromDoubles(DataType::kFloat16, {2, 3}, {1, 2, 3, 4, 4, 4});
  for (const int64_t axis : {0, 1}) {
    OpCall call = Softmax(x, {axis});
    call.attrs.push_back({"half_to_float", AttrValue::Bool(true)});
    const Tensor y = RunOne(call);
    ASSERT_EQ(y.dtype(), DataType::kFloat);
    const std::vector<double> expected = Reference(x, {axis});
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(ToDoubles(y)[i], expected[i], 1e-7);
    }
  }
}

TEST(Softmax, InfinitiesAndNotANumber) {
  const double inf = INFINITY;
  for (const DataType dtype :
       {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16, DataType::kDouble}) {
    const Tensor x = FromDoubles(dtype, {4, 2}, {-inf, -inf, -inf, 0, NAN, 0, inf, 0});
    const std::vector<double> y = ToDoubles(RunOne(Softmax(x, {-1})));
    for (const size_t i : {0u, 1u, 4u, 5u}) EXPECT_TRUE(std::isnan(y[i])) << i;
    EXPECT_EQ(y[2], 0);
    EXPECT_EQ(y[3], 1);
    EXPECT_TRUE(std::isnan(y[6]));
  }
}

TEST(Softmax, LargeValuesDoNotOverflow) {
  const Tensor x = FromDoubles(DataType::kFloat, {3}, {3e38, -3e38, 3e38});
  EXPECT_EQ(ToDoubles(RunOne(Softmax(x, {0}))), (std::vector<double>{0.5, 0, 0.5}));
}

TEST(Softmax, ScalarIsOne) {
  EXPECT_EQ(ToDoubles(RunOne(Softmax(FromDoubles(DataType::kFloat, {}, {7}), {-1}))),
            std::vector<double>{1});
}

TEST(Softmax, RefusesOtherTypesAndAxes) {
  ExpectFails(Softmax(Pattern(DataType::kInt32, {2}), {0}), Code::kUnsupported, {"int32"});
  ExpectFails(Softmax(Pattern(DataType::kFloat, {2}), {1}), Code::kInvalidArgument,
              {"axes", "axis 1", "rank 1"});
}

}  // namespace
}  // namespace npumesh
