// Sessions on one rank: plans, RefData, statistics, errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/guard/edge_guard.h"
#include "tests/unit/session/session_fixture.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class SessionTest : public testing::Test {
 protected:
  // Runs `body` with a session of the graph.
  void WithSession(const std::function<void(Session&)>& body, SessionOptions options = {}) {
    options.registry = TinySession().registry;
    RunInSession(g_, options, body);
  }

  // The integers of the first output.
  static std::vector<int64_t> First(const Result<std::vector<Tensor>>& outputs) {
    EXPECT_TRUE(outputs.ok()) << outputs.status().ToString();
    return outputs.ok() ? IntsIn((*outputs)[0]) : std::vector<int64_t>();
  }

  GraphBuilder g_;
};

TEST_F(SessionTest, OnePlanForEachShape) {
  const Value x = g_.Data("x", IntType({-1}));
  g_.Output({g_.Op("Plus", {{"x1", x}, {"x2", x}})});
  WithSession([](Session& session) {
    EXPECT_THAT(First(session.Run({IntTensor({1, 2})})), ElementsAre(2, 4));
    EXPECT_THAT(First(session.Run({IntTensor({1, 2, 3})})), ElementsAre(2, 4, 6));
    EXPECT_THAT(First(session.Run({IntTensor({5, 6})})), ElementsAre(10, 12));
    EXPECT_EQ(session.stats().plans, 2u);
    EXPECT_EQ(session.stats().runs, 3u);
    EXPECT_EQ(session.stats().run.steps, 3u);
    EXPECT_GT(session.stats().compile_seconds, 0.0);
    EXPECT_GE(session.stats().peak_hbm_bytes, session.stats().arena_bytes);
    EXPECT_EQ(session.stats().arena_bytes, 512u + kEdgeMargin);  // Plus is not built in
  });
}

TEST_F(SessionTest, OnePlanForEachValueThatDecidesShapes) {
  const Value n = g_.Data("n", IntType({1}));
  const Value x = g_.Data("x", IntType({1}));
  g_.Output({g_.Op("Zeros", {{"dims", n}}), x});
  WithSession([](Session& session) {
    EXPECT_EQ(First(session.Run({IntTensor({3}), IntTensor({7})})).size(), 3u);
    EXPECT_EQ(First(session.Run({IntTensor({5}), IntTensor({7})})).size(), 5u);
    EXPECT_EQ(session.stats().plans, 2u);
    EXPECT_EQ(First(session.Run({IntTensor({3}), IntTensor({8})})).size(), 3u);
    EXPECT_EQ(session.stats().plans, 2u);
  });
}

TEST_F(SessionTest, AVectorOfOneElementIsTheScalarThatTheGraphDeclares) {
  const Value n = g_.Data("n", IntType({}));
  g_.Output({g_.Op("Shape", {{"x", n}}), g_.Op("Negate", {{"x", n}})});
  const auto expect_scalar = [](Session& session) {
    for (const Tensor& given : {IntTensor({3}), IntTensor({3}).WithType(IntType({}))}) {
      const Result<std::vector<Tensor>> outputs = session.Run({given});
      ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
      EXPECT_EQ((*outputs)[0].shape(), Shape{0});
      EXPECT_EQ((*outputs)[1].type(), IntType({}));
      EXPECT_EQ((*outputs)[1].as<int64_t>()[0], -3);
    }
    EXPECT_EQ(session.stats().plans, 1u);
    EXPECT_FALSE(session.Run({IntTensor({3, 4})}).ok());
  };
  WithSession(expect_scalar);
}

TEST_F(SessionTest, PlansDoNotShareTheCallersBytes) {
  g_.Output({g_.Data("n", IntType({1})), g_.Op("Zeros", {{"dims", Value{0, 0}}})});
  WithSession([](Session& session) {
    Tensor n = IntTensor({3});
    EXPECT_THAT(First(session.Run({n})), ElementsAre(3));
    *reinterpret_cast<int64_t*>(n.mutable_data()) = 4;
    EXPECT_THAT(First(session.Run({n})), ElementsAre(4));
    EXPECT_THAT(First(session.Run({IntTensor({3})})), ElementsAre(3));
    EXPECT_EQ(session.stats().plans, 2u);
  });
}

TEST_F(SessionTest, OldPlansMakeRoom) {
  const Value x = g_.Data("x", IntType({-1}));
  g_.Output({g_.Op("Negate", {{"x", x}}), g_.Op("Shape", {{"x", x}})});
  SessionOptions options;
  options.max_plans = 2;
  WithSession(
      [](Session& session) {
        const auto run = [&](size_t length) {
          EXPECT_TRUE(session.Run({IntTensor(std::vector<int64_t>(length))}).ok());
          return session.stats().plans;
        };
        EXPECT_EQ(run(1), 1u);
        EXPECT_EQ(run(2), 2u);
        EXPECT_EQ(run(1), 2u);
        EXPECT_EQ(run(3), 3u);  // in the place of length 2
        EXPECT_EQ(run(1), 3u);
        EXPECT_EQ(run(2), 4u);
      },
      options);
}

TEST_F(SessionTest, RefDataLivesOnAcrossPlans) {
  const Value sum = g_.RefData("sum", IntType({2}));
  const Value x = g_.Data("x", IntType({2}));
  const Value other = g_.Data("other", IntType({-1}));
  g_.Output({g_.Op("Accumulate", {{"ref", sum}, {"value", x}}), g_.Op("Negate", {{"x", other}})});
  WithSession([](Session& session) {
    const Tensor x = IntTensor({1, 2});
    const auto other = [](size_t n) { return IntTensor(std::vector<int64_t>(n)); };
    const Status missing = session.Run({Tensor(), x, other(1)}).status();
    EXPECT_EQ(missing.code(), Code::kInvalidArgument);
    EXPECT_EQ(missing.message(),
              "input 0 \"sum\": expected int64[2], seen none; a RefData keeps its content only "
              "after it was given once");
    EXPECT_FALSE(session.ReadRef(0).ok());
    EXPECT_THAT(First(session.Run({IntTensor({10, 20}), x, other(1)})), ElementsAre(11, 22));
    EXPECT_THAT(First(session.Run({Tensor(), x, other(1)})), ElementsAre(12, 24));
    EXPECT_THAT(First(session.Run({Tensor(), x, other(5000)})), ElementsAre(13, 26));
    EXPECT_THAT(First(session.Run({Tensor(), x, other(1)})), ElementsAre(14, 28));
    EXPECT_EQ(session.stats().plans, 2u);
    const Result<Tensor> kept = session.ReadRef(0);
    ASSERT_TRUE(kept.ok()) << kept.status().ToString();
    EXPECT_THAT(IntsIn(*kept), ElementsAre(14, 28));
    EXPECT_THAT(First(session.Run({IntTensor({0, 0}), x, other(1)})), ElementsAre(1, 2));
    EXPECT_FALSE(session.ReadRef(1).ok());
  });
}

TEST_F(SessionTest, WritesIntoRefDataHappenWithoutReaders) {
  const Value ref = g_.RefData("ref", IntType({1}));
  const Value x = g_.Data("x", IntType({1}));
  g_.Op("Store", {{"ref", ref}, {"value", x}});
  g_.Output({g_.Op("Negate", {{"x", ref}})});
  WithSession([](Session& session) {
    EXPECT_THAT(First(session.Run({IntTensor({1}), IntTensor({5})})), ElementsAre(-1));
    EXPECT_THAT(First(session.Run({Tensor(), IntTensor({6})})), ElementsAre(-5));
    EXPECT_THAT(IntsIn(session.ReadRef(0).value()), ElementsAre(6));
  });
}

TEST_F(SessionTest, WrongInputsLeaveTheSessionUsable) {
  const Value x = g_.Data("x", IntType({2}));
  g_.Output({g_.Op("Negate", {{"x", x}})});
  WithSession([](Session& session) {
    EXPECT_EQ(session.Run({}).status().message(), "the graph has 1 inputs, 0 were given");
    EXPECT_EQ(session.Run({Tensor()}).status().message(),
              "input 0 \"x\": expected int64[2], seen none");
    EXPECT_THAT(session.Run({IntTensor({1})}).status().message(),
                HasSubstr("dimension 0 is 1, expected 2"));
    EXPECT_THAT(First(session.Run({IntTensor({1, 2})})), ElementsAre(-1, -2));
  });
}

TEST_F(SessionTest, PrepareCompilesWithoutRunning) {
  const Value x = g_.Data("x", IntType({2}));
  g_.Output({g_.Op("Fail", {{"x", x}})});
  WithSession([](Session& session) {
    const auto model = session.Prepare({IntTensor({1, 2})});
    ASSERT_TRUE(model.ok()) << model.status().ToString();
    EXPECT_EQ((*model)->steps().size(), 1u);
    EXPECT_EQ(session.stats().runs, 0u);
    EXPECT_FALSE(session.Run({IntTensor({1, 2})}).ok());
    EXPECT_EQ(session.stats().plans, 1u);
  });
}

TEST_F(SessionTest, CreateListsUnknownOperators) {
  const Value x = g_.Data("x", IntType({2}));
  g_.Output({g_.Op("Flash", {{"x", g_.Op("Lightning", {{"x", x}})}})});
  const Model model = g_.Build().value();
  const std::vector<Status> statuses = OnRanks(1, [&](World& world, DeviceMemory& memory) {
    return Session::Create(world, memory, model, TinySession()).status();
  });
  EXPECT_EQ(statuses[0].code(), Code::kUnsupported);
  EXPECT_THAT(statuses[0].message(), HasSubstr("2 operator types cannot be run"));
}

}  // namespace
}  // namespace npumesh
