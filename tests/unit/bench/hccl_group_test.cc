#include "launch/bench/hccl_group.h"

#include <gmock/gmock.h>

#include "launch/bench/pattern.h"
#include "runtime/acl/process/device_context.h"

namespace npumesh {
namespace {

using ::testing::HasSubstr;

TEST(CheckHccl, KnowsWhatHcclReduces) {
  struct Case {
    std::string_view op;
    std::string dtype;
    std::string reduce_op;
    bool accepted;
  };
  const std::vector<Case> cases = {
      {"allreduce", "fp32", "sum", true},        {"allreduce", "uint8", "sum", false},
      {"allgather", "uint8", "sum", true},       {"reducescatter", "bfp16", "max", true},
      {"reducescatter", "bfp16", "prod", false}, {"allreduce", "int16", "prod", false},
      {"allreduce", "uint64", "prod", true},     {"broadcast", "fp8e5m2", "prod", true},
      {"allreduce", "hif8", "min", false},       {"barrier", "hif8", "sum", true},
  };
  for (const Case& one : cases) {
    BenchWords words;
    words.dtype = one.dtype;
    words.reduce_op = one.reduce_op;
    const Status checked = CheckHccl(*FindBenchOps(one.op)->front(), *ParseBench(words));
    EXPECT_EQ(checked.ok(), one.accepted) << one.op << " " << one.dtype << " " << one.reduce_op;
    if (one.accepted) continue;
    EXPECT_THAT(checked.message(), HasSubstr("--api communicator"));
  }
}

// One rank: every collective leaves in the receive buffer what stood in the send buffer.
TEST(HcclGroup, RunsEveryCollectiveUntilItIsDone) {
  World& world = **StartHcclWorld();
  DeviceMemory& memory = (*CurrentDevice())->memory;
  {
    const auto circle = *RankCircle::Create(world);
    const auto group = *HcclGroup::Create(*circle, DataType::kInt32);
    EXPECT_TRUE(group->Barrier().ok());
    const Seat seat{0, 1, 0, 6};
    for (const BenchOp& op : BenchOps()) {
      Pattern pattern(DataType::kInt32, op.reduces() ? std::optional(ReduceOp::kSum) : std::nullopt,
                      1);
      BenchCall call{nullptr, nullptr, seat.count, DataType::kInt32, ReduceOp::kSum, 0};
      call.send = static_cast<std::byte*>(*memory.Allocate(64));
      call.recv = static_cast<std::byte*>(*memory.Allocate(64));
      pattern.Fill(0, {op.one_buffer ? call.recv : call.send, 24});
      EXPECT_TRUE(group->Run(op, call).ok()) << op.name;
      if (!op.sized) continue;
      EXPECT_EQ(pattern.FirstDifference(op.result(seat), call.recv), "") << op.name;
    }
  }
  EXPECT_TRUE(EndHcclWorld().ok());
}

TEST(HcclGroup, SaysWhatTheInterfaceSaid) {
  World& world = **StartHcclWorld();
  {
    const auto circle = *RankCircle::Create(world);
    const auto group = *HcclGroup::Create(*circle, DataType::kInt32);
    std::byte host[64];
    const BenchCall call{host, host, 4, DataType::kInt32, ReduceOp::kSum, 0};
    const Status refused = group->Run(*FindBenchOps("allreduce")->front(), call);
    EXPECT_EQ(refused.code(), Code::kInvalidArgument);
    EXPECT_THAT(refused.message(), HasSubstr("HcclAllReduce: EI0003: sendBuf: 16 bytes at"));
  }
  EXPECT_TRUE(EndHcclWorld().ok());
}

}  // namespace
}  // namespace npumesh
