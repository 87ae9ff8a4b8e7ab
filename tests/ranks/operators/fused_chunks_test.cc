// Products that are large enough to travel in chunks: the bits of the product and the collective
// done one after the other, and no chunk left behind when something fails.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "graph/ops/collective/chunked_exchange.h"
#include "tests/ranks/operators/rank_op.h"
#include "tests/unit/allocation_count.h"

namespace npumesh {
namespace {

using fused::ChunksOf;
using fused::ChunkTravel;

constexpr int kRanks = 2;
constexpr uint64_t kMiB = uint64_t{1} << 20;

// Not integers, so that another order of adding would show.
Tensor Random(Shape shape, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  for (float& value : values) {
    value = static_cast<float>(random() % 2000) / 977.0f - 1.0f;
  }
  return Tensor::FromVector({DataType::kFloat, std::move(shape)}, values);
}

bool SameBits(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

TEST(ChunksOf, GoesBySizeAndDividesTheRows) {
  EXPECT_EQ(ChunksOf(64, kMiB), 1);
  EXPECT_EQ(ChunksOf(64, 2 * kMiB), 2);
  EXPECT_EQ(ChunksOf(64, 1000 * kMiB), 8);
  EXPECT_EQ(ChunksOf(63, 8 * kMiB), 7);
  EXPECT_EQ(ChunksOf(67, 8 * kMiB), 1);
  EXPECT_EQ(ChunksOf(0, 0), 1);
}

TEST(ChunkTravel, KeepsTheOrderAndTheFirstFailure) {
  for (const int64_t chunks : {int64_t{1}, int64_t{5}}) {
    ChunkTravel travel(chunks);
    for (int run = 0; run < 3; ++run) {
      std::vector<int64_t> seen;
      const auto work = [&](int64_t chunk) -> Status {
        seen.push_back(chunk);
        return chunk == 3 ? Error(Code::kPeerLost, "lost at {}", chunk) : Status();
      };
      for (int64_t chunk = 0; chunk < chunks; ++chunk) travel.Send(chunk, work);
      EXPECT_TRUE(travel.Await(0).ok());
      const Status all = travel.AwaitAll();
      EXPECT_EQ(seen.size(), static_cast<size_t>(chunks));
      EXPECT_TRUE(std::ranges::is_sorted(seen));
      EXPECT_EQ(all.ok(), chunks == 1);
    }
  }
}

TEST(ChunkTravel, AllocatesNothingOnceItRan) {
  ChunkTravel travel(8);
  std::atomic<int64_t> sum{0};
  const auto work = [&](int64_t chunk) {
    sum += chunk;
    return Status();
  };
  const auto run = [&] {
    for (int64_t chunk = 0; chunk < 8; ++chunk) travel.Send(chunk, work);
    return travel.AwaitAll().ok();
  };
  ASSERT_TRUE(run());
  const uint64_t before = AllocationCount();
  bool ok = true;
  for (int i = 0; i < 20; ++i) ok = run() && ok;
  EXPECT_EQ(AllocationCount(), before);
  EXPECT_TRUE(ok);
  EXPECT_EQ(sum, 21 * 28);
}

// The product of a rank as the matmul family computes it.
Result<Tensor> Product(const Tensor& x1, const Tensor& x2, Communicator& group,
                       DeviceMemory& memory) {
  const OpCall call = {.type = "MatMul", .inputs = {{"x1", x1}, {"x2", x2}}};
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> y,
                           RunOnRank(BuiltinOps(), call, group, memory));
  return y[0];
}

OpCall Fused(const std::string& type, const Tensor& x1, const Tensor& x2) {
  return {.type = type,
          .inputs = {{"x1", x1}, {"x2", x2}},
          .attrs = {{"group", AttrValue::String("ranks")}}};
}

Status Expect(bool same, std::string_view what) {
  return same ? Status() : Error(Code::kInternal, "{} has other bits", what);
}

// What the collective makes of `send` when it is done at once.
using Collective = std::function<Status(const float* send, float* recv)>;
Result<Tensor> AtOnce(const Tensor& send, TensorType type, DeviceMemory& memory,
                      const Collective& collective) {
  HbmArray<std::byte> from(memory, send.bytes());
  HbmArray<std::byte> to(memory, type.bytes());
  std::memcpy(from.data(), send.data(), send.bytes());
  NPUMESH_RETURN_IF_ERROR(
      collective(reinterpret_cast<const float*>(from.data()), reinterpret_cast<float*>(to.data())));
  Tensor result = Tensor::Allocate(std::move(type));
  std::memcpy(result.mutable_data(), to.data(), result.bytes());
  return result;
}

constexpr int64_t kChunkedRows = 768;
constexpr int64_t kChunkedColumns = 1024;
constexpr int64_t kChunkedInner = 72;

TEST(FusedChunks, AllReduceHasTheBitsOfBothInTurn) {
  ASSERT_GT(ChunksOf(kChunkedRows, kChunkedRows * kChunkedColumns * 4), 1);
  ExpectAllOk(OnRanks(kRanks, [&](Communicator& group, DeviceMemory& memory) -> Status {
    const auto seed = static_cast<uint32_t>(group.rank());
    const Tensor x1 = Random({kChunkedRows, kChunkedInner}, seed);
    const Tensor x2 = Random({kChunkedInner, kChunkedColumns}, seed + 10);
    NPUMESH_ASSIGN_OR_RETURN(
        const std::vector<Tensor> y,
        RunOnRank(BuiltinOps(), Fused("MatmulAllReduce", x1, x2), group, memory));
    NPUMESH_ASSIGN_OR_RETURN(const Tensor own, Product(x1, x2, group, memory));
    NPUMESH_ASSIGN_OR_RETURN(const Tensor want,
                             AtOnce(own, own.type(), memory, [&](const float* send, float* recv) {
                               return group.AllReduce(send, recv, kChunkedRows * kChunkedColumns,
                                                      DataType::kFloat, ReduceOp::kSum);
                             }));
    return Expect(SameBits(y[0], want), "MatmulAllReduce");
  }));
}

TEST(FusedChunks, ReduceScatterHasTheBitsOfBothInTurn) {
  ASSERT_GT(ChunksOf(kChunkedRows / kRanks, kChunkedRows * kChunkedColumns * 4), 1);
  ExpectAllOk(OnRanks(kRanks, [&](Communicator& group, DeviceMemory& memory) -> Status {
    const auto seed = static_cast<uint32_t>(group.rank());
    const Tensor x1 = Random({kChunkedRows, kChunkedInner}, seed);
    const Tensor x2 = Random({kChunkedInner, kChunkedColumns}, seed + 10);
    NPUMESH_ASSIGN_OR_RETURN(
        const std::vector<Tensor> y,
        RunOnRank(BuiltinOps(), Fused("MatmulReduceScatter", x1, x2), group, memory));
    NPUMESH_ASSIGN_OR_RETURN(const Tensor own, Product(x1, x2, group, memory));
    NPUMESH_ASSIGN_OR_RETURN(
        const Tensor want, AtOnce(own, {DataType::kFloat, {kChunkedRows / kRanks, kChunkedColumns}},
                                  memory, [&](const float* send, float* recv) {
                                    return group.ReduceScatter(
                                        send, recv, kChunkedRows / kRanks * kChunkedColumns,
                                        DataType::kFloat, ReduceOp::kSum);
                                  }));
    return Expect(SameBits(y[0], want), "MatmulReduceScatter");
  }));
}

// Here the rows are what travels.
TEST(FusedChunks, AllGatherHasTheBitsOfBothInTurn) {
  ASSERT_GT(ChunksOf(kChunkedRows, kChunkedRows * kChunkedColumns * 4), 1);
  for (const bool gives : {true, false}) {
    ExpectAllOk(OnRanks(kRanks, [&](Communicator& group, DeviceMemory& memory) -> Status {
      const auto seed = static_cast<uint32_t>(group.rank());
      const Tensor x1 = Random({kChunkedRows, kChunkedColumns}, seed);
      const Tensor x2 = Random({kChunkedColumns, kChunkedInner}, seed + 10);
      OpCall call = Fused("AllGatherMatmul", x1, x2);
      call.outputs = 2;
      call.attrs.push_back({"is_gather_out", AttrValue::Bool(gives)});
      NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> y,
                               RunOnRank(BuiltinOps(), call, group, memory));
      NPUMESH_ASSIGN_OR_RETURN(
          const Tensor all, AtOnce(x1, {DataType::kFloat, {kChunkedRows * kRanks, kChunkedColumns}},
                                   memory, [&](const float* send, float* recv) {
                                     return group.AllGather(send, recv,
                                                            kChunkedRows * kChunkedColumns,
                                                            DataType::kFloat);
                                   }));
      NPUMESH_ASSIGN_OR_RETURN(const Tensor want, Product(all, x2, group, memory));
      NPUMESH_RETURN_IF_ERROR(Expect(SameBits(y[0], want), "AllGatherMatmul"));
      return Expect(!gives || SameBits(y[1], all), "gather_out");
    }));
  }
}

// A product in two chunks, and its halves, which are one chunk each: x3, scales of rows and stored
// weights go with their rows.
TEST(FusedChunks, WhatBelongsToARowGoesWithIt) {
  constexpr int64_t kHalf = 256;
  ASSERT_EQ(ChunksOf(2 * kHalf, 2 * kHalf * kChunkedColumns * 4), 2);
  ASSERT_EQ(ChunksOf(kHalf, kHalf * kChunkedColumns * 4), 1);
  struct Case {
    DataType x1;
    DataType x2;
    std::vector<OpInput> columns;  // for all rows
    std::vector<OpInput> rows;     // by row
  };
  const Tensor scales = Random({kChunkedColumns}, 3);
  const std::vector<Case> cases = {
      {DataType::kFloat,
       DataType::kFloat,
       {{"bias", scales}},
       {{"x3", Random({2 * kHalf, kChunkedColumns}, 5)}}},
      {DataType::kInt8,
       DataType::kInt8,
       {{"dequant_scale", scales}},
       {{"pertoken_scale", Random({2 * kHalf}, 7)}}},
      {DataType::kFloat, DataType::kInt8, {{"antiquant_scale", scales}}, {}},
  };
  for (const Case& c : cases) {
    ExpectAllOk(OnRanks(kRanks, [&](Communicator& group, DeviceMemory& memory) -> Status {
      const auto run = [&](int64_t first, int64_t count) -> Result<Tensor> {
        OpCall call =
            Fused("MatmulAllReduce",
                  RowsOf(Pattern(c.x1, {2 * kHalf, kChunkedInner}, group.rank()), first, count),
                  Pattern(c.x2, {kChunkedInner, kChunkedColumns}, group.rank() + 2));
        for (const OpInput& input : c.columns) call.inputs.push_back(input);
        for (const OpInput& input : c.rows) {
          call.inputs.push_back({input.port, RowsOf(input.value, first, count)});
        }
        if (c.x1 == DataType::kInt8) call.attrs.push_back({"y_dtype", AttrValue::Int(0)});
        NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> y,
                                 RunOnRank(BuiltinOps(), call, group, memory));
        return y[0];
      };
      NPUMESH_ASSIGN_OR_RETURN(const Tensor whole, run(0, 2 * kHalf));
      for (const int64_t first : {int64_t{0}, kHalf}) {
        NPUMESH_ASSIGN_OR_RETURN(const Tensor half, run(first, kHalf));
        NPUMESH_RETURN_IF_ERROR(Expect(SameBits(RowsOf(whole, first, kHalf), half), Name(c.x1)));
      }
      return Status();
    }));
  }
}

}  // namespace
}  // namespace npumesh
