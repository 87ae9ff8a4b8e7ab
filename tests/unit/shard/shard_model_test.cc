// Graphs of one card, sharded, and run by ranks as threads: the same numbers as on one card.
#include "graph/shard/shard_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ir/graph_builder.h"
#include "graph/ops/builtin_ops.h"
#include "graph/session/session.h"
#include "runtime/device/device_memory.h"

namespace npumesh {
namespace {

using ::testing::HasSubstr;

// Small integers, so that sums are exact in any order.
Tensor Whole(Shape shape, int seed) {
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>((i * 7 + static_cast<size_t>(seed) * 5) % 5) - 2;
  }
  return Tensor::FromVector({DataType::kFloat, std::move(shape)}, values);
}

// x W1 + b, Relu, W2, with a product of `columns` columns in between.
Model Mlp(int64_t columns) {
  GraphBuilder g;
  const Value x = g.Data("x", {DataType::kFloat, {4, 8}});
  const Value up = g.Op("MatMul",
                        {{"x1", x},
                         {"x2", g.Const("w1", Whole({8, columns}, 1))},
                         {"bias", g.Const("b1", Whole({columns}, 2))}},
                        {}, "up");
  const Value act = g.Op("Relu", {{"x", up}}, {}, "act");
  const Value down = g.Op("MatMul",
                          {{"x1", act},
                           {"x2", g.Const("w2", Whole({columns, 8}, 3))},
                           {"bias", g.Const("b2", Whole({8}, 4))}},
                          {}, "down");
  g.Output({g.Op("Add", {{"x1", x}, {"x2", down}}, {}, "residual")});
  return *g.Build();
}

// One product whose columns stay split up to the output.
Model Head(int64_t columns) {
  GraphBuilder g;
  const Value x = g.Data("x", {DataType::kFloat, {4, 8}});
  g.Output({g.Op("MatMul", {{"x1", x}, {"x2", g.Const("w", Whole({8, columns}, 1))}}, {}, "head")});
  return *g.Build();
}

// Columns become `heads` heads, move before the rows and back, and go into a row product.
Model Heads(int64_t heads) {
  GraphBuilder g;
  const Value x = g.Data("x", {DataType::kFloat, {4, 8}});
  const Value q = g.Op("MatMul", {{"x1", x}, {"x2", g.Const("wq", Whole({8, 48}, 1))}}, {}, "q");
  const Value k = g.Op("MatMul", {{"x1", x}, {"x2", g.Const("wk", Whole({8, 48}, 2))}}, {}, "k");
  const auto split = [&](Value value, const std::string& name) {
    const Value parts =
        g.Op("Reshape", {{"x", value}, {"shape", g.Ints({4, heads, 48 / heads})}}, {}, name);
    return g.Op("Transpose", {{"x", parts}, {"perm", g.Ints({1, 0, 2})}});
  };
  const Value scores =
      g.Op("BatchMatMul", {{"x1", split(q, "heads_q")}, {"x2", split(k, "heads_k")}},
           {{"adj_x2", AttrValue::Bool(true)}}, "scores");
  const Value mixed =
      g.Op("BatchMatMul", {{"x1", scores}, {"x2", split(k, "heads_v")}}, {}, "mixed");
  const Value back = g.Op("Transpose", {{"x", mixed}, {"perm", g.Ints({1, 0, 2})}});
  const Value flat = g.Op("Reshape", {{"x", back}, {"shape", g.Ints({4, 48})}}, {}, "flat");
  g.Output({g.Op("MatMul", {{"x1", flat}, {"x2", g.Const("wo", Whole({48, 8}, 3))}}, {}, "out")});
  return *g.Build();
}

std::vector<std::vector<float>> OutputsOf(const std::vector<Model>& models) {
  std::vector<std::vector<float>> outputs(models.size());
  Env env;
  env.hbm_bytes = uint64_t{16} << 20;
  const auto statuses = RunRanks(static_cast<int>(models.size()), env, [&](World& world) -> Status {
    const size_t rank = static_cast<size_t>(world.rank());
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    NPUMESH_ASSIGN_OR_RETURN(const auto session, Session::Create(world, *memory, models[rank]));
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> made, session->Run({Whole({4, 8}, 9)}));
    const auto values = made[0].as<float>();
    outputs[rank].assign(values.begin(), values.end());
    return Status();
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.ToString();
  return outputs;
}

class Sharded : public ::testing::TestWithParam<int> {
 protected:
  // Runs both and compares; returns the notes.
  std::string Prove(const Model& model) {
    const Result<ShardedModel> sharded = ShardModel(model, BuiltinOps(), GetParam());
    EXPECT_TRUE(sharded.ok()) << sharded.status().ToString();
    if (!sharded.ok()) return "";
    const std::vector<float> whole = OutputsOf({model})[0];
    EXPECT_FALSE(whole.empty());
    for (const auto& output : OutputsOf(sharded->models)) EXPECT_EQ(output, whole);
    return ShardNotesAsText(sharded->notes);
  }
};

TEST_P(Sharded, MlpIsSplitByColumnsThenRows) {
  EXPECT_THAT(Prove(Mlp(16)), HasSubstr("2 sharded, 1 replicated, 1 reduced, 0 gathered"));
}

TEST_P(Sharded, OutputIsGathered) {
  EXPECT_THAT(Prove(Head(24)), HasSubstr("1 sharded, 0 replicated, 0 reduced, 1 gathered"));
}

TEST_P(Sharded, HeadsAreCarried) {
  EXPECT_THAT(Prove(Heads(8)), HasSubstr("1 reduced, 0 gathered"));
}

INSTANTIATE_TEST_SUITE_P(Ranks, Sharded, ::testing::Values(2, 4, 8));

TEST(ShardErrors, HeadsThatRanksDoNotDivide) {
  const Status status = ShardModel(Heads(6), BuiltinOps(), 4).status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_THAT(status.ToString(), HasSubstr("\"heads_q\" (Reshape)"));
}

TEST(ShardErrors, ColumnsThatRanksDoNotDivide) {
  const Status status = ShardModel(Head(9), BuiltinOps(), 2).status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_THAT(status.ToString(), HasSubstr("\"head\" (MatMul)"));
}

TEST(ShardErrors, OneRank) {
  EXPECT_EQ(ShardModel(Head(8), BuiltinOps(), 1).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace npumesh
