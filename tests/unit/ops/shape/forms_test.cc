// Forms with attributes in place of inputs, StridedSlice, and the views with other names.
#include "tests/unit/ops/shape/shape_values.h"

namespace npumesh {
namespace {

using Ints = std::vector<int64_t>;
using Attrs = std::vector<std::pair<std::string, AttrValue>>;

AttrValue List(const Ints& values) {
  return AttrValue::Ints(values);
}

// A form gives what the operator gives for the same numbers as inputs.
struct FormCase {
  std::string form;
  std::string same_as;
  std::vector<std::pair<std::string, Ints>> numbers;
  Attrs attrs = {};
  std::vector<std::string> tensors = {"x"};
  std::vector<std::string> scalars = {};  // numbers that are an integer, not a list, as attributes
  int outputs = 0;
};

const FormCase kForms[] = {
    {"TransposeD", "Transpose", {{"perm", {2, 0, 1}}}},
    {"SliceD", "Slice", {{"offsets", {0, 1, 0}}, {"size", {2, 2, -1}}}},
    {"TileD", "Tile", {{"multiples", {1, 2, 3}}}},
    {"BroadcastToD", "BroadcastTo", {{"shape", {5, 2, 3, 4}}}},
    {"ConcatD", "ConcatV2", {{"concat_dim", {1}}}, {}, {"x0", "x1"}, {"concat_dim"}},
    {"SplitD",
     "Split",
     {{"split_dim", {2}}},
     {{"num_split", AttrValue::Int(2)}},
     {"x"},
     {"split_dim"},
     2},
    {"SplitVD",
     "SplitV",
     {{"size_splits", {1, -1}}, {"split_dim", {1}}},
     {{"num_split", AttrValue::Int(2)}},
     {"x"},
     {"split_dim"},
     2},
};

TEST(AttrForms, GiveTheSame) {
  const Tensor x = Pattern(DataType::kFloat16, {2, 3, 4});
  for (const FormCase& test : kForms) {
    OpCall by_input{
        .type = test.same_as, .inputs = {}, .attrs = test.attrs, .outputs = test.outputs};
    OpCall by_attr{.type = test.form, .inputs = {}, .attrs = test.attrs, .outputs = test.outputs};
    for (const std::string& port : test.tensors) {
      by_input.inputs.push_back({port, x});
      by_attr.inputs.push_back({port, x});
    }
    for (const auto& [name, values] : test.numbers) {
      by_input.inputs.push_back({name, MakeInts(values)});
      const bool scalar =
          std::find(test.scalars.begin(), test.scalars.end(), name) != test.scalars.end();
      by_attr.attrs.emplace_back(name, scalar ? AttrValue::Int(values[0]) : List(values));
    }
    const Result<std::vector<Tensor>> expected = RunOp(by_input);
    const Result<std::vector<Tensor>> actual = RunOp(by_attr);
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    ASSERT_TRUE(actual.ok()) << actual.status().ToString();
    ASSERT_EQ(actual->size(), expected->size());
    for (size_t i = 0; i < actual->size(); ++i) {
      EXPECT_TRUE(SameBytes((*actual)[i], (*expected)[i])) << test.form;
    }
  }
}

struct ViewNameCase {
  std::string type;
  Shape x;
  Attrs attrs;
  std::vector<OpInput> inputs;
  Shape y;
};

TEST(Views, WithOtherNames) {
  const ViewNameCase cases[] = {
      {"Flatten", {2, 3, 4}, {}, {}, {2, 12}},
      {"Flatten", {2, 3, 4}, {{"axis", AttrValue::Int(0)}}, {}, {1, 24}},
      {"Flatten", {2, 3, 4}, {{"axis", AttrValue::Int(3)}}, {}, {24, 1}},
      {"Flatten", {2, 3, 4}, {{"axis", AttrValue::Int(-1)}}, {}, {6, 4}},
      {"FlattenV2", {2, 3, 4}, {}, {}, {2, 12}},
      {"FlattenV2",
       {2, 3, 4, 5},
       {{"axis", AttrValue::Int(1)}, {"end_axis", AttrValue::Int(2)}},
       {},
       {2, 12, 5}},
      {"FlattenV2", {}, {{"axis", AttrValue::Int(0)}}, {}, {1}},
      {"SqueezeV2", {1, 3, 1}, {{"axis", List({2})}}, {}, {1, 3}},
      {"SqueezeV3", {1, 3, 1}, {}, {}, {3}},
      {"SqueezeV3", {1, 3, 1}, {}, {{"axes", MakeInts({0})}}, {3, 1}},
      {"UnsqueezeV2", {3}, {{"axis", List({0, 2})}}, {}, {1, 3, 1}},
      {"UnsqueezeV3", {3}, {}, {{"axes", MakeInts({-1})}}, {3, 1}},
  };
  for (const ViewNameCase& test : cases) {
    const Tensor x = Pattern(DataType::kFloat, test.x);
    OpCall call{.type = test.type, .inputs = {{"x", x}}, .attrs = test.attrs};
    call.inputs.insert(call.inputs.end(), test.inputs.begin(), test.inputs.end());
    const Tensor y = RunOne(call);
    EXPECT_EQ(y.shape(), test.y) << test.type;
    EXPECT_EQ(ToDoubles(y), ToDoubles(x)) << test.type;
  }
}

}  // namespace
}  // namespace npumesh
