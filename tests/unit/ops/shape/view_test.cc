// Reshape, Squeeze, Unsqueeze, ExpandDims: shapes only, the bytes stay.
#include "tests/unit/ops/shape/shape_values.h"

namespace npumesh {
namespace {

OpCall Reshape(Shape x, std::vector<int64_t> shape, int64_t axis = 0, int64_t num_axes = -1) {
  return {.type = "Reshape",
          .inputs = {{"x", Pattern(DataType::kFloat, std::move(x))}, {"shape", MakeInts(shape)}},
          .attrs = {{"axis", AttrValue::Int(axis)}, {"num_axes", AttrValue::Int(num_axes)}}};
}

TEST(Reshape, ComputesTheTarget) {
  const std::vector<std::pair<OpCall, Shape>> cases = {
      {Reshape({2, 6}, {3, 4}), {3, 4}},
      {Reshape({2, 6}, {-1}), {12}},
      {Reshape({2, 6}, {4, -1}), {4, 3}},
      {Reshape({2, 6}, {0, 3, 2}), {2, 3, 2}},
      {Reshape({2, 6}, {0, -1}), {2, 6}},
      {Reshape({1}, {}), {}},
      {Reshape({}, {1, 1}), {1, 1}},
      {Reshape({0, 4}, {0, 2, 2}), {0, 2, 2}},
      {Reshape({0, 4}, {2, 0}), {2, 0}},
      {Reshape({0, 4}, {-1, 4}), {0, 4}},
      {Reshape({2, 3, 4}, {6}, 0, 2), {6, 4}},
      {Reshape({2, 3, 4}, {12}, 1), {2, 12}},
      {Reshape({2, 3, 4}, {2, 2}, 2, 1), {2, 3, 2, 2}},
      {Reshape({2, 3, 4}, {1}, -1), {2, 3, 4, 1}},
      {Reshape({2, 3, 4}, {1}, 1, 0), {2, 1, 3, 4}},
      {Reshape({2, 3, 4}, {0, -1}, 1, 2), {2, 3, 4}},
  };
  for (const auto& [call, y] : cases) {
    const Tensor result = RunOne(call);
    EXPECT_EQ(result.shape(), y) << result.shape().ToString();
    EXPECT_EQ(ToDoubles(result), ToDoubles(call.inputs[0].value));
  }
}

TEST(Reshape, AllowzeroSaysWhatAZeroIs) {
  const auto reshaped = [](Shape x, std::vector<int64_t> shape, int64_t allow) {
    OpCall call = Reshape(std::move(x), std::move(shape));
    call.attrs.push_back({"allowzero", AttrValue::Int(allow)});
    return call;
  };
  EXPECT_EQ(RunOne(reshaped({3, 0}, {0, 0}, 0)).shape(), (Shape{3, 0}));
  EXPECT_EQ(RunOne(reshaped({3, 0}, {0, 0}, 1)).shape(), (Shape{0, 0}));
  EXPECT_EQ(RunOne(reshaped({3, 0}, {0, 0}, -1)).shape(), (Shape{0, 0}));
  EXPECT_EQ(RunOne(reshaped({2, 3}, {0, -1}, 0)).shape(), (Shape{2, 3}));
  ExpectFails(reshaped({2, 3}, {0, 6}, 1), Code::kInvalidArgument, {"[0,6]"});
  ExpectFails(reshaped({2, 3}, {6}, 2), Code::kInvalidArgument, {"allowzero is 2"});
}

TEST(Reshape, KeepsAnyDtype) {
  for (const DataType dtype : AllDtypes()) {
    const Tensor y =
        RunOne({.type = "Reshape",
                .inputs = {{"x", Pattern(dtype, {2, 3})}, {"shape", MakeInts({3, 2})}}});
    EXPECT_EQ(y.type(), (TensorType{dtype, {3, 2}}));
  }
}

TEST(Reshape, RefusesWhatDoesNotFit) {
  ExpectFails(Reshape({2, 3}, {4}), Code::kInvalidArgument, {"[2,3]", "6", "[4]"});
  ExpectFails(Reshape({2, 3}, {4, -1}), Code::kInvalidArgument, {"[4,-1]"});
  ExpectFails(Reshape({2, 3}, {-1, -1}), Code::kInvalidArgument, {"more than one -1"});
  ExpectFails(Reshape({2, 3}, {2, 3, 0}), Code::kInvalidArgument, {"position 2"});
  ExpectFails(Reshape({0, 3}, {0, -1}), Code::kInvalidArgument, {"[0,-1]"});
  ExpectFails(Reshape({2, 3}, {-2, 3}), Code::kInvalidArgument, {"-2"});
  ExpectFails(Reshape({2, 3}, {INT64_MAX, 4}), Code::kInvalidArgument, {"63 bits"});
  ExpectFails(Reshape({2, 3}, {6}, 3), Code::kInvalidArgument, {"axis 3"});
  ExpectFails(Reshape({2, 3}, {6}, 1, 2), Code::kInvalidArgument, {"num_axes 2"});
  OpCall floats = Reshape({2}, {2});
  floats.inputs[1].value = Pattern(DataType::kFloat, {1});
  ExpectFails(floats, Code::kInvalidArgument, {"shape", "float32"});
}

TEST(Squeeze, DropsOnes) {
  const auto squeezed = [](Shape x, std::vector<int64_t> axes) {
    return RunOne({.type = "Squeeze",
                   .inputs = {{"x", Pattern(DataType::kInt8, std::move(x))}},
                   .attrs = {{"axis", AttrValue::Ints(std::move(axes))}}})
        .shape();
  };
  EXPECT_EQ(squeezed({1, 2, 1}, {}), (Shape{2}));
  EXPECT_EQ(squeezed({1, 2, 1}, {0}), (Shape{2, 1}));
  EXPECT_EQ(squeezed({1, 2, 1}, {-1, 0}), (Shape{2}));
  EXPECT_EQ(squeezed({1, 1}, {}), Shape());
  EXPECT_EQ(squeezed({}, {}), Shape());
}

TEST(Squeeze, RefusesOtherDimensions) {
  const OpCall call{.type = "Squeeze",
                    .inputs = {{"x", Pattern(DataType::kInt8, {1, 2})}},
                    .attrs = {{"axis", AttrValue::Ints({1})}}};
  ExpectFails(call, Code::kInvalidArgument, {"dimension 1", "[1,2]"});
  OpCall outside = call;
  outside.attrs = {{"axis", AttrValue::Ints({2})}};
  ExpectFails(outside, Code::kInvalidArgument, {"axis 2", "rank 2"});
}

TEST(Unsqueeze, InsertsOnes) {
  const auto unsqueezed = [](Shape x, std::vector<int64_t> axes) {
    return RunOne({.type = "Unsqueeze",
                   .inputs = {{"x", Pattern(DataType::kInt8, std::move(x))}},
                   .attrs = {{"axes", AttrValue::Ints(std::move(axes))}}})
        .shape();
  };
  EXPECT_EQ(unsqueezed({2, 3}, {0}), (Shape{1, 2, 3}));
  EXPECT_EQ(unsqueezed({2, 3}, {-1}), (Shape{2, 3, 1}));
  EXPECT_EQ(unsqueezed({2, 3}, {3, 0}), (Shape{1, 2, 3, 1}));
  EXPECT_EQ(unsqueezed({}, {0}), (Shape{1}));
  EXPECT_EQ(unsqueezed({2}, {}), (Shape{2}));
}

TEST(Unsqueeze, RefusesRepeatedAndDistantAxes) {
  OpCall call{.type = "Unsqueeze",
              .inputs = {{"x", Pattern(DataType::kInt8, {2})}},
              .attrs = {{"axes", AttrValue::Ints({0, -3})}}};
  ExpectFails(call, Code::kInvalidArgument, {"axis 0 twice"});
  call.attrs = {{"axes", AttrValue::Ints({3})}};
  ExpectFails(call, Code::kInvalidArgument, {"axis 3", "rank 2"});
}

TEST(ExpandDims, InsertsOneOne) {
  for (const Shape& axis_shape : {Shape{}, Shape{1}}) {
    const Tensor y =
        RunOne({.type = "ExpandDims",
                .inputs = {{"x", Pattern(DataType::kInt8, {2, 3})},
                           {"axis", Make<int32_t>(DataType::kInt32, axis_shape, {-1})}}});
    EXPECT_EQ(y.shape(), (Shape{2, 3, 1}));
  }
  ExpectFails({.type = "ExpandDims",
               .inputs = {{"x", Pattern(DataType::kInt8, {2, 3})}, {"axis", MakeInts({0, 1})}}},
              Code::kInvalidArgument, {"axis", "2 elements"});
}

}  // namespace
}  // namespace npumesh
