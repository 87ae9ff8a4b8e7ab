// LogSoftmaxV2, the gradients of the softmaxes, L2Normalize.
#include <functional>

#include "tests/unit/ops/image/image_values.h"

namespace npumesh {
namespace {

using Row = std::vector<long double>;

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

TEST(SoftmaxRows, LargeLogitsDoNotOverflow) {
  const Tensor x = FromDoubles(DataType::kFloat, {2}, {1000, 0});
  EXPECT_EQ(ToDoubles(RunOne({.type = "LogSoftmaxV2", .inputs = {{"logits", x}}})),
            (std::vector<double>{0, -1000}));
}

TEST(SoftmaxRows, L2NormalizeDoesNotDivideByZero) {
  const Tensor x = FromDoubles(DataType::kFloat, {2}, {0, 0});
  EXPECT_EQ(ToDoubles(RunOne({.type = "L2Normalize", .inputs = {{"x", x}}})),
            (std::vector<double>{0, 0}));
}

TEST(SoftmaxRows, Refuse) {
  const Tensor x = Pattern(DataType::kFloat, {2, 2});
  ExpectFails({.type = "SoftmaxGrad",
               .inputs = {{"softmax", x}, {"grad_softmax", Pattern(DataType::kFloat, {2})}}},
              Code::kInvalidArgument, {"grad_softmax is float32[2]"});
  ExpectFails({.type = "LogSoftmaxV2",
               .inputs = {{"logits", x}},
               .attrs = {{"axes", AttrValue::Ints({2})}}},
              Code::kInvalidArgument, {"axis 2"});
}

}  // namespace
}  // namespace npumesh
