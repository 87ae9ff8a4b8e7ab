#include "launch/view/graph_picture.h"
#include "graph/ops/builtin_ops.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "tests/unit/launch/small_model.h"

namespace npumesh {
namespace {

using testing::HasSubstr;
using testing::Not;

Drawing SmallDrawing() {
  return LayOut(SmallModel().graph, BuiltinOps()).value();
}

TEST(LayOut, LeavesParametersOutAndCountsThem) {
  const Drawing drawing = SmallDrawing();
  EXPECT_EQ(drawing.boxes.size(), 7u);
  const auto sum = std::ranges::find_if(
      drawing.boxes, [](const Box& box) { return box.subtitle == "sum<1> +1 weight"; });
  EXPECT_NE(sum, drawing.boxes.end());
}

TEST(LayOut, EveryEdgePointsDownAndNoTwoBoxesOverlap) {
  const Drawing drawing = SmallDrawing();
  for (const Edge& edge : drawing.edges) {
    const Box& from = drawing.boxes[edge.from];
    EXPECT_GT(drawing.boxes[edge.to].y, from.y + from.height);
  }
  for (const Box& a : drawing.boxes) {
    EXPECT_GE(a.x, 0);
    EXPECT_LE(a.x + a.width, drawing.width);
    EXPECT_LE(a.y + a.height, drawing.height);
    for (const Box& b : drawing.boxes) {
      if (a.node == b.node || a.y != b.y) continue;
      EXPECT_TRUE(a.x + a.width <= b.x || b.x + b.width <= a.x);
    }
  }
}

// A point of a route, seen from a cubic or a vertical line: whether it lies inside of a box.
bool IsInside(const Box& box, double x, double y) {
  return x > box.x + 0.01 && x < box.x + box.width - 0.01 && y > box.y + 0.01 &&
         y < box.y + box.height - 0.01;
}

// Every part of every route, in small steps. REQUIRES: routes as Edge::route says.
void ExpectFreeRoutes(const Drawing& drawing) {
  for (const Edge& edge : drawing.edges) {
    ASSERT_EQ(edge.route.size() % 2, 0u);
    for (size_t i = 1; i < edge.route.size(); ++i) {
      const Point& a = edge.route[i - 1];
      const Point& b = edge.route[i];
      EXPECT_GT(b.y, a.y) << edge.label;
      for (int step = 0; step <= 20; ++step) {
        const double t = step / 20.0;
        const double bend = t * t * (3 - 2 * t);
        const double x = a.x + bend * (b.x - a.x);
        const double y = a.y + t * (b.y - a.y);
        for (const Box& box : drawing.boxes) {
          EXPECT_FALSE(IsInside(box, x, y)) << edge.label << " behind " << box.title;
        }
      }
    }
  }
}

// A symptom: an edge over several layers ran behind the boxes between.
TEST(LayOut, NoEdgeRunsBehindABox) {
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    GraphBuilder g("random");
    std::vector<Value> values = {g.Data("x", {DataType::kFloat, {2}})};
    for (int i = 0; i < 40; ++i) {
      const Value a = values[random() % values.size()];
      const Value b = values[values.size() - 1 - random() % std::min<size_t>(values.size(), 4)];
      values.push_back(g.Op("Add", {{"x1", a}, {"x2", b}}));
    }
    g.Output({values.back()});
    const Model model = *g.Build();
    const Drawing drawing = *LayOut(model.graph, BuiltinOps());
    ExpectFreeRoutes(drawing);
  }
  ExpectFreeRoutes(SmallDrawing());
}

const Box& BoxOf(const Model& model, const Drawing& drawing, const std::string& name) {
  const NodeId id = model.graph.Find(name);
  return *std::ranges::find(drawing.boxes, id, &Box::node);
}

TEST(LayOut, WhatOnlyWeightsFeedStandsNearItsReader) {
  GraphBuilder g("late");
  const TensorType type{DataType::kFloat, {2}};
  Value value = g.Data("x", type);
  const Value w = g.Const("w", Tensor::FromVector<float>(type, {1, 2}));
  const Value turned = g.Op("Neg", {{"x", w}}, {}, "turned");
  const Value again = g.Op("Neg", {{"x", turned}}, {}, "again");
  for (int i = 0; i < 6; ++i) value = g.Op("Neg", {{"x", value}}, {}, "n" + std::to_string(i));
  g.Output({g.Op("Add", {{"x1", value}, {"x2", again}}, {}, "sum")});
  const Model model = *g.Build();
  const Drawing drawing = *LayOut(model.graph, BuiltinOps());
  EXPECT_EQ(BoxOf(model, drawing, "again").y, BoxOf(model, drawing, "n5").y);
  EXPECT_EQ(BoxOf(model, drawing, "turned").y, BoxOf(model, drawing, "n4").y);
}

TEST(LayOut, SaysWhatNothingNeedsAndWhatFlows) {
  GraphBuilder g("dead");
  const Value x = g.Data("x", {DataType::kFloat, {2, 4}});
  g.Op("Neg", {{"x", x}}, {}, "unused");
  g.Output({g.Op("Abs", {{"x", x}}, {}, "used")});
  const Model model = *g.Build();
  const Drawing drawing = *LayOut(model.graph, BuiltinOps());
  EXPECT_TRUE(BoxOf(model, drawing, "unused").dead);
  EXPECT_FALSE(BoxOf(model, drawing, "used").dead);
  EXPECT_FALSE(BoxOf(model, drawing, "x").dead);
  EXPECT_EQ(BoxOf(model, drawing, "x").outputs, std::vector<std::string>{"float32[2,4]"});
}

TEST(LayOut, DrawsAPartOfAGraph) {
  const Model model = SmallModel();
  const NodeId sum = model.graph.Find("sum<1>"), reduce = model.graph.Find("reduce");
  const Drawing drawing =
      *LayOut(model.graph, BuiltinOps(), [&](NodeId id) { return id == sum || id == reduce; });
  EXPECT_EQ(drawing.boxes.size(), 2u);
  EXPECT_EQ(drawing.edges.size(), 1u);
}

TEST(LayOut, AnEmptyGraphIsAnEmptyDrawing) {
  const Result<Drawing> drawing = LayOut(Graph("empty"), BuiltinOps());
  ASSERT_TRUE(drawing.ok());
  EXPECT_THAT(ToSvg(*drawing, "empty"), HasSubstr("</svg>"));
}

TEST(ToSvg, StandsAlone) {
  const std::string svg = ToSvg(SmallDrawing(), "small");
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_THAT(svg, HasSubstr("class=\"collective\""));
  EXPECT_THAT(svg, HasSubstr("class=\"unknown\""));
  EXPECT_THAT(svg, HasSubstr("sum&lt;1&gt;"));
  EXPECT_THAT(svg, Not(HasSubstr("sum<1>")));
  EXPECT_THAT(svg, Not(HasSubstr("href")));
}

TEST(ToSvg, HasALegendOfWhatItShows) {
  const std::string svg = ToSvg(SmallDrawing(), "small");
  EXPECT_THAT(svg, HasSubstr(">collective</text>"));
  EXPECT_THAT(svg, HasSubstr(">npumesh cannot run it</text>"));
  EXPECT_THAT(svg, HasSubstr("class=\"out\">float32[2,4]</text>"));
  EXPECT_THAT(svg, Not(HasSubstr(">nothing needs it</text>")));
  EXPECT_THAT(svg, Not(HasSubstr(">order only</text>")));
}

// A node with two bodies, of which one is in no subgraph of the model.
TEST(ToSvg, DrawsBodies) {
  Model model = SmallModel();
  Model body = SmallModel();
  body.graph.set_name("then");
  model.subgraphs.push_back(body.graph);
  model.graph.node(model.graph.Find("sum<1>")).subgraphs = {"then", "lost"};
  const Result<std::vector<Drawing>> drawings = LayOutModel(model, BuiltinOps());
  ASSERT_TRUE(drawings.ok());
  ASSERT_EQ(drawings->size(), 2u);
  EXPECT_EQ((*drawings)[1].boxes.size(), 7u);
  const std::string svg = ToSvg(*drawings, "two");
  EXPECT_THAT(svg, HasSubstr("then, a body of sum&lt;1&gt; (Add)</text>"));
}

// Edges of one box draw their common way once.
TEST(PathOf, BeginsAtTheBranch) {
  GraphBuilder g("skips");
  const Value x = g.Data("x", {DataType::kFloat, {2}});
  Value value = x;
  for (int i = 0; i < 50; ++i) value = g.Op("Add", {{"x1", value}, {"x2", x}});
  g.Output({value});
  const Model model = *g.Build();
  const Drawing drawing = *LayOut(model.graph, BuiltinOps());
  size_t lines = 0;
  for (const Edge& edge : drawing.edges) lines += edge.route.size() - 1 - edge.branch;
  // 49 bends of the skip with two lines each, and a line into each box.
  EXPECT_LE(lines, 4 * drawing.edges.size());
  EXPECT_TRUE(PathOf(drawing.edges.back()).starts_with("M"));
}

TEST(ToDot, HasTheSameNodesAndEdges) {
  const Drawing drawing = SmallDrawing();
  const std::string dot = ToDot(drawing, "a \"b\"");
  EXPECT_TRUE(dot.starts_with("digraph \"a \\\"b\\\"\" {"));
  const auto arrows = [&] {
    size_t count = 0;
    for (size_t at = 0; (at = dot.find(" -> n", at)) != std::string::npos; ++at) ++count;
    return count;
  }();
  EXPECT_EQ(arrows, drawing.edges.size());
}

TEST(XmlText, EscapesWhatXmlCannotHold) {
  EXPECT_EQ(XmlText("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
  EXPECT_EQ(XmlText("caf\xc3\xa9"), "caf\xc3\xa9");
  EXPECT_EQ(XmlText("\x01\xff\xc3"), "???");
}

}  // namespace
}  // namespace npumesh
