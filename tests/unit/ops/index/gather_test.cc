// Gather, GatherV2, GatherElements.
// GatherNd, IndexByTensor, Index, IndexPutV2.
#include <functional>

#include "tests/unit/op_values.h"

namespace npumesh {
namespace {

using Ints = std::vector<int64_t>;

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

Tensor Indices(Shape shape, const Ints& values) {
  return Make<int64_t>(DataType::kInt64, std::move(shape), values);
}

// ---- indexing with tensors ----

struct IndexCase {
  Ints mask;
  std::vector<Tensor> indices;
  Shape result;
  // Position in x of a position of the result.
  std::function<Ints(const Ints& at)> source;
};

const Shape kX = {3, 4, 2, 5};

std::vector<IndexCase> IndexCases() {
  const Tensor a = Indices({2, 3}, {0, -1, 2, 1, 1, -3});
  const Tensor b = Indices({3}, {1, 0, -1});
  const auto a_at = [](int64_t i, int64_t j) { return Ints{0, 2, 2, 1, 1, 0}[i * 3 + j]; };
  const auto b_at = [](int64_t j, int64_t extent) { return j == 0 ? 1 : j == 1 ? 0 : extent - 1; };
  return {
      {{1},
       {b},
       {3, 4, 2, 5},
       [=](const Ints& at) {
         return Ints{b_at(at[0], 3), at[1], at[2], at[3]};
       }},
      {{0, 1},
       {b},
       {3, 3, 2, 5},
       [=](const Ints& at) {
         return Ints{at[0], b_at(at[1], 4), at[2], at[3]};
       }},
      {{0, 0, 0, 1},
       {b},
       {3, 4, 2, 3},
       [=](const Ints& at) {
         return Ints{at[0], at[1], at[2], b_at(at[3], 5)};
       }},
      {{1, 1},
       {a, b},
       {2, 3, 2, 5},
       [=](const Ints& at) {
         return Ints{a_at(at[0], at[1]), b_at(at[1], 4), at[2], at[3]};
       }},
      {{0, 1, 1},
       {b, Indices({}, {1})},
       {3, 3, 5},
       [=](const Ints& at) {
         return Ints{at[0], b_at(at[1], 4), 1, at[2]};
       }},
      {{1, 0, 1},
       {a, b},
       {2, 3, 4, 5},
       [=](const Ints& at) {
         return Ints{a_at(at[0], at[1]), at[2], b_at(at[1], 2), at[3]};
       }},
      {{1, 0, 0, 1},
       {a, b},
       {2, 3, 4, 2},
       [=](const Ints& at) {
         return Ints{a_at(at[0], at[1]), at[2], at[3], b_at(at[1], 5)};
       }},
      {{1, 1, 1, 1},
       {b, b, b, b},
       {3},
       [=](const Ints& at) {
         return Ints{b_at(at[0], 3), b_at(at[0], 4), b_at(at[0], 2), b_at(at[0], 5)};
       }},
      {{0, 1}, {Indices({0}, {})}, {3, 0, 2, 5}, [](const Ints& at) { return at; }},
  };
}

OpCall WithIndices(OpCall call, const std::vector<Tensor>& indices) {
  for (size_t i = 0; i < indices.size(); ++i) {
    call.inputs.push_back({"indices" + std::to_string(i), indices[i]});
  }
  return call;
}

TEST(IndexByTensor, FollowsPyTorch) {
  for (const IndexCase& test : IndexCases()) {
    for (const DataType dtype : {DataType::kFloat, DataType::kInt8, DataType::kBool}) {
      const Tensor x = Pattern(dtype, kX);
      std::vector<double> expected;
      for (const Ints& at : Positions(test.result)) {
        expected.push_back(ToDoubles(x)[Index(kX, test.source(at))]);
      }
      const Tensor want = FromDoubles(dtype, test.result, expected);
      const Tensor y = RunOne(WithIndices({.type = "IndexByTensor",
                                           .inputs = {{"x", x}},
                                           .attrs = {{"indices_mask", AttrValue::Ints(test.mask)}}},
                                          test.indices));
      EXPECT_TRUE(SameBytes(y, want)) << Shape(test.mask).ToString() << y.type().ToString();
      const Tensor same = RunOne(WithIndices({.type = "Index",
                                              .inputs = {{"x", x},
                                                         {"indexed_sizes", MakeInts(test.mask)},
                                                         {"indexed_strides", MakeInts({})}}},
                                             test.indices));
      EXPECT_TRUE(SameBytes(same, want)) << Shape(test.mask).ToString();
    }
  }
}

TEST(IndexPut, SetsAndAdds) {
  for (const IndexCase& test : IndexCases()) {
    for (const bool accumulate : {false, true}) {
      for (const bool one_value : {false, true}) {
        const Tensor x = Pattern(DataType::kFloat16, kX);
        const Tensor value = one_value ? FromDoubles(DataType::kFloat16, {}, {9})
                                       : Pattern(DataType::kFloat16, test.result, 2);
        std::vector<double> expected = ToDoubles(x);
        size_t i = 0;
        for (const Ints& at : Positions(test.result)) {
          double& element = expected[Index(kX, test.source(at))];
          const double given = ToDoubles(value)[one_value ? 0 : i++];
          element = accumulate ? element + given : given;
        }
        const Tensor y =
            RunOne(WithIndices({.type = "IndexPutV2",
                                .inputs = {{"x", x},
                                           {"value", value},
                                           {"indexed_sizes", MakeInts(test.mask)},
                                           {"indexed_strides", MakeInts({})}},
                                .attrs = {{"accumulate", AttrValue::Bool(accumulate)}}},
                               test.indices));
        EXPECT_TRUE(SameBytes(y, FromDoubles(DataType::kFloat16, kX, expected)))
            << Shape(test.mask).ToString();
      }
    }
  }
}

}  // namespace
}  // namespace npumesh
