#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "graph/passes/analysis/node_error.h"
#include "graph/passes/analysis/operator_check.h"
#include "graph/passes/analysis/reachability.h"
#include "graph/passes/analysis/value_flow.h"
#include "graph/passes/rewrite/constant_folding.h"
#include "tests/unit/engine/tiny_ops.h"

namespace npumesh {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

class NodeSelectionTest : public testing::Test {
 protected:
  std::vector<std::string> Names(const Graph& graph, const std::vector<bool>& chosen) {
    std::vector<std::string> names;
    for (const Node& node : graph.nodes()) {
      if (chosen[static_cast<size_t>(node.id)]) names.push_back(node.name);
    }
    return names;
  }

  Status Check(GraphBuilder& builder) {
    Result<Model> model = builder.Build();
    NPUMESH_RETURN_IF_ERROR(model.status());
    const BoundGraph bound(model->graph, registry_);
    return CheckOperators(bound, NeededNodes(bound));
  }

  const OpRegistry registry_ = TinyOps();
  GraphBuilder g_;
};

TEST_F(NodeSelectionTest, EffectsAndOutputsAreNeeded) {
  const Value x = g_.Data("x", IntType({2}));
  const Value ref = g_.RefData("ref", IntType({2}));
  g_.Data("unused", IntType({2}));
  g_.Op("Negate", {{"x", x}}, {}, "dead");
  const Value before = g_.Op("Negate", {{"x", x}}, {}, "before");
  const Value after = g_.Op("Negate", {{"x", x}}, {}, "after");
  g_.Order(before, after);
  g_.Op("Print", {{"x", x}}, {}, "print", 0);
  g_.Op("Send", {{"x", x}}, {}, "send", 0);
  g_.Op("Negate", {{"x", x}}, {{"_force_skip_prune", AttrValue::Int(1)}}, "forced");
  g_.Op("Store", {{"ref", ref}, {"value", x}}, {}, "write");
  g_.Output({after});
  const Model model = g_.Build().value();
  const BoundGraph bound(model.graph, registry_);
  EXPECT_THAT(Names(model.graph, NeededNodes(bound)),
              UnorderedElementsAre("x", "ref", "before", "after", "print", "send", "forced",
                                   "write", "NetOutput"));
}

TEST_F(NodeSelectionTest, KnownValuesNeedNoProducer) {
  const Value x = g_.Data("x", IntType({2}));
  const Value shape = g_.Op("Shape", {{"x", g_.Op("Negate", {{"x", x}}, {}, "n")}}, {}, "s");
  g_.Output({shape});
  const Model model = g_.Build().value();
  const BoundGraph bound(model.graph, registry_);
  const auto needed = NeededNodes(bound, [&](Value value) { return value == shape; });
  EXPECT_THAT(Names(model.graph, needed), UnorderedElementsAre("NetOutput"));
}

TEST_F(NodeSelectionTest, ListsEveryMissingOperatorAtOnce) {
  const Value x = g_.Data("x", IntType({2}));
  const Value a = g_.Op("Negete", {{"x", x}}, {}, "a");
  const Value b = g_.Op("Negete", {{"x", a}}, {}, "b");
  const Value c = g_.Op("FlashAttentionScore", {{"x", b}}, {}, "c");
  const Value d = g_.Op("Bare", {{"x", c}}, {}, "d");
  const Value e = g_.Op("Plus", {{"x1", d}}, {}, "e");
  g_.Op("Unknown", {{"x", x}}, {}, "dead");
  g_.Output({e});
  const Status status = Check(g_);
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_EQ(status.message(),
            "graph \"graph_1\": 3 operator types cannot be run; --op-library loads some of one's "
            "own:\n"
            "  Bare: 1 node, for example \"d\"; known, but without a kernel\n"
            "  FlashAttentionScore: 1 node, for example \"c\"\n"
            "  Negete: 2 nodes, for example \"a\"; similar: Negate\n"
            "  moreover 1 node does not fit the operator's interface:\n"
            "  node \"e\" (Plus): required input \"x2\" is not connected");
}

TEST_F(NodeSelectionTest, MisfitsAloneAreCorrupt) {
  const Value x = g_.Data("x", IntType({2}));
  g_.Output({g_.Op("Plus", {{"x1", x}}, {}, "e"), g_.Op("Negate", {}, {}, "f")});
  const Status status = Check(g_);
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_THAT(status.message(), HasSubstr("2 nodes do not fit"));
  EXPECT_THAT(status.message(), HasSubstr("node \"f\" (Negate)"));
}

TEST_F(NodeSelectionTest, ShapeDecidingInputsAreFoundThroughChains) {
  const Value x = g_.Data("x", IntType({2}));
  const Value n = g_.Data("n", IntType({}));
  const Value m = g_.Data("m", IntType({}));
  const Value f = g_.Data("f", {DataType::kFloat, {}});
  const Value ref = g_.RefData("ref", IntType({}));
  const Value pack = g_.Op("Pack", {{"x0", g_.Op("Negate", {{"x", n}})},
                                    {"x1", g_.Op("Random", {{"x", m}})},
                                    {"x2", f},
                                    {"x3", ref},
                                    {"x4", g_.Op("Shape", {{"x", x}})}});
  g_.Output({g_.Op("Zeros", {{"dims", pack}})});
  const Model model = g_.Build().value();
  const BoundGraph bound(model.graph, registry_);
  EXPECT_THAT(Names(model.graph, ShapeDecidingInputs(bound, NeededNodes(bound))),
              UnorderedElementsAre("n"));
}

TEST_F(NodeSelectionTest, FoldingStopsAtLargeResults) {
  g_.Output({g_.Op("Zeros", {{"dims", g_.Ints({1})}}, {}, "zeros")});
  const Model model = g_.Build().value();
  const Operator& op = *registry_.Find("Zeros");
  const Node& node = model.graph.node(model.graph.Find("zeros"));
  const auto limit = static_cast<int64_t>(kMaxFoldedBytes / 8);
  for (const int64_t elements : {limit, limit + 1}) {
    OpContext context = OpContext::Bind(node, op.schema).value();
    const Tensor dims = IntTensor({elements});
    context.set_in(0, dims.type());
    context.set_value(0, &dims);
    ASSERT_TRUE(op.infer(context).ok());
    const auto folded = FoldConstants(op, context);
    ASSERT_TRUE(folded.ok());
    EXPECT_EQ(folded->has_value(), elements == limit);
  }
}

TEST(AlignedTest, CopiesOnlyWhenNeeded) {
  const std::string path = testing::TempDir() + "/aligned_test_weights";
  std::ofstream(path, std::ios::binary) << std::string(32, '\1');
  const auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok());
  const Tensor even = Tensor::FromFile(IntType({2}), *file, 16);
  EXPECT_EQ(Aligned(even).data(), even.data());
  const Tensor odd = Tensor::FromFile(IntType({2}), *file, 8);
  EXPECT_NE(Aligned(odd).data(), odd.data());
  EXPECT_EQ(IntsIn(Aligned(odd)), IntsIn(odd));
}

TEST(NodeErrorTest, NamesTheNodeOnce) {
  const Status plain = Error(Code::kIo, "text");
  EXPECT_EQ(AtNode("a", "Add", "", plain).message(), "node \"a\" (Add): text");
  EXPECT_EQ(AtNode("a", "Add", "", AtNode("a", "Add", "", plain)).message(),
            "node \"a\" (Add): text");
  EXPECT_TRUE(AtNode("a", "Add", "", Status()).ok());
}

TEST(NodeErrorTest, SaysWhereTheNodeComesFromOnce) {
  const Status plain = Error(Code::kInternal, "text");
  const Status told = AtNode("a", "Add", "FX node \"add\"", plain);
  EXPECT_EQ(told.message(), "node \"a\" (Add) of FX node \"add\": text");
  EXPECT_EQ(AtNode("a", "Add", "FX node \"add\"", told).message(), told.message());
}

}  // namespace
}  // namespace npumesh
