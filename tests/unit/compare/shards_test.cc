#include "graph/compare/measures/shards.h"

#include <gmock/gmock.h>

#include <numeric>

#include "graph/compare/golden/golden.h"
#include "graph/ir/graph_builder.h"
#include "graph/ops/builtin_ops.h"
#include "runtime/base/float16.h"

namespace npumesh {
namespace {

using Kind = Sharding::Kind;

Tensor Whole(Shape shape) {
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  std::iota(values.begin(), values.end(), 1.0f);
  return Tensor::FromVector(TensorType{DataType::kFloat, std::move(shape)}, values);
}

std::vector<Tensor> Split(const Tensor& whole, const Sharding& sharding, int ranks) {
  std::vector<Tensor> parts;
  for (int rank = 0; rank < ranks; ++rank) parts.push_back(PartOf(whole, sharding, rank, ranks));
  return parts;
}

Tensor Changed(const Tensor& tensor, size_t element, float value) {
  std::vector<float> values(tensor.as<float>().begin(), tensor.as<float>().end());
  values[element] = value;
  return Tensor::FromVector(tensor.type(), values);
}

TEST(PartOf, CutsAlongTheAxisInBlocks) {
  const Tensor whole = Whole({2, 8});
  EXPECT_THAT(PartOf(whole, {Kind::kPieces, 1, 1}, 1, 4).as<float>(),
              testing::ElementsAre(3, 4, 11, 12));
  EXPECT_THAT(PartOf(whole, {Kind::kPieces, 1, 2}, 1, 4).as<float>(),
              testing::ElementsAre(2, 6, 10, 14));
  EXPECT_THAT(PartOf(whole, {Kind::kPieces, 0, 1}, 1, 2).as<float>(),
              testing::ElementsAre(9, 10, 11, 12, 13, 14, 15, 16));
}

TEST(FitShards, FindsEverySharding) {
  const Tensor whole = Whole({4, 16});
  const std::vector<Sharding> shardings = {{Kind::kEqual},
                                           {Kind::kPieces, 0, 1},
                                           {Kind::kPieces, 1, 1},
                                           {Kind::kPieces, 1, 2},
                                           {Kind::kPieces, 1, 4}};
  for (const Sharding& sharding : shardings) {
    const ShardFit fit = FitShards(Split(whole, sharding, 4), whole, {});
    EXPECT_EQ(fit.sharding, sharding) << ToText(fit.sharding);
    EXPECT_TRUE(fit.same());
    EXPECT_EQ(fit.RankToBlame(), -1);
  }
}

TEST(FitShards, NamesTheRankThatDiffers) {
  const Tensor whole = Whole({4, 16});
  for (const Sharding& sharding : {Sharding{Kind::kEqual}, Sharding{Kind::kPieces, 1, 2}}) {
    for (size_t rank = 0; rank < 4; ++rank) {
      std::vector<Tensor> parts = Split(whole, sharding, 4);
      parts[rank] = Changed(parts[rank], 3, -64);
      const ShardFit fit = FitShards(parts, whole, {});
      EXPECT_EQ(fit.sharding, sharding);
      EXPECT_EQ(fit.RankToBlame(), static_cast<int>(rank));
      EXPECT_EQ(fit.distance.differing, 1);
    }
  }
}

TEST(FitShards, PartialSums) {
  const Tensor whole = Whole({8});
  std::vector<Tensor> parts;
  for (int rank = 0; rank < 4; ++rank) {
    std::vector<float> part(whole.as<float>().begin(), whole.as<float>().end());
    for (float& value : part) value = value / 2 + (rank == 0 ? -value : 0);
    parts.push_back(Tensor::FromVector(whole.type(), part));
  }
  EXPECT_EQ(FitShards(parts, whole, {}).sharding.kind, Kind::kSum);
  parts[2] = Changed(parts[2], 5, 100);
  const ShardFit fit = FitShards(parts, whole, {});
  EXPECT_EQ(fit.sharding.kind, Kind::kSum);
  EXPECT_FALSE(fit.same());
  EXPECT_EQ(fit.RankToBlame(), -1);
}

// Regression: wrong partial sums were taken for wholes, all wrong, and rank 0 was blamed.
TEST(FitShards, PartialSumsThatAreAllWrong) {
  const Tensor whole = Whole({8});
  const std::vector<Tensor> parts = {Tensor::FromVector(whole.type(), std::vector<float>(8, 100)),
                                     Tensor::FromVector(whole.type(), std::vector<float>(8, 200))};
  const ShardFit fit = FitShards(parts, whole, {});
  EXPECT_EQ(fit.sharding.kind, Kind::kSum);
  EXPECT_FALSE(fit.alike);
  EXPECT_THAT(fit.OddRanks(), testing::IsEmpty());
}

TEST(FitShards, TheGraphSaysHowWrongPartialResultsAreReduced) {
  const Tensor whole = Whole({8});
  // The least of these is the whole's first element, by chance.
  const std::vector<Tensor> parts = {
      Changed(Tensor::FromVector(whole.type(), std::vector<float>(8, 100)), 0, 1),
      Tensor::FromVector(whole.type(), std::vector<float>(8, 200))};
  EXPECT_EQ(FitShards(parts, whole, {}).sharding.kind, Kind::kMin);
  EXPECT_EQ(FitShards(parts, whole, {}, Kind::kSum).sharding.kind, Kind::kSum);
  EXPECT_EQ(FitShards(parts, whole, {}, Kind::kMax).sharding.kind, Kind::kMax);
  // What fits is what it is, whatever the graph says.
  EXPECT_EQ(FitShards({whole, whole}, whole, {}, Kind::kSum).sharding.kind, Kind::kEqual);
}

TEST(FitShards, RanksThatAreAllWrongAreNotToldApart) {
  const Tensor whole = Whole({4, 16});
  const std::vector<Tensor> same(4, Changed(whole, 3, -64));
  const ShardFit fit = FitShards(same, whole, {});
  EXPECT_EQ(fit.sharding.kind, Kind::kEqual);
  EXPECT_TRUE(fit.alike);
  EXPECT_EQ(fit.RankToBlame(), -1);
  std::vector<Tensor> pieces = Split(whole, {Kind::kPieces, 1, 1}, 4);
  for (Tensor& piece : pieces) piece = Changed(piece, 3, -64);
  EXPECT_EQ(FitShards(pieces, whole, {}).RankToBlame(), -1);
  // A rank alone has no other that is right.
  EXPECT_EQ(FitShards({Changed(whole, 3, -64)}, whole, {}).RankToBlame(), 0);
}

TEST(FitShards, PartialMaximaAndMinima) {
  const Tensor whole = Whole({4});
  const std::vector<Tensor> low = {Changed(Changed(whole, 0, -9), 1, -9),
                                   Changed(Changed(whole, 2, -9), 3, -9)};
  EXPECT_EQ(FitShards(low, whole, {}).sharding.kind, Kind::kMax);
  const std::vector<Tensor> high = {Changed(whole, 0, 99), Changed(whole, 3, 99)};
  EXPECT_EQ(FitShards(high, whole, {}).sharding.kind, Kind::kMin);
}

// Regression: one wrong element, lower than all others, was taken for a partial maximum.
TEST(FitShards, AWrongElementIsNoPartialMaximum) {
  const Tensor whole = Whole({4});
  const ShardFit fit = FitShards({whole, Changed(whole, 1, -50), whole}, whole, {});
  EXPECT_EQ(fit.sharding.kind, Kind::kEqual);
  EXPECT_EQ(fit.RankToBlame(), 1);
}

TEST(FitShards, WithinAnAllowance) {
  const Tensor whole = Whole({4});
  const std::vector<Tensor> parts(2, Changed(whole, 1, 2.0001f));
  EXPECT_FALSE(FitShards(parts, whole, {}).same());
  EXPECT_TRUE(FitShards(parts, whole, ReorderAllowance(DataType::kFloat)).same());
}

TEST(FitShards, ShapesThatHaveNothingToDoWithEachOther) {
  EXPECT_EQ(FitShards({Whole({3, 5})}, Whole({4, 4}), {}).sharding.kind, Kind::kNone);
  EXPECT_EQ(FitShards({Whole({2, 2}), Whole({2, 2})}, Whole({4, 4}), {}).sharding.kind,
            Kind::kNone);
  EXPECT_EQ(FitShards({Whole({2}), Whole({3})}, Whole({5}), {}).sharding.kind, Kind::kNone);
}

Tensor Scaled(const Tensor& tensor, float factor) {
  std::vector<float> values(tensor.as<float>().begin(), tensor.as<float>().end());
  for (float& value : values) value *= factor;
  return Tensor::FromVector(tensor.type(), values);
}

// What N ranks hold of the output of "y" against the whole, as `run --golden` says it.
std::string PatternOfGolden(const std::vector<Tensor>& ranks, const Tensor& whole,
                            Sharding::Kind reduced) {
  GraphBuilder g;
  const Value x = g.Data("x", whole.type());
  g.Output({g.Op("Relu", {{"x", x}}, {}, "y")});
  const Result<Model> model = g.Build();
  std::vector<MemorySource> sources;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    sources.emplace_back("rank " + std::to_string(rank));
    sources.back().Add("y", "Relu", Side::kOutput, 0, ranks[rank]);
  }
  MemorySource golden("whole");
  golden.Add("y", "Relu", Side::kOutput, 0, whole);
  RankSources pointers;
  for (const MemorySource& source : sources) pointers.push_back(&source);
  const Result<OperatorOrder> order = OperatorOrder::FromGraph(model->graph, BuiltinOps());
  const Result<GoldenReport> report =
      CompareRanksWithWhole(pointers, golden, {{"y", {"y", reduced, false}}}, *order, {});
  EXPECT_TRUE(report.ok()) << report.status().ToString();
  if (!report.ok() || report->First() == nullptr) return "no operator differs";
  return report->First()->pattern;
}

// The words of `dump compare` were missing where N ranks are compared with one.
TEST(GoldenRow, NamesTheKindOfMistake) {
  const Tensor whole = Whole({8, 16});
  std::vector<Tensor> pieces = Split(whole, {Kind::kPieces, 1, 1}, 4);
  pieces[2] = Scaled(pieces[2], 0.5f);
  EXPECT_EQ(PatternOfGolden(pieces, whole, Kind::kNone),
            "a constant factor: every element is 0.5 times what is expected");
  std::vector<Tensor> wholes(4, whole);
  EXPECT_EQ(PatternOfGolden(wholes, whole, Kind::kNone), "no operator differs");
  wholes[1] = Scaled(whole, 0);
  EXPECT_EQ(PatternOfGolden(wholes, whole, Kind::kNone), "all elements are zero");
  // Each of four ranks adds half of the whole.
  const std::vector<Tensor> halves(4, Scaled(whole, 0.5f));
  EXPECT_EQ(PatternOfGolden(halves, whole, Kind::kSum),
            "a constant factor: every element is 2 times what is expected");
  std::vector<Tensor> one = Split(whole, {Kind::kPieces, 0, 1}, 2);
  one[1] = Changed(one[1], 3, 77);
  EXPECT_EQ(PatternOfGolden(one, whole, Kind::kNone), "");
}

}  // namespace
}  // namespace npumesh
