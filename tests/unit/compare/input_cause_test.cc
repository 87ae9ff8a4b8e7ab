// Why an operator saw other inputs than its counterpart.
#include "graph/compare/replay/input_cause.h"
#include "graph/ops/builtin_ops.h"

#include <gmock/gmock.h>

#include "graph/ir/graph_builder.h"

namespace npumesh {
namespace {

using testing::HasSubstr;
using Cause = InputCause::Kind;

TensorType Square() {
  return {DataType::kFloat, {2, 2}};
}

Tensor Values(std::vector<float> values) {
  return Tensor::FromVector(Square(), values);
}

// sum = (x + x) reshaped, times w from a file.
Model SmallGraph() {
  GraphBuilder g;
  const Value x = g.Data("x", Square());
  const Value sum = g.Op("Add", {{"x1", x}, {"x2", x}}, {}, "sum");
  const Value view = g.Op("Reshape", {{"x", sum}, {"shape", g.Ints({2, 2})}}, {}, "view");
  const Value w = g.FileConstant("arg7_1", Square(), "good/rank_2/arg7_1");
  g.Output({g.Op("MatMul", {{"x1", view}, {"x2", w}}, {}, "product")});
  return *g.Build();
}

class Causes : public testing::Test {
 protected:
  Causes() : model_(SmallGraph()) {}

  // Both sides as they should be; the tests change one.
  static MemorySource Source(bool with_sum = true) {
    MemorySource source("memory");
    if (with_sum) source.Add("sum", "Add", Side::kInput, 0, Values({1, 2, 3, 4}));
    if (with_sum) source.Add("sum", "Add", Side::kOutput, 0, Values({2, 4, 6, 8}));
    source.Add("product", "MatMul", Side::kInput, 0, Values({2, 4, 6, 8}));
    source.Add("product", "MatMul", Side::kInput, 1, Values({1, 0, 0, 1}));
    source.Add("product", "MatMul", Side::kOutput, 0, Values({2, 4, 6, 8}));
    return source;
  }

  std::optional<InputCause> CauseOf(const TensorSource& mine, bool with_graph = true,
                                    const TensorSource& golden = Source(), int my_ranks = 1) {
    const OperatorOrder order = *OperatorOrder::FromGraph(model_.graph, BuiltinOps());
    const Comparison comparison = *CompareSources(mine, golden, &order, {});
    EXPECT_NE(comparison.First(), nullptr);
    const std::optional<InputCause> cause =
        FindInputCause(comparison, *comparison.First(), with_graph ? &model_.graph : nullptr,
                       BuiltinOps(), my_ranks, 1);
    text_ = cause ? ToText(*cause, my_ranks, 1) : "";
    return cause;
  }

  Model model_;
  std::string text_;
};

TEST_F(Causes, AChangedWeightIsNamedWithItsFileAndElement) {
  MemorySource mine = Source();
  mine.Add("product", "MatMul", Side::kInput, 1, Values({1, 0, 5, 1}));
  mine.Add("product", "MatMul", Side::kOutput, 0, Values({0, 0, 0, 0}));
  const std::optional<InputCause> cause = CauseOf(mine);
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->kind, Cause::kWeight);
  EXPECT_EQ(text_, "its weight arg7_1 (rank_2/arg7_1) differs in 1 of 4 elements, first [1,0]");
}

TEST_F(Causes, AnotherInputOfTheGraph) {
  MemorySource mine = Source();
  mine.Add("sum", "Add", Side::kInput, 0, Values({1, 9, 3, 4}));
  ASSERT_EQ(CauseOf(mine)->kind, Cause::kGraphInput);
  EXPECT_EQ(text_, "the graph's input x differs in 1 of 4 elements, first [0,1]");
}

// Through a view, which has no step.
TEST_F(Causes, AProducerThatWasNotDumped) {
  MemorySource mine = Source(false);
  mine.Add("product", "MatMul", Side::kInput, 0, Values({2, 4, 6, 9}));
  ASSERT_EQ(CauseOf(mine)->kind, Cause::kNotDumped);
  EXPECT_EQ(text_,
            "its input 0 differs in 1 of 4 elements, first [1,1]; sum, which makes it, is not in "
            "both dumps");
}

TEST_F(Causes, MemoryThatWasOverwritten) {
  MemorySource mine = Source();
  mine.Add("product", "MatMul", Side::kInput, 0, Values({2, 4, 6, 9}));
  ASSERT_EQ(CauseOf(mine)->kind, Cause::kOverwritten);
  EXPECT_THAT(text_, HasSubstr("although sum, which makes it, left the same"));
}

TEST_F(Causes, WithoutAGraphItIsUnknown) {
  MemorySource mine = Source();
  mine.Add("product", "MatMul", Side::kInput, 1, Values({1, 0, 5, 1}));
  ASSERT_EQ(CauseOf(mine, false)->kind, Cause::kUnknown);
  EXPECT_THAT(text_, HasSubstr("although no dumped operator before it does"));
}

TEST_F(Causes, AnOperatorWithTheSameInputsIsToBlameItself) {
  MemorySource mine = Source();
  mine.Add("product", "MatMul", Side::kOutput, 0, Values({0, 0, 0, 0}));
  EXPECT_EQ(CauseOf(mine), std::nullopt);
}

TEST_F(Causes, ShapesThatDifferByTheRanksAreSharded) {
  MemorySource mine = Source();
  const TensorType half{DataType::kFloat, {2, 1}};
  mine.Add("product", "MatMul", Side::kInput, 1, Tensor::FromVector<float>(half, {1, 0}));
  mine.Add("product", "MatMul", Side::kOutput, 0, Tensor::FromVector<float>(half, {2, 6}));
  ASSERT_EQ(CauseOf(mine, true, Source(), 2)->kind, Cause::kSharded);
  EXPECT_EQ(text_,
            "its input 1 is float32[2,1] on each of 2 ranks and float32[2,2] on each of 1: sharded "
            "along axis 1; use npumesh run --golden, which puts the pieces together");
  EXPECT_NE(CauseOf(mine, true, Source(), 1)->kind, Cause::kSharded);
  EXPECT_NE(CauseOf(mine, true, Source(), 4)->kind, Cause::kSharded);
}

}  // namespace
}  // namespace npumesh
