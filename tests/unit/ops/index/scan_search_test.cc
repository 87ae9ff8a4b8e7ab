// Cumsum, Cumprod, Cummax, Cummin, SearchSorted, Bucketize, HistogramV2.
#include "tests/unit/op_values.h"

namespace npumesh {
namespace {

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

TEST(Scan, HalvesAreRoundedFromTheExactSum) {
  const Tensor x = FromDoubles(DataType::kFloat16, {4}, {2048, 1, 1, 1});
  EXPECT_EQ(ToDoubles(RunOne(Scan("Cumsum", x, 0, {false, false}))),
            (std::vector<double>{2048, 2048, 2050, 2052}));
}

TEST(Scan, IntegersWrap) {
  const Tensor x = Make<int8_t>(DataType::kInt8, {3}, {100, 100, 100});
  EXPECT_EQ(ValuesOf<int8_t>(RunOne(Scan("Cumsum", x, 0, {false, false}))),
            (std::vector<int8_t>{100, -56, 44}));
  const Tensor wide = Make<int64_t>(DataType::kInt64, {2}, {INT64_MAX, 2});
  EXPECT_EQ(ValuesOf<int64_t>(RunOne(Scan("Cumprod", wide, 0, {false, false}))),
            (std::vector<int64_t>{INT64_MAX, -2}));
}

TEST(Scan, RefusesAnAxisThatIsNotThere) {
  const Tensor x = Pattern(DataType::kFloat, {2, 2});
  ExpectFails(Scan("Cumsum", x, 2, {false, false}), Code::kInvalidArgument, {"axis 2"});
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

OpCall Histogram(const Tensor& x, double low, double high, int64_t bins, DataType dtype) {
  return {.type = "HistogramV2",
          .inputs = {{"x", x},
                     {"min", FromDoubles(DataType::kFloat, {1}, {low})},
                     {"max", FromDoubles(DataType::kFloat, {}, {high})}},
          .attrs = {{"bins", AttrValue::Int(bins)}, {"y_dtype", AttrValue::Type(dtype)}}};
}

TEST(Histogram, CountsTheElementsOfEachPart) {
  for (const DataType dtype :
       {DataType::kFloat, DataType::kFloat16, DataType::kInt8, DataType::kUint8, DataType::kInt16,
        DataType::kInt32, DataType::kInt64}) {
    const Tensor x = FromDoubles(dtype, {2, 4}, {0, 1, 2, 3, 4, 5, 6, 9});
    const auto counts = [&](double low, double high, int64_t bins) {
      return ToDoubles(RunOne(Histogram(x, low, high, bins, DataType::kInt32)));
    };
    using Counts = std::vector<double>;
    EXPECT_EQ(counts(1, 5, 2), (Counts{2, 3}));     // [1, 3) and [3, 5]
    EXPECT_EQ(counts(0, 0, 3), (Counts{3, 3, 2}));  // from 0 to 9
    EXPECT_EQ(counts(2, 2, 9), (Counts{1, 1, 1, 1, 1, 1, 1, 0, 1}));
    EXPECT_EQ(counts(20, 30, 2), (Counts{0, 0}));
  }
  const Tensor x = FromDoubles(DataType::kFloat, {4}, {3, 3, 3, 3});
  EXPECT_EQ(ToDoubles(RunOne(Histogram(x, 0, 0, 4, DataType::kFloat))),
            (std::vector<double>{0, 0, 4, 0}));  // from 2 to 4
  const Tensor none = FromDoubles(DataType::kFloat, {3}, {NAN, 0, INFINITY});
  EXPECT_EQ(ToDoubles(RunOne(Histogram(none, -1, 1, 2, DataType::kInt32))),
            (std::vector<double>{0, 1}));
  ExpectFails(Histogram(none, 0, 0, 2, DataType::kInt32), Code::kInvalidArgument,
              {"the range from", "finite numbers"});
  ExpectFails(Histogram(x, 0, 0, 0, DataType::kInt32), Code::kInvalidArgument, {"bins"});
}

// ---- SearchSorted ----

OpCall Search(const Tensor& sorted, const Tensor& values, bool right) {
  return {.type = "SearchSorted",
          .inputs = {{"sorted_sequence", sorted}, {"values", values}},
          .attrs = {{"right", AttrValue::Bool(right)}}};
}

TEST(SearchSorted, CountsWhatIsSmaller) {
  const std::vector<double> sorted = {1, 3, 3, 6, 0, 2, 4, 4};
  const std::vector<double> values = {0, 3, 7, 4, 1, 0};
  for (const DataType dtype : AllDtypes()) {
    if (dtype == DataType::kBool) continue;
    for (const bool right : {false, true}) {
      for (const bool shared : {false, true}) {
        const Tensor sequence =
            shared ? FromDoubles(dtype, {4}, {1, 3, 3, 6}) : FromDoubles(dtype, {2, 4}, sorted);
        const Tensor y = RunOne(Search(sequence, FromDoubles(dtype, {2, 3}, values), right));
        EXPECT_EQ(y.type(), (TensorType{DataType::kInt64, {2, 3}}));
        std::vector<double> expected;
        for (size_t i = 0; i < values.size(); ++i) {
          double count = 0;
          for (size_t j = 0; j < 4; ++j) {
            const double element = sorted[(shared ? 0 : i / 3 * 4) + j];
            count += element < values[i] || (right && element == values[i]) ? 1 : 0;
          }
          expected.push_back(count);
        }
        EXPECT_EQ(ToDoubles(y), expected) << Name(dtype) << (right ? " right" : " left");
      }
    }
  }
}

TEST(SearchSorted, FollowsTheSorter) {
  OpCall call = Search(FromDoubles(DataType::kFloat, {3}, {5, 1, 3}),
                       FromDoubles(DataType::kFloat, {2}, {2, 5}), false);
  call.inputs.push_back({"sorter", MakeInts({1, 2, 0})});
  call.attrs.emplace_back("dtype", AttrValue::Int(3));
  const Tensor y = RunOne(call);
  EXPECT_EQ(y.dtype(), DataType::kInt32);
  EXPECT_EQ(ToDoubles(y), (std::vector<double>{1, 2}));
  call.inputs[2].value = MakeInts({1, 3, 0});
  ExpectFails(call, Code::kInvalidArgument, {"\"sorter\" holds 3 at element 1"});
}

TEST(SearchSorted, RefusesRowsThatDoNotMatch) {
  ExpectFails(Search(Pattern(DataType::kFloat, {2, 4}), Pattern(DataType::kFloat, {3, 1}), false),
              Code::kInvalidArgument, {"[2,4]", "[3,1]"});
}

// ---- Bucketize ----

TEST(Bucketize, ChoosesTheSideOfABoundary) {
  const Tensor x = FromDoubles(DataType::kFloat, {5}, {-1, 0, 1, 1.5, 9});
  const auto run = [&](bool right) {
    return ToDoubles(RunOne({.type = "Bucketize",
                             .inputs = {{"x", x}},
                             .attrs = {{"boundaries", AttrValue::Floats({0, 1, 2})},
                                       {"right", AttrValue::Bool(right)}}}));
  };
  EXPECT_EQ(run(true), (std::vector<double>{0, 1, 2, 2, 3}));
  EXPECT_EQ(run(false), (std::vector<double>{0, 0, 1, 2, 3}));
  ExpectFails({.type = "Bucketize",
               .inputs = {{"x", x}},
               .attrs = {{"boundaries", AttrValue::Floats({1, 0})}}},
              Code::kInvalidArgument, {"ascending"});
}

}  // namespace
}  // namespace npumesh
