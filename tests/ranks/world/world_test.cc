#include "runtime/world/world.h"

#include <gmock/gmock.h>

#include <atomic>
#include <cstring>

#include "runtime/world/come_back.h"
#include "tests/ranks/run_ranks.h"

namespace npumesh {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(World, KnowsWhoIsWho) {
  ExpectAllOk(RunRanks(4, TestEnv(), [](World& world) {
    EXPECT_EQ(world.size(), 4);
    EXPECT_EQ(world.node_count(), 1);
    EXPECT_EQ(world.local_rank(), world.rank());
    EXPECT_THAT(world.local_ranks(), ElementsAre(0, 1, 2, 3));
    return world.Shutdown();
  }));
}

TEST(World, UnevenNodes) {
  ExpectAllOk(RunRanks(4, TestEnv(),
                       [](World& world) {
                         EXPECT_EQ(world.node_count(), 2);
                         EXPECT_EQ(world.local_size(), world.rank() < 3 ? 3 : 1);
                         EXPECT_EQ(world.local_rank(), world.rank() % 3);
                         EXPECT_EQ(world.board().shared_area(3) != nullptr, world.rank() == 3);
                         return world.Shutdown();
                       },
                       {3, 1}));
}

TEST(World, StartsAtOneTime) {
  const std::time_t before = std::time(nullptr);
  std::array<std::time_t, 3> starts{};
  ExpectAllOk(RunRanks(3, TestEnv(), [&](World& world) {
    starts[static_cast<size_t>(world.rank())] = world.start_time();
    return world.Shutdown();
  }));
  EXPECT_EQ(starts[0], starts[1]);
  EXPECT_EQ(starts[0], starts[2]);
  EXPECT_GE(starts[0], before);
  EXPECT_LE(starts[0], std::time(nullptr));
}

TEST(World, SharedAreaIsShared) {
  ExpectAllOk(RunRanks(3, TestEnv(), [](World& world) {
    auto* mine = reinterpret_cast<std::atomic<int>*>(world.board().shared_area(world.rank()));
    mine->store(world.rank() + 100, std::memory_order_release);
    for (int peer = 0; peer < 3; ++peer) {
      auto* theirs = reinterpret_cast<std::atomic<int>*>(world.board().shared_area(peer));
      while (theirs->load(std::memory_order_acquire) != peer + 100) std::this_thread::yield();
    }
    return world.Shutdown();
  }));
}

struct LauncherCase {
  const char* name;
  std::optional<int> Env::*field;
  int value;
  const char* expected;
};

class WrongLauncher : public ::testing::TestWithParam<LauncherCase> {};

// The rank whose environment is wrong says what is wrong; the others say which rank could not
// start.
TEST_P(WrongLauncher, IsAnErrorOnAllRanks) {
  Env env = TestEnv();
  env.*GetParam().field = GetParam().value;
  const std::vector<Status> statuses = RunRanks(2, env, [](World&) { return Status(); });
  for (const Status& status : statuses) {
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().expected));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, WrongLauncher,
    ::testing::Values(LauncherCase{"LocalWorldSize", &Env::local_world_size, 4,
                                   "LOCAL_WORLD_SIZE is 4, but 2 rank(s) share memory"},
                      LauncherCase{"WorldSize", &Env::world_size, 8,
                                   "WORLD_SIZE is 8, but 2 rank(s) were started"}),
    [](const auto& info) { return info.param.name; });

TEST(World, WrongRankIsAnErrorOnAllRanks) {
  Env env = TestEnv();
  env.rank = 0;  // right for rank 0, wrong for rank 1
  const std::vector<Status> statuses = RunRanks(2, env, [](World&) { return Status(); });
  EXPECT_THAT(std::string(statuses[0].message()), HasSubstr("rank 1 failed: RANK is 0"));
  EXPECT_THAT(std::string(statuses[1].message()), HasSubstr("RANK is 0, but this is rank 1"));
}

TEST(World, PublishedFailureReachesPeers) {
  std::atomic<int> started{0};
  std::atomic<bool> published{false};
  ExpectAllOk(RunRanks(3, TestEnv(), [&](World& world) {
    // Who hears of it while it still starts does not start.
    ++started;
    while (started != 3) std::this_thread::yield();
    if (world.rank() == 1) {
      world.board().PublishFailure(Error(Code::kIo, "disk is full"));
      world.board().PublishFailure(Error(Code::kIo, "only the first counts"));
      published = true;
    }
    while (!published) std::this_thread::yield();
    const Status status = world.board().CheckPeers({0, 1, 2});
    if (world.rank() != 1) {
      EXPECT_EQ(status.code(), Code::kPeerLost);
      EXPECT_EQ(status.message(), "rank 1 failed: disk is full");
    }
    return world.Shutdown();
  }));
}

// A reason of any length, cut where the page ends; each is over after both have come back from it.
TEST(Setbacks, AreReadByThoseThatTheyConcern) {
  for (const size_t length : {0, 1, 7, 8, 2047, 2048, 5000}) {
    const std::string text(length, 'x');
    ExpectAllOk(RunRanks(3, TestEnv(), [&](World& world) -> Status {
      Setbacks& setbacks = world.board().setbacks();
      for (uint64_t call = 1; world.rank() < 2 && call <= 3; ++call) {
        const int peer = 1 - world.rank();
        EXPECT_TRUE(FailTogether(world, Error(Code::kIo, "{}", text), {{peer, call}}));
        EXPECT_TRUE(setbacks.lasting());
        while (!setbacks.Awaited().empty() && world.board().CheckLost(peer).ok()) {
          std::this_thread::yield();
        }
        const Status told = world.board().CheckPeer(peer);
        EXPECT_EQ(told.code(), Code::kPeerLost);
        EXPECT_EQ(told.message(), fmt::format("rank {} failed: {}", peer, text.substr(0, 2048)));
        EXPECT_TRUE(world.board().CheckLost(peer).ok());
        NPUMESH_RETURN_IF_ERROR(ComeBack(world));
        EXPECT_FALSE(setbacks.lasting());
      }
      EXPECT_TRUE(world.board().CheckPeers({0, 1}).ok());
      return world.Shutdown();
    }));
  }
}

TEST(Setbacks, AreFailuresWhereARankWouldNotSeeThem) {
  const auto on_nodes = [](World& world) {
    EXPECT_FALSE(FailTogether(world, Error(Code::kIo, "no"), {{1 - world.rank(), 1}}));
    EXPECT_FALSE(world.board().setbacks().lasting());
    return ComeBack(world);
  };
  ExpectAllOk(RunRanks(2, TestEnv(), on_nodes, {1, 1}));
}

TEST(Setbacks, OfDifferentCallsAreFinal) {
  for (const Status& status : RunRanks(2, TestEnv(), [](World& world) {
         const auto mark = static_cast<uint64_t>(world.rank()) + 1;
         EXPECT_TRUE(FailTogether(world, Error(Code::kIo, "no"), {{1 - world.rank(), mark}}));
         const Status first = ComeBack(world);
         EXPECT_FALSE(ComeBack(world).ok());
         (void)world.Shutdown();
         return first;
       })) {
    EXPECT_THAT(std::string(status.message()),
                ::testing::AnyOf(HasSubstr("failed in different calls"), HasSubstr("rank ")));
    EXPECT_FALSE(status.ok());
  }
}

TEST(World, EndedRankIsNoticed) {
  const std::vector<Status> statuses = RunRanks(2, TestEnv(), [](World& world) {
    if (world.rank() == 1) return Status();  // leaves without a word
    Status status;
    while (status.ok()) status = world.board().CheckPeer(1);
    return status;
  });
  EXPECT_EQ(statuses[0].code(), Code::kPeerLost);
  EXPECT_THAT(std::string(statuses[0].message()), HasSubstr("rank 1 of 2"));
}

TEST(World, ShutdownDoesNotWaitForTheDead) {
  const std::vector<Status> statuses = RunRanks(
      2, TestEnv(), [](World& world) { return world.rank() == 1 ? Status() : world.Shutdown(); });
  EXPECT_EQ(statuses[0].code(), Code::kPeerLost);
}

TEST(World, OrdinalsCountEachKey) {
  ExpectAllOk(RunRanks(1, TestEnv(), [](World& world) {
    EXPECT_EQ(world.NextOrdinal(7), 0u);
    EXPECT_EQ(world.NextOrdinal(7), 1u);
    EXPECT_EQ(world.NextOrdinal(8), 0u);
    return world.Shutdown();
  }));
}

TEST(Transport, MessagesKeepTheirOrder) {
  ExpectAllOk(RunRanks(2, TestEnv(), [](World& world) -> Status {
    const int peer = 1 - world.rank();
    for (int i = 0; i < 100; ++i) {
      const int sent = i * 2 + world.rank();
      int got = -1;
      NPUMESH_RETURN_IF_ERROR(
          world.transport().Exchange(peer, std::as_bytes(std::span(&sent, 1)), peer,
                                     std::as_writable_bytes(std::span(&got, 1)), 3,
                                     Deadline::After(std::chrono::seconds(10))));
      EXPECT_EQ(got, i * 2 + peer);
    }
    return world.Shutdown();
  }));
}

TEST(Transport, WaitsHaveAnEnd) {
  ExpectAllOk(RunRanks(2, TestEnv(), [](World& world) {
    if (world.rank() == 0) {
      std::byte byte{};
      const Status status = world.transport().Exchange(
          -1, {}, 1, std::span(&byte, 1), 3, Deadline::After(std::chrono::milliseconds(100)));
      EXPECT_EQ(status.code(), Code::kTimeout);
    }
    return world.Shutdown();
  }));
}

// The window: what one rank writes into its HBM the others read without a message.
TEST(DeviceMemory, PeersReadEachOthersHbm) {
  ExpectAllOk(RunRanks(3, TestEnv(), [](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    NPUMESH_ASSIGN_OR_RETURN(void* block, memory->Allocate(1000));
    std::memset(block, world.rank() + 1, 1000);
    const uint64_t mine = memory->OffsetOf(block);
    std::vector<uint64_t> offsets(3);
    NPUMESH_ASSIGN_OR_RETURN(
        const auto group,
        world.transport().Group({0, 1, 2}, 5, Deadline::After(std::chrono::seconds(10))));
    NPUMESH_RETURN_IF_ERROR(
        group->AllGather(&mine, offsets.data(), sizeof(mine), Deadline::Never()));
    for (int peer = 0; peer < 3; ++peer) {
      const std::byte* theirs = memory->PeerAddress(peer, offsets[static_cast<size_t>(peer)]);
      EXPECT_EQ(static_cast<int>(theirs[999]), peer + 1);
    }
    NPUMESH_RETURN_IF_ERROR(group->Barrier(Deadline::Never()));
    NPUMESH_RETURN_IF_ERROR(memory->Free(block));
    return world.Shutdown();
  }));
}

TEST(DeviceMemory, OutOfMemorySaysHowMuch) {
  ExpectAllOk(RunRanks(1, TestEnv(), [](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    const Result<void*> block = memory->Allocate(uint64_t{1} << 30);
    EXPECT_EQ(block.status().code(), Code::kOutOfMemory);
    EXPECT_THAT(std::string(block.status().message()), HasSubstr("1073741824"));
    EXPECT_THAT(std::string(block.status().message()), HasSubstr("67108864"));
    return world.Shutdown();
  }));
}

}  // namespace
}  // namespace npumesh
