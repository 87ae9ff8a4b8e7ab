// Graph: names, removal, order, and every way in which Verify says no.
#include "graph/ir/graph.h"

#include <gmock/gmock.h>

#include <functional>

namespace npumesh {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Node MakeNode(std::string name, std::vector<std::optional<Value>> inputs, int outputs = 1) {
  Node node;
  node.name = std::move(name);
  node.type = "Op";
  node.input_descs.resize(inputs.size());
  node.inputs = std::move(inputs);
  node.output_descs.resize(static_cast<size_t>(outputs));
  return node;
}

// A node for each list of producers, given by position; names are n0, n1, ...
Graph MakeGraph(const std::vector<std::vector<NodeId>>& producers) {
  Graph graph("g");
  for (size_t i = 0; i < producers.size(); ++i) {
    std::vector<std::optional<Value>> inputs;
    for (NodeId producer : producers[i]) inputs.emplace_back(Value{producer, 0});
    EXPECT_TRUE(graph.Add(MakeNode(fmt::format("n{}", i), std::move(inputs))).ok());
  }
  return graph;
}

TEST(Graph, NamesAreUnique) {
  Graph graph = MakeGraph({{}, {0}});
  EXPECT_EQ(graph.Find("n1"), 1);
  EXPECT_EQ(graph.Find("n2"), kNoNode);
  const Status twice = graph.Add(MakeNode("n1", {})).status();
  EXPECT_EQ(twice.code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(twice.message()), HasSubstr("\"n1\""));
  EXPECT_EQ(graph.Rename(0, "n1").code(), Code::kInvalidArgument);
  ASSERT_TRUE(graph.Rename(0, "first").ok());
  ASSERT_TRUE(graph.Rename(0, "first").ok());
  EXPECT_EQ(graph.Find("first"), 0);
  EXPECT_EQ(graph.Find("n0"), kNoNode);
}

TEST(Graph, ReplacesUsesAndRemoves) {
  Graph graph = MakeGraph({{}, {0}, {1, 0}});
  graph.ReplaceUses({1, 0}, {0, 0});
  graph.Remove(1);
  EXPECT_EQ(graph.node(2).inputs[0], (Value{0, 0}));
  EXPECT_TRUE(graph.node(1).removed);
  EXPECT_EQ(graph.Find("n1"), kNoNode);
  EXPECT_TRUE(graph.Verify().ok());
  EXPECT_THAT(graph.StableOrder().value(), ElementsAre(0, 2));
  EXPECT_TRUE(graph.Add(MakeNode("n1", {})).ok());  // the name is free again
}

TEST(Graph, FindsInputsAndOutput) {
  Graph graph("g");
  const auto add = [&](std::string name, std::string type, int64_t index) {
    Node node = MakeNode(std::move(name), {});
    node.type = std::move(type);
    node.attrs["index"] = AttrValue::Int(index);
    ASSERT_TRUE(graph.Add(std::move(node)).ok());
  };
  EXPECT_EQ(graph.NetOutput(), kNoNode);
  add("r", "RefData", 1);
  add("b", "Data", 2);
  add("a", "Data", 0);
  add("o", "NetOutput", 0);
  EXPECT_THAT(graph.DataNodes(), ElementsAre(2, 0, 1));
  EXPECT_EQ(graph.NetOutput(), 3);
}

TEST(Graph, StableOrderKeepsAnOrderedGraph) {
  EXPECT_THAT(MakeGraph({{}, {}, {0}, {1}, {2, 3}}).StableOrder().value(),
              ElementsAre(0, 1, 2, 3, 4));
}

TEST(Graph, StableOrderMovesReadersBehindProducers) {
  EXPECT_THAT(MakeGraph({{2}, {}, {}, {0}}).StableOrder().value(), ElementsAre(1, 2, 0, 3));
  Graph graph = MakeGraph({{}, {}, {}});
  graph.node(0).controls.push_back(2);
  EXPECT_THAT(graph.StableOrder().value(), ElementsAre(1, 2, 0));
}

TEST(Graph, StableOrderNamesANodeOfACycle) {
  const Status status = MakeGraph({{}, {2}, {1}, {0}}).StableOrder().status();
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_EQ(status.message(), "graph \"g\" node \"n1\" (Op): stands on or behind a cycle");
}

TEST(Graph, VerifyNamesEveryMistake) {
  struct Case {
    std::function<void(Graph&)> harm;
    std::string_view expected;
  };
  const Case cases[] = {
      {[](Graph& g) { g.node(1).input_descs.clear(); },
       "graph \"g\" node \"n1\" (Op): 1 inputs but 0 input descriptors"},
      {[](Graph& g) {
         g.node(1).inputs[0] = Value{7, 0};
       },
       "input 0 reads a node that does not exist"},
      {[](Graph& g) {
         g.node(1).inputs[0] = Value{-1, 0};
       },
       "does not exist"},
      {[](Graph& g) { g.Remove(0); }, "input 0 reads a node that does not exist"},
      {[](Graph& g) {
         g.node(1).inputs[0] = Value{0, 1};
       },
       "input 0 reads output 1 of \"n0\", which has 1"},
      {[](Graph& g) {
         g.node(1).inputs[0] = Value{0, -1};
       },
       "reads output -1"},
      {[](Graph& g) { g.node(1).controls.push_back(9); },
       "a control edge from a node that does not exist"},
      {[](Graph& g) { g.node(1).controls.push_back(-1); }, "a control edge"},
      {[](Graph& g) { g.node(1).controls.push_back(1); }, "cycle"},
      {[](Graph& g) {
         g.node(0).output_descs[0].name = "y";
         g.node(0).output_descs[0].shape = Shape({-5});
       },
       "node \"n0\" (Op): port \"y\": dimension -5"},
      {[](Graph& g) { g.node(0).type = g.node(1).type = "NetOutput"; },
       "node \"n1\" (NetOutput): a second NetOutput; expected exactly one"},
  };
  for (const Case& c : cases) {
    Graph graph = MakeGraph({{}, {0}});
    ASSERT_TRUE(graph.Verify().ok());
    c.harm(graph);
    const Status status = graph.Verify();
    EXPECT_EQ(status.code(), Code::kCorrupt) << c.expected;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.expected));
  }
}

TEST(Node, AttributesFallBackAndConvert) {
  Node node;
  node.attrs["i"] = AttrValue::Int(3);
  node.attrs["b"] = AttrValue::Bool(true);
  node.attrs["f"] = AttrValue::Float(0.5f);
  node.attrs["s"] = AttrValue::String("text");
  node.attrs["dt"] = AttrValue::Type(DataType::kInt64);
  node.attrs["ints"] = AttrValue::Ints({1, 2});
  EXPECT_EQ(node.IntAttr("i", 0), 3);
  EXPECT_EQ(node.IntAttr("b", 0), 1);
  EXPECT_EQ(node.IntAttr("dt", 0), 9);
  EXPECT_EQ(node.IntAttr("s", -7), -7);
  EXPECT_EQ(node.IntAttr("none", -7), -7);
  EXPECT_EQ(node.FloatAttr("f", 0), 0.5f);
  EXPECT_EQ(node.FloatAttr("i", 0), 3.0f);
  EXPECT_EQ(node.FloatAttr("none", 2.0f), 2.0f);
  EXPECT_TRUE(node.BoolAttr("i", false));  // older producers store bools as ints
  EXPECT_TRUE(node.BoolAttr("none", true));
  EXPECT_EQ(node.StringAttr("s", ""), "text");
  EXPECT_EQ(node.StringAttr("i", "else"), "else");
  EXPECT_THAT(node.IntsAttr("ints"), ElementsAre(1, 2));
  EXPECT_THAT(node.IntsAttr("i"), ElementsAre(3));
  EXPECT_TRUE(node.IntsAttr("s").empty());
}

TEST(Model, FindsSubgraphs) {
  Model model;
  model.subgraphs.emplace_back("body");
  EXPECT_EQ(model.FindSubgraph("body"), &model.subgraphs[0]);
  EXPECT_EQ(model.FindSubgraph("cond"), nullptr);
}

}  // namespace
}  // namespace npumesh
