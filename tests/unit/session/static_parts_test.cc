// Static parts: sub-graphs with known shapes are compiled once for all signatures, and no limit
// changes a result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/unit/session/session_fixture.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// TinyOps that count, by node, the kernels they make.
class CountingOps {
 public:
  CountingOps() {
    const OpRegistry tiny = TinyOps();
    for (const std::string_view type : tiny.Types()) {
      Operator op = *tiny.Find(type);
      if (op.make_kernel) {
        op.make_kernel = [this, make = op.make_kernel](const OpContext& context) {
          ++made_[context.node().name];
          return make(context);
        };
      }
      registry_.Add(op);
    }
  }

  SessionOptions Options(int64_t limit) const {
    SessionOptions options;
    options.registry = &registry_;
    options.compile.static_ops_limit = limit;
    return options;
  }
  int made(const std::string& node) { return made_[node]; }
  void Forget() { made_.clear(); }

 private:
  OpRegistry registry_;
  std::map<std::string, int> made_;
};

Tensor Counted(int64_t n, int64_t first = 1) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(first + i);
  return IntTensor(values);
}

class StaticPartsTest : public testing::Test {
 protected:
  void WithSession(int64_t limit, const std::function<void(Session&)>& body) {
    WithOptions(ops_.Options(limit), body);
  }
  void WithOptions(const SessionOptions& options, const std::function<void(Session&)>& body) {
    ops_.Forget();
    RunInSession(g_, options, body);
    g_ = GraphBuilder();
  }

  Value One(const std::string& type, Value x, const std::string& name) {
    return g_.Op(type, {{"x", x}}, {}, name);
  }
  Value Plus(Value a, Value b, const std::string& name) {
    return g_.Op("Plus", {{"x1", a}, {"x2", b}}, {}, name);
  }

  // s [4] through five operators, x [n] through two, and a part behind them: three operators on the
  // sum of x.
  void MixedGraph() {
    const Value s = g_.Data("s", IntType({4}));
    const Value x = g_.Data("x", IntType({-1}));
    const Value s1 = One("Negate", s, "s1");
    const Value s2 = Plus(s1, s1, "s2");
    const Value s3 = One("Move", s2, "s3");
    const Value s4 = Plus(s3, s1, "s4");
    const Value s5 = One("Total", s4, "s5");
    const Value d1 = One("Negate", x, "d1");
    const Value d2 = One("Total", d1, "d2");
    const Value t1 = One("Negate", d2, "t1");
    const Value t2 = Plus(t1, s5, "t2");
    const Value t3 = One("Move", t2, "t3");
    g_.Output({d1, s4, t3});
  }

  static void ExpectMixed(const Result<std::vector<Tensor>>& outputs, int64_t n) {
    ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
    std::vector<int64_t> negated;
    for (int64_t i = 1; i <= n; ++i) negated.push_back(-i);
    EXPECT_EQ(IntsIn((*outputs)[0]), negated);
    EXPECT_THAT(IntsIn((*outputs)[1]), ElementsAre(-3, -6, -9, -12));
    EXPECT_THAT(IntsIn((*outputs)[2]), ElementsAre(n * (n + 1) / 2 - 30));
  }

  // Five signatures, each twice.
  static void RunSignatures(Session& session) {
    for (int64_t n = 1; n <= 5; ++n) {
      for (int run = 0; run < 2; ++run) ExpectMixed(session.Run({Counted(4), Counted(n)}), n);
    }
    EXPECT_EQ(session.stats().plans, 5u);
  }

  CountingOps ops_;
  GraphBuilder g_;
};

TEST_F(StaticPartsTest, AreCompiledOnceForFiveSignatures) {
  MixedGraph();
  WithSession(2, [&](Session& session) {
    RunSignatures(session);
    EXPECT_EQ(session.stats().static_parts, 2u);
    for (const char* node : {"s1", "s2", "s3", "s4", "s5", "t1", "t2", "t3"}) {
      EXPECT_EQ(ops_.made(node), 1) << node;
    }
    EXPECT_EQ(ops_.made("d1"), 5);
    EXPECT_EQ(ops_.made("d2"), 5);
    EXPECT_EQ(session.stats().steps_compiled, 8u + 5u * 2u);
    EXPECT_EQ(session.stats().steps_shared, 4u * 8u);
  });
}

TEST_F(StaticPartsTest, SmallerOnesJoinTheDynamicRest) {
  MixedGraph();
  WithSession(4, [&](Session& session) {
    RunSignatures(session);
    EXPECT_EQ(session.stats().static_parts, 1u);
    EXPECT_EQ(ops_.made("s4"), 1);
    EXPECT_EQ(ops_.made("t2"), 5);
  });
  MixedGraph();
  WithSession(6, [&](Session& session) {
    RunSignatures(session);
    EXPECT_EQ(session.stats().static_parts, 0u);
    EXPECT_EQ(ops_.made("s4"), 5);
  });
}

TEST_F(StaticPartsTest, MinusOneMakesEverythingDynamic) {
  MixedGraph();
  WithSession(kNoStaticParts, [&](Session& session) {
    RunSignatures(session);
    EXPECT_EQ(session.stats().static_parts, 0u);
    EXPECT_EQ(session.stats().steps_shared, 0u);
    EXPECT_EQ(session.stats().steps_compiled, 5u * 10u);
    EXPECT_EQ(ops_.made("s1"), 5);
  });
}

TEST_F(StaticPartsTest, ThePlanTellsThem) {
  MixedGraph();
  WithSession(2, [&](Session& session) {
    for (const bool first : {true, false}) {
      const auto plan = session.Prepare({Counted(4), Counted(first ? 3 : 7)});
      ASSERT_TRUE(plan.ok()) << plan.status().ToString();
      const std::vector<PlannedPart>& parts = (*plan)->facts().parts;
      ASSERT_EQ(parts.size(), 2u);
      EXPECT_EQ(parts[0].operators, 5u);
      EXPECT_EQ(parts[1].operators, 3u);
      EXPECT_EQ(parts[0].compiled_now, first);
      std::map<std::string, int> part_of;
      for (const Step& step : (*plan)->steps()) part_of[step.name] = step.part;
      EXPECT_EQ(part_of.at("s1"), 0);
      EXPECT_EQ(part_of.at("t3"), 1);
      EXPECT_EQ(part_of.at("d2"), -1);
      EXPECT_EQ((*plan)->facts().steps_compiled, first ? 10u : 2u);
    }
  });
}

TEST_F(StaticPartsTest, AnObservedRunHasPartsOfItsOwn) {
  MixedGraph();
  SessionOptions options = ops_.Options(2);
  options.compile.fuses = [](std::string_view) { return true; };
  WithOptions(options, [&](Session& session) {
    StepObserver nothing;
    ExpectMixed(session.Run({Counted(4), Counted(3)}), 3);
    ExpectMixed(session.Run({Counted(4), Counted(3)}, &nothing), 3);
    ExpectMixed(session.Run({Counted(4), Counted(2)}, &nothing), 2);
    ExpectMixed(session.Run({Counted(4), Counted(2)}), 2);
    EXPECT_EQ(session.stats().plans, 4u);
    EXPECT_EQ(session.stats().static_parts, 4u);
    EXPECT_EQ(session.stats().steps_shared, 2u * 8u);
    EXPECT_EQ(session.stats().steps_compiled, 2u * 8u + 4u * 2u);
  });
}

TEST_F(StaticPartsTest, AGraphWithoutOpenDimensionsHasNone) {
  const Value s = g_.Data("s", IntType({2}));
  g_.Output({One("Move", One("Move", One("Negate", One("Move", s, "a"), "b"), "c"), "d")});
  WithSession(2, [&](Session& session) {
    EXPECT_TRUE(session.Run({Counted(2)}).ok());
    EXPECT_EQ(session.stats().static_parts, 0u);
  });
}

// A value that decides a shape is part of the signature, so what is computed from it is not static.
TEST_F(StaticPartsTest, ValuesThatVaryBetweenSignaturesAreNotShared) {
  const Value s = g_.Data("s", IntType({3}));
  const Value i = g_.Data("i", IntType({}));
  const Value picked = g_.Op("Pick", {{"x", s}, {"i", i}}, {}, "picked");
  const Value zeros = g_.Op("Zeros", {{"dims", g_.Op("Pack", {{"x0", i}})}});
  const Value total = One("Total", zeros, "total");
  g_.Output({One("Move", One("Negate", picked, "n"), "m"), total, zeros});
  WithSession(2, [&](Session& session) {
    for (const int64_t at : {0, 2, 1, 2}) {
      const auto outputs = session.Run({IntTensor({5, 6, 7}), IntTensor(Shape(), {at})});
      ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
      EXPECT_THAT(IntsIn((*outputs)[0]), ElementsAre(-5 - at));
      EXPECT_EQ((*outputs)[2].elements(), at);
    }
  });
}

// What overwrites and what reads it keep their places.
TEST_F(StaticPartsTest, InPlaceOperatorsStayOutside) {
  const Value ref = g_.RefData("ref", IntType({2}));
  const Value x = g_.Data("x", IntType({-1}));
  const Value before = One("Move", ref, "before");
  const Value doubled = Plus(before, before, "doubled");
  const Value stored = g_.Op("Store", {{"ref", ref}, {"value", doubled}}, {}, "stored");
  const Value after = One("Move", stored, "after");
  g_.Output({after, One("Negate", before, "negated"), One("Move", x, "moved")});
  WithSession(2, [&](Session& session) {
    int64_t expected = 1;
    for (int64_t n = 1; n <= 4; ++n) {
      const auto outputs = session.Run({n == 1 ? IntTensor({1, 10}) : Tensor(), Counted(n)});
      ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
      EXPECT_THAT(IntsIn((*outputs)[0]), ElementsAre(2 * expected, 20 * expected));
      EXPECT_THAT(IntsIn((*outputs)[1]), ElementsAre(-expected, -10 * expected));
      expected *= 2;
    }
  });
}

// A part whose compilation failed is made by the next signature, and none is half there.
TEST_F(StaticPartsTest, AnErrorInAPartNamesItsNodeEachTime) {
  const Value s = g_.Data("s", IntType({3}));
  const Value x = g_.Data("x", IntType({-1}));
  const Value bad = One("NoKernel", One("Negate", s, "fine"), "bad");
  g_.Output({One("Move", bad, "behind"), One("Move", x, "moved")});
  WithSession(2, [&](Session& session) {
    for (int64_t n = 1; n <= 3; ++n) {
      const Status status = session.Run({Counted(3), Counted(n)}).status();
      EXPECT_EQ(status.code(), Code::kUnsupported);
      EXPECT_THAT(std::string(status.message()), testing::HasSubstr("node \"bad\" (NoKernel)"));
    }
  });
}

// Random graphs against a plain interpreter, for every limit and order.
class RandomGraph {
 public:
  explicit RandomGraph(uint32_t seed) : random_(seed) {
    Add({"s0", "", {}, Kind::kStatic});
    Add({"s1", "", {}, Kind::kStatic});
    Add({"x0", "", {}, Kind::kOpen});
    const size_t nodes = 12 + random_() % 20;
    for (size_t i = 0; i < nodes; ++i) AddNode(fmt::format("n{}", i));
    for (size_t i = 3; i < nodes_.size(); ++i) {
      if (random_() % 3 == 0) outputs_.push_back(i);
    }
    outputs_.push_back(nodes_.size() - 1);
  }

  Model Build() const {
    GraphBuilder g;
    std::vector<Value> values;
    for (const GraphNode& node : nodes_) {
      if (node.type.empty()) {
        values.push_back(
            g.Data(node.name, IntType(node.kind == Kind::kOpen ? Shape({-1}) : Shape({3}))));
        continue;
      }
      std::vector<GraphBuilder::Input> inputs;
      const bool two = node.reads.size() == 2;
      for (size_t i = 0; i < node.reads.size(); ++i) {
        inputs.emplace_back(two ? fmt::format("x{}", i + 1) : "x", values[node.reads[i]]);
      }
      if (node.type == "Reshape") inputs.emplace_back("shape", g.Ints({3}));
      values.push_back(g.Op(node.type, inputs, {}, node.name));
    }
    std::vector<Value> outputs;
    for (const size_t i : outputs_) outputs.push_back(values[i]);
    g.Output(outputs);
    return g.Build().value();
  }

  std::vector<std::vector<int64_t>> Compute(const std::vector<std::vector<int64_t>>& inputs) const {
    std::vector<std::vector<int64_t>> values = inputs;
    for (size_t i = inputs.size(); i < nodes_.size(); ++i) {
      const GraphNode& node = nodes_[i];
      std::vector<int64_t> y = values[node.reads[0]];
      if (node.type == "Negate") {
        for (int64_t& v : y) v = -v;
      } else if (node.type == "Plus") {
        for (size_t k = 0; k < y.size(); ++k) y[k] += values[node.reads[1]][k];
      } else if (node.type == "Total") {
        int64_t sum = 0;
        for (const int64_t v : y) sum += v;
        y = {sum};
      }
      values.push_back(std::move(y));
    }
    std::vector<std::vector<int64_t>> results;
    for (const size_t i : outputs_) results.push_back(values[i]);
    return results;
  }

 private:
  enum class Kind { kStatic, kOpen, kScalar };
  struct GraphNode {
    std::string name;
    std::string type;  // empty: an input
    std::vector<size_t> reads;
    Kind kind;
  };

  void Add(GraphNode node) { nodes_.push_back(std::move(node)); }

  void AddNode(const std::string& name) {
    const size_t x = random_() % nodes_.size();
    const Kind kind = nodes_[x].kind;
    switch (random_() % 5) {
      case 0:
        return Add({name, "Negate", {x}, kind});
      case 1:
        return Add({name, "Move", {x}, kind});
      case 2:
        return Add({name, "Total", {x}, Kind::kScalar});
      case 3:
        if (kind == Kind::kStatic) return Add({name, "Reshape", {x}, kind});
        break;
      default:
        break;
    }
    size_t other = x;
    for (int tries = 0; tries < 8; ++tries) {
      const size_t drawn = random_() % nodes_.size();
      if (nodes_[drawn].kind == kind) other = drawn;
    }
    Add({name, "Plus", {x, other}, kind});
  }

  std::mt19937 random_;
  std::vector<GraphNode> nodes_;
  std::vector<size_t> outputs_;
};

void ExpectSame(const RandomGraph& graph, int64_t limit, NodeOrder order, uint32_t seed,
                uint64_t& shared) {
  SessionOptions options = TinySession();
  options.compile.static_ops_limit = limit;
  options.compile.order = order;
  options.compile.spare_memory = seed % 2 == 0;
  const auto statuses = OnRanks(1, [&](World& world, DeviceMemory& memory) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto session,
                             Session::Create(world, memory, graph.Build(), options));
    for (const int64_t n : {2, 3, 1, 6, 3}) {
      std::vector<std::vector<int64_t>> inputs = {{1, -2, 3}, {5, 7, -11}, {}};
      for (int64_t i = 0; i < n; ++i) inputs[2].push_back(i * i - 4);
      NPUMESH_ASSIGN_OR_RETURN(
          const std::vector<Tensor> outputs,
          session->Run({IntTensor(inputs[0]), IntTensor(inputs[1]), IntTensor(inputs[2])}));
      const auto expected = graph.Compute(inputs);
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(IntsIn(outputs[i]), expected[i])
            << "seed " << seed << " limit " << limit << " n " << n << " output " << i;
      }
    }
    shared += session->stats().steps_shared;
    return Status();
  });
  EXPECT_TRUE(statuses[0].ok()) << statuses[0].ToString();
}

TEST(StaticPartsRandom, NoLimitChangesAResult) {
  uint64_t shared = 0;
  for (uint32_t seed = 0; seed < 30; ++seed) {
    const RandomGraph graph(seed);
    for (const int64_t limit : {int64_t{-1}, int64_t{2}, int64_t{4}, int64_t{9}}) {
      const NodeOrder order = seed % 3 == 0   ? NodeOrder::kBreadth
                              : seed % 3 == 1 ? NodeOrder::kDepth
                                              : NodeOrder::kStable;
      uint64_t now = 0;
      ExpectSame(graph, limit, order, seed, now);
      EXPECT_TRUE(limit > 0 || now == 0);
      shared += now;
    }
  }
  EXPECT_GT(shared, 1000u);  // the test does test something
}

// Operators of npumesh, with fusions. Where the open dimension happens to be that of the static
// operators, fusions reach across; then those are not taken from the part.
TEST(StaticPartsFusion, ResultsHaveTheSameBits) {
  const TensorType row{DataType::kFloat, {1, 8}};
  GraphBuilder g;
  const Value s = g.Data("s", row);
  const Value x = g.Data("x", {DataType::kFloat, {-1, 8}});
  const Value a = g.Op("Exp", {{"x", s}}, {}, "a");
  const Value b = g.Op("Mul", {{"x1", a}, {"x2", s}}, {}, "b");
  const Value c = g.Op("Tanh", {{"x", b}}, {}, "c");
  const Value d = g.Op("Add", {{"x1", c}, {"x2", x}}, {}, "d");
  const Value e = g.Op("Sigmoid", {{"x", d}}, {}, "e");
  const Value p = g.Op("Sqrt", {{"x", g.Op("Square", {{"x", s}}, {}, "p0")}}, {}, "p");
  const Value q = g.Op("Add", {{"x1", p}, {"x2", p}}, {}, "q");
  g.Output({e, q});
  const Model model = g.Build().value();
  const Tensor static_row =
      Tensor::FromVector<float>(row, {0.1f, -0.7f, 1.3f, 2.9f, -3.1f, 0.3f, -0.05f, 4.7f});
  std::vector<std::vector<Tensor>> reference;
  for (const int64_t limit : {int64_t{-1}, int64_t{2}, int64_t{3}}) {
    SessionOptions options;
    options.compile.fuses = [](std::string_view) { return true; };
    options.compile.static_ops_limit = limit;
    const auto statuses = OnRanks(1, [&](World& world, DeviceMemory& memory) -> Status {
      NPUMESH_ASSIGN_OR_RETURN(const auto session, Session::Create(world, memory, model, options));
      size_t run = 0;
      for (const int64_t n : {4, 1, 5, 4, 1}) {
        std::vector<float> values;
        for (int64_t i = 0; i < 8 * n; ++i) values.push_back(0.37f * static_cast<float>(i) - 1.1f);
        const Tensor open = Tensor::FromVector<float>({DataType::kFloat, {n, 8}}, values);
        NPUMESH_ASSIGN_OR_RETURN(auto outputs, session->Run({static_row, open}));
        if (limit < 0) {
          reference.push_back(std::move(outputs));
          continue;
        }
        for (size_t i = 0; i < outputs.size(); ++i) {
          EXPECT_EQ(std::memcmp(outputs[i].data(), reference[run][i].data(), outputs[i].bytes()), 0)
              << "limit " << limit << " n " << n << " output " << i;
        }
        ++run;
      }
      EXPECT_EQ(session->stats().static_parts, limit > 0 ? 2u : 0u);
      EXPECT_EQ(session->stats().steps_shared > 0, limit > 0);
      return Status();
    });
    EXPECT_TRUE(statuses[0].ok()) << statuses[0].ToString();
  }
}

// What a part was folded from is asked for again where another operand of its reader is no part of
// anything: here a sum of memory that is overwritten.
TEST(StaticPartsMemory, KeepsWhatIsComputedAnew) {
  const TensorType two{DataType::kFloat, {2}};
  GraphBuilder g;
  const Value c = g.Const("c", Tensor::FromVector<float>(two, {1, 2}));
  const Value w = g.Const("w", Tensor::FromVector<float>(two, {3, 4}));
  const Value folded = g.Op("Abs", {{"x", g.Op("Neg", {{"x", c}})}}, {}, "folded");
  const Value sum = g.Op("ReduceSum", {{"x", w}, {"axes", g.Ints({0})}}, {}, "sum");
  g.Op("Assign", {{"ref", w}, {"value", c}}, {}, "write");
  const Value product = g.Op("Mul", {{"x1", folded}, {"x2", sum}}, {}, "product");
  const Value open = g.Op("Neg", {{"x", g.Data("x", {DataType::kFloat, {-1}})}}, {}, "open");
  g.Output({g.Op("Exp", {{"x", product}}), product, open, w});
  SessionOptions options;
  options.compile.static_ops_limit = 2;
  RunInSession(g, options, [](Session& session) {
    for (const int64_t n : {1, 3, 2}) {
      const Result<std::vector<Tensor>> outputs = session.Run({Tensor::FromVector<float>(
          {DataType::kFloat, {n}}, std::vector<float>(static_cast<size_t>(n), 1))});
      ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
      EXPECT_THAT((*outputs)[1].as<float>(), ElementsAre(7, 14)) << n;
    }
  });
}

}  // namespace
}  // namespace npumesh
