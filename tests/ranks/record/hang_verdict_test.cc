// Ranks that hang say why: the paragraph past the soft limit, and the same words at the hard one.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "collectives/communicator.h"
#include "collectives/contract/hang_verdict.h"
#include "launch/record/record_join.h"
#include "runtime/world/loop_line.h"
#include "tests/ranks/run_ranks.h"
#include "tests/unit/base/temporary_folder.h"

namespace npumesh {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

Env ShortLimits() {
  Env env = TestEnv();
  env.soft_timeout = std::chrono::seconds(1);
  env.exec_timeout = std::chrono::seconds(2);
  return env;
}

struct Told {
  std::vector<Status> statuses;
  std::string log;

  std::string status(size_t rank) const { return std::string(statuses[rank].message()); }
};

// `nodes`: ranks of each node; empty: one node.
Told Listen(int ranks, const Env& env, const std::function<Status(World&, DeviceMemory&)>& body,
            const std::vector<int>& nodes = {}) {
  Told told;
  ::testing::internal::CaptureStderr();
  const auto rank_body = [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    const Status status = body(world, *memory);
    const Status end = world.Shutdown();
    return status.ok() ? end : status;
  };
  told.statuses = RunRanks(ranks, env, rank_body, nodes);
  told.log = ::testing::internal::GetCapturedStderr();
  return told;
}

// Two groups of the same ranks, called in different orders.
TEST(HangVerdict, RanksThatWaitForEachOtherInACircle) {
  std::atomic<int> over{0};
  const Told told = Listen(3, ShortLimits(), [&](World& world, DeviceMemory& memory) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto tp, Communicator::Create(world, memory, "tp", {0, 1, 2}));
    NPUMESH_ASSIGN_OR_RETURN(const auto dp, Communicator::Create(world, memory, "dp", {0, 1, 2}));
    const bool other_way = world.rank() == 2;
    const Status status = other_way ? dp->Barrier("layer7/x") : tp->Barrier("layer7/attn/out");
    ++over;
    while (over != 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return status;
  });
  const std::string circle =
      "rank 0 has waited 1 s in barrier \"layer7/attn/out\" (group tp, call 1) for rank 2, which "
      "is "
      "in barrier \"layer7/x\" (group dp, call 1) and waits for ranks 0-1: the ranks wait for each "
      "other in a circle (0 -> 2 -> 0); rank 1 waits here too";
  EXPECT_THAT(told.log, HasSubstr(circle));
  EXPECT_THAT(told.log,
              HasSubstr("rank 2 has waited 1 s in barrier \"layer7/x\" (group dp, call 1) "
                        "for rank 0, which is in barrier \"layer7/attn/out\""));
  EXPECT_EQ(std::count(told.log.begin(), told.log.end(), '\n'), 3) << told.log;
  for (const size_t rank : {0u, 1u, 2u}) {
    EXPECT_EQ(told.statuses[rank].code(), Code::kTimeout);
    EXPECT_THAT(told.status(rank), HasSubstr("wait for each other in a circle")) << rank;
  }
}

// Between nodes requests travel as messages: who sits beside the late rank names it, the others say
// where it must be.
TEST(HangVerdict, LateRankOfAnotherNode) {
  Env env = ShortLimits();
  env.exec_timeout = std::chrono::seconds(20);
  const auto body = [](World& world, DeviceMemory& memory) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto tp,
                             Communicator::Create(world, memory, "tp", {0, 1, 2, 3}));
    if (world.rank() == 3) std::this_thread::sleep_for(std::chrono::milliseconds(1800));
    return tp->Barrier("layer7");
  };
  const Told told = Listen(4, env, body, {2, 2});
  ExpectAllOk(told.statuses);
  EXPECT_THAT(told.log, HasSubstr("rank 2 has waited 1 s in barrier \"layer7\" (group tp, call 1) "
                                  "for rank 3, which is not in any collective since"));
  EXPECT_THAT(told.log, HasSubstr("rank 0 has waited 1 s in barrier \"layer7\" (group tp, call 1) "
                                  "for rank 2, which is on another node, where it cannot be seen "
                                  "from here, and for rank 3, which is on another node"));
}

// Every rank receives before it sends. The other end of each message has not touched it.
TEST(HangVerdict, ReceivesThatWaitForEachOtherInACircle) {
  std::atomic<int> over{0};
  const Told told = Listen(3, ShortLimits(), [&](World& world, DeviceMemory& memory) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto group,
                             Communicator::Create(world, memory, "pp", {0, 1, 2}));
    HbmArray<float> data(memory, 8);
    const int before = (world.rank() + 2) % 3;
    const Status status = group->Recv(data.data(), 8, DataType::kFloat, before, "act");
    ++over;
    while (over != 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return status;
  });
  EXPECT_THAT(
      told.log,
      HasSubstr("rank 0 has waited 1 s in send/recv \"act\" (group 2 -> 0 of pp, call 1) for "
                "rank 2, which is in send/recv \"act\" (group 1 -> 2 of pp, call 1) and waits "
                "for rank 1: the ranks wait for each other in a circle (0 -> 2 -> 1 -> 0)"));
  for (const Status& status : told.statuses) EXPECT_EQ(status.code(), Code::kTimeout);
}

// The peer has sent once and then does something else.
TEST(HangVerdict, AMessageThatDoesNotCome) {
  const Env env = ShortLimits();
  std::atomic<bool> over{false};
  const Told told = Listen(2, env, [&](World& world, DeviceMemory& memory) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto group, Communicator::Create(world, memory, "pp", {0, 1}));
    HbmArray<float> data(memory, 8);
    if (world.rank() == 0) {
      const Status sent = group->Send(data.data(), 8, DataType::kFloat, 1);
      while (!over) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return sent;
    }
    NPUMESH_RETURN_IF_ERROR(group->Recv(data.data(), 8, DataType::kFloat, 0));
    const Status status = group->Recv(data.data(), 8, DataType::kFloat, 0);
    over = true;
    return status;
  });
  EXPECT_THAT(told.log,
              ContainsRegex("rank 1 has waited 1 s in send/recv \\(group 0 -> 1 of pp, call "
                            "2\\) for rank 0, which is not in any collective since .* "
                            "\\(its last call of this group is 1\\)"));
  EXPECT_EQ(told.statuses[1].code(), Code::kTimeout);
}

// The communicator's own limit, not the environment's.
TEST(HangVerdict, AGroupMayHaveAShorterLimit) {
  const Told told = Listen(2, TestEnv(), [](World& world, DeviceMemory& memory) -> Status {
    CommunicatorOptions options;
    options.exec_timeout = std::chrono::seconds(1);
    NPUMESH_ASSIGN_OR_RETURN(const auto group,
                             Communicator::Create(world, memory, "tp", {0, 1}, options));
    if (world.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::seconds(2));
      return Status();
    }
    return group->Barrier("step");
  });
  EXPECT_EQ(told.statuses[0].code(), Code::kTimeout);
  EXPECT_THAT(told.status(0), HasSubstr("rank(s) 1 did not come within 1 s"));
}

TEST(HangVerdict, RankThatIsBusyElsewhere) {
  std::atomic<int> over{0};
  const Told told = Listen(3, ShortLimits(), [&](World& world, DeviceMemory& memory) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto group,
                             Communicator::Create(world, memory, "tp", {0, 1, 2}));
    NPUMESH_RETURN_IF_ERROR(group->Barrier("step 1"));
    const Status status = world.rank() == 1 ? Status() : group->Barrier("step 2");
    if (world.rank() != 1) ++over;
    while (over != 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return status;
  });
  EXPECT_THAT(
      told.log,
      ContainsRegex("rank 0 has waited 1 s in barrier \"step 2\" \\(group tp, call 2\\) for "
                    "rank 1, which is not in any collective since [12]\\.[0-9] s \\(its last "
                    "call of this group is 1\\); rank 2 waits here too"));
  // The first to give up names the limit; the other one may have seen it give up.
  const std::vector<std::string> told_by = {told.status(0), told.status(2)};
  EXPECT_THAT(told_by, ::testing::Contains(HasSubstr("rank(s) 1 did not come within 2 s; rank ")));
  EXPECT_THAT(told_by, ::testing::Each(HasSubstr("waits here too")));
}

TEST(HangVerdict, RankThatHasLeftTheGroup) {
  std::atomic<bool> over{false};
  const Told told = Listen(2, ShortLimits(), [&](World& world, DeviceMemory& memory) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(auto group, Communicator::Create(world, memory, "tp", {0, 1}));
    NPUMESH_RETURN_IF_ERROR(group->Barrier("step 1"));
    Status status;
    if (world.rank() == 1) {
      group.reset();
    } else {
      status = group->Barrier("step 2");
      over = true;
    }
    while (!over) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return status;
  });
  EXPECT_THAT(told.log, HasSubstr("for rank 1, which has left the group after call 1"));
  EXPECT_THAT(told.status(0), HasSubstr("which has left the group after call 1"));
}

TEST(HangVerdict, RankThatHasEndedItsWork) {
  const Told told = Listen(2, ShortLimits(), [&](World& world, DeviceMemory& memory) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(auto group, Communicator::Create(world, memory, "tp", {0, 1}));
    return world.rank() == 0 ? group->Barrier("step 1") : Status();
  });
  EXPECT_THAT(told.log, HasSubstr("for rank 1, which has ended its work"));
}

TEST(HangVerdict, GroupThatARankDoesNotCreate) {
  Env env = ShortLimits();
  env.connect_timeout = std::chrono::seconds(2);
  std::atomic<bool> over{false};
  const Told told = Listen(2, env, [&](World& world, DeviceMemory& memory) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(auto group, Communicator::Create(world, memory, "tp", {0, 1}));
    Status status;
    if (world.rank() == 0) {
      status = Communicator::Create(world, memory, "dp", {0, 1}).status();
      over = true;
    }
    while (!over) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return status;
  });
  EXPECT_THAT(told.log,
              HasSubstr("rank 0 has waited 1 s in creating group \"dp\" for rank 1, which "
                        "has not used this group yet and is not in any collective since"));
}

// Rank 1 runs a loop that does not come to an end, between two calls.
TEST(HangVerdict, TellsTheTurnOfALoop) {
  std::atomic<bool> over{false};
  const Told told = Listen(2, ShortLimits(), [&](World& world, DeviceMemory& memory) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto tp, Communicator::Create(world, memory, "tp", {0, 1}));
    if (world.rank() == 0) {
      const Status status = tp->Barrier("step");
      over = true;
      return status;
    }
    LoopLine loop(world);
    const auto since = SteadyClock::now();
    for (uint64_t turn = 1; turn <= 512; ++turn) loop.Turn(turn, "decode", since);
    while (!over) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    loop.Leave();
    return Status();
  });
  EXPECT_THAT(told.log, ContainsRegex("rank 0 has waited 1 s in barrier \"step\" .* for rank 1, "
                                      "which is not in any collective since .*, in turn 512 of "
                                      "loop \"decode\", which began .* s ago"));
  EXPECT_EQ(told.statuses[0].code(), Code::kTimeout);
}

// A loop that is over is not told.
TEST(HangVerdict, LoopsLeaveNoTrace) {
  const std::vector<Status> statuses = RunRanks(1, TestEnv(), [](World& world) {
    const auto loops = [&] {
      return Survey(world, "tp", "a wait", {}, std::chrono::seconds(1)).loops.at(0).size();
    };
    {
      LoopLine outer(world);
      LoopLine inner(world);
      EXPECT_EQ(loops(), 0u);
      outer.Turn(1, "outer", SteadyClock::now());
      inner.Turn(1, "inner", SteadyClock::now());
      EXPECT_EQ(loops(), 2u);
      inner.Leave();
      EXPECT_EQ(loops(), 1u);
    }
    EXPECT_EQ(loops(), 0u);
    EXPECT_TRUE(
        Survey(world, "tp", "a wait", {}, std::chrono::seconds(1)).sights.at(0).positions.empty());
    return Status();
  });
  ExpectAllOk(statuses);
}

// A chain: 0 and 1 wait for 2, which waits for 3, which does something else.
TEST(HangVerdict, FollowsTheChainToItsRoot) {
  std::atomic<int> over{0};
  const Told told = Listen(4, ShortLimits(), [&](World& world, DeviceMemory& memory) -> Status {
    const bool right = world.rank() >= 2;
    std::unique_ptr<Communicator> left_group;
    if (world.rank() <= 2) {
      NPUMESH_ASSIGN_OR_RETURN(left_group, Communicator::Create(world, memory, "left", {0, 1, 2}));
    }
    std::unique_ptr<Communicator> right_group;
    if (right) {
      NPUMESH_ASSIGN_OR_RETURN(right_group, Communicator::Create(world, memory, "right", {2, 3}));
    }
    Status status;
    if (world.rank() < 2) status = left_group->Barrier("a");
    if (world.rank() == 2) status = right_group->Barrier("b");
    ++over;
    while (over != 4) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return status;
  });
  EXPECT_THAT(told.log,
              HasSubstr("for rank 2, which is in barrier \"b\" (group right, call 1) and waits for "
                        "rank 3; rank 3 is not in any collective since "));
}

// What the records of a hang say afterwards, when all ranks have gone.
Joined JoinedOf(const std::string& folder, std::vector<RankRecord>& records) {
  records = *ReadRecords(folder);
  const Result<Joined> joined = Join(records);
  EXPECT_TRUE(joined.ok()) << joined.status().ToString();
  return joined.ok() ? *joined : Joined();
}

// Regression: the record of a circle of two groups blamed one of its ranks for waiting for no rank.
TEST(HangRecord, KnowsTheCircleThatTheWaitsKnew) {
  for (int victim = 0; victim < 3; ++victim) {
    const TemporaryFolder folder;
    Env env = ShortLimits();
    env.record = folder.path();
    std::atomic<int> over{0};
    Listen(3, env, [&](World& world, DeviceMemory& memory) -> Status {
      NPUMESH_ASSIGN_OR_RETURN(const auto tp, Communicator::Create(world, memory, "tp", {0, 1, 2}));
      NPUMESH_ASSIGN_OR_RETURN(const auto dp, Communicator::Create(world, memory, "dp", {0, 1, 2}));
      const Status status = world.rank() == victim ? dp->Barrier("x") : tp->Barrier("y");
      ++over;
      while (over != 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return status;
    });
    std::vector<RankRecord> records;
    const Joined joined = JoinedOf(folder.path(), records);
    EXPECT_EQ(Name(joined.blame.cause), "circle") << JoinedText(records, joined);
    EXPECT_THAT(joined.blame.ranks, ::testing::SizeIs(2));
    EXPECT_THAT(joined.blame.ranks, ::testing::Contains(victim));
    EXPECT_THAT(joined.problems, ::testing::Contains(HasSubstr("gave up waiting: rank")));
    EXPECT_THAT(joined.problems,
                ::testing::Contains(HasSubstr("the ranks wait for each other in a circle (")));
  }
}

TEST(HangRecord, KnowsWhoHadEnded) {
  const TemporaryFolder folder;
  Env env = ShortLimits();
  env.record = folder.path();
  Listen(3, env, [](World& world, DeviceMemory& memory) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto tp, Communicator::Create(world, memory, "tp", {0, 1, 2}));
    NPUMESH_RETURN_IF_ERROR(tp->Barrier("a"));
    return world.rank() == 1 ? Status() : tp->Barrier("b");
  });
  std::vector<RankRecord> records;
  const Joined joined = JoinedOf(folder.path(), records);
  EXPECT_EQ(BlameText(joined.blame), "rank 1: it had ended its work while others waited for it")
      << JoinedText(records, joined);
}

// Regression: of a rank that was late, and waits that warned, "nothing is wrong" was said.
TEST(HangRecord, KnowsWhoWasWarnedOf) {
  const TemporaryFolder folder;
  Env env = ShortLimits();
  env.record = folder.path();
  env.exec_timeout = std::chrono::seconds(60);
  const auto warned = [&] {
    const Result<std::vector<RankRecord>> records = ReadRecords(folder.path());
    return records.ok() && std::any_of(records->begin(), records->end(),
                                       [](const auto& record) { return !record.notices.empty(); });
  };
  const Told told = Listen(2, env, [&](World& world, DeviceMemory& memory) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto tp, Communicator::Create(world, memory, "tp", {0, 1}));
    while (world.rank() == 1 && !warned()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return tp->Barrier("a");
  });
  ExpectAllOk(told.statuses);
  std::vector<RankRecord> records;
  const Joined joined = JoinedOf(folder.path(), records);
  EXPECT_EQ(Name(joined.blame.cause), "late") << JoinedText(records, joined);
  EXPECT_THAT(joined.blame.ranks, ::testing::ElementsAre(1));
  EXPECT_THAT(joined.problems,
              ::testing::Contains(HasSubstr("rank 0 warned: rank 0 has waited 1 s in barrier")));
}

}  // namespace
}  // namespace npumesh
