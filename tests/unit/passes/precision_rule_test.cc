// The table of precision_mode, and the classes of operators.
#include "graph/passes/rewrite/precision_rule.h"

#include <gmock/gmock.h>

#include "graph/ops/builtin_ops.h"

namespace npumesh {
namespace {

using testing::HasSubstr;

constexpr DataType kFloat = DataType::kFloat, kHalf = DataType::kFloat16,
                   kBrain = DataType::kBfloat16;

PrecisionClass ClassOf(const char* type, const PrecisionRule& rule) {
  const Operator* const op = BuiltinOps().Find(type);
  EXPECT_NE(op, nullptr) << type;
  return op == nullptr ? PrecisionClass::kGrey : rule.ClassOf(*op);
}

TEST(PrecisionRule, FirstChoices) {
  struct Row {
    const char* mode;
    DataType lowered[3], others[3];  // for float32, float16, bfloat16
  };
  const Row rows[] = {
      {"must_keep_origin_dtype", {kFloat, kHalf, kBrain}, {kFloat, kHalf, kBrain}},
      {"allow_fp32_to_fp16", {kHalf, kHalf, kBrain}, {kFloat, kHalf, kBrain}},
      {"force_fp16", {kHalf, kHalf, kHalf}, {kHalf, kHalf, kHalf}},
      {"force_fp32", {kFloat, kFloat, kFloat}, {kFloat, kFloat, kFloat}},
      {"cube_fp16in_fp32out", {kFloat, kFloat, kFloat}, {kFloat, kFloat, kFloat}},
      {"allow_mix_precision", {kHalf, kHalf, kHalf}, {kFloat, kHalf, kBrain}},
      {"allow_mix_precision_fp16", {kHalf, kHalf, kHalf}, {kFloat, kHalf, kBrain}},
      {"allow_mix_precision_bf16", {kBrain, kHalf, kBrain}, {kFloat, kHalf, kBrain}},
      {"allow_fp32_to_bf16", {kFloat, kHalf, kBrain}, {kFloat, kHalf, kBrain}},
  };
  for (const Row& row : rows) {
    const Result<PrecisionRule> rule = PrecisionRule::Of(row.mode);
    ASSERT_TRUE(rule.ok()) << rule.status().ToString();
    EXPECT_EQ(rule->mode(), row.mode);
    EXPECT_FALSE(rule->keeps_all());
    const DataType declared[] = {kFloat, kHalf, kBrain};
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(rule->Preferred(declared[i], true)[0], row.lowered[i]) << row.mode << i;
      EXPECT_EQ(rule->Preferred(declared[i], false)[0], row.others[i]) << row.mode << i;
    }
  }
}

TEST(PrecisionRule, KeepsAllWithoutAMode) {
  EXPECT_TRUE(PrecisionRule().keeps_all());
  EXPECT_FALSE(PrecisionRule().mixed());
}

TEST(PrecisionRule, RefusesOtherWords) {
  for (const char* mode : {"", "fp16", "Force_fp16"}) {
    EXPECT_THAT(std::string(PrecisionRule::Of(mode).status().message()), HasSubstr("is no mode"));
  }
}

TEST(PrecisionRule, OperatorsSayTheirClass) {
  const PrecisionRule rule = PrecisionRule::Of("allow_mix_precision").value();
  for (const char* type : {"MatMul", "BatchMatMulV2", "FullyConnection", "Conv2D", "Conv3D",
                           "FlashAttentionScore", "PromptFlashAttention"}) {
    EXPECT_EQ(ClassOf(type, rule), PrecisionClass::kWhite) << type;
  }
  for (const char* type : {"SoftmaxV2", "LogSoftmaxV2", "RmsNorm", "LayerNormV4", "BatchNorm",
                           "GroupNorm", "Exp", "Log", "Pow", "ReduceSum", "ReduceMeanD", "Cumsum",
                           "MseLoss", "NLLLoss", "MoeGatingTopKSoftmax", "LogAddExp"}) {
    EXPECT_EQ(ClassOf(type, rule), PrecisionClass::kBlack) << type;
  }
  for (const char* type : {"Add", "Mul", "Relu", "Gelu", "Reshape", "Transpose", "ConcatV2",
                           "Gather", "GatherV2", "ReduceMax", "AvgPool", "RotaryMul", "Identity"}) {
    if (BuiltinOps().Find(type) == nullptr) continue;
    EXPECT_EQ(ClassOf(type, rule), PrecisionClass::kGrey) << type;
  }
  for (const char* type : {"Cast", "AscendQuantV2", "DynamicQuant", "QuantBatchMatmulV3"}) {
    EXPECT_EQ(ClassOf(type, rule), PrecisionClass::kKept) << type;
  }
}

TEST(PrecisionRule, ListsCountInMixedPrecisionAlone) {
  const std::map<std::string, PrecisionClass, std::less<>> lists = {
      {"MatMul", PrecisionClass::kBlack}, {"Cast", PrecisionClass::kWhite}};
  const PrecisionRule mixed = PrecisionRule::Of("allow_mix_precision_bf16", lists).value();
  EXPECT_TRUE(mixed.mixed());
  EXPECT_EQ(ClassOf("MatMul", mixed), PrecisionClass::kBlack);
  EXPECT_EQ(ClassOf("Cast", mixed), PrecisionClass::kKept);
  const PrecisionRule other = PrecisionRule::Of("allow_fp32_to_fp16", lists).value();
  EXPECT_FALSE(other.mixed());
  EXPECT_EQ(ClassOf("MatMul", other), PrecisionClass::kWhite);
}

}  // namespace
}  // namespace npumesh
