// Reductions against a plain walk over all elements, for every type and many choices of axes.
#include <algorithm>
#include <set>

#include "tests/unit/op_reference.h"

namespace npumesh {
namespace {

class ReduceTest : public testing::Test {
 protected:
  static OpCall Call(const std::string& type, const Tensor& x, const std::vector<int64_t>& axes,
                     bool keep_dims = false) {
    return {.type = type,
            .inputs = {{"x", x}, {"axes", MakeInts(axes)}},
            .attrs = {{"keep_dims", AttrValue::Bool(keep_dims)}}};
  }
  Tensor Run(const std::string& type, const Tensor& x, const std::vector<int64_t>& axes) {
    return RunOne(Call(type, x, axes));
  }
};

struct Reduction {
  const char* type;
  double start;
  double (*join)(double, double);
  bool divides;
};

const Reduction kReductions[] = {
    {"ReduceSum", 0, [](double a, double b) { return a + b; }, false},
    {"ReduceMean", 0, [](double a, double b) { return a + b; }, true},
    {"ReduceProd", 1, [](double a, double b) { return a * b; }, false},
    {"ReduceMax", -1e9, [](double a, double b) { return std::max(a, b); }, false},
    {"ReduceMin", 1e9, [](double a, double b) { return std::min(a, b); }, false},
};

struct AxesCase {
  Shape shape;
  std::vector<int64_t> axes;
  Shape squeezed;
  Shape kept;
};

const AxesCase kAxes[] = {
    {{6}, {0}, {}, {1}},
    {{2, 3}, {0}, {3}, {1, 3}},
    {{2, 3}, {1}, {2}, {2, 1}},
    {{2, 3}, {-1}, {2}, {2, 1}},
    {{2, 3}, {0, 1}, {}, {1, 1}},
    {{2, 3}, {1, -1, 1}, {2}, {2, 1}},
    {{2, 3, 4}, {1}, {2, 4}, {2, 1, 4}},
    {{2, 3, 4}, {0, 2}, {3}, {1, 3, 1}},
    {{2, 3, 4, 5}, {0, 2}, {3, 5}, {1, 3, 1, 5}},
    {{2, 3, 4, 5}, {1, 3}, {2, 4}, {2, 1, 4, 1}},
    {{2, 3, 4, 5}, {-2, 1}, {2, 5}, {2, 1, 1, 5}},
    {{2, 1, 4}, {1}, {2, 4}, {2, 1, 4}},
    {{1, 1}, {0}, {1}, {1, 1}},
    {{3, 1100}, {1}, {3}, {3, 1}},
    {{3, 1100}, {0}, {1100}, {1, 1100}},
    {{2, 3, 1100}, {1}, {2, 1100}, {2, 1, 1100}},
    {{2, 700, 3}, {0, 2}, {700}, {1, 700, 1}},
    {{3, 5, 700, 2}, {0, 2}, {5, 2}, {1, 5, 1, 2}},
};

// Small numbers, mostly ones: every result is exact in every type.
Tensor SmallNumbers(DataType dtype, const Shape& shape) {
  std::vector<double> values(static_cast<size_t>(shape.elements()), 1);
  for (size_t i = 0; i < values.size(); i += 7) values[i] = 2 - static_cast<double>(i % 3);
  return FromDoubles(dtype, shape, values);
}

std::vector<double> Expected(const Reduction& reduction, const Tensor& x, const Shape& kept) {
  std::vector<double> totals(static_cast<size_t>(kept.elements()), reduction.start);
  const std::vector<double> values = ToDoubles(x);
  for (size_t i = 0; i < values.size(); ++i) {
    double& total = totals[SourceOf(kept, x.shape(), i)];
    total = reduction.join(total, values[i]);
  }
  const double count = static_cast<double>(values.size()) / static_cast<double>(totals.size());
  if (reduction.divides) {
    for (double& total : totals) total /= count;
  }
  return totals;
}

TEST_F(ReduceTest, FloatsOverManyAxes) {
  for (const AxesCase& test : kAxes) {
    for (const DataType dtype : kReals) {
      const Tensor x = SmallNumbers(dtype, test.shape);
      for (const Reduction& reduction : kReductions) {
        const Tensor expected = FromDoubles(dtype, test.kept, Expected(reduction, x, test.kept));
        const Tensor kept = RunOne(Call(reduction.type, x, test.axes, true));
        EXPECT_EQ(kept.shape(), test.kept);
        EXPECT_EQ(ToDoubles(kept), ToDoubles(expected))
            << reduction.type << " " << x.type().ToString();
        const Tensor squeezed = RunOne(Call(reduction.type, x, test.axes));
        EXPECT_EQ(squeezed.shape(), test.squeezed);
        EXPECT_EQ(ToDoubles(squeezed), ToDoubles(expected));
      }
    }
  }
}

TEST_F(ReduceTest, FloatSumsAreRoundedOnce) {
  std::vector<float> values(1000, 0x1p-24f);
  values[0] = 1;
  const Tensor x = Make<float>(kF32, {1000}, values);
  EXPECT_EQ(Run("ReduceSum", x, {0}).as<float>()[0], static_cast<float>(1 + 999 * 0x1p-24));
  const Tensor half = FromDoubles(kF16, {5000}, std::vector<double>(5000, 1));
  EXPECT_EQ(ToDoubles(Run("ReduceSum", half, {0})), (std::vector<double>{5000}));
  EXPECT_EQ(ToDoubles(Run("ReduceMean", half, {0})), (std::vector<double>{1}));
}

TEST_F(ReduceTest, NanWins) {
  for (const DataType dtype : kReals) {
    for (const size_t at : {0u, 3u, 8u, 19u}) {
      std::vector<double> values(20, 1);
      values[at] = NAN;
      const Tensor row = FromDoubles(dtype, {20}, values);
      const Tensor column = FromDoubles(dtype, {20, 2}, [&] {
        std::vector<double> pairs(40, 1);
        pairs[2 * at] = NAN;
        return pairs;
      }());
      for (const Reduction& reduction : kReductions) {
        EXPECT_TRUE(std::isnan(ToDoubles(Run(reduction.type, row, {0}))[0])) << reduction.type;
        const std::vector<double> pair = ToDoubles(Run(reduction.type, column, {0}));
        EXPECT_TRUE(std::isnan(pair[0])) << reduction.type;
        EXPECT_FALSE(std::isnan(pair[1])) << reduction.type;
      }
    }
  }
}

// As maximum and minimum of IEEE 754-2019, wherever the zeros stand.
TEST_F(ReduceTest, TheSignOfZeroDoesNotDependOnTheOrder) {
  for (const DataType dtype : {kF16, kF32, DataType::kDouble}) {
    for (const size_t at : {0u, 1u, 8u, 19u}) {
      for (const bool negative : {false, true}) {
        std::vector<double> values(20, negative ? 0.0 : -0.0);
        values[at] = negative ? -0.0 : 0.0;
        for (const Shape& shape : {Shape({20}), Shape({20, 1})}) {
          const Tensor x = FromDoubles(dtype, shape, values);
          EXPECT_FALSE(std::signbit(ToDoubles(Run("ReduceMax", x, {0}))[0])) << at;
          EXPECT_TRUE(std::signbit(ToDoubles(Run("ReduceMin", x, {0}))[0])) << at;
        }
      }
    }
  }
}

// Rows that threads share (the harness runs everything on one thread and on three): bits are those
// of blocks of 512, each summed in eight lanes, added up in order.
TEST_F(ReduceTest, LongRowsHaveTheBitsOfTheirBlocks) {
  constexpr int64_t kBlock = 512, kLanes = 8;
  for (const int64_t columns : {64 * kBlock, 67 * kBlock + 13, 200 * kBlock - 1}) {
    const Shape shape = {3, columns};
    std::vector<float> values(static_cast<size_t>(shape.elements()));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = std::ldexp(static_cast<float>(i * 2654435761u % 2001) - 1000.0f,
                             static_cast<int>(i % 41) - 20);
    }
    std::vector<double> sums;
    for (size_t row = 0; row < 3; ++row) {
      const float* x = values.data() + row * static_cast<size_t>(columns);
      double sum = 0;
      int64_t i = 0;
      while (i < columns) {
        const int64_t end = std::min(i + kBlock, columns);
        double lanes[kLanes] = {};
        for (; i + kLanes <= end; i += kLanes) {
          for (int64_t k = 0; k < kLanes; ++k) lanes[k] += double{x[i + k]};
        }
        sum += ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
               ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
        for (; i < end; ++i) sum += double{x[i]};
      }
      sums.push_back(static_cast<float>(sum));
    }
    const Tensor x = Make(DataType::kFloat, shape, values);
    EXPECT_EQ(ToDoubles(Run("ReduceSum", x, {1})), sums) << columns;
    const Tensor most = Run("ReduceMax", x, {0, 1});
    EXPECT_EQ(ToDoubles(most)[0], *std::max_element(values.begin(), values.end()));
  }
}

}  // namespace
}  // namespace npumesh
