// Gather, GatherV2, GatherElements.
#include "tests/unit/op_values.h"

namespace npumesh {
namespace {

struct GatherCase {
  Shape x;
  Shape indices;
  std::vector<double> values;
  int64_t axis = 0;
  int64_t batch = 0;
  Shape y;
};

const std::vector<GatherCase>& GatherCases() {
  static const std::vector<GatherCase> cases = {
      {{4, 3}, {2}, {3, 0}, 0, 0, {2, 3}},
      {{4, 3}, {2, 2}, {3, 0, 1, 1}, 0, 0, {2, 2, 3}},
      {{4, 3}, {}, {2}, 0, 0, {3}},
      {{4}, {}, {2}, 0, 0, {}},
      {{4}, {3}, {3, 3, 0}, 0, 0, {3}},
      {{4, 3}, {2}, {2, 0}, 1, 0, {4, 2}},
      {{4, 3}, {2}, {2, 0}, -1, 0, {4, 2}},
      {{2, 4, 3}, {2, 1}, {3, 0}, 1, 0, {2, 2, 1, 3}},
      {{2, 4, 3}, {2, 2}, {3, 0, 1, 2}, 1, 1, {2, 2, 3}},
      {{2, 4, 3}, {2, 2}, {2, 0, 1, 2}, 2, 1, {2, 4, 2}},
      {{4, 3}, {0}, {}, 0, 0, {0, 3}},
      {{4, 0}, {2}, {3, 0}, 0, 0, {2, 0}},
      {{0, 3}, {0}, {}, 0, 0, {0, 3}},
  };
  return cases;
}

// y[batch, outer, chosen, inner] = x[batch, outer, indices[batch, chosen], inner].
Tensor Reference(const GatherCase& c, const Tensor& x) {
  const std::vector<double> from = ToDoubles(x);
  const auto axis = static_cast<size_t>(c.axis < 0 ? c.axis + c.x.rank() : c.axis);
  const auto batch = static_cast<size_t>(c.batch);
  const size_t chosen = c.indices.dims().size() - batch;
  std::vector<double> values;
  for (const std::vector<int64_t>& at : Positions(c.y)) {
    std::vector<int64_t> index(at.begin(), at.begin() + c.batch);
    index.insert(index.end(), at.begin() + axis, at.begin() + axis + chosen);
    std::vector<int64_t> source(at.begin(), at.begin() + axis);
    source.push_back(static_cast<int64_t>(c.values[Index(c.indices, index)]));
    source.insert(source.end(), at.begin() + axis + chosen, at.end());
    values.push_back(from[Index(c.x, source)]);
  }
  return FromDoubles(x.dtype(), c.y, values);
}

TEST(Gather, TakesRowsOfEveryDtype) {
  for (const GatherCase& c : GatherCases()) {
    for (const DataType dtype : AllDtypes()) {
      for (const DataType index : {DataType::kInt32, DataType::kInt64}) {
        SCOPED_TRACE(c.x.ToString() + " " + c.indices.ToString() + " axis " +
                     std::to_string(c.axis));
        const Tensor x = Pattern(dtype, c.x);
        const Tensor indices = FromDoubles(index, c.indices, c.values);
        const AttrValue batch = AttrValue::Int(c.batch);
        EXPECT_TRUE(SameBytes(
            RunOne({.type = "GatherV2",
                    .inputs = {{"x", x}, {"indices", indices}, {"axis", MakeInts({c.axis})}},
                    .attrs = {{"batch_dims", batch}}}),
            Reference(c, x)));
        if (c.axis != c.batch) continue;
        EXPECT_TRUE(SameBytes(RunOne({.type = "Gather",
                                      .inputs = {{"x", x}, {"indices", indices}},
                                      .attrs = {{"batch_dims", batch}}}),
                              Reference(c, x)));
      }
    }
  }
}

OpCall GatherV2(Tensor x, Tensor indices, int64_t axis, bool negative = false) {
  return {.type = "GatherV2",
          .inputs = {{"x", std::move(x)},
                     {"indices", std::move(indices)},
                     {"axis", Make<int32_t>(DataType::kInt32, {}, {static_cast<int32_t>(axis)})}},
          .attrs = {{"negative_index_support", AttrValue::Bool(negative)}}};
}

TEST(Gather, CountsNegativeIndicesFromTheEndWhereAllowed) {
  const Tensor x = FromDoubles(DataType::kFloat, {3}, {5, 6, 7});
  EXPECT_EQ(ToDoubles(RunOne(GatherV2(x, MakeInts({-1, -3}), 0, true))),
            (std::vector<double>{7, 5}));
  EXPECT_EQ(ToDoubles(RunOne(GatherV2(x, FromDoubles(DataType::kInt64, {}, {-1}), 0))),
            std::vector<double>{7});
  EXPECT_EQ(ToDoubles(RunOne({.type = "Gather",
                              .inputs = {{"x", x}, {"indices", MakeInts({-2})}},
                              .attrs = {{"negative_index_support", AttrValue::Bool(true)}}})),
            std::vector<double>{6});
}

TEST(Gather, OutOfRangeIndexIsAnErrorThatNamesIt) {
  const Tensor x = Pattern(DataType::kFloat, {3, 2});
  ExpectFails(GatherV2(x, MakeInts({0, 3}), 0), Code::kInvalidArgument,
              {"\"indices\" holds 3 at element 1", "index < 3"});
  ExpectFails(GatherV2(x, MakeInts({0, -1}), 0), Code::kInvalidArgument,
              {"holds -1 at element 1", "0 <= index < 3"});
  ExpectFails(GatherV2(x, MakeInts({-4}), 0, true), Code::kInvalidArgument,
              {"holds -4 at element 0", "-3 <= index < 3"});
  ExpectFails(GatherV2(Pattern(DataType::kFloat, {0, 2}), MakeInts({0}), 0), Code::kInvalidArgument,
              {"index < 0"});
  ExpectFails(GatherV2(Pattern(DataType::kFloat, {2, 0}), MakeInts({2}), 0), Code::kInvalidArgument,
              {"index < 2"});
}

TEST(Gather, RefusesWhatDoesNotFit) {
  const Tensor x = Pattern(DataType::kFloat, {3, 2});
  ExpectFails(GatherV2(x, MakeInts({0}), 2), Code::kInvalidArgument, {"axis 2", "rank 2"});
  ExpectFails(GatherV2(Pattern(DataType::kFloat, {}), MakeInts({0}), 0), Code::kInvalidArgument,
              {"axis 0", "rank 0"});
  ExpectFails(GatherV2(x, Pattern(DataType::kFloat, {1}), 0), Code::kInvalidArgument,
              {"indices", "float32"});
  OpCall batched = GatherV2(x, MakeInts({0, 1}), 1);
  batched.attrs.push_back({"batch_dims", AttrValue::Int(1)});
  ExpectFails(batched, Code::kInvalidArgument, {"batch_dims 1", "[3,2]", "[2]"});
  OpCall unknown = GatherV2(x, MakeInts({0}), 0);
  unknown.inputs[2].known = Known::kNo;
  ExpectFails(unknown, Code::kUnsupported, {"axis"});
}

OpCall GatherElements(Tensor x, Tensor index, int64_t dim) {
  return {.type = "GatherElements",
          .inputs = {{"x", std::move(x)}, {"index", std::move(index)}},
          .attrs = {{"dim", AttrValue::Int(dim)}}};
}

TEST(GatherElements, ReplacesOneCoordinate) {
  const Shape shape{3, 4, 2};
  for (const DataType dtype : AllDtypes()) {
    for (int dim = -3; dim < 3; ++dim) {
      const int axis = dim < 0 ? dim + 3 : dim;
      Shape index_shape{2, 3, 2};
      index_shape[axis] = 5;
      std::vector<double> values(static_cast<size_t>(index_shape.elements()));
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<double>(static_cast<int64_t>(i * 7 + i / 3) % shape[axis]);
      }
      const Tensor x = Pattern(dtype, shape);
      std::vector<double> expected;
      size_t i = 0;
      for (std::vector<int64_t> at : Positions(index_shape)) {
        at[static_cast<size_t>(axis)] = static_cast<int64_t>(values[i++]);
        expected.push_back(ToDoubles(x)[Index(shape, at)]);
      }
      for (const DataType index : {DataType::kInt32, DataType::kInt64}) {
        const Tensor y = RunOne(GatherElements(x, FromDoubles(index, index_shape, values), dim));
        EXPECT_TRUE(SameBytes(y, FromDoubles(dtype, index_shape, expected))) << "dim " << dim;
      }
    }
  }
}

TEST(GatherElements, EmptyIndexGivesNothing) {
  const Tensor y = RunOne(
      GatherElements(Pattern(DataType::kFloat, {3, 2}), Pattern(DataType::kInt64, {0, 2}), 0));
  EXPECT_EQ(y.shape(), (Shape{0, 2}));
}

TEST(GatherElements, RefusesWhatDoesNotFit) {
  const Tensor x = Pattern(DataType::kFloat, {3, 2});
  const auto index = [](Shape shape, double value) {
    const auto count = static_cast<size_t>(shape.elements());
    return FromDoubles(DataType::kInt64, std::move(shape), std::vector<double>(count, value));
  };
  ExpectFails(GatherElements(x, index({1, 2}, 3), 0), Code::kInvalidArgument,
              {"\"index\" holds 3 at element 0", "index < 3"});
  ExpectFails(GatherElements(x, index({1, 2}, -1), 0), Code::kInvalidArgument, {"holds -1"});
  ExpectFails(GatherElements(x, index({1, 3}, 0), 0), Code::kInvalidArgument, {"[1,3]", "[3,2]"});
  ExpectFails(GatherElements(x, index({2}, 0), 0), Code::kInvalidArgument, {"[2]"});
  ExpectFails(GatherElements(x, index({1, 1}, 0), 2), Code::kInvalidArgument, {"axis 2"});
}

}  // namespace
}  // namespace npumesh
