// Which nodes ResolveOverwrites adds and whom it redirects. What readers then see is tested in
// tests/unit/session/overwrite_test.cc.
#include "graph/passes/analysis/overwrites.h"

#include <gmock/gmock.h>

#include "graph/ir/graph_builder.h"
#include "tests/unit/engine/tiny_ops.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class OverwritesTest : public testing::Test {
 protected:
  // Names of added nodes.
  std::vector<std::string> Added() {
    model_ = std::move(g_.Build()).value();
    const size_t before = model_.graph.nodes().size();
    const Status status = ResolveOverwrites(model_.graph, registry_);
    EXPECT_TRUE(status.ok()) << status.ToString();
    EXPECT_TRUE(model_.graph.Verify().ok()) << model_.graph.Verify().ToString();
    std::vector<std::string> names;
    for (size_t i = before; i < model_.graph.nodes().size(); ++i) {
      names.push_back(model_.graph.nodes()[i].name);
    }
    return names;
  }
  // The pass runs again when calls are inlined, and must change nothing that it has settled.
  void ExpectToStay() {
    const Graph once = model_.graph;
    EXPECT_TRUE(ResolveOverwrites(model_.graph, registry_).ok());
    EXPECT_EQ(model_.graph.nodes().size(), once.nodes().size());
    for (const Node& node : once.nodes()) {
      EXPECT_EQ(model_.graph.node(node.id).inputs, node.inputs) << node.name;
    }
  }
  // Name of the producer of an input.
  std::string Source(std::string_view node, size_t input) {
    const Graph& graph = model_.graph;
    return graph.node(graph.node(graph.Find(node)).inputs[input]->node).name;
  }
  Value Store(Value ref, Value value, std::string name) {
    return g_.Op("Store", {{"ref", ref}, {"value", value}}, {}, std::move(name));
  }
  Value Negate(Value x, std::string name) {
    return g_.Op("Negate", {{"x", x}}, {}, std::move(name));
  }

  const OpRegistry registry_ = TinyOps();
  GraphBuilder g_;
  Model model_;
  const Value v_ = g_.Data("v", IntType({2}));
};

TEST_F(OverwritesTest, ACacheThatIsUpdatedAndThenReadNeedsNoCopy) {
  const Value cache = g_.RefData("cache", IntType({2}));
  const Value read_before = Negate(cache, "before");
  const Value update = Store(cache, v_, "update");
  g_.Output({Negate(update, "read"), read_before});
  EXPECT_THAT(Added(), IsEmpty());
}

TEST_F(OverwritesTest, AReaderBehindTheWriterReadsItsOutput) {
  const Value ref = g_.RefData("ref", IntType({2}));
  const Value update = Store(ref, v_, "update");
  const Value read = Negate(ref, "read");
  g_.Order(update, read);
  g_.Output({read});
  EXPECT_THAT(Added(), IsEmpty());
  EXPECT_EQ(Source("read", 0), "update");
}

TEST_F(OverwritesTest, WritersFollowEachOtherByDataEdges) {
  const Value ref = g_.RefData("ref", IntType({2}));
  Store(ref, v_, "one");
  Store(ref, v_, "two");
  g_.Output({ref});
  EXPECT_THAT(Added(), IsEmpty());
  EXPECT_EQ(Source("two", 0), "one");
  EXPECT_EQ(Source("NetOutput", 0), "two");
}

TEST_F(OverwritesTest, AViewInFrontOfTheWriterIsCopiedForTheGraphOutput) {
  const Value ref = g_.RefData("ref", IntType({2}));
  const Value view = g_.Op("Reshape", {{"x", ref}, {"shape", g_.Ints({2, 1})}}, {}, "view");
  const Value update = Store(ref, v_, "update");
  g_.Order(view, update);
  g_.Output({view, view});
  EXPECT_THAT(Added(),
              ElementsAre("ref/before_update", "view/shape_0", "ref/before_update/as_view"));
  EXPECT_EQ(Source("NetOutput", 0), "ref/before_update/as_view");
  EXPECT_EQ(Source("NetOutput", 1), "ref/before_update/as_view");
}

TEST_F(OverwritesTest, TheOperandOfAWriterInItsOwnTargetIsCopied) {
  const Value ref = g_.RefData("ref", IntType({2}));
  g_.Output({Store(ref, ref, "update")});
  EXPECT_THAT(Added(), ElementsAre("ref/before_update"));
  EXPECT_EQ(Source("update", 0), "ref");
  EXPECT_EQ(Source("update", 1), "ref/before_update");
}

TEST_F(OverwritesTest, AConstantNeedsNoCopyBecauseItsWriterGetsOne) {
  const Value constant = g_.Const("constant", IntTensor({1, 2}));
  const Value update = Store(constant, v_, "update");
  const Value read = Negate(g_.Op("Plus", {{"x1", constant}, {"x2", update}}, {}, "sum"), "read");
  g_.Output({read});
  EXPECT_THAT(Added(), IsEmpty());
  EXPECT_EQ(Source("sum", 0), "update");  // "sum" runs behind the writer
}

TEST_F(OverwritesTest, AnUpdateWithoutAnOutputIsAwaited) {
  const Value ref = g_.RefData("ref", IntType({2}));
  const Value update = g_.Op("AccumulateAll", {{"value", v_}, {"refs0", ref}}, {}, "update", 0);
  const Value next = Store(ref, v_, "next");
  const Value read = Negate(ref, "read");
  g_.Order(update, read);
  g_.Output({next, read});
  EXPECT_THAT(Added(), IsEmpty());
  const Graph& graph = model_.graph;
  EXPECT_THAT(graph.node(graph.Find("next")).controls, ElementsAre(graph.Find("update")));
  EXPECT_EQ(Source("read", 0), "ref");
}

TEST_F(OverwritesTest, TheShapeOfWhatAnUnseenUpdateLeavesStandsBehindIt) {
  const Value ref = g_.RefData("ref", IntType({2}));
  const Value column = g_.Op("Reshape", {{"x", ref}, {"shape", g_.Ints({2, 1})}}, {}, "column");
  const Value stored = Store(column, g_.Data("w", IntType({2, 1})), "stored");
  g_.Op("AccumulateAll", {{"value", v_}, {"refs0", stored}}, {}, "update", 0);
  g_.Output({ref, Negate(ref, "old")});
  EXPECT_THAT(Added(), ElementsAre("ref/shape_0", "stored/as_ref"));
  const Graph& graph = model_.graph;
  EXPECT_EQ(Source("NetOutput", 0), "stored/as_ref");
  EXPECT_THAT(graph.node(graph.Find("stored/as_ref")).controls, ElementsAre(graph.Find("update")));
  EXPECT_EQ(Source("old", 0), "ref");
  ExpectToStay();
}

TEST_F(OverwritesTest, AConstantThatIsUpdatedUnseenBecomesAVariable) {
  const Value constant = g_.Const("constant", IntTensor({1, 2}));
  g_.Op("AccumulateAll", {{"value", v_}, {"refs0", constant}}, {}, "update", 0);
  const Value old = Negate(constant, "old");
  g_.Output({constant, old});
  EXPECT_THAT(Added(), ElementsAre("constant/before_update"));
  EXPECT_EQ(Source("update", 1), "constant/before_update");
  EXPECT_EQ(Source("NetOutput", 0), "constant/before_update");
  EXPECT_EQ(Source("old", 0), "constant");
}

TEST_F(OverwritesTest, CopiesOfOneNameAtTwoMomentsAreTwo) {
  const Value ref = g_.RefData("ref", IntType({2}));
  const Value first = g_.Op("Reshape", {{"x", ref}, {"shape", g_.Ints({2})}}, {}, "first");
  const Value one = g_.Op("AccumulateAll", {{"value", v_}, {"refs0", ref}}, {}, "one", 0);
  const Value second = g_.Op("Reshape", {{"x", ref}, {"shape", g_.Ints({2})}}, {}, "second");
  const Value two = g_.Op("AccumulateAll", {{"value", v_}, {"refs0", ref}}, {}, "two", 0);
  g_.Order(first, one);
  g_.Order(one, second);
  g_.Order(second, two);
  g_.Output({first, second, ref});
  EXPECT_THAT(Added(), ElementsAre("ref/before_one", "first/shape_0", "ref/before_one/as_first",
                                   "ref/before_two", "second/shape_0", "ref/before_two/as_second"));
  const Graph& graph = model_.graph;
  EXPECT_THAT(graph.node(graph.Find("ref/before_two")).controls, ElementsAre(graph.Find("one")));
}

TEST_F(OverwritesTest, OneStorageIsOverwrittenOnceByANode) {
  const Value ref = g_.RefData("ref", IntType({2}));
  g_.Op("AccumulateAll", {{"value", v_}, {"refs0", ref}, {"refs1", ref}}, {}, "update", 0);
  g_.Output({ref});
  model_ = std::move(g_.Build()).value();
  const Status status = ResolveOverwrites(model_.graph, registry_);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(HasSubstr("\"update\""), HasSubstr("inputs 1 and 2"),
                             HasSubstr("output 0 of \"ref\"")));
}

}  // namespace
}  // namespace npumesh
