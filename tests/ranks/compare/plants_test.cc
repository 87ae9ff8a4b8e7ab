// One wrong element of one operator on one rank of a tensor-parallel decoder: everything that looks
// for it names that operator and that rank, and nothing downstream.
#include <gmock/gmock.h>

#include <memory>
#include <mutex>
#include <random>

#include "graph/compare/golden/golden.h"
#include "graph/compare/laws/law_check.h"
#include "graph/compare/measures/comparison.h"
#include "graph/compare/replay/law_replay.h"
#include "graph/compare/replay/replay.h"
#include "graph/compare/sources/recorder.h"
#include "graph/engine/run/observer_chain.h"
#include "graph/inject/fault_injector.h"
#include "graph/ops/builtin_ops.h"
#include "graph/session/session.h"
#include "launch/samples/decoder_model.h"

namespace npumesh {
namespace {

constexpr int kRanks = 4;
constexpr int kPlants = 20;

Env TestEnv() {
  Env env;
  env.hbm_bytes = uint64_t{32} << 20;
  env.connect_timeout = std::chrono::seconds(60);
  env.exec_timeout = std::chrono::seconds(60);
  return env;
}

DecoderConfig SmallDecoder() {
  return {.layers = 2, .hidden = 32, .heads = 4, .ffn = 64, .sequence = 8};
}

using Recorders = std::vector<std::unique_ptr<Recorder>>;

// Runs `ranks` ranks with `faults`; what each of them computed, inputs included.
Recorders Record(int ranks, const std::vector<Fault>& faults, uint64_t seed) {
  Recorders recorders(static_cast<size_t>(ranks));
  for (auto& recorder : recorders) recorder = std::make_unique<Recorder>("run", 0, true);
  const std::vector<Status> statuses = RunRanks(ranks, TestEnv(), [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceMemory> memory,
                             DeviceMemory::Create(world));
    NPUMESH_ASSIGN_OR_RETURN(Model model, BuildDecoder(SmallDecoder(), world.rank(), ranks));
    NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                             Session::Create(world, *memory, std::move(model)));
    FaultInjector injector(faults, world.rank(), seed);
    ObserverChain observers;
    observers.Add(&injector);
    observers.Add(recorders[static_cast<size_t>(world.rank())].get());
    return session->Run({DecoderInput(SmallDecoder())}, &observers).status();
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.ToString();
  return recorders;
}

RankSources SourcesOf(const Recorders& recorders) {
  RankSources sources;
  for (const auto& recorder : recorders) sources.push_back(&recorder->source());
  return sources;
}

class Plants : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    models_ = new std::vector<Model>();
    for (int rank = 0; rank < kRanks; ++rank) {
      models_->push_back(*BuildDecoder(SmallDecoder(), rank, kRanks));
    }
    whole_ = new Model(*BuildDecoder(SmallDecoder(), 0, 1));
    clean_ = new Recorders(Record(kRanks, {}, 0));
    whole_run_ = new Recorders(Record(1, {}, 0));
  }
  static void TearDownTestSuite() {
    delete models_;
    delete whole_;
    delete clean_;
    delete whole_run_;
  }

  Plants() : order_(*OperatorOrder::FromGraph((*models_)[0].graph, BuiltinOps())) {
    for (const Model& model : *models_) graphs_.models.push_back(&model);
  }

  // A random operator among those of `keys`, on a random rank.
  Fault RandomFault(std::mt19937& random, const std::vector<std::string>& names) const {
    Fault fault;
    fault.rank = static_cast<int>(random() % kRanks);
    fault.op = names[random() % names.size()];
    return fault;
  }

  std::vector<std::string> AllNames() const {
    std::vector<std::string> names;
    for (const SourceOperator& op : (*clean_)[0]->source().operators()) names.push_back(op.name);
    return names;
  }

  LawTable Laws(const RankSources& sources) const {
    return *DeriveLaws(graphs_, BuiltinOps(),
                       InputsAsDumped(graphs_, BuiltinOps(), sources, false));
  }

  static std::vector<Model>* models_;
  static Model* whole_;
  static Recorders* clean_;
  static Recorders* whole_run_;
  RankGraphs graphs_;
  OperatorOrder order_;
};

std::vector<Model>* Plants::models_ = nullptr;
Model* Plants::whole_ = nullptr;
Recorders* Plants::clean_ = nullptr;
Recorders* Plants::whole_run_ = nullptr;

TEST_F(Plants, ACleanRunIsNotBlamed) {
  const RankSources clean = SourcesOf(*clean_);
  const LawTable table = Laws(clean);
  EXPECT_EQ(CheckLaws(table, clean, order_)->First(), nullptr);

  const Result<Replayed> replayed = Replay(graphs_, clean, TestEnv(), {});
  ASSERT_TRUE(replayed.ok()) << replayed.status().ToString();
  EXPECT_THAT(replayed->left_out, testing::IsEmpty());
  for (size_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(replayed->ranks[rank].First(), nullptr);
    EXPECT_EQ(replayed->ranks[rank].rows.size(), (*clean_)[rank]->source().operators().size());
  }

  const Counterparts counterparts =
      *FindCounterparts((*models_)[0].graph, whole_->graph, BuiltinOps());
  const Result<GoldenReport> golden = CompareRanksWithWhole(
      clean, (*whole_run_)[0]->source(), counterparts, order_, {.reorder = true});
  ASSERT_TRUE(golden.ok()) << golden.status().ToString();
  EXPECT_EQ(golden->First(), nullptr)
      << golden->First()->name << " " << ToText(golden->First()->fit.sharding);
  EXPECT_THAT(golden->not_comparable, testing::IsEmpty());
  EXPECT_GT(golden->rows.size(), counterparts.size() / 2);
}

TEST_F(Plants, CompareNamesOperatorAndRank) {
  std::mt19937 random(1);
  for (int plant = 0; plant < kPlants; ++plant) {
    const Fault fault = RandomFault(random, AllNames());
    const Recorders run = Record(kRanks, {fault}, static_cast<uint64_t>(plant));
    std::vector<Comparison> ranks;
    for (size_t rank = 0; rank < kRanks; ++rank) {
      ranks.push_back(*CompareSources(run[rank]->source(), (*clean_)[rank]->source(), &order_, {}));
    }
    const int blamed = RankToBlame(ranks, &order_);
    ASSERT_EQ(blamed, fault.rank) << plant << " " << fault.op;
    const Comparison& comparison = ranks[static_cast<size_t>(blamed)];
    EXPECT_EQ(comparison.First()->name, fault.op);
    for (const OperatorRow& row : comparison.rows) {
      // What came back over a collective has no cause on this rank but the plant.
      EXPECT_EQ(row.standing == Standing::kOrigin, row.name == fault.op) << row.name;
    }
  }
}

TEST_F(Plants, LawsNameOperatorAndRankWhereverOneBinds) {
  const LawTable clean_table = Laws(SourcesOf(*clean_));
  std::vector<std::string> bound;
  for (const Law& law : clean_table) {
    const SourceOperator* const op = (*clean_)[0]->source().Find(law.key);
    if (law.binds() && law.output == 0 && op != nullptr) bound.push_back(op->name);
  }
  ASSERT_GT(bound.size(), 8u);
  std::mt19937 random(2);
  for (int plant = 0; plant < kPlants; ++plant) {
    const Fault fault = RandomFault(random, bound);
    const Recorders run = Record(kRanks, {fault}, static_cast<uint64_t>(plant));
    const RankSources sources = SourcesOf(run);
    const LawTable table = Laws(sources);
    const LawReport report = *CheckLaws(table, sources, order_);
    ASSERT_NE(report.First(), nullptr) << plant << " " << fault.op;
    EXPECT_EQ(report.First()->law->key, OperatorKey(fault.op));
    EXPECT_EQ(report.First()->rank, fault.rank);
    for (size_t i = 1; i < report.broken.size(); ++i) {
      EXPECT_EQ(report.broken[i].standing, Standing::kConsequence) << report.broken[i].law->key;
    }
  }
}

TEST_F(Plants, TwoRanksAreToldApartByReplay) {
  for (int culprit = 0; culprit < 2; ++culprit) {
    Fault fault;
    fault.rank = culprit;
    fault.op = "RmsNorm_1";
    const Recorders run = Record(kRanks, {fault}, 5);
    RankSources sources = SourcesOf(run);
    sources[2] = sources[3] = nullptr;
    const LawTable table = Laws(sources);
    LawReport report = *CheckLaws(table, sources, order_);
    ASSERT_NE(report.First(), nullptr);
    BrokenLaw& broken = report.broken.front();
    EXPECT_TRUE(broken.undecided);
    const Status decided = DecideByReplay(graphs_, sources, TestEnv(), broken);
    ASSERT_TRUE(decided.ok()) << decided.ToString();
    EXPECT_FALSE(broken.undecided);
    EXPECT_EQ(broken.law->key, fault.op);
    EXPECT_EQ(broken.rank, culprit);
  }
}

TEST_F(Plants, GoldenNamesTheOperator) {
  const Counterparts counterparts =
      *FindCounterparts((*models_)[0].graph, whole_->graph, BuiltinOps());
  std::mt19937 random(3);
  for (int plant = 0; plant < kPlants; ++plant) {
    const Fault fault = RandomFault(random, AllNames());
    const Recorders run = Record(kRanks, {fault}, static_cast<uint64_t>(plant));
    const Result<GoldenReport> golden = CompareRanksWithWhole(
        SourcesOf(run), (*whole_run_)[0]->source(), counterparts, order_, {.reorder = true});
    ASSERT_TRUE(golden.ok()) << golden.status().ToString();
    ASSERT_NE(golden->First(), nullptr) << plant << " " << fault.op;
    EXPECT_EQ(golden->First()->name, fault.op) << ToText(golden->First()->fit.sharding);
    const int rank = golden->First()->fit.RankToBlame();
    EXPECT_TRUE(rank == fault.rank || rank == -1) << rank;
    for (const GoldenRow& row : golden->rows) {
      if (row.standing == Standing::kOrigin) {
        EXPECT_EQ(row.name, fault.op);
      }
    }
  }
}

TEST_F(Plants, ReplayNamesOperatorAndRankAndNothingElse) {
  std::mt19937 random(4);
  for (int plant = 0; plant < kPlants; ++plant) {
    const Fault fault = RandomFault(random, AllNames());
    const Recorders run = Record(kRanks, {fault}, static_cast<uint64_t>(plant));
    const Result<Replayed> replayed = Replay(graphs_, SourcesOf(run), TestEnv(), {});
    ASSERT_TRUE(replayed.ok()) << replayed.status().ToString();
    for (int rank = 0; rank < kRanks; ++rank) {
      for (const OperatorRow& row : replayed->ranks[static_cast<size_t>(rank)].rows) {
        EXPECT_EQ(row.differs(), rank == fault.rank && row.name == fault.op)
            << "plant " << plant << " " << fault.op << " on rank " << fault.rank << ": " << row.name
            << " on rank " << rank;
      }
    }
  }
}

}  // namespace
}  // namespace npumesh
