// AscendDequant, DequantBias, AscendAntiQuantV2, AscendAntiQuant, TransQuantParamV2 and
// DequantSwigluQuant.
#include "tests/unit/ops/quant/quant_values.h"

namespace npumesh {
namespace {

// Scales in the packed form, by the operator that makes it.
Tensor PackedScales(const std::vector<double>& scales) {
  const Shape shape{static_cast<int64_t>(scales.size())};
  return MustRun({.type = "TransQuantParamV2",
                  .inputs = {{"scale", FromDoubles(DataType::kFloat, shape, scales)}}})[0];
}

TEST(TransQuantParam, PacksScaleAndOffset) {
  const Tensor y =
      MustRun({.type = "TransQuantParamV2",
               .inputs = {{"scale", FromDoubles(DataType::kFloat, {1}, {1.5})},
                          {"offset", FromDoubles(DataType::kFloat, {4}, {3, -1, 1000, 2.5})}}})[0];
  EXPECT_EQ(y.type(), (TensorType{DataType::kUint64, {4}}));
  const uint64_t scale = 0x3fc00000u | uint64_t{1} << 46;
  EXPECT_EQ(y.as<uint64_t>()[0], scale | uint64_t{3} << 37);
  EXPECT_EQ(y.as<uint64_t>()[1], scale | uint64_t{0x1ff} << 37);
  EXPECT_EQ(y.as<uint64_t>()[2], scale | uint64_t{255} << 37);
  EXPECT_EQ(y.as<uint64_t>()[3], scale | uint64_t{2} << 37);
  // 13 bits of the mantissa are dropped, or rounded away: 0.7 is 0x3f333333.
  for (const int64_t rounds : {0, 1}) {
    const Tensor packed = MustRun({.type = "TransQuantParamV2",
                                   .inputs = {{"scale", FromDoubles(DataType::kFloat, {1}, {0.7})}},
                                   .attrs = {{"round_mode", AttrValue::Int(rounds)}}})[0];
    EXPECT_EQ(static_cast<uint32_t>(packed.as<uint64_t>()[0]),
              rounds == 1 ? 0x3f334000u : 0x3f332000u);
  }
  // An offset for no scale.
  EXPECT_EQ(MustRun({.type = "TransQuantParamV2",
                     .inputs = {{"scale", Pattern(DataType::kFloat, {0})},
                                {"offset", Pattern(DataType::kFloat, {1})}}})[0]
                .shape(),
            Shape({0}));
  ExpectFails({.type = "TransQuantParamV2",
               .inputs = {{"scale", Pattern(DataType::kFloat, {2})},
                          {"offset", Pattern(DataType::kFloat, {3})}}},
              Code::kInvalidArgument, {"float32[2]", "3 elements"});
}

TEST(AscendDequant, MultipliesByTheScaleOfTheColumn) {
  const Tensor x = FromDoubles(DataType::kInt32, {2, 3}, {-4, 5, 1000000, 7, -8, 9});
  const std::vector<double> scales = {0.5, 2, 0.25};
  for (const bool packed : {false, true}) {
    for (const bool twice : {false, true}) {
      for (const bool relu : {false, true}) {
        const Tensor scale =
            packed ? PackedScales(scales) : FromDoubles(DataType::kFloat16, {3}, scales);
        std::vector<double> want = ToDoubles(x);
        for (size_t i = 0; i < want.size(); ++i) {
          want[i] *= scales[i % 3] * (twice ? scales[i % 3] : 1);
          if (relu) want[i] = std::max(want[i], 0.0);
        }
        EXPECT_EQ(ToDoubles(MustRun({.type = "AscendDequant",
                                     .inputs = {{"x", x}, {"deq_scale", scale}},
                                     .attrs = {{"sqrt_mode", AttrValue::Bool(twice)},
                                               {"relu_flag", AttrValue::Bool(relu)}}})[0]),
                  want);
      }
    }
  }
  ExpectFails({.type = "AscendDequant",
               .inputs = {{"x", x}, {"deq_scale", Pattern(DataType::kFloat16, {2})}}},
              Code::kInvalidArgument, {"deq_scale is float16[2]"});
}

TEST(DequantBias, AddsBeforeOrBehind) {
  const Tensor x = FromDoubles(DataType::kInt32, {2, 2}, {10, 20, 30, 40});
  for (const DataType bias : {DataType::kInt32, DataType::kFloat16}) {
    const bool before = bias == DataType::kInt32;
    const std::vector<double> scale = {0.5, 0.25};
    const std::vector<double> rows = {2, 4};
    const std::vector<double> shift = {3, -5};
    std::vector<double> want;
    for (size_t i = 0; i < 4; ++i) {
      const double sum = ToDoubles(x)[i] + (before ? shift[i % 2] : 0);
      want.push_back(sum * scale[i % 2] * rows[i / 2] + (before ? 0 : shift[i % 2]));
    }
    const Tensor y =
        MustRun({.type = "DequantBias",
                 .inputs = {{"x", x},
                            {"weight_scale", FromDoubles(DataType::kFloat, {2}, scale)},
                            {"activate_scale", FromDoubles(DataType::kFloat, {2}, rows)},
                            {"bias", FromDoubles(bias, {2}, shift)}},
                 .attrs = {{"output_dtype", AttrValue::Int(27)}}})[0];
    EXPECT_EQ(y.dtype(), DataType::kBfloat16);
    EXPECT_EQ(ToDoubles(y), want);
  }
}

TEST(AscendAntiQuant, AddsTheOffsetFirst) {
  const Tensor x = FromDoubles(DataType::kInt8, {2, 2}, {1, -2, 3, -4});
  for (const bool four_bits : {false, true}) {
    const Tensor input = four_bits ? ToInt4(x) : x;
    EXPECT_EQ(ToDoubles(MustRun(
                  {.type = "AscendAntiQuantV2",
                   .inputs = {{"x", input},
                              {"scale", FromDoubles(DataType::kFloat, {2}, {2, 4})},
                              {"offset", FromDoubles(DataType::kFloat, {2}, {10, 20})}}})[0]),
              (std::vector<double>{22, 72, 26, 64}));
    const Tensor squared = MustRun({.type = "AscendAntiQuant",
                                    .inputs = {{"x", input}},
                                    .attrs = {{"scale", AttrValue::Float(2)},
                                              {"offset", AttrValue::Float(1)},
                                              {"dtype", AttrValue::Int(1)},
                                              {"sqrt_mode", AttrValue::Bool(true)}}})[0];
    EXPECT_EQ(squared.dtype(), DataType::kFloat16);
    EXPECT_EQ(ToDoubles(squared), (std::vector<double>{8, -4, 16, -12}));
  }
  ExpectFails({.type = "AscendAntiQuantV2",
               .inputs = {{"x", Pattern(DataType::kInt32, {2})},
                          {"scale", Pattern(DataType::kFloat, {1})}}},
              Code::kInvalidArgument, {"int32[2]"});
}

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

TEST(DequantSwigluQuant, RefusesWhatDoesNotFit) {
  OpCall call{.type = "DequantSwigluQuant", .inputs = {{"x", Pattern(DataType::kFloat16, {2, 3})}}};
  ExpectFails(call, Code::kInvalidArgument, {"halved", "[2,3]"});
  call.inputs[0].value = Pattern(DataType::kInt32, {2, 4});
  call.inputs.push_back({"weight_scale", Pattern(DataType::kFloat, {3})});
  ExpectFails(call, Code::kInvalidArgument, {"weight_scale is float32[3]"});
  call.attrs = {{"quant_mode", AttrValue::String("none")}};
  ExpectFails(call, Code::kInvalidArgument, {"\"none\""});
}

}  // namespace
}  // namespace npumesh
