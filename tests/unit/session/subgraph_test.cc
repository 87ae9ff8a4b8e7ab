// Calls, branches and loops: models with subgraphs, built here and read back from .air.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "graph/io/model_file.h"
#include "tests/fuzz/mutator.h"
#include "tests/unit/session/session_fixture.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Graph Finish(GraphBuilder& g) {
  Result<Model> model = g.Build();
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  return model.ok() ? std::move(model->graph) : Graph();
}

// A subgraph of one input x and one output.
Graph Unary(const std::string& name, const std::function<Value(GraphBuilder&, Value)>& body) {
  GraphBuilder g(name);
  const Value x = g.Data("x", IntType(Shape::UnknownRank()));
  g.Output({body(g, x)});
  return Finish(g);
}

Value Negate(GraphBuilder& g, Value x) {
  return g.Op("Negate", {{"x", x}});
}
Value Double(GraphBuilder& g, Value x) {
  return g.Op("Plus", {{"x1", x}, {"x2", x}});
}

class SubgraphTest : public testing::Test {
 protected:
  // The model of `g_`, in which the nodes named have these subgraphs.
  void Build(const std::map<std::string, std::vector<std::string>>& uses,
             std::vector<Graph> subgraphs) {
    Result<Model> model = g_.Build();
    ASSERT_TRUE(model.ok()) << model.status().ToString();
    model_ = std::move(*model);
    model_.subgraphs = std::move(subgraphs);
    for (const auto& [name, graphs] : uses) {
      const NodeId id = model_.graph.Find(name);
      ASSERT_NE(id, kNoNode) << name;
      model_.graph.node(id).subgraphs = graphs;
    }
  }

  Status WithSession(const std::function<void(Session&)>& body) const {
    return OnRanks(1, [&](World& world, DeviceMemory& memory) -> Status {
      NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                               Session::Create(world, memory, model_, LateSession()));
      body(*session);
      return Status();
    })[0];
  }

  // The same for the model as built and as read from the bytes of an .air file.
  void BothWays(const std::function<void(Session&)>& body) {
    Status status = WithSession(body);
    EXPECT_TRUE(status.ok()) << status.ToString();
    Result<std::string> bytes = SerializeAir(model_);
    ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
    Result<Model> read = ParseModel(std::move(*bytes), "model.air");
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    model_ = std::move(*read);
    status = WithSession(body);
    EXPECT_TRUE(status.ok()) << status.ToString();
  }

  void ExpectRefused(Code code, const std::string& text) const {
    const Status status = WithSession([](Session&) {});
    EXPECT_EQ(status.code(), code) << status.ToString();
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }

  static std::vector<int64_t> Ints(const Result<std::vector<Tensor>>& outputs, size_t index = 0) {
    EXPECT_TRUE(outputs.ok()) << outputs.status().ToString();
    return outputs.ok() ? IntsIn((*outputs)[index]) : std::vector<int64_t>();
  }

  GraphBuilder g_;
  Model model_;
};

Tensor Scalar(int64_t value) {
  return IntTensor(Shape(), {value});
}

// ---- calls ----

TEST_F(SubgraphTest, CallsAreInlinedWithTheirPath) {
  const Value x = g_.Data("x", IntType({2}));
  const Value inner = g_.Op("PartitionedCall", {{"args0", x}}, {}, "outer");
  g_.Output({g_.Op("StatefulPartitionedCall", {{"args0", inner}}, {}, "second")});
  Graph calls = Unary("calls", [](GraphBuilder& g, Value v) {
    return Double(g, g.Op("PartitionedCall", {{"args0", v}}, {}, "inner"));
  });
  calls.node(calls.Find("inner")).subgraphs = {"negates"};
  Build({{"outer", {"calls"}}, {"second", {"negates"}}}, {calls, Unary("negates", Negate)});
  BothWays([](Session& session) {
    EXPECT_THAT(Ints(session.Run({IntTensor({1, 5})})), ElementsAre(2, 10));
    EXPECT_NE(session.model().graph.Find("outer/inner/Negate"), kNoNode);
    EXPECT_NE(session.model().graph.Find("outer/Plus"), kNoNode);
    EXPECT_NE(session.model().graph.Find("second/Negate"), kNoNode);
    EXPECT_EQ(session.stats().plans, 1u);
    EXPECT_EQ(session.stats().run.steps, 3u);
  });
}

TEST_F(SubgraphTest, ParentIndexesSayWhatIsConnected) {
  const Value a = g_.Data("a", IntType({1}));
  const Value b = g_.Data("b", IntType({1}));
  const Value call = g_.Op("PartitionedCall", {{"args0", a}, {"args1", b}}, {}, "call", 2);
  g_.Output({call, g_.Port(call, 1)});
  GraphBuilder body("body");
  const Value first = body.Data("first", IntType({1}));
  const Value second = body.Data("second", IntType({1}));
  body.Output({Negate(body, first), Double(body, second)});
  Graph graph = Finish(body);
  graph.node(first.node).attrs["_parent_node_index"] = AttrValue::Int(1);
  graph.node(second.node).attrs["_parent_node_index"] = AttrValue::Int(0);
  Node& sink = graph.node(graph.NetOutput());
  sink.input_descs[0].attrs["_parent_node_index"] = AttrValue::Int(1);
  sink.input_descs[1].attrs["_parent_node_index"] = AttrValue::Int(0);
  Build({{"call", {"body"}}}, {graph});
  BothWays([](Session& session) {
    const auto outputs = session.Run({IntTensor({3}), IntTensor({4})});
    EXPECT_THAT(Ints(outputs, 0), ElementsAre(6));
    EXPECT_THAT(Ints(outputs, 1), ElementsAre(-4));
  });
}

TEST_F(SubgraphTest, CallsThatPassThrough) {
  const Value x = g_.Data("x", IntType({1}));
  const Value once = g_.Op("PartitionedCall", {{"args0", x}}, {}, "once");
  g_.Output({g_.Op("PartitionedCall", {{"args0", once}}, {}, "twice")});
  Build({{"once", {"same"}}, {"twice", {"same"}}},
        {Unary("same", [](GraphBuilder&, Value v) { return v; })});
  BothWays(
      [](Session& session) { EXPECT_THAT(Ints(session.Run({IntTensor({3})})), ElementsAre(3)); });
}

// ---- branches ----

TEST_F(SubgraphTest, IfTakesOneBranch) {
  for (const char* type : {"If", "StatelessIf", "_If"}) {
    const Value cond = g_.Data("cond", IntType(Shape::UnknownRank()));
    const Value x = g_.Data("x", IntType({-1}));
    const Value chosen = g_.Op(type, {{"cond", cond}, {"input0", Double(g_, x)}}, {}, "choice");
    g_.Output({Negate(g_, chosen)});
    // The branches give other shapes, too.
    Build({{"choice", {"then", "else"}}},
          {Unary("then", Negate), Unary("else", [](GraphBuilder& g, Value v) {
             return g.Op("Total", {{"x", v}});
           })});
    BothWays([](Session& session) {
      EXPECT_THAT(Ints(session.Run({Scalar(1), IntTensor({3, 4})})), ElementsAre(6, 8));
      EXPECT_EQ(session.stats().plans, 3u);  // in front, the branch, behind
      EXPECT_THAT(Ints(session.Run({Scalar(0), IntTensor({3, 4})})), ElementsAre(-14));
      EXPECT_EQ(session.stats().plans, 5u);
      EXPECT_THAT(Ints(session.Run({Scalar(-7), IntTensor({1, 1})})), ElementsAre(2, 2));
      EXPECT_EQ(session.stats().plans, 5u);
      // A tensor is true when it has elements.
      EXPECT_THAT(Ints(session.Run({IntTensor({0}), IntTensor({1, 1})})), ElementsAre(2, 2));
      EXPECT_THAT(Ints(session.Run({IntTensor({}), IntTensor({1, 1})})), ElementsAre(-4));
    });
    g_ = GraphBuilder();
  }
}

TEST_F(SubgraphTest, CaseOutOfRangeTakesTheLastBranch) {
  const Value index = g_.Data("index", {DataType::kInt32, {}});
  const Value x = g_.Data("x", IntType({1}));
  g_.Output({g_.Op("Case", {{"branch_index", index}, {"input0", x}}, {}, "choice")});
  Build({{"choice", {"one", "two", "three"}}},
        {Unary("one", Negate), Unary("two", Double),
         Unary("three", [](GraphBuilder& g, Value v) { return Double(g, Double(g, v)); })});
  BothWays([](Session& session) {
    const auto run = [&](int32_t chosen) {
      const Tensor at = Tensor::FromVector<int32_t>({DataType::kInt32, {}}, {chosen});
      return Ints(session.Run({at, IntTensor({5})}))[0];
    };
    EXPECT_EQ(run(0), -5);
    EXPECT_EQ(run(1), 10);
    EXPECT_EQ(run(2), 20);
    EXPECT_EQ(run(3), 20);
    EXPECT_EQ(run(-1), 20);
  });
}

TEST_F(SubgraphTest, BranchesNest) {
  const Value x = g_.Data("x", IntType({}));
  g_.Output({g_.Op("If", {{"cond", x}, {"input0", x}}, {}, "outer")});
  Graph inner = Unary("inner", [](GraphBuilder& g, Value v) {
    const Value positive = g.Op("Plus", {{"x1", v}, {"x2", g.Int(1)}});
    return g.Op("If", {{"cond", positive}, {"input0", positive}}, {}, "again");
  });
  inner.node(inner.Find("again")).subgraphs = {"double", "negate"};
  Build({{"outer", {"inner", "negate"}}},
        {inner, Unary("double", Double), Unary("negate", Negate)});
  BothWays([](Session& session) {
    EXPECT_THAT(Ints(session.Run({Scalar(4)})), ElementsAre(10));
    EXPECT_THAT(Ints(session.Run({Scalar(-1)})), ElementsAre(0));
    EXPECT_THAT(Ints(session.Run({Scalar(0)})), ElementsAre(0));
  });
}

// ---- branches that are known before anything runs ----

TEST_F(SubgraphTest, AKnownConditionIsNoCut) {
  for (const int64_t cond : {0, 1}) {
    const Value x = g_.Data("x", IntType({2}));
    const Value known = g_.Const("known", Scalar(cond));
    const Value chosen = g_.Op("If", {{"cond", known}, {"input0", Double(g_, x)}}, {}, "choice");
    g_.Output({Negate(g_, chosen)});
    Build({{"choice", {"then", "else"}}}, {Unary("then", Negate), Unary("else", Double)});
    BothWays([cond](Session& session) {
      EXPECT_THAT(Ints(session.Run({IntTensor({3, 4})})),
                  cond == 1 ? ElementsAre(6, 8) : ElementsAre(-12, -16));
      EXPECT_EQ(session.stats().plans, 1u);
      const char* const inlined = cond == 1 ? "choice/Negate" : "choice/Plus";
      EXPECT_NE(session.model().graph.Find(inlined), kNoNode);
    });
    g_ = GraphBuilder();
  }
}

// The index shows when the call around the Case is inlined, out of range as it is.
TEST_F(SubgraphTest, AKnownIndexMayComeThroughACall) {
  const Value index = g_.Const("index", Tensor::FromVector<int32_t>({DataType::kInt32, {}}, {7}));
  const Value x = g_.Data("x", IntType({1}));
  g_.Output({g_.Op("PartitionedCall", {{"args0", index}, {"args1", x}}, {}, "call")});
  GraphBuilder body("body");
  const Value at = body.Data("at", {DataType::kInt32, {}});
  const Value v = body.Data("v", IntType({1}));
  body.Output({body.Op("Case", {{"branch_index", at}, {"input0", v}}, {}, "choice")});
  Graph called = Finish(body);
  called.node(called.Find("choice")).subgraphs = {"one", "two"};
  Build({{"call", {"body"}}}, {called, Unary("one", Negate), Unary("two", Double)});
  BothWays([](Session& session) {
    EXPECT_THAT(Ints(session.Run({IntTensor({5})})), ElementsAre(10));
    EXPECT_EQ(session.stats().plans, 1u);
  });
}

// What operators compute from constants alone is as good as a Const, also through a call.
TEST_F(SubgraphTest, AComputedConditionIsNoCut) {
  for (const int64_t number : {2, 3}) {
    const Value x = g_.Data("x", IntType({2}));
    const Value constant = g_.Const("constant", IntTensor({number, -3}));
    const Value total = g_.Op("Total", {{"x", Negate(g_, Negate(g_, constant))}});
    g_.Output({g_.Op("PartitionedCall", {{"args0", total}, {"args1", x}}, {}, "call")});
    GraphBuilder body("body");
    const Value by = body.Data("by", IntType({}));
    const Value v = body.Data("v", IntType({2}));
    const Value twice = Double(body, by);
    body.Output({body.Op("If", {{"cond", twice}, {"input0", v}}, {}, "choice")});
    Graph called = Finish(body);
    called.node(called.Find("choice")).subgraphs = {"then", "else"};
    Build({{"call", {"body"}}}, {called, Unary("then", Negate), Unary("else", Double)});
    BothWays([number](Session& session) {
      EXPECT_THAT(Ints(session.Run({IntTensor({3, 4})})),
                  number == 2 ? ElementsAre(-3, -4) : ElementsAre(6, 8));
      EXPECT_EQ(session.stats().plans, 1u);
    });
    g_ = GraphBuilder();
  }
}

// An input in what the condition is computed from, or an operator that gives another result each
// time, leaves the choice to the run.
TEST_F(SubgraphTest, AConditionThatIsNotAllConstantStays) {
  for (const bool random : {false, true}) {
    const Value x = g_.Data("x", IntType({2}));
    const Value constant = g_.Const("constant", IntTensor({1, 0}));
    const Value mixed =
        random ? g_.Op("Random", {{"x", constant}}) : g_.Op("Plus", {{"x1", constant}, {"x2", x}});
    const Value cond = g_.Op("Total", {{"x", mixed}});
    g_.Output({g_.Op("If", {{"cond", cond}, {"input0", x}}, {}, "choice")});
    Build({{"choice", {"then", "else"}}}, {Unary("then", Negate), Unary("else", Double)});
    BothWays([](Session& session) {
      EXPECT_THAT(Ints(session.Run({IntTensor({3, 4})})), ElementsAre(-3, -4));
      EXPECT_EQ(session.stats().plans, 3u);  // in front, the branch, behind
    });
    g_ = GraphBuilder();
  }
}

TEST_F(SubgraphTest, WhatIsNeverChosenNeedNotBeKnown) {
  const Value x = g_.Data("x", IntType({1}));
  const Value known = g_.Const("known", Scalar(1));
  g_.Output({g_.Op("If", {{"cond", known}, {"input0", x}}, {}, "choice")});
  Build({{"choice", {"then", "else"}}},
        {Unary("then", Negate), Unary("else", [](GraphBuilder& g, Value v) {
           return g.Op("Lightning", {{"x", v}});
         })});
  BothWays(
      [](Session& session) { EXPECT_THAT(Ints(session.Run({IntTensor({5})})), ElementsAre(-5)); });
}

TEST_F(SubgraphTest, WithoutFoldingKnownBranchesStay) {
  const Value x = g_.Data("x", IntType({1}));
  const Value known = g_.Const("known", Scalar(1));
  g_.Output({g_.Op("If", {{"cond", known}, {"input0", x}}, {}, "choice")});
  Build({{"choice", {"then", "else"}}}, {Unary("then", Negate), Unary("else", Double)});
  const Status status = OnRanks(1, [&](World& world, DeviceMemory& memory) -> Status {
    SessionOptions options = LateSession();
    options.compile.fold_constants = false;
    NPUMESH_ASSIGN_OR_RETURN(const auto session, Session::Create(world, memory, model_, options));
    EXPECT_THAT(Ints(session->Run({IntTensor({5})})), ElementsAre(-5));
    EXPECT_EQ(session->stats().plans, 3u);  // in front, the branch, behind
    return Status();
  })[0];
  EXPECT_TRUE(status.ok()) << status.ToString();
}

// ---- loops ----

TEST_F(SubgraphTest, WhileRunsUntilItsConditionIsFalse) {
  for (const char* type : {"While", "StatelessWhile", "_While"}) {
    const Value count = g_.Data("count", IntType({}));
    const Value x = g_.Data("x", IntType({-1}));
    const Value loop = g_.Op(type, {{"input0", count}, {"input1", x}}, {}, "loop", 2);
    g_.Output({g_.Port(loop, 1), loop});
    GraphBuilder cond("cond");
    cond.Output({cond.Data("left", IntType({}))});
    GraphBuilder body("body");
    const Value left = body.Data("left", IntType({}));
    const Value now = body.Data("now", IntType({-1}));
    body.Output({body.Op("Plus", {{"x1", left}, {"x2", body.Int(-1)}}), Double(body, now)});
    Build({{"loop", {"cond", "body"}}}, {Finish(cond), Finish(body)});
    BothWays([](Session& session) {
      const auto outputs = session.Run({Scalar(5), IntTensor({1, 3})});
      EXPECT_THAT(Ints(outputs, 0), ElementsAre(32, 96));
      EXPECT_THAT(Ints(outputs, 1), ElementsAre(0));
      const uint64_t plans = session.stats().plans;
      EXPECT_EQ(plans, 4u);  // in front, condition, body, behind
      EXPECT_THAT(Ints(session.Run({Scalar(0), IntTensor({1, 3})})), ElementsAre(1, 3));
      EXPECT_THAT(Ints(session.Run({Scalar(2), IntTensor({1, 3})})), ElementsAre(4, 12));
      EXPECT_EQ(session.stats().plans, plans);
    });
    g_ = GraphBuilder();
  }
}

// What a LoopWatch is told, in order.
class LoopDiary final : public LoopWatch {
 public:
  void Begin(std::string_view loop) override { told_.push_back("begin " + std::string(loop)); }
  void Turn(uint64_t turn) override { told_.push_back("turn " + std::to_string(turn)); }
  void End() override { told_.push_back("end"); }
  const std::vector<std::string>& told() const { return told_; }

 private:
  std::vector<std::string> told_;
};

TEST_F(SubgraphTest, AWatchIsToldOfEachTurn) {
  const Value x = g_.Data("x", IntType({}));
  g_.Output({g_.Op("While", {{"input0", x}}, {}, "loop")});
  Build({{"loop", {"cond", "body"}}},
        {Unary("cond", [](GraphBuilder&, Value left) { return left; }),
         Unary("body", [](GraphBuilder& g, Value left) {
           return g.Op("Plus", {{"x1", left}, {"x2", g.Int(-1)}});
         })});
  const Status status = OnRanks(1, [&](World&, DeviceMemory& memory) -> Status {
    LoopDiary diary;
    PlanSettings settings;
    settings.registry = LateSession().registry;
    settings.loops = &diary;
    ProgramStats stats;
    NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Program> program,
                             Program::Create(model_, model_, settings, memory, stats));
    const Tensor two = Scalar(2);
    NPUMESH_RETURN_IF_ERROR(program->Run({{two.type(), two.data()}}, nullptr, 0).status());
    EXPECT_THAT(diary.told(), ElementsAre("begin loop", "turn 1", "turn 2", "end"));
    return Status();
  })[0];
  EXPECT_TRUE(status.ok()) << status.ToString();
}

TEST_F(SubgraphTest, ShapesMayChangeFromTurnToTurn) {
  const Value x = g_.Data("x", IntType({-1, 1}));
  g_.Output({g_.Op("While", {{"input0", x}}, {}, "loop")});
  // While something is left: rows of the coordinates that are not zero; row 0 drops out each turn.
  GraphBuilder cond("cond");
  cond.Output({cond.Op(
      "MaskedSelect",
      {{"x", cond.Data("rows", IntType({-1, 1}))},
       {"mask", cond.Const("all", Tensor::FromVector<uint8_t>({DataType::kBool, {1}}, {1}))}})});
  GraphBuilder body("body");
  const Value found = body.Op("NonZero", {{"x", body.Data("rows", IntType({-1, 1}))}});
  const Value count =
      body.Op("Pick", {{"x", body.Op("Shape", {{"x", found}})}, {"i", body.Int(0)}});
  const Value rows = body.Op("Pack", {{"x0", count}, {"x1", body.Int(1)}});
  body.Output({body.Op("Zeros", {{"dims", rows}})});
  Build({{"loop", {"cond", "body"}}}, {Finish(cond), Finish(body)});
  BothWays([](Session& session) {
    const auto outputs = session.Run({IntTensor({3, 1}, {4, 0, 5})});
    ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
    EXPECT_EQ((*outputs)[0].shape(), (Shape{0, 1}));
  });
}

// ---- collectives ----

TEST_F(SubgraphTest, CollectivesInBranchesMeet) {
  const Value x = g_.Data("x", IntType({}));
  const Value chosen = g_.Op("If", {{"cond", x}, {"input0", x}}, {}, "choice");
  g_.Output({g_.Op("Meet", {{"x", x}}), chosen});
  const auto meet = [](GraphBuilder& g, Value v) { return g.Op("Meet", {{"x", Double(g, v)}}); };
  Build({{"choice", {"then", "else"}}}, {Unary("then", meet), Unary("else", Negate)});
  const std::vector<Status> statuses =
      OnRanks(2, [&](World& world, DeviceMemory& memory) -> Status {
        NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                                 Session::Create(world, memory, model_, LateSession()));
        NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                                 session->Run({Scalar(world.rank() + 1)}));
        EXPECT_EQ(IntsIn(outputs[0])[0], 3);
        EXPECT_EQ(IntsIn(outputs[1])[0], 6);
        return Status();
      });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.ToString();
}

// ---- damage ----

// A model of a call, a branch and a loop, with bytes flipped: it runs, or one line says why not.
// The loop's condition is a constant, so that no flip makes it run without end.
TEST_F(SubgraphTest, DamagedBytesEndInAnErrorOrARun) {
  const Value x = g_.Data("x", IntType({-1}));
  const Value cond = g_.Data("cond", IntType({}));
  const Value call = g_.Op("PartitionedCall", {{"args0", x}}, {}, "call");
  const Value choice = g_.Op("If", {{"cond", cond}, {"input0", call}}, {}, "choice");
  g_.Output({g_.Op("While", {{"input0", choice}}, {}, "loop")});
  GraphBuilder never("never");
  never.Data("x", IntType({-1}));
  never.Output({never.Const("no", Tensor::FromVector<uint8_t>({DataType::kBool, {}}, {0}))});
  Build({{"call", {"double"}}, {"choice", {"double", "negate"}}, {"loop", {"never", "negate"}}},
        {Unary("double", Double), Unary("negate", Negate), Finish(never)});
  const Result<std::string> whole = SerializeAir(model_);
  ASSERT_TRUE(whole.ok()) << whole.status().ToString();
  fuzz::Mutator mutator(13);
  int refused = 0;
  int ran = 0;
  constexpr int kDamages = 3000;
  for (int i = 0; i < kDamages; ++i) {
    Result<Model> read = ParseModel(mutator.Mutate(*whole, {*whole}), "model.air");
    if (!read.ok()) {
      EXPECT_FALSE(read.status().message().empty()) << i;
      ++refused;
      continue;
    }
    model_ = std::move(*read);
    Status outcome;
    const Status status = WithSession([&](Session& session) {
      outcome = session.Run({IntTensor({1, 2}), Scalar(1)}).status();
    });
    if (status.ok() && outcome.ok()) ++ran;
    EXPECT_TRUE(status.ok() || !status.message().empty()) << i;
    EXPECT_TRUE(outcome.ok() || !outcome.message().empty()) << i;
  }
  // Not all damage is of one kind.
  EXPECT_GT(refused, 0);
  EXPECT_GT(ran, 0);
  EXPECT_LT(refused + ran, kDamages);
}

// ---- what is refused before anything runs ----

TEST_F(SubgraphTest, RefusesWhatDoesNotFit) {
  const auto choice = [&] {
    g_ = GraphBuilder();
    const Value x = g_.Data("x", IntType({}));
    g_.Output({g_.Op("If", {{"cond", x}, {"input0", x}}, {}, "choice")});
  };
  choice();
  Build({{"choice", {"then"}}}, {Unary("then", Negate)});
  ExpectRefused(Code::kCorrupt, "node \"choice\" (If): it has 1 subgraphs, expected two");
  choice();
  Build({{"choice", {"then", "nowhere"}}}, {Unary("then", Negate)});
  ExpectRefused(Code::kCorrupt, "the model has no subgraph \"nowhere\"");
  choice();
  Build({{"choice", {"then", "then"}}}, {Unary("then", Negate)});
  Node& data = model_.subgraphs[0].node(0);
  data.attrs["_parent_node_index"] = AttrValue::Int(2);
  ExpectRefused(Code::kCorrupt, "takes input 2, but the node has 2");
  choice();
  Build({{"choice", {"then", "then"}}}, {Unary("then", [](GraphBuilder& g, Value v) {
          return g.Op("Unheard", {{"x", v}});
        })});
  ExpectRefused(Code::kUnsupported, "Unheard");
  choice();
  Build({{"choice", {"then", "then"}}}, {Unary("then", [](GraphBuilder& g, Value v) {
          return g.Op("Accumulate", {{"ref", v}, {"value", v}});
        })});
  ExpectRefused(Code::kUnsupported, "overwrites \"x\", an input of subgraph \"then\"");
}

TEST_F(SubgraphTest, RefusesGraphsThatContainThemselves) {
  const Value x = g_.Data("x", IntType({}));
  g_.Output({g_.Op("PartitionedCall", {{"args0", x}}, {}, "call")});
  Graph loop = Unary("loop", [](GraphBuilder& g, Value v) {
    return g.Op("PartitionedCall", {{"args0", v}}, {}, "again");
  });
  loop.node(loop.Find("again")).subgraphs = {"loop"};
  Build({{"call", {"loop"}}}, {loop});
  ExpectRefused(Code::kCorrupt, "graph \"loop\" contains itself");
}

TEST_F(SubgraphTest, ErrorsInsideNameTheWayIn) {
  const Value x = g_.Data("x", IntType({}));
  g_.Output({g_.Op("If", {{"cond", x}, {"input0", x}}, {}, "choice")});
  Build({{"choice", {"then", "then"}}}, {Unary("then", [](GraphBuilder& g, Value v) {
          return g.Op("Fail", {{"x", v}}, {}, "unlucky");
        })});
  const Status status = WithSession([](Session& session) {
    const Status failed = session.Run({Scalar(1)}).status();
    const std::string message(failed.message());
    EXPECT_THAT(message, HasSubstr("node \"choice\" (If): subgraph \"then\""));
    EXPECT_THAT(message, HasSubstr("node \"unlucky\" (Fail)"));
  });
  EXPECT_TRUE(status.ok()) << status.ToString();
}

}  // namespace
}  // namespace npumesh
