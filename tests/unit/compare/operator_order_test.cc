#include "graph/compare/sources/operator_order.h"
#include "graph/ops/builtin_ops.h"

#include <gmock/gmock.h>

#include "graph/ir/graph_builder.h"

namespace npumesh {
namespace {

using testing::ElementsAre;

// x -> left -> join, x -> right -> join; "right/2" as a name with a slash.
Model Diamond() {
  GraphBuilder g;
  const Value x = g.Data("x", {DataType::kFloat, {1}});
  const Value left = g.Op("Neg", {{"x", x}}, {}, "left");
  const Value right = g.Op("Neg", {{"x", x}}, {}, "right/2");
  const Value sum =
      g.Op("HcomAllReduce", {{"x", left}}, {{"reduction", AttrValue::String("sum")}}, "sum");
  g.Output({g.Op("Add", {{"x1", sum}, {"x2", right}}, {}, "join")});
  return *g.Build();
}

TEST(OperatorOrder, OfAGraph) {
  const Model model = Diamond();
  const Result<OperatorOrder> order = OperatorOrder::FromGraph(model.graph, BuiltinOps());
  ASSERT_TRUE(order.ok());
  EXPECT_TRUE(order->has_edges());
  EXPECT_LT(order->PlaceOf("x"), order->PlaceOf("left"));
  EXPECT_LT(order->PlaceOf("right_2"), order->PlaceOf("join"));
  EXPECT_EQ(order->PlaceOf("nobody"), -1);
  EXPECT_TRUE(order->IsCollective("sum"));
  EXPECT_FALSE(order->IsCollective("left"));
  EXPECT_THAT(order->Sorted({"join", "other", "left", "x"}),
              ElementsAre("x", "left", "join", "other"));
}

TEST(OperatorOrder, SeesAncestorsOnly) {
  const Model model = Diamond();
  const Result<OperatorOrder> order = OperatorOrder::FromGraph(model.graph, BuiltinOps());
  EXPECT_TRUE(order->Sees("join", {"left"}));
  EXPECT_TRUE(order->Sees("sum", {"x"}));
  EXPECT_FALSE(order->Sees("right_2", {"left"}));
  EXPECT_FALSE(order->Sees("left", {"left", "join"}));
}

TEST(OperatorOrder, OfASourceEverythingBeforeIsSeen) {
  MemorySource source("memory");
  const Tensor tensor = Tensor::Allocate({DataType::kFloat, {1}});
  source.Add("b", "Neg", Side::kOutput, 0, tensor);
  source.Add("a", "HcomAllReduce", Side::kOutput, 0, tensor);
  const OperatorOrder order = OperatorOrder::FromSource(source);
  EXPECT_FALSE(order.has_edges());
  EXPECT_TRUE(order.Sees("a", {"b"}));
  EXPECT_FALSE(order.Sees("b", {"a"}));
  EXPECT_TRUE(order.IsCollective("a"));
}

}  // namespace
}  // namespace npumesh
