#include "graph/compare/measures/comparison.h"
#include "graph/ops/builtin_ops.h"

#include <gmock/gmock.h>

#include "graph/ir/graph_builder.h"
#include "tests/unit/compare/float_tensor.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// x -> a -> c, x -> b -> c: file order x, b, a, c.
Model Graph4() {
  GraphBuilder g;
  const Value x = g.Data("x", {DataType::kFloat, {2}});
  const Value b = g.Op("Neg", {{"x", x}}, {}, "b");
  const Value a = g.Op("Neg", {{"x", x}}, {}, "a");
  g.Output({g.Op("Add", {{"x1", a}, {"x2", b}}, {}, "c")});
  return *g.Build();
}

MemorySource Source(float a, float b, float c) {
  MemorySource source("memory");
  source.Add("a", "Neg", Side::kOutput, 0, Floats({a, 1}));
  source.Add("b", "Neg", Side::kOutput, 0, Floats({b, 1}));
  source.Add("c", "Add", Side::kOutput, 0, Floats({c, 1}));
  return source;
}

class InGraph : public testing::Test {
 protected:
  InGraph() : model_(Graph4()), order_(*OperatorOrder::FromGraph(model_.graph, BuiltinOps())) {}
  Comparison Compare(const TensorSource& mine, const TensorSource& golden,
                     const CompareOptions& options = {}) {
    Result<Comparison> comparison = CompareSources(mine, golden, &order_, options);
    EXPECT_TRUE(comparison.ok()) << comparison.status().ToString();
    return *std::move(comparison);
  }
  Model model_;
  OperatorOrder order_;
};

TEST_F(InGraph, NothingDiffers) {
  const Comparison same = Compare(Source(1, 2, 3), Source(1, 2, 3));
  EXPECT_EQ(same.First(), nullptr);
  ASSERT_EQ(same.rows.size(), 3u);
  EXPECT_EQ(same.rows[0].key, "b");  // topological order, not that of the source
}

TEST_F(InGraph, TheFirstIsBlamedAndNotWhatFollows) {
  const Comparison differs = Compare(Source(9, 2, 11), Source(1, 2, 3));
  ASSERT_NE(differs.First(), nullptr);
  EXPECT_EQ(differs.First()->key, "a");
  EXPECT_EQ(differs.First()->standing, Standing::kOrigin);
  EXPECT_EQ(differs.rows[0].standing, Standing::kSame);
  EXPECT_EQ(differs.rows[2].standing, Standing::kConsequence);
  ASSERT_NE(differs.First()->Worst(), nullptr);
  EXPECT_EQ(differs.First()->Worst()->distance.max_abs, 8);
}

TEST_F(InGraph, TwoBranchesAreTwoOrigins) {
  const Comparison differs = Compare(Source(9, 9, 18), Source(1, 2, 3));
  EXPECT_EQ(differs.First()->key, "b");
  EXPECT_EQ(differs.rows[1].standing, Standing::kOrigin);
  EXPECT_EQ(differs.rows[2].standing, Standing::kConsequence);
}

TEST_F(InGraph, AllowedDifferencesAreNone) {
  CompareOptions options;
  options.allowance.absolute = 10;
  EXPECT_EQ(Compare(Source(9, 2, 11), Source(1, 2, 3), options).First(), nullptr);
  options.allowance = {};
  options.reorder = true;
  EXPECT_EQ(Compare(Source(1.00001f, 2, 3), Source(1, 2, 3), options).First(), nullptr);
  EXPECT_NE(Compare(Source(1.001f, 2, 3), Source(1, 2, 3), options).First(), nullptr);
}

TEST_F(InGraph, OperatorsOfOneSideAreListed) {
  MemorySource mine = Source(1, 2, 3);
  mine.Add("extra", "Neg", Side::kOutput, 0, Floats({1}));
  MemorySource golden = Source(1, 2, 3);
  golden.Add("gold", "Neg", Side::kOutput, 0, Floats({1}));
  const Comparison comparison = Compare(mine, golden);
  EXPECT_THAT(comparison.only_mine, ElementsAre("extra"));
  EXPECT_THAT(comparison.only_golden, ElementsAre("gold"));
  EXPECT_EQ(comparison.First(), nullptr);
}

TEST_F(InGraph, AnotherShapeIsADifference) {
  MemorySource golden = Source(1, 2, 3);
  golden.Add("a", "Neg", Side::kOutput, 0, Floats({1, 1, 1}));
  const Comparison comparison = Compare(Source(1, 2, 3), golden);
  EXPECT_EQ(comparison.First()->key, "a");
  EXPECT_THAT(comparison.First()->Worst()->distance.reason, HasSubstr("against"));
}

TEST_F(InGraph, AllAlgorithmsAreMeasured) {
  CompareOptions options;
  options.algorithms.assign(kAlgorithms.begin(), kAlgorithms.end());
  const Comparison comparison = Compare(Source(3, 2, 3), Source(1, 2, 3), options);
  ASSERT_EQ(comparison.rows[1].tensors[0].measurements.size(), kAlgorithms.size());
  EXPECT_EQ(comparison.rows[1].tensors[0].measurements[1].text, "2.000000");
}

TEST(Comparison, DumpedInputsTellTheOriginWithoutAGraph) {
  // d runs last and sees only x, so it is an origin although a differs before it.
  const auto source = [](float a, float d_in, float d) {
    MemorySource memory("memory");
    memory.Add("a", "Neg", Side::kInput, 0, Floats({1}));
    memory.Add("a", "Neg", Side::kOutput, 0, Floats({a}));
    memory.Add("d", "Neg", Side::kInput, 0, Floats({d_in}));
    memory.Add("d", "Neg", Side::kOutput, 0, Floats({d}));
    return memory;
  };
  const MemorySource golden = source(1, 5, 6);
  Result<Comparison> independent = CompareSources(source(2, 5, 7), golden, nullptr, {});
  ASSERT_TRUE(independent.ok());
  EXPECT_EQ(independent->rows[1].standing, Standing::kOrigin);
  Result<Comparison> passed_on = CompareSources(source(2, 4, 7), golden, nullptr, {});
  EXPECT_EQ(passed_on->rows[1].standing, Standing::kConsequence);
  Result<Comparison> overwritten = CompareSources(source(1, 4, 7), golden, nullptr, {});
  EXPECT_EQ(overwritten->rows[1].standing, Standing::kOrigin);
  EXPECT_TRUE(overwritten->rows[1].inputs_differ);
}

TEST(Comparison, NothingInCommonIsAnError) {
  MemorySource mine("mine"), golden("golden");
  mine.Add("a", "Neg", Side::kOutput, 0, Floats({1}));
  golden.Add("b", "Neg", Side::kOutput, 0, Floats({1}));
  const Status status = CompareSources(mine, golden, nullptr, {}).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("mine and golden have no operator in common"));
}

Comparison FirstAt(const std::string& type, int place) {
  Comparison comparison;
  comparison.rows.resize(static_cast<size_t>(place) + 1);
  comparison.rows.back().type = type;
  comparison.first = place;
  return comparison;
}

TEST(RankToBlame, PrefersAnOperatorOfTheRankItself) {
  EXPECT_EQ(RankToBlame({Comparison(), Comparison()}, nullptr), -1);
  EXPECT_EQ(RankToBlame({FirstAt("HcomAllReduce", 4), FirstAt("MatMul", 3)}, nullptr), 1);
  // Other ranks may run other graphs, where the collective stands earlier.
  EXPECT_EQ(RankToBlame({FirstAt("HcomAllReduce", 1), FirstAt("MatMul", 3)}, nullptr), 1);
  EXPECT_EQ(RankToBlame({FirstAt("HcomAllReduce", 8), FirstAt("HcomAllReduce", 4)}, nullptr), 1);
  EXPECT_EQ(RankToBlame({FirstAt("MatMul", 3), FirstAt("MatMul", 3)}, nullptr), 0);
}

}  // namespace
}  // namespace npumesh
