// DynamicQuant, DynamicQuantV2, AscendQuantV2, AscendQuant and Quantize.
#include "tests/unit/ops/quant/quant_values.h"

namespace npumesh {
namespace {

// ---- DynamicQuant ----

TEST(DynamicQuant, ScalesEachRowToItsLargest) {
  for (const DataType dtype : {DataType::kFloat16, DataType::kBfloat16}) {
    for (const DataType to : {DataType::kInt8, DataType::kInt4}) {
      for (const bool smooth : {false, true}) {
        const Tensor x = Noise(dtype, {2, 3, 8}, 1, 5);
        const Tensor factors = Noise(dtype, {8}, 2, 3);
        OpCall call{.type = "DynamicQuant",
                    .inputs = {{"x", x}},
                    .attrs = {{"dst_type", AttrValue::Int(static_cast<int64_t>(to))}}};
        if (smooth) call.inputs.push_back({"smooth_scales", factors});
        const std::vector<Tensor> out = MustRun(call, 2);
        ASSERT_EQ(out[0].type(), (TensorType{to, {2, 3, 8}}));
        ASSERT_EQ(out[1].type(), (TensorType{DataType::kFloat, {2, 3}}));
        const double largest = to == DataType::kInt8 ? 127 : 7;
        std::vector<double> y, scales;
        for (size_t row = 0; row < 6; ++row) {
          std::vector<double> values(8);
          double most = 0;
          for (size_t i = 0; i < 8; ++i) {
            values[i] = ToDoubles(x)[row * 8 + i] * (smooth ? ToDoubles(factors)[i] : 1);
            most = std::max(most, std::fabs(values[i]));
          }
          scales.push_back(most / largest);
          for (const double value : values) y.push_back(value / scales.back());
        }
        ExpectRounded(out[0], y);
        ExpectNear(out[1], scales);
      }
    }
  }
}

TEST(DynamicQuant, GroupsHaveTheirOwnSmoothing) {
  const Tensor x = FromDoubles(DataType::kFloat16, {4, 2}, {1, 2, 1, 2, 1, 2, 1, 2});
  const Tensor smooth = FromDoubles(DataType::kFloat16, {3, 2}, {1, 1, 4, 1, 0, 1});
  const std::vector<Tensor> out =
      MustRun({.type = "DynamicQuant",
               .inputs = {{"x", x},
                          {"smooth_scales", smooth},
                          {"group_index", Make<int32_t>(DataType::kInt32, {3}, {1, 3, 4})}}},
              2);
  EXPECT_EQ(Integers(out[0]), (std::vector<double>{64, 127, 127, 64, 127, 64, 0, 127}));
}

TEST(DynamicQuant, ZerosStayZeros) {
  const std::vector<Tensor> out = MustRun(
      {.type = "DynamicQuant", .inputs = {{"x", Tensor::Allocate({DataType::kFloat16, {2, 2}})}}},
      2);
  EXPECT_EQ(Integers(out[0]), (std::vector<double>(4, 0)));
  EXPECT_EQ(ToDoubles(out[1]), (std::vector<double>(2, 0)));
  const std::vector<Tensor> empty = MustRun(
      {.type = "DynamicQuant", .inputs = {{"x", Tensor::Allocate({DataType::kFloat16, {2, 0}})}}},
      2);
  EXPECT_EQ(ToDoubles(empty[1]), (std::vector<double>(2, 0)));
}

TEST(DynamicQuantV2, ScalesTokensTensorsAndChannels) {
  struct Mode {
    std::string name;
    Shape scale;
    std::function<size_t(int64_t b, int64_t r, int64_t c)> block;
  };
  const std::vector<Mode> modes = {
      {"pertoken", {2, 3}, [](int64_t b, int64_t r, int64_t) { return size_t(b * 3 + r); }},
      {"pertensor", {1}, [](int64_t, int64_t, int64_t) { return size_t{0}; }},
      {"perchannel", {2, 4}, [](int64_t b, int64_t, int64_t c) { return size_t(b * 4 + c); }},
  };
  const Shape shape{2, 3, 4};
  const Tensor x = Noise(DataType::kBfloat16, shape, 3, 5);
  for (const Mode& mode : modes) {
    for (const bool symmetrical : {false, true}) {
      SCOPED_TRACE(mode.name);
      const auto blocks = static_cast<size_t>(mode.scale.elements());
      std::vector<double> least(blocks, 1e9), most(blocks, -1e9), scale(blocks), offset(blocks);
      const std::vector<double> values = ToDoubles(x);
      for (const auto& at : Positions(shape)) {
        const size_t block = mode.block(at[0], at[1], at[2]);
        least[block] = std::min(least[block], values[Index(shape, at)]);
        most[block] = std::max(most[block], values[Index(shape, at)]);
      }
      for (size_t i = 0; i < blocks; ++i) {
        scale[i] = symmetrical ? std::max(-least[i], most[i]) / 127 : (most[i] - least[i]) / 255;
        offset[i] = symmetrical ? 0 : 127 - most[i] / scale[i];
      }
      std::vector<double> y;
      for (const auto& at : Positions(shape)) {
        const size_t block = mode.block(at[0], at[1], at[2]);
        y.push_back(values[Index(shape, at)] / scale[block] + offset[block]);
      }
      const std::vector<Tensor> out =
          MustRun({.type = "DynamicQuantV2",
                   .inputs = {{"x", x}},
                   .attrs = {{"quant_mode", AttrValue::String(mode.name)},
                             {"is_symmetrical", AttrValue::Bool(symmetrical)}}},
                  3);
      ExpectRounded(out[0], y);
      EXPECT_EQ(out[1].shape(), mode.scale);
      ExpectNear(out[1], scale);
      ExpectNear(out[2], offset, 1e-5);
    }
  }
}

TEST(DynamicQuant, RefusesWhatDoesNotFit) {
  OpCall call{.type = "DynamicQuant", .inputs = {{"x", Pattern(DataType::kFloat16, {2, 3})}}};
  call.attrs = {{"dst_type", AttrValue::Int(36)}};
  ExpectFails(QuantRegistry(), call, Code::kUnsupported, {"dst_type"});
  call.attrs = {{"dst_type", AttrValue::Int(29)}};
  ExpectFails(QuantRegistry(), call, Code::kInvalidArgument, {"even last dimension"});
  call.attrs.clear();
  call.inputs.push_back({"smooth_scales", Pattern(DataType::kFloat16, {2})});
  ExpectFails(QuantRegistry(), call, Code::kInvalidArgument, {"smooth_scales", "1 x 3"});
  call.inputs = {{"x", Pattern(DataType::kInt32, {2, 3})}};
  ExpectFails(QuantRegistry(), call, Code::kInvalidArgument, {"int32[2,3]"});
  call = {.type = "DynamicQuantV2",
          .inputs = {{"x", Pattern(DataType::kFloat16, {3})}},
          .attrs = {{"quant_mode", AttrValue::String("perchannel")}}};
  ExpectFails(QuantRegistry(), call, Code::kInvalidArgument, {"perchannel"});
}

// ---- AscendQuantV2, AscendQuant, Quantize ----

TEST(AscendQuant, RoundsInFourWays) {
  const std::vector<double> x = {0.5, 1.5, -0.5, -1.25, 100, -200, 63.75};
  const Tensor input = FromDoubles(DataType::kFloat, {7}, x);
  for (const auto& [mode, round] :
       std::vector<std::pair<std::string, std::function<double(double)>>>{
           {"round", [](double v) { return std::nearbyint(v); }},
           {"floor", [](double v) { return std::floor(v); }},
           {"ceil", [](double v) { return std::ceil(v); }},
           {"trunc", [](double v) { return std::trunc(v); }}}) {
    std::vector<double> want;
    for (const double value : x) want.push_back(Clip(round(value * 2 + 1.5), DataType::kInt8));
    const Tensor y = MustRun({.type = "AscendQuantV2",
                              .inputs = {{"x", input},
                                         {"scale", FromDoubles(DataType::kFloat, {1}, {2})},
                                         {"offset", FromDoubles(DataType::kFloat, {1}, {1.5})}},
                              .attrs = {{"round_mode", AttrValue::String(mode)}}})[0];
    EXPECT_EQ(Integers(y), want) << mode;
    EXPECT_EQ(Integers(MustRun({.type = "AscendQuant",
                                .inputs = {{"x", input}},
                                .attrs = {{"scale", AttrValue::Float(2)},
                                          {"offset", AttrValue::Float(1.5)},
                                          {"round_mode", AttrValue::String(mode)}}})[0]),
              want);
  }
}

TEST(AscendQuant, ScalesBroadcast) {
  struct Case {
    Shape scale;
    int64_t axis;
    std::function<size_t(const std::vector<int64_t>&)> index;
  };
  const Shape shape{2, 3, 4};
  const std::vector<Case> cases = {
      {{1}, -1, [](const auto&) { return size_t{0}; }},
      {{4}, -1, [](const auto& at) { return size_t(at[2]); }},
      {{3}, 1, [](const auto& at) { return size_t(at[1]); }},
      {{2}, 0, [](const auto& at) { return size_t(at[0]); }},
      {{2, 1, 4}, -1, [](const auto& at) { return size_t(at[0] * 4 + at[2]); }},
      {{1, 3, 1}, -1, [](const auto& at) { return size_t(at[1]); }},
  };
  const Tensor x = Noise(DataType::kFloat16, shape, 1, 4);
  for (const Case& c : cases) {
    for (const DataType to : {DataType::kInt8, DataType::kInt4}) {
      for (const bool squared : {false, true}) {
        const Tensor scale = Noise(DataType::kFloat16, c.scale, 2, 4);
        const Tensor offset = Noise(DataType::kFloat16, c.scale, 3, 2);
        std::vector<double> want;
        for (const auto& at : Positions(shape)) {
          const double factor = ToDoubles(scale)[c.index(at)];
          want.push_back(ToDoubles(x)[Index(shape, at)] * factor * (squared ? factor : 1) +
                         ToDoubles(offset)[c.index(at)]);
        }
        ExpectRounded(
            MustRun({.type = "AscendQuantV2",
                     .inputs = {{"x", x}, {"scale", scale}, {"offset", offset}},
                     .attrs = {{"axis", AttrValue::Int(c.axis)},
                               {"sqrt_mode", AttrValue::Bool(squared)},
                               {"dst_type", AttrValue::Int(static_cast<int64_t>(to))}}})[0],
            want);
      }
    }
  }
}

TEST(Quantize, DividesByTheScale) {
  const Tensor x = FromDoubles(DataType::kFloat, {2, 3}, {-300, -1, 0, 1, 2, 300});
  for (const auto& [name, dtype] :
       std::vector<std::pair<std::string, DataType>>{{"torch.qint8", DataType::kInt8},
                                                     {"torch.quint8", DataType::kUint8},
                                                     {"torch.qint32", DataType::kInt32}}) {
    const Tensor y =
        MustRun({.type = "Quantize",
                 .inputs = {{"x", x},
                            {"scales", FromDoubles(DataType::kFloat, {2}, {0.5, 2})},
                            {"zero_points", FromDoubles(DataType::kInt32, {2}, {1, 0})}},
                 .attrs = {{"dtype", AttrValue::String(name)}, {"axis", AttrValue::Int(0)}}})[0];
    const double least = dtype == DataType::kInt8 ? -128 : dtype == DataType::kUint8 ? 0 : -1e9;
    const double most = dtype == DataType::kInt8 ? 127 : 1e9;
    std::vector<double> want = {-599, -1, 1, 0, 1, 150};
    for (double& value : want) value = std::min(std::max(value, least), most);
    EXPECT_EQ(y.dtype(), dtype);
    EXPECT_EQ(ToDoubles(y), want) << name;
  }
}

TEST(AscendQuant, RefusesWhatDoesNotFit) {
  OpCall call{.type = "AscendQuantV2",
              .inputs = {{"x", Pattern(DataType::kFloat, {2, 3})},
                         {"scale", Pattern(DataType::kFloat, {2})}}};
  ExpectFails(QuantRegistry(), call, Code::kInvalidArgument, {"scale", "float32[2]", "[2,3]"});
  call.attrs = {{"axis", AttrValue::Int(2)}};
  ExpectFails(QuantRegistry(), call, Code::kInvalidArgument, {"axis 2"});
  call.attrs = {{"axis", AttrValue::Int(0)}, {"round_mode", AttrValue::String("away")}};
  ExpectFails(QuantRegistry(), call, Code::kInvalidArgument, {"away"});
  ExpectFails(QuantRegistry(),
              {.type = "Quantize",
               .inputs = {{"x", Pattern(DataType::kFloat, {2})},
                          {"scales", Pattern(DataType::kFloat, {1})}},
               .attrs = {{"dtype", AttrValue::String("torch.float")}}},
              Code::kUnsupported, {"torch.float"});
}

}  // namespace
}  // namespace npumesh
