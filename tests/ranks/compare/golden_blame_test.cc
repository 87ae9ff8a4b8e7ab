// Faults with ground truth in a tensor-parallel decoder of four ranks: wrong elements of weights,
// shards of other ranks, wrong operators. The headline names the ranks that have the fault, and no
// other. Without a fault there is no headline.
#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>

#include "graph/compare/golden/golden_blame.h"
#include "graph/compare/sources/recorder.h"
#include "graph/engine/run/observer_chain.h"
#include "graph/inject/fault_injector.h"
#include "graph/io/weights.h"
#include "graph/ops/builtin_ops.h"
#include "graph/session/session.h"
#include "launch/samples/decoder_model.h"
#include "tests/unit/planted_faults.h"

namespace npumesh {
namespace {

constexpr int kRanks = 4;

Env TestEnv() {
  Env env;
  env.hbm_bytes = uint64_t{32} << 20;
  env.connect_timeout = std::chrono::seconds(60);
  env.exec_timeout = std::chrono::seconds(60);
  return env;
}

DecoderConfig SmallDecoder(uint64_t seed) {
  return {.layers = 2, .hidden = 32, .heads = 4, .ffn = 64, .sequence = 8, .seed = 1 + seed % 7};
}

// What was planted. Names are for messages.
struct Planted {
  std::string kind;
  std::string place;       // of the weight, or the operator
  std::vector<int> ranks;  // that have the fault
};

// A job of kRanks ranks and the whole graph, which faults are planted into.
class Job {
 public:
  explicit Job(uint64_t seed) : config_(SmallDecoder(seed)), seed_(seed), random_(seed) {
    for (int rank = 0; rank < kRanks; ++rank) {
      models_.push_back(*BuildDecoder(config_, rank, kRanks));
    }
  }

  Planted NoFault() { return {"no fault", "", {}}; }

  // One element of a weight becomes large on some rank.
  Planted Element() {
    const std::string weight = AnyWeight(false);
    const int rank = AnyRank();
    const Tensor old = WeightOf(rank, weight);
    std::vector<float> values = ToFloats(old);
    values[random_() % values.size()] = -3;
    SetWeight(rank, weight, FromFloats(old.type(), values));
    return {"element", weight, {rank}};
  }

  // A rank has the shard of another one.
  Planted ShardOfAnother() {
    const std::string weight = AnyWeight(true);
    const std::vector<int> ranks = SomeRanks(2);
    SetWeight(ranks[0], weight, WeightOf(ranks[1], weight));
    return {"shard of another rank", weight, {ranks[0]}};
  }

  // Some ranks have each other's shards, in a circle.
  Planted Permuted() {
    const std::string weight = AnyWeight(true);
    std::vector<int> ranks = SomeRanks(2 + random_() % (kRanks - 1));
    const Tensor first = WeightOf(ranks[0], weight);
    for (size_t i = 0; i + 1 < ranks.size(); ++i) {
      SetWeight(ranks[i], weight, WeightOf(ranks[i + 1], weight));
    }
    SetWeight(ranks.back(), weight, first);
    std::sort(ranks.begin(), ranks.end());
    return {"permuted shards", weight, ranks};
  }

  // All ranks have the shard of one.
  Planted OneShardForAll() {
    const std::string weight = AnyWeight(true);
    const int owner = AnyRank();
    Planted planted{"one shard for all", weight, {}};
    for (int rank = 0; rank < kRanks; ++rank) {
      if (rank == owner) continue;
      SetWeight(rank, weight, WeightOf(owner, weight));
      planted.ranks.push_back(rank);
    }
    return planted;
  }

  // An operator writes a wrong element on some rank.
  Planted Operator() {
    std::vector<std::string> names;
    const auto clean = Record(kRanks);
    for (const SourceOperator& op : clean[0]->source().operators()) names.push_back(op.name);
    Fault fault;
    fault.rank = AnyRank();
    fault.op = names[random_() % names.size()];
    faults_ = {fault};
    return {"operator", fault.op, {fault.rank}};
  }

  // The row that differs first, with its blame; nullopt: none differs.
  struct Headline {
    GoldenRow first;
    GoldenBlame blame;
  };
  std::optional<Headline> Find() {
    const Model whole = *BuildDecoder(config_, 0, 1);
    const auto run = Record(kRanks);
    const auto whole_run = Record(1);
    RankSources sources;
    RankGraphs graphs;
    for (const auto& recorder : run) sources.push_back(&recorder->source());
    for (const Model& model : models_) graphs.models.push_back(&model);
    const Counterparts counterparts =
        *FindCounterparts(models_[0].graph, whole.graph, BuiltinOps());
    const OperatorOrder order = *OperatorOrder::FromGraph(models_[0].graph, BuiltinOps());
    const Result<GoldenReport> report = CompareRanksWithWhole(
        sources, whole_run[0]->source(), counterparts, order, {.reorder = true});
    EXPECT_TRUE(report.ok()) << report.status().ToString();
    if (!report.ok() || report->First() == nullptr) return std::nullopt;
    const Result<GoldenBlame> blame =
        FindGoldenBlame(graphs, whole, *report->First(), sources, TestEnv(), BuiltinOps());
    EXPECT_TRUE(blame.ok()) << blame.status().ToString();
    return Headline{*report->First(), blame.ok() ? *blame : GoldenBlame()};
  }

 private:
  int AnyRank() { return static_cast<int>(random_() % kRanks); }

  std::vector<int> SomeRanks(size_t count) {
    std::vector<int> ranks(kRanks);
    std::iota(ranks.begin(), ranks.end(), 0);
    std::shuffle(ranks.begin(), ranks.end(), random_);
    ranks.resize(count);
    return ranks;
  }

  // A weight of a layer; `sharded`: each rank has another part of it.
  std::string AnyWeight(bool sharded) {
    std::vector<std::string> names;
    for (const Node& node : models_[0].graph.nodes()) {
      const bool layers = node.type == "Const" && node.name.starts_with("layer") &&
                          node.output_descs[0].dtype == config_.dtype;
      const bool norm = node.name.find("norm") != std::string::npos;
      if (layers && !(sharded && norm)) names.push_back(node.name);
    }
    return names[random_() % names.size()];
  }

  Node& NodeOf(int rank, const std::string& weight) {
    Graph& graph = models_[static_cast<size_t>(rank)].graph;
    return graph.node(graph.Find(weight));
  }
  Tensor WeightOf(int rank, const std::string& weight) {
    return *LoadWeight(NodeOf(rank, weight), "");
  }
  void SetWeight(int rank, const std::string& weight, const Tensor& value) {
    NodeOf(rank, weight).attrs.insert_or_assign("value", AttrValue::Value(value));
  }

  // What the ranks, or one rank with the whole graph, compute.
  std::vector<std::unique_ptr<Recorder>> Record(int ranks) const {
    std::vector<std::unique_ptr<Recorder>> recorders(static_cast<size_t>(ranks));
    for (auto& recorder : recorders) recorder = std::make_unique<Recorder>("run", 0, true);
    const auto body = [&](World& world) -> Status {
      NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceMemory> memory,
                               DeviceMemory::Create(world));
      const auto rank = static_cast<size_t>(world.rank());
      Model model = ranks == 1 ? *BuildDecoder(config_, 0, 1) : models_[rank];
      NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                               Session::Create(world, *memory, std::move(model)));
      FaultInjector injector(ranks == 1 ? std::vector<Fault>() : faults_, world.rank(), seed_);
      ObserverChain observers;
      observers.Add(&injector);
      observers.Add(recorders[rank].get());
      return session->Run({DecoderInput(config_)}, &observers).status();
    };
    for (const Status& status : RunRanks(ranks, TestEnv(), body)) {
      EXPECT_TRUE(status.ok()) << status.ToString();
    }
    return recorders;
  }

  DecoderConfig config_;
  uint64_t seed_;
  std::mt19937_64 random_;
  std::vector<Model> models_;
  std::vector<Fault> faults_;
};

using Plant = Planted (Job::*)();

void EachIsNamed(Plant plant, bool by_weight) {
  for (int seed = 0; seed < PlantedFaults(6); ++seed) {
    Job job(static_cast<uint64_t>(seed));
    const Planted planted = (job.*plant)();
    const std::string what = fmt::format("seed {}: {} of {}", seed, planted.kind, planted.place);
    const auto headline = job.Find();
    ASSERT_TRUE(headline) << what;
    EXPECT_EQ(headline->blame.ranks, planted.ranks)
        << what << ": " << WhoText(headline->first, headline->blame) << " at "
        << headline->first.name << ", " << ToText(headline->first.fit.sharding);
    if (!by_weight) {
      EXPECT_EQ(headline->first.name, planted.place) << what;
      continue;
    }
    ASSERT_TRUE(headline->blame.shard) << what;
    EXPECT_EQ(headline->blame.shard->wrong, planted.ranks) << what;
    EXPECT_EQ(headline->blame.shard->whole, planted.place) << what;
  }
}

TEST(GoldenBlame, NothingIsBlamedWithoutAFault) {
  for (int seed = 0; seed < PlantedFaults(6); ++seed) {
    Job job(static_cast<uint64_t>(seed));
    const auto headline = job.Find();
    EXPECT_FALSE(headline) << seed << ": " << headline->first.name;
  }
}

TEST(GoldenBlame, AWrongElementOfAWeight) {
  EachIsNamed(&Job::Element, true);
}

// Regression: the file of rank 0 in the place of rank 1's was called a fault of rank 0.
TEST(GoldenBlame, TheShardOfAnotherRank) {
  EachIsNamed(&Job::ShardOfAnother, true);
}

// Regression: two exchanged shards named only the product that reads them.
TEST(GoldenBlame, PermutedShards) {
  EachIsNamed(&Job::Permuted, true);
}

TEST(GoldenBlame, OneShardForAllRanks) {
  EachIsNamed(&Job::OneShardForAll, true);
}

TEST(GoldenBlame, AWrongOperator) {
  EachIsNamed(&Job::Operator, false);
}

}  // namespace
}  // namespace npumesh
