// The order of nodes that leaves work to do while collectives are under way.
#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "graph/passes/analysis/reachability.h"
#include "graph/passes/schedule/execution_order.h"
#include "tests/unit/engine/tiny_ops.h"

namespace npumesh {
namespace {

using testing::ElementsAre;

class OverlapOrderTest : public testing::Test {
 protected:
  std::vector<std::string> Order(bool overlap) {
    if (!model_) model_ = std::make_unique<Model>(g_.Build().value());
    const BoundGraph bound(model_->graph, registry_);
    const auto order = ExecutionOrder(bound, NeededNodes(bound), NodeOrder::kStableDepth, overlap);
    std::vector<std::string> names;
    for (const NodeId id : order.value()) names.push_back(model_->graph.node(id).name);
    return names;
  }

  Value Negate(Value x, std::string name) {
    return g_.Op("Negate", {{"x", x}}, {}, std::move(name));
  }
  Value Meet(Value x, std::string name) { return g_.Op("Meet", {{"x", x}}, {}, std::move(name)); }

  const OpRegistry registry_ = TinyOps();
  GraphBuilder g_;
  std::unique_ptr<Model> model_;
};

TEST_F(OverlapOrderTest, WorkThatNeedsNoCollectiveComesBeforeItsReaders) {
  const Value x = g_.Data("x", IntType({2}));
  const Value sum = Meet(Negate(x, "a"), "sum");
  const Value late = Negate(sum, "late");
  const Value other = Negate(Negate(x, "b"), "c");
  g_.Output({late, other});
  EXPECT_THAT(Order(false), ElementsAre("x", "a", "sum", "late", "b", "c", "NetOutput"));
  EXPECT_THAT(Order(true), ElementsAre("x", "a", "sum", "b", "c", "late", "NetOutput"));
}

TEST_F(OverlapOrderTest, CollectivesStartAsSoonAsTheyCan) {
  const Value x = g_.Data("x", IntType({2}));
  const Value a = Negate(x, "a");
  const Value b = Negate(Negate(x, "b"), "c");
  const Value sum = Meet(a, "sum");
  g_.Output({b, sum});
  EXPECT_THAT(Order(true), ElementsAre("x", "a", "sum", "b", "c", "NetOutput"));
}

// Of two collectives, what needs the first can go on while the second is under way.
TEST_F(OverlapOrderTest, WaitsForNoMoreThanItNeeds) {
  const Value x = g_.Data("x", IntType({2}));
  const Value first = Meet(x, "first");
  const Value second = Meet(x, "second");
  const Value after_second = Negate(second, "after second");
  const Value after_first = Negate(first, "after first");
  const Value chained = Meet(first, "third");
  g_.Output({after_second, after_first, chained});
  EXPECT_THAT(Order(true), ElementsAre("x", "first", "second", "third", "after second",
                                       "after first", "NetOutput"));
}

TEST_F(OverlapOrderTest, ReadersStillComeBeforeTheWriter) {
  const Value x = g_.Data("x", IntType({2}));
  const Value ref = g_.RefData("ref", IntType({2}));
  const Value sum = Meet(ref, "sum");
  const Value late = Negate(sum, "late");
  const Value store = g_.Op("Store", {{"ref", ref}, {"value", x}}, {}, "store");
  g_.Output({late, store});
  const std::vector<std::string> order = Order(true);
  EXPECT_LT(std::ranges::find(order, "sum"), std::ranges::find(order, "store"));
}

// Every edge of a random graph, and the sequence of its collectives.
TEST_F(OverlapOrderTest, RandomGraphsKeepEdgesAndTheSequenceOfCollectives) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    std::vector<Value> values = {g_.Data("x", IntType({2})), g_.Data("y", IntType({2}))};
    for (int i = 0; i < 40; ++i) {
      const auto pick = [&] { return values[random() % values.size()]; };
      const Value a = pick();
      if (random() % 4 == 0) {
        values.push_back(Meet(a, fmt::format("meet{}", i)));
      } else {
        values.push_back(g_.Op("Plus", {{"x1", a}, {"x2", pick()}}, {}, fmt::format("plus{}", i)));
      }
    }
    g_.Output(values);
    const std::vector<std::string> before = Order(false);
    const std::vector<std::string> after = Order(true);
    ASSERT_EQ(before.size(), after.size()) << "seed " << seed;
    std::map<std::string, size_t> place;
    for (size_t i = 0; i < after.size(); ++i) place[after[i]] = i;
    const auto collectives = [](const std::vector<std::string>& order) {
      std::vector<std::string> meets;
      std::ranges::copy_if(order, std::back_inserter(meets),
                           [](const std::string& name) { return name.starts_with("meet"); });
      return meets;
    };
    ASSERT_EQ(collectives(before), collectives(after)) << "seed " << seed;
    for (const Node& node : model_->graph.nodes()) {
      for (const std::optional<Value>& input : node.inputs) {
        if (!input) continue;
        ASSERT_LT(place[model_->graph.node(input->node).name], place[node.name]) << "seed " << seed;
      }
    }
    model_.reset();
    g_ = GraphBuilder();
  }
}

}  // namespace
}  // namespace npumesh
