// QLinearMatMul against plain loops, on drawn cases: exact, so bit by bit.
#include <algorithm>
#include <cmath>
#include <random>

#include "tests/unit/op_types.h"
#include "tests/unit/op_values.h"

namespace npumesh {
namespace {

constexpr DataType kInt32 = DataType::kInt32, kUint8 = DataType::kUint8;

Tensor DrawnBytes(std::mt19937& random, DataType dtype, const Shape& shape) {
  Tensor bytes = Tensor::Allocate({dtype, shape});
  for (int64_t i = 0; i < shape.elements(); ++i) {
    bytes.mutable_data()[i] = static_cast<std::byte>(random());
  }
  return bytes;
}

TEST(QLinearMatMul, GivesTheExactSums) {
  std::mt19937 random(3);
  constexpr DataType kBytes[] = {kInt8, kUint8}, kTo[] = {kInt8, kUint8, kF32, kInt32};
  for (int i = 0; i < 120; ++i) {
    SCOPED_TRACE(i);
    const auto between = [&](int64_t least, int64_t most) {
      return std::uniform_int_distribution<int64_t>(least, most)(random);
    };
    const int64_t batch = between(1, 3), m = between(1, 9), n = between(1, 40);
    const int64_t k = between(1, 150);
    const bool many = random() % 3 == 0, turned = random() % 2 == 0, known = random() % 2 == 0;
    const DataType left = kBytes[random() % 2], right = kBytes[random() % 2];
    const DataType to = kTo[random() % 4];
    const Tensor x1 = DrawnBytes(random, left, {batch, m, k});
    std::vector<int64_t> dims = {k, n};
    if (turned) std::swap(dims[0], dims[1]);
    if (many) dims.insert(dims.begin(), batch);
    const Tensor x2 = DrawnBytes(random, right, Shape(dims));
    const Tensor x1_zero = DrawnBytes(random, left, {1});
    const Tensor x2_zero = DrawnBytes(random, right, {random() % 2 == 0 ? 1 : n});
    const Tensor y_zero = DrawnBytes(random, to == kUint8 ? kUint8 : kInt8, {1});
    std::vector<int32_t> bias(static_cast<size_t>(n));
    for (int32_t& value : bias) value = static_cast<int32_t>(random() % 20001) - 10000;
    std::vector<float> scale(random() % 2 == 0 ? 1 : static_cast<size_t>(n));
    for (float& value : scale) value = static_cast<float>(random() % 1000) * 0x1p-19f;
    OpCall call = {.type = "QLinearMatMul",
                   .inputs = {{"x1", x1, Known::kNo},
                              {"x2", x2, known ? Known::kYes : Known::kNo},
                              {"x1_zero", x1_zero, Known::kNo},
                              {"x2_zero", x2_zero, Known::kNo},
                              {"bias", Make<int32_t>(kInt32, {n}, bias), Known::kNo}},
                   .attrs = {{"dtype", AttrValue::Int(static_cast<int64_t>(to))},
                             {"transpose_x2", AttrValue::Bool(turned)}},
                   .threads = 1 + i % 2};
    if (to != kInt32) {
      const auto count = static_cast<int64_t>(scale.size());
      call.inputs.push_back({"scale", Make<float>(kF32, {count}, scale), Known::kNo});
    }
    if (to == kInt8 || to == kUint8) call.inputs.push_back({"y_zero", y_zero, Known::kNo});
    const std::vector<double> a = ToDoubles(x1), b = ToDoubles(x2), b_zero = ToDoubles(x2_zero);
    const double a_zero = ToDoubles(x1_zero)[0], zero = ToDoubles(y_zero)[0];
    std::vector<double> want;
    for (int64_t row = 0; row < batch * m; ++row) {
      for (int64_t c = 0; c < n; ++c) {
        const auto column = static_cast<size_t>(c);
        double sum = bias[column];
        for (int64_t i_k = 0; i_k < k; ++i_k) {
          const int64_t place = (turned ? c * k + i_k : i_k * n + c) + (many ? row / m * k * n : 0);
          sum += (a[static_cast<size_t>(row * k + i_k)] - a_zero) *
                 (b[static_cast<size_t>(place)] - b_zero[b_zero.size() == 1 ? 0 : column]);
        }
        const float scaled = static_cast<float>(sum) * scale[scale.size() == 1 ? 0 : column];
        const double least = to == kInt8 ? -128 : 0;
        want.push_back(to == kInt32 ? sum
                       : to == kF32
                           ? double{scaled}
                           : std::clamp(std::nearbyint(double{scaled}) + zero, least, least + 255));
      }
    }
    EXPECT_TRUE(SameBytes(Results(call)[0], FromDoubles(to, {batch, m, n}, want)))
        << x1.type().ToString() << " " << x2.type().ToString();
    if (HasFailure()) return;
  }
}

TEST(QLinearMatMul, SaysHowItMultiplies) {
  std::mt19937 random(4);
  OpCall call = {.type = "QLinearMatMul",
                 .inputs = {{"x1", DrawnBytes(random, kUint8, {3, 8}), Known::kNo},
                            {"x2", DrawnBytes(random, kInt8, {8, 5}), Known::kNo}},
                 .attrs = {{"dtype", AttrValue::Int(static_cast<int64_t>(kInt32))}}};
  EXPECT_EQ(ChoiceOf(call), "in blocks; not packed: x2 is no constant matrix");
  call.inputs[1].known = Known::kYes;
  EXPECT_THAT(ChoiceOf(call),
              testing::AnyOf(testing::HasSubstr("oneDNN"), testing::HasSubstr("panels")));
}

}  // namespace
}  // namespace npumesh
