// Gating, routing and finalising of experts against plain sorts and sums.
#include <numeric>

#include "tests/unit/op_values.h"
#include "tests/unit/ops/moe/moe_values.h"

namespace npumesh {
namespace {

std::vector<Tensor> MustRun(const OpCall& call, size_t outputs) {
  const Result<std::vector<Tensor>> out = RunOp(call);
  EXPECT_TRUE(out.ok()) << out.status().ToString();
  return out.ok() ? *out : std::vector<Tensor>(outputs);
}

std::vector<double> SoftmaxOf(std::vector<double> x) {
  const double most = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (double& value : x) sum += value = std::exp(value - most);
  for (double& value : x) value /= sum;
  return x;
}

// Indices of the k largest, the first of equal ones.
std::vector<int32_t> Largest(const std::vector<double>& x, size_t k) {
  std::vector<int32_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return x[static_cast<size_t>(a)] > x[static_cast<size_t>(b)];
  });
  order.resize(k);
  return order;
}

void ExpectNear(const Tensor& got, const std::vector<double>& want) {
  const std::vector<double> values = ToDoubles(got);
  ASSERT_EQ(values.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(values[i], want[i], 0.51 * Ulp(got.dtype(), want[i]) + 1e-6) << i;
  }
}

// ---- gating ----

// Rows with ties among their values.
Tensor Scores(DataType dtype) {
  return FromDoubles(dtype, {3, 8}, {1, 3,  -2, 3, 0.5, 0,  3, 2,  //
                                     0, 0,  0,  0, 0,   0,  0, 0,  //
                                     5, -1, 4,  1, 2.5, -3, 0, 1});
}

TEST(MoeGatingTopKSoftmax, TakesTheLargest) {
  for (const DataType dtype : {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16}) {
    const std::vector<double> x = ToDoubles(Scores(dtype));
    std::vector<double> y;
    std::vector<int32_t> ids, rows;
    for (int32_t r = 0; r < 3; ++r) {
      const std::vector<double> p = SoftmaxOf({x.begin() + r * 8, x.begin() + r * 8 + 8});
      const std::vector<int32_t> chosen = Largest(p, 3);
      for (int32_t j = 0; j < 3; ++j) {
        y.push_back(p[static_cast<size_t>(chosen[static_cast<size_t>(j)])]);
        ids.push_back(r == 1 ? 8 : chosen[static_cast<size_t>(j)]);
        rows.push_back(j * 3 + r);
      }
    }
    const std::vector<Tensor> out =
        MustRun({.type = "MoeGatingTopKSoftmax",
                 .inputs = {{"x", Scores(dtype)},
                            {"finished", Make<uint8_t>(DataType::kBool, {3}, {0, 1, 0})}},
                 .attrs = {{"k", AttrValue::Int(3)}}},
                3);
    ExpectNear(out[0], y);
    EXPECT_TRUE(SameBytes(out[1], Ints({3, 3}, ids)));
    EXPECT_TRUE(SameBytes(out[2], Ints({3, 3}, rows)));
  }
}

TEST(MoeGatingTopKSoftmaxV2, NormalisesBeforeOrBehind) {
  const std::vector<double> x = ToDoubles(Scores(DataType::kFloat));
  for (const int64_t renorm : {0, 1}) {
    std::vector<double> y, all;
    for (int r = 0; r < 3; ++r) {
      const std::vector<double> row(x.begin() + r * 8, x.begin() + r * 8 + 8);
      const std::vector<double> p = SoftmaxOf(row);
      std::vector<double> chosen;
      for (const int32_t id : Largest(row, 2)) {
        chosen.push_back((renorm == 1 ? row : p)[static_cast<size_t>(id)]);
      }
      if (renorm == 1) chosen = SoftmaxOf(chosen);
      y.insert(y.end(), chosen.begin(), chosen.end());
      all.insert(all.end(), p.begin(), p.end());
    }
    for (const bool flag : {true, false}) {
      const std::vector<Tensor> out =
          MustRun({.type = "MoeGatingTopKSoftmaxV2",
                   .inputs = {{"x", Scores(DataType::kFloat)}},
                   .attrs = {{"k", AttrValue::Int(2)},
                             {"renorm", AttrValue::Int(renorm)},
                             {"output_softmax_result_flag", AttrValue::Bool(flag)}}},
                  3);
      ExpectNear(out[0], y);
      if (flag && renorm == 0) {
        ExpectNear(out[2], all);
      } else {
        EXPECT_EQ(out[2].type(), (TensorType{DataType::kFloat, {0}}));
      }
    }
  }
}

TEST(MoeGatingTopK, NormsGroupsAndScales) {
  const std::vector<double> x = ToDoubles(Scores(DataType::kFloat));
  // No two groups score the same: rounding must not decide.
  const std::vector<double> bias = {0.125, -0.5, 0.25, 0, 0.5, -0.125, 0, 0.75};
  for (const int64_t norm : {0, 1, 2}) {
    for (const int64_t mode : {0, 1}) {
      for (const int64_t groups : {1, 4}) {
        std::vector<double> y, all;
        std::vector<int32_t> ids;
        for (int r = 0; r < 3; ++r) {
          std::vector<double> n(x.begin() + r * 8, x.begin() + r * 8 + 8);
          if (norm == 0) n = SoftmaxOf(n);
          for (double& v : n) {
            if (norm == 1) v = 1 / (1 + std::exp(-v));
            if (norm == 2) v = std::sqrt(std::log(1 + std::exp(v)));
          }
          std::vector<double> s(8);
          for (size_t i = 0; i < 8; ++i) s[i] = n[i] + bias[i];
          if (groups == 4) {
            std::vector<double> score;
            for (size_t g = 0; g < 4; ++g) {
              score.push_back(mode == 0 ? std::max(s[2 * g], s[2 * g + 1])
                                        : s[2 * g] + s[2 * g + 1]);
            }
            const std::vector<int32_t> kept = Largest(score, 2);
            for (size_t i = 0; i < 8; ++i) {
              const bool keeps = std::count(kept.begin(), kept.end(), static_cast<int>(i / 2)) > 0;
              if (!keeps) s[i] = -1e30;
            }
          }
          double sum = 0;
          const std::vector<int32_t> chosen = Largest(s, 3);
          for (const int32_t id : chosen) sum += n[static_cast<size_t>(id)];
          for (const int32_t id : chosen) {
            ids.push_back(id);
            y.push_back(n[static_cast<size_t>(id)] / (norm == 0 ? 1 : sum) * 2.5);
          }
          all.insert(all.end(), n.begin(), n.end());
        }
        const std::vector<Tensor> out =
            MustRun({.type = "MoeGatingTopK",
                     .inputs = {{"x", Scores(DataType::kFloat)},
                                {"bias", FromDoubles(DataType::kFloat, {8}, bias)}},
                     .attrs = {{"k", AttrValue::Int(3)},
                               {"group_count", AttrValue::Int(groups)},
                               {"k_group", AttrValue::Int(groups == 1 ? 1 : 2)},
                               {"group_select_mode", AttrValue::Int(mode)},
                               {"norm_type", AttrValue::Int(norm)},
                               {"out_flag", AttrValue::Bool(true)},
                               {"routed_scaling_factor", AttrValue::Float(2.5f)}}},
                    3);
        ExpectNear(out[0], y);
        EXPECT_EQ(ToDoubles(out[1]), std::vector<double>(ids.begin(), ids.end()))
            << "norm " << norm << " mode " << mode << " groups " << groups;
        ExpectNear(out[2], all);
      }
    }
  }
}

TEST(MoeGating, RefusesWhatDoesNotFit) {
  OpCall call{.type = "MoeGatingTopK",
              .inputs = {{"x", Pattern(DataType::kFloat, {2, 4})}},
              .attrs = {{"k", AttrValue::Int(5)}}};
  ExpectFails(call, Code::kInvalidArgument, {"k 5", "[2,4]"});
  call.attrs = {{"k", AttrValue::Int(2)}, {"group_count", AttrValue::Int(3)}};
  ExpectFails(call, Code::kInvalidArgument, {"1 of 3 groups", "4 experts"});
  call.attrs = {{"k", AttrValue::Int(2)}};
  call.inputs.push_back({"bias", Pattern(DataType::kFloat, {3})});
  ExpectFails(call, Code::kInvalidArgument, {"bias is float32[3]", "4 elements"});
}

// ---- routing ----

OpCall Routing(std::vector<std::pair<std::string, AttrValue>> attrs) {
  attrs.push_back({"expert_num", AttrValue::Int(4)});
  attrs.push_back({"expert_tokens_num_flag", AttrValue::Bool(true)});
  return {.type = "MoeInitRoutingV3",
          .inputs = {{"x", FromDoubles(DataType::kFloat16, {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})},
                     {"expert_idx", Ints({4, 2}, kIds)}},
          .attrs = std::move(attrs)};
}

TEST(MoeInitRoutingV3, SortsTokensByExpert) {
  // Experts 0: positions 1, 5; 1: 2, 7; 2: 0, 3, 6; 3: 4. Token: position / 2.
  OpCall call = Routing({{"expert_tokens_num_type", AttrValue::Int(1)}});
  std::vector<Tensor> out = MustRun(call, 4);
  EXPECT_EQ(ToDoubles(out[0]),
            (std::vector<double>{1, 2, 5, 6, 3, 4, 7, 8, 1, 2, 3, 4, 7, 8, 5, 6}));
  EXPECT_TRUE(SameBytes(out[1], Ints({8}, {4, 0, 2, 5, 7, 1, 6, 3})));
  EXPECT_TRUE(SameBytes(out[2], MakeInts({2, 2, 3, 1})));
  EXPECT_EQ(ToDoubles(out[3]), (std::vector<double>(8, 0)));

  call.attrs.push_back({"row_idx_type", AttrValue::Int(1)});
  call.attrs[0] = {"expert_tokens_num_type", AttrValue::Int(0)};
  call.inputs.push_back({"scale", FromDoubles(DataType::kFloat, {4}, {10, 20, 30, 40})});
  out = MustRun(call, 4);
  EXPECT_TRUE(SameBytes(out[1], Ints({8}, {1, 5, 2, 7, 0, 3, 6, 4})));
  EXPECT_TRUE(SameBytes(out[2], MakeInts({2, 4, 7, 8})));
  EXPECT_EQ(ToDoubles(out[3]), (std::vector<double>{10, 30, 20, 40, 10, 20, 40, 30}));
}

TEST(MoeInitRoutingV3, ActiveExpertsOnly) {
  OpCall call = Routing({{"active_expert_range", AttrValue::Ints({1, 3})},
                         {"expert_tokens_num_type", AttrValue::Int(2)}});
  std::vector<Tensor> out = MustRun(call, 4);
  EXPECT_EQ(ToDoubles(out[0]),
            (std::vector<double>{3, 4, 7, 8, 1, 2, 3, 4, 7, 8, 0, 0, 0, 0, 0, 0}));
  EXPECT_TRUE(SameBytes(out[1], Ints({8}, {2, -1, 0, 3, -1, -1, 4, 1})));
  EXPECT_TRUE(SameBytes(out[2], Make<int64_t>(DataType::kInt64, {4, 2}, {1, 2, 2, 3, 0, 0, 0, 0})));
  // By row the positions of the others follow: expert 3, then expert 0, which is before the range.
  call.attrs.push_back({"row_idx_type", AttrValue::Int(1)});
  out = MustRun(call, 4);
  EXPECT_TRUE(SameBytes(out[1], Ints({8}, {2, 7, 0, 3, 6, 4, 1, 5})));
}

TEST(MoeInitRoutingV3, DropsWhatIsAboveTheCapacity) {
  OpCall call =
      Routing({{"drop_pad_mode", AttrValue::Int(1)}, {"expert_capacity", AttrValue::Int(2)}});
  const std::vector<Tensor> out = MustRun(call, 4);
  EXPECT_EQ(out[0].shape(), (Shape{4, 2, 2}));
  EXPECT_EQ(ToDoubles(out[0]),
            (std::vector<double>{1, 2, 5, 6, 3, 4, 7, 8, 1, 2, 3, 4, 5, 6, 0, 0}));
  EXPECT_TRUE(SameBytes(out[1], Ints({8}, {4, 0, 2, 5, 6, 1, -1, 3})));
  call = Routing({{"active_num", AttrValue::Int(3)}});
  EXPECT_EQ(ToDoubles(MustRun(call, 4)[0]), (std::vector<double>{1, 2, 5, 6, 3, 4}));
}

TEST(MoeInitRoutingV3, Quantises) {
  OpCall call = Routing({{"quant_mode", AttrValue::Int(1)}});
  call.inputs.push_back({"scale", FromDoubles(DataType::kFloat, {4, 2},  //
                                              {1, 1, 2, 0, 1, -1, 0, 0})});
  std::vector<Tensor> out = MustRun(call, 4);
  EXPECT_EQ(ToDoubles(out[0]), (std::vector<double>{64, 127, 106, 127, 127, 0, 127, 0,  //
                                                    64, -127, 95, -127, 111, -127, 0, 0}));
  const std::vector<double> scales = {2, 6, 6, 14, 2, 4, 8, 0};
  for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(ToDoubles(out[3])[i], scales[i] / 127, 1e-7);

  call = Routing({{"quant_mode", AttrValue::Int(0)}});
  call.inputs.push_back({"scale", FromDoubles(DataType::kFloat, {1}, {20})});
  call.inputs.push_back({"offset", FromDoubles(DataType::kFloat, {1}, {-5})});
  out = MustRun(call, 4);
  EXPECT_EQ(out[0].dtype(), DataType::kInt8);
  EXPECT_EQ(ToDoubles(out[0])[1], 35);
  EXPECT_EQ(ToDoubles(out[0])[7], 127);
}

TEST(MoeInitRoutingV3, RefusesWhatDoesNotFit) {
  OpCall call = Routing({});
  call.inputs[1].value = Ints({4, 2}, {2, 0, 1, 4, 3, 0, 2, 1});
  ExpectFails(call, Code::kInvalidArgument, {"holds 4", "token 1"});
  call.inputs[1].value = Ints({3, 2}, {0, 0, 0, 0, 0, 0});
  ExpectFails(call, Code::kInvalidArgument, {"[3,2]"});
  ExpectFails(Routing({{"quant_mode", AttrValue::Int(3)}}), Code::kUnsupported, {"quant_mode 3"});
  ExpectFails(Routing({{"active_expert_range", AttrValue::Ints({3, 2})}}), Code::kInvalidArgument,
              {"active_expert_range"});
  // Its lists used to end the process.
  call = Routing({});
  call.attrs = {{"expert_num", AttrValue::Int(int64_t{1} << 60)}};
  ExpectFails(call, Code::kOutOfMemory, {"1152921504606846976 entries"});
}

TEST(MoeComputeExpertTokens, CountsUpToEachExpert) {
  const Tensor out = MustRun({.type = "MoeComputeExpertTokens",
                              .inputs = {{"sorted_experts", Ints({5}, {0, 0, 2, 2, 4})}},
                              .attrs = {{"num_experts", AttrValue::Int(6)}}},
                             1)[0];
  EXPECT_TRUE(SameBytes(out, Ints({6}, {2, 2, 4, 4, 5, 5})));
}

TEST(MoeReRouting, OrdersByExpertThenRank) {
  // Rank 0 has 1, 0 and 2 tokens for the experts, rank 1 has 2, 1 and 0; one row is of no expert.
  OpCall call{.type = "MoeReRouting",
              .inputs = {{"tokens", FromDoubles(DataType::kInt8, {7, 1}, {0, 1, 2, 3, 4, 5, 6})},
                         {"expert_token_num_per_rank",
                          Make<int64_t>(DataType::kInt64, {2, 3}, {1, 0, 2, 2, 1, 0})},
                         {"per_token_scales",
                          FromDoubles(DataType::kFloat, {7}, {0, 10, 20, 30, 40, 50, 60})}}};
  std::vector<Tensor> out = MustRun(call, 4);
  EXPECT_EQ(ToDoubles(out[0]), (std::vector<double>{0, 3, 4, 5, 1, 2, 0}));
  EXPECT_EQ(ToDoubles(out[1]), (std::vector<double>{0, 30, 40, 50, 10, 20, 0}));
  EXPECT_EQ(ToDoubles(out[2]), (std::vector<double>{0, 3, 4, 5, 1, 2, 0}));
  EXPECT_TRUE(SameBytes(out[3], MakeInts({3, 1, 2})));
  call.attrs = {{"expert_token_num_type", AttrValue::Int(0)}};
  EXPECT_TRUE(SameBytes(MustRun(call, 4)[3], MakeInts({3, 4, 6})));
  call.inputs[1].value = Make<int64_t>(DataType::kInt64, {2, 3}, {1, 0, 2, 2, 3, 0});
  ExpectFails(call, Code::kInvalidArgument, {"3 tokens of rank 1 for expert 1", "2 of 7"});
  // A scalar used to be read past its end.
  for (const Shape& scales : {Shape(), Shape({6})}) {
    call.inputs[2].value = Tensor::Allocate({DataType::kFloat, scales});
    ExpectFails(call, Code::kInvalidArgument, {"per_token_scales", scales.ToString()});
  }
}

// ---- finalising ----

TEST(MoeFinalizeRouting, SumsTheChoices) {
  for (const int64_t mode : {0, 1, 2, 3}) {
    const Tensor expanded =
        FromDoubles(DataType::kFloat, {6, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
    const std::vector<int32_t> map = {5, 0, mode % 2 == 1 ? -1 : 2, 4, 1, 3};  // by (token, choice)
    const std::vector<int32_t> experts = {0, 1, 1, 2, 2, 0};
    const std::vector<double> weights = {0.5, 2, 1, -1, 0.25, 4};
    const std::vector<double> bias = {100, 200, 300, 400, 500, 600};
    std::vector<double> want;
    for (size_t i = 0; i < 3; ++i) {
      for (size_t d = 0; d < 2; ++d) {
        double sum = 1000.0 * double(i) + 10.0 * double(d);
        for (size_t j = 0; j < 2; ++j) {
          const int32_t row = map[i * 2 + j];
          if (row < 0) continue;
          sum += weights[i * 2 + j] * (ToDoubles(expanded)[static_cast<size_t>(row) * 2 + d] +
                                       bias[static_cast<size_t>(experts[i * 2 + j]) * 2 + d]);
        }
        want.push_back(sum);
      }
    }
    std::vector<int32_t> stored = map;
    for (size_t i = 0; mode < 2 && i < 3; ++i) {
      for (size_t j = 0; j < 2; ++j) stored[j * 3 + i] = map[i * 2 + j];
    }
    OpCall call{
        .type = "MoeFinalizeRoutingV2",
        .inputs = {{"expanded_x", expanded},
                   {"expanded_row_idx", Ints({6}, stored)},
                   {"x1", FromDoubles(DataType::kFloat, {3, 2}, {0, 0, 1000, 1000, 2000, 2000})},
                   {"x2", FromDoubles(DataType::kFloat, {3, 2}, {0, 10, 0, 10, 0, 10})},
                   {"bias", FromDoubles(DataType::kFloat, {3, 2}, bias)},
                   {"scales", FromDoubles(DataType::kFloat, {3, 2}, weights)},
                   {"expert_idx", Ints({3, 2}, experts)}},
        .attrs = {{"drop_pad_mode", AttrValue::Int(mode)}}};
    EXPECT_EQ(ToDoubles(MustRun(call, 1)[0]), want) << mode;
    if (mode == 0) {
      call.type = "MoeFinalizeRouting";
      call.inputs.back().port = "expanded_expert_idx";
      call.attrs.clear();
      EXPECT_EQ(ToDoubles(MustRun(call, 1)[0]), want);
    }
  }
}

TEST(MoeFinalizeRouting, RefusesWhatDoesNotFit) {
  OpCall call{.type = "MoeFinalizeRoutingV2",
              .inputs = {{"expanded_x", Pattern(DataType::kFloat, {4, 2})},
                         {"expanded_row_idx", Ints({4}, {0, 1, 2, 4})},
                         {"scales", Pattern(DataType::kFloat, {2, 2})}}};
  ExpectFails(call, Code::kInvalidArgument, {"row 4", "there are 4"});
  call.inputs.push_back({"bias", Pattern(DataType::kFloat, {2, 2})});
  ExpectFails(call, Code::kInvalidArgument, {"do not belong"});
}

}  // namespace
}  // namespace npumesh
