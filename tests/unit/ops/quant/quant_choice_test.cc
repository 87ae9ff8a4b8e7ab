// How the sums of a quantised product are formed, and each reason why its weights are not packed.
// Where the processor decides, both answers are right.
#include "tests/unit/op_test.h"
#include "tests/unit/op_types.h"
#include "tests/unit/ops/quant/quant_values.h"

namespace npumesh {
namespace {

using testing::AnyOf;

OpCall Product(const Tensor& x1, const Tensor& x2, Known known) {
  return {.type = "QuantBatchMatmulV3",
          .inputs = {{"x1", x1, Known::kNo},
                     {"x2", x2, known},
                     {"scale", Pattern(kF32, {1}), Known::kNo}},
          .attrs = {{"dtype", AttrValue::Int(0)}}};
}

std::string Chosen(const OpCall& call) {
  return ChoiceOf(call);
}

TEST(QuantMatmulChoice, ConstantWeightsArePacked) {
  EXPECT_THAT(
      Chosen(Product(Noise(kInt8, {32, 64}, 1, 9), Noise(kInt8, {64, 48}, 2, 9), Known::kYes)),
      AnyOf("integers, packed, oneDNN",
            "integers, packed, panels; not oneDNN: this processor has no exact 8-bit products",
            "integers, packed, panels; not oneDNN: it has no packed product on this processor"));
}

TEST(QuantMatmulChoice, SaysWhyWeightsAreNotPacked) {
  const Tensor x1 = Noise(kInt8, {2, 4}, 1, 9), x2 = Noise(kInt8, {4, 3}, 2, 9);
  EXPECT_EQ(Chosen(Product(x1, x2, Known::kNo)), "integers; not packed: x2 is no constant");
  EXPECT_EQ(Chosen(Product(x1, ToInt4(Noise(kInt8, {4, 4}, 3, 7)), Known::kYes)),
            "integers; not packed: x2 is int4");
  EXPECT_EQ(Chosen(Product(ToInt4(Noise(kInt8, {2, 4}, 3, 7)), x2, Known::kYes)),
            "integers; not packed: x1 is int4");
  OpCall turned = Product(Noise(kInt8, {4, 2}, 1, 9), x2, Known::kYes);
  turned.attrs.emplace_back("transpose_x1", AttrValue::Bool(true));
  EXPECT_EQ(Chosen(turned), "integers; not packed: x1 is transposed");
  EXPECT_EQ(Chosen(Product(x1, Noise(kInt8, {2, 4, 3}, 2, 9), Known::kYes)),
            "integers; not packed: x2 is a batch of matrices");
  EXPECT_EQ(Chosen(Product(Noise(kInt8, {0, 4}, 1, 9), x2, Known::kYes)),
            "integers; not packed: it has no elements");
}

constexpr std::string_view kFloatSums =
    "float32; not integers: float16 and int8 are multiplied as floats; not packed: ";

OpCall WeightProduct(const Shape& scales, Known known) {
  return {.type = "WeightQuantBatchMatmulV2",
          .inputs = {{"x", Pattern(DataType::kFloat16, {2, 4})},
                     {"weight", Noise(kInt8, {4, 3}, 1, 9), known},
                     {"antiquant_scale", Pattern(DataType::kFloat16, scales)}}};
}

TEST(QuantMatmulChoice, ConstantWeightsOfFloatsArePacked) {
  for (const Shape& scales : {Shape{1}, Shape{3}}) {
    EXPECT_EQ(Chosen(WeightProduct(scales, Known::kYes)),
              "float32, packed; not integers: float16 and int8 are multiplied as floats");
  }
}

TEST(QuantMatmulChoice, SaysWhyWeightsOfFloatsAreNotPacked) {
  const auto refused = [](std::string_view why) { return fmt::format("{}{}", kFloatSums, why); };
  EXPECT_EQ(Chosen(WeightProduct({3}, Known::kNo)), refused("weight is no constant"));
  OpCall call = WeightProduct({3}, Known::kYes);
  call.attrs.emplace_back("transpose_x", AttrValue::Bool(true));
  call.inputs[0].value = Pattern(DataType::kFloat16, {4, 2});
  EXPECT_EQ(Chosen(call), refused("x is transposed"));
  call = WeightProduct({3}, Known::kYes);
  call.inputs.push_back({"antiquant_offset", Pattern(DataType::kFloat16, {3})});
  EXPECT_EQ(Chosen(call), refused("its weights have offsets"));
  call = WeightProduct({2, 3}, Known::kYes);
  call.attrs.emplace_back("antiquant_group_size", AttrValue::Int(2));
  EXPECT_EQ(Chosen(call), refused("its scales are of groups"));
}

TEST(QuantMatmulChoice, SaysWhySumsAreFloats) {
  EXPECT_EQ(Chosen({.type = "QuantBatchMatmulV4",
                    .inputs = {{"x1", Noise(kInt8, {2, 8}, 1, 9)},
                               {"x2", Noise(kInt8, {8, 3}, 2, 9), Known::kYes},
                               {"x2_scale", Pattern(kF32, {2, 3})}},
                    .attrs = {{"dtype", AttrValue::Int(0)}, {"group_size", AttrValue::Int(4)}}}),
            "float32; not integers: int8 products need one scale for each column; not packed: "
            "its scales are of blocks");
}

}  // namespace
}  // namespace npumesh
