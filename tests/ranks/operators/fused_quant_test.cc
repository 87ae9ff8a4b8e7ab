// AllGatherMatmulV2, MatmulReduceScatterV2, QuantAllReduce and QuantReduceScatter over ranks, on
// numbers small enough that every sum is exact.
#include <gtest/gtest.h>

#include <cmath>

#include "graph/ops/toolbox/values/small_float.h"
#include "tests/ranks/operators/fused_reference.h"

namespace npumesh {
namespace {

// The 8-bit types, all of which hold the numbers from -3 to 3.
const std::vector<DataType> kSmall = {DataType::kInt8, DataType::kHifloat8, DataType::kFloat8E4M3Fn,
                                      DataType::kFloat8E5M2};

Tensor Small(DataType dtype, Shape shape, const Matrix& a) {
  if (dtype == DataType::kInt8) return FromDoubles(dtype, std::move(shape), a.values);
  std::vector<uint8_t> bits;
  for (const double value : a.values) {
    const auto v = static_cast<float>(value);
    bits.push_back(dtype == DataType::kHifloat8       ? ToHifloat8(v).bits
                   : dtype == DataType::kFloat8E4M3Fn ? ToFloat8E4m3(v).bits
                                                      : ToFloat8E5m2(v).bits);
  }
  return Make<uint8_t>(dtype, std::move(shape), bits);
}
Tensor Small(DataType dtype, const Matrix& a) {
  return Small(dtype, {a.rows, a.columns}, a);
}

// Powers of two, so that products with them are exact.
std::vector<double> Powers(int64_t count, int seed) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(std::ldexp(1.0, (i + seed) % 4 - 2));
  return values;
}
Tensor Floats(const std::vector<double>& values) {
  return FromDoubles(DataType::kFloat, {static_cast<int64_t>(values.size())}, values);
}

// What one rank multiplies, by its rows and columns scaled.
Matrix Scaled(int rank, int weights_of, const std::vector<double>& rows,
              const std::vector<double>& columns) {
  Matrix y = Times(Numbers(kRows, kInner, rank), Numbers(kInner, kColumns, 8 + weights_of));
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < kColumns; ++c) {
      y.At(r, c) *= rows[rows.size() == 1 ? 0 : static_cast<size_t>(r)] *
                    columns[columns.size() == 1 ? 0 : static_cast<size_t>(c)];
    }
  }
  return y;
}

TEST(AllGatherMatmulV2, EachRankHasItsScales) {
  for (const int ranks : {2, 4}) {
    for (const DataType dtype : kSmall) {
      for (const bool of_rows : {false, true}) {
        ExpectAllOk(OnRanks(ranks, [&](Communicator& group, DeviceMemory& memory) -> Status {
          const int me = group.rank();
          const std::vector<double> columns = Powers(of_rows ? kColumns : 1, 3);
          const OpCall call =
              GroupCall("AllGatherMatmulV2",
                        {{"x1", Small(dtype, Numbers(kRows, kInner, me))},
                         {"x2", Small(dtype, Numbers(kInner, kColumns, 8 + me))},
                         {"x1_scale", Floats(Powers(of_rows ? kRows : 1, me))},
                         {"x2_scale", Floats(columns)}},
                        {{"rank_size", AttrValue::Int(ranks)}, {"y_dtype", AttrValue::Int(0)}});
          NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> out,
                                   RunOnRank(BuiltinOps(), call, group, memory));
          Matrix want, gathered;
          for (int r = 0; r < ranks; ++r) {
            Append(want, Scaled(r, me, Powers(of_rows ? kRows : 1, r), columns));
            Append(gathered, Numbers(kRows, kInner, r));
          }
          EXPECT_TRUE(SameBytes(out[0], ToTensor(DataType::kFloat, want))) << Name(dtype);
          EXPECT_TRUE(SameBytes(out[1], Small(dtype, gathered)));
          EXPECT_EQ(out[2].shape(), Shape{0});
          return Status();
        }));
      }
    }
  }
}

TEST(MatmulReduceScatterV2, SumsScaledProducts) {
  for (const int ranks : {2, 4}) {
    for (const DataType dtype : kSmall) {
      ExpectAllOk(OnRanks(ranks, [&](Communicator& group, DeviceMemory& memory) -> Status {
        const auto rows = [](int r) { return Powers(kRows, r); };
        const std::vector<double> columns = Powers(kColumns, 3);
        const int me = group.rank();
        const OpCall call = GroupCall("MatmulReduceScatterV2",
                                      {{"x1", Small(dtype, Numbers(kRows, kInner, me))},
                                       {"x2", Small(dtype, Numbers(kInner, kColumns, 8 + me))},
                                       {"x1_scale", Floats(rows(me))},
                                       {"x2_scale", Floats(columns)}},
                                      {{"y_dtype", AttrValue::Int(27)}});
        NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> out,
                                 RunOnRank(BuiltinOps(), call, group, memory));
        Matrix sum = Zeros(kRows, kColumns);
        for (int r = 0; r < ranks; ++r) {
          const Matrix part = Scaled(r, r, rows(r), columns);
          for (size_t i = 0; i < sum.values.size(); ++i) sum.values[i] += part.values[i];
        }
        const Matrix mine = RowsOf(sum, me * (kRows / ranks), kRows / ranks);
        EXPECT_TRUE(SameBytes(out[0], ToTensor(DataType::kBfloat16, mine))) << Name(dtype);
        return Status();
      }));
    }
  }
}

// With floats the second versions are the first ones.
TEST(SecondVersions, FloatsWithoutScales) {
  ExpectAllOk(OnRanks(2, [&](Communicator& group, DeviceMemory& memory) -> Status {
    const Tensor x1 = ToTensor(DataType::kFloat16, Numbers(kRows, kInner, group.rank()));
    const Tensor x2 = ToTensor(DataType::kFloat16, Numbers(kInner, kColumns, 3));
    for (const std::string type : {"AllGatherMatmul", "MatmulReduceScatter"}) {
      const auto run = [&](const std::string& name) {
        return RunOnRank(BuiltinOps(), GroupCall(name, {{"x1", x1}, {"x2", x2}}), group, memory);
      };
      NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> first, run(type));
      NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> second, run(type + "V2"));
      EXPECT_TRUE(SameBytes(first[0], second[0])) << type;
    }
    return Status();
  }));
}

// Rows of 256 numbers with a float32 scale for each 128, or a power of two for each 32.
TEST(QuantReductions, SumWhatTheScalesSay) {
  constexpr int64_t kWidth = 256;
  for (const int ranks : {2, 4}) {
    for (const DataType dtype : kSmall) {
      for (const bool powers : {false, true}) {
        if (powers && (dtype == DataType::kInt8 || dtype == DataType::kHifloat8)) continue;
        for (const bool scatters : {false, true}) {
          ExpectAllOk(OnRanks(ranks, [&](Communicator& group, DeviceMemory& memory) -> Status {
            const int64_t per_row = kWidth / (powers ? 32 : 128);
            const auto scales = [&](int r) { return Powers(kRows * per_row, r); };
            Matrix sum = Zeros(kRows, kWidth);
            for (int r = 0; r < ranks; ++r) {
              const Matrix x = Numbers(kRows, kWidth, r);
              for (size_t i = 0; i < sum.values.size(); ++i) {
                const size_t group_size = static_cast<size_t>(kWidth / per_row);
                sum.values[i] += x.values[i] * scales(r)[i / group_size];
              }
            }
            Tensor told = FromDoubles(DataType::kFloat, {2, 2, per_row}, scales(group.rank()));
            if (powers) {
              std::vector<uint8_t> bits;
              for (const double scale : scales(group.rank())) {
                bits.push_back(static_cast<uint8_t>(127 + std::ilogb(scale)));
              }
              told = Make<uint8_t>(DataType::kFloat8E8M0, {2, 2, per_row / 2, 2}, bits);
            }
            const OpCall call = GroupCall(
                scatters ? "QuantReduceScatter" : "QuantAllReduce",
                {{"x", Small(dtype, {2, 2, kWidth}, Numbers(kRows, kWidth, group.rank()))},
                 {"scales", told}},
                {{"world_size", AttrValue::Int(ranks)}, {"output_dtype", AttrValue::Int(0)}});
            NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> out,
                                     RunOnRank(BuiltinOps(), call, group, memory));
            if (scatters) {
              sum = RowsOf(sum, group.rank() * (kRows / ranks), kRows / ranks);
              EXPECT_TRUE(SameBytes(out[0], ToTensor(DataType::kFloat, sum)));
            } else {
              EXPECT_TRUE(
                  SameBytes(out[0], FromDoubles(DataType::kFloat, {2, 2, kWidth}, sum.values)));
            }
            return Status();
          }));
        }
      }
    }
  }
}

// Large enough for chunks, and rounded once.
TEST(QuantReductions, ChunksSumTheSame) {
  constexpr int64_t kMany = 2048;
  constexpr int64_t kWidth = 1024;
  ExpectAllOk(OnRanks(2, [&](Communicator& group, DeviceMemory& memory) -> Status {
    const uint64_t before = group.totals().calls;
    const OpCall call =
        GroupCall("QuantAllReduce",
                  {{"x", Small(DataType::kInt8, Numbers(kMany, kWidth, group.rank()))},
                   {"scales", FromDoubles(DataType::kFloat, {kMany, kWidth / 128},
                                          Powers(kMany * kWidth / 128, group.rank()))}},
                  {{"world_size", AttrValue::Int(2)}});
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> out,
                             RunOnRank(BuiltinOps(), call, group, memory));
    EXPECT_EQ(group.totals().calls - before, 2u) << "chunks";
    Matrix sum = Zeros(kMany, kWidth);
    for (int r = 0; r < 2; ++r) {
      const Matrix x = Numbers(kMany, kWidth, r);
      const std::vector<double> scales = Powers(kMany * kWidth / 128, r);
      for (size_t i = 0; i < sum.values.size(); ++i) sum.values[i] += x.values[i] * scales[i / 128];
    }
    EXPECT_TRUE(SameBytes(out[0], ToTensor(DataType::kBfloat16, sum)));
    return Status();
  }));
}

}  // namespace
}  // namespace npumesh
