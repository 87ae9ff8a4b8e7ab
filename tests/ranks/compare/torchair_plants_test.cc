// Graphs as TorchAir writes a linear layer, MatMul(x, Transpose(w)): what ran is not what stands in
// the file, and a wrong element of a product is found all the same.
#include <gmock/gmock.h>

#include <memory>
#include <numeric>
#include <random>

#include "graph/compare/replay/replay.h"
#include "graph/compare/sources/graph_that_ran.h"
#include "graph/compare/sources/recorder.h"
#include "graph/engine/run/observer_chain.h"
#include "graph/inject/fault_injector.h"
#include "graph/ir/graph_builder.h"
#include "graph/ops/builtin_ops.h"
#include "graph/session/session.h"
#include "tests/models/llama_prefill.h"

namespace npumesh {
namespace {

constexpr int kRanks = 2;
constexpr int64_t kLength = 6;

Env TestEnv() {
  Env env;
  env.hbm_bytes = uint64_t{32} << 20;
  env.connect_timeout = std::chrono::seconds(60);
  env.exec_timeout = std::chrono::seconds(60);
  return env;
}

using Recorders = std::vector<std::unique_ptr<Recorder>>;

struct PlantCase {
  DataType dtype;
  bool fold;
};

class TorchAirPlants : public testing::TestWithParam<PlantCase> {
 protected:
  TorchAirPlants() {
    config_.dtype = GetParam().dtype;
    const models::Parameters weights = models::PrefillWeights(config_, 31);
    for (int rank = 0; rank < kRanks; ++rank) {
      models_.push_back(*models::BuildPrefill(config_, weights, rank, kRanks));
    }
    for (const Model& model : models_) graphs_.models.push_back(&model);
  }

  std::vector<Tensor> Inputs() const {
    std::vector<int64_t> positions(kLength);
    std::iota(positions.begin(), positions.end(), 0);
    return {models::TensorOf({1, kLength, config_.hidden}, models::PrefillInput(config_, kLength),
                             config_.dtype),
            Tensor::FromVector<int64_t>({DataType::kInt64, {1, kLength}}, positions)};
  }

  Recorders Record(const std::vector<Fault>& faults) const {
    Recorders recorders;
    for (int rank = 0; rank < kRanks; ++rank) {
      recorders.push_back(std::make_unique<Recorder>("run", 0, true));
    }
    const auto body = [&](World& world) -> Status {
      NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
      const auto rank = static_cast<size_t>(world.rank());
      SessionOptions options;
      options.compile.fold_constants = GetParam().fold;
      NPUMESH_ASSIGN_OR_RETURN(const auto session,
                               Session::Create(world, *memory, models_[rank], options));
      FaultInjector injector(faults, world.rank(), 3);
      ObserverChain observers;
      observers.Add(&injector);
      observers.Add(recorders[rank].get());
      return session->Run(Inputs(), &observers).status();
    };
    for (const Status& status : RunRanks(kRanks, TestEnv(), body)) {
      EXPECT_TRUE(status.ok()) << status.ToString();
    }
    return recorders;
  }

  static RankSources SourcesOf(const Recorders& recorders) {
    RankSources sources;
    for (const auto& recorder : recorders) sources.push_back(&recorder->source());
    return sources;
  }

  models::PrefillConfig config_;
  std::vector<Model> models_;
  RankGraphs graphs_;
};

TEST_P(TorchAirPlants, EverythingThatRanIsReplayed) {
  const Recorders run = Record({});
  const Result<Replayed> replayed = Replay(graphs_, SourcesOf(run), TestEnv(), {});
  ASSERT_TRUE(replayed.ok()) << replayed.status().ToString();
  for (const NotReplayed& each : replayed->left_out) ADD_FAILURE() << each.name << each.reason;
  EXPECT_FALSE(replayed->failed());
  for (size_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(replayed->ranks[rank].First(), nullptr);
    EXPECT_EQ(replayed->ranks[rank].rows.size(), run[rank]->source().operators().size());
  }
}

TEST_P(TorchAirPlants, AWrongProductIsNamed) {
  std::vector<std::string> products;
  const Recorders clean = Record({});
  for (const SourceOperator& op : clean[0]->source().operators()) {
    if (op.type == "MatMul") products.push_back(op.name);
  }
  ASSERT_EQ(products.size(), 14u);  // seven in each of two layers
  std::mt19937 random(7);
  for (const std::string& name : products) {
    Fault fault;
    fault.rank = static_cast<int>(random() % kRanks);
    fault.op = name;
    const Recorders run = Record({fault});
    ReplayOptions options;
    options.only = {OperatorKey(name)};  // what golden asks for partial sums
    const Result<Replayed> replayed = Replay(graphs_, SourcesOf(run), TestEnv(), options);
    ASSERT_TRUE(replayed.ok()) << replayed.status().ToString();
    for (int rank = 0; rank < kRanks; ++rank) {
      const Comparison& comparison = replayed->ranks[static_cast<size_t>(rank)];
      ASSERT_EQ(comparison.rows.size(), 1u) << name;
      EXPECT_EQ(comparison.rows[0].differs(), rank == fault.rank) << name << " rank " << rank;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, TorchAirPlants,
                         testing::Values(PlantCase{DataType::kFloat, true},
                                         PlantCase{DataType::kFloat16, true},
                                         PlantCase{DataType::kFloat, false}),
                         [](const auto& info) {
                           return fmt::format("{}{}", Name(info.param.dtype),
                                              info.param.fold ? "Folded" : "AsWritten");
                         });

// A product whose weight is square: only the bytes tell which way round it was read.
TEST(GraphThatRan, ReadsTheWayOfASquareWeightOffTheDump) {
  const auto weight = Tensor::FromVector<float>({DataType::kFloat, {2, 2}}, {1, 2, 3, 4});
  const auto turned = Tensor::FromVector<float>({DataType::kFloat, {2, 2}}, {1, 3, 2, 4});
  const auto damaged = Tensor::FromVector<float>({DataType::kFloat, {2, 2}}, {9, 3, 2, 4});
  GraphBuilder g("g");
  const Value x = g.Data("x", {DataType::kFloat, {1, 2}});
  const Value w =
      g.Op("Transpose", {{"x", g.Const("w", weight)}, {"perm", g.Ints({1, 0})}}, {}, "turn", 1);
  g.Output({g.Op("MatMul", {{"x1", x}, {"x2", w}}, {}, "product", 1)});
  const Model model = *g.Build();
  for (const auto& [dumped, transposes] :
       {std::pair(weight, true), std::pair(turned, false), std::pair(damaged, false)}) {
    MemorySource source("dump");
    source.Add("product", "MatMul", Side::kInput, 0,
               Tensor::FromVector<float>({DataType::kFloat, {1, 2}}, {1, 1}));
    source.Add("product", "MatMul", Side::kInput, 1, dumped);
    const Model ran = GraphThatRan(model, BuiltinOps(), source);
    EXPECT_EQ(ran.graph.node(ran.graph.Find("product")).BoolAttr("transpose_x2", false),
              transposes);
  }
}

TEST(Replay, AForeignGraphIsAnError) {
  GraphBuilder g("g");
  const Value x = g.Data("x", {DataType::kFloat, {1}});
  g.Output({g.Op("Relu", {{"x", x}}, {}, "relu", 1)});
  const Model model = *g.Build();
  RankGraphs graphs;
  graphs.models = {&model};
  MemorySource source("dump");
  source.Add("gelu", "Gelu", Side::kOutput, 0, Tensor::Allocate({DataType::kFloat, {1}}));
  const Result<Replayed> replayed = Replay(graphs, {&source}, TestEnv(), {});
  ASSERT_FALSE(replayed.ok());
  EXPECT_THAT(
      std::string(replayed.status().message()),
      testing::HasSubstr("the graph has none of the 1 operators of dump, such as \"gelu\""));
}

// An operator that the replay refuses: it ran, so this is a failure, and is told apart from what no
// replay can do.
TEST(Replay, AnOperatorThatCannotRunIsAFailure) {
  GraphBuilder g("g");
  const Value x = g.Data("x", {DataType::kFloat, {2, 3}});
  const Value y = g.Data("y", {DataType::kFloat, {3, 2}});
  const Value z = g.Op("MatMul", {{"x1", x}, {"x2", y}}, {}, "product", 1);
  g.Output({g.Op("Relu", {{"x", z}}, {}, "relu", 1)});
  const Model model = *g.Build();
  RankGraphs graphs;
  graphs.models = {&model};
  const auto tensor = [](std::vector<int64_t> dims) {
    return Tensor::Allocate({DataType::kFloat, Shape(std::move(dims))});
  };
  MemorySource source("dump");
  source.Add("product", "MatMul", Side::kInput, 0, tensor({2, 3}));
  source.Add("product", "MatMul", Side::kInput, 1, tensor({4, 2}));
  source.Add("product", "MatMul", Side::kOutput, 0, tensor({2, 2}));
  source.Add("relu", "Relu", Side::kOutput, 0, tensor({2, 2}));
  const Result<Replayed> replayed = Replay(graphs, {&source}, TestEnv(), {});
  ASSERT_TRUE(replayed.ok()) << replayed.status().ToString();
  ASSERT_EQ(replayed->left_out.size(), 2u);
  EXPECT_EQ(replayed->LeftOut(0), 2u);
  EXPECT_EQ(replayed->left_out[0].name, "product");
  EXPECT_TRUE(replayed->left_out[0].failed);
  EXPECT_EQ(replayed->left_out[1].name, "relu");
  EXPECT_FALSE(replayed->left_out[1].failed);
  EXPECT_TRUE(replayed->failed());
}

}  // namespace
}  // namespace npumesh
