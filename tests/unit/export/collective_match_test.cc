// Collectives of several graphs against each other, before anything is run.
#include "graph/export/collective_match.h"
#include "graph/ops/builtin_ops.h"

#include <gmock/gmock.h>

#include <map>

#include "graph/ir/graph_builder.h"

namespace npumesh {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr const char* kBoth = "tag=;rank_list=0,1";
constexpr const char* kThree = "tag=;rank_list=0,1,2";

TensorType Floats(int64_t count) {
  return {DataType::kFloat, Shape({count})};
}

CollectiveCall Call(std::string type, std::string group, int64_t count = 4) {
  CollectiveCall call;
  call.node = "n";
  call.type = std::move(type);
  const Operator* const op = BuiltinOps().Find(call.type);
  if (op != nullptr && op->collective) call.encounter = EncounterOf(*op);
  call.group = std::move(group);
  call.operands = {Floats(count)};
  return call;
}

CollectiveCall Message(std::string type, int64_t peer, int64_t count = 4) {
  CollectiveCall call = Call(std::move(type), kBoth, count);
  call.peer = peer;
  return call;
}

CollectiveTrace Trace(std::vector<CollectiveCall> calls) {
  CollectiveTrace trace;
  trace.calls = std::move(calls);
  for (const CollectiveCall& call : trace.calls) {
    if (trace.MembersOf(call.group) != nullptr) continue;
    std::vector<int> members;
    for (const char c : call.group.substr(call.group.find("list=") + 5)) {
      if (c != ',') members.push_back(c - '0');
    }
    trace.groups.emplace_back(call.group, members);
  }
  return trace;
}

// "<rank>: <text>" of each mismatch.
std::vector<std::string> Mismatches(std::vector<CollectiveTrace> traces) {
  std::vector<std::string> texts;
  for (const CollectiveMismatch& mismatch : MatchCollectives(traces)) {
    texts.push_back(std::to_string(mismatch.rank) + ": " + mismatch.text);
  }
  return texts;
}

TEST(CollectiveMatch, EqualProgramsFit) {
  const CollectiveTrace trace =
      Trace({Call("HcomAllReduce", kBoth), Call("HcomAllGather", kBoth, 7)});
  EXPECT_THAT(Mismatches({trace, trace}), IsEmpty());
}

TEST(CollectiveMatch, GroupsMayBeUsedBySomeRanksOnly) {
  const auto pair = Call("HcomAllReduce", kBoth);
  const auto all = Call("HcomAllReduce", kThree);
  EXPECT_THAT(Mismatches({Trace({pair, all}), Trace({pair, all}), Trace({all})}), IsEmpty());
}

TEST(CollectiveMatch, NamesTheFieldThatDiffers) {
  auto other = Call("HcomAllReduce", kBoth, 5);
  EXPECT_THAT(Mismatches({Trace({Call("HcomAllReduce", kBoth)}), Trace({other})}),
              ElementsAre("1: node \"n\" (HcomAllReduce): the tensor is float32[5], but node \"n\" "
                          "(HcomAllReduce) of rank 0, with which it meets in group \"" +
                          std::string(kBoth) + "\", has float32[4]"));
  other = Call("HcomAllReduce", kBoth);
  other.operands[0].dtype = DataType::kFloat16;
  EXPECT_THAT(Mismatches({Trace({Call("HcomAllReduce", kBoth)}), Trace({other})}),
              ElementsAre(HasSubstr("the tensor is float16[4]")));
  EXPECT_THAT(
      Mismatches({Trace({Call("HcomAllReduce", kBoth)}), Trace({Call("HcomAllGather", kBoth)})}),
      ElementsAre(HasSubstr("the operator is HcomAllGather")));
  other = Call("HcomBroadcast", kBoth);
  other.root = 1;
  auto root = other;
  root.root = 0;
  EXPECT_THAT(Mismatches({Trace({root}), Trace({other})}),
              ElementsAre(HasSubstr("root_rank is 1")));
}

TEST(CollectiveMatch, UnknownTypesAreComparedWithNothing) {
  auto unknown = Call("HcomAllReduce", kBoth);
  unknown.operands.clear();
  EXPECT_THAT(Mismatches({Trace({Call("HcomAllReduce", kBoth)}), Trace({unknown})}), IsEmpty());
}

TEST(CollectiveMatch, OtherOrdersOfTwoGroupsAreADeadlock) {
  const auto pair = Call("HcomAllReduce", kBoth);
  const auto all = Call("HcomAllGather", kThree);
  const auto found = Mismatches({Trace({pair, all}), Trace({all, pair}), Trace({all})});
  ASSERT_FALSE(found.empty());
  EXPECT_THAT(
      found[0],
      StartsWith("0: node \"n\" (HcomAllReduce), call 0 of rank 0, would wait without end for "
                 "rank 1 in group \"tag=;rank_list=0,1\": rank 1 is at call 0, node \"n\" "
                 "(HcomAllGather) of group \"tag=;rank_list=0,1,2\""));
}

TEST(CollectiveMatch, AMissingCollectiveIsADeadlock) {
  const auto call = Call("HcomAllReduce", kBoth);
  EXPECT_THAT(Mismatches({Trace({call, call}), Trace({call})}),
              ElementsAre(HasSubstr("rank 1 has no more collectives after 1")));
}

TEST(CollectiveMatch, GroupsHaveTheSameMembersAndOnlyMembersUseThem) {
  CollectiveTrace other = Trace({Call("HcomAllReduce", kBoth)});
  other.groups[0].second = {1, 0};
  EXPECT_THAT(Mismatches({Trace({Call("HcomAllReduce", kBoth)}), other}),
              ElementsAre(HasSubstr("has the ranks 1,0 here and 0,1 on rank 0")));
  const CollectiveTrace trace = Trace({Call("HcomAllReduce", kBoth)});
  EXPECT_THAT(Mismatches({trace, trace, trace}),
              ElementsAre(HasSubstr("used by rank 2, which is not one of its ranks 0,1")));
}

TEST(CollectiveMatch, MessagesPairInOrder) {
  EXPECT_THAT(Mismatches({Trace({Message("HcomSend", 1), Message("HcomReceive", 1, 9)}),
                          Trace({Message("HcomSend", 0, 9), Message("HcomReceive", 0)})}),
              IsEmpty());
  EXPECT_THAT(Mismatches({Trace({Message("HcomSend", 1)}), Trace({Message("HcomReceive", 0, 5)})}),
              ElementsAre(HasSubstr("the tensor is float32[5]")));
  EXPECT_THAT(Mismatches({Trace({Message("HcomSend", 1)}), Trace({})}),
              ElementsAre(HasSubstr("which has no HcomReceive for it")));
  EXPECT_THAT(Mismatches({Trace({}), Trace({Message("HcomReceive", 0)})}),
              ElementsAre(HasSubstr("would wait without end for rank 0")));
  EXPECT_THAT(Mismatches({Trace({Message("HcomSend", 5)}), Trace({})}),
              ElementsAre(HasSubstr("dest_rank 5 is no rank of group")));
}

TEST(CollectiveMatch, UnevenBlocksFitPairwise) {
  auto zero = Call("HcomAllToAllV", kBoth);
  auto one = zero;
  zero.counts = {{"send_counts", {1, 2}}, {"recv_counts", {1, 3}}};
  one.counts = {{"send_counts", {3, 4}}, {"recv_counts", {2, 4}}};
  EXPECT_THAT(Mismatches({Trace({zero}), Trace({one})}), IsEmpty());
  one.counts["recv_counts"] = {5, 4};
  EXPECT_THAT(Mismatches({Trace({zero}), Trace({one})}),
              ElementsAre(HasSubstr("recv_counts[0] is 5, but rank 0 sends 2 elements")));
  auto gather = Call("HcomAllGatherV", kBoth);
  gather.counts = {{"send_count", {2}}, {"recv_counts", {2, 3}}};
  EXPECT_THAT(Mismatches({Trace({gather}), Trace({gather})}),
              ElementsAre(HasSubstr("1: node \"n\" (HcomAllGatherV): send_count is 2, but "
                                    "recv_counts[1] is 3")));
}

// Ranks have different numbers of tokens, and their experts different loads; types still agree.
TEST(CollectiveMatch, TokensAndRowsOfExpertsMayBeUneven) {
  for (const char* type : {"MoeDistributeDispatchV2", "MoeDistributeCombineAddRmsNorm",
                           "AlltoAllvGroupedMatMul", "QuantGroupedMatMulAlltoAllv"}) {
    auto few = Call(type, kBoth);
    auto many = few;
    few.operands = {{DataType::kFloat16, {3, 8}}};
    many.operands = {{DataType::kFloat16, {5, 8}}};
    EXPECT_THAT(Mismatches({Trace({few}), Trace({many})}), ElementsAre()) << type;
    many.operands[0].dtype = DataType::kInt8;
    EXPECT_THAT(Mismatches({Trace({few}), Trace({many})}), ElementsAre(HasSubstr("int8"))) << type;
  }
}

TEST(CollectiveTrace, OperatorsSayHowTheirMembersMeet) {
  std::map<Encounter, std::vector<std::string_view>> found;
  for (const std::string_view type : BuiltinOps().Types()) {
    const Operator& op = *BuiltinOps().Find(type);
    if (op.collective) found[EncounterOf(op)].push_back(type);
  }
  EXPECT_THAT(found[Encounter::kSend], ElementsAre("HcomSend"));
  EXPECT_THAT(found[Encounter::kReceive], ElementsAre("HcomReceive"));
  EXPECT_THAT(found[Encounter::kPairs], ElementsAre("HcomAllToAllV"));
  EXPECT_THAT(found[Encounter::kAll], ::testing::Contains("HcomAllReduce"));
}

// An operator of a library is judged as the built-in one with the same row.
TEST(CollectiveTrace, MessagesOfAnyNameAreMessages) {
  OpRegistry registry = BuiltinOps();
  Operator send = *BuiltinOps().Find("HcomSend");
  send.schema.type = "LibrarySend";
  registry.Add(send);
  GraphBuilder g;
  const Value x = g.Data("x", {DataType::kFloat, {4}});
  g.Op("LibrarySend", {{"x", x}},
       {{"group", AttrValue::String(kBoth)},
        {"sr_tag", AttrValue::Int(0)},
        {"dest_rank", AttrValue::Int(1)}},
       "send");
  g.Output({x});
  const Result<CollectiveTrace> mine = TraceCollectives(*g.Build(), registry, {}, 0, 2);
  ASSERT_TRUE(mine.ok()) << mine.status().ToString();
  const Result<CollectiveTrace> carried = ParseTrace(TraceText(*mine));
  ASSERT_TRUE(carried.ok()) << carried.status().ToString();
  EXPECT_THAT(Mismatches({*carried, Trace({Message("HcomReceive", 0)})}), IsEmpty());
  std::string text = TraceText(*mine);
  text.replace(text.find("\"encounter\":2"), 13, "\"encounter\":9");
  EXPECT_EQ(ParseTrace(text).status().code(), Code::kCorrupt);
}

TEST(CollectiveTrace, ExpertsHaveTheirGroupUnderAnotherName) {
  GraphBuilder g;
  const Value x = g.Data("x", {DataType::kFloat16, {2, 8}});
  const Value ids = g.Data("ids", {DataType::kInt32, {2, 1}});
  const Value sent = g.Op("MoeDistributeDispatch", {{"x", x}, {"expert_ids", ids}},
                          {{"group_ep", AttrValue::String("ep")},
                           {"ep_world_size", AttrValue::Int(2)},
                           {"ep_rank_id", AttrValue::Int(1)},
                           {"moe_expert_num", AttrValue::Int(2)}},
                          "dispatch", 7);
  g.Output({sent});
  const Result<CollectiveTrace> trace =
      TraceCollectives(*g.Build(), BuiltinOps(), {{"ep", {1, 0}}}, 0, 2);
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  ASSERT_EQ(trace->calls.size(), 1u);
  EXPECT_EQ(trace->calls[0].group, "ep");
  EXPECT_THAT(*trace->MembersOf("ep"), ElementsAre(1, 0));
}

// From graphs: the order is the one in which they run, and types are inferred.
TEST(CollectiveTrace, ReadsTypesAndGroupsFromTheGraph) {
  GraphBuilder g;
  const Value x = g.Data("x", {DataType::kFloat16, {2, 8}});
  const Value all = g.Op("HcomAllGather", {{"x", x}},
                         {{"rank_size", AttrValue::Int(2)}, {"group", AttrValue::String("tp")}});
  g.Op("HcomReduceScatter", {{"x", all}},
       {{"rank_size", AttrValue::Int(2)},
        {"group", AttrValue::String(kBoth)},
        {"reduction", AttrValue::String("max")}});
  g.Output({all});
  const Model model = *g.Build();
  const Result<CollectiveTrace> trace =
      TraceCollectives(model, BuiltinOps(), {{"tp", {1, 0}}}, 0, 2);
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  ASSERT_EQ(trace->calls.size(), 2u);
  EXPECT_EQ(trace->calls[1].reduction, "max");
  EXPECT_THAT(trace->calls[1].operands, ElementsAre(TensorType{DataType::kFloat16, {4, 8}}));
  EXPECT_THAT(*trace->MembersOf("tp"), ElementsAre(1, 0));
  const Result<CollectiveTrace> copy = ParseTrace(TraceText(*trace));
  ASSERT_TRUE(copy.ok());
  EXPECT_EQ(TraceText(*copy), TraceText(*trace));
  EXPECT_EQ(TraceCollectives(model, BuiltinOps(), {}, 0, 2).status().code(), Code::kNotFound);
  EXPECT_EQ(ParseTrace("{\"calls\": 3}").status().code(), Code::kCorrupt);
}

}  // namespace
}  // namespace npumesh
