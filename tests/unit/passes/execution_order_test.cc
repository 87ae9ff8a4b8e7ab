#include "graph/passes/schedule/execution_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "graph/passes/analysis/reachability.h"
#include "tests/unit/engine/tiny_ops.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ExecutionOrderTest : public testing::Test {
 protected:
  // Names of the nodes in execution order, or the message of the error.
  std::vector<std::string> Order(GraphBuilder& builder, NodeOrder choice = NodeOrder::kStable) {
    Result<Model> model = builder.Build();
    if (!model.ok()) return {std::string(model.status().message())};
    return Order(model->graph, choice);
  }

  std::vector<std::string> Order(const Graph& graph, NodeOrder choice = NodeOrder::kStable) {
    const BoundGraph bound(graph, registry_);
    const Result<std::vector<NodeId>> order = ExecutionOrder(bound, NeededNodes(bound), choice);
    if (!order.ok()) return {std::string(order.status().message())};
    std::vector<std::string> names;
    for (const NodeId id : *order) names.push_back(graph.node(id).name);
    return names;
  }

  const OpRegistry registry_ = TinyOps();
  GraphBuilder g_;
};

TEST_F(ExecutionOrderTest, KeepsNodeOrder) {
  const Value x = g_.Data("x", IntType({2}));
  const Value b = g_.Op("Negate", {{"x", x}}, {}, "b");
  const Value a = g_.Op("Negate", {{"x", x}}, {}, "a");
  g_.Output({a, b});
  EXPECT_THAT(Order(g_), ElementsAre("x", "b", "a", "NetOutput"));
}

TEST_F(ExecutionOrderTest, LeavesDeadNodesOut) {
  const Value x = g_.Data("x", IntType({2}));
  g_.Op("Negate", {{"x", x}}, {}, "dead");
  g_.Output({x});
  EXPECT_THAT(Order(g_), ElementsAre("x", "NetOutput"));
}

TEST_F(ExecutionOrderTest, EffectsKeepNodeOrderWithoutEdges) {
  const Value x = g_.Data("x", IntType({2}));
  const Value slow = g_.Op("Negate", {{"x", x}}, {}, "slow");
  const Value slower = g_.Op("Negate", {{"x", slow}}, {}, "slower");
  g_.Op("Send", {{"x", slower}}, {}, "first", 0);
  g_.Op("Send", {{"x", x}}, {}, "second", 0);
  g_.Op("Print", {{"x", x}}, {}, "third", 0);
  g_.Output({x});
  EXPECT_THAT(Order(g_),
              ElementsAre("x", "slow", "slower", "first", "second", "third", "NetOutput"));
}

// Files may list operators before their producers.
TEST_F(ExecutionOrderTest, EffectsFollowDependenciesWhereTheFileIsNotSorted) {
  Graph graph("g");
  const auto add = [&](std::string name, std::string type, std::vector<Value> inputs, int outputs) {
    Node node;
    node.name = std::move(name);
    node.type = std::move(type);
    for (const Value& value : inputs) {
      node.inputs.emplace_back(value);
      node.input_descs.emplace_back().name = "x";
    }
    node.output_descs.resize(static_cast<size_t>(outputs));
    return graph.Add(std::move(node)).value();
  };
  add("NetOutput", "NetOutput", {{1, 0}}, 0);
  add("needs_other", "Meet", {{2, 0}}, 1);
  add("between", "Negate", {{3, 0}}, 1);
  add("other", "Meet", {{5, 0}}, 1);
  add("last", "Send", {{5, 0}}, 0);
  add("x", "Data", {}, 1);
  EXPECT_THAT(Order(graph),
              ElementsAre("x", "other", "between", "needs_other", "NetOutput", "last"));
}

TEST_F(ExecutionOrderTest, ReadersRunBeforeTheWriter) {
  const Value ref = g_.RefData("ref", IntType({2}));
  const Value write =
      g_.Op("Store", {{"ref", ref}, {"value", g_.Data("v", IntType({2}))}}, {}, "write");
  const Value read = g_.Op("Negate", {{"x", ref}}, {}, "read");
  g_.Output({write, read});
  EXPECT_THAT(Order(g_), ElementsAre("ref", "v", "read", "write", "NetOutput"));
}

TEST_F(ExecutionOrderTest, ReadersThroughViewsRunBeforeTheWriter) {
  const Value ref = g_.RefData("ref", IntType({2}));
  const Value shape = g_.Ints({2, 1}, "shape");
  const Value write =
      g_.Op("Store", {{"ref", ref}, {"value", g_.Data("v", IntType({2}))}}, {}, "write");
  const Value view = g_.Op("Reshape", {{"x", ref}, {"shape", shape}}, {}, "view");
  const Value read = g_.Op("Negate", {{"x", view}}, {}, "read");
  g_.Output({write, read});
  EXPECT_THAT(Order(g_), ElementsAre("ref", "shape", "v", "view", "read", "write", "NetOutput"));
}

TEST_F(ExecutionOrderTest, ReadersThatWaitForTheWriterSeeItsResult) {
  const Value ref = g_.RefData("ref", IntType({2}));
  const Value v = g_.Data("v", IntType({2}));
  const Value write = g_.Op("Store", {{"ref", ref}, {"value", v}}, {}, "write");
  const Value read = g_.Op("Negate", {{"x", ref}}, {}, "read");
  g_.Order(write, read);
  g_.Output({read});
  EXPECT_THAT(Order(g_), ElementsAre("ref", "v", "write", "read", "NetOutput"));
}

TEST_F(ExecutionOrderTest, WritersOfOneRefDataKeepNodeOrder) {
  const Value ref = g_.RefData("ref", IntType({2}));
  const Value v = g_.Data("v", IntType({2}));
  g_.Op("Accumulate", {{"ref", ref}, {"value", v}}, {}, "one");
  g_.Op("Store", {{"ref", ref}, {"value", v}}, {}, "two");
  const Value read = g_.Op("Negate", {{"x", ref}}, {}, "read");
  g_.Output({read});
  EXPECT_THAT(Order(g_), ElementsAre("ref", "v", "read", "one", "two", "NetOutput"));
}

TEST_F(ExecutionOrderTest, WriterWaitsForReadersOfTheWriteBefore) {
  const Value ref = g_.RefData("ref", IntType({2}));
  const Value v = g_.Data("v", IntType({2}));
  const Value one = g_.Op("Store", {{"ref", ref}, {"value", v}}, {}, "one");
  const Value two = g_.Op("Store", {{"ref", one}, {"value", v}}, {}, "two");
  const Value between = g_.Op("Negate", {{"x", one}}, {}, "between");
  g_.Output({two, between});
  EXPECT_THAT(Order(g_), ElementsAre("ref", "v", "one", "between", "two", "NetOutput"));
}

TEST_F(ExecutionOrderTest, ContradictionNamesReaderWriterAndValue) {
  // Each of two writers of one activation wants to see it before the other has changed it.
  const Value x = g_.Data("x", IntType({2}));
  const Value y = g_.Op("Negate", {{"x", x}}, {}, "y");
  const Value one = g_.Op("Store", {{"ref", y}, {"value", x}}, {}, "one");
  const Value two = g_.Op("Accumulate", {{"ref", y}, {"value", x}}, {}, "two");
  g_.Output({one, two});
  EXPECT_THAT(Order(g_),
              ElementsAre(testing::AllOf(HasSubstr("node \"one\" (Store) overwrites output 0 of "
                                                   "\"y\" in place"),
                                         HasSubstr("node \"two\" (Accumulate) must read first"),
                                         HasSubstr("put a TensorMove before"))));
}

// x feeds two chains, a1 a2 and b1 b2, which meet in `sum`; w is needed last.
GraphBuilder TwoChains() {
  GraphBuilder g;
  const Value w = g.Const("w", IntTensor({1, 2}));
  const Value x = g.Data("x", IntType({2}));
  const Value b1 = g.Op("Negate", {{"x", x}}, {}, "b1");
  const Value a1 = g.Op("Negate", {{"x", x}}, {}, "a1");
  const Value a2 = g.Op("Negate", {{"x", a1}}, {}, "a2");
  const Value b2 = g.Op("Negate", {{"x", b1}}, {}, "b2");
  const Value sum = g.Op("Plus", {{"x1", b2}, {"x2", a2}}, {}, "sum");
  g.Output({g.Op("Plus", {{"x1", sum}, {"x2", w}}, {}, "last")});
  return g;
}

// The values of topology_sorting_strategy.
TEST_F(ExecutionOrderTest, TheStrategiesDecideBetweenReadyNodes) {
  const struct {
    NodeOrder choice;
    std::vector<std::string> order;
  } cases[] = {
      {NodeOrder::kStable, {"w", "x", "b1", "a1", "a2", "b2", "sum", "last", "NetOutput"}},
      // Inputs before other sources; what one node frees is sorted by name.
      {NodeOrder::kBreadth, {"x", "a1", "b1", "a2", "b2", "sum", "w", "last", "NetOutput"}},
      // The last that became ready comes next.
      {NodeOrder::kDepth, {"x", "a1", "a2", "b1", "b2", "sum", "w", "last", "NetOutput"}},
      // From the end; of equal results the first name first.
      {NodeOrder::kReverse, {"x", "a1", "a2", "b1", "b2", "sum", "w", "last", "NetOutput"}},
      {NodeOrder::kStableDepth, {"w", "x", "b1", "a1", "a2", "b2", "sum", "last", "NetOutput"}},
  };
  for (const auto& [choice, order] : cases) {
    GraphBuilder g = TwoChains();
    EXPECT_EQ(Order(g, choice), order) << static_cast<int>(choice);
  }
}

// Otherwise two ranks that sort by names or sizes could wait for each other.
TEST_F(ExecutionOrderTest, EffectsKeepTheirOrderInEveryStrategy) {
  for (const NodeOrder choice : {NodeOrder::kStable, NodeOrder::kBreadth, NodeOrder::kDepth,
                                 NodeOrder::kReverse, NodeOrder::kStableDepth}) {
    GraphBuilder g;
    const Value x = g.Data("x", IntType({2}));
    const Value late = g.Op("Negate", {{"x", g.Op("Negate", {{"x", x}}, {}, "n1")}}, {}, "n2");
    g.Op("Send", {{"x", late}}, {}, "z_first", 0);
    g.Op("Send", {{"x", x}}, {}, "a_second", 0);
    g.Output({x});
    const std::vector<std::string> order = Order(g, choice);
    const auto first = std::find(order.begin(), order.end(), "z_first");
    const auto second = std::find(order.begin(), order.end(), "a_second");
    EXPECT_LT(first - order.begin(), second - order.begin()) << static_cast<int>(choice);
  }
}

}  // namespace
}  // namespace npumesh
