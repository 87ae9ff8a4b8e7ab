// The scatter operators, against loops over positions.
#include <limits>

#include "tests/unit/op_values.h"

namespace npumesh {
namespace {

using Join = double (*)(double, double);

double Set(double, double b) {
  return b;
}
double Add(double a, double b) {
  return a + b;
}
double Sub(double a, double b) {
  return a - b;
}
double Mul(double a, double b) {
  return a * b;
}
double Div(double a, double b) {
  return a / b;
}
double Max(double a, double b) {
  return a > b ? a : b;
}
double Min(double a, double b) {
  return a < b ? a : b;
}

// Numeric types; sums of the patterns stay exact in each.
const DataType kTypes[] = {DataType::kFloat,  DataType::kFloat16, DataType::kBfloat16,
                           DataType::kDouble, DataType::kInt8,    DataType::kInt32,
                           DataType::kInt64,  DataType::kUint64};

// ---- ScatterElements ----

OpCall Elements(const Tensor& data, const Tensor& indices, const Tensor& updates, int64_t axis,
                const std::string& reduction) {
  return {.type = "ScatterElements",
          .inputs = {{"data", data}, {"indices", indices}, {"updates", updates}},
          .attrs = {{"axis", AttrValue::Int(axis)}, {"reduction", AttrValue::String(reduction)}}};
}

TEST(ScatterElements, JoinsAtEveryAxis) {
  const std::pair<const char*, Join> reductions[] = {
      {"none", Set}, {"add", Add}, {"mul", Mul}, {"max", Max}, {"min", Min}};
  const Shape data_shape = {3, 4, 2}, index_shape = {2, 3, 2};
  for (const DataType dtype : kTypes) {
    for (int axis = 0; axis < 3; ++axis) {
      const Tensor data = Pattern(dtype, data_shape), updates = Pattern(dtype, index_shape, 2);
      std::vector<double> places;
      for (size_t i = 0; i < 12; ++i) {
        places.push_back(static_cast<double>(i * 5 % static_cast<size_t>(data_shape[axis])));
      }
      for (const auto& [name, join] : reductions) {
        std::vector<double> expected = ToDoubles(data);
        size_t i = 0;
        for (std::vector<int64_t> at : Positions(index_shape)) {
          at[static_cast<size_t>(axis)] = static_cast<int64_t>(places[i]);
          double& element = expected[Index(data_shape, at)];
          element = join(element, ToDoubles(updates)[i++]);
        }
        for (const DataType index : {DataType::kInt32, DataType::kInt64}) {
          const Tensor y = RunOne(
              Elements(data, FromDoubles(index, index_shape, places), updates, axis - 3, name));
          EXPECT_TRUE(SameBytes(y, FromDoubles(dtype, data_shape, expected)))
              << name << " axis " << axis << " " << Name(dtype);
        }
      }
    }
  }
}

// GE declares the operator compatible with that of ONNX, where they count from the end. A compiled
// q[:, -1] = v is such a call.
TEST(ScatterElements, NegativeIndicesCountFromTheEnd) {
  const Tensor data = Pattern(DataType::kFloat, {2, 2, 3}),
               updates = Pattern(DataType::kFloat, {2, 1, 3}, 2);
  for (const char* const reduction : {"none", "add", "mul", "max", "min"}) {
    for (const double index : {-1.0, -2.0}) {
      const auto run = [&](double at) {
        const std::vector<double> places(6, at);
        return RunOne(Elements(data, FromDoubles(DataType::kInt32, {2, 1, 3}, places), updates, 1,
                               reduction));
      };
      EXPECT_TRUE(SameBytes(run(index), run(index + 2))) << reduction;
    }
  }
}

TEST(ScatterElements, SumsOfHalvesAreRoundedOnce) {
  const Tensor data = FromDoubles(DataType::kFloat16, {1}, {2048});
  const Tensor ones = FromDoubles(DataType::kFloat16, {3}, {1, 1, 1});
  EXPECT_EQ(ToDoubles(RunOne(
                Elements(data, FromDoubles(DataType::kInt64, {3}, {0, 0, 0}), ones, 0, "add"))),
            (std::vector<double>{2052}));
}

TEST(ScatterElements, Refuses) {
  const Tensor data = Pattern(DataType::kFloat, {2, 3});
  const auto fails = [&](const Tensor& indices, const Tensor& updates, const std::string& reduction,
                         const std::string& word) {
    ExpectFails(Elements(data, indices, updates, 0, reduction), Code::kInvalidArgument, {word});
  };
  const Tensor one = Pattern(DataType::kFloat, {1, 1});
  fails(FromDoubles(DataType::kInt64, {1, 1}, {2}), one, "none", "holds 2 at element 0");
  fails(FromDoubles(DataType::kInt64, {1, 1}, {-3}), one, "none", "holds -3 at element 0");
  fails(FromDoubles(DataType::kInt64, {1, 1}, {0}), one, "mean", "\"reduction\" is \"mean\"");
  fails(FromDoubles(DataType::kInt64, {1, 4}, {0, 0, 0, 0}), one, "none", "[1,4]");
  fails(FromDoubles(DataType::kInt64, {1, 2}, {0, 0}), one, "none",
        "updates is float32[1,1], expected [1,2]");
  fails(FromDoubles(DataType::kFloat, {1, 1}, {0}), one, "none", "int32 or int64");
}

// ---- rows by tuples, and along dimension 0 ----

struct RowsCase {
  std::string type;
  Join join;
  std::string var = "var";
};

const RowsCase kTuples[] = {
    {"ScatterNdUpdate", Set},
    {"ScatterNdAdd", Add},
    {"ScatterNdSub", Sub},
    {"ScatterNdMax", Max},
    {"TensorScatterUpdate", Set, "x"},
    {"TensorScatterAdd", Add, "x"},
    {"TensorScatterSub", Sub, "x"},
    {"TensorScatterMax", Max, "input"},
    {"TensorScatterMin", Min, "input"},
};

const RowsCase kFirst[] = {
    {"ScatterUpdate", Set}, {"ScatterAdd", Add}, {"ScatterSub", Sub},
    {"ScatterMul", Mul},    {"ScatterMax", Max}, {"ScatterMin", Min},
};

void ExpectRows(const RowsCase& test, DataType dtype, const Tensor& var, const Tensor& indices,
                const Tensor& updates, const std::vector<size_t>& rows) {
  std::vector<double> expected = ToDoubles(var);
  const std::vector<double> given = ToDoubles(updates);
  const size_t width = rows.empty() ? 0 : given.size() / rows.size();
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t e = 0; e < width; ++e) {
      double& element = expected[rows[i] * width + e];
      element = test.join(element, given[i * width + e]);
    }
  }
  const Tensor y = RunOne(
      {.type = test.type, .inputs = {{test.var, var}, {"indices", indices}, {"updates", updates}}});
  EXPECT_TRUE(SameBytes(y, FromDoubles(dtype, var.shape(), expected)))
      << test.type << " " << Name(dtype);
}

TEST(ScatterNd, JoinsTheRowsOfTuples) {
  for (const RowsCase& test : kTuples) {
    for (const DataType dtype : kTypes) {
      if (dtype == DataType::kUint64 && test.join == Sub) continue;  // would wrap
      const Tensor var = FromDoubles(dtype, {2, 3, 2}, {60, 61, 62, 63, 64, 65, 2, 1, 4, 3, 6, 5});
      ExpectRows(test, dtype, var, FromDoubles(DataType::kInt32, {3, 2}, {1, 2, 0, 0, 1, 2}),
                 Pattern(dtype, {3, 2}), {5, 0, 5});
      ExpectRows(test, dtype, var, FromDoubles(DataType::kInt64, {2, 1}, {1, 0}),
                 Pattern(dtype, {2, 3, 2}), {1, 0});
      ExpectRows(test, dtype, var, FromDoubles(DataType::kInt64, {1, 3}, {1, 0, 1}),
                 Pattern(dtype, {1}), {7});
    }
  }
}

TEST(ScatterFirst, JoinsAlongDimensionZero) {
  for (const RowsCase& test : kFirst) {
    for (const DataType dtype : kTypes) {
      if (dtype == DataType::kUint64 && test.join == Sub) continue;
      const Tensor var = FromDoubles(dtype, {3, 2}, {12, 14, 16, 18, 1, 2});
      ExpectRows(test, dtype, var, FromDoubles(DataType::kInt64, {2, 2}, {1, 0, 1, 2}),
                 Pattern(dtype, {2, 2, 2}), {1, 0, 1, 2});
    }
  }
  ExpectRows({"ScatterDiv", Div}, DataType::kInt32, FromDoubles(DataType::kInt32, {2}, {8, 18}),
             FromDoubles(DataType::kInt32, {2}, {1, 1}), FromDoubles(DataType::kInt32, {2}, {3, 2}),
             {1, 1});
}

// -1 of signed types has the bits of the largest number of unsigned ones.
TEST(ScatterFirst, DividesByTheLargestAndBySmallestNumbers) {
  const auto divided = [](const Tensor& var, const Tensor& updates) {
    return RunOne({.type = "ScatterDiv",
                   .inputs = {{"var", var},
                              {"indices", FromDoubles(DataType::kInt32, {2}, {0, 1})},
                              {"updates", updates}}});
  };
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  const Tensor whole = divided(Make<uint64_t>(DataType::kUint64, {2}, {kMost, 7}),
                               Make<uint64_t>(DataType::kUint64, {2}, {kMost, kMost}));
  EXPECT_THAT(ValuesOf<uint64_t>(whole), testing::ElementsAre(1u, 0u));
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  const Tensor negated = divided(Make<int64_t>(DataType::kInt64, {2}, {kLeast, 7}),
                                 Make<int64_t>(DataType::kInt64, {2}, {-1, -1}));
  EXPECT_THAT(ValuesOf<int64_t>(negated), testing::ElementsAre(kLeast, -7));
}

TEST(ScatterFirst, DivisionByZeroIsAnError) {
  ExpectFails({.type = "ScatterDiv",
               .inputs = {{"var", FromDoubles(DataType::kInt32, {2}, {8, 9})},
                          {"indices", FromDoubles(DataType::kInt32, {2}, {0, 1})},
                          {"updates", FromDoubles(DataType::kInt32, {2}, {1, 0})}}},
              Code::kInvalidArgument, {"update row 1 holds a 0"});
}

TEST(ScatterNd, Refuses) {
  const auto call = [](const Tensor& indices, const Tensor& updates) {
    return OpCall{.type = "ScatterNdUpdate",
                  .inputs = {{"var", Pattern(DataType::kFloat, {2, 3})},
                             {"indices", indices},
                             {"updates", updates}}};
  };
  ExpectFails(call(FromDoubles(DataType::kInt64, {1, 2}, {1, 3}), Pattern(DataType::kFloat, {1})),
              Code::kInvalidArgument, {"holds 3 at element 1", "index < 3"});
  ExpectFails(call(FromDoubles(DataType::kInt64, {1, 1}, {1}), Pattern(DataType::kFloat, {1, 2})),
              Code::kInvalidArgument, {"updates", "expected [1,3]"});
  ExpectFails(
      call(FromDoubles(DataType::kInt64, {1, 3}, {1, 1, 1}), Pattern(DataType::kFloat, {1})),
      Code::kInvalidArgument, {"address at most the 2 dimensions"});
  ExpectFails(call(FromDoubles(DataType::kInt64, {1, 2}, {1, 1}), Pattern(DataType::kInt32, {1})),
              Code::kInvalidArgument, {"updates is int32[1]", "expected float32"});
}

TEST(ScatterNd, IntoZeros) {
  const Tensor y =
      RunOne({.type = "ScatterNd",
              .inputs = {{"indices", FromDoubles(DataType::kInt32, {3, 1}, {2, 0, 2})},
                         {"x", FromDoubles(DataType::kFloat16, {3, 2}, {1, 2, 3, 4, 5, 6})},
                         {"shape", MakeInts({4, 2})}}});
  EXPECT_TRUE(SameBytes(y, FromDoubles(DataType::kFloat16, {4, 2}, {3, 4, 0, 0, 6, 8, 0, 0})));
}

// ---- InplaceIndexAdd ----

TEST(IndexAdd, AddsScaledRows) {
  const Shape shape = {2, 3, 2};
  for (const DataType dtype : kTypes) {
    for (int axis = 0; axis < 3; ++axis) {
      const Tensor var = Pattern(dtype, shape);
      const std::vector<double> places = {1, 0, 1, 1};
      Shape update_shape = shape;
      update_shape[axis] = 4;
      const Tensor updates = Pattern(dtype, update_shape, 3);
      std::vector<double> expected = ToDoubles(var);
      size_t i = 0;
      for (std::vector<int64_t> at : Positions(update_shape)) {
        at[static_cast<size_t>(axis)] =
            static_cast<int64_t>(places[static_cast<size_t>(at[static_cast<size_t>(axis)])]);
        expected[Index(shape, at)] += 2 * ToDoubles(updates)[i++];
      }
      const Tensor y = RunOne({.type = "InplaceIndexAdd",
                               .inputs = {{"var", var},
                                          {"indices", FromDoubles(DataType::kInt64, {4}, places)},
                                          {"updates", updates},
                                          {"alpha", FromDoubles(dtype, {1}, {2})}},
                               .attrs = {{"axis", AttrValue::Int(axis)}}});
      EXPECT_TRUE(SameBytes(y, FromDoubles(dtype, shape, expected))) << Name(dtype) << axis;
    }
  }
}

// ---- UnsortedSegment* ----

TEST(UnsortedSegment, GathersByIdentity) {
  struct Case {
    const char* type;
    Join join;
    double start;
  };
  const Case cases[] = {{"UnsortedSegmentSum", Add, 0},
                        {"UnsortedSegmentProd", Mul, 1},
                        {"UnsortedSegmentMax", Max, -128},
                        {"UnsortedSegmentMin", Min, 127}};
  const std::vector<int> ids = {2, 0, -1, 2};
  for (const Case& test : cases) {
    const Tensor x = Pattern(DataType::kInt8, {4, 2});
    std::vector<double> expected(8, test.start);
    for (size_t r = 0; r < ids.size(); ++r) {
      for (size_t c = 0; c < 2 && ids[r] >= 0; ++c) {
        double& element = expected[static_cast<size_t>(ids[r]) * 2 + c];
        element = test.join(element, ToDoubles(x)[r * 2 + c]);
      }
    }
    const Tensor y =
        RunOne({.type = test.type,
                .inputs = {{"x", x},
                           {"segment_ids", FromDoubles(DataType::kInt32, {4}, {2, 0, -1, 2})},
                           {"num_segments", MakeInts({4})}}});
    EXPECT_TRUE(SameBytes(y, FromDoubles(DataType::kInt8, {4, 2}, expected))) << test.type;
  }
}

TEST(UnsortedSegment, IdsOfHigherRankAndTooLarge) {
  const auto call = [](double id) {
    return OpCall{.type = "UnsortedSegmentSum",
                  .inputs = {{"x", FromDoubles(DataType::kFloat, {2, 2}, {1, 2, 3, 4})},
                             {"segment_ids", FromDoubles(DataType::kInt64, {2, 2}, {1, 1, 0, id})},
                             {"num_segments", MakeInts({2})}}};
  };
  EXPECT_EQ(ToDoubles(RunOne(call(1))), (std::vector<double>{3, 7}));
  ExpectFails(call(2), Code::kInvalidArgument, {"holds 2 at element 3"});
}

// ---- Scatter ----

TEST(CacheScatter, WritesEachEntryAtItsPlace) {
  // var [batch, heads, positions, width]
  const Shape shape = {3, 2, 5, 2};
  for (const bool pairs : {false, true}) {
    const Tensor var = Pattern(DataType::kFloat16, shape);
    const Tensor updates = Pattern(DataType::kFloat16, {2, 2, 2, 2}, 5);
    const std::vector<int64_t> batches =
        pairs ? std::vector<int64_t>{2, 0} : std::vector<int64_t>{0, 1};
    const std::vector<int64_t> starts = {3, 1};
    std::vector<double> expected = ToDoubles(var);
    size_t i = 0;
    for (std::vector<int64_t> at : Positions(Shape{2, 2, 2, 2})) {
      const auto entry = static_cast<size_t>(at[0]);
      at[0] = batches[entry];
      at[2] += starts[entry];
      expected[Index(shape, at)] = ToDoubles(updates)[i++];
    }
    const Tensor indices = pairs ? FromDoubles(DataType::kInt64, {2, 2}, {2, 3, 0, 1})
                                 : FromDoubles(DataType::kInt32, {2}, {3, 1});
    const Tensor y =
        RunOne({.type = "Scatter",
                .inputs = {{"var", var}, {"indices", indices}, {"updates", updates}},
                .attrs = {{"reduce", AttrValue::String("update")}, {"axis", AttrValue::Int(-2)}}});
    EXPECT_TRUE(SameBytes(y, FromDoubles(DataType::kFloat16, shape, expected)));
  }
}

TEST(CacheScatter, Refuses) {
  const auto call = [](double start, int64_t axis, const std::string& reduce) {
    return OpCall{.type = "Scatter",
                  .inputs = {{"var", Pattern(DataType::kFloat, {1, 4, 2})},
                             {"indices", FromDoubles(DataType::kInt32, {1}, {start})},
                             {"updates", Pattern(DataType::kFloat, {1, 2, 2})}},
                  .attrs = {{"reduce", AttrValue::String(reduce)}, {"axis", AttrValue::Int(axis)}}};
  };
  ExpectFails(call(3, 1, "update"), Code::kInvalidArgument,
              {"positions 3 to 4", "positions below 4"});
  ExpectFails(call(-1, 1, "update"), Code::kInvalidArgument, {"positions -1"});
  ExpectFails(call(0, 2, "update"), Code::kInvalidArgument, {"do not fit"});
  ExpectFails(call(0, 1, "add"), Code::kUnsupported, {"\"reduce\" is \"add\""});
}

}  // namespace
}  // namespace npumesh
