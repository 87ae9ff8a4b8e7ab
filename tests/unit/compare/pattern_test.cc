// Mistakes of known kinds, planted into random tensors, are named; other differences are not.
#include "graph/compare/measures/pattern.h"

#include <gmock/gmock.h>

#include <numeric>
#include <random>

#include "graph/compare/measures/elements.h"
#include "runtime/base/float16.h"

namespace npumesh {
namespace {

using testing::HasSubstr;

constexpr int kRounds = 100;

// The value as `dtype` holds it.
double AsStored(double value, DataType dtype) {
  int exponent = 0;
  const int bits = dtype == DataType::kFloat16 ? 11 : dtype == DataType::kBfloat16 ? 8 : 24;
  const double mantissa = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, bits)), exponent - bits);
}

// A random tensor as numbers, with its shape and type.
struct Numbers {
  Shape shape;
  DataType dtype = DataType::kFloat;
  std::vector<double> values;

  int64_t Inner(int axis) const {
    int64_t inner = 1;
    for (int k = axis + 1; k < shape.rank(); ++k) inner *= shape[k];
    return inner;
  }
  int64_t IndexAt(int64_t flat, int axis) const { return flat / Inner(axis) % shape[axis]; }
};

Tensor ToTensor(const Numbers& numbers) {
  Tensor tensor = Tensor::Allocate({numbers.dtype, numbers.shape});
  for (size_t i = 0; i < numbers.values.size(); ++i) {
    const auto value = static_cast<float>(numbers.values[i]);
    if (numbers.dtype == DataType::kFloat) {
      reinterpret_cast<float*>(tensor.mutable_data())[i] = value;
    } else if (numbers.dtype == DataType::kFloat16) {
      reinterpret_cast<Float16*>(tensor.mutable_data())[i] = Float16(value);
    } else {
      reinterpret_cast<Bfloat16*>(tensor.mutable_data())[i] = Bfloat16(value);
    }
  }
  return tensor;
}

class Planter {
 public:
  explicit Planter(uint32_t seed) : random_(seed) {}

  int64_t Draw(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

  Numbers Golden(int least_rank = 1, bool halves = true) {
    Numbers golden;
    std::vector<int64_t> dims;
    const int64_t rank = Draw(least_rank, 4);
    for (int64_t k = 0; k < rank; ++k) dims.push_back(Draw(3, rank == 1 ? 60 : 7));
    if (rank == 1) dims[0] += 30;
    golden.shape = Shape(dims);
    constexpr DataType kTypes[] = {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16};
    golden.dtype = kTypes[halves ? Draw(0, 2) : 0];
    std::normal_distribution<double> normal;
    for (int64_t i = 0; i < golden.shape.elements(); ++i) {
      golden.values.push_back(AsStored(normal(random_), golden.dtype));
    }
    return golden;
  }

  int Axis(const Numbers& numbers) { return static_cast<int>(Draw(0, numbers.shape.rank() - 1)); }

  std::mt19937& random() { return random_; }

 private:
  std::mt19937 random_;
};

DifferencePattern Found(const Numbers& mine, const Numbers& golden) {
  return PatternOf(ToTensor(mine), ToTensor(golden));
}

TEST(Pattern, AFactorIsNamed) {
  Planter planter(1);
  for (int round = 0; round < kRounds; ++round) {
    const Numbers golden = planter.Golden();
    Numbers mine = golden;
    constexpr double kFactors[] = {1.131, 0.5, -1, 2, 8, 0.3535, -0.25, 0.9};
    const double factor = kFactors[planter.Draw(0, 7)];
    for (double& value : mine.values) value = AsStored(value * factor, mine.dtype);
    const DifferencePattern found = Found(mine, golden);
    ASSERT_EQ(found.kind, PatternKind::kFactor)
        << round << " " << factor << " " << ToTensor(golden).type().ToString();
    EXPECT_NEAR(found.factor, factor, 0.02);
  }
}

TEST(Pattern, AZeroPartIsNamed) {
  Planter planter(2);
  for (int round = 0; round < kRounds; ++round) {
    const Numbers golden = planter.Golden(2);
    Numbers mine = golden;
    const int axis = planter.Axis(golden);
    const int64_t first = planter.Draw(0, golden.shape[axis] - 1);
    const int64_t last = planter.Draw(first, golden.shape[axis] - 1);
    int64_t zeros = 0;
    for (size_t i = 0; i < mine.values.size(); ++i) {
      const int64_t index = golden.IndexAt(static_cast<int64_t>(i), axis);
      if (index < first || index > last) continue;
      mine.values[i] = 0;
      ++zeros;
    }
    const DifferencePattern found = Found(mine, golden);
    if (zeros < 8) continue;  // too few to tell from chance
    ASSERT_EQ(found.kind, PatternKind::kZeroPart) << round << golden.shape.ToString();
    if (last - first + 1 == golden.shape[axis]) {
      EXPECT_EQ(ToText(found, golden.shape), "all elements are zero");
    } else {
      EXPECT_EQ(ToText(found, golden.shape),
                fmt::format("{} to {} of axis {} are zero, all else is right", first, last, axis));
    }
  }
}

TEST(Pattern, ACutTypeIsNamed) {
  Planter planter(3);
  for (int round = 0; round < kRounds; ++round) {
    const Numbers exact = planter.Golden(1, /*halves=*/false);
    Numbers cut = exact;
    const DataType type = round % 2 == 0 ? DataType::kFloat16 : DataType::kBfloat16;
    for (double& value : cut.values) value = AsStored(value, type);
    const bool golden_cut = round % 3 == 0;
    const DifferencePattern found = golden_cut ? Found(exact, cut) : Found(cut, exact);
    ASSERT_EQ(found.kind, PatternKind::kCutType) << round;
    EXPECT_EQ(found.cut, type);
    EXPECT_EQ(found.golden_cut, golden_cut);
  }
}

TEST(Pattern, PermutedAxesAreNamed) {
  Planter planter(4);
  for (int round = 0; round < kRounds; ++round) {
    const Numbers golden = planter.Golden(2);
    std::vector<int> axes(static_cast<size_t>(golden.shape.rank()));
    std::iota(axes.begin(), axes.end(), 0);
    while (std::is_sorted(axes.begin(), axes.end())) {
      std::shuffle(axes.begin(), axes.end(), planter.random());
    }
    Numbers mine = golden;
    std::vector<int64_t> dims;
    for (const int axis : axes) dims.push_back(golden.shape[axis]);
    const Shape permuted(dims);
    Numbers places = golden;
    places.shape = permuted;
    for (int64_t i = 0; i < golden.shape.elements(); ++i) {
      int64_t from = 0;
      for (size_t k = 0; k < axes.size(); ++k) {
        from += places.IndexAt(i, static_cast<int>(k)) * golden.Inner(axes[k]);
      }
      mine.values[static_cast<size_t>(i)] = golden.values[static_cast<size_t>(from)];
    }
    // Under the expected shape, as a layout mistake leaves it, or under that of the permuted axes.
    if (round % 2 == 0) mine.shape = permuted;
    const DifferencePattern found = Found(mine, golden);
    ASSERT_EQ(found.kind, PatternKind::kPermuted) << round << golden.shape.ToString();
    EXPECT_THAT(ToText(found, mine.shape), HasSubstr("transposed: "));
    if (mine.values == golden.values) FAIL();
  }
}

TEST(Pattern, AShiftIsNamed) {
  Planter planter(5);
  for (int round = 0; round < kRounds; ++round) {
    const Numbers golden = planter.Golden(2);
    Numbers mine = golden;
    const int axis = planter.Axis(golden);
    const int64_t by = planter.Draw(0, 1) == 0 ? 1 : -1;
    const int64_t size = golden.shape[axis];
    if (golden.shape.elements() / size * (size - 1) < 8) continue;  // too few to tell from chance
    const bool rolls = planter.Draw(0, 1) == 0;
    for (int64_t i = 0; i < golden.shape.elements(); ++i) {
      const int64_t index = golden.IndexAt(i, axis);
      const int64_t source = (index + by + size) % size;
      const bool comes_in = index + by < 0 || index + by >= size;
      mine.values[static_cast<size_t>(i)] =
          comes_in && !rolls
              ? 0
              : golden.values[static_cast<size_t>(i + (source - index) * golden.Inner(axis))];
    }
    const DifferencePattern found = Found(mine, golden);
    ASSERT_EQ(found.kind, PatternKind::kShifted) << round << golden.shape.ToString();
    EXPECT_EQ(found.axis, axis);
    EXPECT_EQ(found.by, by);
  }
}

TEST(Pattern, AnotherOrderIsNamed) {
  Planter planter(6);
  for (int round = 0; round < kRounds; ++round) {
    const Numbers golden = planter.Golden(2);
    const int axis = planter.Axis(golden);
    const int64_t size = golden.shape[axis];
    if (size < 4) continue;
    std::vector<int64_t> order(static_cast<size_t>(size));
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[0], order[static_cast<size_t>(planter.Draw(2, size - 1))]);
    Numbers mine = golden;
    for (int64_t i = 0; i < golden.shape.elements(); ++i) {
      const int64_t index = golden.IndexAt(i, axis);
      const int64_t source = order[static_cast<size_t>(index)];
      mine.values[static_cast<size_t>(i)] =
          golden.values[static_cast<size_t>(i + (source - index) * golden.Inner(axis))];
    }
    const DifferencePattern found = Found(mine, golden);
    ASSERT_EQ(found.kind, PatternKind::kReordered) << round << golden.shape.ToString();
    EXPECT_EQ(found.axis, axis);
    EXPECT_EQ(found.count, 2);
    EXPECT_EQ(order[static_cast<size_t>(found.first)], found.last);
  }
}

// Noise, some wrong elements, a wrong row, an offset, a factor of a part, other numbers: nothing of
// it is one of the patterns.
TEST(Pattern, OtherDifferencesHaveNoName) {
  Planter planter(7);
  std::normal_distribution<double> normal;
  for (int round = 0; round < 6 * kRounds; ++round) {
    const Numbers golden = planter.Golden(1, /*halves=*/round % 2 == 0);
    Numbers mine = golden;
    const auto elements = static_cast<int64_t>(mine.values.size());
    const auto any = [&] { return static_cast<size_t>(planter.Draw(0, elements - 1)); };
    const int axis = planter.Axis(golden);
    const int64_t index = planter.Draw(0, golden.shape[axis] - 1);
    for (int64_t i = 0; i < elements; ++i) {
      double& value = mine.values[static_cast<size_t>(i)];
      const bool inside = golden.IndexAt(i, axis) == index;
      switch (round % 6) {
        case 0:
          value *= 1 + 1e-3 * normal(planter.random());
          break;
        case 1:
          if (inside) value += 1 + normal(planter.random());
          break;
        case 2:
          value += 0.25;
          break;
        case 3:
          if (inside) value *= 3;
          break;
        case 4:
          value = normal(planter.random());
          break;
        default:
          break;
      }
    }
    if (round % 6 == 5) {
      for (int64_t k = planter.Draw(1, 5); k-- > 0;) mine.values[any()] = normal(planter.random());
    }
    for (double& value : mine.values) value = AsStored(value, mine.dtype);
    const DifferencePattern found = Found(mine, golden);
    EXPECT_EQ(found.kind, PatternKind::kNone)
        << round << golden.shape.ToString() << ": " << ToText(found, golden.shape);
  }
}

TEST(Pattern, FewElementsEqualValuesAndIntegersHaveNone) {
  const auto floats = [](std::vector<float> values) {
    const auto size = static_cast<int64_t>(values.size());
    return Tensor::FromVector<float>({DataType::kFloat, {size}}, values);
  };
  EXPECT_EQ(PatternOf(floats({2, 4, 6}), floats({1, 2, 3})).kind, PatternKind::kNone);
  EXPECT_EQ(PatternOf(floats(std::vector<float>(20, 3)), floats(std::vector<float>(20, 2))).kind,
            PatternKind::kNone);
  const Tensor ints =
      Tensor::FromVector<int32_t>({DataType::kInt32, {8}}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(PatternOf(ints, ints).kind, PatternKind::kNone);
  std::vector<float> nan(20, std::nanf(""));
  EXPECT_EQ(PatternOf(floats(nan), floats(std::vector<float>(20, 2))).kind, PatternKind::kNone);
}

}  // namespace
}  // namespace npumesh
