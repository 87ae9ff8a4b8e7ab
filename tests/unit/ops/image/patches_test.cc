// Im2col, Col2im, UnfoldGrad: against the windows of a padded image, and sums of them.
#include <random>

#include "tests/unit/ops/image/image_values.h"

namespace npumesh {
namespace {

// A call that is drawn: sizes of an image and windows that fit it at least once.
struct Windows {
  int64_t images, channels;
  std::array<int64_t, 2> size, window, stride, dilation, before, after, count;

  explicit Windows(uint32_t seed) {
    std::mt19937 random(seed);
    const auto draw = [&](int64_t least, int64_t most) {
      return least + static_cast<int64_t>(random() % static_cast<uint64_t>(most - least + 1));
    };
    images = draw(0, 9) == 0 ? 0 : draw(1, 2);
    channels = draw(1, 3);
    for (size_t i = 0; i < 2; ++i) {
      window[i] = draw(1, 3);
      stride[i] = draw(1, 3);
      dilation[i] = draw(1, 3);
      before[i] = draw(0, 2);
      after[i] = draw(0, 2);
      const int64_t extent = (window[i] - 1) * dilation[i] + 1;
      size[i] = std::max<int64_t>(extent - before[i] - after[i], 1) + draw(0, 4);
      count[i] = (size[i] + before[i] + after[i] - extent) / stride[i] + 1;
    }
  }

  // The pixel of the image under a position of a window, or nothing.
  std::optional<int64_t> Pixel(size_t side, int64_t n, int64_t w) const {
    const int64_t padded = n * stride[side] + w * dilation[side];
    if (padded < before[side] || padded - before[side] >= size[side]) return std::nullopt;
    return padded - before[side];
  }
};

AttrValue Two(const std::array<int64_t, 2>& numbers) {
  return AttrValue::Ints({numbers[0], numbers[1]});
}

OpCall Im2col(const Windows& w, const Tensor& x) {
  return {.type = "Im2col",
          .inputs = {{"x", x}},
          .attrs = {{"ksizes", Two(w.window)},
                    {"strides", Two(w.stride)},
                    {"dilations", Two(w.dilation)},
                    {"pads", AttrValue::Ints({w.before[0], w.after[0], w.before[1], w.after[1]})}}};
}

TEST(Im2col, HasThePixelsUnderEachPositionOfTheWindows) {
  for (uint32_t seed = 0; seed < 120; ++seed) {
    const Windows w(seed);
    const DataType dtype = AllDtypes()[seed % AllDtypes().size()];
    const Tensor x =
        Pattern(dtype, {w.images, w.channels, w.size[0], w.size[1]}, static_cast<int>(seed));
    const std::vector<double> pixels = ToDoubles(x);
    const Shape positions = {w.images,    w.channels, w.window[0],
                             w.window[1], w.count[0], w.count[1]};
    std::vector<double> expected;
    for (const Ints& at : Positions(positions)) {
      const auto row = w.Pixel(0, at[4], at[2]), column = w.Pixel(1, at[5], at[3]);
      expected.push_back(row && column ? pixels[Index(x.shape(), {at[0], at[1], *row, *column})]
                                       : 0);
    }
    const Shape shape = {w.images, w.channels * w.window[0] * w.window[1], w.count[0], w.count[1]};
    EXPECT_TRUE(SameBytes(RunOne(Im2col(w, x)), FromDoubles(dtype, shape, expected)))
        << "seed " << seed;
    // With the channels last the positions of a window come before them.
    std::vector<double> last;
    const Shape behind = {w.images, w.count[0], w.count[1], w.window[0], w.window[1], w.channels};
    for (const Ints& at : Positions(behind)) {
      last.push_back(expected[Index(positions, {at[0], at[5], at[3], at[4], at[1], at[2]})]);
    }
    OpCall call = Im2col(w, ChannelsBehind(x));
    call.attrs.emplace_back("input_layout_info", LastChannels());
    EXPECT_TRUE(
        SameBytes(RunOne(call), FromDoubles(dtype, {shape[0], shape[2], shape[3], shape[1]}, last)))
        << "seed " << seed;
  }
}

TEST(Im2col, PadsByMode) {
  const Tensor x = Pattern(DataType::kFloat, {1, 2, 6, 5});
  const auto made = [&](const std::string& mode, Ints pads) {
    return RunOne({.type = "Im2col",
                   .inputs = {{"x", x}},
                   .attrs = {{"ksizes", AttrValue::Ints({3, 2})},
                             {"strides", AttrValue::Ints({2})},
                             {"padding_mode", AttrValue::String(mode)},
                             {"pads", AttrValue::Ints(std::move(pads))}}});
  };
  // As many windows as ceil(size / stride); the odd pixel of padding is behind.
  EXPECT_TRUE(SameBytes(made("SAME", {7}), made("CALCULATED", {0, 1, 0, 1})));
  EXPECT_EQ(made("SAME", {7}).shape(), Shape({1, 12, 3, 3}));
  EXPECT_TRUE(SameBytes(made("VALID", {7}), made("CALCULATED", {0})));
  EXPECT_TRUE(SameBytes(made("CALCULATED", {1, 2}), made("CALCULATED", {1, 1, 2, 2})));
}

TEST(Col2im, SumsTheColumnsOfEachPixel) {
  for (uint32_t seed = 0; seed < 120; ++seed) {
    Windows w(seed);
    w.after = w.before;
    for (size_t i = 0; i < 2; ++i) {
      const int64_t extent = (w.window[i] - 1) * w.dilation[i] + 1;
      w.size[i] = std::max(w.size[i], extent - 2 * w.before[i]);
      w.count[i] = (w.size[i] + 2 * w.before[i] - extent) / w.stride[i] + 1;
    }
    const DataType dtype = std::array{DataType::kFloat, DataType::kFloat16, DataType::kBfloat16,
                                      DataType::kDouble}[seed % 4];
    const Tensor x =
        Pattern(dtype, {w.images, w.channels, w.window[0] * w.window[1], w.count[0] * w.count[1]});
    const std::vector<double> columns = ToDoubles(x);
    const Shape positions = {w.images,    w.channels, w.window[0],
                             w.window[1], w.count[0], w.count[1]};
    const Shape image = {w.images, w.channels, w.size[0], w.size[1]};
    std::vector<double> expected(static_cast<size_t>(image.elements()), 0);
    for (const Ints& at : Positions(positions)) {
      const auto row = w.Pixel(0, at[4], at[2]), column = w.Pixel(1, at[5], at[3]);
      if (!row || !column) continue;
      expected[Index(image, {at[0], at[1], *row, *column})] += columns[Index(positions, at)];
    }
    const Tensor size = Make<int32_t>(
        DataType::kInt32, {2}, {static_cast<int32_t>(w.size[0]), static_cast<int32_t>(w.size[1])});
    EXPECT_TRUE(SameBytes(RunOne({.type = "Col2im",
                                  .inputs = {{"x", x}, {"output_size", size}},
                                  .attrs = {{"kernel_size", Two(w.window)},
                                            {"dilation", Two(w.dilation)},
                                            {"padding", Two(w.before)},
                                            {"stride", Two(w.stride)}}}),
                          FromDoubles(dtype, image, expected)))
        << "seed " << seed;
  }
}

TEST(UnfoldGrad, SumsTheWindowsOfEachElement) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const Windows w(seed);
    const size_t axis = seed % 3;
    Ints dims = {w.channels, w.size[0], w.size[1]};
    const int64_t size = 1 + static_cast<int64_t>(seed) % dims[axis], step = w.stride[0];
    Ints unfolded = dims;
    unfolded[axis] = (dims[axis] - size) / step + 1;
    unfolded.push_back(size);
    const DataType dtype = seed % 2 == 0 ? DataType::kFloat : DataType::kFloat16;
    const Tensor grad = Pattern(dtype, Shape(unfolded));
    std::vector<double> expected(static_cast<size_t>(Shape(dims).elements()), 0);
    for (const Ints& at : Positions(grad.shape())) {
      Ints place = {at[0], at[1], at[2]};
      place[axis] = at[axis] * step + at[3];
      expected[Index(Shape(dims), place)] += ToDoubles(grad)[Index(grad.shape(), at)];
    }
    const auto dim = static_cast<int64_t>(axis) - (seed % 5 == 0 ? 3 : 0);
    EXPECT_TRUE(SameBytes(RunOne({.type = "UnfoldGrad",
                                  .inputs = {{"grad_out", grad}, {"input_sizes", MakeInts(dims)}},
                                  .attrs = {{"dim", AttrValue::Int(dim)},
                                            {"size", AttrValue::Int(size)},
                                            {"step", AttrValue::Int(step)}}}),
                          FromDoubles(dtype, Shape(dims), expected)))
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace npumesh
