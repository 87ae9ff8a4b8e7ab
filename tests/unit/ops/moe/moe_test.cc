// Gating, routing and finalising of experts against plain sorts and sums.
// MoeInitRouting and MoeInitRoutingV2 against the definitions, row by row.
#include <numeric>

#include "tests/unit/op_values.h"
#include "tests/unit/ops/collective/group_types.h"
#include "tests/unit/ops/moe/moe_values.h"

namespace npumesh {
namespace {

using testing::ElementsAre;

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

// ---- routing ----

OpCall Routing(std::vector<std::pair<std::string, AttrValue>> attrs) {
  attrs.push_back({"expert_num", AttrValue::Int(4)});
  attrs.push_back({"expert_tokens_num_flag", AttrValue::Bool(true)});
  return {.type = "MoeInitRoutingV3",
          .inputs = {{"x", FromDoubles(DataType::kFloat16, {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})},
                     {"expert_idx", Ints({4, 2}, kIds)}},
          .attrs = std::move(attrs)};
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

TEST(MoeInitRoutingV2, TypesWithUnknownDimensions) {
  const auto types = [](Shape x, Shape ids, const Attrs& attrs) {
    return TypesIn(
        1, 0, "MoeInitRoutingV2",
        {{"x", DataType::kFloat16, std::move(x)}, {"expert_idx", DataType::kInt32, std::move(ids)}},
        attrs);
  };
  EXPECT_THAT(types({-1, 8}, {-1, 2}, {}),
              ElementsAre("float16[-1,8]", "int32[-1]", "int32[0]", "int32[0]"));
  EXPECT_THAT(types({-1, 8}, {-1, 2},
                    {{"drop_pad_mode", AttrValue::Int(1)},
                     {"expert_capacity", AttrValue::Int(3)},
                     {"expert_num", AttrValue::Int(4)}}),
              ElementsAre("float16[4,3,8]", "int32[-1]", "int32[0]", "int32[0]"));
  EXPECT_THAT(types(Shape::UnknownRank(), {5, 2}, {})[1], "int32[-1]");
}

}  // namespace
}  // namespace npumesh
