#include "launch/view/fold_repeats.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "graph/ops/builtin_ops.h"
#include "launch/view/layered_layout.h"
#include "tests/unit/launch/layered_model.h"

namespace npumesh {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

size_t LivingNodes(const Graph& graph) {
  const auto& nodes = graph.nodes();
  return static_cast<size_t>(
      std::count_if(nodes.begin(), nodes.end(), [](const Node& node) { return !node.removed; }));
}

TEST(FoldRepeats, LayersBecomeOneNodeThatSaysWhich) {
  const Model model = LayeredModel(24);
  const FoldedGraph folded = FoldRepeats(model.graph).value();
  ASSERT_THAT(folded.stretches, SizeIs(1));
  const FoldedStretch& stretch = folded.stretches[0];
  EXPECT_EQ(stretch.node, "layers 1 .. 23: 8 operators each, as above");
  EXPECT_EQ(stretch.copies, 23u);
  ASSERT_THAT(stretch.like, SizeIs(kLayerOperators));
  for (const NodeId id : stretch.like) {
    EXPECT_THAT(model.graph.node(id).name, HasSubstr("model.layers.0."));
  }
  EXPECT_EQ(LivingNodes(folded.graph), LivingNodes(model.graph) - 23 * kLayerOperators + 1);
  const Node& box = folded.graph.node(folded.graph.Find(stretch.node));
  EXPECT_EQ(box.inputs.size(), 1u);                                 // the hidden state
  EXPECT_EQ(box.output_descs.size(), static_cast<size_t>(23 + 1));  // caches, and the hidden state
  EXPECT_TRUE(folded.graph.Verify().ok());
}

TEST(FoldRepeats, NamesThatDoNotCountLayersGiveTheirNumber) {
  const FoldedGraph folded = FoldRepeats(LayeredModel(5, /*named=*/false).graph).value();
  ASSERT_THAT(folded.stretches, SizeIs(1));
  EXPECT_EQ(folded.stretches[0].copies, 4u);
  EXPECT_THAT(folded.stretches[0].node, HasSubstr(": 8 operators each, as above"));
}

TEST(FoldRepeats, FewOrDifferentLayersStay) {
  for (const int layers : {0, 1, 2}) {
    const Model model = LayeredModel(layers);
    const FoldedGraph folded = FoldRepeats(model.graph).value();
    EXPECT_THAT(folded.stretches, SizeIs(0)) << layers;
    EXPECT_EQ(folded.graph.nodes().size(), model.graph.nodes().size());
  }
}

// A layer in the middle that is another one parts the stretches.
TEST(FoldRepeats, AnotherLayerPartsTheStretches) {
  Model model = LayeredModel(9);
  Node& odd = model.graph.node(model.graph.Find("model.layers.4.gate"));
  odd.type = "Relu";
  const FoldedGraph folded = FoldRepeats(model.graph).value();
  ASSERT_THAT(folded.stretches, SizeIs(2));
  EXPECT_THAT(folded.stretches[0].node, HasSubstr("layers 1 .. 3: "));
  EXPECT_THAT(folded.stretches[1].node, HasSubstr("layers 6 .. 8: "));
}

// Equal types are not enough: what an operator reads must be the same, one layer on.
TEST(FoldRepeats, OtherInputsPartTheStretches) {
  Model model = LayeredModel(9);
  Graph& graph = model.graph;
  Node& odd = graph.node(graph.Find("model.layers.5.residual"));
  odd.inputs[0] = Value{graph.Find("model.layers.2.residual"), 0};
  const FoldedGraph folded = FoldRepeats(graph).value();
  size_t hidden = 0;
  for (const FoldedStretch& stretch : folded.stretches) hidden += stretch.copies;
  EXPECT_LT(hidden, 8u);
  EXPECT_NE(folded.graph.Find("model.layers.5.residual"), kNoNode);
}

// Random chains: whatever is folded, the rest is a graph whose ends are those of the whole.
TEST(FoldRepeats, WhatIsFoldedIsStillAGraph) {
  std::mt19937 random(7);
  const char* const kTypes[] = {"Relu", "Neg", "Tanh"};
  for (int round = 0; round < 200; ++round) {
    GraphBuilder g("random");
    std::vector<Value> values = {g.Data("x", {DataType::kFloat, {4}})};
    const int nodes = 5 + static_cast<int>(random() % 60);
    for (int i = 0; i < nodes; ++i) {
      const size_t back = std::min<size_t>(random() % 4, values.size() - 1);
      const Value before = values[values.size() - 1 - back];
      values.push_back(random() % 5 == 0
                           ? g.Op("Add", {{"x1", values.back()}, {"x2", before}})
                           : g.Op(kTypes[random() % (round % 3 + 1)], {{"x", before}}));
    }
    g.Output({values.back(), values[values.size() / 2]});
    const Model model = g.Build().value();
    const Result<FoldedGraph> folded = FoldRepeats(model.graph);
    ASSERT_TRUE(folded.ok()) << round;
    ASSERT_TRUE(folded->graph.Verify().ok()) << round;
    EXPECT_TRUE(folded->graph.StableOrder().ok()) << round;
    EXPECT_TRUE(LayOut(folded->graph, BuiltinOps()).ok()) << round;
  }
}

// Every layer stood 450 pixels to the right of the one before.
TEST(LayOut, LayersStandInOneColumn) {
  const auto width = [](int layers) {
    return LayOut(LayeredModel(layers).graph, BuiltinOps())->width;
  };
  EXPECT_LE(width(40), width(3) + 1200);  // caches run down beside it, some pixels each
  const Model model = LayeredModel(40);
  const Drawing drawing = *LayOut(model.graph, BuiltinOps());
  std::vector<double> middles;
  for (const Box& box : drawing.boxes) {
    const std::string& name = model.graph.node(box.node).name;
    if (name.ends_with(".residual")) middles.push_back(box.x + box.width / 2);
  }
  ASSERT_THAT(middles, SizeIs(40));
  for (const double middle : middles) EXPECT_NEAR(middle, middles[0], 0.01);
}

TEST(LayOut, AFoldedModelIsAsHighAsOneLayer) {
  const Model model = LayeredModel(24);
  const std::vector<Drawing> folded = LayOutModel(model, BuiltinOps()).value();
  const std::vector<Drawing> whole = LayOutModel(model, BuiltinOps(), /*fold=*/false).value();
  EXPECT_LT(folded[0].height * 10, whole[0].height);
  const auto box = std::find_if(folded[0].boxes.begin(), folded[0].boxes.end(),
                                [](const Box& each) { return each.kind == BoxKind::kFolded; });
  ASSERT_NE(box, folded[0].boxes.end());
  EXPECT_EQ(box->title, "layers 1 .. 23");
  EXPECT_EQ(box->subtitle, "8 operators each, as above");
}

}  // namespace
}  // namespace npumesh
