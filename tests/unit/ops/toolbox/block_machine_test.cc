// Programs as lines of the block machine, and the machine's rooms; programs that the wide machine
// takes.
#include "graph/ops/toolbox/machine/block_program.h"

#include <gtest/gtest.h>

#include <numeric>

#include "graph/ops/toolbox/machine/calls.h"
#include "graph/ops/toolbox/machine/wide_machine.h"

namespace npumesh {
namespace {

// A node with inputs of the types, and one output of the last one.
class BlockProgramTest : public testing::Test {
 protected:
  void Bind(const std::vector<TensorType>& types) {
    schema_ = OpSchema{};
    node_ = Node{};
    for (size_t i = 0; i < types.size(); ++i) {
      names_[i] = "x" + std::to_string(i);
      schema_.inputs.push_back({.name = names_[i]});
      node_.inputs.push_back(Value{1, static_cast<int>(i)});
      node_.input_descs.emplace_back().name = names_[i];
    }
    schema_.outputs.push_back({.name = "y"});
    node_.output_descs.emplace_back().name = "y";
    Result<OpContext> bound = OpContext::Bind(node_, schema_);
    ASSERT_TRUE(bound.ok()) << bound.status().ToString();
    op_.emplace(std::move(*bound));
    for (size_t i = 0; i < types.size(); ++i) op_->set_in(static_cast<int>(i), types[i]);
    op_->set_out(0, types.back());
  }

  std::optional<BlockProgram> Blocks(const LoopFn& loop) { return BlocksOf(*op_, loop); }

  std::array<std::string, 4> names_;
  OpSchema schema_;
  Node node_;
  std::optional<OpContext> op_;
};

TensorType Of(DataType dtype) {
  return {dtype, Shape({700})};
}

// The line that computes a half rounds it; nothing else copies.
TEST_F(BlockProgramTest, ALineRoundsWhatItComputes) {
  Bind({Of(DataType::kFloat16), Of(DataType::kFloat16)});
  const auto blocks = Blocks([](const OpContext&, LoopBuilder& loop) {
    loop.Give(loop.Emit(LoopOp::kAdd, {loop.In(0), loop.In(1)}));
  });
  ASSERT_TRUE(blocks);
  ASSERT_EQ(blocks->lines.size(), 1u);
  EXPECT_EQ(blocks->lines[0].reads, std::vector(2, DataType::kFloat));
  EXPECT_EQ(blocks->lines[0].writes, DataType::kFloat);
  EXPECT_EQ(blocks->lines[0].gives, DataType::kFloat16);
}

// Inputs are read as the type that a line computes in, whatever they are stored as.
TEST_F(BlockProgramTest, ReadersConvert) {
  Bind({Of(DataType::kInt8), Of(DataType::kDouble)});
  const auto blocks = Blocks([](const OpContext&, LoopBuilder& loop) {
    const LoopValue wide = loop.As(LoopType::kDouble, loop.In(0));
    loop.Give(loop.Emit(LoopOp::kMul, {wide, loop.In(1)}));
  });
  ASSERT_TRUE(blocks);
  ASSERT_EQ(blocks->lines.size(), 1u);
  EXPECT_EQ(blocks->lines[0].reads, std::vector(2, DataType::kDouble));
}

// A float of an integer of a float is not that float.
TEST_F(BlockProgramTest, ConversionsOneAfterAnotherAreBothDone) {
  Bind({Of(DataType::kInt64), Of(DataType::kDouble)});
  const auto blocks = Blocks([](const OpContext&, LoopBuilder& loop) {
    const LoopValue narrow = loop.As(LoopType::kFloat, loop.In(0));
    loop.Give(loop.Emit(LoopOp::kAdd, {loop.As(LoopType::kDouble, narrow), loop.In(1)}));
  });
  ASSERT_TRUE(blocks);
  const std::vector<int64_t> x(700, (int64_t{1} << 24) + 1);
  const std::vector<double> zero(700, 0);
  std::vector<double> y(700);
  const auto kernel = MakeBlockMachine(*blocks, {});
  std::vector<std::byte> scratch(kernel->scratch_bytes() + 64);
  auto* const aligned =
      reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64);
  const void* in[] = {x.data(), zero.data()};
  void* out[] = {y.data()};
  ASSERT_TRUE(kernel->Run({in, out, aligned}).ok());
  EXPECT_EQ(y, std::vector<double>(700, 0x1p24));
}

// What nothing reads any more makes room for what comes.
TEST_F(BlockProgramTest, LongChainsNeedFewRooms) {
  Bind({Of(DataType::kFloat), Of(DataType::kFloat)});
  const auto blocks = Blocks([](const OpContext&, LoopBuilder& loop) {
    LoopValue value = loop.In(0);
    for (int i = 0; i < 30; ++i) value = loop.Emit(LoopOp::kMul, {value, loop.In(1)});
    loop.Give(value);
  });
  ASSERT_TRUE(blocks);
  EXPECT_EQ(blocks->lines.size(), 30u);
  EXPECT_EQ(MakeBlockMachine(*blocks, {})->scratch_bytes(), 2 * 512 * sizeof(float));
}

TEST_F(BlockProgramTest, OperandsInPlaceNeedNoRoom) {
  Bind({Of(DataType::kFloat), Of(DataType::kFloat)});
  const auto blocks = Blocks([](const OpContext&, LoopBuilder& loop) {
    loop.Give(loop.Emit(LoopOp::kAdd, {loop.In(0), loop.In(1)}));
  });
  ASSERT_TRUE(blocks);
  const auto kernel = MakeBlockMachine(*blocks, {.threads = 4});
  EXPECT_EQ(kernel->scratch_bytes(), 0u);
  EXPECT_TRUE(IsSafeBlockMachine(*kernel));
}

TEST_F(BlockProgramTest, QuotientsOfIntegersCanFail) {
  Bind({Of(DataType::kInt64), Of(DataType::kInt64)});
  const auto blocks = Blocks([](const OpContext&, LoopBuilder& loop) {
    loop.Give(loop.Emit(LoopOp::kFloorMod, {loop.In(0), loop.In(1)}));
  });
  ASSERT_TRUE(blocks);
  EXPECT_FALSE(IsSafeBlockMachine(*MakeBlockMachine(*blocks, {})));
}

TEST_F(BlockProgramTest, WholeRowsAreNoBlocks) {
  Bind({Of(DataType::kFloat)});
  EXPECT_FALSE(Blocks([](const OpContext&, LoopBuilder& loop) {
    const LoopValue x = loop.In(0);
    loop.Give(loop.Emit(LoopOp::kSub, {x, loop.Emit(LoopOp::kRowMax, {x})}));
  }));
}

using WideMachineTest = BlockProgramTest;

// 2^24 + 1 is no float, and its root none of 24 bits.
TEST_F(WideMachineTest, ComputesInDoubleAndRoundsOnce) {
  Bind({{DataType::kFloat, Shape({1, 3})}});
  const auto kernel = MakeWideMachine(*op_, [](const OpContext&, LoopBuilder& loop) {
    const LoopValue sum = loop.Emit(LoopOp::kRowSum, {loop.In(0)});
    const LoopValue mean = loop.Emit(LoopOp::kMeanOf, {sum}, {1, 0, 0});
    loop.Give(loop.Emit(LoopOp::kSub, {mean, loop.In(0)}));
  });
  ASSERT_NE(kernel, nullptr);
  const std::vector<float> x = {0x1p24f, 1, 0};
  std::vector<float> y(3);
  const void* in[] = {x.data()};
  void* out[] = {y.data()};
  ASSERT_TRUE(kernel->Run({in, out, nullptr}).ok());
  EXPECT_EQ(y, (std::vector<float>{1, 0x1p24f, 0x1p24f}));
}

TEST_F(WideMachineTest, JumpsOnlyByWhatIsGiven) {
  Bind({Of(DataType::kFloat), Of(DataType::kFloat)});
  EXPECT_NE(MakeWideMachine(*op_,
                            [](const OpContext&, LoopBuilder& loop) {
                              loop.Give(loop.Emit(LoopOp::kFloor, {loop.In(0)}));
                            }),
            nullptr);
  EXPECT_EQ(
      MakeWideMachine(*op_,
                      [](const OpContext&, LoopBuilder& loop) {
                        const LoopValue sum = loop.Emit(LoopOp::kAdd, {loop.In(0), loop.In(1)});
                        loop.Give(loop.Emit(LoopOp::kFloor, {sum}));
                      }),
      nullptr);
}

TEST_F(WideMachineTest, TakesNoLongIntegersAndGivesFloats) {
  Bind({Of(DataType::kInt64), Of(DataType::kInt64)});
  const LoopFn add = [](const OpContext&, LoopBuilder& loop) {
    loop.Give(loop.Emit(LoopOp::kAdd, {loop.In(0), loop.In(1)}));
  };
  EXPECT_EQ(MakeWideMachine(*op_, add), nullptr);
  Bind({Of(DataType::kInt32), Of(DataType::kInt32)});
  EXPECT_EQ(MakeWideMachine(*op_, add), nullptr);
}

// Whatever an instruction says it takes it has a function for, and nothing else; static kernels
// take no more than the lanes have. Of doubles there may be more, for the wide machine.
TEST(Functions, AreThereForWhatIsTaken) {
  for (auto op = LoopOp::kAdd; op <= LoopOp::kExpOfNonPositive;
       op = static_cast<LoopOp>(static_cast<int>(op) + 1)) {
    if (IsConversion(op) || HasTarget(op)) continue;
    for (auto type = LoopType::kFloat; type <= LoopType::kWideComplex;
         type = static_cast<LoopType>(static_cast<int>(type) + 1)) {
      const bool wide_alone = type == LoopType::kDouble && !IsTaken(op, type);
      if (wide_alone && IsTaken(op, LoopType::kFloat)) continue;
      EXPECT_EQ(FunctionOf(op, type) != nullptr, IsTaken(op, type))
          << NameOf(op) << " " << static_cast<int>(type);
      EXPECT_EQ(FindLanes(op, type) != nullptr, IsTaken(op, type, LoopTarget::kCompiler))
          << NameOf(op) << " " << static_cast<int>(type);
    }
  }
}

}  // namespace
}  // namespace npumesh
