// RotateQuant against its definition in double, on drawn cases.
#include <random>

#include "tests/unit/ops/quant/quant_values.h"

namespace npumesh {
namespace {

OpCall RotateCall(Tensor x, Tensor rotation, DataType to) {
  return {.type = "RotateQuant",
          .inputs = {{"x", std::move(x)}, {"rotation", std::move(rotation)}},
          .attrs = {{"y_dtype", AttrValue::Type(to)}}};
}

// Each vector of `matrix` elements times the matrix.
std::vector<double> RotatedVectors(const std::vector<double>& x,
                                   const std::vector<double>& rotation, size_t matrix) {
  std::vector<double> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t vector = i / matrix * matrix, column = i % matrix;
    for (size_t k = 0; k < matrix; ++k) y[i] += x[vector + k] * rotation[k * matrix + column];
  }
  return y;
}

TEST(RotateQuant, GivesWhatItsDefinitionSays) {
  std::mt19937 random(1);
  const auto between = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  const DataType types[] = {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16};
  for (int i = 0; i < 80; ++i) {
    SCOPED_TRACE(i);
    const DataType from = types[between(0, 2)];
    const DataType to = between(0, 1) == 0 ? DataType::kInt8 : DataType::kInt4;
    const int64_t matrix = 2 * between(1, 20), rows = between(1, 90);
    const int64_t width = matrix * between(1, 5), planes = between(1, 2);
    const Shape shape = planes == 1 ? Shape({rows, width}) : Shape({planes, rows, width});
    const Tensor x = Noise(from, shape, i, 3), rotation = Noise(from, {matrix, matrix}, i + 100);
    const std::vector<Tensor> out = MustRun(RotateCall(x, rotation, to), 2);
    std::vector<double> exact =
        RotatedVectors(ToDoubles(x), ToDoubles(rotation), static_cast<size_t>(matrix));
    std::vector<double> scales;
    for (auto row = exact.begin(); row != exact.end(); row += width) {
      double most = 0;
      std::for_each(row, row + width, [&](double y) { most = std::max(most, std::abs(y)); });
      scales.push_back(most / (to == DataType::kInt8 ? 127 : 7));
      std::for_each(row, row + width, [&](double& y) { y /= scales.back(); });
    }
    EXPECT_EQ(out[0].shape(), shape);
    EXPECT_EQ(out[1].shape().rank(), shape.rank() - 1);
    ExpectRounded(out[0], exact);
    ExpectNear(out[1], scales);
    if (HasFailure()) return;
  }
}

TEST(RotateQuant, ARowOfZerosStaysZero) {
  const Tensor x = Tensor::Allocate({DataType::kFloat16, {2, 4}});
  const Tensor rotation = Noise(DataType::kFloat16, {2, 2}, 1);
  const std::vector<Tensor> out = MustRun(RotateCall(x, rotation, DataType::kInt8), 2);
  EXPECT_EQ(ToDoubles(out[0]), std::vector<double>(8));
  EXPECT_EQ(ToDoubles(out[1]), std::vector<double>(2));
}

TEST(RotateQuant, RefusesWhatDoesNotFit) {
  const Tensor x = Noise(DataType::kFloat16, {2, 6}, 1);
  const auto call = [&](DataType dtype, const Shape& rotation, DataType to = DataType::kInt8) {
    return RotateCall(x, Noise(dtype, rotation, 2), to);
  };
  ExpectFails(call(DataType::kFloat16, {4, 4}), Code::kInvalidArgument, {"rotation", "[4,4]"});
  ExpectFails(call(DataType::kFloat16, {3, 2}), Code::kInvalidArgument, {"rotation", "[3,2]"});
  ExpectFails(call(DataType::kFloat, {3, 3}), Code::kInvalidArgument, {"rotation"});
  ExpectFails(call(DataType::kFloat16, {3, 3}, DataType::kFloat4E2M1), Code::kUnsupported,
              {"y_dtype"});
  OpCall bounded = call(DataType::kFloat16, {3, 3});
  bounded.attrs.emplace_back("alpha", AttrValue::Float(0.5f));
  ExpectFails(bounded, Code::kUnsupported, {"alpha", "0.5"});
}

}  // namespace
}  // namespace npumesh
