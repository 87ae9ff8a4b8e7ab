// The draft of a plan as a value: its numbers, and what is told of its memory.
#include "graph/engine/plan/plan_draft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ir/graph_builder.h"
#include "tests/unit/engine/tiny_ops.h"

namespace npumesh {
namespace {

using testing::ElementsAre;

PlanValue Bytes(uint64_t bytes) {
  PlanValue value;
  value.bytes = bytes;
  return value;
}

PlanValue ViewOf(PlanIndex target) {
  PlanValue value = Bytes(64);
  value.same_as = target;
  return value;
}

Step Named(const std::string& name) {
  Step step;
  step.name = name;
  return step;
}

TEST(PlanDraft, EqualAddressesAreOneConstant) {
  PlanDraft draft;
  const Tensor tensor = IntTensor({1, 2});
  const Tensor other = IntTensor({1, 2});
  const PlanIndex index = draft.AddConstant(tensor);
  EXPECT_EQ(draft.AddConstant(tensor), index);
  EXPECT_NE(draft.AddConstant(other), index);
  EXPECT_EQ(draft.constants.size(), 2u);
  EXPECT_TRUE(draft.value(index).external);
  EXPECT_EQ(draft.address(index), (Address{Address::Kind::kConstant, 0}));
}

TEST(PlanDraft, StorageIsThatOfTheLastOwner) {
  PlanDraft draft;
  const PlanIndex own = draft.AddValue(Bytes(64), {Address::Kind::kArena});
  const PlanIndex view = draft.AddValue(ViewOf(own), {Address::Kind::kArena});
  const PlanIndex view_of_view = draft.AddValue(ViewOf(view), {Address::Kind::kArena});
  EXPECT_EQ(draft.StorageOf(own), own);
  EXPECT_EQ(draft.StorageOf(view_of_view), own);
}

// One step writes a block, the next one reads it and writes another.
class NamedBlocksTest : public testing::Test {
 protected:
  NamedBlocksTest() {
    first_ = draft_.AddValue(Bytes(64), {Address::Kind::kArena});
    second_ = draft_.AddValue(Bytes(64), {Address::Kind::kArena});
    draft_.value(second_).output = true;
    draft_.AddStep(Named("a"), {{}, {first_}, {}, -1, {}}, {});
    draft_.AddStep(Named("b"), {{first_}, {second_}, {}, -1, {}}, {first_});
  }

  std::vector<std::string> Names(const std::set<PlanIndex>& left_out = {}) const {
    std::vector<std::string> names;
    const MemoryPlan plan = PlanMemory(draft_, /*spare=*/false);
    for (const PlannedTensor& tensor : NamedBlocks(Graph(), draft_, plan, left_out)) {
      names.push_back(tensor.name);
    }
    return names;
  }

  PlanDraft draft_;
  PlanIndex first_ = -1;
  PlanIndex second_ = -1;
};

TEST_F(NamedBlocksTest, HaveTheNamesOfTheStepsThatWriteThem) {
  EXPECT_THAT(Names(), ElementsAre("a:0", "b:0"));
}

TEST_F(NamedBlocksTest, LeaveOutWhatSomebodyElseTells) {
  EXPECT_THAT(Names({first_}), ElementsAre("b:0"));
}

TEST_F(NamedBlocksTest, SayWhatIsAGraphOutput) {
  const MemoryPlan plan = PlanMemory(draft_, /*spare=*/false);
  const std::vector<PlannedTensor> tensors = NamedBlocks(Graph(), draft_, plan);
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_FALSE(tensors[0].output);
  EXPECT_TRUE(tensors[1].output);
}

}  // namespace
}  // namespace npumesh
