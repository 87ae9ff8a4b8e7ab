// DynamicQuant, DynamicQuantV2, AscendQuantV2, AscendQuant, Quantize and FlatQuant.
// RotateQuant against its definition in double, on drawn cases.
#include <random>

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

// ---- AscendQuantV2, AscendQuant, Quantize ----

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

}  // namespace
}  // namespace npumesh
