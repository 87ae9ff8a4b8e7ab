// What the user reads when an element-wise operator cannot be computed.
#include "tests/unit/op_reference.h"

namespace npumesh {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ElementwiseErrorsTest : public testing::Test {
 protected:
};

TEST_F(ElementwiseErrorsTest, ShapesThatDoNotBroadcast) {
  const Status status = FailOf({.type = "Add",
                                .inputs = {{"x1", FromDoubles(kF32, {2}, {1, 2})},
                                           {"x2", FromDoubles(kF32, {3}, {1, 2, 3})}}});
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("node \"node_under_test\" (Add)"), HasSubstr("x1 float32[2]"),
                    HasSubstr("x2 float32[3]")));
}

TEST_F(ElementwiseErrorsTest, TypesWithoutTheOperation) {
  const struct {
    const char* type;
    DataType dtype;
  } kCases[] = {{"Sqrt", DataType::kInt32},
                {"Exp", kBool},
                {"Neg", kBool},
                {"Sin", DataType::kComplex64},
                {"Neg", DataType::kString}};
  for (const auto& test : kCases) {
    Tensor x = BitsOf(test.dtype) > 0 ? Tensor::Allocate({test.dtype, {1}}) : Tensor();
    if (BitsOf(test.dtype) == 0) x = Tensor().WithType({test.dtype, {0}});
    const Status status = FailOf({.type = test.type, .inputs = {{"x", x}}});
    EXPECT_EQ(status.code(), Code::kUnsupported) << test.type;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(test.type), HasSubstr(std::string(Name(test.dtype)))));
  }
}

TEST_F(ElementwiseErrorsTest, MissingInputAndAttribute) {
  const Tensor x = FromDoubles(kF32, {1}, {1});
  EXPECT_EQ(FailOf({.type = "Add", .inputs = {{"x1", x}}}).code(), Code::kCorrupt);
  EXPECT_EQ(FailOf({.type = "Muls", .inputs = {{"x", x}}}).code(), Code::kCorrupt);
}

TEST_F(ElementwiseErrorsTest, IntegerDivisionByZeroNamesTheElement) {
  for (const char* type : {"Div", "FloorDiv", "FloorMod"}) {
    std::vector<double> divisors(600, 1);
    divisors[555] = 0;
    const Status status =
        FailOf({.type = type,
                .inputs = {{"x1", FromDoubles(DataType::kInt32, {1}, {7})},
                           {"x2", FromDoubles(DataType::kInt32, {600}, divisors)}}});
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("division by zero"), HasSubstr("element 555")));
  }
}

TEST_F(ElementwiseErrorsTest, BaseOfALogarithmMustBePositive) {
  for (const char* type : {"Exp", "Log"}) {
    const Status status = FailOf({.type = type,
                                  .inputs = {{"x", FromDoubles(kF32, {1}, {1})}},
                                  .attrs = {{"base", AttrValue::Float(-3)}}});
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("base"), HasSubstr("-3")));
  }
}

TEST_F(ElementwiseErrorsTest, RankBeyondTheLimit) {
  const Shape deep(std::vector<int64_t>(65, 1));
  const Tensor x = Make<float>(kF32, deep, {1});
  EXPECT_EQ(FailOf({.type = "Neg", .inputs = {{"x", x}}}).code(), Code::kUnsupported);
}

TEST_F(ElementwiseErrorsTest, BroadcastLargerThanMemoryCanCount) {
  const Tensor a = Tensor().WithType({kF32, {int64_t{1} << 40, 1}});
  const Tensor b = Tensor().WithType({kF32, {1, int64_t{1} << 40}});
  Result<std::vector<TensorType>> types =
      InferOp({.type = "Add", .inputs = {{"x1", a}, {"x2", b}}});
  EXPECT_EQ(types.status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace npumesh
