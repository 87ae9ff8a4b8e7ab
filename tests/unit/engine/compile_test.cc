// What the compiler makes of a graph: folded chains, shapes, addresses.
#include <gmock/gmock.h>

#include "tests/unit/engine/engine_fixture.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using CompileTest = EngineTest;

TEST_F(CompileTest, FoldsShapeChains) {
  const Value x = g_.Data("x", IntType({-1, 3}));
  const Value n = g_.Op("Negate", {{"x", x}}, {}, "n");
  const Value shape = g_.Op("Shape", {{"x", n}});
  const Value rows = g_.Op("Pick", {{"x", shape}, {"i", g_.Int(0)}});
  const Value columns = g_.Op("Pick", {{"x", shape}, {"i", g_.Int(1)}});
  const Value turned = g_.Op("Pack", {{"x0", columns}, {"x1", rows}});
  g_.Output({g_.Op("Reshape", {{"x", n}, {"shape", turned}})});
  const Compiled model = Compile({IntType({2, 3})});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_THAT(StepNames(**model), ElementsAre("n"));
  EXPECT_EQ((*model)->output_types()[0], IntType({3, 2}));
  EXPECT_THAT((*model)->constants(), IsEmpty());
  EXPECT_THAT((*model)->value_dependent(), ElementsAre(false));
  EXPECT_THAT(Run({IntTensor({2, 3}, {1, 2, 3, 4, 5, 6})}),
              ElementsAre(ElementsAre(-1, -2, -3, -4, -5, -6)));
}

TEST_F(CompileTest, NodesThatOnlyFedAShapeAreDropped) {
  const Value x = g_.Data("x", IntType({2}));
  const Value n = g_.Op("Negate", {{"x", x}}, {}, "n");
  g_.Output({g_.Op("Shape", {{"x", n}})});
  const Compiled model = Compile({IntType({2})});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_THAT(StepNames(**model), IsEmpty());
  EXPECT_THAT(Run({IntTensor({7, 8})}), ElementsAre(ElementsAre(2)));
}

TEST_F(CompileTest, EvaluatesConstantNodesOnce) {
  const Value a = g_.Const("a", IntTensor({1, 2}));
  const Value sum = g_.Op("Plus", {{"x1", a}, {"x2", g_.Op("Negate", {{"x", a}})}});
  g_.Output({g_.Op("Plus", {{"x1", sum}, {"x2", g_.Data("x", IntType({2}))}}, {}, "add")});
  const Compiled model = Compile({IntType({2})});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_THAT(StepNames(**model), ElementsAre("add"));
  ASSERT_EQ((*model)->constants().size(), 1u);
  EXPECT_THAT(IntsIn((*model)->constants()[0]), ElementsAre(0, 0));
  EXPECT_EQ((*model)->constant_bytes(), 16u);
}

TEST_F(CompileTest, DoesNotFoldWhatChangesFromRunToRun) {
  const Value a = g_.Const("a", IntTensor({1, 2}));
  g_.Output({g_.Op("Random", {{"x", a}}, {}, "random"), g_.Op("Plus", {{"x1", a}, {"x2", a}})});
  const Compiled model = Compile({});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_THAT(StepNames(**model), ElementsAre("random"));
}

TEST_F(CompileTest, ValuesOfInputsDecideShapes) {
  const Value n = g_.Data("n", IntType({}));
  const Value x = g_.Data("x", IntType({-1}));
  const Value dims = g_.Op("Pack", {{"x0", g_.Op("Negate", {{"x", n}})}});
  g_.Output({g_.Op("Plus", {{"x1", x}, {"x2", g_.Op("Zeros", {{"dims", dims}})}})});
  for (const int64_t length : {2, 3}) {
    const std::vector<int64_t> ones(static_cast<size_t>(length), 1);
    const std::vector<Tensor> inputs = {IntTensor(Shape(), {-length}), IntTensor(ones)};
    const Compiled model = CompileFor(inputs);
    ASSERT_TRUE(model.ok()) << model.status().ToString();
    EXPECT_THAT((*model)->value_dependent(), ElementsAre(true, false));
    EXPECT_THAT(Run(inputs), ElementsAre(ones));
  }
}

TEST_F(CompileTest, OutputsMayRepeatAndBeInputsOrConstants) {
  const Value x = g_.Data("x", IntType({2}));
  const Value c = g_.Const("c", IntTensor({5, 6}));
  const Value n = g_.Op("Negate", {{"x", x}});
  const Value view = g_.Op("Reshape", {{"x", n}, {"shape", g_.Ints({2, 1})}});
  g_.Output({n, x, c, n, view});
  const Compiled model = Compile({IntType({2})});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const std::vector<Address>& outputs = (*model)->outputs();
  EXPECT_EQ(outputs[0], outputs[3]);
  EXPECT_EQ(outputs[0], outputs[4]);
  EXPECT_EQ(outputs[1], (Address{Address::Kind::kInput, 0}));
  EXPECT_EQ(outputs[2].kind, Address::Kind::kConstant);
  EXPECT_THAT(Run({IntTensor({1, 2})}),
              ElementsAre(ElementsAre(-1, -2), ElementsAre(1, 2), ElementsAre(5, 6),
                          ElementsAre(-1, -2), ElementsAre(-1, -2)));
}

TEST_F(CompileTest, ElementwiseChainsStayInPlace) {
  const Value x = g_.Data("x", IntType({64}));
  Value y = x;
  for (int i = 0; i < 5; ++i) y = g_.Op("Negate", {{"x", y}});
  g_.Output({y});
  const Compiled model = Compile({IntType({64})});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_EQ((*model)->arena_bytes(), 512u);
}

TEST_F(CompileTest, OtherOperatorsDoNotOverwriteTheirInput) {
  const Value x = g_.Data("x", IntType({64}));
  const Value a = g_.Op("Move", {{"x", x}});
  g_.Output({g_.Op("Move", {{"x", a}})});
  const Compiled model = Compile({IntType({64})});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_EQ((*model)->arena_bytes(), 1024u);
}

TEST_F(CompileTest, OverwrittenConstantsAreCopied) {
  const Value c = g_.Const("c", IntTensor({10, 20}));
  const Value x = g_.Data("x", IntType({2}));
  const Value changed = g_.Op("Accumulate", {{"ref", c}, {"value", x}}, {}, "change");
  g_.Output({changed, c});
  const Compiled model = Compile({IntType({2})});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_THAT(StepNames(**model), ElementsAre("change/copy", "change"));
  EXPECT_THAT(Run({IntTensor({1, 2})}), ElementsAre(ElementsAre(11, 22), ElementsAre(10, 20)));
}

TEST_F(CompileTest, ActivationsMayBeOverwritten) {
  const Value x = g_.Data("x", IntType({2}));
  const Value moved = g_.Op("Move", {{"x", x}});
  const Value before = g_.Op("Negate", {{"x", moved}});
  const Value changed = g_.Op("Accumulate", {{"ref", moved}, {"value", x}});
  g_.Output({changed, before});
  EXPECT_THAT(Run({IntTensor({1, 2})}), ElementsAre(ElementsAre(2, 4), ElementsAre(-1, -2)));
}

TEST_F(CompileTest, LongChainsOfViews) {
  const Value x = g_.Data("x", IntType({2}));
  const Value shape = g_.Ints({2});
  Value y = x;
  for (int i = 0; i < 20000; ++i) {
    y = g_.Op("Reshape", {{"x", y}, {"shape", shape}}, {}, fmt::format("view{}", i));
  }
  g_.Output({y, g_.Op("Negate", {{"x", y}})});
  EXPECT_THAT(Run({IntTensor({1, 2})}), ElementsAre(ElementsAre(1, 2), ElementsAre(-1, -2)));
}

TEST_F(CompileTest, EmptyTensorsAreFine) {
  const Value x = g_.Data("x", IntType({-1}));
  g_.Output({g_.Op("Negate", {{"x", x}}), g_.Op("Total", {{"x", x}}), x});
  EXPECT_THAT(Run({IntTensor(std::vector<int64_t>())}),
              ElementsAre(IsEmpty(), ElementsAre(0), IsEmpty()));
}

// A graph of many random nodes gives the same numbers as evaluating it node by node.
TEST_F(CompileTest, LargeGraphsMatchDirectEvaluation) {
  std::vector<Value> values = {g_.Data("x", IntType({8}))};
  std::vector<std::vector<int64_t>> expected = {{1, 2, 3, 4, 5, 6, 7, 8}};
  uint32_t state = 12345;
  const auto below = [&](size_t n) {
    state = state * 1664525 + 1013904223;
    return (state >> 16) % n;
  };
  for (int i = 0; i < 300; ++i) {
    // Mostly recent values, so that others die and their memory is used again.
    const size_t recent = std::min<size_t>(values.size(), 6);
    const size_t a = values.size() - 1 - below(recent);
    const size_t b = values.size() - 1 - below(recent);
    std::vector<int64_t> result(8);
    if (below(3) == 0) {
      values.push_back(g_.Op(below(2) == 0 ? "Move" : "Random", {{"x", values[a]}}));
      result = expected[a];
    } else if (below(2) == 0) {
      values.push_back(g_.Op("Negate", {{"x", values[a]}}));
      for (size_t k = 0; k < 8; ++k) result[k] = -expected[a][k];
    } else {
      const Value negative = g_.Op("Negate", {{"x", values[b]}});
      values.push_back(g_.Op("Plus", {{"x1", values[a]}, {"x2", negative}}));
      for (size_t k = 0; k < 8; ++k) result[k] = expected[a][k] - expected[b][k];
    }
    expected.push_back(result);
  }
  const size_t last = values.size() - 1;
  g_.Output({values[last], values[last / 2], values[last]});
  EXPECT_THAT(Run({IntTensor(expected[0])}),
              ElementsAre(expected[last], expected[last / 2], expected[last]));
}

}  // namespace
}  // namespace npumesh
