#include "graph/static_kernel/record/op_record.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/ops/core/signature.h"
#include "runtime/base/float16.h"
#include "runtime/base/text/foreign_json.h"

namespace npumesh {
namespace {

struct RecordedInput {
  std::string port;
  TensorType type;
  const Tensor* value = nullptr;
};

// One call of an operator that only has a schema; records need no more.
struct RecordedCall {
  std::string signature;
  std::vector<RecordedInput> inputs = {};
  std::vector<TensorType> outputs = {};
  AttrMap attrs = {};
  std::vector<std::string_view> value_inputs = {};
  std::string layout = "ND";
  AttrMap desc_attrs = {};
};

Node NodeOf(const RecordedCall& call, const Operator& op) {
  Node node;
  node.id = 0;
  node.name = "node_under_test";
  node.type = op.schema.type;
  node.attrs = call.attrs;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    node.inputs.push_back(Value{1, static_cast<int>(i)});
    TensorDesc desc;
    desc.name = call.inputs[i].port;
    desc.layout = call.layout;
    desc.attrs = call.desc_attrs;
    node.input_descs.push_back(std::move(desc));
  }
  node.output_descs.resize(call.outputs.size());
  return node;
}

OpRecord Record(const RecordedCall& call) {
  Operator op;
  op.schema = Signature(call.signature);
  op.value_inputs = call.value_inputs;
  const Node node = NodeOf(call, op);
  Result<OpContext> context = OpContext::Bind(node, op.schema);
  EXPECT_TRUE(context.ok()) << context.status().message();
  if (!context.ok()) return {};
  for (int slot = 0; slot < context->slots(); ++slot) {
    if (!context->has(slot)) continue;
    const RecordedInput& input = call.inputs[static_cast<size_t>(context->input_index(slot))];
    context->set_in(slot, input.type);
    context->set_value(slot, input.value);
  }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    context->set_out(static_cast<int>(i), call.outputs[i]);
  }
  context->set_threads(3);
  return RecordOf(op, *context);
}

nlohmann::json JsonOf(const RecordedCall& call) {
  return ParseForeignJson(Record(call).json);
}

const TensorType kRow{DataType::kFloat, {1, 2048}};

RecordedCall MatMulV2() {
  return {.signature =
              "MatMulV2(x1, x2, bias?, offset_w?; transpose_x1=false, "
              "transpose_x2=false, offset_x=0) -> y",
          .inputs = {{"x1", kRow}, {"x2", {DataType::kFloat, {2048, 4}}}},
          .outputs = {{DataType::kFloat, {1, 4}}},
          .attrs = {{"transpose_x2", AttrValue::Int(1)}}};
}

TEST(OpRecord, IsWrittenLikeThoseOfTheVendor) {
  const OpRecord record = Record(MatMulV2());
  EXPECT_EQ(record.stem, "MatMulV2_float_ND_1_2048");
  EXPECT_TRUE(record.listed);
  EXPECT_EQ(record.json, R"({
  "attrs": [
    {
      "dtype": "bool",
      "index": 0,
      "name": "transpose_x1",
      "value": false
    },
    {
      "dtype": "bool",
      "index": 1,
      "name": "transpose_x2",
      "value": true
    },
    {
      "dtype": "int",
      "index": 2,
      "name": "offset_x",
      "value": 0
    }
  ],
  "deterministic": "true",
  "deterministic_level": 1,
  "impl_mode": "high_precision",
  "inputs": [
    {
      "dtype": "float",
      "format": "ND",
      "index": 0,
      "is_view": false,
      "name": "x1",
      "origin_format": "ND",
      "origin_shape": [
        1,
        2048
      ],
      "param_type": "required",
      "shape": [
        1,
        2048
      ],
      "value_depend": false
    },
    {
      "dtype": "float",
      "format": "ND",
      "index": 1,
      "is_view": false,
      "name": "x2",
      "origin_format": "ND",
      "origin_shape": [
        2048,
        4
      ],
      "param_type": "required",
      "shape": [
        2048,
        4
      ],
      "value_depend": false
    },
    null,
    null
  ],
  "op_type": "MatMulV2",
  "outputs": [
    {
      "dtype": "float",
      "format": "ND",
      "index": 0,
      "is_view": false,
      "name": "y",
      "origin_format": "ND",
      "origin_shape": [
        1,
        4
      ],
      "param_type": "required",
      "shape": [
        1,
        4
      ],
      "value_depend": false
    }
  ],
  "platform_info": {
    "cube_core_cnt": 3,
    "vector_core_cnt": 3
  },
  "tune_mode": "all"
}
)");
}

TEST(OpRecord, AnOptionalInputKeepsItsPlace) {
  RecordedCall call = MatMulV2();
  call.inputs.push_back({"offset_w", {DataType::kInt8, {4}}});
  const nlohmann::json inputs = JsonOf(call)["inputs"];
  ASSERT_EQ(inputs.size(), 4u);
  EXPECT_TRUE(inputs[2].is_null());
  EXPECT_EQ(inputs[3]["name"], "offset_w");
  EXPECT_EQ(inputs[3]["param_type"], "optional");
  EXPECT_EQ(inputs[3]["index"], 3);
  EXPECT_EQ(inputs[3]["dtype"], "int8");
}

TEST(OpRecord, ADynamicInputIsAnArray) {
  const RecordedCall call{
      .signature = "ConcatD(x...; N=1, concat_dim:int) -> y",
      .inputs = {{"x0", {DataType::kBfloat16, {2, 3}}}, {"x1", {DataType::kBfloat16, {2, 5}}}},
      .outputs = {{DataType::kBfloat16, {2, 8}}},
      .attrs = {{"concat_dim", AttrValue::Int(-1)}}};
  EXPECT_EQ(Record(call).stem, "ConcatD_bfloat16_ND_2_3");
  EXPECT_FALSE(Record(call).listed);
  const nlohmann::json json = JsonOf(call);
  ASSERT_EQ(json["inputs"].size(), 1u);
  ASSERT_EQ(json["inputs"][0].size(), 2u);
  EXPECT_EQ(json["inputs"][0][1].dump(),
            R"({"dtype":"bfloat16","format":"ND","index":0,"is_view":false,"name":"x",)"
            R"("origin_format":"ND","origin_shape":[2,5],"param_type":"dynamic","shape":[2,5],)"
            R"("value_depend":false})");
  EXPECT_EQ(json["attrs"].dump(), R"([{"dtype":"int","index":0,"name":"N","value":1},)"
                                  R"({"dtype":"int","index":1,"name":"concat_dim","value":-1}])");
}

TEST(OpRecord, AnEmptyDynamicInputIsAnEmptyArray) {
  const RecordedCall call{
      .signature = "Gather(x..., y) -> z", .inputs = {{"y", kRow}}, .outputs = {kRow}};
  EXPECT_EQ(JsonOf(call)["inputs"][0], nlohmann::json::array());
  // Slot 0 is of the second input, which says nothing about the first.
  EXPECT_EQ(Record(call).stem, "Gather");
}

TEST(OpRecord, ADynamicOutputIsAnArrayBetweenItsNeighbours) {
  const TensorType half{DataType::kFloat16, {4}};
  const RecordedCall call{.signature = "Parts(x) -> first, y..., last",
                          .inputs = {{"x", kRow}},
                          .outputs = {kRow, half, half, half, kRow}};
  const nlohmann::json outputs = JsonOf(call)["outputs"];
  ASSERT_EQ(outputs.size(), 3u);
  EXPECT_EQ(outputs[0]["name"], "first");
  ASSERT_EQ(outputs[1].size(), 3u);
  EXPECT_EQ(outputs[1][2]["dtype"], "float16");
  EXPECT_EQ(outputs[1][2]["index"], 1);
  EXPECT_EQ(outputs[2]["name"], "last");
  EXPECT_EQ(outputs[2]["shape"].dump(), "[1,2048]");
}

TEST(OpRecord, AnOutputThatTheNodeDoesNotHaveIsNull) {
  const RecordedCall call{
      .signature = "Norm(x) -> y, mean, rstd", .inputs = {{"x", kRow}}, .outputs = {kRow}};
  const nlohmann::json outputs = JsonOf(call)["outputs"];
  ASSERT_EQ(outputs.size(), 3u);
  EXPECT_TRUE(outputs[1].is_null());
  EXPECT_TRUE(outputs[2].is_null());
}

RecordedCall Reshape(const Tensor* shape) {
  return {.signature = "Reshape(x, shape; axis=0, num_axes=-1, allowzero=-1) -> y",
          .inputs = {{"x", kRow}, {"shape", {DataType::kInt64, {2}}, shape}},
          .outputs = {{DataType::kFloat, {2, 1024}}},
          .value_inputs = {"shape"}};
}

TEST(OpRecord, AnInputWhoseValueDecidesHasItsNumbers) {
  const Tensor shape = Tensor::FromVector<int64_t>({DataType::kInt64, {2}}, {2, -1});
  const nlohmann::json input = JsonOf(Reshape(&shape))["inputs"][1];
  EXPECT_EQ(input["value_depend"], true);
  EXPECT_EQ(input["const_data"].dump(), "[2,-1]");
}

TEST(OpRecord, AValueThatIsNotKnownIsTheTextNull) {
  const nlohmann::json input = JsonOf(Reshape(nullptr))["inputs"][1];
  EXPECT_EQ(input["value_depend"], true);
  EXPECT_EQ(input["const_data"], "NULL");
}

TEST(OpRecord, AConstantThatDecidesNothingIsLeftOut) {
  const Tensor weight = Tensor::Allocate({DataType::kFloat, {2048, 4}});
  RecordedCall call = MatMulV2();
  call.inputs[1].value = &weight;
  const nlohmann::json input = JsonOf(call)["inputs"][1];
  EXPECT_EQ(input["value_depend"], false);
  EXPECT_FALSE(input.contains("const_data"));
}

template <typename T>
std::string ConstDataOf(DataType dtype, const std::vector<T>& values) {
  const Tensor tensor =
      Tensor::FromVector<T>({dtype, {static_cast<int64_t>(values.size())}}, values);
  return JsonOf({.signature = "Fill(dims) -> y",
                 .inputs = {{"dims", tensor.type(), &tensor}},
                 .outputs = {kRow},
                 .value_inputs = {"dims"}})["inputs"][0]["const_data"]
      .dump();
}

TEST(OpRecord, NumbersOfEveryTypeAreRecorded) {
  EXPECT_EQ(ConstDataOf<uint8_t>(DataType::kBool, {1, 0}), "[1,0]");
  EXPECT_EQ(ConstDataOf<uint8_t>(DataType::kUint8, {255}), "[255]");
  EXPECT_EQ(ConstDataOf<int8_t>(DataType::kInt8, {-128}), "[-128]");
  EXPECT_EQ(ConstDataOf<int16_t>(DataType::kInt16, {-300}), "[-300]");
  EXPECT_EQ(ConstDataOf<uint16_t>(DataType::kUint16, {65535}), "[65535]");
  EXPECT_EQ(ConstDataOf<int32_t>(DataType::kInt32, {-70000}), "[-70000]");
  EXPECT_EQ(ConstDataOf<uint32_t>(DataType::kUint32, {4294967295}), "[4294967295]");
  EXPECT_EQ(ConstDataOf<uint64_t>(DataType::kUint64, {~uint64_t{0}}), "[18446744073709551615]");
  EXPECT_EQ(ConstDataOf<float>(DataType::kFloat, {0.5f}), "[0.5]");
  EXPECT_EQ(ConstDataOf<double>(DataType::kDouble, {0.1}), "[0.1]");
  EXPECT_EQ(ConstDataOf<Float16>(DataType::kFloat16, {Float16(1.5f)}), "[1.5]");
  EXPECT_EQ(ConstDataOf<Bfloat16>(DataType::kBfloat16, {Bfloat16(-2.0f)}), "[-2.0]");
  EXPECT_EQ(ConstDataOf<int64_t>(DataType::kInt64, {}), "[]");
  EXPECT_EQ(ConstDataOf<int64_t>(DataType::kComplex64, {0}), R"("NULL")");
}

TEST(OpRecord, AttributesHaveTheKindsOfTheSchema) {
  TensorAttr tensor{std::make_shared<TensorDesc>(), std::make_shared<const std::string>(), ""};
  OpSchema schema;
  schema.type = "Kinds";
  schema.attrs = {{"number", AttrValue::Float(1)},
                  {"flag", AttrValue::Bool(false)},
                  {"text", AttrValue::String("")},
                  {"type", Required::kType},
                  {"ints", Required::kInts},
                  {"floats", AttrValue::Floats({0.5f})},
                  {"texts", AttrValue::Strings({"a"})},
                  {"bools", AttrValue::Bools({true, false})},
                  {"tensor", Required::kTensor},
                  {"any", Required::kAny}};
  Node node;
  node.type = "Kinds";
  node.attrs = {{"number", AttrValue::Int(2)},
                {"flag", AttrValue::Int(1)},
                {"text", AttrValue::String("a\xff")},
                {"type", AttrValue::Type(DataType::kBfloat16)},
                {"ints", AttrValue::Ints({3, 4})},
                {"tensor", AttrValue::Variant(tensor)},
                {"any", AttrValue::Variant(ListListInt{{{1}, {2, 3}}})}};
  Operator op;
  op.schema = schema;
  const Result<OpContext> context = OpContext::Bind(node, op.schema);
  ASSERT_TRUE(context.ok()) << context.status().message();
  std::vector<std::string> seen;
  const nlohmann::json record = ParseForeignJson(RecordOf(op, *context).json);
  for (const nlohmann::json& attr : record["attrs"]) {
    seen.push_back(attr["name"].get<std::string>() + " " + attr["dtype"].get<std::string>() + " " +
                   attr["value"].dump());
  }
  EXPECT_EQ(seen, (std::vector<std::string>{
                      "number float 2.0", "flag bool true", "text str \"a\xef\xbf\xbd\"",
                      "type int 27", "ints listInt [3,4]", "floats list_float [0.5]",
                      "texts list_str [\"a\"]", "bools list_bool [true,false]",
                      "tensor tensor null", "any list_list_int [[1],[2,3]]"}));
}

TEST(OpRecord, APrivateFormatIsThatOfThePlainValue) {
  RecordedCall call = MatMulV2();
  call.layout = "FRACTAL_NZ";
  EXPECT_EQ(JsonOf(call)["inputs"][0]["format"], "ND");
  call.desc_attrs["origin_format"] = AttrValue::String("NCHW");
  EXPECT_EQ(JsonOf(call)["inputs"][0]["format"], "NCHW");
  EXPECT_EQ(JsonOf(call)["inputs"][0]["origin_format"], "NCHW");
  EXPECT_EQ(Record(call).stem, "MatMulV2_float_NCHW_1_2048");
}

TEST(OpRecord, NamesOfFilesHaveNoForeignCharacters) {
  const RecordedCall odd{
      .signature = "Odd(x) -> y", .inputs = {{"x", {DataType::kFloat, {}}}}, .outputs = {kRow}};
  EXPECT_EQ(Record(odd).stem, "Odd_float_ND");
  Operator op;
  op.schema = Signature(odd.signature);
  Node node = NodeOf(odd, op);
  node.type = "../a b\n\xc3\xa9" + std::string(300, 'x');
  Result<OpContext> context = OpContext::Bind(node, op.schema);
  ASSERT_TRUE(context.ok());
  const std::string stem = RecordOf(op, *context).stem;
  EXPECT_EQ(stem.substr(0, 10), "___a_b___x");
  EXPECT_EQ(stem.size(), 180u);
}

TEST(OpRecord, WithoutAFirstInputTheNameIsTheType) {
  EXPECT_EQ(Record({.signature = "Const() -> y", .outputs = {kRow}}).stem, "Const");
  EXPECT_EQ(
      Record({.signature = "Op(a?, b) -> y", .inputs = {{"b", kRow}}, .outputs = {kRow}}).stem,
      "Op");
}

TEST(OpRecord, TheVendorsTargetsAreListed) {
  for (const char* type : {"FlashAttentionScore", "TransData", "SoftmxGrad", "Renorm"}) {
    EXPECT_TRUE(Record({.signature = std::string(type) + "(x) -> y",
                        .inputs = {{"x", kRow}},
                        .outputs = {kRow}})
                    .listed)
        << type;
  }
  EXPECT_FALSE(
      Record({.signature = "SoftmaxGrad(x) -> y", .inputs = {{"x", kRow}}, .outputs = {kRow}})
          .listed);
}

}  // namespace
}  // namespace npumesh
