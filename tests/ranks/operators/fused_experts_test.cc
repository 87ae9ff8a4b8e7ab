// AlltoAllvGroupedMatMul and GroupedMatMulAlltoAllv over ranks, and both with 8-bit operands, on
// integers small enough that every sum is exact. Experts are uneven, and one has no rows.
#include <gtest/gtest.h>

#include "tests/ranks/operators/fused_reference.h"

namespace npumesh {
namespace {

// Rows that rank `from` sends to expert `expert` of rank `to`: uneven, none for the expert 1 of
// rank 0, whose rank's other experts get many.
int64_t Load(int from, int to, int64_t expert) {
  if (to == 0) return expert == 1 ? 0 : 3 + from;
  return (from + 2 * to + expert) % 3;
}

// Rows for an expert, different for each pair.
Matrix LoadRows(int from, int to, int64_t expert, int64_t columns) {
  return Numbers(Load(from, to, expert), columns, from + 3 * to + static_cast<int>(expert));
}

Matrix Weights(int rank, int64_t expert) {
  return Numbers(kWeightRows, kWeightColumns, 11 + rank + 2 * static_cast<int>(expert));
}

// The weights of all experts of a rank, one below the other.
Tensor AllWeights(DataType dtype, int rank, int64_t experts, bool turned) {
  Matrix all;
  for (int64_t e = 0; e < experts; ++e) {
    Append(all, turned ? Transposed(Weights(rank, e)) : Weights(rank, e));
  }
  return FromDoubles(dtype, {experts, all.rows / experts, all.columns}, all.values);
}

struct ExpertCase {
  int ranks = 2;
  int64_t experts = 3;  // of each rank
  bool turned = false;
};

// Counts of one rank, by the other rank and its or this rank's experts.
std::vector<int64_t> Counts(const ExpertCase& c, int rank, bool to_experts) {
  std::vector<int64_t> counts;
  for (int other = 0; other < c.ranks; ++other) {
    for (int64_t e = 0; e < c.experts; ++e) {
      counts.push_back(to_experts ? Load(rank, other, e) : Load(other, rank, e));
    }
  }
  return counts;
}

std::vector<std::pair<std::string, AttrValue>> ExpertAttrs(const ExpertCase& c, int rank,
                                                           bool first) {
  return {{"ep_world_size", AttrValue::Int(c.ranks)},
          {"send_counts", AttrValue::Ints(Counts(c, rank, first))},
          {"recv_counts", AttrValue::Ints(Counts(c, rank, !first))},
          {"trans_gmm_weight", AttrValue::Bool(c.turned)}};
}

const ExpertCase kExpertCases[] = {{2, 3, false}, {4, 2, true}, {2, 10, false}, {4, 1, false}};

TEST(AlltoAllvGroupedMatMul, RowsReachTheirExperts) {
  for (const ExpertCase& c : kExpertCases) {
    for (const DataType dtype : kFloatTypes) {
      ExpectAllOk(OnRanks(c.ranks, [&](Communicator& group, DeviceMemory& memory) -> Status {
        const int me = group.rank();
        Matrix x, sorted, want;
        x.columns = sorted.columns = kWeightRows;
        want.columns = kWeightColumns;
        for (int to = 0; to < c.ranks; ++to) {
          for (int64_t e = 0; e < c.experts; ++e) Append(x, LoadRows(me, to, e, kWeightRows));
        }
        for (int64_t e = 0; e < c.experts; ++e) {
          for (int from = 0; from < c.ranks; ++from) {
            const Matrix rows = LoadRows(from, me, e, kWeightRows);
            Append(sorted, rows);
            Append(want, Times(rows, Weights(me, e)));
          }
        }
        OpCall call = GroupCall("AlltoAllvGroupedMatMul",
                                {{"gmm_x", ToTensor(dtype, x)},
                                 {"gmm_weight", AllWeights(dtype, me, c.experts, c.turned)},
                                 {"mm_x", ToTensor(dtype, Numbers(4, 6, me))},
                                 {"mm_weight", ToTensor(dtype, Numbers(2, 6, 5))}},
                                ExpertAttrs(c, me, true));
        call.attrs.push_back({"trans_mm_weight", AttrValue::Bool(true)});
        call.attrs.push_back({"permute_out_flag", AttrValue::Bool(c.turned)});
        NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> out,
                                 RunOnRank(BuiltinOps(), call, group, memory));
        EXPECT_TRUE(SameBytes(out[0], ToTensor(dtype, want)));
        EXPECT_TRUE(SameBytes(
            out[1], ToTensor(dtype, Times(Numbers(4, 6, me), Transposed(Numbers(2, 6, 5))))));
        if (c.turned) {
          EXPECT_TRUE(SameBytes(out[2], ToTensor(dtype, sorted)));
        } else {
          EXPECT_EQ(out[2].shape(), Shape{0});
        }
        return Status();
      }));
    }
  }
}

TEST(GroupedMatMulAlltoAllv, ResultsComeBackToTheirRows) {
  for (const ExpertCase& c : kExpertCases) {
    for (const DataType dtype : kFloatTypes) {
      ExpectAllOk(OnRanks(c.ranks, [&](Communicator& group, DeviceMemory& memory) -> Status {
        const int me = group.rank();
        Matrix x, want;
        x.columns = kWeightRows;
        want.columns = kWeightColumns;
        for (int64_t e = 0; e < c.experts; ++e) {
          for (int to = 0; to < c.ranks; ++to) Append(x, LoadRows(to, me, e, kWeightRows));
        }
        for (int from = 0; from < c.ranks; ++from) {
          for (int64_t e = 0; e < c.experts; ++e) {
            Append(want, Times(LoadRows(me, from, e, kWeightRows), Weights(from, e)));
          }
        }
        const OpCall call = GroupCall("GroupedMatMulAlltoAllv",
                                      {{"gmm_x", ToTensor(dtype, x)},
                                       {"gmm_weight", AllWeights(dtype, me, c.experts, c.turned)}},
                                      ExpertAttrs(c, me, false));
        NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> out,
                                 RunOnRank(BuiltinOps(), call, group, memory));
        EXPECT_TRUE(SameBytes(out[0], ToTensor(dtype, want)));
        EXPECT_EQ(out[1].shape(), Shape{0});
        return Status();
      }));
    }
  }
}

// One scale for each tensor, int8; fused_quant_test has the other 8-bit types of the same product.
TEST(QuantGroupedMatMul, ScalesTheProducts) {
  const ExpertCase c = {2, 3, false};
  for (const bool first : {true, false}) {
    ExpectAllOk(OnRanks(c.ranks, [&](Communicator& group, DeviceMemory& memory) -> Status {
      const int me = group.rank();
      Matrix x, want;
      x.columns = kWeightRows;
      want.columns = kWeightColumns;
      for (int64_t i = 0; i < c.experts * c.ranks; ++i) {
        const int64_t e = first ? i % c.experts : i / c.ranks;
        const int other = static_cast<int>(first ? i / c.experts : i % c.ranks);
        Append(x,
               first ? LoadRows(me, other, e, kWeightRows) : LoadRows(other, me, e, kWeightRows));
      }
      for (int64_t i = 0; i < c.experts * c.ranks; ++i) {
        const int64_t e = first ? i / c.ranks : i % c.experts;
        const int other = static_cast<int>(first ? i % c.ranks : i / c.experts);
        Append(want, first ? Times(LoadRows(other, me, e, kWeightRows), Weights(me, e))
                           : Times(LoadRows(me, other, e, kWeightRows), Weights(other, e)));
      }
      for (double& value : want.values) value *= 0.5 * 4;
      const auto scale = [](double value) { return FromDoubles(DataType::kFloat, {1}, {value}); };
      OpCall call = GroupCall(first ? "AlltoAllvQuantGroupedMatMul" : "QuantGroupedMatMulAlltoAllv",
                              {{"gmm_x", ToTensor(DataType::kInt8, x)},
                               {"gmm_weight", AllWeights(DataType::kInt8, me, c.experts, false)},
                               {"gmm_x_scale", scale(0.5)},
                               {"gmm_weight_scale", scale(4)}},
                              ExpertAttrs(c, me, first));
      call.attrs.push_back({"gmm_x_quant_mode", AttrValue::Int(1)});
      call.attrs.push_back({"gmm_weight_quant_mode", AttrValue::Int(1)});
      call.attrs.push_back({"y_dtype", AttrValue::Int(27)});
      NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> out,
                               RunOnRank(BuiltinOps(), call, group, memory));
      EXPECT_TRUE(SameBytes(out[0], ToTensor(DataType::kBfloat16, want)));
      return Status();
    }));
  }
}

// What one rank sends is not what the other waits for.
TEST(AlltoAllvGroupedMatMul, RanksCompareTheirCounts) {
  const std::vector<Status> statuses =
      OnRanks(2, [&](Communicator& group, DeviceMemory& memory) -> Status {
        const std::vector<int64_t> sent =
            group.rank() == 0 ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{2, 1};
        const OpCall call = GroupCall(
            "AlltoAllvGroupedMatMul",
            {{"gmm_x", ToTensor(DataType::kFloat16, Numbers(3, kWeightRows, 0))},
             {"gmm_weight", FromDoubles(DataType::kFloat16, {1, kWeightRows, kWeightColumns},
                                        Numbers(kWeightRows, kWeightColumns, 1).values)}},
            {{"ep_world_size", AttrValue::Int(2)},
             {"send_counts", AttrValue::Ints(sent)},
             {"recv_counts", AttrValue::Ints({1, 1})}});
        return RunOnRank(BuiltinOps(), call, group, memory).status();
      });
  for (const Status& status : statuses) EXPECT_FALSE(status.ok());
}

}  // namespace
}  // namespace npumesh
