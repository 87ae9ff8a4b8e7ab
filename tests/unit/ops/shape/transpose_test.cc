// Transpose, Permute, BroadcastTo, Expand, Tile, Triu, Tril.
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

TEST(Transpose, RefusesWhatIsNoPermutation) {
  const auto call = [](std::vector<int64_t> perm) {
    return OpCall{.type = "Transpose",
                  .inputs = {{"x", Pattern(DataType::kFloat, {2, 3})}, {"perm", MakeInts(perm)}}};
  };
  ExpectFails(call({0}), Code::kInvalidArgument, {"perm", "1 entries", "float32[2,3]"});
  ExpectFails(call({0, 0}), Code::kInvalidArgument, {"perm", "axis 0 twice"});
  ExpectFails(call({0, 2}), Code::kInvalidArgument, {"perm", "axis 2", "rank 2"});
  OpCall unknown = call({1, 0});
  unknown.inputs[1].known = Known::kNo;
  ExpectFails(unknown, Code::kUnsupported, {"perm"});
  OpCall packed{.type = "Permute",
                .inputs = {{"x", Tensor::Allocate({DataType::kInt4, {2, 2}})}},
                .attrs = {{"order", AttrValue::Ints({1, 0})}}};
  ExpectFails(packed, Code::kUnsupported, {"int4"});
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

TEST(Broadcast, RefusesWhatDoesNotFit) {
  const auto call = [](std::string type, Shape x, std::vector<int64_t> shape) {
    return OpCall{
        .type = std::move(type),
        .inputs = {{"x", Pattern(DataType::kFloat, std::move(x))}, {"shape", MakeInts(shape)}}};
  };
  ExpectFails(call("BroadcastTo", {2, 3}, {2, 1}), Code::kInvalidArgument,
              {"float32[2,3]", "[2,1]"});
  ExpectFails(call("BroadcastTo", {2, 3}, {3}), Code::kInvalidArgument, {"[2,3]"});
  ExpectFails(call("Expand", {2, 3}, {4, 3}), Code::kInvalidArgument, {"[4,3]"});
  ExpectFails(call("BroadcastTo", {1}, {-3}), Code::kInvalidArgument, {"[-3]"});
  ExpectFails(call("BroadcastTo", {1}, {INT64_MAX, INT64_MAX}), Code::kInvalidArgument,
              {"63 bits"});
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

TEST(Tile, RefusesNegativeAndHuge) {
  const auto call = [](std::vector<int64_t> multiples) {
    return OpCall{
        .type = "Tile",
        .inputs = {{"x", Pattern(DataType::kFloat, {2, 3})}, {"multiples", MakeInts(multiples)}}};
  };
  ExpectFails(call({1, -1}), Code::kInvalidArgument, {"[1,-1]", "[2,3]"});
  ExpectFails(call({INT64_MAX, 1}), Code::kInvalidArgument, {"[2,3]"});
  ExpectFails(call({INT64_MAX / 4, 4}), Code::kInvalidArgument, {"63 bits"});
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

TEST(Triangle, NeedsAMatrix) {
  ExpectFails({.type = "Triu", .inputs = {{"x", Pattern(DataType::kFloat, {3})}}},
              Code::kInvalidArgument, {"float32[3]", "rank 2"});
}

}  // namespace
}  // namespace npumesh
