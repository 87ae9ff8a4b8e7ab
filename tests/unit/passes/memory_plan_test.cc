#include "graph/passes/schedule/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace npumesh {
namespace {

constexpr uint64_t kAlign = 512;

PlanValue Bytes(uint64_t bytes) {
  PlanValue value;
  value.bytes = bytes;
  return value;
}

PlanValue External(uint64_t bytes) {
  PlanValue value = Bytes(bytes);
  value.external = true;
  return value;
}

PlanValue View(uint64_t bytes, int of) {
  PlanValue value = Bytes(bytes);
  value.same_as = of;
  return value;
}

PlanValue Output(PlanValue value) {
  value.output = true;
  return value;
}

TEST(MemoryPlanTest, ChainReusesTwoBuffers) {
  // input -> 1 -> 2 -> 3 -> 4 -> output
  const std::vector<PlanValue> values = {External(512), Bytes(512), Bytes(512), Bytes(512),
                                         Output(Bytes(512))};
  const std::vector<PlanStep> steps = {
      {{0}, {1}, {}}, {{1}, {2}, {}}, {{2}, {3}, {}}, {{3}, {4}, {}}};
  const MemoryPlan plan = PlanMemory(values, steps);
  EXPECT_EQ(plan.arena_bytes, 1024u);
  EXPECT_EQ(plan.live_bytes, 1024u);
  EXPECT_EQ(plan.offsets[1], plan.offsets[3]);
  EXPECT_EQ(plan.offsets[2], plan.offsets[4]);
}

TEST(MemoryPlanTest, TakeOverNeedsADyingInputOfEqualSize) {
  const std::vector<PlanValue> values = {Bytes(512), Bytes(512), Bytes(1024), Output(Bytes(512))};
  // 1 takes over 0; 2 is larger; 3 may not take 1, which is read again afterwards.
  const std::vector<PlanStep> steps = {
      {{}, {0}, {}}, {{0}, {1}, {0}}, {{1}, {2}, {1}}, {{1}, {3}, {1}}, {{1, 2}, {}, {}}};
  const MemoryPlan plan = PlanMemory(values, steps);
  EXPECT_EQ(plan.storage, (std::vector<int>{0, 0, 2, 3}));
  EXPECT_EQ(plan.offsets[0], plan.offsets[1]);
  EXPECT_EQ(plan.arena_bytes, 2048u);
}

TEST(MemoryPlanTest, TakeOverLeavesOutputsAndInputsAlone) {
  const std::vector<PlanValue> values = {External(512), Output(Bytes(512)), Output(Bytes(512)),
                                         Output(Bytes(512))};
  const std::vector<PlanStep> steps = {{{0}, {1}, {0}}, {{1}, {2}, {1}}, {{0}, {3}, {0}}};
  EXPECT_EQ(PlanMemory(values, steps).storage, (std::vector<int>{0, 1, 2, 3}));
}

TEST(MemoryPlanTest, ViewsKeepTheirStorageAlive) {
  // 1 is a view of 0 and is read after 2 was written.
  const std::vector<PlanValue> values = {Bytes(512), View(512, 0), Bytes(512), Output(Bytes(8))};
  const std::vector<PlanStep> steps = {{{}, {0}, {}}, {{}, {2}, {}}, {{1, 2}, {3}, {}}};
  const MemoryPlan plan = PlanMemory(values, steps);
  EXPECT_EQ(plan.offsets[0], plan.offsets[1]);
  EXPECT_NE(plan.offsets[0], plan.offsets[2]);
}

// Step 1 reads value 0 beside step 2 and is finished before step 3.
TEST(MemoryPlanTest, StepsBesideKeepTheirOperandsUntilTheyAreDone) {
  const std::vector<PlanValue> values = {Bytes(512), Bytes(512), Bytes(512), Output(Bytes(512))};
  std::vector<PlanStep> steps = {{{}, {0}, {}}, {{0}, {1}, {}}, {{0}, {2}, {0}}, {{1, 2}, {3}, {}}};
  EXPECT_EQ(PlanMemory(values, steps).storage[2], 0);
  steps[1].done_by = 3;
  const MemoryPlan plan = PlanMemory(values, steps);
  EXPECT_EQ(plan.storage[2], 2);
  EXPECT_NE(plan.offsets[0], plan.offsets[2]);
  ASSERT_EQ(plan.blocks.size(), 4u);
  EXPECT_EQ(plan.blocks[0].last, 2);
}

TEST(MemoryPlanTest, NothingAtAll) {
  const MemoryPlan plan = PlanMemory({}, {});
  EXPECT_EQ(plan.arena_bytes, 0u);
  EXPECT_EQ(PlanMemory({Bytes(100)}, {}).arena_bytes, 0u);
}

// A random program: each step reads a few earlier values and writes one or two.
struct Program {
  std::vector<PlanValue> values;
  std::vector<PlanStep> steps;
};

Program RandomProgram(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](size_t n) { return static_cast<int>(random() % n); };
  Program program;
  for (int i = 0; i < 3; ++i)
    program.values.push_back(External(static_cast<uint64_t>(below(5000))));
  const int steps = 1 + below(60);
  for (int step = 0; step < steps; ++step) {
    PlanStep& s = program.steps.emplace_back();
    for (int i = 0; i < 1 + below(3); ++i) s.reads.push_back(below(program.values.size()));
    const int read = s.reads[0];
    const uint64_t like_input = program.values[static_cast<size_t>(read)].bytes;
    for (int i = 0; i < 1 + below(2); ++i) {
      const int kind = below(6);
      PlanValue value = Bytes(below(2) == 0 ? like_input : static_cast<uint64_t>(below(20000)));
      if (kind == 0) {
        value = View(like_input, read);
        value.external = program.values[static_cast<size_t>(read)].external;
      }
      value.output = below(8) == 0;
      s.writes.push_back(static_cast<int>(program.values.size()));
      program.values.push_back(value);
    }
    if (below(2) == 0) s.may_take_over = s.reads;
  }
  return program;
}

struct Life {
  int first = -1;
  int last = -1;
};

std::vector<Life> Lives(const Program& program) {
  std::vector<Life> lives(program.values.size());
  const auto use = [&](int value, int step) {
    for (int v = value; v >= 0; v = program.values[static_cast<size_t>(v)].same_as) {
      Life& life = lives[static_cast<size_t>(v)];
      if (life.first < 0) life.first = step;
      life.last = std::max(life.last, step);
    }
  };
  const auto end = static_cast<int>(program.steps.size());
  for (int step = 0; step < end; ++step) {
    for (const int value : program.steps[static_cast<size_t>(step)].reads) use(value, step);
    for (const int value : program.steps[static_cast<size_t>(step)].writes) use(value, step);
  }
  for (size_t i = 0; i < program.values.size(); ++i) {
    if (program.values[i].output) use(static_cast<int>(i), end);
  }
  return lives;
}

bool Overlap(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

TEST(MemoryPlanTest, RandomProgramsKeepLiveValuesApart) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const Program program = RandomProgram(seed);
    const std::vector<PlanValue>& values = program.values;
    const MemoryPlan plan = PlanMemory(values, program.steps, kAlign);
    const std::vector<Life> lives = Lives(program);
    uint64_t sum = 0;
    for (size_t a = 0; a < values.size(); ++a) {
      if (values[a].external || lives[a].first < 0) continue;
      sum += (values[a].bytes + kAlign - 1) / kAlign * kAlign;
      ASSERT_EQ(plan.offsets[a] % kAlign, 0u);
      ASSERT_LE(plan.offsets[a] + values[a].bytes, plan.arena_bytes) << "seed " << seed;
      for (size_t b = a + 1; b < values.size(); ++b) {
        if (values[b].external || lives[b].first < 0) continue;
        if (plan.storage[a] == plan.storage[b]) continue;
        if (lives[a].last < lives[b].first || lives[b].last < lives[a].first) continue;
        ASSERT_FALSE(Overlap(plan.offsets[a], values[a].bytes, plan.offsets[b], values[b].bytes))
            << "seed " << seed << ": values " << a << " and " << b;
      }
    }
    ASSERT_LE(plan.arena_bytes, sum) << "seed " << seed;
    ASSERT_GE(plan.arena_bytes, plan.live_bytes) << "seed " << seed;
  }
}

TEST(MemoryPlanTest, RandomProgramsTakeOverOnlyTheDead) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const Program program = RandomProgram(seed);
    const MemoryPlan plan = PlanMemory(program.values, program.steps, kAlign);
    const std::vector<Life> lives = Lives(program);
    const auto root = [&](int value) {
      while (program.values[static_cast<size_t>(value)].same_as >= 0) {
        value = program.values[static_cast<size_t>(value)].same_as;
      }
      return value;
    };
    for (int a = 0; a < static_cast<int>(program.values.size()); ++a) {
      for (int b = a + 1; b < static_cast<int>(program.values.size()); ++b) {
        const auto at = [](int i) { return static_cast<size_t>(i); };
        if (plan.storage[at(a)] != plan.storage[at(b)] || root(a) == root(b)) continue;
        const Life& x = lives[at(root(a))];
        const Life& y = lives[at(root(b))];
        ASSERT_TRUE(x.last <= y.first || y.last <= x.first) << "seed " << seed;
      }
    }
  }
}

void ExpectApart(const std::vector<PlannedBlock>& blocks) {
  for (size_t a = 0; a < blocks.size(); ++a) {
    for (size_t b = a + 1; b < blocks.size(); ++b) {
      if (blocks[a].last < blocks[b].first || blocks[b].last < blocks[a].first) continue;
      ASSERT_FALSE(Overlap(blocks[a].offset, blocks[a].bytes, blocks[b].offset, blocks[b].bytes));
    }
  }
}

TEST(MemoryPlanTest, ThoroughIsNeverLargerAndSometimesSmaller) {
  uint64_t saved = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const Program program = RandomProgram(seed);
    const MemoryPlan quick = PlanMemory(program.values, program.steps, kAlign);
    const MemoryPlan thorough =
        PlanMemory(program.values, program.steps, kAlign, PlanEffort::kThorough);
    ASSERT_LE(thorough.arena_bytes, quick.arena_bytes);
    ASSERT_GE(thorough.arena_bytes, thorough.live_bytes);
    ExpectApart(thorough.blocks);
    saved += quick.arena_bytes - thorough.arena_bytes;
  }
  EXPECT_GT(saved, 0u);
}

TEST(MemoryPlanTest, IsDeterministic) {
  const Program program = RandomProgram(7);
  EXPECT_EQ(PlanMemory(program.values, program.steps).offsets,
            PlanMemory(program.values, program.steps).offsets);
}

}  // namespace
}  // namespace npumesh
