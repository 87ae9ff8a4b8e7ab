// ConcatV2, Pack, Unpack, SplitV, Split.
#include "tests/unit/ops/shape/shape_values.h"

namespace npumesh {
namespace {

// Element e of chunk c of a tensor is its element c * chunk + e; zeros are behind the last one.
TEST(ChunkCat, PutsTheChunksOfAllTensorsSideBySide) {
  for (const DataType dtype : {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16}) {
    for (const int64_t chunks : {1, 2, 3, 5}) {
      const std::vector<Shape> shapes = {{2, 4, 2}, {2, 1}, {2, 7, 1, 3}, {2, 0, 5}};
      std::vector<OpInput> inputs;
      std::vector<std::vector<double>> rows(static_cast<size_t>(2 * chunks));
      for (size_t i = 0; i < shapes.size(); ++i) {
        const Tensor x = Pattern(dtype, shapes[i], static_cast<int>(i));
        inputs.push_back({"x" + std::to_string(i), x});
        const std::vector<double> values = ToDoubles(x);
        const int64_t row = shapes[i].elements() / 2, size = shapes[i][1];
        const int64_t inner = size == 0 ? 0 : row / size;
        const int64_t chunk = (size + chunks - 1) / chunks * inner;
        for (int64_t c = 0; c < 2 * chunks; ++c) {
          for (int64_t e = 0; e < chunk; ++e) {
            const int64_t at = c % chunks * chunk + e;
            rows[static_cast<size_t>(c)].push_back(
                at < row ? values[static_cast<size_t>(c / chunks * row + at)] : 0);
          }
        }
      }
      std::vector<double> expected;
      for (const std::vector<double>& row : rows) {
        expected.insert(expected.end(), row.begin(), row.end());
      }
      const Shape shape = {2, chunks, static_cast<int64_t>(rows[0].size())};
      EXPECT_TRUE(SameBytes(
          RunOne({.type = "ChunkCat",
                  .inputs = inputs,
                  .attrs = {{"dim", AttrValue::Int(1)}, {"num_chunks", AttrValue::Int(chunks)}}}),
          FromDoubles(dtype, shape, expected)));
    }
  }
  ExpectFails({.type = "ChunkCat",
               .inputs = {{"x0", Pattern(DataType::kFloat, {2, 3})},
                          {"x1", Pattern(DataType::kFloat, {3, 3})}},
               .attrs = {{"dim", AttrValue::Int(1)}, {"num_chunks", AttrValue::Int(2)}}},
              Code::kInvalidArgument, {"x1 [3,3]", "before dimension 1"});
}

OpCall Many(std::string type, const std::vector<Tensor>& pieces) {
  OpCall call{.type = std::move(type)};
  for (size_t i = 0; i < pieces.size(); ++i) {
    call.inputs.push_back({"x" + std::to_string(i), pieces[i]});
  }
  return call;
}

OpCall Concat(const std::vector<Tensor>& pieces, int64_t dim) {
  OpCall call = Many("ConcatV2", pieces);
  call.inputs.push_back({"concat_dim", Make<int64_t>(DataType::kInt64, {}, {dim})});
  call.attrs = {{"N", AttrValue::Int(static_cast<int64_t>(pieces.size()))}};
  return call;
}

OpCall Pack(const std::vector<Tensor>& pieces, int64_t axis) {
  OpCall call = Many("Pack", pieces);
  call.attrs = {{"axis", AttrValue::Int(axis)},
                {"N", AttrValue::Int(static_cast<int64_t>(pieces.size()))}};
  return call;
}

// Joins the pieces along `axis` element by element.
Tensor Joined(const std::vector<Tensor>& pieces, int axis) {
  Shape y = pieces[0].shape();
  y[axis] = 0;
  for (const Tensor& piece : pieces) y[axis] += piece.shape()[axis];
  std::vector<double> values;
  for (std::vector<int64_t> at : Positions(y)) {
    size_t p = 0;
    int64_t& along = at[static_cast<size_t>(axis)];
    for (; along >= pieces[p].shape()[axis]; ++p) along -= pieces[p].shape()[axis];
    values.push_back(ToDoubles(pieces[p])[Index(pieces[p].shape(), at)]);
  }
  return FromDoubles(pieces[0].dtype(), y, values);
}

TEST(Concat, JoinsAlongEveryAxisForEveryDtype) {
  for (const DataType dtype : AllDtypes()) {
    for (int axis = 0; axis < 3; ++axis) {
      std::vector<Tensor> pieces;
      for (const int64_t extent : {2, 1, 0, 4}) {
        Shape shape{2, 3, 2};
        shape[axis] = extent;
        pieces.push_back(Pattern(dtype, shape, static_cast<int>(extent)));
      }
      const Tensor expected = Joined(pieces, axis);
      EXPECT_TRUE(SameBytes(RunOne(Concat(pieces, axis)), expected));
      EXPECT_TRUE(SameBytes(RunOne(Concat(pieces, axis - 3)), expected));
    }
  }
}

TEST(Concat, SkipsLegacyEmptyVectors) {
  const Tensor matrix = Pattern(DataType::kFloat, {2, 2});
  const Tensor nothing = Pattern(DataType::kFloat, {0});
  const Tensor y = RunOne(Concat({nothing, matrix, nothing, matrix}, 1));
  EXPECT_TRUE(SameBytes(y, Joined({matrix, matrix}, 1)));
  EXPECT_EQ(RunOne(Concat({nothing, nothing}, 0)).shape(), (Shape{0}));
}

TEST(Concat, JoinsScalarsAsVectorsOfOneElement) {
  const Tensor a = Make<int64_t>(DataType::kInt64, {}, {7});
  const Tensor b = Make<int64_t>(DataType::kInt64, {2}, {8, 9});
  EXPECT_TRUE(SameBytes(RunOne(Concat({a, a}, 0)), MakeInts({7, 7})));
  EXPECT_TRUE(SameBytes(RunOne(Concat({b, a}, -1)), MakeInts({8, 9, 7})));
  ExpectFails(Concat({a, Pattern(DataType::kInt64, {1, 1})}, 0), Code::kInvalidArgument,
              {"x1", "[1,1]"});
}

// Sizes: int32 from a Shape that says so, int64 from constants.
TEST(Concat, JoinsIndexesOfBothWidthsAsTheWiderOnes) {
  const Tensor narrow = Make<int32_t>(DataType::kInt32, {2, 1}, {-1, 2});
  const Tensor wide = Make<int64_t>(DataType::kInt64, {2, 2}, {3, INT64_MAX, 5, INT64_MIN});
  const Tensor rows = Make<int64_t>(DataType::kInt64, {2, 3}, {-1, 3, INT64_MAX, 2, 5, INT64_MIN});
  EXPECT_TRUE(SameBytes(RunOne(Concat({narrow, wide}, 1)), rows));
  const Tensor one = Make<int32_t>(DataType::kInt32, {}, {-4});
  const Tensor two = Make<int64_t>(DataType::kInt64, {}, {6});
  EXPECT_TRUE(SameBytes(RunOne(Concat({one, two}, 0)), MakeInts({-4, 6})));
  EXPECT_TRUE(SameBytes(RunOne(Pack({two, one, two}, 0)), MakeInts({6, -4, 6})));
  EXPECT_EQ(RunOne(Pack({one, one}, 0)).dtype(), DataType::kInt32);
  ExpectFails(Pack({one, Make<int16_t>(DataType::kInt16, {}, {1})}, 0), Code::kInvalidArgument,
              {"int32", "int16"});
}

TEST(Concat, RefusesWhatDoesNotFit) {
  const Tensor a = Pattern(DataType::kFloat, {2, 3});
  ExpectFails(Concat({a, Pattern(DataType::kFloat, {3, 3})}, 1), Code::kInvalidArgument,
              {"x1", "[3,3]", "[2,3]"});
  ExpectFails(Concat({a, Pattern(DataType::kFloat, {2})}, 1), Code::kInvalidArgument,
              {"x1", "[2]"});
  ExpectFails(Concat({a, Pattern(DataType::kInt32, {2, 3})}, 1), Code::kInvalidArgument,
              {"float32", "int32"});
  ExpectFails(Concat({a}, 2), Code::kInvalidArgument, {"concat_dim", "axis 2"});
  ExpectFails(Concat({}, 0), Code::kCorrupt, {"x0"});
  OpCall miscounted = Concat({a, a}, 0);
  miscounted.attrs = {{"N", AttrValue::Int(3)}};
  ExpectFails(miscounted, Code::kCorrupt, {"\"N\" is 3", "2 tensors"});
}

TEST(Pack, StacksAlongEveryAxis) {
  for (const DataType dtype : AllDtypes()) {
    const std::vector<Tensor> pieces = {Pattern(dtype, {2, 3}, 1), Pattern(dtype, {2, 3}, 2),
                                        Pattern(dtype, {2, 3}, 5)};
    for (int axis = 0; axis < 3; ++axis) {
      Shape y{2, 3};
      y.mutable_dims().insert(y.mutable_dims().begin() + axis, 3);
      std::vector<double> values;
      for (std::vector<int64_t> at : Positions(y)) {
        const auto p = static_cast<size_t>(at[static_cast<size_t>(axis)]);
        at.erase(at.begin() + axis);
        values.push_back(ToDoubles(pieces[p])[Index({2, 3}, at)]);
      }
      const Tensor expected = FromDoubles(dtype, y, values);
      EXPECT_TRUE(SameBytes(RunOne(Pack(pieces, axis)), expected));
      EXPECT_TRUE(SameBytes(RunOne(Pack(pieces, axis - 3)), expected));
    }
  }
  const Tensor scalar = Pattern(DataType::kInt64, {});
  EXPECT_EQ(RunOne(Pack({scalar, scalar}, 0)).shape(), (Shape{2}));
}

TEST(Pack, RefusesWhatDoesNotFit) {
  const Tensor a = Pattern(DataType::kFloat, {2});
  ExpectFails(Pack({a, Pattern(DataType::kFloat, {1})}, 0), Code::kInvalidArgument,
              {"x1", "[1]", "[2]"});
  ExpectFails(Pack({a}, 2), Code::kInvalidArgument, {"axis 2", "rank 2"});
  OpCall miscounted = Pack({a}, 0);
  miscounted.attrs = {{"N", AttrValue::Int(2)}};
  ExpectFails(miscounted, Code::kCorrupt, {"\"N\" is 2"});
}

OpCall Unpack(Tensor x, int64_t axis, int64_t num) {
  return {.type = "Unpack",
          .inputs = {{"x", std::move(x)}},
          .attrs = {{"axis", AttrValue::Int(axis)}, {"num", AttrValue::Int(num)}},
          .outputs = static_cast<int>(num)};
}

TEST(Unpack, IsTheInverseOfPack) {
  for (const DataType dtype : AllDtypes()) {
    for (int axis = -3; axis < 3; ++axis) {
      const Tensor x = Pattern(dtype, {2, 3, 4});
      const int64_t num = x.shape()[axis < 0 ? axis + 3 : axis];
      const Result<std::vector<Tensor>> pieces = RunOp(Unpack(x, axis, num));
      ASSERT_TRUE(pieces.ok()) << pieces.status().ToString();
      EXPECT_TRUE(SameBytes(RunOne(Pack(*pieces, axis)), x));
    }
  }
}

TEST(Unpack, RefusesAnotherNumber) {
  ExpectFails(Unpack(Pattern(DataType::kFloat, {2, 3}), 0, 3), Code::kCorrupt,
              {"\"num\" is 3", "is 2"});
  ExpectFails(Unpack(Pattern(DataType::kFloat, {}), 0, 1), Code::kInvalidArgument,
              {"axis 0", "rank 0"});
}

OpCall SplitV(Tensor x, std::vector<int64_t> sizes, int64_t dim) {
  const auto num = static_cast<int64_t>(sizes.size());
  return {
      .type = "SplitV",
      .inputs = {{"x", std::move(x)},
                 {"size_splits", MakeInts(sizes)},
                 {"split_dim", Make<int32_t>(DataType::kInt32, {1}, {static_cast<int32_t>(dim)})}},
      .attrs = {{"num_split", AttrValue::Int(num)}},
      .outputs = static_cast<int>(num)};
}

TEST(Split, IsTheInverseOfConcat) {
  for (const DataType dtype : AllDtypes()) {
    for (int axis = 0; axis < 3; ++axis) {
      const Tensor x = Pattern(dtype, {6, 6, 6});
      for (const std::vector<int64_t>& sizes :
           {std::vector<int64_t>{1, 2, 3}, {0, 6}, {2, -1, 1}, {-1}}) {
        const Result<std::vector<Tensor>> pieces = RunOp(SplitV(x, sizes, axis - 3));
        ASSERT_TRUE(pieces.ok()) << pieces.status().ToString();
        EXPECT_TRUE(SameBytes(RunOne(Concat(*pieces, axis)), x));
      }
    }
  }
}

TEST(Split, CutsEqually) {
  const Tensor x = Pattern(DataType::kInt16, {2, 6});
  OpCall call{.type = "Split",
              .inputs = {{"split_dim", Make<int32_t>(DataType::kInt32, {}, {1})}, {"x", x}},
              .attrs = {{"num_split", AttrValue::Int(3)}},
              .outputs = 3};
  const Result<std::vector<Tensor>> pieces = RunOp(call);
  ASSERT_TRUE(pieces.ok()) << pieces.status().ToString();
  EXPECT_EQ((*pieces)[1].shape(), (Shape{2, 2}));
  EXPECT_TRUE(SameBytes(RunOne(Concat(*pieces, 1)), x));
  call.attrs = {{"num_split", AttrValue::Int(4)}};
  call.outputs = 4;
  ExpectFails(call, Code::kInvalidArgument, {"dimension of 6", "4 pieces"});
}

TEST(Split, RefusesSizesThatDoNotFit) {
  const Tensor x = Pattern(DataType::kFloat, {4});
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{1, 2}, {5}, {-1, -1}, {-2, 6}, {5, -1}, {INT64_MAX, INT64_MAX}}) {
    ExpectFails(SplitV(x, sizes, 0), Code::kInvalidArgument,
                {"dimension of 4", Shape(sizes).ToString()});
  }
  OpCall miscounted = SplitV(x, {2, 2}, 0);
  miscounted.outputs = 3;
  ExpectFails(miscounted, Code::kCorrupt, {"\"num_split\" is 2", "3 outputs"});
}

}  // namespace
}  // namespace npumesh
