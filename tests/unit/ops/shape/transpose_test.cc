// Transpose, Permute, BroadcastTo, Expand, Tile, Triu, Tril.
// ReverseV2, Roll, RepeatInterleave, DepthToSpace, SpaceToDepth.
#include "tests/unit/ops/shape/shape_values.h"

namespace npumesh {
namespace {

struct PermCase {
  Shape x;
  std::vector<int64_t> perm;
};

TEST(Transpose, MovesEveryElementOfEveryDtype) {
  const std::vector<PermCase> cases = {
      {{2, 3}, {1, 0}},
      {{2, 3}, {0, 1}},
      {{2, 3, 4}, {2, 0, 1}},
      {{2, 3, 4}, {0, 2, 1}},
      {{2, 3, 4}, {1, 0, 2}},
      {{1, 4, 1, 5}, {3, 0, 2, 1}},
      {{}, {}},
      {{5}, {0}},
      {{0, 3}, {1, 0}},
      {{40, 33}, {-1, 0}},
      {{2, 3, 2, 3}, {0, 2, 1, 3}},
  };
  for (const PermCase& c : cases) {
    for (const DataType dtype : AllDtypes()) {
      const Tensor x = Pattern(dtype, c.x);
      Shape y;
      for (const int64_t axis : c.perm)
        y.mutable_dims().push_back(c.x[axis < 0 ? c.x.rank() - 1 : static_cast<int>(axis)]);
      const Tensor expected = Rearranged(x, y, [&](const std::vector<int64_t>& at) {
        std::vector<int64_t> from(at.size());
        for (size_t i = 0; i < at.size(); ++i) {
          from[static_cast<size_t>(c.perm[i] < 0 ? c.x.rank() - 1 : c.perm[i])] = at[i];
        }
        return from;
      });
      SCOPED_TRACE(c.x.ToString() + " " + std::string(Name(dtype)));
      EXPECT_TRUE(
          SameBytes(RunOne({.type = "Transpose", .inputs = {{"x", x}, {"perm", MakeInts(c.perm)}}}),
                    expected));
      EXPECT_TRUE(SameBytes(RunOne({.type = "Permute",
                                    .inputs = {{"x", x}},
                                    .attrs = {{"order", AttrValue::Ints(c.perm)}}}),
                            expected));
    }
  }
}

// ---- BroadcastTo, Expand ----

struct BroadcastCase {
  std::string type;
  Shape x;
  std::vector<int64_t> shape;
  Shape y;
};

TEST(Broadcast, RepeatsElements) {
  const std::vector<BroadcastCase> cases = {
      {"BroadcastTo", {3}, {2, 3}, {2, 3}},
      {"BroadcastTo", {2, 1}, {2, 3}, {2, 3}},
      {"BroadcastTo", {}, {2, 2}, {2, 2}},
      {"BroadcastTo", {2, 1, 3}, {-1, 4, -1}, {2, 4, 3}},
      {"BroadcastTo", {3}, {-1, -1}, {1, 3}},
      {"BroadcastTo", {1}, {0}, {0}},
      {"BroadcastTo", {0, 1}, {0, 5}, {0, 5}},
      {"BroadcastTo", {1, 3, 1, 2}, {2, 3, 4, 2}, {2, 3, 4, 2}},
      {"Expand", {2, 3}, {1, 3}, {2, 3}},
      {"Expand", {2, 3}, {1}, {2, 3}},
      {"Expand", {3, 1}, {2, 1, 6}, {2, 3, 6}},
      {"Expand", {3, 1}, {2, -1, 6}, {2, 3, 6}},
  };
  for (const BroadcastCase& c : cases) {
    for (const DataType dtype : AllDtypes()) {
      SCOPED_TRACE(c.type + " " + c.x.ToString() + " " + Shape(c.shape).ToString());
      const Tensor x = Pattern(dtype, c.x);
      const Tensor expected = Rearranged(x, c.y, [&](std::vector<int64_t> at) {
        at.erase(at.begin(), at.end() - c.x.rank());
        for (size_t i = 0; i < at.size(); ++i) at[i] = c.x.dims()[i] == 1 ? 0 : at[i];
        return at;
      });
      EXPECT_TRUE(SameBytes(
          RunOne({.type = c.type, .inputs = {{"x", x}, {"shape", MakeInts(c.shape)}}}), expected));
    }
  }
}

// ---- Tile ----

struct TileCase {
  Shape x;
  std::vector<int64_t> multiples;
  Shape y;
};

TEST(Tile, RepeatsDimensions) {
  const std::vector<TileCase> cases = {
      {{2, 3}, {2, 1}, {4, 3}}, {{2, 3}, {1, 2}, {2, 6}},
      {{2, 3}, {2, 3}, {4, 9}}, {{2}, {3, 2}, {3, 4}},
      {{2, 3}, {2}, {2, 6}},    {{}, {4}, {4}},
      {{2, 3}, {0, 2}, {0, 6}}, {{2, 2, 2}, {2, 1, 2}, {4, 2, 4}},
  };
  for (const TileCase& c : cases) {
    for (const DataType dtype : AllDtypes()) {
      SCOPED_TRACE(c.x.ToString() + " " + Shape(c.multiples).ToString());
      const Tensor x = Pattern(dtype, c.x);
      const Tensor expected = Rearranged(x, c.y, [&](std::vector<int64_t> at) {
        at.erase(at.begin(), at.end() - c.x.rank());
        for (size_t i = 0; i < at.size(); ++i) at[i] %= c.x.dims()[i];
        return at;
      });
      const OpCall call{.type = "Tile", .inputs = {{"x", x}, {"multiples", MakeInts(c.multiples)}}};
      EXPECT_TRUE(SameBytes(RunOne(call), expected));
    }
  }
}

// ---- Triu, Tril ----

TEST(Triangle, KeepsOneSide) {
  for (const Shape& shape : {Shape{3, 3}, Shape{2, 3, 5}, Shape{4, 2}, Shape{0, 2}, Shape{2, 0}}) {
    for (const DataType dtype : AllDtypes()) {
      for (const int64_t diagonal : {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{2}, int64_t{-9},
                                     int64_t{9}, INT64_MAX, INT64_MIN}) {
        for (const bool upper : {true, false}) {
          const Tensor x = Pattern(dtype, shape);
          std::vector<double> values = ToDoubles(x);
          size_t i = 0;
          for (const std::vector<int64_t>& at : Positions(shape)) {
            const int64_t distance = at.back() - at[at.size() - 2];
            if (upper ? distance < diagonal : distance > diagonal) values[i] = 0;
            ++i;
          }
          const Tensor y = RunOne({.type = upper ? "Triu" : "Tril",
                                   .inputs = {{"x", x}},
                                   .attrs = {{"diagonal", AttrValue::Int(diagonal)}}});
          EXPECT_TRUE(SameBytes(y, FromDoubles(dtype, shape, values)))
              << shape.ToString() << " " << upper << " " << diagonal;
        }
      }
    }
  }
}

OpCall Blocks(const std::string& type, const Tensor& x, int64_t block, const std::string& format,
              const std::string& mode = "") {
  OpCall call{
      .type = type,
      .inputs = {{"x", x}},
      .attrs = {{"block_size", AttrValue::Int(block)}, {"data_format", AttrValue::String(format)}}};
  if (!mode.empty()) call.attrs.emplace_back("mode", AttrValue::String(mode));
  return call;
}

// The definition of ONNX, pixel by pixel.
TEST(DepthToSpace, SpreadsTheDepth) {
  const int64_t block = 2, channels = 3;
  const Tensor x = Pattern(DataType::kFloat, {2, channels * block * block, 2, 3});
  const Tensor last = Pattern(DataType::kFloat, {2, 2, 3, channels * block * block});
  for (const std::string mode : {"DCR", "CRD"}) {
    const auto depth = [&](int64_t row, int64_t column, int64_t channel) {
      const int64_t place = row * block + column;
      return mode == "DCR" ? place * channels + channel : channel * block * block + place;
    };
    const Tensor first = Rearranged(x, {2, channels, 4, 6}, [&](const std::vector<int64_t>& at) {
      return std::vector<int64_t>{at[0], depth(at[2] % block, at[3] % block, at[1]), at[2] / block,
                                  at[3] / block};
    });
    EXPECT_TRUE(SameBytes(RunOne(Blocks("DepthToSpace", x, block, "NCHW", mode)), first)) << mode;
    const Tensor behind =
        Rearranged(last, {2, 4, 6, channels}, [&](const std::vector<int64_t>& at) {
          return std::vector<int64_t>{at[0], at[1] / block, at[2] / block,
                                      depth(at[1] % block, at[2] % block, at[3])};
        });
    EXPECT_TRUE(SameBytes(RunOne(Blocks("DepthToSpace", last, block, "NHWC", mode)), behind))
        << mode;
    if (mode == "DCR") {
      EXPECT_TRUE(SameBytes(RunOne(Blocks("SpaceToDepth", first, block, "NCHW")), x));
      EXPECT_TRUE(SameBytes(RunOne(Blocks("SpaceToDepth", behind, block, "NHWC")), last));
    }
  }
}

}  // namespace
}  // namespace npumesh
