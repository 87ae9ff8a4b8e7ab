// SoftmaxV2 against the formula in double.
// LogSoftmaxV2, the gradients of the softmaxes, L2Normalize.
#include <functional>

#include "tests/unit/op_values.h"
#include "tests/unit/ops/image/image_values.h"

namespace npumesh {
namespace {

using Row = std::vector<long double>;

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

Row Softmax(const Row& x) {
  long double sum = 0;
  for (const long double v : x) sum += expl(v);
  Row y;
  for (const long double v : x) y.push_back(expl(v) / sum);
  return y;
}

struct RowCase {
  std::string type;
  std::vector<std::string> ports;
  std::string axes;
  std::function<Row(const std::vector<Row>& in)> reference;
};

const RowCase kCases[] = {
    {"LogSoftmaxV2",
     {"logits"},
     "axes",
     [](const std::vector<Row>& in) {
       Row y = Softmax(in[0]);
       for (long double& v : y) v = logl(v);
       return y;
     }},
    {"SoftmaxGrad",
     {"softmax", "grad_softmax"},
     "axes",
     [](const std::vector<Row>& in) {
       Row y;
       for (size_t i = 0; i < in[0].size(); ++i) {
         long double sum = 0;  // row i of the Jacobian, y_i (delta_ij - y_j)
         for (size_t j = 0; j < in[0].size(); ++j) {
           sum += in[1][j] * in[0][i] * ((i == j ? 1 : 0) - in[0][j]);
         }
         y.push_back(sum);
       }
       return y;
     }},
    {"LogSoftmaxGrad",
     {"grad", "x"},
     "axis",
     [](const std::vector<Row>& in) {
       Row y;
       for (size_t i = 0; i < in[0].size(); ++i) {
         long double sum = 0;
         for (size_t j = 0; j < in[0].size(); ++j) {
           sum += in[0][j] * ((i == j ? 1 : 0) - expl(in[1][i]));
         }
         y.push_back(sum);
       }
       return y;
     }},
    {"L2Normalize",
     {"x"},
     "axis",
     [](const std::vector<Row>& in) {
       long double squares = 0;
       for (const long double v : in[0]) squares += v * v;
       Row y;
       for (const long double v : in[0]) y.push_back(v / sqrtl(squares));
       return y;
     }},
};

TEST(SoftmaxRows, AgreeWithTheFormulaAlongEveryAxis) {
  const Shape shape = {3, 4, 2};
  for (const RowCase& test : kCases) {
    for (int axis = 0; axis < 3; ++axis) {
      for (const DataType dtype : {DataType::kFloat, DataType::kFloat16, DataType::kDouble}) {
        OpCall call{
            .type = test.type, .inputs = {}, .attrs = {{test.axes, AttrValue::Ints({axis - 3})}}};
        for (size_t p = 0; p < test.ports.size(); ++p) {
          std::vector<double> values = ToDoubles(Pattern(dtype, shape, static_cast<int>(p) + 1));
          for (double& v : values) v = (v - 2) / 4;
          call.inputs.push_back({test.ports[p], FromDoubles(dtype, shape, values)});
        }
        const Tensor y = RunOne(call);
        ASSERT_EQ(y.type(), (TensorType{dtype, shape}));
        for (Ints at : Positions(shape)) {
          const auto d = static_cast<size_t>(axis);
          const auto own = static_cast<size_t>(at[d]);
          std::vector<Row> rows(test.ports.size());
          Ints other = at;
          for (int64_t i = 0; i < shape[axis]; ++i) {
            other[d] = i;
            for (size_t p = 0; p < rows.size(); ++p) {
              rows[p].push_back(ToDoubles(call.inputs[p].value)[Index(shape, other)]);
            }
          }
          const auto expected = static_cast<double>(test.reference(rows)[own]);
          EXPECT_NEAR(ToDoubles(y)[Index(shape, at)], expected, 2 * Ulp(dtype, expected) + 1e-15)
              << test.type << " axis " << axis;
        }
      }
    }
  }
}

}  // namespace
}  // namespace npumesh
