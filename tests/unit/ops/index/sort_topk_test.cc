// Sort, TopKV2, ArgMax and their like, against a selection by counting.
// Cumsum, Cumprod, Cummax, Cummin, SearchSorted, Bucketize, HistogramV2.
#include <random>

#include "tests/unit/op_values.h"

namespace npumesh {
namespace {

AttrValue Int(int64_t value) {
  return AttrValue::Int(value);
}

// Positions of a row in order: element i stands behind every smaller one and behind equal ones that
// come before it. NaN is larger than all.
std::vector<size_t> Ranked(const std::vector<double>& row, bool descending) {
  const auto before = [&](size_t a, size_t b) {
    const bool a_nan = std::isnan(row[a]), b_nan = std::isnan(row[b]);
    if ((a_nan && b_nan) || row[a] == row[b]) return a < b;
    const bool less = b_nan || (!a_nan && row[a] < row[b]);
    return less != descending;
  };
  std::vector<size_t> order(row.size());
  for (size_t i = 0; i < row.size(); ++i) {
    size_t place = 0;
    for (size_t j = 0; j < row.size(); ++j) place += j != i && before(j, i) ? 1 : 0;
    order[place] = i;
  }
  return order;
}

struct Rows {
  std::vector<std::vector<size_t>> elements;  // element numbers of each row along the axis
};

Rows RowsAlong(const Shape& shape, int axis) {
  Rows rows;
  for (std::vector<int64_t> at : Positions(shape)) {
    if (at[static_cast<size_t>(axis)] != 0) continue;
    std::vector<size_t> row;
    for (int64_t i = 0; i < shape[axis]; ++i) {
      at[static_cast<size_t>(axis)] = i;
      row.push_back(Index(shape, at));
    }
    rows.elements.push_back(row);
  }
  return rows;
}

struct OrderCase {
  Shape shape;
  int axis;
};

const OrderCase kCases[] = {{{9}, 0}, {{3, 7}, 1}, {{7, 3}, 0}, {{2, 5, 3}, 1}, {{1, 1}, 1}};

TEST(Sort, OrdersEveryTypeAlongEveryAxis) {
  for (const OrderCase& test : kCases) {
    for (const DataType dtype : AllDtypes()) {
      if (dtype == DataType::kBool) continue;
      const Tensor x = Pattern(dtype, test.shape);
      const std::vector<double> values = ToDoubles(x);
      for (const bool descending : {false, true}) {
        const Result<std::vector<Tensor>> out =
            RunOp({.type = "Sort",
                   .inputs = {{"x", x}},
                   .attrs = {{"axis", Int(test.axis - test.shape.rank())},
                             {"descending", AttrValue::Bool(descending)}}});
        ASSERT_TRUE(out.ok()) << out.status().ToString();
        EXPECT_EQ((*out)[1].dtype(), DataType::kInt32);
        const std::vector<double> sorted = ToDoubles((*out)[0]), from = ToDoubles((*out)[1]);
        for (const std::vector<size_t>& row : RowsAlong(test.shape, test.axis).elements) {
          std::vector<double> held;
          for (const size_t element : row) held.push_back(values[element]);
          const std::vector<size_t> order = Ranked(held, descending);
          for (size_t i = 0; i < row.size(); ++i) {
            EXPECT_EQ(sorted[row[i]], held[order[i]]) << x.type().ToString();
            EXPECT_EQ(from[row[i]], static_cast<double>(order[i])) << x.type().ToString();
          }
        }
      }
    }
  }
}

OpCall TopK(const Tensor& x, int64_t k, int64_t dim = -1, bool largest = true) {
  return {.type = "TopKV2",
          .inputs = {{"x", x}, {"k", Make<int64_t>(DataType::kInt64, {}, {k})}},
          .attrs = {{"dim", Int(dim)}, {"largest", AttrValue::Bool(largest)}}};
}

TEST(TopK, TakesTheFirstOfTheOrder) {
  for (const OrderCase& test : kCases) {
    const Tensor x = Pattern(DataType::kFloat, test.shape);
    const std::vector<double> values = ToDoubles(x);
    for (int64_t k = 0; k <= test.shape[test.axis]; ++k) {
      for (const bool largest : {true, false}) {
        const Result<std::vector<Tensor>> out = RunOp(TopK(x, k, test.axis, largest));
        ASSERT_TRUE(out.ok()) << out.status().ToString();
        Shape expected = test.shape;
        expected[test.axis] = k;
        ASSERT_EQ((*out)[0].shape(), expected);
        ASSERT_EQ((*out)[1].shape(), expected);
        if (k == 0) continue;
        const Rows from = RowsAlong(test.shape, test.axis), to = RowsAlong(expected, test.axis);
        for (size_t r = 0; r < from.elements.size(); ++r) {
          std::vector<double> held;
          for (const size_t element : from.elements[r]) held.push_back(values[element]);
          const std::vector<size_t> order = Ranked(held, largest);
          for (size_t i = 0; i < static_cast<size_t>(k); ++i) {
            const size_t place = to.elements[r][i];
            EXPECT_EQ(ToDoubles((*out)[0])[place], held[order[i]]);
            EXPECT_EQ(ToDoubles((*out)[1])[place], static_cast<double>(order[i]));
          }
        }
      }
    }
  }
}

// Long rows of few values, so that many are equal, with NaN and both zeros among them.
TEST(TopK, OfLongRowsIsTheBeginningOfTheOrder) {
  std::mt19937 random(5);
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(i);
    const int64_t columns = 2 + static_cast<int64_t>(random() % 300);
    const auto k = static_cast<int64_t>(random() % static_cast<unsigned>(columns)) / (1 + i % 20);
    const auto kinds = static_cast<int>(1 + random() % 40);
    const bool largest = i % 2 == 0;
    std::vector<double> row(static_cast<size_t>(columns));
    for (double& value : row) {
      const int drawn = static_cast<int>(random() % 40);
      value = drawn == 0 ? std::nan("") : drawn == 1 ? -0.0 : drawn % kinds - kinds / 2;
    }
    const Tensor x = FromDoubles(DataType::kFloat, {1, columns}, row);
    const Result<std::vector<Tensor>> out = RunOp(TopK(x, k, -1, largest));
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    const std::vector<size_t> order = Ranked(row, largest);
    EXPECT_EQ(ToDoubles((*out)[1]),
              std::vector<double>(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k)));
  }
}

TEST(ArgMax, FindsTheFirst) {
  for (const OrderCase& test : kCases) {
    for (const DataType dtype : AllDtypes()) {
      const Tensor x = Pattern(dtype, test.shape, 3);
      const std::vector<double> values = ToDoubles(x);
      Shape squeezed = test.shape;
      squeezed.mutable_dims().erase(squeezed.mutable_dims().begin() + test.axis);
      for (const std::string type : {"ArgMaxV2", "ArgMin"}) {
        const Tensor y =
            RunOne({.type = type,
                    .inputs = {{"x", x},
                               {"dimension", Make<int32_t>(DataType::kInt32, {}, {test.axis})}}});
        EXPECT_EQ(y.type(), (TensorType{DataType::kInt64, squeezed}));
        size_t r = 0;
        for (const std::vector<size_t>& row : RowsAlong(test.shape, test.axis).elements) {
          size_t best = 0;
          for (size_t i = 1; i < row.size(); ++i) {
            const double a = values[row[i]], b = values[row[best]];
            if (type == "ArgMin" ? a < b : a > b) best = i;
          }
          EXPECT_EQ(ToDoubles(y)[r++], static_cast<double>(best)) << type;
        }
      }
    }
  }
}

struct Direction {
  bool exclusive;
  bool reverse;
};

const Direction kDirections[] = {{false, false}, {true, false}, {false, true}, {true, true}};

OpCall Scan(const std::string& type, const Tensor& x, int64_t axis, Direction direction) {
  OpCall call{.type = type,
              .inputs = {{"x", x}},
              .attrs = {{"exclusive", AttrValue::Bool(direction.exclusive)},
                        {"reverse", AttrValue::Bool(direction.reverse)}}};
  if (type.back() == 'D') {
    call.attrs.emplace_back("axis", AttrValue::Int(axis));
  } else {
    call.inputs.push_back({"axis", Make<int64_t>(DataType::kInt64, {}, {axis})});
  }
  return call;
}

// Element i is what all elements that count for it give together.
TEST(Scan, CollectsWhatLiesBefore) {
  const Shape shape = {2, 4, 3};
  for (const DataType dtype : AllDtypes()) {
    if (dtype == DataType::kBool) continue;
    const Tensor x = Pattern(dtype, shape);
    const std::vector<double> values = ToDoubles(x);
    for (int axis = 0; axis < 3; ++axis) {
      for (const Direction direction : kDirections) {
        for (const std::string type : {"Cumsum", "CumsumD", "Cumprod", "CumprodD"}) {
          const bool product = type.substr(3, 4) == "prod";
          if (product && BitsOf(dtype) == 8) continue;  // would wrap
          std::vector<double> expected;
          for (const std::vector<int64_t>& at : Positions(shape)) {
            double total = product ? 1 : 0;
            for (int64_t i = 0; i < shape[axis]; ++i) {
              const int64_t own = at[static_cast<size_t>(axis)];
              const bool behind = direction.reverse ? i > own : i < own;
              if (!behind && (direction.exclusive || i != own)) continue;
              std::vector<int64_t> other = at;
              other[static_cast<size_t>(axis)] = i;
              const double value = values[Index(shape, other)];
              total = product ? total * value : total + value;
            }
            expected.push_back(total);
          }
          EXPECT_TRUE(SameBytes(RunOne(Scan(type, x, axis - 3, direction)),
                                FromDoubles(dtype, shape, expected)))
              << type << " " << Name(dtype) << " axis " << axis;
        }
      }
    }
  }
}

// The last of the most extreme elements so far; the last NaN, once there is one.
TEST(RunningExtreme, IsThatOfWhatLiesBefore) {
  const Shape shape = {2, 5, 3};
  for (const DataType dtype : AllDtypes()) {
    Tensor x = Pattern(dtype, shape);
    const bool real = dtype == DataType::kFloat || dtype == DataType::kFloat16;
    if (real) {
      std::vector<double> some = ToDoubles(x);
      for (const size_t i : {4, 7, 20}) some[i] = NAN;
      x = FromDoubles(dtype, shape, some);
    }
    const std::vector<double> values = ToDoubles(x);
    for (int axis = 0; axis < 3; ++axis) {
      for (const bool largest : {true, false}) {
        std::vector<double> expected, places;
        for (const std::vector<int64_t>& at : Positions(shape)) {
          std::vector<double> before;
          for (int64_t i = 0; i <= at[static_cast<size_t>(axis)]; ++i) {
            std::vector<int64_t> other = at;
            other[static_cast<size_t>(axis)] = i;
            const double value = values[Index(shape, other)];
            before.push_back(std::isnan(value) ? INFINITY : largest ? value : -value);
          }
          const auto most = std::max_element(before.rbegin(), before.rend());
          places.push_back(static_cast<double>(before.rend() - most - 1));
          expected.push_back(std::isinf(*most) ? NAN : largest ? *most : -*most);
        }
        const Result<std::vector<Tensor>> y =
            RunOp({.type = largest ? "Cummax" : "Cummin",
                   .inputs = {{"x", x}},
                   .attrs = {{largest ? "dim" : "axis", AttrValue::Int(axis - 3)}}});
        ASSERT_TRUE(y.ok()) << y.status().ToString();
        EXPECT_THAT(ToDoubles((*y)[0]),
                    testing::Pointwise(testing::NanSensitiveDoubleEq(), expected));
        EXPECT_EQ((*y)[1].dtype(), DataType::kInt64);
        EXPECT_EQ(ToDoubles((*y)[1]), places) << Name(dtype) << " axis " << axis;
      }
    }
  }
}

}  // namespace
}  // namespace npumesh
