// Weights of ranks against those of the whole graph.
#include "graph/compare/replay/weight_shards.h"
#include "graph/ops/builtin_ops.h"

#include <gmock/gmock.h>

#include <numeric>

#include "graph/compare/sources/weight_behind.h"
#include "graph/ir/graph_builder.h"

namespace npumesh {
namespace {

constexpr int kRanks = 4;

Tensor WholeWeight() {
  std::vector<float> values(8 * 16);
  std::iota(values.begin(), values.end(), 1.0f);
  return Tensor::FromVector(TensorType{DataType::kFloat, {8, 16}}, values);
}

// x times the transposition of `weight`, as exporters write it, or of the weight itself.
Model Linear(const Tensor& weight, bool turned) {
  GraphBuilder g;
  const Value w = g.Const("w", weight);
  const Value x = g.Data("x", {DataType::kFloat, {2, weight.shape()[turned ? 1 : 0]}});
  const Value read =
      turned ? g.Op("Transpose", {{"x", w}, {"perm", g.Ints({1, 0})}}, {}, "turn") : w;
  g.Output({g.Op("MatMul", {{"x1", x}, {"x2", read}}, {}, "product")});
  return *g.Build();
}

struct Scene {
  std::vector<Model> models;
  Model whole;

  Scene(const Sharding& sharding, bool turned, int damaged = -1, size_t element = 0)
      : whole(Linear(WholeWeight(), turned)) {
    for (int rank = 0; rank < kRanks; ++rank) {
      const Tensor part = PartOf(WholeWeight(), sharding, rank, kRanks);
      std::vector<float> values(part.as<float>().begin(), part.as<float>().end());
      if (rank == damaged) values[element] = -1;
      models.push_back(Linear(Tensor::FromVector(part.type(), values), turned));
    }
  }

  // Rank by rank whose shard each has.
  Scene(const Sharding& sharding, const std::vector<int>& owners)
      : whole(Linear(WholeWeight(), false)) {
    for (const int owner : owners) {
      models.push_back(
          Linear(PartOf(WholeWeight(), sharding, owner, static_cast<int>(owners.size())), false));
    }
  }

  std::optional<WrongShard> Find() const {
    std::vector<const Model*> ranks;
    for (const Model& model : models) ranks.push_back(&model);
    const auto found = FindWrongShard(ranks, whole, "product", "product", BuiltinOps());
    EXPECT_TRUE(found.ok()) << found.status().ToString();
    return *found;
  }
};

TEST(WrongShard, ShardsThatFitAreNot) {
  for (const Sharding& sharding : {Sharding{Sharding::Kind::kEqual},
                                   {Sharding::Kind::kPieces, 0, 1},
                                   {Sharding::Kind::kPieces, 1, 2}}) {
    for (const bool turned : {false, true}) {
      EXPECT_EQ(Scene(sharding, turned).Find(), std::nullopt) << ToText(sharding);
    }
  }
}

TEST(WrongShard, IsNamedWithItsRankRowsAndElement) {
  const auto wrong = Scene({Sharding::Kind::kPieces, 0, 1}, true, 2, 19).Find();
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->rank, 2);
  EXPECT_EQ(ToText(*wrong),
            "its weight w: the shard of rank 2 is not rows 4..5 of the whole weight w: 1 of 32 "
            "elements differ, first [1,3]");
}

TEST(WrongShard, ColumnsBlocksAndWholes) {
  EXPECT_THAT(ToText(*Scene({Sharding::Kind::kPieces, 1, 1}, false, 1).Find()),
              testing::HasSubstr("rank 1 is not columns 4..7 of the whole weight w: 1 of 32"));
  EXPECT_THAT(ToText(*Scene({Sharding::Kind::kPieces, 1, 2}, false, 3).Find()),
              testing::HasSubstr("rank 3 is not piece 3 of 4 along axis 1 in 2 blocks of the "));
  EXPECT_THAT(ToText(*Scene({Sharding::Kind::kEqual}, false, 0).Find()),
              testing::HasSubstr("rank 0 is not the whole weight w: 1 of 128"));
}

TEST(WrongShard, TheShardOfAnotherRankIsNamed) {
  EXPECT_EQ(ToText(*Scene({Sharding::Kind::kPieces, 0, 1}, {0, 0}).Find()),
            "its weight w: the shard of rank 1 is not rows 4..7 of the whole weight w, but rows "
            "0..3, which rank 0 has to hold: 64 of 64 elements differ, first [0,0]");
}

// Regression: when most shards were wrong, no weight was named.
TEST(WrongShard, ShardsAtOtherRanksAreNamed) {
  const auto text = [](const Sharding& sharding, const std::vector<int>& owners) {
    const auto wrong = Scene(sharding, owners).Find();
    return wrong ? ToText(*wrong) : "nothing";
  };
  EXPECT_EQ(text({Sharding::Kind::kPieces, 0, 1}, {1, 0}),
            "its weight w: the shards of ranks 0-1 are exchanged: rank 0 holds rows 4..7 of the "
            "whole weight w, rank 1 holds rows 0..3");
  EXPECT_EQ(text({Sharding::Kind::kPieces, 1, 1}, {0, 2, 3, 1}),
            "its weight w: the shards of ranks 1-3 are permuted: rank 1 holds columns 8..11 of the "
            "whole weight w, rank 2 holds columns 12..15, rank 3 holds columns 4..7");
  EXPECT_EQ(text({Sharding::Kind::kPieces, 1, 2}, {1, 0}),
            "its weight w: the shards of ranks 0-1 are exchanged: rank 0 holds piece 1 of 2 along "
            "axis 1 in 2 blocks of the whole weight w, rank 1 holds piece 0 of 2 along axis 1 in 2 "
            "blocks");
  EXPECT_EQ(text({Sharding::Kind::kPieces, 1, 1}, {2, 2, 2, 2}),
            "its weight w: the shards of ranks 0-1,3 are wrong: rank 0 holds columns 8..11 of the "
            "whole weight w, rank 1 holds columns 8..11, rank 3 holds columns 8..11");
}

TEST(WrongShard, ModelsOfOtherWeightsAreNotCompared) {
  Scene scene({Sharding::Kind::kPieces, 0, 1}, false);
  scene.whole = Linear(Tensor::Allocate({DataType::kFloat, {8, 16}}), false);
  EXPECT_EQ(scene.Find(), std::nullopt);
}

TEST(WeightFileName, IsWhatPeopleKnow) {
  const auto name = [](const std::string& path) {
    GraphBuilder g;
    const Value w = g.FileConstant("w", {DataType::kFloat, {1}}, path);
    g.Output({g.Op("Relu", {{"x", w}})});
    const Model model = *g.Build();
    return WeightText(model.graph.node(model.graph.Find("w")));
  };
  EXPECT_EQ(name("good/rank_2/arg7_1"), "w (rank_2/arg7_1)");
  EXPECT_EQ(name("rank_2/arg7_1"), "w (rank_2/arg7_1)");
  EXPECT_EQ(name("arg7_1"), "w (arg7_1)");
  EXPECT_EQ(name("./arg7_1"), "w (./arg7_1)");
  EXPECT_EQ(name("/a/b/c/d"), "w (/a/b/c/d)");
}

}  // namespace
}  // namespace npumesh
