// Sort, TopKV2, ArgMax and their like, against a selection by counting.
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

TEST(Sort, PutsNanLastAndKeepsEqualsInOrder) {
  const Tensor x = FromDoubles(DataType::kFloat16, {5}, {NAN, 1, -INFINITY, 1, INFINITY});
  const auto positions = [&](bool descending) {
    const Result<std::vector<Tensor>> out =
        RunOp({.type = "Sort",
               .inputs = {{"x", x}},
               .attrs = {{"descending", AttrValue::Bool(descending)}, {"y2_dtype", Int(9)}}});
    EXPECT_TRUE(out.ok());
    return ValuesOf<int64_t>((*out)[1]);
  };
  EXPECT_EQ(positions(false), (std::vector<int64_t>{2, 1, 3, 4, 0}));
  EXPECT_EQ(positions(true), (std::vector<int64_t>{0, 4, 1, 3, 2}));
}

TEST(Sort, KeepsIntegersOfFullWidth) {
  const Tensor x = Make<uint64_t>(DataType::kUint64, {3}, {UINT64_MAX, UINT64_MAX - 1, 1});
  EXPECT_EQ(ValuesOf<uint64_t>(RunOne({.type = "Sort", .inputs = {{"x", x}}})),
            (std::vector<uint64_t>{1, UINT64_MAX - 1, UINT64_MAX}));
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

TEST(TopK, HasTwoNames) {
  const Tensor x = Pattern(DataType::kFloat, {3, 7});
  OpCall call = TopK(x, 4);
  const Result<std::vector<Tensor>> out = RunOp(call);
  call.type = "TopK";
  const Result<std::vector<Tensor>> same = RunOp(call);
  ASSERT_TRUE(out.ok() && same.ok()) << same.status().ToString();
  for (size_t port = 0; port < 2; ++port) EXPECT_TRUE(SameBytes((*out)[port], (*same)[port]));
}

TEST(TopK, RefusesMoreThanThereIs) {
  const Tensor x = Pattern(DataType::kFloat, {2, 3});
  ExpectFails(TopK(x, 4), Code::kInvalidArgument, {"k is 4", "3 elements"});
  ExpectFails(TopK(x, -1), Code::kInvalidArgument, {"k is -1"});
  ExpectFails(TopK(x, 1, 2), Code::kInvalidArgument, {"axis 2"});
  OpCall unknown = TopK(x, 1);
  unknown.inputs[1].known = Known::kNo;
  ExpectFails(unknown, Code::kUnsupported, {"\"k\""});
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

TEST(ArgMax, WithValueKeepsTheDimensionWhenAsked) {
  const Tensor x = FromDoubles(DataType::kFloat, {2, 3}, {1, 5, 5, -1, -7, 0});
  const auto run = [&](const std::string& type, bool keep) {
    Result<std::vector<Tensor>> out =
        RunOp({.type = type,
               .inputs = {{"x", x}},
               .attrs = {{"dimension", Int(-1)}, {"keep_dims", AttrValue::Bool(keep)}}});
    EXPECT_TRUE(out.ok()) << out.status().ToString();
    return *out;
  };
  const std::vector<Tensor> most = run("ArgMaxWithValue", true);
  EXPECT_EQ(most[0].type(), (TensorType{DataType::kInt32, {2, 1}}));
  EXPECT_EQ(ToDoubles(most[0]), (std::vector<double>{1, 2}));
  EXPECT_EQ(ToDoubles(most[1]), (std::vector<double>{5, 0}));
  const std::vector<Tensor> least = run("ArgMinWithValue", false);
  EXPECT_EQ(least[1].shape(), Shape({2}));
  EXPECT_EQ(ToDoubles(least[0]), (std::vector<double>{0, 1}));
  EXPECT_EQ(ToDoubles(least[1]), (std::vector<double>{1, -7}));
}

TEST(ArgMax, ByAttributeAndWithNan) {
  const Tensor x = FromDoubles(DataType::kFloat, {4}, {3, NAN, 7, NAN});
  for (const std::string type : {"ArgMaxD", "ArgMinD"}) {
    const Tensor y = RunOne(
        {.type = type, .inputs = {{"x", x}}, .attrs = {{"dimension", Int(0)}, {"dtype", Int(3)}}});
    EXPECT_EQ(y.dtype(), DataType::kInt32);
    EXPECT_EQ(ToDoubles(y), (std::vector<double>{1})) << type;
  }
}

TEST(ArgMax, RefusesAnEmptyDimension) {
  const Tensor x = FromDoubles(DataType::kFloat, {2, 0}, {});
  ExpectFails({.type = "ArgMaxV2", .inputs = {{"x", x}, {"dimension", MakeInts({1})}}},
              Code::kInvalidArgument, {"no elements along axis 1"});
  EXPECT_EQ(
      RunOne({.type = "ArgMaxV2", .inputs = {{"x", x}, {"dimension", MakeInts({0})}}}).shape(),
      Shape({0}));
}

}  // namespace
}  // namespace npumesh
