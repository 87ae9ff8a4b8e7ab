#include "launch/view/graph_picture.h"
#include "graph/ops/builtin_ops.h"

#include <gmock/gmock.h>

#include <algorithm>

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
      drawing.boxes, [](const Box& box) { return box.subtitle == "sum<1> +1p"; });
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
