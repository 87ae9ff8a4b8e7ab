// MX quantisation against a search for the nearest element of each format.
#include <cmath>
#include <limits>
#include <random>

#include "tests/unit/op_types.h"
#include "tests/unit/op_values.h"
#include "tests/unit/ops/quant/small_values.h"

namespace npumesh {
namespace {

const std::vector<DataType> kElements = {kE4M3, kE5M2, kE2M1, kE1M2};

// The magnitudes of a format by code, without sign.
const std::vector<double>& Magnitudes(DataType dtype) {
  static const std::vector<double> e2m1 = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  static const std::vector<double> e1m2 = {0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75};
  static const auto eight = [](DataType type, size_t codes) {
    std::vector<uint8_t> bytes(codes);
    for (size_t i = 0; i < codes; ++i) bytes[i] = static_cast<uint8_t>(i);
    return Wide(Make<uint8_t>(type, {static_cast<int64_t>(codes)}, bytes));
  };
  static const std::vector<double> e4m3 = eight(kE4M3, 0x7f), e5m2 = eight(kE5M2, 0x7c);
  return dtype == kE2M1 ? e2m1 : dtype == kE1M2 ? e1m2 : dtype == kE4M3 ? e4m3 : e5m2;
}

// The element nearest to x; "rint": ties to the even code, "round": away from zero, "floor": down.
double Nearest(DataType dtype, double x, const std::string& mode) {
  const std::vector<double>& grid = Magnitudes(dtype);
  const double size = std::min(std::fabs(x), grid.back());
  size_t low = 0;
  while (low + 1 < grid.size() && grid[low + 1] <= size) ++low;
  size_t code = low;
  if (low + 1 < grid.size()) {
    const double below = size - grid[low], above = grid[low + 1] - size;
    bool up = above < below || (above == below && (mode == "round" || low % 2 == 1));
    if (mode == "floor") up = std::signbit(x) && below > 0;
    code = up ? low + 1 : low;
  }
  return std::signbit(x) ? -grid[code] : grid[code];
}

// The exponent of the scale of a block.
int Exponent(DataType dtype, double most, bool up) {
  if (most == 0) return -127;
  const double largest = Magnitudes(dtype).back();
  if (up) return std::max(static_cast<int>(std::ceil(std::log2(most / largest))), -127);
  const int exponent = std::ilogb(most) - std::ilogb(largest);
  return std::max(exponent, -127);
}

// Element by element of packed or byte tensors.
std::vector<double> Elements(const Tensor& y) {
  if (y.dtype() != kE2M1 && y.dtype() != kE1M2) return Wide(y);
  std::vector<double> values;
  for (int64_t i = 0; i < y.elements(); ++i) {
    const int code = static_cast<int>(y.data()[i / 2] >> (i % 2 * 4)) & 15;
    const double size = Magnitudes(y.dtype())[static_cast<size_t>(code & 7)];
    values.push_back(code >= 8 ? -size : size);
  }
  return values;
}

struct Wanted {
  std::vector<double> y;
  std::vector<uint8_t> scales;
};

// Blocks of `block` along the middle one of [outer, length, inner].
Wanted Quantised(const std::vector<double>& x, int64_t outer, int64_t length, int64_t inner,
                 int64_t block, DataType dtype, bool up = false, const std::string& mode = "rint") {
  const int64_t pairs = (length + 2 * block - 1) / (2 * block);
  Wanted want = {std::vector<double>(x.size()),
                 std::vector<uint8_t>(static_cast<size_t>(outer * pairs * inner * 2), 0)};
  for (int64_t line = 0; line < outer * inner; ++line) {
    const int64_t o = line / inner, i = line % inner;
    const auto at = [&](int64_t r) { return static_cast<size_t>((o * length + r) * inner + i); };
    for (int64_t begin = 0; begin < length; begin += block) {
      const int64_t end = std::min(length, begin + block), b = begin / block;
      double most = 0;
      for (int64_t r = begin; r < end; ++r) most = std::max(most, std::fabs(x[at(r)]));
      const int exponent = Exponent(dtype, most, up);
      want.scales[static_cast<size_t>(((o * pairs + b / 2) * inner + i) * 2 + b % 2)] =
          static_cast<uint8_t>(exponent + 127);
      for (int64_t r = begin; r < end; ++r) {
        const double quotient = exponent == -127 ? 0 : std::ldexp(x[at(r)], -exponent);
        want.y[at(r)] = Nearest(dtype, quotient, mode);
      }
    }
  }
  return want;
}

void ExpectWanted(const Wanted& want, const Tensor& y, const Tensor& scales,
                  const std::string& what) {
  EXPECT_EQ(scales.dtype(), kE8M0);
  EXPECT_EQ(ValuesOf<uint8_t>(scales), want.scales) << what;
  EXPECT_EQ(Elements(y), want.y) << what;
}

TEST(DynamicMxQuant, EveryAxisAndFormat) {
  for (const DataType from : {kF16, kBf16, kF32}) {
    const Tensor x = Noise(from, {3, 70, 6}, 1, 30);
    for (const DataType to : kElements) {
      for (int axis = 0; axis < 3; ++axis) {
        const OpCall call = {
            .type = "DynamicMxQuant",
            .inputs = {{"x", x}},
            .attrs = {{"axis", AttrValue::Int(axis - 3)}, {"dst_type", TypeAttr(to)}}};
        const std::vector<Tensor> got = Results(call);
        const int64_t dims[] = {3, 70, 6};
        const int64_t outer = axis == 0 ? 1 : axis == 1 ? 3 : 210;
        const int64_t inner = axis == 0 ? 420 : axis == 1 ? 6 : 1;
        Shape scales({3, 70, 6, 2});
        scales[axis] = axis == 1 ? 2 : 1;
        EXPECT_EQ(got[1].shape(), scales);
        ExpectWanted(Quantised(ToDoubles(x), outer, dims[axis], inner, 32, to), got[0], got[1],
                     std::string(Name(to)) + " axis " + std::to_string(axis));
      }
    }
  }
}

TEST(DynamicMxQuant, BlocksRoundingsAndScalesThatRoundUp) {
  const Tensor x = Noise(kF32, {2, 200}, 3, 100);
  OpCall call = {.type = "DynamicMxQuant",
                 .inputs = {{"x", x}},
                 .attrs = {{"dst_type", TypeAttr(kE4M3)},
                           {"blocksize", AttrValue::Int(96)},
                           {"scale_alg", AttrValue::Int(1)}}};
  std::vector<Tensor> got = Results(call);
  EXPECT_EQ(got[1].shape(), Shape({2, 2, 2}));
  ExpectWanted(Quantised(ToDoubles(x), 2, 200, 1, 96, kE4M3, true), got[0], got[1], "96");
  for (const std::string mode : {"rint", "round", "floor"}) {
    call.attrs = {{"dst_type", TypeAttr(kE2M1)}, {"round_mode", AttrValue::String(mode)}};
    got = Results(call);
    ExpectWanted(Quantised(ToDoubles(x), 2, 200, 1, 32, kE2M1, false, mode), got[0], got[1], mode);
  }
}

// The first level in float, as the device computes it; the second by the search above.
TEST(DynamicDualLevelMxQuant, GivesWhatItsDefinitionSays) {
  std::mt19937 random(3);
  const auto below = [&](unsigned bound) { return static_cast<int64_t>(random() % bound); };
  const std::string modes[] = {"rint", "round", "floor"};
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(i);
    const DataType dtype = below(2) == 0 ? kF16 : kBf16;
    const int64_t rows = 1 + below(4), width = 2 + 2 * below(i % 3 == 0 ? 700 : 40);
    const std::string& mode = modes[below(3)];
    const Tensor x = Noise(dtype, {rows, width}, i, std::exp2(static_cast<double>(below(12))));
    OpCall call = {.type = "DynamicDualLevelMxQuant",
                   .inputs = {{"x", x}},
                   .attrs = {{"round_mode", AttrValue::String(mode)}}};
    std::vector<double> values = ToDoubles(x);
    if (below(2) == 0) {
      const Tensor smooth = Noise(dtype, {width}, i + 100, 2);
      call.inputs.push_back({"smooth_scale", smooth});
      for (size_t e = 0; e < values.size(); ++e) {
        values[e] = Rounded(dtype, values[e] * ToDoubles(smooth)[e % static_cast<size_t>(width)]);
      }
    }
    std::vector<double> scales;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t begin = 0; begin < width; begin += 512) {
        float most = 0;
        const auto first = values.begin() + r * width + begin;
        const auto last = first + std::min<int64_t>(512, width - begin);
        for (auto v = first; v != last; ++v)
          most = std::max(most, static_cast<float>(std::fabs(*v)));
        const float scale = most * (1.0f / 6);
        scales.push_back(static_cast<double>(scale));
        for (auto v = first; v != last; ++v) {
          if (*v != 0) *v = Rounded(dtype, static_cast<double>(static_cast<float>(*v) / scale));
        }
      }
    }
    const std::vector<Tensor> got = Results(call);
    EXPECT_EQ(got[0].shape(), x.shape());
    EXPECT_EQ(ToDoubles(got[1]), scales);
    ExpectWanted(Quantised(values, rows, width, 1, 32, kE2M1, false, mode), got[0], got[2], mode);
    if (HasFailure()) return;
  }
}

// The vendor's own test, 512 times 8; zeros; and what is not finite, which counts for no scale but
// that of its 32.
TEST(DynamicDualLevelMxQuant, KnownBlocks) {
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> values(512, 8);
  std::vector<Tensor> got = Results(
      {.type = "DynamicDualLevelMxQuant", .inputs = {{"x", FromDoubles(kBf16, {1, 512}, values)}}});
  EXPECT_EQ(Elements(got[0]), std::vector<double>(512, 6));
  EXPECT_EQ(ValuesOf<float>(got[1]), std::vector<float>{8.0f * (1.0f / 6)});
  EXPECT_EQ(got[2].shape(), Shape({1, 8, 2}));
  EXPECT_EQ(ValuesOf<uint8_t>(got[2]), std::vector<uint8_t>(16, 127));
  values.assign(96, 0);
  std::fill_n(values.begin() + 32, 32, -3);
  values[64] = infinity;
  got = Results(
      {.type = "DynamicDualLevelMxQuant", .inputs = {{"x", FromDoubles(kF16, {96}, values)}}});
  EXPECT_EQ(ToDoubles(got[1]), std::vector<double>{0.5});
  EXPECT_EQ(ValuesOf<uint8_t>(got[2]), (std::vector<uint8_t>{0, 127, 255, 0}));
  EXPECT_EQ(Elements(got[0])[40], -6);
}

TEST(DynamicMxQuantWithDualAxis, IsTheSameTwice) {
  const Tensor x = Noise(kBf16, {2, 40, 66}, 1, 5);
  for (const DataType to : kElements) {
    const std::vector<Tensor> got = Results({.type = "DynamicMxQuantWithDualAxis",
                                             .inputs = {{"x", x}},
                                             .attrs = {{"dst_type", TypeAttr(to)}}});
    ExpectWanted(Quantised(ToDoubles(x), 80, 66, 1, 32, to), got[0], got[1], "last");
    ExpectWanted(Quantised(ToDoubles(x), 2, 40, 66, 32, to), got[2], got[3], "second last");
  }
}

TEST(DynamicBlockMxQuant, TilesShareTheirScale) {
  const int64_t height = 40, width = 70;
  const Tensor x = Noise(kF16, {2, height, width}, 1, 20);
  const std::vector<double> values = ToDoubles(x);
  for (const DataType to : kElements) {
    const std::vector<Tensor> got = Results({.type = "DynamicBlockMxQuant",
                                             .inputs = {{"x", x}},
                                             .attrs = {{"dst_type", TypeAttr(to)}}});
    EXPECT_EQ(got[1].shape(), Shape({2, height, 2, 2}));
    EXPECT_EQ(got[2].shape(), Shape({2, 1, width, 2}));
    std::vector<double> y(values.size());
    std::vector<uint8_t> along(static_cast<size_t>(2 * height * 4), 0);
    std::vector<uint8_t> down(static_cast<size_t>(2 * width * 2), 0);
    for (int64_t at = 0; at < 2 * height * width; ++at) {
      const int64_t c = at % width, r = at / width % height, m = at / width / height;
      double most = 0;
      for (int64_t i = r / 32 * 32; i < std::min(height, r / 32 * 32 + 32); ++i) {
        for (int64_t j = c / 32 * 32; j < std::min(width, c / 32 * 32 + 32); ++j) {
          most =
              std::max(most, std::fabs(values[static_cast<size_t>((m * height + i) * width + j)]));
        }
      }
      const int exponent = Exponent(to, most, false);
      const auto byte = static_cast<uint8_t>(exponent + 127);
      along[static_cast<size_t>((m * height + r) * 4 + c / 32)] = byte;
      down[static_cast<size_t>((m * width + c) * 2 + r / 32)] = byte;
      y[static_cast<size_t>(at)] =
          Nearest(to, std::ldexp(values[static_cast<size_t>(at)], -exponent), "rint");
    }
    EXPECT_EQ(Elements(got[0]), y);
    EXPECT_EQ(ValuesOf<uint8_t>(got[1]), along);
    EXPECT_EQ(ValuesOf<uint8_t>(got[2]), down);
  }
}

TEST(GroupedDynamicMxQuant, BlocksRestartWithTheGroup) {
  const int64_t width = 4;
  const Tensor x = Noise(kF16, {140, width}, 1, 9);
  const std::vector<int64_t> ends = {40, 40, 110};  // 30 rows in no group
  for (const DataType to : kElements) {
    OpCall call = {.type = "GroupedDynamicMxQuant",
                   .inputs = {{"x", x}, {"group_index", MakeInts(ends)}},
                   .attrs = {{"dst_type", TypeAttr(to)}}};
    const std::vector<Tensor> got = Results(call);
    EXPECT_EQ(got[1].shape(), Shape({140 / 64 + 3, width, 2}));
    Wanted want = {std::vector<double>(140 * width, 0.0), std::vector<uint8_t>(5 * width * 2, 0)};
    int64_t begin = 0;
    for (size_t g = 0; g < ends.size(); ++g) {
      const std::vector<double> all = ToDoubles(x);
      const Wanted part = Quantised({all.begin() + begin * width, all.begin() + ends[g] * width}, 1,
                                    ends[g] - begin, width, 32, to);
      std::copy(part.y.begin(), part.y.end(), want.y.begin() + begin * width);
      const int64_t pair = begin / 64 + static_cast<int64_t>(g);
      std::copy(part.scales.begin(), part.scales.end(), want.scales.begin() + pair * width * 2);
      begin = ends[g];
    }
    ExpectWanted(want, got[0], got[1], std::string(Name(to)));
    call.inputs[1].value = MakeInts({40, 30, 110});
    ExpectFails(call, Code::kInvalidArgument, {"entry 1 of \"group_index\" is 30"});
  }
}

// Elements are few, and what they times powers of two give is exact in every type.
TEST(AntiMxQuant, UndoesTheScales) {
  const Tensor x = Noise(kF32, {3, 40, 6}, 1, 8);
  for (const DataType to : kElements) {
    for (int axis = 0; axis < 3; ++axis) {
      const std::vector<Tensor> quantised =
          Results({.type = "DynamicMxQuant",
                   .inputs = {{"x", x}},
                   .attrs = {{"axis", AttrValue::Int(axis)}, {"dst_type", TypeAttr(to)}}});
      const std::vector<double> elements = Elements(quantised[0]);
      const Shape& scales = quantised[1].shape();
      std::vector<double> want;
      for (const std::vector<int64_t>& at : Positions(x.shape())) {
        std::vector<int64_t> of = at;
        of[static_cast<size_t>(axis)] /= 64;
        of.push_back(at[static_cast<size_t>(axis)] / 32 % 2);
        want.push_back(elements[Index(x.shape(), at)] *
                       PowerAt(quantised[1], static_cast<int64_t>(Index(scales, of))));
      }
      for (const DataType back : {kF16, kBf16, kF32}) {
        OpCall call = {.type = "AntiMxQuant",
                       .inputs = {{"x", quantised[0]}, {"mxscale", quantised[1]}},
                       .attrs = {{"axis", AttrValue::Int(axis)}, {"dst_type", TypeAttr(back)}}};
        EXPECT_EQ(ToDoubles(Results(call)[0]), want) << Name(to) << axis << Name(back);
      }
    }
  }
}

// Results whose quotient is near a boundary may round either way: y may differ by a step there, so
// the norm is made exact: rows of equal magnitude, gamma a power of two.
TEST(RmsNormDynamicMxQuant, NormsThenQuantises) {
  const int64_t rows = 3, width = 70;
  std::vector<double> values, norm;
  for (int64_t i = 0; i < rows * width; ++i) {
    values.push_back((i * 7 % 3 == 0 ? -1.0 : 1.0) * (i / width == 1 ? 2 : 1));
    norm.push_back((values.back() < 0 ? -1.0 : 1.0) *
                   std::ldexp(1.0, static_cast<int>(i % width % 5)));
  }
  std::vector<double> gamma;
  for (int64_t i = 0; i < width; ++i) gamma.push_back(std::ldexp(1.0, static_cast<int>(i % 5)));
  const Tensor g = FromDoubles(kF32, {width}, gamma);
  for (const DataType from : {kF16, kBf16}) {
    const Tensor x = FromDoubles(from, {rows, width}, values);
    const Tensor zero = FromDoubles(from, {rows, width}, std::vector<double>(values.size(), 0.0));
    for (const DataType to : kElements) {
      const Wanted want = Quantised(norm, rows, width, 1, 32, to);
      const std::vector<std::pair<std::string, AttrValue>> attrs = {
          {"dst_type", TypeAttr(to)},
          {"epsilon", AttrValue::Float(0)},
          {"output_rstd", AttrValue::Bool(true)}};
      const std::vector<Tensor> one = Results(
          {.type = "RmsNormDynamicMxQuant", .inputs = {{"x", x}, {"gamma", g}}, .attrs = attrs});
      ExpectWanted(want, one[0], one[1], "norm");
      EXPECT_EQ(ToDoubles(one[2]), (std::vector<double>{1, 0.5, 1}));
      const std::vector<Tensor> two = Results({.type = "AddRmsNormDynamicMxQuant",
                                               .inputs = {{"x1", x}, {"x2", zero}, {"gamma", g}},
                                               .attrs = attrs});
      ExpectWanted(want, two[0], two[2], "sum");
      EXPECT_TRUE(SameBytes(two[1], x));
      EXPECT_EQ(ToDoubles(two[3]), (std::vector<double>{1, 0.5, 1}));
    }
  }
}

}  // namespace
}  // namespace npumesh
