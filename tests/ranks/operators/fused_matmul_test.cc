// MatmulAllReduce, AllGatherMatmul and MatmulReduceScatter over ranks, on integers small enough
// that every sum is exact.
#include <gmock/gmock.h>

#include "tests/ranks/operators/fused_reference.h"

namespace npumesh {
namespace {

// Element (r, c) of a matrix that may be stored transposed.
double At(const Tensor& matrix, int64_t r, int64_t c, bool transposed) {
  const std::vector<int64_t> at =
      transposed ? std::vector<int64_t>{c, r} : std::vector<int64_t>{r, c};
  return ToDoubles(matrix)[Index(matrix.shape(), at)];
}

std::vector<double> Product(const Tensor& a, const Tensor& b, bool ta = false, bool tb = false) {
  const int64_t m = a.shape()[ta ? 1 : 0];
  const int64_t k = a.shape()[ta ? 0 : 1];
  const int64_t n = b.shape()[tb ? 0 : 1];
  std::vector<double> y;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l) sum += At(a, i, l, ta) * At(b, l, j, tb);
      y.push_back(sum);
    }
  }
  return y;
}

OpCall Call(const std::string& type, Tensor x1, Tensor x2) {
  return {.type = type,
          .inputs = {{"x1", std::move(x1)}, {"x2", std::move(x2)}},
          .attrs = {{"group", AttrValue::String("ranks")}}};
}

Tensor X1(DataType dtype, int rank, bool transposed = false) {
  return Pattern(dtype, transposed ? Shape{kInner, kRows} : Shape{kRows, kInner}, rank + 1);
}
Tensor X2(DataType dtype, int rank, bool transposed = false) {
  return Pattern(dtype, transposed ? Shape{kColumns, kInner} : Shape{kInner, kColumns}, rank + 5);
}

TEST(MatmulAllReduce, SumsTheProductsOfTheRanks) {
  for (const DataType dtype : {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16}) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        ExpectAllOk(OnRanks(3, [&](Communicator& group, DeviceMemory& memory) -> Status {
          OpCall call =
              Call("MatmulAllReduce", X1(dtype, group.rank(), ta), X2(dtype, group.rank(), tb));
          call.attrs.push_back({"is_trans_a", AttrValue::Bool(ta)});
          call.attrs.push_back({"is_trans_b", AttrValue::Bool(tb)});
          const Tensor bias = Pattern(dtype, {kColumns}, group.rank());
          const Tensor x3 = Pattern(dtype, {kRows, kColumns}, group.rank() + 2);
          call.inputs.push_back({"bias", bias});
          call.inputs.push_back({"x3", x3});
          NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> y,
                                   RunOnRank(BuiltinOps(), call, group, memory));
          std::vector<double> want(kRows * kColumns);
          for (int r = 0; r < 3; ++r) {
            const std::vector<double> part = Product(X1(dtype, r, ta), X2(dtype, r, tb), ta, tb);
            for (size_t i = 0; i < want.size(); ++i) {
              want[i] += part[i] + ToDoubles(Pattern(dtype, {kColumns}, r))[i % kColumns] +
                         ToDoubles(Pattern(dtype, {kRows, kColumns}, r + 2))[i];
            }
          }
          EXPECT_TRUE(SameBytes(y[0], FromDoubles(dtype, {kRows, kColumns}, want)));
          return Status();
        }));
      }
    }
  }
}

TEST(MatmulAllReduce, QuantisedProducts) {
  ExpectAllOk(OnRanks(2, [](Communicator& group, DeviceMemory& memory) -> Status {
    const auto factors = [](int64_t n, double first) {
      std::vector<double> values;
      for (int64_t i = 0; i < n; ++i) values.push_back(first * static_cast<double>(i + 1));
      return FromDoubles(DataType::kFloat, {n}, values);
    };
    const Tensor columns = factors(kColumns, 0.5);
    const Tensor rows = factors(kRows, 2);
    OpCall call = Call("MatmulAllReduce", X1(DataType::kInt8, group.rank()),
                       X2(DataType::kInt8, group.rank()));
    call.inputs.push_back({"bias", Pattern(DataType::kInt32, {kColumns}, 1)});
    call.inputs.push_back({"dequant_scale", columns});
    call.inputs.push_back({"pertoken_scale", rows});
    call.attrs.push_back({"y_dtype", AttrValue::Int(0)});
    NPUMESH_ASSIGN_OR_RETURN(std::vector<Tensor> y, RunOnRank(BuiltinOps(), call, group, memory));
    std::vector<double> want(kRows * kColumns), alone(kRows * kColumns);
    for (int r = 0; r < 2; ++r) {
      const std::vector<double> part = Product(X1(DataType::kInt8, r), X2(DataType::kInt8, r));
      for (size_t i = 0; i < want.size(); ++i) {
        const double bias = ToDoubles(Pattern(DataType::kInt32, {kColumns}, 1))[i % kColumns];
        want[i] +=
            (part[i] + bias) * ToDoubles(columns)[i % kColumns] * ToDoubles(rows)[i / kColumns];
        alone[i] +=
            (part[i] + 3 * Product(X1(DataType::kInt8, r),
                                   FromDoubles(DataType::kInt8, {kInner, kColumns},
                                               std::vector<double>(kInner * kColumns, 1)))[i]) *
            ToDoubles(columns)[i % kColumns];
      }
    }
    EXPECT_TRUE(SameBytes(y[0], FromDoubles(DataType::kFloat, {kRows, kColumns}, want)));

    call = Call("MatmulAllReduce", X1(DataType::kFloat16, group.rank()),
                X2(DataType::kInt8, group.rank()));
    call.inputs.push_back(
        {"antiquant_scale", FromDoubles(DataType::kFloat16, {kColumns}, ToDoubles(columns))});
    call.inputs.push_back({"antiquant_offset", FromDoubles(DataType::kFloat16, {kColumns},
                                                           std::vector<double>(kColumns, 3))});
    NPUMESH_ASSIGN_OR_RETURN(y, RunOnRank(BuiltinOps(), call, group, memory));
    EXPECT_TRUE(SameBytes(y[0], FromDoubles(DataType::kFloat16, {kRows, kColumns}, alone)));
    return Status();
  }));
}

TEST(AllGatherMatmul, MultipliesTheRowsOfAll) {
  for (const DataType dtype : {DataType::kFloat16, DataType::kBfloat16}) {
    for (const bool gives : {false, true}) {
      ExpectAllOk(OnRanks(3, [&](Communicator& group, DeviceMemory& memory) -> Status {
        OpCall call =
            Call("AllGatherMatmul", X1(dtype, group.rank()), X2(dtype, group.rank(), true));
        call.attrs.push_back({"is_trans_b", AttrValue::Bool(true)});
        call.attrs.push_back({"rank_size", AttrValue::Int(3)});
        call.attrs.push_back({"is_gather_out", AttrValue::Bool(gives)});
        NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> out,
                                 RunOnRank(BuiltinOps(), call, group, memory));
        std::vector<double> gathered;
        for (int r = 0; r < 3; ++r) {
          const std::vector<double> part = ToDoubles(X1(dtype, r));
          gathered.insert(gathered.end(), part.begin(), part.end());
        }
        const Tensor all = FromDoubles(dtype, {3 * kRows, kInner}, gathered);
        const std::vector<double> want = Product(all, X2(dtype, group.rank(), true), false, true);
        EXPECT_TRUE(SameBytes(out[0], FromDoubles(dtype, {3 * kRows, kColumns}, want)));
        if (gives) {
          EXPECT_TRUE(SameBytes(out[1], all));
        }
        return Status();
      }));
    }
  }
}

TEST(MatmulReduceScatter, KeepsTheRowsOfTheRank) {
  for (const DataType dtype : {DataType::kFloat16, DataType::kBfloat16}) {
    ExpectAllOk(OnRanks(2, [&](Communicator& group, DeviceMemory& memory) -> Status {
      NPUMESH_ASSIGN_OR_RETURN(
          const std::vector<Tensor> out,
          RunOnRank(BuiltinOps(),
                    Call("MatmulReduceScatter", X1(dtype, group.rank()), X2(dtype, group.rank())),
                    group, memory));
      std::vector<double> want(kRows * kColumns);
      for (int r = 0; r < 2; ++r) {
        const std::vector<double> part = Product(X1(dtype, r), X2(dtype, r));
        for (size_t i = 0; i < want.size(); ++i) want[i] += part[i];
      }
      const auto half = static_cast<std::ptrdiff_t>(want.size() / 2);
      const std::vector<double> mine(want.begin() + group.rank() * half,
                                     want.begin() + (group.rank() + 1) * half);
      EXPECT_TRUE(SameBytes(out[0], FromDoubles(dtype, {kRows / 2, kColumns}, mine)));
      return Status();
    }));
  }
}

TEST(FusedMatmul, RefusesWhatDoesNotFit) {
  const auto message = [](const OpCall& call) {
    const std::vector<Status> statuses =
        OnRanks(3, [&](Communicator& group, DeviceMemory& memory) -> Status {
          return RunOnRank(BuiltinOps(), call, group, memory).status();
        });
    return std::string(statuses[0].message());
  };
  const Tensor x1 = X1(DataType::kFloat16, 0);
  EXPECT_THAT(message(Call("MatmulReduceScatter", x1, X2(DataType::kFloat16, 0))),
              testing::HasSubstr("4 rows of the product cannot be divided by the 3 ranks"));
  EXPECT_THAT(message(Call("AllGatherMatmul", x1, x1)), testing::HasSubstr("cannot be multiplied"));
  OpCall product = Call("MatmulAllReduce", x1, X2(DataType::kFloat16, 0));
  product.attrs.push_back({"reduce_op", AttrValue::String("max")});
  EXPECT_THAT(message(product), testing::HasSubstr("\"max\", expected sum"));
  OpCall size = Call("AllGatherMatmul", x1, X2(DataType::kFloat16, 0));
  size.attrs.push_back({"rank_size", AttrValue::Int(2)});
  EXPECT_THAT(message(size), testing::HasSubstr("rank_size 2, but group \"ranks\" has 3 ranks"));
}

}  // namespace
}  // namespace npumesh
