// Groups whose members meet in their first collective: who has nothing to do in a group, or comes
// to it late, holds no others.
//
//   late_groups [--first=SEED] [--seeds=N]
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "collectives/communicator.h"
#include "runtime/base/text/rank_list.h"
#include "tests/ranks/run_ranks.h"
#include "tests/seed_range.h"

namespace npumesh {
namespace {

using ::testing::HasSubstr;

SeedRange seeds{0, 100};

constexpr uint64_t kCount = 3;  // elements of every tensor

// A rank's groups by name, made when they are first used.
class LateGroups {
 public:
  LateGroups(World& world, DeviceMemory& memory, std::map<std::string, std::vector<int>> members)
      : world_(world), memory_(memory), members_(std::move(members)) {}

  Result<Communicator*> Of(const std::string& name) {
    std::unique_ptr<Communicator>& group = made_[name];
    if (group == nullptr) {
      CommunicatorOptions options;
      options.meets_late = true;
      NPUMESH_ASSIGN_OR_RETURN(
          group, Communicator::Create(world_, memory_, name, members_.at(name), options));
    }
    return group.get();
  }

 private:
  World& world_;
  DeviceMemory& memory_;
  const std::map<std::string, std::vector<int>> members_;
  std::map<std::string, std::unique_ptr<Communicator>> made_;
};

using Body = std::function<Status(World&, DeviceMemory&)>;
std::vector<Status> OnRanks(int ranks, const Body& body, const std::vector<int>& nodes = {},
                            const Env& env = TestEnv()) {
  return RunRanks(
      ranks, env,
      [&](World& world) -> Status {
        NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
        const Status status = body(world, *memory);
        const Status end = world.Shutdown();
        return status.ok() ? end : status;
      },
      nodes);
}

Status AllReduce(Communicator& group, HbmArray<int32_t>& data, std::string_view node) {
  return group.AllReduce(data.data(), data.data(), data.size(), DataType::kInt32, ReduceOp::kSum,
                         node);
}

// Ranks 2 and 3 were in another group while 0 and 1 made the group of all, for a message.
TEST(LateGroups, APairNeedsNoOtherMember) {
  ExpectAllOk(OnRanks(4, [](World& world, DeviceMemory& memory) -> Status {
    LateGroups groups(world, memory, {{"world", {0, 1, 2, 3}}, {"tp", {2, 3}}});
    HbmArray<int32_t> data(memory, kCount);
    std::fill_n(data.data(), kCount, 1 + world.rank());
    NPUMESH_ASSIGN_OR_RETURN(Communicator * group, groups.Of(world.rank() < 2 ? "world" : "tp"));
    if (world.rank() == 0) return group->Send(data.data(), kCount, DataType::kInt32, 1);
    if (world.rank() == 1) {
      NPUMESH_RETURN_IF_ERROR(group->Recv(data.data(), kCount, DataType::kInt32, 0));
      EXPECT_EQ(data.ToVector(), std::vector<int32_t>(kCount, 1));
      return Status();
    }
    NPUMESH_RETURN_IF_ERROR(AllReduce(*group, data, "grads"));
    EXPECT_EQ(data.ToVector(), std::vector<int32_t>(kCount, 7));
    return Status();
  }));
}

// Rank 0 has nothing to do in the group in which 1 and 2 meet first.
TEST(LateGroups, AnIdleMemberIsNotWaitedFor) {
  ExpectAllOk(OnRanks(3, [](World& world, DeviceMemory& memory) -> Status {
    LateGroups groups(world, memory, {{"world", {0, 1, 2}}, {"g1", {0, 1, 2}}});
    HbmArray<int32_t> data(memory, kCount);
    std::fill_n(data.data(), kCount, world.rank());
    if (world.rank() != 0) {
      NPUMESH_ASSIGN_OR_RETURN(Communicator * pair, groups.Of("g1"));
      NPUMESH_RETURN_IF_ERROR(world.rank() == 1
                                  ? pair->Send(data.data(), kCount, DataType::kInt32, 2)
                                  : pair->Recv(data.data(), kCount, DataType::kInt32, 1));
    }
    NPUMESH_ASSIGN_OR_RETURN(Communicator * all, groups.Of("world"));
    NPUMESH_RETURN_IF_ERROR(AllReduce(*all, data, "sum"));
    EXPECT_EQ(data.ToVector(), std::vector<int32_t>(kCount, 0 + 1 + 1));
    return Status();
  }));
}

// The operator that waits is named, as in any call.
TEST(LateGroups, AMemberThatNeverComesIsMissedInTheFirstCall) {
  Env env = TestEnv();
  env.exec_timeout = std::chrono::seconds(1);
  for (const std::vector<int>& nodes : {std::vector<int>{}, std::vector<int>{1, 1}}) {
    std::atomic<bool> over{false};
    const auto statuses = OnRanks(
        2,
        [&](World& world, DeviceMemory& memory) -> Status {
          LateGroups groups(world, memory, {{"tp", {0, 1}}});
          HbmArray<int32_t> data(memory, kCount);
          if (world.rank() == 1) {
            while (!over) std::this_thread::yield();
            return Status();
          }
          NPUMESH_ASSIGN_OR_RETURN(Communicator * group, groups.Of("tp"));
          const Status status = AllReduce(*group, data, "layer0/sum");
          over = true;
          return status;
        },
        nodes, env);
    EXPECT_EQ(statuses[0].code(), Code::kTimeout);
    EXPECT_THAT(std::string(statuses[0].message()), HasSubstr("allreduce \"layer0/sum\""));
  }
}

// Two groups of equal name and members, one after the other; the first one meets on no rank, so it
// does not count.
TEST(LateGroups, AreToldApartByTheOrderInWhichTheyMeet) {
  ExpectAllOk(OnRanks(3, [](World& world, DeviceMemory& memory) -> Status {
    const std::map<std::string, std::vector<int>> members = {{"world", {0, 1, 2}}};
    LateGroups first(world, memory, members);
    LateGroups second(world, memory, members);
    HbmArray<int32_t> data(memory, kCount);
    std::fill_n(data.data(), kCount, 1);
    if (world.rank() != 2) {
      NPUMESH_ASSIGN_OR_RETURN(Communicator * pair, first.Of("world"));
      NPUMESH_RETURN_IF_ERROR(world.rank() == 0
                                  ? pair->Send(data.data(), kCount, DataType::kInt32, 1)
                                  : pair->Recv(data.data(), kCount, DataType::kInt32, 0));
    }
    NPUMESH_ASSIGN_OR_RETURN(Communicator * all, second.Of("world"));
    NPUMESH_RETURN_IF_ERROR(AllReduce(*all, data, "sum"));
    EXPECT_EQ(data.ToVector(), std::vector<int32_t>(kCount, 3));
    return Status();
  }));
}

// ---- random programs ----

// What some ranks do together, in one order for all: legal on any ranks, however idle others are.
struct Event {
  enum class Kind { kMessage, kAllReduce, kBroadcast };
  Kind kind;
  std::string group;
  int from = 0;  // group ranks
  int to = 0;
};

struct Program {
  int ranks = 0;
  std::vector<int> nodes;  // ranks of each
  std::map<std::string, std::vector<int>> groups;
  std::vector<std::vector<Event>> sessions;  // each has groups to itself
};

Program DrawProgram(uint64_t seed) {
  std::mt19937_64 dice(seed);
  const auto draw = [&dice](int below) {
    return static_cast<int>(dice() % static_cast<uint64_t>(below));
  };
  Program program;
  program.ranks = 2 + draw(4);
  const int first_node = draw(2) == 0 ? program.ranks : 1 + draw(program.ranks - 1);
  program.nodes = {first_node};
  if (first_node < program.ranks) program.nodes.push_back(program.ranks - first_node);
  program.groups["world"] = AllRanks(program.ranks);
  for (int g = draw(4); g > 0; --g) {
    std::vector<int> members = AllRanks(program.ranks);
    std::shuffle(members.begin(), members.end(), dice);
    members.resize(static_cast<size_t>(2 + draw(program.ranks - 1)));
    program.groups["g" + std::to_string(g)] = std::move(members);
  }
  program.sessions.resize(static_cast<size_t>(1 + draw(2)));
  for (std::vector<Event>& events : program.sessions) {
    for (int left = 1 + draw(15); left > 0; --left) {
      const auto group =
          std::next(program.groups.begin(), draw(static_cast<int>(program.groups.size())));
      const int size = static_cast<int>(group->second.size());
      Event event{static_cast<Event::Kind>(draw(3)), group->first};
      if (draw(2) == 0) event.kind = Event::Kind::kMessage;
      event.from = draw(size);
      event.to = (event.from + 1 + draw(size - 1)) % size;
      events.push_back(event);
    }
  }
  return program;
}

// The part that this rank has in an event, with the values of all ranks kept beside it.
Status Perform(const Event& event, Communicator& group, std::vector<int32_t>& values,
               HbmArray<int32_t>& data) {
  const int me = group.rank();
  const auto value_of = [&](int r) -> int32_t& {
    return values[static_cast<size_t>(group.world_ranks()[static_cast<size_t>(r)])];
  };
  std::fill_n(data.data(), kCount, value_of(me));
  switch (event.kind) {
    case Event::Kind::kMessage:
      return me == event.from ? group.Send(data.data(), kCount, DataType::kInt32, event.to)
                              : group.Recv(data.data(), kCount, DataType::kInt32, event.from);
    case Event::Kind::kAllReduce:
      return AllReduce(group, data, "sum");
    case Event::Kind::kBroadcast:
      return group.Broadcast(data.data(), kCount, DataType::kInt32, event.from);
  }
  return Status();
}

bool TakesPart(const Event& event, const std::vector<int>& members, int rank) {
  const auto place = std::find(members.begin(), members.end(), rank) - members.begin();
  if (place == static_cast<std::ptrdiff_t>(members.size())) return false;
  return event.kind != Event::Kind::kMessage || place == event.from || place == event.to;
}

// What each rank holds afterwards.
void Advance(const Event& event, const std::vector<int>& members, std::vector<int32_t>& values) {
  const auto at = [&](int r) -> int32_t& {
    return values[static_cast<size_t>(members[static_cast<size_t>(r)])];
  };
  constexpr int32_t kPrime = 1'000'003;  // sums stay exact
  if (event.kind == Event::Kind::kMessage) {
    at(event.to) = at(event.from);
    return;
  }
  int32_t all = at(event.from);
  if (event.kind == Event::Kind::kAllReduce) {
    all = 0;
    for (const int r : members) all += values[static_cast<size_t>(r)];
  }
  for (const int r : members) values[static_cast<size_t>(r)] = all % kPrime;
}

Status Play(const Program& program, World& world, DeviceMemory& memory) {
  std::vector<int32_t> values(static_cast<size_t>(program.ranks));
  std::iota(values.begin(), values.end(), 1);
  HbmArray<int32_t> data(memory, kCount);
  for (const std::vector<Event>& events : program.sessions) {
    LateGroups groups(world, memory, program.groups);
    for (const Event& event : events) {
      const std::vector<int>& members = program.groups.at(event.group);
      const bool mine = TakesPart(event, members, world.rank());
      if (mine) {
        NPUMESH_ASSIGN_OR_RETURN(Communicator * group, groups.Of(event.group));
        NPUMESH_RETURN_IF_ERROR(Perform(event, *group, values, data));
      }
      Advance(event, members, values);
      if (!mine) continue;
      const int32_t own = values[static_cast<size_t>(world.rank())];
      const int32_t seen =
          event.kind == Event::Kind::kAllReduce ? data[kCount - 1] % 1'000'003 : data[kCount - 1];
      if (seen != own) return Error(Code::kInternal, "expected {}, seen {}", own, seen);
    }
  }
  return Status();
}

TEST(LateGroups, RandomProgramsEndWithTheRightValues) {
  for (uint64_t seed = seeds.first; seed < seeds.end() && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const Program program = DrawProgram(seed);
    ExpectAllOk(OnRanks(
        program.ranks,
        [&](World& world, DeviceMemory& memory) { return Play(program, world, memory); },
        program.nodes));
  }
}

}  // namespace
}  // namespace npumesh

int main(int argc, char** argv) {
  return npumesh::RunSeededTests(argc, argv, &npumesh::seeds);
}
