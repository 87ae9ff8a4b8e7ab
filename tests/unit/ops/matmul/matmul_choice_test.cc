// Which kernel a product takes, and each reason why not another one. Where the processor decides,
// both answers are right.
#include "graph/ops/matmul/family.h"
#include "graph/ops/toolbox/product/matmul.h"
#include "tests/unit/op_choice.h"
#include "tests/unit/op_values.h"

namespace npumesh {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr DataType kFloat = DataType::kFloat, kHalf = DataType::kFloat16,
                   kBfloat = DataType::kBfloat16;

std::string Chosen(const OpCall& call) {
  static const OpRegistry registry = [] {
    OpRegistry made;
    RegisterMatmulFamily(made);
    return made;
  }();
  return ChoiceOf(registry, call);
}

// x1 times x2, which is a constant or not.
OpCall Product(DataType dtype, const Shape& x1, const Shape& x2, Known known,
               const std::string& type = "MatMulV2") {
  return {.type = type,
          .inputs = {{"x1", Pattern(dtype, x1), Known::kNo}, {"x2", Pattern(dtype, x2), known}}};
}

TEST(MatmulChoice, FloatsAreReadAsTheyAre) {
  EXPECT_THAT(Chosen(Product(kFloat, {33, 64}, {64, 70}, Known::kNo)),
              AllOf(StartsWith("native, oneDNN "), HasSubstr("; not packed: x2 is no constant")));
  EXPECT_THAT(Chosen(Product(kFloat, {33, 64}, {64, 70}, Known::kYes)),
              AnyOf(StartsWith("native, packed, oneDNN "),
                    AllOf(StartsWith("native, oneDNN "),
                          HasSubstr("; not packed: oneDNN reads x2 as it lies"))));
}

TEST(MatmulChoice, ProductsOverNothing) {
  EXPECT_THAT(
      Chosen(Product(kFloat, {2, 0}, {0, 3}, Known::kYes)),
      AllOf(StartsWith("widened, oneDNN "), HasSubstr("; not native: it is over no elements"),
            HasSubstr("; not 16-bit weights: x2 is float32"),
            HasSubstr("; not packed: it is over no elements")));
  EXPECT_THAT(Chosen(Product(kHalf, {2, 0}, {0, 3}, Known::kYes)),
              HasSubstr("; not 16-bit weights: it is over no elements"));
}

TEST(MatmulChoice, HalvesThatAreNoConstants) {
  EXPECT_THAT(Chosen(Product(kHalf, {2, 8}, {8, 3}, Known::kNo)),
              AllOf(StartsWith("widened, oneDNN "),
                    HasSubstr("; not native: oneDNN multiplies no float16 here"),
                    HasSubstr("; not 16-bit weights: x2 is no constant"),
                    HasSubstr("; not packed: x2 is no constant")));
}

TEST(MatmulChoice, ConstantHalvesStayInSixteenBits) {
  EXPECT_EQ(Chosen(Product(kHalf, {2, 8}, {8, 3}, Known::kYes)),
            "16-bit weights, widened in registers; not native: oneDNN multiplies no float16 here");
  EXPECT_THAT(Chosen(Product(kHalf, {20, 8}, {8, 3}, Known::kYes)),
              AllOf(AnyOf(StartsWith("16-bit weights, widened in groups; not native: "),
                          StartsWith("16-bit weights, widened panel by panel; not native: ")),
                    HasSubstr("; not widened in registers: x1 has 20 rows, more than 12")));
  OpCall turned = Product(kHalf, {8, 2}, {8, 3}, Known::kYes);
  turned.attrs = {{"transpose_x1", AttrValue::Bool(true)}};
  EXPECT_THAT(Chosen(turned), HasSubstr("; not widened in registers: x1 is transposed"));
}

TEST(MatmulChoice, BatchesOfConstantHalvesArePackedWide) {
  EXPECT_THAT(Chosen(Product(kHalf, {2, 3, 8}, {2, 8, 5}, Known::kYes, "BatchMatMul")),
              AllOf(StartsWith("widened, packed, oneDNN "),
                    HasSubstr("; not 16-bit weights: it is a batch of products"),
                    Not(HasSubstr("constant"))));
}

TEST(MatmulChoice, BfloatsHangOnTheProcessor) {
  EXPECT_THAT(Chosen(Product(kBfloat, {2, 8}, {8, 3}, Known::kNo)),
              AnyOf(StartsWith("native, oneDNN "),
                    HasSubstr("; not native: oneDNN multiplies no bfloat16 on this processor")));
}

TEST(MatmulChoice, ResultsOfOtherTypesThanTheOperands) {
  Matmul matmul;
  matmul.who = "test";
  matmul.x1 = {0, kFloat, {}, false};
  matmul.x2 = {1, kFloat, {}, false};
  matmul.y_dtype = kHalf;
  matmul.m = matmul.n = matmul.k = 8;
  const Result<std::unique_ptr<Kernel>> kernel = MakeMatmul(matmul);
  ASSERT_TRUE(kernel.ok()) << kernel.status().ToString();
  EXPECT_THAT((*kernel)->choice().ToString(),
              HasSubstr("; not native: oneDNN writes no float16 here"));
}

TEST(MatmulChoice, IntegersAreMultipliedByLoops) {
  EXPECT_EQ(Chosen(Product(DataType::kInt32, {2, 4}, {4, 3}, Known::kYes)),
            "integer loops; not oneDNN: sums of int32 are int32");
  EXPECT_EQ(Chosen(Product(DataType::kInt8, {2, 4}, {4, 3}, Known::kYes)),
            "integer loops; not oneDNN: sums of int8 are int32");
}

TEST(MatmulChoice, AProductThatIsPartOfAKernelSpeaksForIt) {
  OpCall call = Product(kFloat, {33, 64}, {64, 70}, Known::kNo, "FusedMatMul");
  call.attrs = {{"fused_op_type", AttrValue::String("relu")}};
  EXPECT_THAT(Chosen(call), StartsWith("native, oneDNN "));
}

}  // namespace
}  // namespace npumesh
