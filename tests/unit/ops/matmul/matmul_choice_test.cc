// Which kernel a product takes, and each reason why not another one. Where the processor decides,
// both answers are right.
#include "graph/ops/toolbox/product/matmul.h"
#include "tests/unit/op_reference.h"
#include "tests/unit/op_values.h"

namespace npumesh {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

// x1 times x2, which is a constant or not.
OpCall Product(DataType dtype, const Shape& x1, const Shape& x2, Known known,
               const std::string& type = "MatMulV2") {
  return {.type = type,
          .inputs = {{"x1", Pattern(dtype, x1), Known::kNo}, {"x2", Pattern(dtype, x2), known}}};
}

TEST(MatmulChoice, FloatsGoByPanels) {
  for (const DataType dtype : {kF32, kF16}) {
    EXPECT_EQ(ChoiceOf(Product(dtype, {33, 64}, {64, 70}, Known::kNo)),
              "panels; not packed: x2 is no constant");
    EXPECT_EQ(ChoiceOf(Product(dtype, {33, 64}, {64, 70}, Known::kYes)), "panels, packed");
    EXPECT_EQ(ChoiceOf(Product(dtype, {2, 3, 8}, {2, 8, 5}, Known::kYes, "BatchMatMul")),
              "panels; not packed: it is a batch of products");
  }
}

TEST(MatmulChoice, ProductsOverNothing) {
  for (const DataType dtype : {kF32, kF16}) {
    EXPECT_THAT(ChoiceOf(Product(dtype, {2, 0}, {0, 3}, Known::kYes)),
                AllOf(StartsWith("widened, oneDNN "),
                      HasSubstr("; not panels: it is over no elements; not native: it is over no "
                                "elements; not packed: it is over no elements")));
  }
}

TEST(MatmulChoice, BfloatsHangOnTheProcessor) {
  EXPECT_THAT(ChoiceOf(Product(kBf16, {2, 8}, {8, 3}, Known::kNo)),
              AnyOf(AllOf(StartsWith("native, oneDNN "),
                          AnyOf(HasSubstr("; not panels: this processor multiplies bfloat16"),
                                HasSubstr("; not panels: this processor has tiles (AMX)"))),
                    testing::Eq("panels; not packed: x2 is no constant")));
  EXPECT_THAT(ChoiceOf(Product(kBf16, {2, 8}, {8, 3}, Known::kYes)),
              AnyOf(AllOf(StartsWith("native, packed, oneDNN "),
                          HasSubstr("; not panels: this processor has tiles (AMX)")),
                    testing::Eq("panels, packed")));
}

TEST(MatmulChoice, ResultsOfOtherTypesThanTheOperands) {
  Matmul matmul;
  matmul.who = "test";
  matmul.x1 = {0, kF32, {}, false};
  matmul.x2 = {1, kF32, {}, false};
  matmul.y_dtype = kF16;
  matmul.m = matmul.n = matmul.k = 8;
  const Result<std::unique_ptr<Kernel>> kernel = MakeMatmul(matmul);
  ASSERT_TRUE(kernel.ok()) << kernel.status().ToString();
  EXPECT_EQ((*kernel)->choice().ToString(), "panels; not packed: x2 is no constant");
}

TEST(MatmulChoice, IntegersAreMultipliedByLoops) {
  EXPECT_EQ(ChoiceOf(Product(DataType::kInt32, {2, 4}, {4, 3}, Known::kYes)),
            "integer loops; not oneDNN: sums of int32 are int32");
  EXPECT_EQ(ChoiceOf(Product(DataType::kInt8, {2, 4}, {4, 3}, Known::kYes)),
            "integer loops; not oneDNN: sums of int8 are int32");
}

TEST(MatmulChoice, AProductThatIsPartOfAKernelSpeaksForIt) {
  OpCall call = Product(kF32, {33, 64}, {64, 70}, Known::kNo, "FusedMatMul");
  call.attrs = {{"fused_op_type", AttrValue::String("relu")}};
  EXPECT_THAT(ChoiceOf(call), StartsWith("panels; "));
}

}  // namespace
}  // namespace npumesh
