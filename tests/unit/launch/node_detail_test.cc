#include "launch/view/node_detail.h"

#include <gmock/gmock.h>

#include "graph/ops/builtin_ops.h"
#include "launch/view/value_types.h"
#include "tests/unit/launch/layered_model.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Model SmallScaled() {
  GraphBuilder g("scaled");
  const TensorType type{DataType::kFloat, {2, 3}};
  const Value x = g.Data("x", type);
  const Value y = g.Op("Muls", {{"x", x}}, {{"value", AttrValue::Float(0.4f)}}, "scale");
  const Value w = g.FileConstant("w", type, "out/w.bin");
  const Value c = g.Const(
      "c", Tensor::FromVector<float>({DataType::kFloat, {10}}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  const Value sum = g.Op("Add", {{"x1", y}, {"x2", w}}, {}, "sum");
  g.Output({g.Op("SoftmaxV2", {{"x", sum}}, {}, "soft"), g.Op("Neg", {{"x", c}}, {}, "neg"), y});
  Model model = g.Build().value();
  InferTypes(BuiltinOps(), nullptr, model);
  return model;
}

NodeDetail Detail(const Model& model, std::string_view name) {
  const Result<NodeDetail> detail = FindDetail(model, BuiltinOps(), name);
  EXPECT_TRUE(detail.ok()) << detail.status().ToString();
  return detail.ok() ? *detail : NodeDetail();
}

const AttrDetail* Attribute(const NodeDetail& node, std::string_view name) {
  for (const AttrDetail& attr : node.attributes) {
    if (attr.name == name) return &attr;
  }
  return nullptr;
}

TEST(NodeDetail, HasAttributesPortsProducersAndReaders) {
  const NodeDetail scale = Detail(SmallScaled(), "scale");
  EXPECT_EQ(scale.type, "Muls");
  ASSERT_NE(Attribute(scale, "value"), nullptr);
  EXPECT_EQ(Attribute(scale, "value")->value, "0.4");
  EXPECT_EQ(Attribute(scale, "value")->source, AttrSource::kNode);
  ASSERT_EQ(scale.inputs.size(), 1u);
  EXPECT_EQ(scale.inputs[0].port, "x");
  EXPECT_EQ(scale.inputs[0].from, "x:0");
  EXPECT_EQ(scale.inputs[0].type, "float32[2,3]");
  ASSERT_EQ(scale.outputs.size(), 1u);
  EXPECT_EQ(scale.outputs[0].type, "float32[2,3]");
  EXPECT_THAT(scale.outputs[0].readers, ElementsAre("sum.x1", testing::StartsWith("NetOutput.")));
}

TEST(NodeDetail, SaysWhatTheOperatorTakesWhereTheNodeIsSilent) {
  const NodeDetail soft = Detail(SmallScaled(), "soft");
  const AttrDetail* const axes = Attribute(soft, "axes");
  ASSERT_NE(axes, nullptr);
  EXPECT_EQ(axes->source, AttrSource::kDefault);
  EXPECT_THAT(ToText(soft), HasSubstr("axes = [-1]  default\n"));
}

TEST(NodeDetail, WeightsSayTheirFileAndTheirElements) {
  const NodeDetail w = Detail(SmallScaled(), "w");
  EXPECT_EQ(w.file, "out/w.bin");
  EXPECT_EQ(w.found, "");
  EXPECT_THAT(ToText(w), HasSubstr("weight file \"out/w.bin\": missing\n"));
  const NodeDetail c = Detail(SmallScaled(), "c");
  ASSERT_NE(Attribute(c, "value"), nullptr);
  EXPECT_EQ(Attribute(c, "value")->value, "float32[10] 1, 2, 3, 4, 5, 6, 7, 8, ...");
}

TEST(NodeDetail, AMissingNameGetsTheNearest) {
  const Status status = FindDetail(SmallScaled(), BuiltinOps(), "scal").status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_EQ(status.message(), "no node is called \"scal\"; did you mean scale?");
  EXPECT_THAT(
      std::string(FindDetail(SmallScaled(), BuiltinOps(), "zzzzzzzzzzzz").status().message()),
      HasSubstr("the graph has "));
}

TEST(NodeDetail, ListsEveryNodeAndIsJson) {
  const Model model = LayeredModel(2);
  const std::vector<NodeDetail> all = DetailsOf(model, BuiltinOps());
  EXPECT_EQ(all.size(), model.graph.nodes().size());
  const nlohmann::json json = ToJsonObject(Detail(model, "model.layers.1.residual"));
  EXPECT_EQ(json.at("name"), "model.layers.1.residual");
  EXPECT_EQ(json.at("inputs")[0].at("from"), "model.layers.0.residual:0");
  EXPECT_TRUE(json.at("file").is_null());
  EXPECT_TRUE(json.at("graph").is_null());
}

TEST(AttrText, ShowsWhatEveryKindHolds) {
  EXPECT_EQ(AttrText(AttrValue(ListListInt{{{1, 2}, {3}}})), "[[1,2],[3]]");
  EXPECT_EQ(AttrText(AttrValue(BytesAttr{"abc"})), "3 bytes");
  EXPECT_EQ(AttrText(AttrValue::Strings({"a", "b"})), "[\"a\",\"b\"]");
  EXPECT_THAT(AttrText(AttrValue::Ints(std::vector<int64_t>(5000, 7))), HasSubstr(" ... ("));
  // Fewer bytes than the type says: only the type is shown.
  TensorAttr cut;
  cut.desc = std::make_shared<TensorDesc>();
  cut.desc->dtype = DataType::kFloat;
  cut.desc->shape = Shape({4});
  cut.data = std::make_shared<const std::string>("123");
  EXPECT_EQ(AttrText(AttrValue(std::move(cut))), "float32[4]");
}

}  // namespace
}  // namespace npumesh
