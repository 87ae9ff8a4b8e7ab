#include "launch/view/graph_diff.h"

#include <gmock/gmock.h>

#include <random>

#include "graph/ops/builtin_ops.h"
#include "tests/unit/launch/layered_model.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Node& NodeIn(Model& model, std::string_view name) {
  return model.graph.node(model.graph.Find(name));
}

// "<node>: <text>".
std::vector<std::string> Differences(const Model& here, const Model& there) {
  std::vector<std::string> texts;
  for (const NodeDifference& each : DiffGraphs(here, there, BuiltinOps()).differences) {
    texts.push_back(fmt::format("{}: {}", each.node, each.text));
  }
  return texts;
}

TEST(GraphDiff, EqualGraphsDoNotDiffer) {
  const GraphDiff diff = DiffGraphs(LayeredModel(3), LayeredModel(3), BuiltinOps());
  EXPECT_TRUE(diff.differences.empty());
  EXPECT_EQ(diff.common, diff.nodes_here);
  EXPECT_THAT(ToText(diff, "a.air", "b.air"), testing::EndsWith("no node differs\n"));
}

TEST(GraphDiff, NamesOperatorAttributeInputTypeAndElement) {
  const Model here = LayeredModel(3);
  Model there = LayeredModel(3);
  NodeIn(there, "model.layers.1.gate").type = "Tanh";
  NodeIn(there, "model.layers.0.norm").attrs.insert_or_assign("axes", AttrValue::Ints({0}));
  auto& inputs = NodeIn(there, "model.layers.2.product").inputs;
  std::swap(inputs[0], inputs[1]);
  Node& weight = NodeIn(there, "l1");
  auto* const value = weight.attrs.at("value").get<TensorAttr>();
  std::string bytes = *value->data;
  const float odd = 0.75f;
  std::copy_n(reinterpret_cast<const char*>(&odd), sizeof(odd), bytes.begin() + 5 * sizeof(odd));
  value->data = std::make_shared<const std::string>(bytes);
  EXPECT_THAT(Differences(here, there),
              ElementsAre("l1: 1 of 16 elements differ, first 5: 0.5, there 0.75",
                          "model.layers.0.norm: axes is [-1], there [0]",
                          "model.layers.1.gate: it is Sigmoid, there Tanh",
                          HasSubstr("model.layers.2.product: x1 comes from model.layers.2.gate:0, "
                                    "there model.layers.2.right:0; x2 comes from ")));
}

TEST(GraphDiff, NamesWhatOnlyOneHas) {
  GraphBuilder here("here"), there("there");
  const TensorType type{DataType::kFloat, {4}};
  here.Output({here.Op("Neg", {{"x", here.Data("x", type)}}, {}, "minus")});
  there.Output({there.Op("Exp", {{"x", there.Data("x", {DataType::kFloat16, {4}})}}, {}, "power")});
  EXPECT_THAT(Differences(here.Build().value(), there.Build().value()),
              testing::UnorderedElementsAre(HasSubstr("NetOutput: "), "minus: is only here",
                                            "power: is only there",
                                            "x: its type is float32[4], there float16[4]"));
}

// One random attribute, input or weight of one node: that node is named and no other.
TEST(GraphDiff, APlantedDifferenceIsTheOnlyOne) {
  std::mt19937 random(11);
  const Model here = LayeredModel(6);
  for (int round = 0; round < 100; ++round) {
    Model there = LayeredModel(6);
    const int layer = static_cast<int>(random() % 6);
    std::string name = fmt::format("model.layers.{}.norm", layer);
    switch (random() % 3) {
      case 0:
        NodeIn(there, name).attrs.insert_or_assign("axes", AttrValue::Ints({0}));
        break;
      case 1:
        name = fmt::format("model.layers.{}.down", layer);
        NodeIn(there, name).inputs[0] = Value{there.graph.Find("embed"), 0};
        break;
      default: {
        name = fmt::format("{}{}", random() % 2 == 0 ? 'l' : 'r', layer);
        auto* const value = NodeIn(there, name).attrs.at("value").get<TensorAttr>();
        std::string bytes = *value->data;
        bytes[random() % bytes.size()] ^= 1;
        value->data = std::make_shared<const std::string>(bytes);
      }
    }
    EXPECT_THAT(Differences(here, there), ElementsAre(testing::StartsWith(name + ": "))) << round;
    EXPECT_THAT(Differences(there, here), ElementsAre(testing::StartsWith(name + ": "))) << round;
  }
}

}  // namespace
}  // namespace npumesh
