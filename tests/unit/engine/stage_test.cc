// What observers of a compilation see, and what its switches change.
#include <gmock/gmock.h>

#include <map>

#include "tests/unit/engine/engine_fixture.h"

namespace npumesh {
namespace {

using testing::ElementsAre;

std::vector<std::string> NodeNames(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) {
    if (!node.removed) names.push_back(node.name);
  }
  return names;
}

class StageTest : public EngineTest {
 protected:
  // out = x + (-w) + v, and a dead node.
  StageTest() {
    const Value x = g_.Data("x", IntType({-1}));
    const Value w = g_.Const("w", IntTensor({1, 2}));
    const Value v = g_.Const("v", IntTensor({10, 20}));
    const Value minus = g_.Op("Negate", {{"x", w}}, {}, "minus");
    g_.Op("Negate", {{"x", x}}, {}, "dead");
    const Value sum = g_.Op("Plus", {{"x1", x}, {"x2", minus}}, {}, "sum");
    g_.Output({g_.Op("Plus", {{"x1", sum}, {"x2", v}}, {}, "out")});
    options_.observer = [this](std::string_view stage, const Model& model) {
      stages_.emplace_back(stage);
      EXPECT_TRUE(model.graph.Verify().ok()) << stage;
      graphs_.emplace(stage, model);
    };
  }

  std::vector<std::string> stages_;
  std::map<std::string, Model, std::less<>> graphs_;
};

TEST_F(StageTest, EachStageIsSeenOnceInOrder) {
  ASSERT_TRUE(CompileFor({IntTensor({5, 6})}).ok());
  EXPECT_THAT(stages_,
              ElementsAre("PreRunBegin", "AfterInfershape", "PreRunAfterOptimizeOriginalGraph",
                          "PreRunAfterOptimizeGraphBeforeBuild", "Build"));
}

TEST_F(StageTest, GraphsAreWhatTheStageLeftOfThem) {
  ASSERT_TRUE(CompileFor({IntTensor({5, 6})}).ok());
  EXPECT_THAT(NodeNames(graphs_["PreRunBegin"].graph),
              ElementsAre("x", "w", "v", "minus", "dead", "sum", "out", "NetOutput"));
  const Graph& typed = graphs_["AfterInfershape"].graph;
  EXPECT_EQ(typed.node(typed.Find("x")).output_descs[0].shape, Shape({2}));
  EXPECT_EQ(typed.node(typed.Find("sum")).output_descs[0].dtype, DataType::kInt64);
  EXPECT_EQ(typed.node(typed.Find("sum")).input_descs[1].shape, Shape({2}));
  const Graph& optimized = graphs_["PreRunAfterOptimizeOriginalGraph"].graph;
  EXPECT_THAT(NodeNames(optimized),
              ElementsAre("x", "v", "minus_ConstantFolding_0", "sum", "out", "NetOutput"));
  const Node& folded = optimized.node(optimized.Find("minus_ConstantFolding_0"));
  EXPECT_EQ(folded.type, "Const");
  ASSERT_NE(folded.FindAttr("value"), nullptr);
  const Graph& built = graphs_["Build"].graph;
  EXPECT_EQ(built.node(built.Find("sum")).IntsAttr("output_i"), std::vector<int64_t>{0});
}

TEST_F(StageTest, WhatIsDumpedComputesTheSame) {
  ASSERT_THAT(Run({IntTensor({5, 6})}), ElementsAre(std::vector<int64_t>{14, 24}));
  for (const auto& [stage, model] : graphs_) {
    auto again = CompiledModel::Compile(model, registry_, {IntType({2})}, {}, nullptr, {});
    ASSERT_TRUE(again.ok()) << stage << again.status().message();
    auto executor = Executor::Create(**again, memory_);
    ASSERT_TRUE(executor.ok());
    Write(**executor, 0, IntTensor({5, 6}));
    ASSERT_TRUE((*executor)->Run().ok());
    EXPECT_EQ(Read(**again, **executor, 0), (std::vector<int64_t>{14, 24})) << stage;
  }
}

TEST_F(StageTest, WithoutFoldingOperatorsOfConstantsRun) {
  options_.fold_constants = false;
  const auto model = CompileFor({IntTensor({5, 6})});
  ASSERT_TRUE(model.ok());
  EXPECT_THAT(StepNames(**model), ElementsAre("minus", "sum", "out"));
  EXPECT_THAT(Run({IntTensor({5, 6})}), ElementsAre(std::vector<int64_t>{14, 24}));
  EXPECT_THAT(NodeNames(graphs_["PreRunAfterOptimizeOriginalGraph"].graph),
              ElementsAre("x", "w", "v", "minus", "sum", "out", "NetOutput"));
}

TEST_F(StageTest, DeadNodesCanBeKept) {
  options_.drop_dead_nodes = false;
  const auto model = CompileFor({IntTensor({5, 6})});
  ASSERT_TRUE(model.ok());
  EXPECT_THAT(StepNames(**model), ElementsAre("dead", "sum", "out"));
  EXPECT_THAT(Run({IntTensor({5, 6})}), ElementsAre(std::vector<int64_t>{14, 24}));
}

TEST_F(StageTest, AFoldedNodeNeverTakesTheNameOfAnother) {
  g_ = GraphBuilder();
  const Value x = g_.Data("x", IntType({2}));
  const Value w = g_.Const("w", IntTensor({1, 2}));
  const Value a = g_.Op("Negate", {{"x", w}}, {}, "a");
  const Value taken = g_.Op("Plus", {{"x1", x}, {"x2", a}}, {}, "a_ConstantFolding_0");
  g_.Output({taken});
  EXPECT_THAT(Run({IntTensor({5, 6})}), ElementsAre(std::vector<int64_t>{4, 4}));
  EXPECT_THAT(NodeNames(graphs_["Build"].graph),
              ElementsAre("x", "a_ConstantFolding_0_", "a_ConstantFolding_0", "NetOutput"));
}

TEST_F(StageTest, ShapesAreKnownWithoutFolding) {
  options_.fold_constants = false;
  g_ = GraphBuilder();
  const Value x = g_.Data("x", IntType({-1, 2}));
  const Value shape = g_.Op("Shape", {{"x", x}}, {}, "shape");
  g_.Output({g_.Op("Zeros", {{"dims", shape}}, {}, "zeros")});
  EXPECT_THAT(Run({IntTensor(Shape({1, 2}), {5, 6})}), ElementsAre(std::vector<int64_t>{0, 0}));
}

}  // namespace
}  // namespace npumesh
