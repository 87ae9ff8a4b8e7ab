// Calls that are given up past HCCL_EXEC_TIMEOUT: all members fail or none does, and nothing is
// written into the buffers of a call that has ended.
//
//   giving_up [--first=SEED] [--seeds=N]
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <random>
#include <thread>

#include "collectives/communicator.h"
#include "runtime/base/text/rank_list.h"
#include "tests/ranks/run_ranks.h"
#include "tests/seed_range.h"

namespace npumesh {
namespace {

using ::testing::HasSubstr;

SeedRange seeds{0, 40};

Env ShortLimit() {
  Env env = TestEnv();
  env.exec_timeout = std::chrono::seconds(1);
  return env;
}

using Body = std::function<Status(Communicator&, DeviceMemory&)>;
std::vector<Status> InGroup(int ranks, const Body& body) {
  return RunRanks(ranks, ShortLimit(), [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    NPUMESH_ASSIGN_OR_RETURN(const auto group,
                             Communicator::Create(world, *memory, "tp", AllRanks(ranks)));
    const Status status = body(*group, *memory);
    (void)world.Shutdown();
    return status;
  });
}

enum class Kind { kAllReduce, kAllGather, kReduceScatter, kBroadcast, kAllToAll, kBarrier };
constexpr int kKinds = 6;

// One collective with `count` elements for each rank, in `recv`, which has room for all ranks'.
Status Ask(Kind kind, Communicator& group, HbmArray<int32_t>& send, HbmArray<int32_t>& recv,
           uint64_t count) {
  const auto dtype = DataType::kInt32;
  switch (kind) {
    case Kind::kAllReduce:
      return group.AllReduce(send.data(), recv.data(), count, dtype, ReduceOp::kSum, "late");
    case Kind::kAllGather:
      return group.AllGather(send.data(), recv.data(), count, dtype, "late");
    case Kind::kReduceScatter:
      return group.ReduceScatter(send.data(), recv.data(), count, dtype, ReduceOp::kSum, "late");
    case Kind::kBroadcast:
      return group.Broadcast(recv.data(), count, dtype, 0, "late");
    case Kind::kAllToAll:
      return group.AllToAll(send.data(), recv.data(), count, dtype, "late");
    case Kind::kBarrier:
      return group.Barrier("late");
  }
  return Status();
}

constexpr int32_t kUntouched = -7;

// Rank 1 came after rank 0's call had failed, got a result, and wrote it into rank 0's buffer, too.
TEST(GivingUp, ALateMemberFailsAsWell) {
  for (const uint64_t count : {uint64_t{4}, uint64_t{1000}, uint64_t{100'000}}) {
    SCOPED_TRACE(count);
    std::atomic<int> ended{0};
    const auto statuses = InGroup(2, [&](Communicator& group, DeviceMemory& memory) -> Status {
      HbmArray<int32_t> send(memory, 2 * count);
      HbmArray<int32_t> recv(memory, 2 * count);
      std::fill_n(send.data(), send.size(), 1);
      std::fill_n(recv.data(), recv.size(), kUntouched);
      while (group.rank() == 1 && ended == 0) std::this_thread::yield();
      const Status status = Ask(Kind::kAllReduce, group, send, recv, count);
      ++ended;
      while (ended < 2) std::this_thread::yield();
      EXPECT_EQ(recv.ToVector(), std::vector<int32_t>(2 * count, kUntouched));
      return status;
    });
    EXPECT_EQ(statuses[0].code(), Code::kTimeout) << statuses[0].ToString();
    EXPECT_EQ(statuses[1].code(), Code::kTimeout) << statuses[1].ToString();
    EXPECT_THAT(std::string(statuses[1].message()), HasSubstr("rank 0 has given up call"));
  }
}

TEST(GivingUp, AReceiverThatComesLateFailsAsWell) {
  std::atomic<int> ended{0};
  const auto statuses = InGroup(2, [&](Communicator& group, DeviceMemory& memory) -> Status {
    HbmArray<int32_t> data(memory, 1000);
    std::fill_n(data.data(), data.size(), group.rank());
    while (group.rank() == 1 && ended == 0) std::this_thread::yield();
    const Status status = group.rank() == 0 ? group.Send(data.data(), 1000, DataType::kInt32, 1)
                                            : group.Recv(data.data(), 1000, DataType::kInt32, 0);
    ++ended;
    EXPECT_EQ(data[999], group.rank());
    return status;
  });
  EXPECT_EQ(statuses[0].code(), Code::kTimeout) << statuses[0].ToString();
  EXPECT_EQ(statuses[1].code(), Code::kTimeout) << statuses[1].ToString();
  EXPECT_THAT(std::string(statuses[1].message()), HasSubstr("rank 0 has given up message 1"));
}

// One member comes at about the time at which the others give up.
struct CloseCall {
  int ranks;
  int late;
  Kind kind;
  uint64_t count;
  std::chrono::microseconds after;  // the others have entered

  explicit CloseCall(uint64_t seed) {
    std::mt19937_64 dice(seed);
    const auto draw = [&dice](uint64_t below) { return dice() % below; };
    constexpr uint64_t kCounts[] = {1, 4, 300, 5000, 60'000};
    ranks = 2 + static_cast<int>(draw(3));
    late = static_cast<int>(draw(static_cast<uint64_t>(ranks)));
    kind = static_cast<Kind>(draw(kKinds));
    count = kCounts[draw(std::size(kCounts))];
    after = std::chrono::microseconds(980'000 + draw(60'000));
  }
};

std::string Play(const CloseCall& call) {
  std::atomic<int> entered{0};
  std::atomic<int> ended{0};
  std::atomic<int> touched{0};
  std::vector<int> right(static_cast<size_t>(call.ranks));
  const auto statuses = InGroup(call.ranks, [&](Communicator& group, DeviceMemory& memory) {
    const uint64_t n = call.count * static_cast<uint64_t>(call.ranks);
    HbmArray<int32_t> send(memory, n);
    HbmArray<int32_t> recv(memory, n);
    std::fill_n(send.data(), n, 1);
    std::fill_n(recv.data(), n, kUntouched);
    if (group.rank() == call.late) {
      while (entered < call.ranks - 1) std::this_thread::yield();
      std::this_thread::sleep_for(call.after);
    } else {
      ++entered;
    }
    const Status status = Ask(call.kind, group, send, recv, call.count);
    const std::vector<int32_t> then = recv.ToVector();
    ++ended;
    while (ended < call.ranks) std::this_thread::yield();
    if (recv.ToVector() != then) ++touched;
    const int32_t sum =
        call.kind == Kind::kAllReduce || call.kind == Kind::kReduceScatter ? call.ranks
        : call.kind == Kind::kAllGather || call.kind == Kind::kAllToAll    ? 1
                                                                           : kUntouched;
    right[static_cast<size_t>(group.rank())] = then[0] == (status.ok() ? sum : kUntouched);
    return status;
  });
  std::string told;
  for (const Status& status : statuses) told += status.ToString() + "\n";
  const auto failed = std::count_if(statuses.begin(), statuses.end(),
                                    [](const Status& status) { return !status.ok(); });
  if (failed != 0 && failed != call.ranks) return "not all agree:\n" + told;
  if (touched != 0) return "a buffer has changed after its call:\n" + told;
  if (std::count(right.begin(), right.end(), 0) != 0) return "a wrong value:\n" + told;
  return {};
}

// Side by side, because each takes the limit of a second and does nothing.
TEST(GivingUp, AllMembersAgreeWhenOneComesAtTheLimit) {
  constexpr uint64_t kTogether = 20;
  for (uint64_t seed = seeds.first; seed < seeds.end() && !HasFailure(); seed += kTogether) {
    std::deque<std::string> wrong;
    std::vector<std::thread> players;
    for (uint64_t s = seed; s < std::min(seeds.end(), seed + kTogether); ++s) {
      players.emplace_back([s, told = &wrong.emplace_back()] { *told = Play(CloseCall(s)); });
    }
    for (std::thread& player : players) player.join();
    for (size_t i = 0; i < wrong.size(); ++i) EXPECT_EQ(wrong[i], "") << "seed " << seed + i;
  }
}

}  // namespace
}  // namespace npumesh

int main(int argc, char** argv) {
  return npumesh::RunSeededTests(argc, argv, &npumesh::seeds);
}
