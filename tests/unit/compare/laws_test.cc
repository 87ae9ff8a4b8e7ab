#include "graph/compare/laws/laws.h"
#include "graph/ops/builtin_ops.h"

#include <gmock/gmock.h>

#include "graph/compare/laws/law_check.h"
#include "tests/unit/compare/tensor_parallel.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The models of a job, kept alive beside the view of them.
struct Job {
  std::vector<Model> models;
  RankGraphs graphs;

  explicit Job(std::vector<Model> made) : models(std::move(made)) {
    for (const Model& model : models) graphs.models.push_back(&model);
  }
};

InputClasses AllEqual(size_t ranks) {
  return [ranks](const std::string&) { return RankClasses(ranks, 0); };
}

LawTable Derive(const Job& job, const InputClasses& inputs) {
  Result<LawTable> table = DeriveLaws(job.graphs, BuiltinOps(), inputs);
  EXPECT_TRUE(table.ok()) << table.status().ToString();
  return *std::move(table);
}

const Law& Of(const LawTable& table, const std::string& key) {
  for (const Law& law : table) {
    if (law.key == key) return law;
  }
  ADD_FAILURE() << "no law for " << key;
  return table.front();
}

TEST(Laws, OfATensorParallelGraph) {
  const Job job({ParallelModel(0), ParallelModel(1)});
  const LawTable table = Derive(job, AllEqual(2));
  EXPECT_EQ(ToText(Of(table, "norm")), "equal on ranks 0-1");
  EXPECT_EQ(ToText(Of(table, "partial")), "partial sum (group hccl_world_group)");
  EXPECT_EQ(ToText(Of(table, "sum")), "equal on ranks 0-1");
  EXPECT_EQ(ToText(Of(table, "out")), "equal on ranks 0-1");
  EXPECT_EQ(ToText(Of(table, "piece")), "pieces along axis 0 (group hccl_world_group)");
  EXPECT_EQ(ToText(Of(table, "gathered")), "equal on ranks 0-1");
  EXPECT_FALSE(Of(table, "partial").binds());
  EXPECT_TRUE(Of(table, "out").binds());
}

TEST(Laws, InputsThatDifferMakeFree) {
  const Job job({ParallelModel(0), ParallelModel(1)});
  const LawTable table = Derive(job, [](const std::string&) { return RankClasses{0, 1}; });
  EXPECT_EQ(ToText(Of(table, "norm")), "free");
  EXPECT_EQ(ToText(Of(table, "out")), "equal on ranks 0-1");
}

TEST(Laws, SubgroupsAreEqualAmongThemselves) {
  const std::string low = "tag=a;rank_list=0,1", high = "tag=b;rank_list=2,3";
  const Job job({ParallelModel(0, low), ParallelModel(1, low), ParallelModel(2, high),
                 ParallelModel(3, high)});
  const LawTable table = Derive(job, AllEqual(4));
  EXPECT_EQ(ToText(Of(table, "norm")), "equal on ranks 0-3");
  EXPECT_THAT(Of(table, "sum").classes, ElementsAre(0, 0, 2, 2));
  EXPECT_EQ(ToText(Of(table, "out")), "equal on ranks 0-1 and 2-3");
}

TEST(Laws, GroupsWithEqualInputsGiveEqualResults) {
  const std::string low = "tag=a;rank_list=0,1", high = "tag=b;rank_list=2,3";
  // Ranks 0 and 2 have the same weights, and so do 1 and 3.
  const Job job({ParallelModel(0, low), ParallelModel(1, low), ParallelModel(0, high),
                 ParallelModel(1, high)});
  const LawTable table = Derive(job, AllEqual(4));
  EXPECT_THAT(Of(table, "partial").classes, ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(Of(table, "sum").classes, ElementsAre(0, 0, 0, 0));
}

TEST(Laws, NamedGroupsNeedTheTable) {
  Job job({ParallelModel(0, "tp"), ParallelModel(1, "tp")});
  EXPECT_THAT(DeriveLaws(job.graphs, BuiltinOps(), AllEqual(2)).status().message(),
              HasSubstr("group \"tp\" is unknown"));
  job.graphs.groups["tp"] = {0, 1};
  EXPECT_EQ(ToText(Of(Derive(job, AllEqual(2)), "sum")), "equal on ranks 0-1");
  job.graphs.groups["tp"] = {0, 7};
  EXPECT_THAT(DeriveLaws(job.graphs, BuiltinOps(), AllEqual(2)).status().message(),
              HasSubstr("rank 7"));
}

Model OtherAttribute(float value) {
  GraphBuilder g;
  const Value x = g.Data("x", {DataType::kFloat, {2}});
  g.Output({g.Op("Muls", {{"x", x}}, {{"value", AttrValue::Float(value)}}, "scaled")});
  return *g.Build();
}

TEST(Laws, AnotherAttributeIsAnotherFunction) {
  const Job same({OtherAttribute(2), OtherAttribute(2)});
  EXPECT_TRUE(Of(Derive(same, AllEqual(2)), "scaled").binds());
  const Job other({OtherAttribute(2), OtherAttribute(3)});
  EXPECT_FALSE(Of(Derive(other, AllEqual(2)), "scaled").binds());
}

// ---- against dumps ----

// What `ranks` ranks would dump; `wrong` has another value on rank `culprit`.
std::vector<MemorySource> Dumps(int ranks, const std::string& wrong, int culprit) {
  std::vector<MemorySource> sources;
  for (int rank = 0; rank < ranks; ++rank) {
    MemorySource& source = sources.emplace_back("dump");
    const bool mine = rank == culprit;
    const auto r = static_cast<float>(rank);
    bool touched = false;
    for (const auto& [key, free] : std::vector<std::pair<std::string, bool>>{
             {"x", false}, {"norm", false}, {"partial", true}, {"sum", false}, {"out", false}}) {
      touched = touched || (mine && key == wrong);
      // The collective makes what went wrong before it equal again.
      if (key == "sum" && wrong != "sum") touched = false;
      source.Add(key, "Any", Side::kOutput, 0,
                 FloatVector({free ? r : 1.0f, touched ? 9.0f : 2.0f}));
    }
  }
  return sources;
}

struct Checked {
  LawTable table;
  LawReport report;  // points into `table`
};

// A unique_ptr, so that the table stays where it is.
std::unique_ptr<Checked> Check(const std::vector<MemorySource>& dumps) {
  const auto ranks = static_cast<int>(dumps.size());
  std::vector<Model> models;
  RankSources sources;
  for (int rank = 0; rank < ranks; ++rank) {
    models.push_back(ParallelModel(rank, "hccl_world_group", ranks));
    sources.push_back(&dumps[static_cast<size_t>(rank)]);
  }
  const Job job(std::move(models));
  auto checked = std::make_unique<Checked>();
  checked->table = Derive(job, InputsAsDumped(job.graphs, BuiltinOps(), sources, false));
  const OperatorOrder order = *OperatorOrder::FromGraph(job.models[0].graph, BuiltinOps());
  Result<LawReport> report = CheckLaws(checked->table, sources, order);
  EXPECT_TRUE(report.ok()) << report.status().ToString();
  checked->report = *std::move(report);
  return checked;
}

TEST(CheckLaws, NothingIsBroken) {
  const std::vector<MemorySource> dumps = Dumps(4, "", -1);
  const std::unique_ptr<Checked> checked = Check(dumps);
  const LawReport& report = checked->report;
  EXPECT_EQ(report.First(), nullptr);
  EXPECT_EQ(report.checked, 4u);  // x, norm, sum, out
  EXPECT_EQ(report.missing, 1u);  // gathered
  EXPECT_EQ(report.free, 2u);     // partial, piece
}

TEST(CheckLaws, NamesOperatorAndRankAndNothingDownstream) {
  for (const std::string wrong : {"norm", "sum", "out"}) {
    for (int culprit = 0; culprit < 4; ++culprit) {
      const std::vector<MemorySource> dumps = Dumps(4, wrong, culprit);
      const std::unique_ptr<Checked> checked = Check(dumps);
      const LawReport& report = checked->report;
      ASSERT_NE(report.First(), nullptr) << wrong;
      EXPECT_EQ(report.First()->law->key, wrong);
      EXPECT_EQ(report.First()->rank, culprit);
      EXPECT_FALSE(report.First()->undecided);
      EXPECT_EQ(report.First()->distance.max_abs, 7);
      for (size_t i = 1; i < report.broken.size(); ++i) {
        EXPECT_EQ(report.broken[i].standing, Standing::kConsequence);
      }
    }
  }
}

TEST(CheckLaws, TwoRanksCannotDecide) {
  const std::vector<MemorySource> dumps = Dumps(2, "norm", 0);
  const std::unique_ptr<Checked> checked = Check(dumps);
  const LawReport& report = checked->report;
  ASSERT_NE(report.First(), nullptr);
  EXPECT_EQ(report.First()->law->key, "norm");
  EXPECT_TRUE(report.First()->undecided);
}

TEST(CheckLaws, InputsThatDifferAreNoBrokenLaw) {
  std::vector<MemorySource> dumps = Dumps(2, "", -1);
  dumps[1].Add("x", "Data", Side::kOutput, 0, FloatVector({5, 5}));
  const std::unique_ptr<Checked> checked = Check(dumps);
  const LawReport& report = checked->report;
  EXPECT_EQ(report.First(), nullptr);
  EXPECT_EQ(report.checked, 2u);  // sum, out
}

}  // namespace
}  // namespace npumesh
