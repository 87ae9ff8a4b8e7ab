// The file of `npumesh atc --singleop`.
#include "launch/atc/single_operators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kGood[] = R"([
 {"op": "Add", "compile_flag": 0,
  "input_desc": [{"format": "ND", "shape": [2, -1], "shape_range": [[1, -1]], "type": "float"},
                 {"format": "RESERVED", "shape": [], "type": "UNDEFINED"},
                 {"format": "NCHW", "origin_format": "ND", "shape": [], "type": "HALF", "name": "x0",
                  "dynamic_input": "x"}],
  "output_desc": [{"format": "fractal_nz", "shape": [1, 1, 16, 16], "origin_shape": [2, 3],
                   "type": "bfloat16"}],
  "attr": [{"name": "b", "type": "bool", "value": true}, {"name": "i", "type": "int", "value": -4},
           {"name": "f", "type": "float", "value": 1}, {"name": "s", "type": "string", "value": "x"},
           {"name": "t", "type": "data_type", "value": "DT_FLOAT16"},
           {"name": "u", "type": "data_type", "value": 3},
           {"name": "lb", "type": "list_bool", "value": [false, true]},
           {"name": "li", "type": "list_int", "value": [1, 2]},
           {"name": "lf", "type": "list_float", "value": [0.5, 1]},
           {"name": "ls", "type": "list_string", "value": ["a"]},
           {"name": "ll", "type": "list_list_int", "value": [[1], []]}]},
 {"op": "Neg", "name": "own-name_1",
  "input_desc": [{"format": "ND", "shape": [2], "type": "int32", "is_const": true,
                  "const_value": [7, -7]}],
  "output_desc": [{"format": "ND", "shape": [2], "type": "int32"}]},
 {"op": "Neg", "name": "../not a name", "input_desc": [], "output_desc": []}
])";

TEST(SingleOperatorsTest, ReadsWhatTheVendorWrites) {
  const Result<std::vector<NamedOperator>> read = ParseSingleOperators(kGood, "ops.json");
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  ASSERT_EQ(read->size(), 3u);
  const NamedOperator& add = (*read)[0];
  EXPECT_EQ(add.file, "0_Add_0_2_2_-1_28_40_1_0_27_29_1_1_16_16.om");
  EXPECT_EQ(add.op.type, "Add");
  ASSERT_EQ(add.op.inputs.size(), 3u);
  EXPECT_EQ(add.op.inputs[0].type, (TensorType{DataType::kFloat, {2, -1}}));
  EXPECT_TRUE(add.op.inputs[1].absent());
  EXPECT_EQ(add.op.inputs[2].type, (TensorType{DataType::kFloat16, Shape()}));
  EXPECT_EQ(add.op.inputs[2].layout, "NCHW");
  EXPECT_EQ(add.op.inputs[2].origin_layout, "ND");
  EXPECT_EQ(add.op.inputs[2].list, "x");
  EXPECT_EQ(add.op.outputs[0].layout, "FRACTAL_NZ");
  EXPECT_EQ(add.op.outputs[0].origin_shape, Shape({2, 3}));
  const AttrMap& attrs = add.op.attrs;
  EXPECT_EQ(*attrs.at("b").get<bool>(), true);
  EXPECT_EQ(*attrs.at("i").get<int64_t>(), -4);
  EXPECT_EQ(*attrs.at("f").get<float>(), 1.0f);
  EXPECT_EQ(*attrs.at("s").get<std::string>(), "x");
  EXPECT_EQ(attrs.at("t").get<DataTypeAttr>()->number, 1);
  EXPECT_EQ(attrs.at("u").get<DataTypeAttr>()->number, 3);
  EXPECT_THAT(attrs.at("lb").get<ListAttr>()->b, ElementsAre(false, true));
  EXPECT_THAT(attrs.at("li").get<ListAttr>()->i, ElementsAre(1, 2));
  EXPECT_THAT(attrs.at("lf").get<ListAttr>()->f, ElementsAre(0.5f, 1.0f));
  EXPECT_THAT(attrs.at("ls").get<ListAttr>()->s, ElementsAre("a"));
  EXPECT_EQ(attrs.at("ll").get<ListListInt>()->values,
            (std::vector<std::vector<int64_t>>{{1}, {}}));
  EXPECT_EQ((*read)[1].file, "own-name_1.om");
  EXPECT_THAT((*read)[1].op.inputs[0].value.as<int32_t>(), ElementsAre(7, -7));
  EXPECT_EQ((*read)[2].file, "2_Neg.om");
}

TEST(SingleOperatorsTest, NamesOfFilesAreCut) {
  std::string dims = "1";
  for (int i = 0; i < 100; ++i) dims += ",1";
  const Result<std::vector<NamedOperator>> read = ParseSingleOperators(
      R"([{"op": "Neg", "input_desc": [{"format": "ND", "type": "int8", "shape": [)" + dims +
          "]}]}]",
      "ops.json");
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ((*read)[0].file.size(), 128u + 3);
}

TEST(SingleOperatorsTest, WhatIsWrongIsNamedWithTheVendorsCode) {
  const auto tensor = [](std::string_view members) {
    return fmt::format(R"([{{"op": "Neg", "input_desc": [{{"format": "ND", "shape": [2], {}}}]}}])",
                       members);
  };
  const auto attr = [](std::string_view members) {
    return fmt::format(R"([{{"op": "Neg", "attr": [{{{}}}]}}])", members);
  };
  const std::pair<std::string, std::string> cases[] = {
      {"[", "E10025 --singleop has the file ops.json, which is no JSON"},
      {"{}", "E10025 --singleop has the file ops.json, which is no list of operators"},
      {"[]", "no list of operators"},
      {"[7]", "E10026 --singleop has entry 0 without an \"op\""},
      {R"([{"op": ""}])", "E10026"},
      {R"([{"op": 7}])", "E10026"},
      {R"([{"op": "Neg", "input_desc": 7}])", "E10027 --singleop has \"input_desc\" of Op Neg"},
      {R"([{"op": "Neg", "input_desc": [7]}])", "\"desc\" of input tensor 0 of Op Neg"},
      {tensor(R"("type": "float17")"), "E10027 --singleop has a wrong \"type\" of input tensor 0"},
      {tensor(R"("type": 1)"), "\"type\""},
      {tensor(R"("name": "x")"), "\"type\""},
      {tensor(R"("type": "int8", "format": "NCWH")"), "\"format\""},
      {tensor(R"("type": "int8", "origin_format": "NCWH")"), "\"origin_format\""},
      {tensor(R"("type": "int8", "shape": [-3])"), "\"shape\""},
      {tensor(R"("type": "int8", "shape": [1.5])"), "\"shape\""},
      {tensor(R"("type": "int8", "shape": [9223372036854775807, 4])"), "\"shape\""},
      {tensor(R"("type": "int8", "origin_shape": 7)"), "\"origin_shape\""},
      {tensor(R"("type": "int8", "dynamic_input": 7)"), "\"dynamic_input\""},
      {tensor(R"("type": "int8", "is_const": 1)"), "\"is_const\""},
      {tensor(R"("type": "int4", "is_const": true)"), "\"is_const\""},
      {tensor(R"("type": "int8", "is_const": true)"), "\"const_value\""},
      {tensor(R"("type": "int8", "is_const": true, "const_value": [1])"), "a list of 2 numbers"},
      {tensor(R"("type": "int8", "is_const": true, "const_value": [1, "x"])"), "\"const_value\""},
      {R"([{"op": "Neg", "attr": 7}])", "E10029"},
      {R"([{"op": "Neg", "attr": [7]}])", "E10029 --singleop has an attribute of Op Neg without"},
      {attr(R"("type": "int", "value": 1)"), "E10029"},
      {attr(R"("name": "a", "type": "int")"),
       "E10030 --singleop has the attribute \"a\" of Op Neg"},
      {attr(R"("name": "a", "type": "int", "value": 1.5)"), "E10030"},
      {attr(R"("name": "a", "type": "integer", "value": 1)"), "E10030"},
      {attr(R"("name": "a", "type": "list_int", "value": [1, "x"])"), "E10030"},
      {attr(R"("name": "a", "type": "list_list_int", "value": [1])"), "E10030"},
      {attr(R"("name": "a", "type": "data_type", "value": "DT_NONE")"), "E10030"},
      {R"([{"op": "A", "name": "x"}, {"op": "B", "name": "x"}])", "two operators are called x.om"}};
  for (const auto& [text, expected] : cases) {
    const Result<std::vector<NamedOperator>> read = ParseSingleOperators(text, "ops.json");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.status().code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(read.status().message(), HasSubstr(expected)) << text;
  }
  const Result<std::vector<NamedOperator>> absent = ReadSingleOperators("/no/such/ops.json");
  ASSERT_FALSE(absent.ok());
  EXPECT_THAT(
      absent.status().message(),
      HasSubstr("E10024 --singleop has a file without content: cannot open /no/such/ops.json"));
}

// Cut at each byte, and each byte another one: an error or a list.
TEST(SingleOperatorsTest, DamagedFilesEndWithAnError) {
  const std::string good = kGood;
  for (size_t i = 0; i + 2 < good.size(); ++i) {
    EXPECT_FALSE(ParseSingleOperators(good.substr(0, i), "ops.json").ok()) << i;
    for (const char other : {'"', '[', '9', '\0'}) {
      std::string damaged = good;
      damaged[i] = other;
      const Result<std::vector<NamedOperator>> read = ParseSingleOperators(damaged, "ops.json");
      EXPECT_TRUE(read.ok() || !read.status().message().empty());
    }
  }
}

}  // namespace
}  // namespace npumesh
