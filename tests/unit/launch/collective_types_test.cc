// Every operator that meets other ranks is seen in its group by all that reads groups.
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include "collectives/group_names.h"
#include "graph/compare/laws/laws.h"
#include "graph/compare/replay/replay.h"
#include "graph/export/collective_trace.h"
#include "graph/ir/graph_builder.h"
#include "graph/ops/builtin_ops.h"
#include "graph/session/offline_groups.h"
#include "launch/view/graph_facts.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kNobody = "group that nothing explains";

std::vector<std::string> CollectiveTypes() {
  std::vector<std::string> types;
  for (const std::string_view type : BuiltinOps().Types()) {
    if (BuiltinOps().Find(type)->collective) types.emplace_back(type);
  }
  return types;
}

class CollectiveType : public testing::TestWithParam<std::string> {
 protected:
  CollectiveType() {
    GraphBuilder g;
    std::vector<GraphBuilder::Input> inputs;
    for (const PortSpec& port : op_.schema.inputs) {
      if (port.kind == PortKind::kOptional) continue;
      const std::string name(port.name);
      inputs.emplace_back(port.kind == PortKind::kDynamic ? name + "0" : name,
                          g.Data(name, {DataType::kFloat, {2}}));
    }
    std::vector<GraphBuilder::Attr> attrs;
    for (const AttrSpec& attr : op_.schema.attrs) {
      const bool group = attr.name == op_.collective->group;
      if (attr.fallback && !group) continue;
      const bool any = attr.pattern.get<OpaqueAttr>() != nullptr;
      attrs.emplace_back(attr.name, group ? AttrValue::String(kNobody)
                                    : any ? AttrValue::Int(2)
                                          : attr.pattern);
    }
    const auto outputs = static_cast<int>(op_.schema.outputs.size());
    const Value value = g.Op(GetParam(), inputs, attrs, "op", outputs);
    if (outputs > 0) g.Output({value});
    if (outputs == 0) g.Output({});
    model_ = g.Build().value();
  }

  const Operator& op_ = *BuiltinOps().Find(GetParam());
  Model model_;
};

TEST(CollectiveTypes, AreAllThatNameAGroup) {
  EXPECT_EQ(CollectiveTypes().size(), 32u);
  for (const std::string_view type : BuiltinOps().Types()) {
    const Operator& op = *BuiltinOps().Find(type);
    for (const AttrSpec& attr : op.schema.attrs) {
      const bool names = (attr.name == "group" || attr.name == "group_ep") &&
                         attr.pattern.get<std::string>() != nullptr;
      EXPECT_TRUE(!names || (op.collective && op.collective->group == attr.name)) << type;
    }
  }
}

TEST_P(CollectiveType, NamesPortsAndAttributesThatExist) {
  const CollectiveTrait& trait = *op_.collective;
  for (const std::string_view name : {trait.group, trait.source, trait.reduction, trait.peer}) {
    EXPECT_TRUE(name.empty() || std::any_of(op_.schema.attrs.begin(), op_.schema.attrs.end(),
                                            [&](const AttrSpec& a) { return a.name == name; }))
        << name;
  }
  for (const std::string_view port : trait.own_inputs) {
    EXPECT_TRUE(std::any_of(op_.schema.inputs.begin(), op_.schema.inputs.end(),
                            [&](const PortSpec& spec) { return spec.name == port; }))
        << port;
  }
}

TEST_P(CollectiveType, IsSeenBySessionsAndFacts) {
  EXPECT_THAT(GroupsOf(model_, BuiltinOps()), ElementsAre(kNobody));
  const GraphFacts facts = Examine(model_, BuiltinOps());
  ASSERT_EQ(facts.collectives.count(kNobody), 1u);
  EXPECT_EQ(facts.collectives.at(kNobody).at(GetParam()).count, 1);
}

TEST_P(CollectiveType, IsSeenByExports) {
  const auto trace = TraceCollectives(model_, BuiltinOps(), {}, 0, 2);
  EXPECT_EQ(trace.status().code(), Code::kNotFound);
  EXPECT_THAT(trace.status().message(), HasSubstr(kNobody));
}

TEST_P(CollectiveType, IsSeenByLaws) {
  const RankGraphs graphs = {{&model_, &model_}, {}};
  const auto laws = DeriveLaws(graphs, BuiltinOps(), [](const std::string&) {
    return RankClasses{0, 1};
  });
  EXPECT_EQ(laws.status().code(), Code::kNotFound);
  EXPECT_THAT(laws.status().message(), HasSubstr(kNobody));
}

TEST_P(CollectiveType, IsSeenByReplay) {
  const Tensor tensor = Tensor::Allocate({DataType::kFloat, {2}});
  MemorySource source("dump");
  for (size_t i = 0; i < model_.graph.DataNodes().size(); ++i) {
    source.Add("op", GetParam(), Side::kInput, static_cast<int>(i), tensor);
  }
  source.Add("op", GetParam(), Side::kOutput, 0, tensor);
  const RankGraphs graphs = {{&model_, &model_}, {}};
  Env env;
  env.hbm_bytes = uint64_t{8} << 20;
  const auto replayed = Replay(graphs, {&source, &source}, env, {});
  ASSERT_TRUE(replayed.ok()) << replayed.status().ToString();
  const char* const why = op_.collective->peer.empty() ? kNobody : "a message has no counterpart";
  ASSERT_EQ(replayed->left_out.size(), 2u);
  for (const NotReplayed& left : replayed->left_out) EXPECT_THAT(left.reason, HasSubstr(why));
}

// What one of those who look at groups says about a name.
std::string Members(const Result<GroupProvider::Members>& members) {
  if (!members.ok()) return members.status().ToString();
  return fmt::format("{}", fmt::join(members->world_ranks, ","));
}

TEST(GroupNames, MeanTheSameToAllWhoReadThem) {
  const GroupTable table = {{"tp", {1, 0}}, {"nobody", {}}};
  OfflineGroups exported = OfflineGroups::InWorld(table, 0, 2);
  OfflineGroups planned = OfflineGroups::BeforeWorld(table, 0, 2);
  const RankGraphs compared = {{nullptr, nullptr}, table};
  for (const std::string group :
       {"", "hccl_world_group", "tp", "nobody", "dp", "tag=a;rank_list=1,0", "tag=;rank_list=1,1",
        "tag=;rank_list=x", "rank_list=0,1", "x;rank_list=0,1"}) {
    const Result<std::vector<int>> ranks = RanksInWorld(group, table, 2);
    const std::string expected =
        ranks.ok() ? fmt::format("{}", fmt::join(*ranks, ",")) : ranks.status().ToString();
    EXPECT_EQ(Members(exported.MembersOf(group)), expected) << group;
    EXPECT_EQ(Members(planned.MembersOf(group)), expected) << group;
    const Result<std::vector<int>> members = MembersOfGroup(group, compared);
    EXPECT_EQ(members.status().ToString(), ranks.status().ToString()) << group;
    if (ranks.ok()) {
      EXPECT_EQ(*members, *ranks) << group;
    }
  }
  EXPECT_EQ(exported.MembersOf("tag=;rank_list=0,5").status().code(), Code::kInvalidArgument);
  EXPECT_TRUE(planned.MembersOf("tag=;rank_list=0,5").ok()) << "nobody knows how many will run";
}

INSTANTIATE_TEST_SUITE_P(All, CollectiveType, testing::ValuesIn(CollectiveTypes()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace npumesh
