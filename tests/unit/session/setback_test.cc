// Random programs of sessions of several ranks, in which ranks fail in calls before they have met
// others: such a call fails on all of its ranks, and the calls after it are right.
//
//   setbacks [--first=SEED] [--seeds=N]
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "tests/seed_range.h"
#include "tests/unit/session/session_fixture.h"

namespace npumesh {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

SeedRange seeds{1, 4};

constexpr int kSessions = 3;  // of a rank
constexpr int kCalls = 10;    // of a program

// What a rank does in a call.
enum class Part {
  kGood,
  kCannotCreate,   // its graph has an operator without a kernel
  kCannotCompute,  // its graph has an operator that fails
  kWrongInput,     // it gives no input
  kGivesUp,        // it says before the run that it fails
};

constexpr const char* ReasonOf(Part part) {
  switch (part) {
    case Part::kCannotCreate:
      return "Bare";
    case Part::kCannotCompute:
      return "out of luck";
    case Part::kWrongInput:
      return "the graph has 1 inputs, 0 were given";
    case Part::kGivesUp:
      return "had enough";
    case Part::kGood:
      break;
  }
  return "";
}

struct ProgramCall {
  int session = 0;
  bool anew = false;        // makes the session
  bool halves = false;      // of the world, each of which meets without the other
  std::vector<Part> parts;  // by rank
};

std::vector<int> MembersAt(const ProgramCall& call, int rank, int ranks) {
  std::vector<int> members;
  for (int r = 0; r < ranks; ++r) {
    if (!call.halves || (r < ranks / 2) == (rank < ranks / 2)) members.push_back(r);
  }
  return members;
}

// What the ranks do, the same on all of them.
std::vector<ProgramCall> DrawProgram(uint64_t seed, int ranks) {
  std::mt19937_64 random(seed);
  const auto chance = [&random](int percent) { return static_cast<int>(random() % 100) < percent; };
  std::vector<ProgramCall> program;
  std::vector<std::optional<bool>> alive(kSessions);  // halves or not
  for (int i = 0; i < kCalls; ++i) {
    ProgramCall call;
    call.session = static_cast<int>(random() % kSessions);
    std::optional<bool>& session = alive[static_cast<size_t>(call.session)];
    call.anew = !session || chance(20);
    call.halves = call.anew ? chance(40) : *session;
    const bool all_fail = chance(15);
    bool usable = true;
    for (int r = 0; r < ranks; ++r) {
      Part part = Part::kGood;
      if (all_fail || chance(50 / ranks)) part = static_cast<Part>(1 + random() % 4);
      if (!call.anew && part == Part::kCannotCreate) part = Part::kWrongInput;
      if (!call.anew && part == Part::kCannotCompute) part = Part::kGivesUp;
      usable = usable && part != Part::kCannotCreate && part != Part::kCannotCompute;
      call.parts.push_back(part);
    }
    session = usable ? std::optional(call.halves) : std::nullopt;
    program.push_back(std::move(call));
  }
  return program;
}

// A rank that plays its part.
class Player {
 public:
  Player(World& world, DeviceMemory& memory) : world_(world), memory_(memory) {
    for (int r = 0; r < world.size(); ++r) {
      (r < world.size() / 2 ? lower_ : upper_).push_back(r);
    }
  }

  Result<int64_t> Play(const ProgramCall& call, int64_t number) {
    const Part part = call.parts[static_cast<size_t>(world_.rank())];
    std::unique_ptr<Session>& session = sessions_[call.session];
    if (call.anew) {
      session.reset();
      NPUMESH_ASSIGN_OR_RETURN(session, Make(call, part));
    }
    if (part == Part::kGivesUp) return session->Fail(Error(Code::kIo, "had enough"));
    std::vector<Tensor> inputs;
    if (part != Part::kWrongInput) inputs.push_back(IntTensor({1000 * number + world_.rank()}));
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, session->Run(inputs));
    return IntsIn(outputs[0])[0];
  }

 private:
  Result<std::unique_ptr<Session>> Make(const ProgramCall& call, Part part) {
    SessionOptions options = TinySession();
    options.groups = {{"lower", lower_}, {"upper", upper_}};
    GraphBuilder g;
    Value x = g.Data("x", IntType({1}));
    if (part == Part::kCannotCreate) x = g.Op("Bare", {{"x", x}});
    if (part == Part::kCannotCompute) x = g.Op("Fail", {{"x", x}});
    const char* const half = world_.rank() < world_.size() / 2 ? "lower" : "upper";
    const std::string group(call.halves ? half : kWorldGroup);
    const Value sum = g.Op("Meet", {{"x", x}}, {{"group", AttrValue::String(group)}});
    g.Output({g.Op("Meet", {{"x", sum}}, {{"group", AttrValue::String(group)}})});
    NPUMESH_ASSIGN_OR_RETURN(Model model, g.Build());
    return Session::Create(world_, memory_, std::move(model), std::move(options));
  }

  World& world_;
  DeviceMemory& memory_;
  std::vector<int> lower_, upper_;
  std::map<int, std::unique_ptr<Session>> sessions_;
};

void ExpectAsTheModelSays(const ProgramCall& call, int64_t number, int rank, int ranks,
                          const Result<int64_t>& seen) {
  const std::vector<int> members = MembersAt(call, rank, ranks);
  const bool fails = std::any_of(members.begin(), members.end(), [&](int r) {
    return call.parts[static_cast<size_t>(r)] != Part::kGood;
  });
  if (!fails) {
    const auto count = static_cast<int64_t>(members.size());
    const int64_t sum = std::accumulate(members.begin(), members.end(), 1000 * number * count);
    ASSERT_TRUE(seen.ok()) << seen.status().ToString();
    EXPECT_EQ(*seen, sum * count);
    return;
  }
  ASSERT_FALSE(seen.ok());
  const Part part = call.parts[static_cast<size_t>(rank)];
  if (part != Part::kGood) {
    EXPECT_THAT(seen.status().message(), HasSubstr(ReasonOf(part)));
    return;
  }
  EXPECT_EQ(seen.status().code(), Code::kPeerLost) << seen.status().ToString();
  bool named = false;
  for (const int r : members) {
    const bool names = seen.status().message().find(fmt::format("rank {}", r)) != std::string::npos;
    named = named || (r != rank && names);
  }
  EXPECT_TRUE(named) << seen.status().ToString();
}

void PlayProgram(uint64_t seed, int ranks) {
  const std::vector<ProgramCall> program = DrawProgram(seed, ranks);
  const std::vector<Status> statuses = OnRanks(ranks, [&](World& world, DeviceMemory& memory) {
    Player player(world, memory);
    for (size_t i = 0; i < program.size(); ++i) {
      SCOPED_TRACE(
          fmt::format("seed {}, {} ranks, call {}, rank {}", seed, ranks, i, world.rank()));
      const auto number = static_cast<int64_t>(i) + 1;
      const Result<int64_t> seen = player.Play(program[i], number);
      ExpectAsTheModelSays(program[i], number, world.rank(), ranks, seen);
      if (testing::Test::HasFatalFailure()) break;
    }
    return world.Shutdown();
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.ToString();
}

TEST(Setbacks, ProgramsGoOnAfterCallsThatFail) {
  for (uint64_t i = 0; i < seeds.count; ++i) {
    for (const int ranks : {2, 3, 4}) {
      PlayProgram(seeds.first + i, ranks);
      if (HasFailure()) return;
    }
  }
}

Value Meet(GraphBuilder& g, Value x) {
  return g.Op("Meet", {{"x", x}});
}

Result<std::unique_ptr<Session>> SessionOf(World& world, DeviceMemory& memory, GraphBuilder& g) {
  NPUMESH_ASSIGN_OR_RETURN(Model model, g.Build());
  return Session::Create(world, memory, std::move(model), TinySession());
}

Result<std::unique_ptr<Session>> SumSession(World& world, DeviceMemory& memory) {
  GraphBuilder g;
  g.Output({Meet(g, g.Data("x", IntType({1})))});
  return SessionOf(world, memory, g);
}

// A symptom of old: "rank 1 failed: node ..." of the graph before, in every graph after it.
TEST(Setbacks, AGraphThatFailsOnAllRanksDoesNotFailTheNext) {
  for (const Status& status : OnRanks(2, [](World&world, DeviceMemory&memory) -> Status {
         for (int i = 0; i < 3; ++i) {
           GraphBuilder g;
           g.Output({Meet(g, g.Op("Bare", {{"x", g.Data("x", IntType({1}))}}))});
           EXPECT_EQ(SessionOf(world, memory, g).status().code(), Code::kUnsupported);
         }
         NPUMESH_ASSIGN_OR_RETURN(const auto session, SumSession(world, memory));
         NPUMESH_ASSIGN_OR_RETURN(const auto sum, session->Run({IntTensor({5})}));
         EXPECT_EQ(IntsIn(sum[0])[0], 10);
         return world.Shutdown();
       })) {
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
}

// In the middle of a run, in which the ranks have met.
TEST(Setbacks, RanksGoOnAfterAFailureBetweenMeetings) {
  for (const Status& status : OnRanks(3, [](World&world, DeviceMemory&memory) -> Status {
         for (int step = 0; step < 3; ++step) {
           GraphBuilder g;
           Value x = Meet(g, g.Data("x", IntType({1})));
           if (world.rank() == step) x = g.Op("Fail", {{"x", x}}, {}, "unlucky");
           g.Output({Meet(g, x)});
           NPUMESH_ASSIGN_OR_RETURN(const auto session, SessionOf(world, memory, g));
           const Status told = session->Run({IntTensor({5})}).status();
           EXPECT_THAT(told.message(), HasSubstr(world.rank() == step ? "out of luck" : "rank "));
           NPUMESH_ASSIGN_OR_RETURN(const auto next, SumSession(world, memory));
           NPUMESH_ASSIGN_OR_RETURN(const auto sum, next->Run({IntTensor({step})}));
           EXPECT_EQ(IntsIn(sum[0])[0], 3 * step);
         }
         return world.Shutdown();
       })) {
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
}

// Rank 0 has gone through the call in which rank 1 fails, so they cannot go on together.
TEST(Setbacks, ACallThatWentWellOnOneRankIsNotForgotten) {
  const std::vector<Status> statuses = OnRanks(2, [](World& world, DeviceMemory& memory) -> Status {
    GraphBuilder g;
    Value x = Meet(g, g.Data("x", IntType({1})));
    if (world.rank() == 1) x = g.Op("Fail", {{"x", x}}, {}, "unlucky");
    g.Output({x});
    NPUMESH_ASSIGN_OR_RETURN(const auto session, SessionOf(world, memory, g));
    EXPECT_EQ(session->Run({IntTensor({5})}).ok(), world.rank() == 0);
    NPUMESH_ASSIGN_OR_RETURN(const auto next, SumSession(world, memory));
    if (world.rank() == 0) {
      EXPECT_THAT(next->Run({IntTensor({5})}).status().message(),
                  HasSubstr("rank 1 failed: node \"unlucky\" (Fail): out of luck"));
    }
    return next->Run({IntTensor({5})}).status();
  });
  for (const Status& status : statuses) {
    EXPECT_THAT(status.message(),
                AnyOf(HasSubstr("failed in different calls"), HasSubstr("rank 1 failed")))
        << status.ToString();
  }
}

// Rank 1 fails in the first graph, which rank 0 does not run: what would be the second call of both
// is the second of one and the first of the other.
TEST(Setbacks, RanksThatFailedInDifferentCallsDoNotGoOn) {
  const std::vector<Status> statuses = OnRanks(2, [](World& world, DeviceMemory& memory) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto first, SumSession(world, memory));
    if (world.rank() == 1) (void)first->Fail(Error(Code::kIo, "had enough"));
    NPUMESH_ASSIGN_OR_RETURN(const auto second, SumSession(world, memory));
    if (world.rank() == 0) {
      const Status told = second->Run({IntTensor({5})}).status();
      EXPECT_THAT(told.message(), HasSubstr("rank 1 failed: had enough"));
    }
    return second->Run({IntTensor({5})}).status();
  });
  for (const Status& status : statuses) {
    EXPECT_THAT(status.message(),
                AnyOf(HasSubstr("failed in different calls"), HasSubstr("rank 1 failed")))
        << status.ToString();
  }
}

// Rank 1 has ended its work, so rank 0 waits for nothing.
TEST(Setbacks, ARankThatEndedIsNotWaitedFor) {
  const std::vector<Status> statuses = OnRanks(2, [](World& world, DeviceMemory& memory) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto session, SumSession(world, memory));
    if (world.rank() == 1) return world.Shutdown();
    (void)session->Fail(Error(Code::kIo, "had enough"));
    const Status status = session->Run({IntTensor({5})}).status();
    (void)world.Shutdown();
    return status;
  });
  EXPECT_EQ(statuses[0].code(), Code::kPeerLost) << statuses[0].ToString();
  EXPECT_THAT(statuses[0].message(), HasSubstr("rank 1"));
}

// A group that lives on: its members meet anew.
TEST(Setbacks, AGroupGoesOnAfterACallThatAMemberCannotMake) {
  for (const Status& status : OnRanks(3, [](World&world, DeviceMemory&memory) -> Status {
         NPUMESH_ASSIGN_OR_RETURN(const auto group,
                                  Communicator::Create(world, memory, "g", {2, 0, 1}));
         NPUMESH_ASSIGN_OR_RETURN(void* const block, memory.Allocate(sizeof(int64_t)));
         auto& x = *static_cast<int64_t*>(block);
         const auto sum = [&] {
           return group->AllReduce(&x, &x, 1, DataType::kInt64, ReduceOp::kSum, "sum");
         };
         for (int round = 1; round <= 4; ++round) {
           x = 100 * round + world.rank();
           NPUMESH_RETURN_IF_ERROR(sum());
           EXPECT_EQ(x, 300 * round + 3);
           if (world.rank() == round % 3 || round == 4) {
             group->FailNext(Error(Code::kOutOfMemory, "too much"));
             continue;
           }
           const Status told = sum();
           EXPECT_EQ(told.code(), Code::kPeerLost);
           EXPECT_THAT(told.message(), HasSubstr("rank"));
         }
         x = world.rank();
         NPUMESH_RETURN_IF_ERROR(sum());
         EXPECT_EQ(x, 3);
         return memory.Free(block);
       })) {
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
}

}  // namespace
}  // namespace npumesh

int main(int argc, char** argv) {
  return npumesh::RunSeededTests(argc, argv, &npumesh::seeds);
}
