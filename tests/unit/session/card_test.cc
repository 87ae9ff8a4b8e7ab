// Sessions beside a card: what it would refuse of their operators, at the shapes that run.
#include <gmock/gmock.h>

#include <cstdlib>

#include "graph/session/offline_groups.h"
#include "graph/session/runnable.h"
#include "graph/session/session_config.h"
#include "runtime/acl/limits/soc.h"
#include "tests/unit/session/session_fixture.h"

namespace npumesh {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Card A3(bool fails = false) {
  return {*Chips().Find("ascend910_9391"), fails};
}

// The best two of so many experts; -1: as many as the input has.
GraphBuilder Gating(int64_t experts) {
  GraphBuilder g("gating");
  const Value x = g.Data("x", {DataType::kFloat, {2, experts}});
  const Value y = g.Op("MoeGatingTopK", {{"x", x}}, {{"k", AttrValue::Int(2)}}, "gate", 3);
  g.Output({y});
  return g;
}

SessionOptions With(const std::shared_ptr<NodeWatch>& card) {
  SessionOptions options;
  options.card = card;
  return options;
}

Tensor Scores(int64_t experts) {
  return Tensor::Allocate({DataType::kFloat, {2, experts}});
}

TEST(SessionOnCard, FindsWhatTheShapesOfARunBreak) {
  const auto card = std::make_shared<NodeWatch>(A3(), /*says=*/false);
  GraphBuilder graph = Gating(-1);
  RunInSession(graph, With(card), [&](Session& session) {
    EXPECT_EQ(session.card(), card.get());
    EXPECT_TRUE(session.Run({Scores(256)}).ok());
    EXPECT_THAT(card->findings().all(), IsEmpty());
    EXPECT_TRUE(session.Run({Scores(4096)}).ok());
    EXPECT_TRUE(session.Run({Scores(4095)}).ok());
  });
  const std::vector<CardFinding> found = card->findings().all();
  ASSERT_THAT(found, SizeIs(1)) << "each node once";
  EXPECT_EQ(found[0].rule, "mgtk-experts");
  EXPECT_EQ(found[0].node, "gate");
  EXPECT_EQ(found[0].code, 561002);
  EXPECT_EQ(found[0].text, "there are 4096 experts; at most 2048 are taken");
}

TEST(SessionOnCard, FailsWhereItIsAskedTo) {
  const auto card = std::make_shared<NodeWatch>(A3(/*fails=*/true), /*says=*/false);
  GraphBuilder graph = Gating(-1);
  RunInSession(graph, With(card), [&](Session& session) {
    EXPECT_TRUE(session.Run({Scores(256)}).ok());
    for (int i = 0; i < 2; ++i) {
      const Status refused = session.Run({Scores(4096)}).status();
      EXPECT_EQ(refused.code(), Code::kInvalidArgument);
      EXPECT_THAT(refused.message(), HasSubstr("ascend910_9391 refuses node \"gate\""));
    }
    EXPECT_TRUE(session.Run({Scores(256)}).ok());
  });
}

TEST(SessionOnCard, FindsBeforeARunWhatHoldsForAllInputs) {
  for (const auto& [experts, findings] : {std::pair<int64_t, size_t>(4096, 1), {-1, 0}, {256, 0}}) {
    SessionOptions options = With(std::make_shared<NodeWatch>(A3(), /*says=*/false));
    Result<Model> model = Gating(experts).Build();
    ASSERT_TRUE(model.ok());
    OfflineGroups groups = OfflineGroups::BeforeWorld(options.groups, 0, 1);
    EXPECT_TRUE(CheckRunnable(*std::move(model), options, groups).ok());
    EXPECT_THAT(options.card->findings().all(), SizeIs(findings)) << experts;
  }
}

// Two collectives with budgets, on streams; `chained`: the second one needs the first one.
GraphBuilder Budgets(std::string first, std::string second, std::string stream,
                     bool chained = false) {
  GraphBuilder g("budgets");
  const Value x = g.Data("x", {DataType::kFloat, {4}});
  const auto reduced = [&](Value of, std::string cores, std::string on, std::string name) {
    return g.Op("HcomAllReduce", {{"x", of}},
                {{"reduction", AttrValue::String("sum")},
                 {"group", AttrValue::String("hccl_world_group")},
                 {"_user_stream_label", AttrValue::String(std::move(on))},
                 {"_op_vectorcore_num", AttrValue::String(std::move(cores))}},
                std::move(name));
  };
  const Value a = reduced(x, std::move(first), "one", "gather");
  const Value b = reduced(chained ? a : x, std::move(second), std::move(stream), "dispatch");
  g.Output({a, b});
  return g;
}

std::vector<CardFinding> FoundOf(std::string first, std::string second, std::string stream,
                                 bool chained = false, bool fails = false) {
  SessionOptions options = With(std::make_shared<NodeWatch>(A3(fails), /*says=*/false));
  Result<Model> model = Budgets(first, second, stream, chained).Build();
  EXPECT_TRUE(model.ok());
  OfflineGroups groups = OfflineGroups::BeforeWorld(options.groups, 0, 1);
  const Status status = CheckRunnable(*std::move(model), options, groups);
  EXPECT_EQ(status.ok(), !fails) << status.message();
  return options.card->findings().all();
}

TEST(SessionOnCard, FindsCollectivesThatWaitForEachOthersCores) {
  const std::vector<CardFinding> found = FoundOf("32", "24", "two");
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].rule, "collective-cores");
  EXPECT_EQ(found[0].node, "dispatch");
  EXPECT_EQ(found[0].code, 507034);
  EXPECT_THAT(found[0].text, HasSubstr("beside node \"gather\" (HcomAllReduce)"));
  EXPECT_THAT(found[0].text, HasSubstr("32 + 24 > 48"));
  EXPECT_THAT(FoundOf("32", "24", "two", /*chained=*/false, /*fails=*/true), SizeIs(1));
  EXPECT_THAT(FoundOf("24", "24", "two"), IsEmpty());
  EXPECT_THAT(FoundOf("32", "24", "one"), IsEmpty()) << "one after the other";
  EXPECT_THAT(FoundOf("32", "24", "two", /*chained=*/true), IsEmpty());
  EXPECT_THAT(FoundOf("32", "0", "two"), IsEmpty()) << "without a budget";
  EXPECT_THAT(FoundOf("32", "many", "two"), IsEmpty());
}

// Sets NPUMESH_CARD and NPUMESH_CARD_CHECK for a while; "" leaves them unset.
class CardVariables {
 public:
  CardVariables(const char* card, const char* check) {
    if (*card != 0) setenv("NPUMESH_CARD", card, 1);
    if (*check != 0) setenv("NPUMESH_CARD_CHECK", check, 1);
  }
  ~CardVariables() {
    unsetenv("NPUMESH_CARD");
    unsetenv("NPUMESH_CARD_CHECK");
  }
  CardVariables(const CardVariables&) = delete;
  CardVariables& operator=(const CardVariables&) = delete;
};

SessionOptions Checked(bool deadlocks = true) {
  CompilerConfig config;
  config.debug.deadlock_check = deadlocks;
  Result<SessionOptions> options = SessionOptionsFor(config);
  EXPECT_TRUE(options.ok()) << options.status().message();
  return *std::move(options);
}

TEST(DeadlockCheck, SaysBeforeARunWhichCollectivesMayWaitForEachOther) {
  EXPECT_EQ(Checked(/*deadlocks=*/false).card, nullptr);
  for (const auto& [second, findings] : {std::pair("24", size_t{1}), {"16", size_t{0}}}) {
    const SessionOptions options = Checked();
    ASSERT_NE(options.card, nullptr);
    GraphBuilder graph = Budgets("32", second, "two");
    RunInSession(graph, options, [&](Session& session) {
      EXPECT_THAT(session.card()->findings().all(), SizeIs(findings)) << "before it runs";
      EXPECT_TRUE(session.Run({Tensor::Allocate({DataType::kFloat, {4}})}).ok());
    });
    EXPECT_THAT(options.card->findings().all(), SizeIs(findings)) << second;
  }
}

TEST(DeadlockCheck, AsksForNoLimitsOfOperators) {
  const SessionOptions options = Checked();
  GraphBuilder graph = Gating(4096);
  RunInSession(graph, options,
               [&](Session& session) { EXPECT_TRUE(session.Run({Scores(4096)}).ok()); });
  EXPECT_THAT(options.card->findings().all(), IsEmpty());
}

TEST(DeadlockCheck, IsOfTheDevicesUnlessACardIsNamedAndFailsWhereItIsAskedTo) {
  EXPECT_EQ(Checked().card->findings().card().chip->Number("vector_cores"), kSocVectorCores);
  {
    const CardVariables variables("", "fail");
    EXPECT_TRUE(Checked().card->findings().card().fails);
  }
  const CardVariables variables("ascend310p3", "");
  EXPECT_EQ(Checked().card, nullptr) << "Session::Create asks about the card that is named";
}

TEST(SessionOnCard, WithoutTheVariableNothingIsAsked) {
  GraphBuilder graph = Gating(4096);
  RunInSession(graph, {}, [&](Session& session) {
    EXPECT_EQ(session.card(), nullptr);
    EXPECT_TRUE(session.Run({Scores(4096)}).ok());
  });
}

}  // namespace
}  // namespace npumesh
