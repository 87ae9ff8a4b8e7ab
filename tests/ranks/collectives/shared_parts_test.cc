// Members that run each other's parts of a call: each part is run once, no rank leaves before all
// are done, and a group may end right after.
#include "collectives/contract/shared_parts.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <numeric>
#include <random>

#include "collectives/communicator.h"
#include "collectives/contract/meeting.h"
#include "runtime/base/text/rank_list.h"
#include "tests/ranks/run_ranks.h"

namespace npumesh {
namespace {

// What all ranks, which are threads, read and write: part p is the sum of all inputs plus p.
struct Board {
  explicit Board(int ranks)
      : inputs(static_cast<size_t>(ranks)), results(inputs.size()), runs(inputs.size()) {}

  // No atomics but the counts: a thread sanitizer sees who left too early.
  std::vector<uint64_t> inputs;
  std::vector<uint64_t> results;
  std::vector<std::atomic<int>> runs;

  uint64_t Sum() const { return std::accumulate(inputs.begin(), inputs.end(), uint64_t{0}); }
  void RunPart(size_t p) {
    results[p] = Sum() + p;
    ++runs[p];
  }
};

uint64_t Input(size_t rank, uint64_t call) {
  return call * 1000 + rank;
}

Request AnyRequest() {
  Request request;
  request.kind = CollectiveKind::kAllReduce;
  return request;
}

// Takes the own part and, in any order, some of the others', as if all had the same processor.
void RunSomeParts(SharedParts& parts, size_t rank, std::mt19937& random, Board& board) {
  if (random() % 3 == 0) sched_yield();  // another one may come first
  if (!parts.Take(rank)) return;
  board.RunPart(rank);
  std::vector<size_t> others(board.inputs.size());
  std::iota(others.begin(), others.end(), size_t{0});
  std::shuffle(others.begin(), others.end(), random);
  others.resize(random() % (others.size() + 1));
  for (const size_t other : others) {
    if (other == rank || !parts.Take(other)) continue;
    board.RunPart(other);
    parts.End(other);
  }
}

Status SharedCall(Meeting& meeting, uint64_t call, size_t rank, std::mt19937& random,
                  Board& board) {
  board.inputs[rank] = Input(rank, call);
  NPUMESH_RETURN_IF_ERROR(meeting.Arrive(AnyRequest(), {}, {}));
  RunSomeParts(*meeting.parts(), rank, random, board);
  NPUMESH_RETURN_IF_ERROR(meeting.DepartShared());
  const uint64_t n = board.inputs.size();
  const uint64_t expected = call * 1000 * n + n * (n - 1) / 2 + rank;
  const int runs = board.runs[rank].exchange(0);
  if (board.results[rank] == expected && runs == 1) return Status();
  return Error(Code::kInternal, "call {}: part {} was run {} times and is {}, expected {}", call,
               rank, runs, board.results[rank], expected);
}

// A call without parts, which waits for all or for none.
Status OtherCall(Meeting& meeting, bool waits) {
  NPUMESH_RETURN_IF_ERROR(meeting.Arrive(Request(), {}, {}));
  if (waits) return meeting.Depart();
  meeting.Pass();
  return Status();
}

class SharedPartsTest : public testing::TestWithParam<int> {};

TEST_P(SharedPartsTest, EachPartIsRunOnceAndNobodyLeavesBefore) {
  const int ranks = GetParam();
  Board board(ranks);
  ExpectAllOk(RunRanks(ranks, TestEnv(), [&](World& world) -> Status {
    const auto rank = static_cast<size_t>(world.rank());
    std::mt19937 random(static_cast<uint32_t>(world.rank()));
    std::mt19937 plan(7);  // the same on all ranks
    const auto meeting = Meeting::Of(world, "m", AllRanks(ranks));
    NPUMESH_RETURN_IF_ERROR(meeting->Meet("creating", world.env().connect_timeout));
    for (uint64_t call = 1; call <= 600; ++call) {
      if (plan() % 4 == 0) NPUMESH_RETURN_IF_ERROR(OtherCall(*meeting, plan() % 2 == 0));
      NPUMESH_RETURN_IF_ERROR(SharedCall(*meeting, call, rank, random, board));
    }
    return world.Shutdown();
  }));
}

// A member whose part another has run may not have read the slots yet when the others leave
// the group, and make the next one in the same slots.
TEST_P(SharedPartsTest, AGroupMayEndRightAfter) {
  const int ranks = GetParam();
  Board board(ranks);
  ExpectAllOk(RunRanks(ranks, TestEnv(), [&](World& world) -> Status {
    const auto rank = static_cast<size_t>(world.rank());
    std::mt19937 random(static_cast<uint32_t>(world.rank()) + 100);
    for (uint64_t call = 1; call <= 60; ++call) {
      const auto meeting = Meeting::Of(world, "m", AllRanks(ranks));
      NPUMESH_RETURN_IF_ERROR(meeting->Meet("creating", world.env().connect_timeout));
      NPUMESH_RETURN_IF_ERROR(SharedCall(*meeting, call, rank, random, board));
    }
    return world.Shutdown();
  }));
}

INSTANTIATE_TEST_SUITE_P(Ranks, SharedPartsTest, testing::Values(1, 2, 3, 8));

// All collectives of a communicator whose ranks share one processor, whatever this machine has: the
// ranks run each other's parts, in place and out of place, for each root.
class OneProcessor {
 public:
  OneProcessor() {
    sched_getaffinity(0, sizeof(before_), &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof(one), &one);
    setenv("HWLOC_SYNTHETIC", "core:1 pu:1", 1);
  }
  ~OneProcessor() {
    unsetenv("HWLOC_SYNTHETIC");
    sched_setaffinity(0, sizeof(before_), &before_);
  }

 private:
  cpu_set_t before_;
};

constexpr uint64_t kCount = 1000;  // floats of a block: more than what travels in slots

float Element(int rank, uint64_t i, uint64_t call) {
  return static_cast<float>((static_cast<uint64_t>(rank) * 7919 + i * 31 + call * 17) % 1000);
}

Status Expect(bool right, std::string_view what, uint64_t call, uint64_t i) {
  if (right) return Status();
  return Error(Code::kInternal, "{} in round {} is wrong at element {}", what, call, i);
}

Status RoundOfCollectives(Communicator& group, HbmArray<float>& send, HbmArray<float>& recv,
                          uint64_t call) {
  const int n = group.size(), me = group.rank();
  const auto blocks = static_cast<uint64_t>(n);
  const auto fill = [&](HbmArray<float>& array) {
    for (uint64_t i = 0; i < array.size(); ++i) array[i] = Element(me, i, call);
  };
  const auto sum_at = [&](uint64_t i) {
    float sum = 0;
    for (int r = 0; r < n; ++r) sum += Element(r, i, call);
    return sum;
  };
  const auto mine = static_cast<uint64_t>(me);
  const int root = static_cast<int>(call % blocks);
  fill(send);
  NPUMESH_RETURN_IF_ERROR(
      group.AllReduce(send.data(), recv.data(), kCount, DataType::kFloat, ReduceOp::kSum));
  for (uint64_t i = 0; i < kCount; ++i) {
    NPUMESH_RETURN_IF_ERROR(Expect(recv[i] == sum_at(i), "allreduce", call, i));
  }
  NPUMESH_RETURN_IF_ERROR(
      group.ReduceScatter(send.data(), recv.data(), kCount, DataType::kFloat, ReduceOp::kSum));
  for (uint64_t i = 0; i < kCount; ++i) {
    NPUMESH_RETURN_IF_ERROR(Expect(recv[i] == sum_at(mine * kCount + i), "reducescatter", call, i));
  }
  NPUMESH_RETURN_IF_ERROR(group.AllGather(send.data(), recv.data(), kCount, DataType::kFloat));
  for (uint64_t i = 0; i < kCount * blocks; ++i) {
    const float expected = Element(static_cast<int>(i / kCount), i % kCount, call);
    NPUMESH_RETURN_IF_ERROR(Expect(recv[i] == expected, "allgather", call, i));
  }
  NPUMESH_RETURN_IF_ERROR(group.AllToAll(send.data(), recv.data(), kCount, DataType::kFloat));
  for (uint64_t i = 0; i < kCount * blocks; ++i) {
    const float expected = Element(static_cast<int>(i / kCount), mine * kCount + i % kCount, call);
    NPUMESH_RETURN_IF_ERROR(Expect(recv[i] == expected, "alltoall", call, i));
  }
  NPUMESH_RETURN_IF_ERROR(group.Scatter(send.data(), recv.data(), kCount, DataType::kFloat, root));
  for (uint64_t i = 0; i < kCount; ++i) {
    const float expected = Element(root, mine * kCount + i, call);
    NPUMESH_RETURN_IF_ERROR(Expect(recv[i] == expected, "scatter", call, i));
  }
  NPUMESH_RETURN_IF_ERROR(
      group.Reduce(send.data(), recv.data(), kCount, DataType::kFloat, ReduceOp::kSum, root));
  for (uint64_t i = 0; me == root && i < kCount; ++i) {
    NPUMESH_RETURN_IF_ERROR(Expect(recv[i] == sum_at(i), "reduce", call, i));
  }
  NPUMESH_RETURN_IF_ERROR(
      group.AllReduce(send.data(), send.data(), kCount, DataType::kFloat, ReduceOp::kSum));
  for (uint64_t i = 0; i < kCount; ++i) {
    NPUMESH_RETURN_IF_ERROR(Expect(send[i] == sum_at(i), "allreduce in place", call, i));
  }
  // Longer than a broadcast that travels in slots.
  fill(recv);
  NPUMESH_RETURN_IF_ERROR(group.Broadcast(recv.data(), kCount * blocks, DataType::kFloat, root));
  for (uint64_t i = 0; i < kCount * blocks; ++i) {
    NPUMESH_RETURN_IF_ERROR(Expect(recv[i] == Element(root, i, call), "broadcast", call, i));
  }
  return Status();
}

TEST(SharedProcessor, CollectivesGiveWhatTheyGiveElsewhere) {
  const OneProcessor one_processor;
  constexpr int kRanks = 5;
  ExpectAllOk(RunRanks(kRanks, TestEnv(), [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    NPUMESH_ASSIGN_OR_RETURN(const auto group,
                             Communicator::Create(world, *memory, "g", AllRanks(kRanks)));
    EXPECT_TRUE(world.crowded());
    HbmArray<float> send(*memory, kCount * kRanks);
    HbmArray<float> recv(*memory, kCount * kRanks);
    for (uint64_t call = 0; call < 60; ++call) {
      NPUMESH_RETURN_IF_ERROR(RoundOfCollectives(*group, send, recv, call));
    }
    NPUMESH_RETURN_IF_ERROR(group->Close());
    return world.Shutdown();
  }));
}

}  // namespace
}  // namespace npumesh
