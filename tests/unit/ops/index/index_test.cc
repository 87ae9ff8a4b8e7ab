// GatherNd, IndexByTensor, Index, IndexPutV2.
#include <functional>

#include "tests/unit/op_values.h"

namespace npumesh {
namespace {

using Ints = std::vector<int64_t>;

Tensor Indices(Shape shape, const Ints& values) {
  return Make<int64_t>(DataType::kInt64, std::move(shape), values);
}

TEST(GatherNd, TakesRowsByTuples) {
  const Tensor x = Pattern(DataType::kBfloat16, {2, 3, 2});
  const std::vector<double> from = ToDoubles(x);
  const auto run = [&](const Tensor& indices) {
    return RunOne({.type = "GatherNd", .inputs = {{"x", x}, {"indices", indices}}});
  };
  const Tensor rows = run(Indices({2, 2}, {1, 2, 0, 1}));
  EXPECT_EQ(rows.shape(), Shape({2, 2}));
  EXPECT_EQ(ToDoubles(rows), (std::vector<double>{from[10], from[11], from[2], from[3]}));
  EXPECT_EQ(ToDoubles(run(Indices({3}, {1, 0, 1}))), (std::vector<double>{from[7]}));
  const Tensor whole = run(Indices({2, 0}, {}));
  EXPECT_EQ(whole.shape(), Shape({2, 2, 3, 2}));
  EXPECT_EQ(ToDoubles(whole)[12], from[0]);
}

TEST(GatherNd, NegativeOnlyWhenAllowed) {
  OpCall call{.type = "GatherNd",
              .inputs = {{"x", FromDoubles(DataType::kFloat, {3}, {1, 2, 3})},
                         {"indices", Indices({1, 1}, {-1})}}};
  ExpectFails(call, Code::kInvalidArgument, {"holds -1", "0 <= index"});
  call.attrs.emplace_back("negative_index_support", AttrValue::Bool(true));
  EXPECT_EQ(ToDoubles(RunOne(call)), (std::vector<double>{3}));
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

TEST(IndexByTensor, Refuses) {
  const Tensor x = Pattern(DataType::kFloat, {3, 4});
  const auto call = [&](const Ints& mask, const std::vector<Tensor>& indices) {
    return WithIndices({.type = "IndexByTensor",
                        .inputs = {{"x", x}},
                        .attrs = {{"indices_mask", AttrValue::Ints(mask)}}},
                       indices);
  };
  ExpectFails(call({1}, {Indices({1}, {3})}), Code::kInvalidArgument,
              {"holds 3 at element 0", "-3 <= index < 3"});
  ExpectFails(call({1}, {Indices({1}, {-4})}), Code::kInvalidArgument, {"holds -4"});
  ExpectFails(call({1, 1}, {Indices({1}, {0})}), Code::kInvalidArgument,
              {"1 index tensors for mask [1,1]"});
  ExpectFails(call({1, 1}, {Indices({2}, {0, 0}), Indices({3}, {0, 0, 0})}), Code::kInvalidArgument,
              {"do not broadcast"});
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

TEST(IndexPut, RefusesAValueThatDoesNotFit) {
  ExpectFails(WithIndices({.type = "IndexPutV2",
                           .inputs = {{"x", Pattern(DataType::kFloat, {3, 4})},
                                      {"value", Pattern(DataType::kFloat, {3})},
                                      {"indexed_sizes", MakeInts({1})},
                                      {"indexed_strides", MakeInts({})}}},
                          {Indices({2}, {0, 1})}),
              Code::kInvalidArgument, {"float32[3]", "[2,4]"});
}

}  // namespace
}  // namespace npumesh
