// What a compilation tells about its plan, and that the device's memory agrees.
#include <gmock/gmock.h>

#include <random>

#include "tests/unit/engine/engine_fixture.h"

namespace npumesh {
namespace {

using testing::ElementsAre;

class PlanTest : public EngineTest {
 protected:
  static const PlannedTensor* Find(const CompiledModel& model, const std::string& name) {
    for (const PlannedTensor& tensor : model.facts().tensors) {
      if (tensor.name == name) return &tensor;
    }
    return nullptr;
  }
};

TEST_F(PlanTest, TellsLivesFoldedAndPrunedNodes) {
  const Value x = g_.Data("x", IntType({64}));
  const Value c = g_.Const("c", IntTensor(std::vector<int64_t>(64)));
  const Value folded = g_.Op("Negate", {{"x", c}}, {}, "folded");
  g_.Op("Negate", {{"x", x}}, {}, "pruned");
  const Value moved = g_.Op("Move", {{"x", x}}, {}, "moved");
  const Value seen = g_.Op("Reshape", {{"x", moved}, {"shape", g_.Ints({8, 8})}}, {}, "seen");
  const Value total = g_.Op("Total", {{"x", seen}}, {}, "total");
  const Value sum = g_.Op("Plus", {{"x1", moved}, {"x2", folded}}, {}, "sum");
  g_.Output({total, sum});
  const Compiled model = Compile({IntType({64})});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_THAT((*model)->facts().folded, ElementsAre("folded"));
  EXPECT_THAT((*model)->facts().pruned, ElementsAre("pruned"));
  ASSERT_EQ((*model)->facts().tensors.size(), 2u);
  const PlannedTensor* moved_tensor = Find(**model, "moved:0");
  ASSERT_NE(moved_tensor, nullptr);
  EXPECT_THAT(moved_tensor->also, ElementsAre("seen:0", "sum:0"));
  EXPECT_EQ(moved_tensor->first, 0);
  EXPECT_EQ(moved_tensor->last, 3);
  EXPECT_TRUE(moved_tensor->output);
  const PlannedTensor* total_tensor = Find(**model, "total:0");
  ASSERT_NE(total_tensor, nullptr);
  EXPECT_EQ(total_tensor->first, 1);
  EXPECT_EQ(total_tensor->bytes, 512u);
  EXPECT_EQ((*model)->arena_bytes(), 1024u);
}

TEST_F(PlanTest, NamesTheCopyOfAConstantThatIsOverwritten) {
  const Value x = g_.Data("x", IntType({2}));
  const Value c = g_.Const("c", IntTensor({1, 2}));
  g_.Output({g_.Op("Accumulate", {{"ref", c}, {"value", x}}, {}, "add")});
  const Compiled model = Compile({IntType({2})});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  ASSERT_EQ((*model)->facts().tensors.size(), 1u);
  EXPECT_EQ((*model)->facts().tensors[0].name, "add/copy:0");
  EXPECT_THAT((*model)->facts().tensors[0].also, ElementsAre("add:0"));
}

// Peak memory equals the plan: device_bytes is what the device gave, before and after runs, and
// tensors that live at the same time have bytes of their own.
TEST_F(PlanTest, TheDeviceGivesExactlyWhatThePlanSays) {
  for (uint32_t seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    g_ = GraphBuilder();
    model_.reset();
    options_.spare_memory = seed % 2 == 1;
    std::vector<Value> values = {g_.Data("x", IntType({100})), g_.RefData("r", IntType({100})),
                                 g_.Const("c", IntTensor(std::vector<int64_t>(100, 3)))};
    for (int i = 0; i < 30; ++i) {
      const auto pick = [&] { return values[random() % values.size()]; };
      const Value a = pick();
      values.push_back(random() % 3 == 0   ? g_.Op("Move", {{"x", a}})
                       : random() % 2 == 0 ? g_.Op("Negate", {{"x", a}})
                                           : g_.Op("Plus", {{"x1", a}, {"x2", pick()}}));
    }
    g_.Output({values.back(), values[values.size() / 2]});
    const Compiled model = Compile({IntType({100}), IntType({100})});
    ASSERT_TRUE(model.ok()) << model.status().ToString();
    DeviceMemory memory(std::make_unique<SmallSegment>(), 0);
    const auto executor = Executor::Create(**model, memory);
    ASSERT_TRUE(executor.ok()) << executor.status().ToString();
    EXPECT_EQ(memory.used_bytes(), (*model)->device_bytes()) << "seed " << seed;
    for (int run = 0; run < 2; ++run) ASSERT_TRUE((*executor)->Run().ok());
    EXPECT_EQ(memory.peak_bytes(), (*model)->device_bytes()) << "seed " << seed;
    uint64_t end = 0;
    const std::vector<PlannedTensor>& tensors = (*model)->facts().tensors;
    for (const PlannedTensor& a : tensors) {
      end = std::max(end, a.offset + a.bytes);
      for (const PlannedTensor& b : tensors) {
        if (&a == &b || a.last < b.first || b.last < a.first) continue;
        EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset);
      }
    }
    EXPECT_EQ(end, (*model)->arena_bytes());
  }
}

}  // namespace
}  // namespace npumesh
