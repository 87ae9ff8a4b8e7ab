// DynamicQuant, DynamicQuantV2, AscendQuantV2, AscendQuant, Quantize and FlatQuant.
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

// One factor for each row, so that the scales of the columns see smoothed values.
TEST(DynamicQuantV2, SmoothsRowsWhereChannelsHaveScales) {
  const Shape shape{2, 3, 4};
  const Tensor x = Noise(DataType::kBfloat16, shape, 3, 5),
               smooth = Noise(DataType::kBfloat16, {3}, 4, 2);
  std::vector<double> values, scale(8);
  for (const auto& at : Positions(shape)) {
    values.push_back(ToDoubles(x)[Index(shape, at)] *
                     ToDoubles(smooth)[static_cast<size_t>(at[1])]);
    double& most = scale[static_cast<size_t>(at[0] * 4 + at[2])];
    most = std::max(most, std::fabs(values.back()) / 127);
  }
  for (size_t i = 0; const auto& at : Positions(shape)) {
    values[i++] /= scale[static_cast<size_t>(at[0] * 4 + at[2])];
  }
  const std::vector<Tensor> out =
      MustRun({.type = "DynamicQuantV2",
               .inputs = {{"x", x}, {"smooth_scales", smooth}},
               .attrs = {{"quant_mode", AttrValue::String("perchannel")},
                         {"is_symmetrical", AttrValue::Bool(true)}}},
              3);
  ExpectRounded(out[0], values);
  ExpectNear(out[1], scale);
}

TEST(DynamicQuant, RefusesWhatDoesNotFit) {
  OpCall call{.type = "DynamicQuant", .inputs = {{"x", Pattern(DataType::kFloat16, {2, 3})}}};
  call.attrs = {{"dst_type", AttrValue::Int(36)}};
  ExpectFails(call, Code::kUnsupported, {"dst_type"});
  call.attrs = {{"dst_type", AttrValue::Int(29)}};
  ExpectFails(call, Code::kInvalidArgument, {"even last dimension"});
  call.attrs.clear();
  call.inputs.push_back({"smooth_scales", Pattern(DataType::kFloat16, {2})});
  ExpectFails(call, Code::kInvalidArgument, {"smooth_scales", "1 x 3"});
  call.inputs = {{"x", Pattern(DataType::kInt32, {2, 3})}};
  ExpectFails(call, Code::kInvalidArgument, {"int32[2,3]"});
  call = {.type = "DynamicQuantV2",
          .inputs = {{"x", Pattern(DataType::kFloat16, {3})}},
          .attrs = {{"quant_mode", AttrValue::String("perchannel")}}};
  ExpectFails(call, Code::kInvalidArgument, {"perchannel"});
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
  ExpectFails(call, Code::kInvalidArgument, {"scale", "float32[2]", "[2,3]"});
  call.attrs = {{"axis", AttrValue::Int(2)}};
  ExpectFails(call, Code::kInvalidArgument, {"axis 2"});
  call.attrs = {{"axis", AttrValue::Int(0)}, {"round_mode", AttrValue::String("away")}};
  ExpectFails(call, Code::kInvalidArgument, {"away"});
  ExpectFails({.type = "Quantize",
               .inputs = {{"x", Pattern(DataType::kFloat, {2})},
                          {"scales", Pattern(DataType::kFloat, {1})}},
               .attrs = {{"dtype", AttrValue::String("torch.float")}}},
              Code::kUnsupported, {"torch.float"});
}

// ---- FlatQuant ----

// Integers in [-most, most], so that sums of products are exact in any order.
Tensor Whole(DataType dtype, const Shape& shape, int seed, double most) {
  std::vector<double> values = ToDoubles(Noise(dtype, shape, seed, most));
  for (double& value : values) value = std::nearbyint(value);
  return FromDoubles(dtype, shape, values);
}

// Elements of x kronecker_p2 are below 65504 and of z below 2^24 for matrices up to 34 x 34.
OpCall FlatCall(DataType dtype, const Shape& x) {
  return {.type = "FlatQuant",
          .inputs = {{"x", Whole(dtype, x, 1, 100)},
                     {"kronecker_p1", Whole(dtype, {x[1], x[1]}, 2, 3)},
                     {"kronecker_p2", Whole(dtype, {x[2], x[2]}, 3, 19)}}};
}

// kronecker_p1 (x kronecker_p2) of every matrix; the first product is rounded to the type of x.
std::vector<double> Transformed(const OpCall& call) {
  const Tensor& input = call.inputs[0].value;
  const auto m = static_cast<size_t>(input.shape()[1]), n = static_cast<size_t>(input.shape()[2]);
  const std::vector<double> x = ToDoubles(input), p1 = ToDoubles(call.inputs[1].value),
                            p2 = ToDoubles(call.inputs[2].value);
  std::vector<double> product(x.size(), 0.0), z(x.size(), 0.0);
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t j = 0; j < n; ++j) product[i] += x[i - i % n + j] * p2[j * n + i % n];
    product[i] = Rounded(input.dtype(), product[i]);
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t matrix = i / (m * n), row = i / n % m;
    for (size_t j = 0; j < m; ++j) z[i] += p1[row * m + j] * product[(matrix * m + j) * n + i % n];
  }
  return z;
}

TEST(FlatQuant, EveryMatrixHasItsScale) {
  const std::vector<Shape> shapes = {{1, 1, 2}, {3, 1, 10}, {1, 5, 2}, {4, 7, 6}, {2, 33, 34}};
  for (const DataType dtype : {DataType::kFloat16, DataType::kBfloat16}) {
    for (const Shape& shape : shapes) {
      for (const float clip : {1.0f, 0.75f, 0.3f}) {
        OpCall call = FlatCall(dtype, shape);
        if (clip != 1) call.attrs = {{"clip_ratio", AttrValue::Float(clip)}};
        std::vector<double> want = Transformed(call), scales;
        const size_t size = static_cast<size_t>(shape[1] * shape[2]);
        for (size_t first = 0; first < want.size(); first += size) {
          double most = 0;
          for (size_t i = 0; i < size; ++i) most = std::max(most, std::fabs(want[first + i]));
          scales.push_back(most * static_cast<double>(clip) / 7);
          for (size_t i = 0; i < size; ++i) want[first + i] /= scales.back();
        }
        const std::vector<Tensor> out = MustRun(call, 2);
        ASSERT_EQ(out[0].type(), (TensorType{DataType::kInt4, shape}));
        ASSERT_EQ(out[1].type(), (TensorType{DataType::kFloat, {shape[0]}}));
        ExpectRounded(out[0], want);
        ExpectNear(out[1], scales);
      }
    }
  }
}

TEST(FlatQuant, RoundsTiesToEvenClipsAndKeepsZeros) {
  for (const DataType dtype : {DataType::kFloat16, DataType::kBfloat16}) {
    std::vector<double> x = {14, -14, 8.5, -8.5, 0.5, 1.5, -2.5, 6.5};
    x.resize(16, 0.0);
    const Tensor p1 = FromDoubles(dtype, {2, 2}, {1, 0, 0, 1});
    const Tensor p2 = FromDoubles(dtype, {4, 4}, {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1});
    const std::vector<Tensor> out = MustRun({.type = "FlatQuant",
                                             .inputs = {{"x", FromDoubles(dtype, {2, 2, 4}, x)},
                                                        {"kronecker_p1", p1},
                                                        {"kronecker_p2", p2}},
                                             .attrs = {{"clip_ratio", AttrValue::Float(0.5f)}}},
                                            2);
    std::vector<double> want = {7, -8, 7, -8, 0, 2, -2, 6};
    want.resize(16, 0.0);
    EXPECT_EQ(Integers(out[0]), want);
    EXPECT_EQ(ToDoubles(out[1]), (std::vector<double>{1, 0}));
  }
}

// The largest of z is 2048 + 1: 2049 of the first product becomes 2048, and 2049 of z is kept.
TEST(FlatQuant, RoundsOnlyTheFirstProduct) {
  const DataType half = DataType::kFloat16;
  const std::vector<Tensor> out =
      MustRun({.type = "FlatQuant",
               .inputs = {{"x", FromDoubles(half, {1, 2, 2}, {1, 1, 0, 1})},
                          {"kronecker_p1", FromDoubles(half, {2, 2}, {1, 1, 0, 1})},
                          {"kronecker_p2", FromDoubles(half, {2, 2}, {2048, 0, 1, 0})}}},
              2);
  EXPECT_EQ(ValuesOf<float>(out[1]), (std::vector<float>{2049.0f / 7}));
}

TEST(FlatQuant, FillsMxBlocks) {
  const AttrValue small = AttrValue::Int(static_cast<int64_t>(DataType::kFloat4E2M1));
  for (const DataType dtype : {DataType::kFloat16, DataType::kBfloat16}) {
    for (const Shape& shape : std::vector<Shape>{{3, 5, 14}, {1, 1, 2}, {2, 8, 8}}) {
      OpCall call = FlatCall(dtype, shape);
      const Shape rows = {shape[0], shape[1] * shape[2]};
      const Tensor z = FromDoubles(DataType::kFloat, rows, Transformed(call));
      const std::vector<Tensor> want = MustRun(
          {.type = "DynamicMxQuant", .inputs = {{"x", z}}, .attrs = {{"dst_type", small}}}, 2);
      call.attrs = {{"dst_dtype", small}, {"clip_ratio", AttrValue::Float(0.5f)}};
      const std::vector<Tensor> got = MustRun(call, 2);
      EXPECT_TRUE(SameBytes(got[0], want[0])) << shape.ToString();
      EXPECT_TRUE(SameBytes(got[1], want[1])) << shape.ToString();
    }
  }
}

TEST(FlatQuant, RefusesAttributesByName) {
  struct Case {
    std::string attribute;
    AttrValue value;
    Code code;
    std::string words;
  };
  OpCall call = FlatCall(DataType::kFloat16, {2, 3, 4});
  for (const Case& c : std::vector<Case>{
           {"dst_dtype", AttrValue::Int(3), Code::kUnsupported, "dst_dtype is int32, expected"},
           {"dst_type_max", AttrValue::Float(6), Code::kUnsupported, "is 6, expected 0"},
           {"group_list_type", AttrValue::Int(1), Code::kUnsupported, "is 1, expected 0"},
           {"clip_ratio", AttrValue::Float(0), Code::kInvalidArgument, "is 0, expected more"},
           {"clip_ratio", AttrValue::Float(1.5f), Code::kInvalidArgument, "is 1.5, expected more"},
       }) {
    call.attrs = {{c.attribute, c.value}};
    ExpectFails(call, c.code, {c.attribute, c.words});
  }
}

TEST(FlatQuant, RefusesInputsByName) {
  const DataType half = DataType::kFloat16;
  const auto fails = [](size_t input, const Tensor& value, const std::string& words) {
    OpCall call = FlatCall(DataType::kFloat16, {2, 3, 4});
    call.inputs[input].value = value;
    ExpectFails(call, Code::kInvalidArgument, {words});
  };
  fails(0, Pattern(DataType::kFloat, {2, 3, 4}), "x is float32[2,3,4], expected float16 or");
  fails(0, Pattern(half, {3, 4}), "x is float16[3,4], expected 3 dimensions");
  fails(1, Pattern(half, {3, 4}), "kronecker_p1 is float16[3,4], expected float16 of shape [3,3]");
  fails(2, Pattern(half, {3, 3}), "kronecker_p2 is float16[3,3], expected float16 of shape [4,4]");
  fails(2, Pattern(DataType::kBfloat16, {4, 4}), "kronecker_p2 is bfloat16[4,4], expected float16");
  OpCall odd = FlatCall(half, {2, 3, 1});
  ExpectFails(odd, Code::kInvalidArgument, {"int4", "even last dimension"});
  odd.attrs = {{"dst_dtype", AttrValue::Int(static_cast<int64_t>(DataType::kFloat4E2M1))}};
  ExpectFails(odd, Code::kInvalidArgument, {"4-bit", "even last dimension"});
  OpCall grouped = FlatCall(half, {2, 3, 4});
  grouped.inputs.push_back({"group_list", MakeInts({2})});
  ExpectFails(grouped, Code::kUnsupported, {"\"group_list\" is fed"});
}

}  // namespace
}  // namespace npumesh
