// Algorithms from libraries, with ranks as threads: the example does every collective, also under a
// thread sanitizer, which looks for races between ranks; wrong libraries are refused.
#include "collectives/algorithms/algorithm_tables.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "collectives/algorithms/custom_algorithm.h"
#include "tests/ranks/collectives/collective_cases.h"
#include "tests/ranks/run_ranks.h"
#include "tests/unit/base/temporary_folder.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string BadAlgorithms(const std::string& flaw) {
  return BAD_ALGORITHMS_PREFIX + flaw + ".so";
}

using Use = std::function<Status(Communicator& group, DeviceMemory& memory)>;

std::vector<Status> RunWith(const std::string& library, int ranks, const Use& use,
                            const std::string& algo = "", const std::vector<int>& nodes = {}) {
  Env env = TestEnv();
  env.algorithm_libraries = {library};
  env.hccl_algo = algo;
  return RunRanks(
      ranks, env,
      [&](World& world) -> Status {
        NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
        std::vector<int> everyone(static_cast<size_t>(world.size()));
        std::iota(everyone.begin(), everyone.end(), 0);
        NPUMESH_ASSIGN_OR_RETURN(const auto group,
                                 Communicator::Create(world, *memory, "world", everyone));
        NPUMESH_RETURN_IF_ERROR(use(*group, *memory));
        return world.Shutdown();
      },
      nodes);
}

TEST(AlgorithmLibrary, TheExampleIsExactForEveryTypeAndCount) {
  for (const int ranks : {2, 3, 4, 8})
    ExpectAllOk(RunWith(DOUBLING_LIBRARY, ranks, CheckEverything));
  ExpectAllOk(RunWith(DOUBLING_LIBRARY, 4, CheckEverything, "doubling", {3, 1}));
}

std::string_view Taken(const AlgorithmTables& tables, const Facts& facts,
                       std::string_view preferred = "") {
  return Choose(tables.For(facts.kind), facts, preferred, false).name;
}

TEST(AlgorithmLibrary, ItsRowsGoFirstWhereTheyDoNotRefuse) {
  const auto tables = AlgorithmTables::Load({DOUBLING_LIBRARY});
  ASSERT_TRUE(tables.ok()) << tables.status().ToString();
  Facts facts;
  facts.kind = CollectiveKind::kAllReduce;
  facts.size = 4;
  facts.in_window = true;
  facts.reduces = true;
  facts.bytes = 1 << 20;
  EXPECT_EQ(Taken(**tables, facts), "doubling");
  EXPECT_EQ(Taken(**tables, facts, "ring"), "ring");
  facts.size = 3;
  EXPECT_EQ(Taken(**tables, facts), "direct");
  facts.kind = CollectiveKind::kAllGather;
  EXPECT_EQ(Taken(**tables, facts), "pushing");
  facts.kind = CollectiveKind::kBroadcast;
  EXPECT_EQ(Taken(**tables, facts), "direct");
  EXPECT_THAT((*tables)->Names(), AllOf(Contains("doubling"), Contains("pushing")));
  EXPECT_THAT(AlgorithmTables().Names(), Not(Contains("doubling")));
}

TEST(AlgorithmLibrary, SeveralKeepTheirOrder) {
  const auto tables = AlgorithmTables::Load({DOUBLING_LIBRARY, BadAlgorithms("ends_badly")});
  ASSERT_TRUE(tables.ok()) << tables.status().ToString();
  const std::span<const Algorithm> rows = (*tables)->For(CollectiveKind::kAllReduce);
  EXPECT_EQ(rows[0].name, "doubling");
  EXPECT_EQ(rows[1].name, "fails");
  EXPECT_EQ(rows[2].name, AlgorithmsFor(CollectiveKind::kAllReduce)[0].name);
}

TEST(AlgorithmLibrary, WithoutItItsNamesAreUnknown) {
  Env env = TestEnv();
  env.hccl_algo = "doubling";
  for (const Status& status : RunRanks(2, env, [](World& world) -> Status {
         NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
         return Communicator::Create(world, *memory, "world", {0, 1}).status();
       })) {
    EXPECT_THAT(status.message(), HasSubstr("\"doubling\" is no algorithm"));
  }
}

TEST(AlgorithmLibrary, WhatARowReturnsOrThrowsIsAnErrorThatNamesIt) {
  const auto reduce = [](Communicator& group, DeviceMemory& memory) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(void* const data, memory.Allocate(64));
    return group.AllReduce(data, data, 4, DataType::kFloat, ReduceOp::kSum);
  };
  for (const Status& status : RunWith(BadAlgorithms("ends_badly"), 2, reduce)) {
    EXPECT_EQ(status.code(), Code::kUnsupported) << status.ToString();
    EXPECT_THAT(status.message(), AllOf(HasSubstr("allreduce (group world"), HasSubstr("fails)"),
                                        HasSubstr("the row of the library was run")));
  }
  const auto gather = [](Communicator& group, DeviceMemory& memory) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(void* const data, memory.Allocate(64));
    NPUMESH_ASSIGN_OR_RETURN(void* const all, memory.Allocate(128));
    return group.AllGather(data, all, 4, DataType::kFloat);
  };
  for (const Status& status : RunWith(BadAlgorithms("ends_badly"), 2, gather)) {
    EXPECT_EQ(status.code(), Code::kInternal) << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr("throws: its library threw an exception: no luck"));
  }
}

struct Wrong {
  std::string path;
  Code code;
  std::string text;
};

TEST(AlgorithmLibrary, SaysInOneLineWhatIsWrong) {
  const Wrong cases[] = {
      {"absent.so", Code::kNotFound, "absent.so"},
      {testing::TempDir(), Code::kInvalidArgument, "not a regular file"},
      {BadAlgorithms("no_entry"), Code::kInvalidArgument, "it has no symbol NpumeshAlgorithmAbi"},
      {BadAlgorithms("other_version"), Code::kUnsupported,
       fmt::format("algorithm interface {}, this npumesh has {}", kAlgorithmAbi.version + 1,
                   kAlgorithmAbi.version)},
      {BadAlgorithms("other_sizes"), Code::kUnsupported, "with types of other sizes"},
      {BadAlgorithms("taken_name"), Code::kInvalidArgument,
       "allreduce algorithm \"ring\" is known already"},
      {BadAlgorithms("long_name"), Code::kInvalidArgument, "has a name that is too long"},
      {BadAlgorithms("bad_name"), Code::kInvalidArgument, "has a name that HCCL_ALGO cannot say"},
      {BadAlgorithms("no_why_not"), Code::kInvalidArgument, "does not say when it can be taken"},
      {BadAlgorithms("no_table"), Code::kInvalidArgument, "which has no table"},
  };
  for (const Wrong& wrong : cases) {
    const Status status = AlgorithmTables::Load({wrong.path}).status();
    EXPECT_EQ(status.code(), wrong.code) << status.ToString();
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("algorithm library " + wrong.path + ": "), HasSubstr(wrong.text)));
    EXPECT_EQ(status.message().find('\n'), std::string_view::npos);
  }
}

TEST(AlgorithmLibrary, ThatEverybodyMayWriteIsRefused) {
  const TemporaryFolder folder;
  fs::permissions(folder.path(), fs::perms::owner_all);
  const std::string copy = folder.Path("lib.so");
  fs::copy_file(DOUBLING_LIBRARY, copy);
  fs::permissions(copy, fs::perms::owner_all | fs::perms::others_write);
  EXPECT_THAT(AlgorithmTables::Load({copy}).status().message(),
              HasSubstr("all users may write " + copy));
  fs::permissions(copy, fs::perms::owner_all);
  EXPECT_TRUE(AlgorithmTables::Load({copy}).ok());
}

TEST(AlgorithmLibrary, TheVariableNamesSeveral) {
  const auto env = [](const char* text) {
    return Env::From([text](const char* name) -> const char* {
      return std::string_view(name) == "NPUMESH_ALGORITHM_LIBRARY" ? text : nullptr;
    });
  };
  EXPECT_THAT(env("/a.so:b.so")->algorithm_libraries, ElementsAre("/a.so", "b.so"));
  EXPECT_THAT(env("/a.so:").status().message(),
              HasSubstr("NPUMESH_ALGORITHM_LIBRARY: expected paths of shared libraries"));
}

}  // namespace
}  // namespace npumesh
