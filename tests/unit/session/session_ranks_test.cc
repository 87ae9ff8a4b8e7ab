// Sessions of several ranks: groups by name, their order, and failures that no rank waits for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/session/session_fixture.h"

namespace npumesh {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

void ExpectAllOk(const std::vector<Status>& statuses) {
  for (size_t rank = 0; rank < statuses.size(); ++rank) {
    EXPECT_TRUE(statuses[rank].ok()) << "rank " << rank << ": " << statuses[rank].ToString();
  }
}

Value Meet(GraphBuilder& g, Value x, const std::string& group) {
  return g.Op("Meet", {{"x", x}}, {{"group", AttrValue::String(group)}});
}

// Runs the graph that `build` makes for a rank on x = {rank} and returns the first output.
Result<int64_t> RunOnce(World& world, DeviceMemory& memory, SessionOptions options,
                        const std::function<Value(GraphBuilder&, Value)>& build) {
  GraphBuilder g;
  const Value x = g.Data("x", IntType({1}));
  g.Output({build(g, x)});
  NPUMESH_ASSIGN_OR_RETURN(Model model, g.Build());
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           Session::Create(world, memory, std::move(model), std::move(options)));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                           session->Run({IntTensor({world.rank()})}));
  return IntsIn(outputs[0])[0];
}

Status Expect(const Result<int64_t>& seen, int64_t expected) {
  NPUMESH_RETURN_IF_ERROR(seen.status());
  if (*seen == expected) return Status();
  return Error(Code::kInternal, "expected {}, seen {}", expected, *seen);
}

TEST(SessionRanksTest, AllSpellingsOfGroups) {
  ExpectAllOk(OnRanks(4, [](World& world, DeviceMemory& memory) {
    SessionOptions options = TinySession();
    options.groups = {{"lower", {0, 1}}, {"upper", {3, 2}}};
    const bool upper = world.rank() >= 2;
    const auto build = [&](GraphBuilder& g, Value x) {
      const Value all = Meet(g, x, std::string(kWorldGroup));                      // 6
      const Value also_all = Meet(g, all, "tag=a:b;c;rank_list=3, 1, 0,2");        // 24
      const Value named = Meet(g, also_all, upper ? "upper" : "lower");            // 48
      return Meet(g, named, upper ? "tag=;rank_list=2,3" : "tag=;rank_list=0,1");  // 96
    };
    return Expect(RunOnce(world, memory, options, build), 96);
  }));
}

// Rank 0 asks for the groups in another order than rank 1, and no rank waits for that.
TEST(SessionRanksTest, GroupsAreMadeWithoutTheOtherMembers) {
  ExpectAllOk(OnRanks(3, [](World& world, DeviceMemory& memory) {
    if (world.rank() == 2) return Status();
    GroupSet set(world, memory, {});
    for (const char* group : {"tag=c;rank_list=0,1", "", "tag=d;rank_list=1,0,2"}) {
      const auto made = set.Group(group);
      NPUMESH_RETURN_IF_ERROR(made.status());
      EXPECT_EQ(*set.Group(group), *made);
    }
    return set.totals().calls == 0 ? Status() : Error(Code::kInternal, "nothing was sent yet");
  }));
}

// A rank whose graph has no operator of a group of which it is a member runs beside the others.
TEST(SessionRanksTest, IdleMembersHoldNobody) {
  ExpectAllOk(OnRanks(3, [](World& world, DeviceMemory& memory) {
    const auto build = [&](GraphBuilder& g, Value x) {
      return world.rank() == 0 ? x : Meet(g, x, "tag=;rank_list=1,2");
    };
    SessionOptions options = TinySession();
    NPUMESH_RETURN_IF_ERROR(
        Expect(RunOnce(world, memory, options, build), world.rank() == 0 ? 0 : 3));
    return Expect(
        RunOnce(world, memory, options, [](GraphBuilder& g, Value x) { return Meet(g, x, ""); }),
        3);
  }));
}

TEST(SessionRanksTest, MembersOfResolvesWithoutCommunication) {
  const std::vector<Status> statuses = OnRanks(2, [](World& world, DeviceMemory& memory) {
    if (world.rank() == 1) return Status();
    GroupSet set(world, memory, {{"table", {1, 0}}, {"wide", {0, 5}}});
    EXPECT_THAT(set.MembersOf("")->world_ranks, ElementsAre(0, 1));
    EXPECT_THAT(set.MembersOf("table")->world_ranks, ElementsAre(1, 0));
    EXPECT_EQ(set.MembersOf("table")->rank, 1);
    EXPECT_EQ(set.MembersOf("tag=;rank_list=1")->rank, -1);
    EXPECT_THAT(set.Group("tag=;rank_list=1").status().message(),
                HasSubstr("rank 0 is not a member of group \"tag=;rank_list=1\""));
    const Status unknown = set.MembersOf("tp").status();
    EXPECT_EQ(unknown.code(), Code::kNotFound);
    EXPECT_THAT(unknown.message(), AllOf(HasSubstr("group \"tp\" is unknown"),
                                         HasSubstr("model_relation_config.json")));
    EXPECT_EQ(set.MembersOf("tag=;rank_list=0,x").status().code(), Code::kCorrupt);
    EXPECT_EQ(set.MembersOf("tag=;rank_list=").status().code(), Code::kCorrupt);
    EXPECT_EQ(set.MembersOf("tag=;rank_list=0,0").status().code(), Code::kCorrupt);
    EXPECT_EQ(set.MembersOf("tag=no list").status().code(), Code::kNotFound);
    EXPECT_EQ(set.MembersOf("wide").status().message(),
              "group \"wide\" has rank 5 as a member, but the world has 2 ranks; start at least 6 "
              "ranks");
    return Status();
  });
  ExpectAllOk(statuses);
}

TEST(SessionRanksTest, AFailingRankIsNotWaitedFor) {
  const std::vector<Status> statuses = OnRanks(2, [](World& world, DeviceMemory& memory) {
    const auto build = [&](GraphBuilder& g, Value x) {
      const Value before = world.rank() == 1 ? g.Op("Fail", {{"x", x}}, {}, "unlucky") : x;
      return Meet(g, before, "");
    };
    return RunOnce(world, memory, TinySession(), build).status();
  });
  EXPECT_EQ(statuses[1].message(), "node \"unlucky\" (Fail): out of luck");
  EXPECT_EQ(statuses[0].code(), Code::kPeerLost) << statuses[0].ToString();
  EXPECT_THAT(statuses[0].message(), HasSubstr("out of luck"));
}

TEST(SessionRanksTest, ARankThatCannotCompileIsNotWaitedFor) {
  const std::vector<Status> statuses = OnRanks(2, [](World& world, DeviceMemory& memory) {
    const auto build = [&](GraphBuilder& g, Value x) {
      return Meet(g, world.rank() == 1 ? g.Op("Bare", {{"x", x}}) : x, "");
    };
    return RunOnce(world, memory, TinySession(), build).status();
  });
  EXPECT_EQ(statuses[1].code(), Code::kUnsupported);
  EXPECT_EQ(statuses[0].code(), Code::kPeerLost) << statuses[0].ToString();
}

TEST(SessionRanksTest, TimeInCollectivesIsCounted) {
  ExpectAllOk(OnRanks(2, [](World& world, DeviceMemory& memory) -> Status {
    GraphBuilder g;
    g.Output({Meet(g, g.Data("x", IntType({1})), "")});
    NPUMESH_ASSIGN_OR_RETURN(Model model, g.Build());
    NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                             Session::Create(world, memory, std::move(model), TinySession()));
    for (int i = 0; i < 3; ++i) {
      NPUMESH_RETURN_IF_ERROR(session->Run({IntTensor({i})}).status());
    }
    EXPECT_EQ(session->stats().run.collectives, 3u);
    EXPECT_EQ(session->communication().calls, 3u);
    EXPECT_GT(session->stats().run.collective_seconds, 0.0);
    return Status();
  }));
}

}  // namespace
}  // namespace npumesh
