// Every collective by every algorithm, with ranks as threads.
#include <gmock/gmock.h>

#include <numeric>

#include "collectives/communicator.h"
#include "tests/ranks/collectives/collective_cases.h"
#include "tests/ranks/run_ranks.h"

namespace npumesh {
namespace {

std::vector<int> Everyone(const World& world) {
  std::vector<int> ranks(static_cast<size_t>(world.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

struct Setting {
  const char* name;
  int ranks;
  const char* algorithm;  // empty: chosen
  std::vector<int> nodes;
};

class Collectives : public ::testing::TestWithParam<Setting> {};

TEST_P(Collectives, AreExact) {
  Env env = TestEnv();
  env.hccl_algo = GetParam().algorithm;
  ExpectAllOk(RunRanks(
      GetParam().ranks, env,
      [](World& world) -> Status {
        NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
        NPUMESH_ASSIGN_OR_RETURN(const auto group,
                                 Communicator::Create(world, *memory, "world", Everyone(world)));
        NPUMESH_RETURN_IF_ERROR(CheckEverything(*group, *memory));
        return world.Shutdown();
      },
      GetParam().nodes));
}

INSTANTIATE_TEST_SUITE_P(
    Rings, Collectives,
    ::testing::Values(
        Setting{"one", 1, "", {}}, Setting{"two", 2, "", {}},
        Setting{"three_direct", 3, "direct", {}}, Setting{"four", 4, "", {}},
        Setting{"four_mpi", 4, "mpi", {}}, Setting{"three_reference", 3, "reference", {}},
        Setting{"uneven_nodes", 4, "", {3, 1}}, Setting{"even_nodes", 4, "", {2, 2}},
        Setting{"three_nodes", 6, "", {1, 3, 2}}, Setting{"uneven_nodes_mpi", 4, "mpi", {3, 1}},
        Setting{"uneven_nodes_reference", 4, "reference", {1, 3}},
        Setting{"two_ring", 2, "ring", {}}, Setting{"five_ring", 5, "ring", {}},
        Setting{"uneven_nodes_ring", 4, "level0:NA;level1:ring", {3, 1}},
        Setting{"two_halving", 2, "H-D_R", {}}, Setting{"five_halving", 5, "H-D_R", {}},
        Setting{"seven_halving", 7, "H-D_R", {}}, Setting{"eight_halving", 8, "H-D_R", {}},
        Setting{"nodes_halving", 4, "level0:NA;level1:H-D_R", {2, 2}},
        Setting{"two_nhr", 2, "NHR", {}}, Setting{"five_nhr", 5, "NHR", {}},
        Setting{"eight_nhr", 8, "NHR", {}},
        Setting{"three_nodes_nhr", 6, "level0:NA;level1:NHR", {1, 3, 2}},
        Setting{"eight", 8, "", {}}),
    [](const auto& info) { return info.param.name; });

TEST(Communicator, SubgroupsOverlapAndReorder) {
  ExpectAllOk(RunRanks(4, TestEnv(), [](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    const std::vector<std::vector<int>> groups = {{0, 1}, {2, 3}, {3, 1, 0}, {0, 1, 2, 3}, {2, 0}};
    std::vector<std::unique_ptr<Communicator>> mine;
    for (const std::vector<int>& ranks : groups) {
      if (std::find(ranks.begin(), ranks.end(), world.rank()) == ranks.end()) continue;
      NPUMESH_ASSIGN_OR_RETURN(mine.emplace_back(),
                               Communicator::Create(world, *memory, "sub", ranks));
      EXPECT_EQ(ranks[static_cast<size_t>(mine.back()->rank())], world.rank());
    }
    for (const auto& group : mine) NPUMESH_RETURN_IF_ERROR(CheckQuickly(*group, *memory));
    return world.Shutdown();
  }));
}

TEST(Communicator, CanBeMadeAgainAndAgain) {
  ExpectAllOk(RunRanks(2, TestEnv(), [](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    for (int i = 0; i < 1100; ++i) {  // more than there are slots
      NPUMESH_ASSIGN_OR_RETURN(const auto group,
                               Communicator::Create(world, *memory, "again", {0, 1}));
      NPUMESH_RETURN_IF_ERROR(group->Barrier());
    }
    return world.Shutdown();
  }));
}

TEST(Communicator, RefusesWrongMembers) {
  ExpectAllOk(RunRanks(2, TestEnv(), [](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    const int other = 1 - world.rank();
    for (const std::vector<int>& ranks :
         {std::vector<int>{other}, {world.rank(), world.rank()}, {0, 1, 2}, {0, 1, -1}}) {
      const auto group = Communicator::Create(world, *memory, "wrong", ranks);
      EXPECT_EQ(group.status().code(), Code::kInvalidArgument);
    }
    return world.Shutdown();
  }));
}

TEST(Communicator, RefusesAnAlgorithmThatDoesNotExist) {
  Env env = TestEnv();
  env.hccl_algo = "level0:NA;level1:rong";
  ExpectAllOk(RunRanks(1, env, [](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    const auto group = Communicator::Create(world, *memory, "g", {0});
    EXPECT_EQ(group.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(std::string(group.status().message()),
                ::testing::HasSubstr("HCCL_ALGO=\"level0:NA;level1:rong\": level1 is \"rong\""));
    // A wish of the group's own stands in front of the environment's.
    EXPECT_TRUE(Communicator::Create(world, *memory, "g", {0}, {.algo = "mpi"}).ok());
    EXPECT_TRUE(Communicator::Create(world, *memory, "g", {0}, {.algo = ""}).ok());
    return world.Shutdown();
  }));
}

TEST(Communicator, WorksWithManyRanks) {
  Env env = TestEnv();
  env.hbm_bytes = uint64_t{4} << 20;
  env.exec_timeout = std::chrono::seconds(100);
  env.connect_timeout = std::chrono::seconds(100);
  ExpectAllOk(RunRanks(64, env, [](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    NPUMESH_ASSIGN_OR_RETURN(const auto group,
                             Communicator::Create(world, *memory, "world", Everyone(world)));
    NPUMESH_RETURN_IF_ERROR(CheckQuickly(*group, *memory));
    return world.Shutdown();
  }));
}

}  // namespace
}  // namespace npumesh
