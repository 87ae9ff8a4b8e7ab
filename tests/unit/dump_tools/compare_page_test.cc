#include "launch/dump/compare_page.h"
#include "graph/ops/builtin_ops.h"

#include <gmock/gmock.h>

#include "graph/ir/graph_builder.h"

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
  return {3, "", *CompareSources(mine, golden, &order, options)};
}

TEST(ComparePage, DrawsTheDivergenceAlongTheGraph) {
  const Model model = Chain();
  const Result<std::string> page = ComparePage({Compared(model)}, 0, &model.graph, BuiltinOps());
  ASSERT_TRUE(page.ok()) << page.status().ToString();
  EXPECT_THAT(*page, HasSubstr("<g class=\"operator same\"><title>Neg first"));
  EXPECT_THAT(*page, HasSubstr("<g class=\"operator origin\"><title>Abs second&lt;script&gt;"));
  EXPECT_THAT(*page, HasSubstr("<g class=\"operator unseen\"><title>Exp third"));
  EXPECT_THAT(*page, HasSubstr("verdict: rank 3: second&lt;script&gt; (Abs) output 0"));
  EXPECT_THAT(*page, HasSubstr("<tr class=\"origin\">"));
}

TEST(ComparePage, IsSelfContainedAndEscaped) {
  const Model model = Chain();
  const std::string page = *ComparePage({Compared(model)}, 0, &model.graph, BuiltinOps());
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("src=")));
  EXPECT_THAT(page, Not(HasSubstr("<link")));
  EXPECT_THAT(page, Not(HasSubstr("second<")));
}

TEST(ComparePage, WithoutAGraphThereAreTables) {
  const Model model = Chain();
  const std::string page = *ComparePage({Compared(model)}, 0, nullptr, BuiltinOps());
  EXPECT_THAT(page, Not(HasSubstr("<svg")));
  EXPECT_THAT(page, HasSubstr("<table>"));
}

}  // namespace
}  // namespace npumesh
