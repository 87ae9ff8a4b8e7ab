// What graphs of several ranks say differently, and what they may.
#include "graph/export/graph_match.h"

#include <gmock/gmock.h>

#include "graph/ir/graph_builder.h"
#include "graph/ops/builtin_ops.h"

namespace npumesh {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const TensorType kRow{DataType::kFloat, {4}};

// "<rank>: <text>" of each mismatch between the graphs that `write` makes of each rank.
std::vector<std::string> Odd(int ranks, const std::function<void(GraphBuilder&, int)>& write) {
  std::vector<GraphPortrait> portraits;
  for (int rank = 0; rank < ranks; ++rank) {
    GraphBuilder g;
    write(g, rank);
    portraits.push_back(PortraitOf(g.Build().value(), BuiltinOps()));
  }
  std::vector<std::string> texts;
  for (const GraphMismatch& mismatch : MatchGraphs(portraits)) {
    texts.push_back(fmt::format("{}: {}", mismatch.rank, mismatch.text));
  }
  return texts;
}

// Muls with the value that `value` gives a rank.
std::vector<std::string> OddFactor(int ranks, const std::function<float(int)>& value) {
  return Odd(ranks, [&](GraphBuilder& g, int rank) {
    const Value x = g.Data("x", kRow);
    g.Output({g.Op("Muls", {{"x", x}}, {{"value", AttrValue::Float(value(rank))}}, "scale")});
  });
}

// One float of one rank made all outputs wrong, and nothing told.
TEST(GraphMatch, AFactorThatDeviatesIsNamed) {
  EXPECT_THAT(OddFactor(4, [](int rank) { return rank == 1 ? 0.5f : 0.25f; }),
              ElementsAre("1: node \"scale\" (Muls): value is 0.5 on rank 1, 0.25 on ranks 0,2-3"));
  EXPECT_THAT(OddFactor(2, [](int rank) { return rank == 1 ? 0.5f : 0.25f; }),
              ElementsAre("1: node \"scale\" (Muls): value is 0.5 on rank 1, 0.25 on rank 0"));
}

TEST(GraphMatch, ValuesThatEveryRankHasForItselfAreNotTold) {
  EXPECT_THAT(OddFactor(4, [](int) { return 0.25f; }), IsEmpty());
  // Scales and offsets of the rank's part.
  EXPECT_THAT(OddFactor(4, [](int rank) { return 0.3f + 0.1f * static_cast<float>(rank); }),
              IsEmpty());
  EXPECT_THAT(OddFactor(2, [](int rank) { return -16.0f * static_cast<float>(rank); }), IsEmpty());
  // Two groups of two, each with its value.
  EXPECT_THAT(OddFactor(4, [](int rank) { return rank < 2 ? 0.3f : 0.7f; }), IsEmpty());
  // A switch: a bias is added once.
  EXPECT_THAT(OddFactor(4, [](int rank) { return rank == 0 ? 1.0f : 0.0f; }), IsEmpty());
  EXPECT_THAT(OddFactor(4, [](int rank) { return rank == 3 ? 0.0f : 1.0f; }), IsEmpty());
}

TEST(GraphMatch, AnIntegerIsToldWhenOneRankDeviatesAndShardsAreEven) {
  const auto odd = [](int64_t rows_of_last, int64_t odd_axis) {
    return Odd(4, [&](GraphBuilder& g, int rank) {
      const Value x = g.Data("x", {DataType::kFloat, {rank == 3 ? rows_of_last : 4, 4}});
      g.Output({g.Op("SoftmaxV2", {{"x", x}},
                     {{"axes", AttrValue::Ints({rank == 3 ? odd_axis : 1})}}, "soft")});
    });
  };
  EXPECT_THAT(odd(4, 1), IsEmpty());
  EXPECT_THAT(odd(4, 0),
              ElementsAre("3: node \"soft\" (SoftmaxV2): axes is [0] on rank 3, [1] on ranks 0-2"));
  EXPECT_THAT(odd(2, 0), IsEmpty());  // a smaller part may have another number of everything
}

TEST(GraphMatch, LiteralsAreComparedAndWeightsAreNot) {
  const auto odd = [](float literal, std::vector<float> weight) {
    return Odd(3, [&](GraphBuilder& g, int rank) {
      const Value x = g.Data("x", kRow);
      const Value c = g.Const(
          "c", Tensor::FromVector<float>({DataType::kFloat, {}}, {rank == 1 ? literal : 0.5f}));
      std::vector<float> w = {1, 2, 3, 4};
      if (rank == 1) w = weight;
      const Value y = g.Op("Mul", {{"x1", x}, {"x2", c}});
      g.Output(
          {g.Op("Add", {{"x1", y}, {"x2", g.Const("w", Tensor::FromVector<float>(kRow, w))}})});
    });
  };
  EXPECT_THAT(odd(0.5f, {5, 6, 7, 8}), IsEmpty());
  EXPECT_THAT(odd(0.625f, {1, 2, 3, 4}),
              ElementsAre("1: node \"c\" (Const): value is 0.625 on rank 1, 0.5 on ranks 0,2"));
}

TEST(GraphMatch, AnotherOperatorOrInputIsNamedAndAnotherGraphIsNot) {
  const auto odd = [](int ranks, const char* type, int length_of_1, bool swapped = false) {
    return Odd(ranks, [&](GraphBuilder& g, int rank) {
      Value y = g.Data("x", kRow);
      const Value z = g.Data("z", kRow);
      for (int i = 0; i < (rank == 1 ? length_of_1 : 24); ++i) {
        y = g.Op(rank == 1 && i == 7 ? type : "Relu", {{"x", y}}, {}, fmt::format("n{}", i));
      }
      const bool other = swapped && rank == 1;
      g.Output({g.Op("Sub", {{"x1", other ? z : y}, {"x2", other ? y : z}}, {}, "sub")});
    });
  };
  EXPECT_THAT(odd(4, "Relu", 24), IsEmpty());
  for (const int ranks : {2, 3}) {
    EXPECT_THAT(odd(ranks, "Tanh", 24),
                ElementsAre(fmt::format("1: node \"n7\" is a Tanh on rank 1, a Relu on rank{}",
                                        ranks == 2 ? " 0" : "s 0,2")));
  }
  EXPECT_THAT(odd(3, "Relu", 24, true),
              ElementsAre("1: node \"sub\" (Sub) reads z:0, n23:0 on rank 1, n23:0, z:0 on ranks "
                          "0,2"));
  EXPECT_THAT(odd(3, "Relu", 23),
              ElementsAre("1: node \"sub\" (Sub) reads n22:0, z:0 on rank 1, n23:0, z:0 on ranks "
                          "0,2; and 1 more nodes differ"));
  EXPECT_THAT(odd(4, "Relu", 3), IsEmpty());  // another stage of a pipeline
}

TEST(GraphMatch, NumbersOfRanksAndNamesOfGroupsMayDiffer) {
  EXPECT_THAT(Odd(4,
                  [](GraphBuilder& g, int rank) {
                    const Value x = g.Data("x", kRow);
                    g.Output({g.Op("HcomAllReduce", {{"x", x}},
                                   {{"group", AttrValue::String(rank < 3 ? "tag=;rank_list=0,1,2"
                                                                         : "tag=;rank_list=3")},
                                    {"reduction", AttrValue::String("sum")}},
                                   "sum")});
                  }),
              IsEmpty());
}

TEST(GraphMatch, ManyAreCounted) {
  const auto texts = Odd(3, [](GraphBuilder& g, int rank) {
    Value y = g.Data("x", kRow);
    for (int i = 0; i < 20; ++i) {
      y = g.Op("Muls", {{"x", y}}, {{"value", AttrValue::Float(rank == 2 ? 0.5f : 0.25f)}});
    }
    g.Output({y});
  });
  ASSERT_EQ(texts.size(), 17u);
  EXPECT_EQ(texts.back(), "2: and 4 more differences of attributes");
}

}  // namespace
}  // namespace npumesh
