// Calls that run ahead: a root that repeats its broadcast does not wait, and yet no mistake stays
// without its explanation, which is the same on all ranks.
#include "collectives/contract/run_ahead.h"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "collectives/communicator.h"
#include "tests/ranks/run_ranks.h"

namespace npumesh {
namespace {

using ::testing::HasSubstr;

constexpr int kFollowedRanks = 4;
const std::vector<int> kAll = {0, 1, 2, 3};
// Calls in which all wait for all; the next one may run ahead.
constexpr int kMet = static_cast<int>(Streak::kTrusted);

// What element i of broadcast c holds.
int32_t Element(int c, uint64_t i) {
  return static_cast<int32_t>(c * 100'003 + static_cast<int>(i));
}

// One broadcast whose data are checked on every rank.
Status CheckedBroadcast(Communicator& group, HbmArray<int32_t>& data, uint64_t count, int root,
                        int c) {
  for (uint64_t i = 0; i < count; ++i) data[i] = group.rank() == root ? Element(c, i) : -1;
  NPUMESH_RETURN_IF_ERROR(group.Broadcast(data.data(), count, DataType::kInt32, root));
  for (uint64_t i = 0; i < count; ++i) {
    if (data[i] == Element(c, i)) continue;
    return Error(Code::kInternal, "broadcast {} of {}: element {} is {}, expected {}", c, count, i,
                 data[i], Element(c, i));
  }
  // The root's buffer is its own again.
  std::fill_n(data.data(), count, -2);
  return Status();
}

struct Group {
  std::unique_ptr<DeviceMemory> memory;
  std::unique_ptr<Communicator> communicator;
};

Result<Group> Open(World& world) {
  Group group;
  NPUMESH_ASSIGN_OR_RETURN(group.memory, DeviceMemory::Create(world));
  CommunicatorOptions options;
  options.run_ahead = true;
  NPUMESH_ASSIGN_OR_RETURN(group.communicator,
                           Communicator::Create(world, *group.memory, "tp", kAll, options));
  return group;
}

TEST(RunAhead, DataAreTheirCallsOwnWhateverTheirSize) {
  ExpectAllOk(RunRanks(kFollowedRanks, TestEnv(), [](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const Group group, Open(world));
    HbmArray<int32_t> data(*group.memory, 8192);
    int c = 0;
    for (const uint64_t count : {1, 30, 31, 1024, 1025, 2048, 3000, 4096, 4097, 8192}) {
      for (int i = 0; i < 60; ++i, ++c) {
        // Each rank lags now and then.
        if ((c + 7 * world.rank()) % 23 == 0) {
          std::this_thread::sleep_for(std::chrono::microseconds(300));
        }
        NPUMESH_RETURN_IF_ERROR(
            CheckedBroadcast(*group.communicator, data, count, (c / 60) % kFollowedRanks, c));
      }
    }
    return world.Shutdown();
  }));
}

// Other calls between those that run ahead, whose eager data lie where the ring lay, and roots that
// change before the others have read.
TEST(RunAhead, EndsWithTheNextOtherCall) {
  ExpectAllOk(RunRanks(kFollowedRanks, TestEnv(), [](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const Group group, Open(world));
    HbmArray<int32_t> data(*group.memory, 4096);
    HbmArray<int32_t> sum(*group.memory, 16);
    HbmArray<int32_t> all(*group.memory, 16 * kFollowedRanks);
    for (int round = 0; round < 120; ++round) {
      const int root = round % kFollowedRanks;
      for (int i = 0; i < kMet + round % 19; ++i) {
        if ((i + world.rank()) % 11 == 0) std::this_thread::yield();
        NPUMESH_RETURN_IF_ERROR(CheckedBroadcast(*group.communicator, data, 1 + 37 * (round % 100),
                                                 root, 100 * round + i));
      }
      for (uint64_t i = 0; i < 16; ++i) sum[i] = round + world.rank();
      if (round % 3 == 0) {
        NPUMESH_RETURN_IF_ERROR(
            group.communicator->AllGather(sum.data(), all.data(), 16, DataType::kInt32));
        for (int i = 0; i < 16 * kFollowedRanks; ++i)
          EXPECT_EQ(all[i], round + i / 16) << "round " << round;
      } else if (round % 3 == 1) {
        NPUMESH_RETURN_IF_ERROR(group.communicator->AllReduce(sum.data(), sum.data(), 16,
                                                              DataType::kInt32, ReduceOp::kSum));
        EXPECT_EQ(sum[15], kFollowedRanks * round + 6);
      }
    }
    return world.Shutdown();
  }));
}

// The others do not begin before the root is through: it cannot have waited for them.
TEST(RunAhead, RootRunsAheadAsFarAsThereAreCells) {
  std::atomic<bool> root_is_through{false};
  ExpectAllOk(RunRanks(kFollowedRanks, TestEnv(), [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const Group group, Open(world));
    HbmArray<int32_t> data(*group.memory, 1024);
    int c = 0;
    for (; c < kMet + 1; ++c) {
      NPUMESH_RETURN_IF_ERROR(CheckedBroadcast(*group.communicator, data, 1024, 2, c));
    }
    NPUMESH_RETURN_IF_ERROR(group.communicator->Barrier());
    for (int i = 0; i < kMet; ++i, ++c) {
      NPUMESH_RETURN_IF_ERROR(CheckedBroadcast(*group.communicator, data, 1024, 2, c));
    }
    while (world.rank() != 2 && !root_is_through) std::this_thread::yield();
    for (uint64_t i = 0; i < Slot::kRingCells; ++i, ++c) {
      NPUMESH_RETURN_IF_ERROR(CheckedBroadcast(*group.communicator, data, 1024, 2, c));
    }
    root_is_through = true;
    return world.Shutdown();
  }));
}

// How one rank leaves the common path.
enum class Difference { kCount, kKind, kRoot, kName, kRefused };

Status Deviate(Communicator& group, HbmArray<int32_t>& data, Difference deviation) {
  constexpr int kRoot = 1;
  switch (deviation) {
    case Difference::kCount:
      return group.Broadcast(data.data(), 9, DataType::kInt32, kRoot);
    case Difference::kKind:
      return group.AllReduce(data.data(), data.data(), 8, DataType::kInt32, ReduceOp::kSum);
    case Difference::kRoot:
      return group.Broadcast(data.data(), 8, DataType::kInt32, 3);
    case Difference::kName:
      return group.Broadcast(data.data(), 8, DataType::kInt32, kRoot, "other");
    case Difference::kRefused:
      return group.Broadcast(nullptr, 8, DataType::kInt32, kRoot);
  }
  return Status();
}

class Dispute : public ::testing::TestWithParam<std::tuple<Difference, int, int>> {};

TEST_P(Dispute, IsExplainedAlikeOnAllRanks) {
  const auto& [deviation, deviant, at] = GetParam();
  const std::vector<Status> statuses = RunRanks(
      kFollowedRanks, TestEnv(),
      [deviation = deviation, deviant = deviant, at = at](World& world) -> Status {
        NPUMESH_ASSIGN_OR_RETURN(const Group group, Open(world));
        HbmArray<int32_t> data(*group.memory, 16);
        Status status;
        for (int c = 0; c < 40 && status.ok(); ++c) {
          status = c == at && world.rank() == deviant
                       ? Deviate(*group.communicator, data, deviation)
                       : group.communicator->Broadcast(data.data(), 8, DataType::kInt32, 1);
        }
        if (status.ok()) status = group.communicator->Barrier();
        EXPECT_EQ(group.communicator->Barrier().message(), status.message());
        const Status end = world.Shutdown();
        return status.ok() ? end : status;
      });
  for (const Status& status : statuses) {
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(status.message(), statuses[0].message());
    EXPECT_THAT(std::string(status.message()), HasSubstr(fmt::format("rank {}", deviant)));
    // The number of the call in which it happened, from 1.
    EXPECT_THAT(std::string(status.message()), HasSubstr(fmt::format("call {})", at + 1)));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ways, Dispute,
    ::testing::Combine(::testing::Values(Difference::kCount, Difference::kKind, Difference::kRoot,
                                         Difference::kName, Difference::kRefused),
                       ::testing::Values(0, 1, 2, 3),
                       ::testing::Values(kMet - 1, kMet, kMet + 1, kMet + 15, kMet + 16, 39)));

// Two ranks go wrong in different calls: the earlier one is explained, to all.
TEST(RunAhead, EarliestOfTwoDisputesIsExplained) {
  for (int gap = 1; gap <= 12; ++gap) {
    const std::vector<Status> statuses =
        RunRanks(kFollowedRanks, TestEnv(), [gap](World& world) -> Status {
          NPUMESH_ASSIGN_OR_RETURN(const Group group, Open(world));
          HbmArray<int32_t> data(*group.memory, 16);
          Status status;
          for (int c = 0; c < 40 && status.ok(); ++c) {
            const bool early = world.rank() == 0 && c == kMet + 2;
            const bool late = world.rank() == 3 && c == kMet + 2 + gap;
            // So that the sender is likely to see the later one first.
            if (early) std::this_thread::sleep_for(std::chrono::milliseconds(5));
            status = early || late
                         ? Deviate(*group.communicator, data, Difference::kKind)
                         : group.communicator->Broadcast(data.data(), 8, DataType::kInt32, 1);
          }
          const Status end = world.Shutdown();
          return status.ok() ? end : status;
        });
    for (const Status& status : statuses) {
      EXPECT_EQ(status.code(), Code::kMismatch);
      EXPECT_EQ(status.message(), statuses[0].message());
      EXPECT_THAT(std::string(status.message()), HasSubstr("rank 0 has"));
    }
  }
}

// The root is done and leaves the group before it could learn of the deviation.
TEST(RunAhead, WhoLeavesTheGroupStillAnswers) {
  const std::vector<Status> statuses =
      RunRanks(kFollowedRanks, TestEnv(), [](World& world) -> Status {
        NPUMESH_ASSIGN_OR_RETURN(Group group, Open(world));
        HbmArray<int32_t> data(*group.memory, 16);
        Status status;
        for (int c = 0; c < kMet + 8 && status.ok(); ++c) {
          status = world.rank() == 2 && c == kMet + 4
                       ? Deviate(*group.communicator, data, Difference::kCount)
                       : group.communicator->Broadcast(data.data(), 8, DataType::kInt32, 1);
        }
        const Status closed = group.communicator->Close();
        EXPECT_TRUE(group.communicator->Close().ok()) << "said once";
        if (status.ok()) status = closed;
        const Status end = world.Shutdown();
        return status.ok() ? end : status;
      });
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), Code::kMismatch);
    EXPECT_EQ(status.message(), statuses[0].message());
    EXPECT_THAT(std::string(status.message()), HasSubstr("rank 2 has"));
  }
}

// Without the option no rank leaves a call before all have come.
TEST(RunAhead, IsOnlyForThoseWhoAskForIt) {
  std::atomic<int> come{0};
  ExpectAllOk(RunRanks(kFollowedRanks, TestEnv(), [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    NPUMESH_ASSIGN_OR_RETURN(const auto group, Communicator::Create(world, *memory, "tp", kAll));
    HbmArray<int32_t> data(*memory, 16);
    for (int c = 0; c < 50; ++c) {
      come.fetch_add(1);
      NPUMESH_RETURN_IF_ERROR(group->Broadcast(data.data(), 8, DataType::kInt32, 1));
      EXPECT_GE(come.load(), kFollowedRanks * (c + 1));
    }
    return world.Shutdown();
  }));
}

// A follower that is gone is missed, at the latest when the cells are full.
TEST(RunAhead, LostFollowerIsNamed) {
  const std::vector<Status> statuses =
      RunRanks(kFollowedRanks, TestEnv(), [](World& world) -> Status {
        NPUMESH_ASSIGN_OR_RETURN(const Group group, Open(world));
        HbmArray<int32_t> data(*group.memory, 16);
        Status status;
        for (int c = 0; c < 40 && status.ok(); ++c) {
          if (world.rank() == 3 && c == kMet + 3) return Error(Code::kInternal, "gone");
          status = group.communicator->Broadcast(data.data(), 8, DataType::kInt32, 1);
        }
        return status;
      });
  for (const int rank : {0, 1, 2}) {
    EXPECT_EQ(statuses[static_cast<size_t>(rank)].code(), Code::kPeerLost) << rank;
  }
  EXPECT_THAT(std::string(statuses[1].message()), HasSubstr("rank 3"));
}

}  // namespace
}  // namespace npumesh
