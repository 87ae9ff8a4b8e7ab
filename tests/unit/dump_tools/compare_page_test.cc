#include "launch/dump/compare_page.h"
#include "graph/ops/builtin_ops.h"

#include <gmock/gmock.h>

#include "graph/ir/graph_builder.h"
#include "runtime/base/text/json.h"

namespace npumesh {
namespace {

using testing::HasSubstr;
using testing::Not;

Model Chain() {
  GraphBuilder g("a<b>");
  const Value x = g.Data("x", {DataType::kFloat, {2}});
  const Value first = g.Op("Neg", {{"x", x}}, {}, "first");
  const Value second = g.Op("Abs", {{"x", first}}, {}, "second<script>");
  g.Output({g.Op("Exp", {{"x", second}}, {}, "third")});
  return *g.Build();
}

RankComparison Compared(const Model& model) {
  MemorySource mine("mine"), golden("golden");
  for (const auto& [name, type] : {std::pair("first", "Neg"), {"second<script>", "Abs"}}) {
    const float wrong = std::string(name) == "first" ? 1.0f : 2.0f;
    const TensorType shape{DataType::kFloat, {2}};
    mine.Add(name, type, Side::kOutput, 0, Tensor::FromVector<float>(shape, {1, wrong}));
    golden.Add(name, type, Side::kOutput, 0, Tensor::FromVector<float>(shape, {1, 1}));
  }
  const OperatorOrder order = *OperatorOrder::FromGraph(model.graph, BuiltinOps());
  CompareOptions options;
  options.algorithms = {CompareAlgorithm::kCosineSimilarity};
  options.detailed = kDetailedOperators;
  return {3, "", *CompareSources(mine, golden, &order, options)};
}

nlohmann::json DataOf(const std::vector<RankComparison>& comparisons, int blamed,
                      const Graph* graph) {
  return nlohmann::json::parse(
      *ComparePageData(comparisons, blamed, graph, BuiltinOps(), {"typed", "1.2", "today"}));
}

nlohmann::json BoxNamed(const nlohmann::json& drawing, const std::string& name) {
  for (const nlohmann::json& box : drawing.at("boxes")) {
    if (box.at("name") == name) return box;
  }
  return nullptr;
}

TEST(ComparePage, MarksTheDivergenceAlongTheGraph) {
  const Model model = Chain();
  const nlohmann::json data = DataOf({Compared(model)}, 0, &model.graph);
  for (const char* drawing : {"near", "whole"}) {
    const nlohmann::json& shown = data.at("graph").at(drawing);
    EXPECT_EQ(BoxNamed(shown, "first").at("standing"), "same");
    EXPECT_EQ(BoxNamed(shown, "first").at("out"), nlohmann::json({"float32[2]"}));
    const nlohmann::json culprit = BoxNamed(shown, "second<script>");
    EXPECT_EQ(culprit.at("standing"), "origin");
    EXPECT_EQ(culprit.at("row"), 0);
    EXPECT_EQ(BoxNamed(shown, "third").at("standing"), "unseen");
    EXPECT_EQ(BoxNamed(shown, "third").at("row"), -1);
  }
  EXPECT_EQ(data.at("verdict").at("text").get<std::string>().find("second<script> (Abs) output 0"),
            0u);
  EXPECT_EQ(data.at("command"), "typed");
}

TEST(ComparePage, HasOnlyWhatDiffersInDetail) {
  const Model model = Chain();
  const nlohmann::json rank = DataOf({Compared(model)}, 0, nullptr).at("ranks").at(0);
  EXPECT_EQ(rank.at("rank"), 3);
  ASSERT_EQ(rank.at("rows").size(), 1u);
  EXPECT_EQ(rank.at("first"), 0);
  const nlohmann::json& tensor = rank.at("rows").at(0).at("tensors").at(0);
  EXPECT_EQ(tensor.at("differing"), 1);
  EXPECT_EQ(tensor.at("elements"), 2);
  const nlohmann::json sample = {{"at", "[1]"}, {"mine", "2"}, {"golden", "1"}};
  EXPECT_EQ(tensor.at("difference").at("samples"), nlohmann::json::array({sample}));
  EXPECT_EQ(tensor.at("difference").at("map"), nlohmann::json({0, 1}));
  ASSERT_EQ(rank.at("same").size(), 1u);
  EXPECT_EQ(rank.at("same").at(0).at(0), "first");
}

// A chain of 40: the culprit stands in the middle, and three operators on each side of it are near.
TEST(ComparePage, DrawsTheNeighbourhoodOfTheCulprit) {
  GraphBuilder g("long");
  const TensorType shape{DataType::kFloat, {1}};
  Value value = g.Data("x", shape);
  MemorySource mine("mine"), golden("golden");
  for (int i = 0; i < 40; ++i) {
    const std::string name = "op" + std::to_string(i);
    value = g.Op("Neg", {{"x", value}}, {}, name);
    mine.Add(name, "Neg", Side::kOutput, 0, Tensor::FromVector<float>(shape, {i < 20 ? 1.f : 2.f}));
    golden.Add(name, "Neg", Side::kOutput, 0, Tensor::FromVector<float>(shape, {1}));
  }
  g.Output({value});
  const Model model = *g.Build();
  const OperatorOrder order = *OperatorOrder::FromGraph(model.graph, BuiltinOps());
  const RankComparison one{0, "", *CompareSources(mine, golden, &order, {})};
  const nlohmann::json graph = DataOf({one}, 0, &model.graph).at("graph");
  EXPECT_EQ(graph.at("near").at("boxes").size(), 7u);
  EXPECT_EQ(graph.at("near").at("edges").size(), 6u);
  EXPECT_EQ(graph.at("whole").at("boxes").size(), 42u);
  EXPECT_TRUE(BoxNamed(graph.at("near"), "op16").is_null());
  EXPECT_EQ(BoxNamed(graph.at("near"), "op17").at("standing"), "same");
  EXPECT_EQ(BoxNamed(graph.at("near"), "op23").at("standing"), "consequence");
}

// Of 40 operators every third was compared; those between make no level.
TEST(ComparePage, WhatWasNotComparedMakesNoLevel) {
  GraphBuilder g("sparse");
  const TensorType shape{DataType::kFloat, {1}};
  Value value = g.Data("x", shape);
  MemorySource mine("mine"), golden("golden");
  for (int i = 0; i < 40; ++i) {
    const std::string name = "op" + std::to_string(i);
    value = g.Op("Neg", {{"x", value}}, {}, name);
    if (i % 3 != 0) continue;
    mine.Add(name, "Neg", Side::kOutput, 0, Tensor::FromVector<float>(shape, {i < 20 ? 1.f : 2.f}));
    golden.Add(name, "Neg", Side::kOutput, 0, Tensor::FromVector<float>(shape, {1}));
  }
  g.Output({value});
  const Model model = *g.Build();
  const OperatorOrder order = *OperatorOrder::FromGraph(model.graph, BuiltinOps());
  const RankComparison one{0, "", *CompareSources(mine, golden, &order, {})};
  const nlohmann::json near = DataOf({one}, 0, &model.graph).at("graph").at("near");
  EXPECT_EQ(BoxNamed(near, "op21").at("standing"), "origin");
  for (const char* shown : {"op12", "op13", "op30"}) {
    EXPECT_FALSE(BoxNamed(near, shown).is_null()) << shown;
  }
  for (const char* hidden : {"op11", "op31"}) EXPECT_TRUE(BoxNamed(near, hidden).is_null());
}

TEST(ComparePage, WithoutADifferenceThereIsNoNeighbourhood) {
  const Model model = Chain();
  RankComparison one = Compared(model);
  one.comparison.rows.pop_back();
  one.comparison.first = -1;
  const nlohmann::json data = DataOf({one}, -1, &model.graph);
  EXPECT_TRUE(data.at("verdict").is_null());
  EXPECT_TRUE(data.at("graph").at("near").is_null());
  EXPECT_EQ(data.at("ranks").at(0).at("first"), -1);
}

TEST(ComparePage, IsSelfContainedAndEscaped) {
  const Model model = Chain();
  const std::string page = *ComparePage({Compared(model)}, 0, &model.graph, BuiltinOps());
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, Not(HasSubstr("src=")));
  EXPECT_THAT(page, Not(HasSubstr("<link")));
  EXPECT_THAT(page, Not(HasSubstr("second<")));
  EXPECT_THAT(page, HasSubstr("rank 3: second&lt;script&gt; differs first"));
}

TEST(ComparePage, WithoutAGraphThereAreTables) {
  const Model model = Chain();
  EXPECT_TRUE(DataOf({Compared(model)}, 0, nullptr).at("graph").is_null());
}

}  // namespace
}  // namespace npumesh
