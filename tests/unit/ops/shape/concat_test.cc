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

}  // namespace
}  // namespace npumesh
