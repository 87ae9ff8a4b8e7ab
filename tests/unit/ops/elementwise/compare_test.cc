// Comparison, logic and selection.
#include "tests/unit/op_reference.h"

namespace npumesh {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class CompareTest : public testing::Test {
 protected:
};

struct Relation {
  const char* type;
  bool (*holds)(double, double);
};

const Relation kRelations[] = {
    {"Equal", [](double a, double b) { return a == b; }},
    {"NotEqual", [](double a, double b) { return a != b; }},
    {"Less", [](double a, double b) { return a < b; }},
    {"LessEqual", [](double a, double b) { return a <= b; }},
    {"Greater", [](double a, double b) { return a > b; }},
    {"GreaterEqual", [](double a, double b) { return a >= b; }},
};

std::vector<DataType> ComparedTypes() {
  std::vector<DataType> types(std::begin(kReals), std::end(kReals));
  types.insert(types.end(), std::begin(kIntegers), std::end(kIntegers));
  types.push_back(kBool);
  return types;
}

TEST_F(CompareTest, EveryTypeAndRelationWithBroadcasting) {
  for (const DataType dtype : ComparedTypes()) {
    std::vector<double> column = {0, 1, 2};
    std::vector<double> row = {1, 2, 0, 1};
    if (IsFloating(dtype)) {
      column = {NAN, -0.0, INFINITY};
      row = {NAN, 0, INFINITY, -1};
    } else if (dtype == kBool) {
      column = {0, 1, 1};
      row = {1, 0, 0, 1};
    }
    const Tensor a = FromDoubles(dtype, {3, 1}, column);
    const Tensor b = FromDoubles(dtype, {4}, row);
    for (const Relation& relation : kRelations) {
      const Tensor y = RunOne({.type = relation.type, .inputs = {{"x1", a}, {"x2", b}}});
      ASSERT_EQ(y.type(), (TensorType{kBool, {3, 4}}));
      std::vector<uint8_t> expected;
      for (const double left : column) {
        for (const double right : row) expected.push_back(relation.holds(left, right));
      }
      EXPECT_EQ(ValuesOf<uint8_t>(y), expected) << relation.type << " " << Name(dtype);
    }
  }
}

TEST_F(CompareTest, SixtyFourBitsAreComparedWhole) {
  const Tensor a = Make<int64_t>(DataType::kInt64, {2}, {INT64_MAX, INT64_MIN});
  const Tensor b = Make<int64_t>(DataType::kInt64, {2}, {INT64_MAX - 1, INT64_MIN + 1});
  EXPECT_EQ(ValuesOf<uint8_t>(RunOne({"Less", {{"x1", a}, {"x2", b}}})),
            (std::vector<uint8_t>{0, 1}));
  const Tensor c = Make<uint64_t>(DataType::kUint64, {1}, {UINT64_MAX});
  const Tensor d = Make<uint64_t>(DataType::kUint64, {1}, {1});
  EXPECT_EQ(ValuesOf<uint8_t>(RunOne({"Less", {{"x1", c}, {"x2", d}}})), (std::vector<uint8_t>{0}));
}

TEST_F(CompareTest, AFloatMeetsAnIntegerLiteral) {
  const Tensor x = FromDoubles(kF16, {3}, {1, 2.5, 3});
  const Tensor two = Make<int64_t>(DataType::kInt64, {}, {2});
  EXPECT_EQ(ValuesOf<uint8_t>(RunOne({"Less", {{"x1", x}, {"x2", two}}})),
            (std::vector<uint8_t>{1, 0, 0}));
}

TEST_F(CompareTest, LogicOfBools) {
  const Tensor a = Make<uint8_t>(kBool, {2, 1}, {0, 1});
  const Tensor b = Make<uint8_t>(kBool, {2}, {0, 1});
  EXPECT_EQ(ValuesOf<uint8_t>(RunOne({"LogicalAnd", {{"x1", a}, {"x2", b}}})),
            (std::vector<uint8_t>{0, 0, 0, 1}));
  EXPECT_EQ(ValuesOf<uint8_t>(RunOne({"LogicalOr", {{"x1", a}, {"x2", b}}})),
            (std::vector<uint8_t>{0, 1, 1, 1}));
  EXPECT_EQ(ValuesOf<uint8_t>(RunOne({"LogicalNot", {{"x", b}}})), (std::vector<uint8_t>{1, 0}));
}

TEST_F(CompareTest, LogicOfNumbersAsksWhetherTheyAreZero) {
  const Tensor a = FromDoubles(kF32, {4}, {0, 0.25, NAN, 0});
  const Tensor b = FromDoubles(kF32, {4}, {1, 1, 1, 0});
  EXPECT_EQ(ValuesOf<uint8_t>(RunOne({"LogicalAnd", {{"x1", a}, {"x2", b}}})),
            (std::vector<uint8_t>{0, 1, 1, 0}));
  EXPECT_EQ(ValuesOf<uint8_t>(RunOne({"LogicalOr", {{"x1", a}, {"x2", b}}})),
            (std::vector<uint8_t>{1, 1, 1, 0}));
}

// ---- SelectV2 ----

OpCall Select(const Tensor& condition, const Tensor& then, const Tensor& other) {
  return {.type = "SelectV2",
          .inputs = {{"condition", condition}, {"then", then}, {"else", other}}};
}

TEST_F(CompareTest, SelectBroadcastsThreeWays) {
  const Tensor condition = Make<uint8_t>(kBool, {2, 1, 1}, {1, 0});
  for (const DataType dtype : ComparedTypes()) {
    const bool logic = dtype == kBool;
    const std::vector<double> rows =
        logic ? std::vector<double>{1, 0, 1} : std::vector<double>{1, 2, 3};
    const std::vector<double> columns =
        logic ? std::vector<double>{0, 1} : std::vector<double>{7, 8};
    const Tensor y = RunOne(
        Select(condition, FromDoubles(dtype, {3, 1}, rows), FromDoubles(dtype, {2}, columns)));
    ASSERT_EQ(y.type(), (TensorType{dtype, {2, 3, 2}}));
    const std::vector<double> expected = {rows[0],    rows[0],    rows[1],    rows[1],
                                          rows[2],    rows[2],    columns[0], columns[1],
                                          columns[0], columns[1], columns[0], columns[1]};
    EXPECT_EQ(ToDoubles(y), expected) << Name(dtype);
  }
}

TEST_F(CompareTest, SelectMovesBits) {
  const Tensor condition = Make<uint8_t>(kBool, {2}, {1, 0});
  const Tensor then = Make<uint32_t>(kF32, {2}, {0x7fa00001, 0x7fc00000});
  const Tensor other = Make<uint32_t>(kF32, {2}, {0x7fc00000, 0x80000000});
  const Tensor y = RunOne(Select(condition, then, other));
  EXPECT_EQ(ValuesOf<uint32_t>(y), (std::vector<uint32_t>{0x7fa00001, 0x80000000}));
  const DataType complex = DataType::kComplex64;
  const Tensor pair = RunOne(Select(condition, Make<uint64_t>(complex, {2}, {1, 2}),
                                    Make<uint64_t>(complex, {2}, {3, 4})));
  EXPECT_EQ(ValuesOf<uint64_t>(pair), (std::vector<uint64_t>{1, 4}));
}

TEST_F(CompareTest, SelectPromotesItsBranches) {
  const Tensor y =
      RunOne(Select(Make<uint8_t>(kBool, {2}, {1, 0}), FromDoubles(kF16, {2}, {1.5, 2.5}),
                    Make<int64_t>(DataType::kInt64, {}, {7})));
  EXPECT_EQ(y.dtype(), kF16);
  EXPECT_EQ(ToDoubles(y), (std::vector<double>{1.5, 7}));
}

TEST_F(CompareTest, SelectErrors) {
  const Tensor flags = Make<uint8_t>(kBool, {2}, {1, 0});
  const Tensor x = FromDoubles(kF32, {2}, {1, 2});
  const Status mask = FailOf(Select(x, x, x));
  EXPECT_EQ(mask.code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(mask.message()), AllOf(HasSubstr("condition"), HasSubstr("float32[2]")));
  const Status shape = FailOf(Select(flags, x, FromDoubles(kF32, {3}, {1, 2, 3})));
  EXPECT_EQ(shape.code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(shape.message()), HasSubstr("else float32[3]"));
  const Tensor complex = Tensor::Allocate({DataType::kComplex64, {2}});
  EXPECT_EQ(FailOf(Select(flags, x, complex)).code(), Code::kUnsupported);
}

// ---- MaskedFill ----

OpCall Fill(const Tensor& x, const Tensor& mask, const Tensor& value) {
  return {.type = "MaskedFill", .inputs = {{"x", x}, {"mask", mask}, {"value", value}}};
}

TEST_F(CompareTest, MaskedFillBroadcastsXAndMask) {
  const Tensor mask = Make<uint8_t>(kBool, {2, 1}, {1, 0});
  for (const DataType dtype : ComparedTypes()) {
    if (dtype == kBool) continue;
    for (const Shape& one : {Shape(), Shape({1}), Shape({1, 1, 1})}) {
      const Tensor y =
          RunOne(Fill(FromDoubles(dtype, {3}, {1, 2, 3}), mask, FromDoubles(dtype, one, {9})));
      ASSERT_EQ(y.type(), (TensorType{dtype, {2, 3}}));
      EXPECT_EQ(ToDoubles(y), (std::vector<double>{9, 9, 9, 1, 2, 3})) << Name(dtype);
    }
  }
}

TEST_F(CompareTest, MaskedFillCastsTheValue) {
  const Tensor x = FromDoubles(kF16, {2}, {1, 2});
  const Tensor mask = Make<uint8_t>(kBool, {2}, {0, 1});
  const Tensor y = RunOne(Fill(x, mask, FromDoubles(kF32, {}, {-INFINITY})));
  EXPECT_EQ(y.dtype(), kF16);
  EXPECT_EQ(ToDoubles(y), (std::vector<double>{1, -INFINITY}));
  const Tensor flags = RunOne(Fill(mask, mask, Make<int64_t>(DataType::kInt64, {}, {0})));
  EXPECT_EQ(ValuesOf<uint8_t>(flags), (std::vector<uint8_t>{0, 0}));
}

TEST_F(CompareTest, MaskedFillErrors) {
  const Tensor x = FromDoubles(kF32, {2}, {1, 2});
  const Tensor mask = Make<uint8_t>(kBool, {2}, {0, 1});
  const Status value = FailOf(Fill(x, mask, x));
  EXPECT_EQ(value.code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(value.message()),
              AllOf(HasSubstr("value"), HasSubstr("float32[2]"), HasSubstr("one element")));
  EXPECT_EQ(FailOf(Fill(x, x, x)).code(), Code::kInvalidArgument);
  const Tensor complex = Tensor::Allocate({DataType::kComplex64, {}});
  EXPECT_EQ(FailOf(Fill(x, mask, complex)).code(), Code::kUnsupported);
  const Tensor longer = Make<uint8_t>(kBool, {3}, {0, 1, 1});
  EXPECT_EQ(FailOf(Fill(x, longer, FromDoubles(kF32, {}, {0}))).code(), Code::kInvalidArgument);
}

TEST_F(CompareTest, EmptyTensors) {
  const Tensor none = FromDoubles(kF32, {0, 2}, {});
  EXPECT_EQ(RunOne({"Less", {{"x1", none}, {"x2", none}}}).type(), (TensorType{kBool, {0, 2}}));
  const Tensor mask = Make<uint8_t>(kBool, {0, 1}, {});
  EXPECT_EQ(RunOne(Fill(none, mask, FromDoubles(kF32, {}, {1}))).shape(), Shape({0, 2}));
}

}  // namespace
}  // namespace npumesh
