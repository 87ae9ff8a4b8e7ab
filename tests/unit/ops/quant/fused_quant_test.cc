// GeluQuant, GroupQuant, QuantMax, DynamicBlockQuant, GroupedDynamicBlockQuant,
// AddRmsNormDynamicQuant, norms with given scales and SwiGluQuant against double.
#include <cmath>

#include "tests/unit/op_reference.h"
#include "tests/unit/op_types.h"
#include "tests/unit/op_values.h"
#include "tests/unit/ops/quant/small_values.h"

namespace npumesh {
namespace {

double LargestOfType(DataType dtype) {
  return dtype == kE4M3             ? 448
         : dtype == kE5M2           ? 57344
         : dtype == kHif8           ? 32768
         : dtype == DataType::kInt4 ? 7
                                    : 127;
}

// `got` is `exact` rounded to its type: integers to the nearest, floats within half a step of a
// relative 2^-bits.
void ExpectQuantised(const Tensor& got, const std::vector<double>& exact) {
  if (IsInteger(got.dtype()) || got.dtype() == DataType::kInt4) return ExpectRounded(got, exact);
  const std::vector<double> values = Wide(got);
  ASSERT_EQ(values.size(), exact.size());
  // E5M2 has two bits behind the point and so has, at worst, HIFLOAT8: one.
  const double step = got.dtype() == kE4M3 ? 0x1p-4 : got.dtype() == kE5M2 ? 0x1p-3 : 0x1p-2;
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(values[i], exact[i], step * std::fabs(exact[i]) * 1.001 + 1e-2) << i;
  }
}

double Gelu(double x, bool tanh) {
  if (!tanh) return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

// Rows of `values` divided by max / largest; the scales.
std::vector<double> ScaleRows(std::vector<double>& values, size_t width, double largest) {
  std::vector<double> scales;
  for (size_t first = 0; first < values.size(); first += width) {
    double most = 0;
    for (size_t i = 0; i < width; ++i) most = std::max(most, std::fabs(values[first + i]));
    scales.push_back(most / largest);
    for (size_t i = 0; i < width; ++i) values[first + i] /= scales.back();
  }
  return scales;
}

TEST(GeluQuant, StaticAndDynamic) {
  const int64_t rows = 3, width = 520;
  const Tensor s = Noise(kF32, {width}, 2, 20), o = Noise(kF32, {1}, 3, 5);
  for (const DataType from : {kF32, kF16, kBf16}) {
    const Tensor x = Noise(from, {rows, width}, 1, 3);
    for (const DataType to : {kInt8, kE4M3, kE5M2, kHif8}) {
      for (const bool tanh : {false, true}) {
        for (const bool dynamic : {false, true}) {
          OpCall call = {
              .type = "GeluQuant",
              .inputs = {{"x", x}, {"input_scale", s}},
              .attrs = {{"approximate", AttrValue::String(tanh ? "tanh" : "none")},
                        {"quant_mode", AttrValue::String(dynamic ? "dynamic" : "static")},
                        {"dst_type", TypeAttr(to)}}};
          if (!dynamic) call.inputs.push_back({"input_offset", o});
          std::vector<double> want = ToDoubles(x);
          for (size_t i = 0; i < want.size(); ++i) {
            want[i] = Gelu(want[i], tanh) * ToDoubles(s)[i % static_cast<size_t>(width)];
            if (!dynamic) want[i] += ToDoubles(o)[0];
          }
          const std::vector<Tensor> got = Results(call);
          std::vector<double> scales(rows, 0.0);
          if (dynamic) scales = ScaleRows(want, width, LargestOfType(to));
          ASSERT_EQ(got[1].type(), (TensorType{kF32, {rows}}));
          ExpectNear(got[1], scales);
          ASSERT_EQ(got[0].dtype(), to);
          ExpectQuantised(got[0], want);
        }
      }
    }
  }
}

TEST(GroupQuant, EveryGroupHasItsScales) {
  const Tensor x = Noise(kBf16, {6, 4}, 1, 10), scale = Noise(kF32, {3, 4}, 2, 8);
  const std::vector<int64_t> ends = {2, 2, 5};  // the last row is in no group: zeros
  for (const bool offset : {false, true}) {
    for (const DataType to : {kInt8, DataType::kInt4}) {
      OpCall call = {.type = "GroupQuant",
                     .inputs = {{"x", x}, {"scale", scale}, {"group_index", MakeInts(ends)}},
                     .attrs = {{"dst_type", TypeAttr(to)}}};
      if (offset) call.inputs.push_back({"offset", FromDoubles(kF32, {1}, {2.25})});
      std::vector<double> want(24, 0.0);
      for (size_t i = 0; i < 20; ++i) {
        const size_t group = i / 4 < 2 ? 0 : 2;
        want[i] = ToDoubles(x)[i] * ToDoubles(scale)[group * 4 + i % 4] + (offset ? 2.25 : 0);
      }
      ExpectRounded(Results(call)[0], want);
    }
  }
}

TEST(QuantMax, ScalesAndFindsTheLargest) {
  for (const DataType from : {kF32, kF16, kBf16}) {
    for (const DataType to : {kE4M3, kE5M2, kHif8}) {
      const Tensor x = Noise(from, {3, 300}, 1, 4);
      OpCall call = {.type = "QuantMax",
                     .inputs = {{"x", x}, {"scale", FromDoubles(kF32, {1}, {2.5})}},
                     .attrs = {{"dst_type", TypeAttr(to)}}};
      std::vector<double> want = ToDoubles(x);
      double most = 0;
      for (double& value : want) {
        most = std::max(most, std::fabs(value));
        value *= 2.5;
      }
      const std::vector<Tensor> got = Results(call);
      ExpectQuantised(got[0], want);
      EXPECT_EQ(got[1].type(), (TensorType{from, {1}}));
      EXPECT_EQ(ToDoubles(got[1]), std::vector<double>{most});
    }
  }
}

// Tiles of a matrix from row `begin` to `end`; scales[tile row][tile column].
void Tiles(const std::vector<double>& x, int64_t width, int64_t begin, int64_t end, int64_t rows,
           int64_t columns, double largest, std::vector<double>& y, std::vector<double>& scales,
           int64_t first_scale) {
  const int64_t across = (width + columns - 1) / columns;
  for (int64_t pass = 0; pass < 2; ++pass) {
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t c = 0; c < width; ++c) {
        double& scale =
            scales[static_cast<size_t>((first_scale + (r - begin) / rows) * across + c / columns)];
        const double value = x[static_cast<size_t>(r * width + c)];
        if (pass == 0) scale = std::max(scale, std::fabs(value) / largest);
        if (pass == 1) y[static_cast<size_t>(r * width + c)] = value / scale;
      }
    }
  }
}

TEST(DynamicBlockQuant, TilesOfEverySize) {
  for (const DataType to : {kInt8, kE4M3, kE5M2, kHif8}) {
    for (const int64_t rows : {1, 4}) {
      const Tensor x = Noise(kBf16, {7, 150}, 1, 3);
      const OpCall call = {.type = "DynamicBlockQuant",
                           .inputs = {{"x", x}},
                           .attrs = {{"dst_type", TypeAttr(to)},
                                     {"row_block_size", AttrValue::Int(rows)},
                                     {"col_block_size", AttrValue::Int(64)}}};
      const int64_t down = (7 + rows - 1) / rows;
      std::vector<double> y(7 * 150), scales(static_cast<size_t>(down * 3), 0.0);
      Tiles(ToDoubles(x), 150, 0, 7, rows, 64, LargestOfType(to), y, scales, 0);
      const std::vector<Tensor> got = Results(call);
      EXPECT_EQ(got[1].shape(), Shape({down, 3}));
      ExpectNear(got[1], scales);
      ExpectQuantised(got[0], y);
    }
  }
}

TEST(DynamicBlockQuant, HasItsOwnTilesForEveryMatrix) {
  const Tensor one = Noise(kF16, {3, 130}, 1), two = Noise(kF16, {3, 130}, 2);
  std::vector<double> both = ToDoubles(one);
  for (const double value : ToDoubles(two)) both.push_back(value);
  const auto call = [](const Tensor& x) {
    return OpCall{.type = "DynamicBlockQuant",
                  .inputs = {{"x", x}},
                  .attrs = {{"row_block_size", AttrValue::Int(2)}}};
  };
  const std::vector<Tensor> got = Results(call(FromDoubles(kF16, {2, 3, 130}, both)));
  EXPECT_EQ(got[1].shape(), Shape({2, 2, 2}));
  std::vector<double> y = Wide(Results(call(one))[0]);
  for (const double value : Wide(Results(call(two))[0])) y.push_back(value);
  EXPECT_EQ(Wide(got[0]), y);
}

TEST(GroupedDynamicBlockQuant, TilesRestart) {
  const Tensor x = Noise(kF16, {10, 100}, 1, 3);
  const std::vector<int32_t> ends = {3, 3, 8};  // two rows in no group
  OpCall call = {.type = "GroupedDynamicBlockQuant",
                 .inputs = {{"x", x}, {"group_list", Make<int32_t>(DataType::kInt32, {3}, ends)}},
                 .attrs = {{"dst_type", TypeAttr(kE4M3)},
                           {"row_block_size", AttrValue::Int(2)},
                           {"col_block_size", AttrValue::Int(64)}}};
  std::vector<double> y(1000, 0.0), scales(8 * 2, 0.0);
  Tiles(ToDoubles(x), 100, 0, 3, 2, 64, 448, y, scales, 0);
  Tiles(ToDoubles(x), 100, 3, 8, 2, 64, 448, y, scales, 3 / 2 + 2);
  const std::vector<Tensor> got = Results(call);
  EXPECT_EQ(got[1].shape(), Shape({8, 2}));
  ExpectNear(got[1], scales);
  ExpectQuantised(got[0], y);
}

// The list is required, so one without entries means that there are no groups.
TEST(GroupedDynamicBlockQuant, NoGroupsQuantiseNothing) {
  const OpCall call = {.type = "GroupedDynamicBlockQuant",
                       .inputs = {{"x", Noise(kF16, {10, 100}, 1, 3)},
                                  {"group_list", Make<int32_t>(DataType::kInt32, {0}, {})}},
                       .attrs = {{"dst_type", TypeAttr(kE4M3)},
                                 {"row_block_size", AttrValue::Int(4)},
                                 {"col_block_size", AttrValue::Int(64)}}};
  const std::vector<Tensor> got = Results(call);
  EXPECT_EQ(got[1].shape(), Shape({2, 2}));
  EXPECT_EQ(Wide(got[0]), std::vector<double>(1000, 0.0));
  EXPECT_EQ(Wide(got[1]), std::vector<double>(4, 0.0));
}

struct NormCase {
  bool smooth1, smooth2, beta;
  std::vector<bool> mask;
};

TEST(AddRmsNormDynamicQuant, EveryOutput) {
  const int64_t rows = 4, width = 70;
  for (const DataType dtype : {kF16, kBf16}) {
    const Tensor x1 = Noise(dtype, {2, 2, width}, 1, 2), x2 = Noise(dtype, {2, 2, width}, 2, 2);
    const Tensor gamma = Noise(dtype, {width}, 3, 2), beta = Noise(dtype, {width}, 4);
    const Tensor smooth[] = {Noise(dtype, {width}, 5, 2), Noise(dtype, {width}, 6, 2)};
    for (const NormCase& test : {NormCase{false, false, false, {}},
                                 {true, false, true, {}},
                                 {true, true, false, {}},
                                 {false, true, true, {false, true}},
                                 {true, false, false, {true, true}}}) {
      OpCall call = {.type = "AddRmsNormDynamicQuant",
                     .inputs = {{"x1", x1}, {"x2", x2}, {"gamma", gamma}}};
      if (test.smooth1) call.inputs.push_back({"smooth_scale1", smooth[0]});
      if (test.smooth2) call.inputs.push_back({"smooth_scale2", smooth[1]});
      if (test.beta) call.inputs.push_back({"beta", beta});
      if (!test.mask.empty()) call.attrs.emplace_back("output_mask", AttrValue::Bools(test.mask));
      std::vector<double> sum = ToDoubles(x1), y;
      for (size_t i = 0; i < sum.size(); ++i) {
        sum[i] = Rounded(dtype, sum[i] + ToDoubles(x2)[i]);
      }
      for (int64_t r = 0; r < rows; ++r) {
        double squares = 0;
        for (int64_t i = 0; i < width; ++i) {
          squares +=
              sum[static_cast<size_t>(r * width + i)] * sum[static_cast<size_t>(r * width + i)];
        }
        const double rms = std::sqrt(squares / static_cast<double>(width) + 1e-6);
        for (int64_t i = 0; i < width; ++i) {
          const auto c = static_cast<size_t>(i);
          y.push_back(sum[static_cast<size_t>(r * width + i)] / rms * ToDoubles(gamma)[c] +
                      (test.beta ? ToDoubles(beta)[c] : 0));
        }
      }
      const std::vector<Tensor> got = Results(call);
      EXPECT_EQ(ToDoubles(got[2]), sum);
      const bool wanted[] = {test.mask.empty() || test.mask[0],
                             test.mask.empty() ? test.smooth2 : test.mask[1]};
      for (const size_t i : {size_t{0}, size_t{1}}) {
        if (!wanted[i]) {  // one element is left
          EXPECT_EQ(got[i].type(), (TensorType{kInt8, {1}}));
          EXPECT_EQ(got[3 + i].type(), (TensorType{kF32, {1}}));
          continue;
        }
        std::vector<double> scaled = y;
        for (size_t e = 0; e < scaled.size(); ++e) {
          if (i == 0 ? test.smooth1 : test.smooth2) {
            scaled[e] *= ToDoubles(smooth[i])[e % static_cast<size_t>(width)];
          }
        }
        const std::vector<double> scales = ScaleRows(scaled, static_cast<size_t>(width), 127);
        EXPECT_EQ(got[i].type(), (TensorType{kInt8, {2, 2, width}}));
        EXPECT_EQ(got[3 + i].shape(), Shape({2, 2}));
        ExpectNear(got[3 + i], scales, 1e-5);
        ExpectRounded(got[i], scaled);
      }
    }
  }
}

// ---- norms with given scales, and the gated activation, drawn ----

int64_t Extent(Random& random, int64_t least, int64_t most) {
  return least + static_cast<int64_t>(random.Bits() % static_cast<uint64_t>(most - least + 1));
}

// Rows of x / rms(x) * gamma + beta.
std::vector<double> RmsRows(const std::vector<double>& x, const Tensor& gamma, const Tensor* beta,
                            size_t width) {
  std::vector<double> y;
  for (size_t r = 0; r < x.size(); r += width) {
    double squares = 0;
    for (size_t i = 0; i < width; ++i) squares += x[r + i] * x[r + i];
    const double rms = std::sqrt(squares / static_cast<double>(width) + 1e-6);
    for (size_t i = 0; i < width; ++i) {
      y.push_back(x[r + i] / rms * ToDoubles(gamma)[i] +
                  (beta == nullptr ? 0 : ToDoubles(*beta)[i]));
    }
  }
  return y;
}

TEST(NormQuant, RandomScales) {
  Random random(20261203);
  const DataType targets[] = {kInt8, DataType::kInt4, kE4M3, kE5M2, kHif8};
  for (int turn = 0; turn < 120; ++turn) {
    const char* const types[] = {"RmsNormQuant", "RmsNormQuantV2", "AddRmsNormQuant"};
    const std::string type = types[turn % 3];
    const DataType dtype = turn % 2 == 0 ? kF16 : kBf16;
    const int64_t rows = Extent(random, 1, 4), width = 2 * Extent(random, 1, 20);
    const DataType to = targets[Extent(random, 0, 4)];
    const Tensor x = Noise(dtype, {rows, width}, turn, 2),
                 other = Noise(dtype, {rows, width}, turn + 1, 2),
                 gamma = Noise(dtype, {width}, turn + 2, 2), beta = Noise(dtype, {width}, turn + 3);
    const bool sums = turn % 3 == 2, two = turn % 3 != 0 && turn % 4 < 2, divides = turn % 5 != 0;
    const bool shifts = turn % 2 == 0 || turn % 3 == 0, with_beta = turn % 3 == 0 || turn % 7 < 3;
    const Shape scale_shape = turn % 4 == 0 ? Shape{1} : Shape{width};
    Tensor scales[2], offsets[2];
    for (const int i : {0, 1}) {
      scales[i] = Noise(kF32, scale_shape, turn + 4 + i, 0.01);
      std::vector<double> values = ToDoubles(scales[i]);
      for (double& value : values)
        value = divides || turn % 3 == 0 ? std::fabs(value) + 0.02 : value * 2000;
      scales[i] = FromDoubles(kF32, scale_shape, values);
      offsets[i] = turn % 3 == 0 ? Noise(kInt8, scale_shape, turn + 6 + i, 5)
                                 : Noise(DataType::kInt32, scale_shape, turn + 6 + i, 5);
    }
    OpCall call = {.type = type,
                   .inputs = {{sums ? "x1" : "x", x}, {"gamma", gamma}},
                   .attrs = {{"dst_type", TypeAttr(to)}}};
    if (sums) call.inputs.push_back({"x2", other});
    if (with_beta) call.inputs.push_back({"beta", beta});
    call.inputs.push_back({turn % 3 == 0 ? "scale" : "scales1", scales[0]});
    if (shifts) call.inputs.push_back({turn % 3 == 0 ? "offset" : "zero_points1", offsets[0]});
    if (two) call.inputs.push_back({"scales2", scales[1]});
    if (two && shifts) call.inputs.push_back({"zero_points2", offsets[1]});
    if (turn % 3 != 0) call.attrs.emplace_back("div_mode", AttrValue::Bool(divides));
    std::vector<double> sum = ToDoubles(x);
    for (size_t i = 0; sums && i < sum.size(); ++i) {
      sum[i] = Rounded(dtype, sum[i] + ToDoubles(other)[i]);
    }
    const std::vector<double> y =
        RmsRows(sum, gamma, with_beta ? &beta : nullptr, static_cast<size_t>(width));
    const std::vector<Tensor> got = Results(call);
    for (const size_t i : {size_t{0}, size_t{1}}) {
      if (i == 1 && turn % 3 == 0) break;
      ASSERT_EQ(got[i].type(), (TensorType{to, {rows, width}})) << type;
      std::vector<double> want = y;
      for (size_t e = 0; e < want.size(); ++e) {
        const size_t at = scale_shape.elements() == 1 ? 0 : e % static_cast<size_t>(width);
        const double scale = ToDoubles(scales[i])[at];
        want[e] = divides || turn % 3 == 0 ? want[e] / scale : want[e] * scale;
        if (shifts) want[e] += ToDoubles(offsets[i])[at];
        if (i == 1 && !two) want[e] = 0;
      }
      SCOPED_TRACE(type + ", turn " + std::to_string(turn));
      ExpectQuantised(got[i], want);
    }
    if (sums) {
      EXPECT_EQ(ToDoubles(got[2]), sum);
    }
  }
}

TEST(SwiGluQuant, RandomGroups) {
  Random random(20261204);
  for (int turn = 0; turn < 100; ++turn) {
    const DataType types[] = {kF32, kF16, kBf16};
    const DataType dtype = types[turn % 3], to = turn % 4 == 0 ? DataType::kInt4 : kInt8;
    const bool dynamic = turn % 2 == 0, left = turn % 5 < 2, counts = turn % 7 < 3;
    const int64_t rows = Extent(random, 1, 6), width = 2 * Extent(random, 1, 16);
    const int64_t groups = turn % 3 == 0 ? 0 : Extent(random, 1, 3),
                  sets = std::max<int64_t>(groups, 1);
    const Tensor x = Noise(dtype, {rows, 2 * width}, turn, 3);
    const Tensor smooth = Noise(kF32, {sets, width}, turn + 1, dynamic ? 2 : 30),
                 offsets = Noise(kF32, {sets, width}, turn + 2, 9);
    std::vector<double> list;
    std::vector<size_t> group_of;
    int64_t end = 0;
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t count = Extent(random, 0, rows - end);
      end += count;
      list.push_back(static_cast<double>(counts ? count : end));
      group_of.resize(static_cast<size_t>(end), static_cast<size_t>(g));
    }
    if (groups == 0) group_of.resize(static_cast<size_t>(rows), 0);
    OpCall call = {.type = "SwiGluQuant",
                   .inputs = {{"x", x}, {"smooth_scales", smooth}},
                   .attrs = {{"activate_left", AttrValue::Bool(left)},
                             {"quant_mode", AttrValue::String(dynamic ? "dynamic" : "static")},
                             {"group_list_type", AttrValue::Int(counts ? 1 : 0)},
                             {"dst_type", TypeAttr(to)}}};
    if (!dynamic) call.inputs.push_back({"offsets", offsets});
    if (groups > 0)
      call.inputs.push_back({"group_index", FromDoubles(DataType::kInt32, {groups}, list)});
    const std::vector<Tensor> got = Results(call);
    ASSERT_EQ(got[0].type(), (TensorType{to, {rows, width}}));
    ASSERT_EQ(got[1].type(), (TensorType{kF32, {rows}}));
    const auto n = static_cast<size_t>(width);
    std::vector<double> want(static_cast<size_t>(rows) * n, 0.0),
        scales(static_cast<size_t>(rows), 0.0);
    for (size_t r = 0; r < group_of.size(); ++r) {
      double most = 0;
      for (size_t i = 0; i < n; ++i) {
        const double a = ToDoubles(x)[2 * r * n + i], b = ToDoubles(x)[(2 * r + 1) * n + i];
        const double gate = left ? a : b, value = left ? b : a;
        double& z = want[r * n + i];
        z = gate / (1 + std::exp(-gate)) * value * ToDoubles(smooth)[group_of[r] * n + i];
        if (!dynamic) z += ToDoubles(offsets)[group_of[r] * n + i];
        most = std::max(most, std::fabs(z));
      }
      if (!dynamic) continue;
      scales[r] = LargestOfType(to) / most;
      for (size_t i = 0; i < n; ++i) want[r * n + i] *= scales[r];
    }
    SCOPED_TRACE("turn " + std::to_string(turn));
    ExpectRounded(got[0], want);
    ExpectNear(got[1], scales, 1e-5);
  }
}

}  // namespace
}  // namespace npumesh
