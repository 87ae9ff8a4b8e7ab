// AscendDequant, DequantBias, AscendAntiQuantV2, AscendAntiQuant, TransQuantParamV2 and
// DequantSwigluQuant.
// SwigluMxQuant: DynamicMxQuant of the activation in double.
#include <cmath>

#include "tests/unit/op_types.h"
#include "tests/unit/op_values.h"
#include "tests/unit/ops/quant/quant_values.h"
#include "tests/unit/ops/quant/small_values.h"

namespace npumesh {
namespace {

// ---- DequantSwigluQuant ----

double Silu(double x) {
  return x / (1 + std::exp(-x));
}

// z of two halves, the first or the second of which is the gate.
std::vector<double> Gated(const std::vector<double>& x, size_t rows, bool left) {
  const size_t half = x.size() / rows / 2;
  std::vector<double> z;
  for (size_t r = 0; r < rows; ++r) {
    for (size_t i = 0; i < half; ++i) {
      const double a = x[r * 2 * half + i];
      const double b = x[r * 2 * half + half + i];
      z.push_back(left ? Silu(a) * b : Silu(b) * a);
    }
  }
  return z;
}

TEST(DequantSwigluQuant, FloatsStatically) {
  const Tensor x = Noise(DataType::kFloat16, {3, 8}, 1, 3);
  for (const bool left : {false, true}) {
    std::vector<double> want = Gated(ToDoubles(x), 3, left);
    for (size_t i = 0; i < want.size(); ++i) want[i] = want[i] / (0.05 + 0.01 * double(i % 4)) + 3;
    const std::vector<Tensor> out = MustRun(
        {.type = "DequantSwigluQuant",
         .inputs = {{"x", x},
                    {"quant_scale", FromDoubles(DataType::kFloat, {4}, {0.05, 0.06, 0.07, 0.08})},
                    {"quant_offset", FromDoubles(DataType::kFloat, {1}, {3})}},
         .attrs = {{"activate_left", AttrValue::Bool(left)}}},
        2);
    ExpectRounded(out[0], want);
    EXPECT_EQ(ToDoubles(out[1]), (std::vector<double>(3, 0)));
  }
}

TEST(DequantSwigluQuant, IntegersDynamicallyInGroups) {
  const Tensor x = Noise(DataType::kInt32, {5, 4}, 1, 50);
  const Tensor weights = Noise(DataType::kFloat, {2, 4}, 2, 0.1);
  const Tensor rows = Noise(DataType::kFloat, {5}, 3, 2);
  const Tensor bias = Noise(DataType::kInt32, {2, 4}, 4, 20);
  const Tensor scales = Noise(DataType::kFloat, {2, 2}, 5, 2);
  const std::vector<double> values = ToDoubles(x);
  std::vector<double> wide(values.size());
  const auto group = [](size_t row) { return row < 3 ? size_t{0} : size_t{1}; };
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t factor = group(i / 4) * 4 + i % 4;
    wide[i] =
        (values[i] + ToDoubles(bias)[factor]) * ToDoubles(weights)[factor] * ToDoubles(rows)[i / 4];
  }
  std::vector<double> z = Gated(wide, 5, false);
  std::vector<double> want, want_scale;
  for (size_t r = 0; r < 5; ++r) {
    for (size_t i = 0; i < 2; ++i) z[r * 2 + i] *= ToDoubles(scales)[group(r) * 2 + i];
    const double most = std::max(std::fabs(z[r * 2]), std::fabs(z[r * 2 + 1]));
    want_scale.push_back(r == 4 ? 0 : most / 127);
    for (size_t i = 0; i < 2; ++i) want.push_back(r == 4 ? 0 : z[r * 2 + i] * 127 / most);
  }
  const std::vector<Tensor> out = MustRun({.type = "DequantSwigluQuant",
                                           .inputs = {{"x", x},
                                                      {"weight_scale", weights},
                                                      {"activation_scale", rows},
                                                      {"bias", bias},
                                                      {"quant_scale", scales},
                                                      {"group_index", MakeInts({3, 1})}},
                                           .attrs = {{"quant_mode", AttrValue::String("dynamic")}}},
                                          2);
  ExpectRounded(out[0], want);
  ExpectNear(out[1], want_scale, 1e-5);
}

TEST(DequantSwigluQuant, HalvesOtherDimensions) {
  const Tensor x = Noise(DataType::kFloat16, {2, 4, 3}, 1, 3);
  std::vector<double> want;
  for (const auto& at : Positions({2, 2, 3})) {
    const double a = ToDoubles(x)[Index({2, 4, 3}, at)];
    const double b = ToDoubles(x)[Index({2, 4, 3}, {at[0], at[1] + 2, at[2]})];
    want.push_back(Silu(b) * a * 10);
  }
  const std::vector<Tensor> out =
      MustRun({.type = "DequantSwigluQuant",
               .inputs = {{"x", x}, {"quant_scale", FromDoubles(DataType::kFloat, {1}, {0.1})}},
               .attrs = {{"activate_dim", AttrValue::Int(1)}}},
              2);
  EXPECT_EQ(out[0].shape(), (Shape{2, 2, 3}));
  ExpectRounded(out[0], want);
}

TEST(DequantSwigluQuant, ClippedForms) {
  const Tensor x = Noise(DataType::kFloat16, {2, 8}, 1, 6);
  for (const int64_t mode : {1, 2}) {
    std::vector<double> want;
    for (size_t r = 0; r < 2; ++r) {
      for (size_t i = 0; i < 4; ++i) {
        const size_t a = r * 8 + (mode == 1 ? 2 * i : i);
        const size_t b = r * 8 + (mode == 1 ? 2 * i + 1 : i + 4);
        const double gate = std::min(ToDoubles(x)[a], 2.0);
        const double other = std::min(std::max(ToDoubles(x)[b], -2.0), 2.0);
        want.push_back(gate / (1 + std::exp(-1.5 * gate)) * (other + 0.5) * 20);
      }
    }
    const std::vector<Tensor> out =
        MustRun({.type = "DequantSwigluQuant",
                 .inputs = {{"x", x}, {"quant_scale", FromDoubles(DataType::kFloat, {1}, {0.05})}},
                 .attrs = {{"swiglu_mode", AttrValue::Int(mode)},
                           {"activate_left", AttrValue::Bool(true)},
                           {"clamp_limit", AttrValue::Float(2)},
                           {"glu_alpha", AttrValue::Float(1.5)},
                           {"glu_bias", AttrValue::Float(0.5)}}},
                2);
    ExpectRounded(out[0], want);
  }
}

OpCall SwigluCall(DataType dtype, int64_t mode, bool left) {
  return {.type = "SwigluMxQuant",
          .inputs = {{"x", Noise(kBf16, {3, 2, 140}, 5, 9)}},
          .attrs = {{"dst_type", TypeAttr(dtype)},
                    {"swiglu_mode", AttrValue::Int(mode)},
                    {"activate_left", AttrValue::Bool(left)},
                    {"clamp_limit", AttrValue::Float(3.0f)},
                    {"glu_alpha", AttrValue::Float(1.5f)},
                    {"glu_bias", AttrValue::Float(0.5f)}}};
}

Tensor Activated(const Tensor& x, int64_t mode, bool left) {
  const std::vector<double> values = ToDoubles(x);
  const size_t half = 70;
  std::vector<double> z;
  for (size_t row = 0; row < values.size(); row += 2 * half) {
    for (size_t i = 0; i < half; ++i) {
      const double even = values[row + 2 * i], odd = values[row + 2 * i + 1];
      const double front = values[row + i], back = values[row + half + i];
      double gate = mode == 1 ? even : left ? front : back;
      double other = mode == 1 ? odd : left ? back : front;
      if (mode == 0) {
        z.push_back(gate / (1 + std::exp(-gate)) * other);
        continue;
      }
      gate = std::min(gate, 3.0);
      other = std::clamp(other, -3.0, 3.0);
      z.push_back(gate / (1 + std::exp(-1.5 * gate)) * (other + 0.5));
    }
  }
  return FromDoubles(kF32, {3, 2, 70}, z);
}

TEST(SwigluMxQuant, QuantisesTheActivation) {
  for (const DataType dtype : {kE4M3, kE2M1}) {
    for (const int64_t mode : {0, 1, 2}) {
      for (const bool left : {false, true}) {
        const OpCall call = SwigluCall(dtype, mode, left);
        const std::vector<Tensor> got = Results(call);
        const std::vector<Tensor> want =
            Results({.type = "DynamicMxQuant",
                     .inputs = {{"x", Activated(call.inputs[0].value, mode, left)}},
                     .attrs = {{"dst_type", TypeAttr(dtype)}}});
        ASSERT_EQ(got.size(), 2u);
        EXPECT_TRUE(SameBytes(got[0], want[0])) << Name(dtype) << " " << mode << left;
        EXPECT_TRUE(SameBytes(got[1], want[1])) << Name(dtype) << " " << mode << left;
      }
    }
  }
}

TEST(SwigluMxQuant, RowsBehindTheGroupsAreZeros) {
  OpCall call = SwigluCall(kE4M3, 0, true);
  const std::vector<Tensor> all = Results(call);
  call.inputs.push_back({"group_index", MakeInts({1, 0, 3})});
  const std::vector<Tensor> some = Results(call);
  for (size_t i = 0; i < 2; ++i) {
    std::vector<uint8_t> want = ValuesOf<uint8_t>(all[i]);
    std::fill(want.begin() + static_cast<int64_t>(want.size() / 6 * 4), want.end(), uint8_t{0});
    EXPECT_EQ(ValuesOf<uint8_t>(some[i]), want);
  }
}

}  // namespace
}  // namespace npumesh
