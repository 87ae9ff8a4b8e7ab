// What HCCL_ALGO may say, and what it means.
#include "collectives/algorithms/selection.h"

#include <gmock/gmock.h>

#include <vector>

#include "collectives/algorithms/algorithm.h"

namespace npumesh {
namespace {

using ::testing::HasSubstr;

struct Meaning {
  const char* text;
  CollectiveKind kind;
  const char* in_node;
  const char* between_nodes;
};

TEST(Selection, MeansWhatTheTableSays) {
  const Meaning meanings[] = {
      {"", CollectiveKind::kAllReduce, "", ""},
      {"direct", CollectiveKind::kAllReduce, "direct", "direct"},
      {"reference", CollectiveKind::kAllToAllVC, "reference", "reference"},
      {"H-D_R", CollectiveKind::kBarrier, "", ""},
      {"level0:NA", CollectiveKind::kAllReduce, "", ""},
      {"level0:NA;level1:ring", CollectiveKind::kAllReduce, "", "ring"},
      {"level1:NHR_V1;level2:NB", CollectiveKind::kAllGatherV, "", "NHR"},
      {"level0:NA;level1:pipeline;level2:pipeline", CollectiveKind::kAllReduce, "", ""},
      {"allreduce=level0:NA;level1:H-D_R/allgather=level0:NA;level1:NHR",
       CollectiveKind::kAllReduce, "", "H-D_R"},
      {"allreduce=level0:NA;level1:H-D_R/allgather=level0:NA;level1:NHR",
       CollectiveKind::kAllGatherV, "", "NHR"},
      {"allreduce=level0:NA;level1:H-D_R/allgather=level0:NA;level1:NHR",
       CollectiveKind::kBroadcast, "", ""},
      {"reducescatter=mpi/alltoall=reference", CollectiveKind::kReduceScatterV, "mpi", "mpi"},
      {"reducescatter=mpi/alltoall=reference", CollectiveKind::kAllToAllV, "reference",
       "reference"},
      {"reduce=mpi/scatter=reference", CollectiveKind::kScatter, "reference", "reference"},
  };
  for (const Meaning& meaning : meanings) {
    const Result<Selection> selection = Selection::Parse(meaning.text, "HCCL_ALGO");
    ASSERT_TRUE(selection.ok()) << selection.status().ToString();
    EXPECT_EQ(selection->RowFor(meaning.kind, false), meaning.in_node) << meaning.text;
    EXPECT_EQ(selection->RowFor(meaning.kind, true), meaning.between_nodes) << meaning.text;
  }
}

TEST(Selection, RefusesEverythingElse) {
  const struct {
    const char* text;
    const char* says;
  } refused[] = {
      {"rong", "\"rong\" is no algorithm; expected small, direct, hierarchical"},
      {"Ring", "\"Ring\" is no algorithm"},
      {" ring", "\" ring\" is no algorithm"},
      {"level1:rong", "level1 is \"rong\"; expected one of NA ring H-D_R NHR NHR_V1 NB"},
      {"level0:ring", "level0 is \"ring\"; expected one of NA"},
      {"level2:pairwise", "level2 is \"pairwise\""},
      {"level3:ring", "\"level3:ring\" is no level"},
      {"level1:", "\"level1:\" is no level"},
      {"level0:NA;", "\"\" is no level"},
      {"level1:ring;level1:NHR", "level1 stands twice"},
      {"allreduce=", "\"\" is no algorithm"},
      {"allreduce=ring/allreduce=NHR", "allreduce stands twice"},
      {"allreduces=ring", "\"allreduces=ring\": expected an operator (allgather, reducescatter"},
      {"allreduce=ring/", "\"\": expected an operator"},
      {"level0:NA/allreduce=ring", "\"level0:NA\": expected an operator"},
  };
  for (const auto& [text, says] : refused) {
    const Result<Selection> selection = Selection::Parse(text, "HCCL_ALGO");
    ASSERT_EQ(selection.status().code(), Code::kInvalidArgument) << text;
    const std::string message(selection.status().message());
    EXPECT_THAT(message, HasSubstr(says));
    EXPECT_THAT(message, HasSubstr(fmt::format("HCCL_ALGO=\"{}\"", text)));
  }
}

TEST(Choose, TakesTheFirstRowWithoutObjection) {
  const Facts near{CollectiveKind::kAllReduce, 4, true, 512, true, false};
  const Facts large{CollectiveKind::kAllReduce, 4, true, 513, true, false};
  const Facts shared_cores{CollectiveKind::kAllReduce, 4, true, 8192, true, false, true};
  const Facts own_cores{CollectiveKind::kAllReduce, 4, true, 1025, true, false, false};
  const Facts far{CollectiveKind::kAllReduce, 4, false, 1024, true, true};
  const Facts crowd{CollectiveKind::kAllReduce, 600, false, 1024, true, false};
  const struct {
    CollectiveKind kind;
    Facts facts;
    const char* preferred;
    const char* row;
  } choices[] = {
      {CollectiveKind::kAllReduce, near, "", "small"},
      {CollectiveKind::kAllReduce, large, "", "direct"},
      {CollectiveKind::kAllReduce, shared_cores, "", "direct"},
      {CollectiveKind::kBroadcast, large, "", "small"},
      {CollectiveKind::kBroadcast, shared_cores, "", "small"},
      {CollectiveKind::kBroadcast, own_cores, "", "direct"},
      {CollectiveKind::kAllReduce, near, "mpi", "mpi"},
      {CollectiveKind::kAllReduce, near, "hierarchical", "small"},
      {CollectiveKind::kAllReduce, far, "", "hierarchical"},
      {CollectiveKind::kAllReduce, far, "direct", "hierarchical"},
      {CollectiveKind::kAllReduce, far, "NHR", "NHR"},
      {CollectiveKind::kAllReduce, crowd, "", "mpi"},
      {CollectiveKind::kBroadcast, near, "ring", "small"},
      {CollectiveKind::kBroadcast, far, "H-D_R", "H-D_R"},
      {CollectiveKind::kReduceScatterV, far, "", "hierarchical"},
      {CollectiveKind::kAllToAllVC, near, "", "direct"},
      {CollectiveKind::kScatter, far, "reference", "reference"},
      {CollectiveKind::kBarrier, far, "", "mpi"},
  };
  for (const auto& [kind, facts, preferred, row] : choices) {
    Facts asked = facts;
    asked.kind = kind;
    EXPECT_EQ(Choose(asked, preferred, false).name, row)
        << Name(kind) << " preferring \"" << preferred << '"';
  }
}

// So that a wish for an algorithm never leaves a collective without one.
TEST(Tables, EndWithARowThatNeverRefuses) {
  for (uint32_t kind = 1; kind <= static_cast<uint32_t>(CollectiveKind::kAllToAllVC); ++kind) {
    const std::span<const Algorithm> table = AlgorithmsFor(static_cast<CollectiveKind>(kind));
    EXPECT_EQ(table.back().why_not(Facts{}), "") << Name(static_cast<CollectiveKind>(kind));
  }
}

}  // namespace
}  // namespace npumesh
