// AlltoAllMatmul, MatmulAlltoAll, MatmulAllReduceAddRmsNorm and DistributeBarrier over ranks, on
// integers small enough that every sum is exact.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "tests/ranks/operators/fused_reference.h"

namespace npumesh {
namespace {

// ---- blocks of equal size ----

// A rank's rows of x1, with the columns of all ranks side by side.
Matrix Joined(int ranks, int rank, int64_t rows, int64_t columns) {
  Matrix joined = Zeros(rows / ranks, columns * ranks);
  for (int64_t r = 0; r < joined.rows; ++r) {
    for (int64_t c = 0; c < joined.columns; ++c) {
      const Matrix from = Numbers(rows, columns, static_cast<int>(c / columns));
      joined.At(r, c) = from.At(rank * joined.rows + r, c % columns);
    }
  }
  return joined;
}

TEST(AlltoAllMatmul, JoinsColumnsAndMultiplies) {
  for (const int ranks : {2, 4}) {
    for (const DataType dtype : kFloatTypes) {
      ExpectAllOk(OnRanks(ranks, [&](Communicator& group, DeviceMemory& memory) -> Status {
        const Matrix weights = Numbers(3 * ranks, 5, 9 + group.rank());
        const bool turned = dtype == DataType::kFloat16;
        const bool gives = dtype != DataType::kBfloat16;
        OpCall call = GroupCall("AlltoAllMatmul",
                                {{"x1", ToTensor(dtype, Numbers(8, 3, group.rank()))},
                                 {"x2", ToTensor(dtype, turned ? Transposed(weights) : weights)},
                                 {"bias", ToTensor(dtype, Numbers(1, 5, 2))}},
                                {{"world_size", AttrValue::Int(ranks)},
                                 {"transpose_x2", AttrValue::Bool(turned)},
                                 {"alltoall_out_flag", AttrValue::Bool(gives)}});
        call.inputs[2].value = FromDoubles(dtype, {5}, Numbers(1, 5, 2).values);
        NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> out,
                                 RunOnRank(BuiltinOps(), call, group, memory));
        const Matrix joined = Joined(ranks, group.rank(), 8, 3);
        Matrix want = Times(joined, weights);
        for (int64_t r = 0; r < want.rows; ++r) {
          for (int64_t c = 0; c < 5; ++c) want.At(r, c) += Numbers(1, 5, 2).At(0, c);
        }
        EXPECT_TRUE(SameBytes(out[0], ToTensor(dtype, want)));
        EXPECT_EQ(out[1].shape(), (gives ? Shape{8 / ranks, 3 * ranks} : Shape{0}));
        if (gives) {
          EXPECT_TRUE(SameBytes(out[1], ToTensor(dtype, joined)));
        }
        return Status();
      }));
    }
  }
}

TEST(MatmulAlltoAll, MultipliesAndCutsColumns) {
  for (const int ranks : {2, 4}) {
    for (const DataType dtype : kFloatTypes) {
      ExpectAllOk(OnRanks(ranks, [&](Communicator& group, DeviceMemory& memory) -> Status {
        const auto weights = [](int rank) { return Numbers(3, 8, 9 + rank); };
        const OpCall call =
            GroupCall("MatmulAlltoAll",
                      {{"x1", ToTensor(dtype, Numbers(6, 3, group.rank()))},
                       {"x2", ToTensor(dtype, weights(group.rank()))}},
                      {{"world_size", AttrValue::Int(ranks)}, {"y_dtype", AttrValue::Int(0)}});
        NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> out,
                                 RunOnRank(BuiltinOps(), call, group, memory));
        Matrix want;
        const int64_t columns = 8 / ranks;
        for (int r = 0; r < ranks; ++r) {
          const Matrix all = Transposed(Times(Numbers(6, 3, r), weights(r)));
          Append(want, Transposed(RowsOf(all, group.rank() * columns, columns)));
        }
        EXPECT_TRUE(SameBytes(out[0], ToTensor(DataType::kFloat, want)));
        return Status();
      }));
    }
  }
}

// Large enough for chunks; both directions give back what the other one took apart.
TEST(AlltoAllMatmul, ChunksHaveTheSameNumbers) {
  constexpr int64_t kRows = 2048;
  constexpr int64_t kWidth = 512;
  ExpectAllOk(OnRanks(2, [&](Communicator& group, DeviceMemory& memory) -> Status {
    Matrix identity = Zeros(2 * kWidth, 2 * kWidth);
    for (int64_t i = 0; i < 2 * kWidth; ++i) identity.At(i, i) = 1;
    const Tensor x = ToTensor(DataType::kFloat16, Numbers(kRows, kWidth, group.rank()));
    const Tensor w = ToTensor(DataType::kFloat16, identity);
    const auto size = std::pair<std::string, AttrValue>{"world_size", AttrValue::Int(2)};
    uint64_t calls = group.totals().calls;
    NPUMESH_ASSIGN_OR_RETURN(
        const std::vector<Tensor> there,
        RunOnRank(BuiltinOps(), GroupCall("AlltoAllMatmul", {{"x1", x}, {"x2", w}}, {size}), group,
                  memory));
    EXPECT_EQ(group.totals().calls - calls, 2u) << "chunks";
    EXPECT_TRUE(SameBytes(there[0], there[1])) << "times the identity";
    calls = group.totals().calls;
    NPUMESH_ASSIGN_OR_RETURN(
        const std::vector<Tensor> back,
        RunOnRank(BuiltinOps(), GroupCall("MatmulAlltoAll", {{"x1", there[0]}, {"x2", w}}, {size}),
                  group, memory));
    EXPECT_EQ(group.totals().calls - calls, 2u) << "chunks";
    EXPECT_TRUE(SameBytes(back[0], x));
    return Status();
  }));
}

// ---- a sum that is normalised ----

TEST(MatmulAllReduceAddRmsNorm, AddsTheResidualOnce) {
  constexpr int64_t kRows = 6;
  for (const int ranks : {2, 4}) {
    for (const DataType dtype : {DataType::kFloat16, DataType::kBfloat16}) {
      ExpectAllOk(OnRanks(ranks, [&](Communicator& group, DeviceMemory& memory) -> Status {
        const Matrix residual = Numbers(kRows, kWeightColumns, 4);
        const Matrix gamma = Numbers(1, kWeightColumns, 6);
        const OpCall call = GroupCall(
            "MatmulAllReduceAddRmsNorm",
            {{"x1", FromDoubles(dtype, {2, 3, kWeightRows},
                                Numbers(kRows, kWeightRows, group.rank()).values)},
             {"x2", ToTensor(dtype, Numbers(kWeightRows, kWeightColumns, 5 + group.rank()))},
             {"residual", FromDoubles(dtype, {2, 3, kWeightColumns}, residual.values)},
             {"gamma", FromDoubles(dtype, {kWeightColumns}, gamma.values)}},
            {{"epsilon", AttrValue::Float(0.25f)}});
        NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> out,
                                 RunOnRank(BuiltinOps(), call, group, memory));
        Matrix sum = residual;
        for (int r = 0; r < ranks; ++r) {
          const Matrix part =
              Times(Numbers(kRows, kWeightRows, r), Numbers(kWeightRows, kWeightColumns, 5 + r));
          for (size_t i = 0; i < sum.values.size(); ++i) sum.values[i] += part.values[i];
        }
        Matrix norm = sum;
        for (int64_t r = 0; r < kRows; ++r) {
          double squares = 0;
          for (int64_t c = 0; c < kWeightColumns; ++c) squares += sum.At(r, c) * sum.At(r, c);
          const double root =
              Rounded(DataType::kFloat, 1 / std::sqrt(squares / kWeightColumns + 0.25));
          for (int64_t c = 0; c < kWeightColumns; ++c) {
            const double scaled = Rounded(dtype, Rounded(DataType::kFloat, sum.At(r, c) * root));
            norm.At(r, c) = scaled * gamma.At(0, c);
          }
        }
        EXPECT_TRUE(SameBytes(out[0], FromDoubles(dtype, {2, 3, kWeightColumns}, sum.values)));
        EXPECT_TRUE(SameBytes(out[1], FromDoubles(dtype, {2, 3, kWeightColumns}, norm.values)));
        return Status();
      }));
    }
  }
}

// In chunks the rows of the sum and their norms are those of the halves, which are one chunk each.
TEST(MatmulAllReduceAddRmsNorm, ChunksHaveTheBitsOfTheirParts) {
  constexpr int64_t kHalf = 256;
  constexpr int64_t kWide = 1024;
  ExpectAllOk(OnRanks(2, [&](Communicator& group, DeviceMemory& memory) -> Status {
    const Matrix x = Numbers(2 * kHalf, 8, group.rank());
    const Matrix residual = Numbers(2 * kHalf, kWide, 4);
    const auto run = [&](int64_t first, int64_t rows) {
      return RunOnRank(
          BuiltinOps(),
          GroupCall(
              "MatmulAllReduceAddRmsNorm",
              {{"x1", ToTensor(DataType::kBfloat16, RowsOf(x, first, rows))},
               {"x2", ToTensor(DataType::kBfloat16, Numbers(8, kWide, 5 + group.rank()))},
               {"residual", ToTensor(DataType::kBfloat16, RowsOf(residual, first, rows))},
               {"gamma", FromDoubles(DataType::kBfloat16, {kWide}, Numbers(1, kWide, 3).values)}}),
          group, memory);
    };
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> whole, run(0, 2 * kHalf));
    for (const int64_t first : {int64_t{0}, kHalf}) {
      NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> half, run(first, kHalf));
      for (const size_t port : {0, 1}) {
        const auto bytes = static_cast<int64_t>(half[port].bytes());
        EXPECT_EQ(std::memcmp(whole[port].data() + first / kHalf * bytes, half[port].data(),
                              half[port].bytes()),
                  0)
            << "output " << port;
      }
    }
    return Status();
  }));
}

// ---- the barrier ----

TEST(DistributeBarrier, NobodyGoesOnBeforeAllAreThere) {
  std::atomic<int> arrived{0};
  ExpectAllOk(OnRanks(4, [&](Communicator& group, DeviceMemory& memory) -> Status {
    std::this_thread::sleep_for(std::chrono::milliseconds(5 * group.rank()));
    ++arrived;
    const Tensor x = Pattern(DataType::kInt16, {3}, group.rank());
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> out,
                             RunOnRank(BuiltinOps(),
                                       GroupCall("DistributeBarrier", {{"x_ref", x}},
                                                 {{"world_size", AttrValue::Int(4)}}),
                                       group, memory));
    EXPECT_EQ(arrived, 4);
    EXPECT_TRUE(SameBytes(out[0], x));
    return Status();
  }));
}

}  // namespace
}  // namespace npumesh
