// Pooling, against a walk over all pairs of output cell and pixel; and by vectors, against doubles.
#include <limits>
#include <random>

#include "tests/unit/ops/image/image_values.h"

namespace npumesh {
namespace {

// One dimension of a pooling, as PyTorch defines it.
struct Dim {
  int64_t kernel, stride, pad, dilation = 1;
};

// Whether pixel `at` belongs to window `cell`.
bool Covers(const Dim& d, int64_t cell, int64_t at) {
  const int64_t from_start = at - (cell * d.stride - d.pad);
  return from_start >= 0 && from_start < d.kernel * d.dilation && from_start % d.dilation == 0;
}

struct PoolCase {
  int64_t height, width;
  Dim rows, columns;
  bool ceil;
  int64_t y_height, y_width;
};

const PoolCase kPoolCases[] = {
    {4, 4, {2, 2, 0}, {2, 2, 0}, false, 2, 2},       {5, 4, {3, 1, 1}, {2, 2, 0}, false, 5, 2},
    {5, 6, {2, 2, 0}, {4, 3, 1}, true, 3, 3},        {6, 5, {3, 2, 1}, {3, 1, 0}, true, 4, 3},
    {3, 3, {2, 2, 1}, {2, 2, 1}, true, 2, 2},  // a third window would start on the padding
    {7, 7, {2, 1, 0, 3}, {3, 2, 1, 2}, false, 4, 3},
};

Tensor Image(DataType dtype, int64_t height, int64_t width) {
  Tensor x = Pattern(dtype, {2, 3, height, width}, 2);
  std::vector<double> values = ToDoubles(x);
  for (double& value : values) value -= 3;
  return FromDoubles(dtype, x.shape(), values);
}

struct Cell {
  double most = -INFINITY;
  int64_t place = -1;
  double sum = 0;
  int64_t inside = 0;
};

// The cells of the output in C order of NCHW.
std::vector<Cell> CellsOf(const Tensor& x, const PoolCase& test) {
  std::vector<Cell> cells;
  for (const Ints& at : Positions(Shape{2, 3, test.y_height, test.y_width})) {
    Cell cell;
    for (int64_t r = 0; r < test.height; ++r) {
      for (int64_t c = 0; c < test.width; ++c) {
        if (!Covers(test.rows, at[2], r) || !Covers(test.columns, at[3], c)) continue;
        const double value = ToDoubles(x)[Index(x.shape(), {at[0], at[1], r, c})];
        if (value > cell.most) {
          cell.most = value;
          cell.place = r * test.width + c;
        }
        cell.sum += value;
        ++cell.inside;
      }
    }
    cells.push_back(cell);
  }
  return cells;
}

Attrs PoolAttrs(const PoolCase& test, bool last) {
  const auto four = [last](int64_t a, int64_t b) {
    return AttrValue::Ints(last ? Ints{1, a, b, 1} : Ints{1, 1, a, b});
  };
  return {
      {"ksize", four(test.rows.kernel, test.columns.kernel)},
      {"strides", four(test.rows.stride, test.columns.stride)},
      {"pads", AttrValue::Ints({test.rows.pad, test.rows.pad, test.columns.pad, test.columns.pad})},
      {"ceil_mode", AttrValue::Bool(test.ceil)},
      {"data_format", AttrValue::String(last ? "NHWC" : "NCHW")}};
}

TEST(MaxPool, TakesTheLargestOfEachWindow) {
  for (const PoolCase& test : kPoolCases) {
    if (test.rows.dilation != 1) continue;
    for (const DataType dtype : {DataType::kFloat, DataType::kFloat16, DataType::kInt8}) {
      const Tensor x = Image(dtype, test.height, test.width);
      std::vector<double> expected;
      for (const Cell& cell : CellsOf(x, test)) expected.push_back(cell.most);
      const Tensor want = FromDoubles(dtype, {2, 3, test.y_height, test.y_width}, expected);
      EXPECT_TRUE(SameBytes(
          RunOne({.type = "MaxPoolV3", .inputs = {{"x", x}}, .attrs = PoolAttrs(test, false)}),
          want));
      EXPECT_TRUE(SameBytes(RunOne({.type = "MaxPoolV3",
                                    .inputs = {{"x", ChannelsBehind(x)}},
                                    .attrs = PoolAttrs(test, true)}),
                            ChannelsBehind(want)));
    }
  }
}

TEST(MaxPool, WithArgmaxGivesThePlaceInThePlane) {
  for (const PoolCase& test : kPoolCases) {
    const Tensor x = Image(DataType::kFloat, test.height, test.width);
    const Result<std::vector<Tensor>> out = RunOp(
        {.type = "MaxPoolWithArgmaxV1",
         .inputs = {{"x", x}},
         .attrs = {{"ksize", AttrValue::Ints({1, test.rows.kernel, test.columns.kernel, 1})},
                   {"strides", AttrValue::Ints({1, test.rows.stride, test.columns.stride, 1})},
                   {"pads", AttrValue::Ints({1, test.rows.pad, test.columns.pad, 1})},
                   {"dilation", AttrValue::Ints({1, test.rows.dilation, test.columns.dilation, 1})},
                   {"ceil_mode", AttrValue::Bool(test.ceil)}}});
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    std::vector<double> most, places;
    for (const Cell& cell : CellsOf(x, test)) {
      most.push_back(cell.most);
      places.push_back(static_cast<double>(cell.place));
    }
    EXPECT_EQ((*out)[0].shape(), Shape({2, 3, test.y_height, test.y_width}));
    EXPECT_EQ(ToDoubles((*out)[0]), most);
    EXPECT_EQ((*out)[1].dtype(), DataType::kInt32);
    EXPECT_EQ(ToDoubles((*out)[1]), places);
  }
}

TEST(AvgPool, DividesByItsRule) {
  for (const PoolCase& test : kPoolCases) {
    if (test.rows.dilation != 1) continue;
    const Tensor x = Image(DataType::kFloat, test.height, test.width);
    for (const int64_t divisor : {0, 5}) {
      for (const bool exclusive : {true, false}) {
        std::vector<double> expected;
        size_t i = 0;
        for (const Cell& cell : CellsOf(x, test)) {
          const auto cell_row = static_cast<int64_t>(i) / test.y_width % test.y_height;
          const auto cell_column = static_cast<int64_t>(i) % test.y_width;
          ++i;
          // the part of the window that lies on the image or its padding
          const auto span = [](const Dim& d, int64_t place, int64_t size) {
            return std::min(place * d.stride - d.pad + d.kernel, size + d.pad) -
                   (place * d.stride - d.pad);
          };
          const int64_t window =
              span(test.rows, cell_row, test.height) * span(test.columns, cell_column, test.width);
          const int64_t by = divisor > 0 ? divisor : exclusive ? cell.inside : window;
          expected.push_back(cell.sum / static_cast<double>(by));
        }
        Attrs attrs = PoolAttrs(test, false);
        attrs.emplace_back("exclusive", AttrValue::Bool(exclusive));
        attrs.emplace_back("divisor_override", AttrValue::Int(divisor));
        EXPECT_TRUE(SameBytes(
            RunOne({.type = "AvgPoolV2", .inputs = {{"x", x}}, .attrs = attrs}),
            FromDoubles(DataType::kFloat, {2, 3, test.y_height, test.y_width}, expected)));
      }
    }
  }
}

// ---- pools of float32, which go by vectors, against those of double, which go one by one ----

class RandomPool {
 public:
  explicit RandomPool(uint32_t seed) : random_(seed) {
    last_ = Up(2) == 0;
    const int64_t channels = last_ ? 1 + Up(40) : 1 + Up(3);
    const int64_t height = 1 + Up(12), width = 1 + Up(90);
    shape_ = last_ ? Shape{1 + Up(2), height, width, channels}
                   : Shape{1 + Up(2), channels, height, width};
    rows_ = {1 + Up(4), 1 + Up(3), 0};
    columns_ = {1 + Up(5), 1 + Up(3), 0};
    rows_.pad = Up(rows_.kernel);
    columns_.pad = Up(columns_.kernel);
    ceil_ = Up(2) == 0;
  }

  Attrs attrs() const { return PoolAttrs({0, 0, rows_, columns_, ceil_, 0, 0}, last_); }

  // Numbers of few digits, so that many are equal; sometimes NaN, infinities and zeros of both
  // signs.
  std::vector<double> Values() {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    std::vector<double> values(static_cast<size_t>(shape_.elements()));
    const bool special = Up(3) == 0;
    for (double& value : values) {
      value = static_cast<double>(Up(200) - 100) / 8;
      if (special && Up(12) == 0)
        value = std::vector<double>{NAN, kInf, -kInf, -0.0, 0.0}[static_cast<size_t>(Up(5))];
    }
    return values;
  }

  const Shape& shape() const { return shape_; }

 private:
  int64_t Up(int64_t end) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(end)); }

  std::mt19937 random_;
  bool last_ = false, ceil_ = false;
  Shape shape_;
  Dim rows_{}, columns_{};
};

// 0 and -0 are different, all NaN are equal.
bool SameNumbers(const Tensor& x, const Tensor& y) {
  const std::vector<double> a = ToDoubles(x), b = ToDoubles(y);
  return x.shape() == y.shape() &&
         std::equal(a.begin(), a.end(), b.begin(), [](double p, double q) {
           return (std::isnan(p) && std::isnan(q)) ||
                  (p == q && std::signbit(p) == std::signbit(q));
         });
}

TEST(Pool, ByVectorsIsAsOneByOne) {
  size_t refused = 0;
  for (uint32_t seed = 0; seed < 600; ++seed) {
    RandomPool pool(seed);
    const std::vector<double> values = pool.Values();
    for (const char* type : {"MaxPoolV3", "AvgPoolV2"}) {
      const auto run = [&](DataType dtype) {
        return RunOp({.type = type,
                      .inputs = {{"x", FromDoubles(dtype, pool.shape(), values)}},
                      .attrs = pool.attrs()});
      };
      const auto floats = run(DataType::kFloat), doubles = run(DataType::kDouble);
      ASSERT_EQ(floats.ok(), doubles.ok()) << "seed " << seed;
      refused += floats.ok() ? 0 : 1;
      if (!floats.ok()) continue;
      const Tensor rounded =
          FromDoubles(DataType::kFloat, (*doubles)[0].shape(), ToDoubles((*doubles)[0]));
      EXPECT_TRUE(SameNumbers((*floats)[0], rounded)) << type << ", seed " << seed;
    }
  }
  EXPECT_LT(refused, 300U);  // windows larger than their image
}

}  // namespace
}  // namespace npumesh
