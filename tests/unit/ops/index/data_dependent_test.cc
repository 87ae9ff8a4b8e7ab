// NonZero, Where, MaskedSelect, Unique: results against lists written by hand, inference against
// what comes out.
#include <cmath>
#include <limits>

#include "tests/unit/op_test.h"

namespace npumesh {
namespace {

using testing::HasSubstr;

// An unknown dimension of `inferred` fits any; otherwise both say the same.
bool Admits(const TensorType& inferred, const TensorType& seen) {
  if (inferred.dtype != seen.dtype) return false;
  if (!inferred.shape.has_rank()) return true;
  if (inferred.shape.rank() != seen.shape.rank()) return false;
  for (int i = 0; i < seen.shape.rank(); ++i) {
    if (inferred.shape[i] != kUnknownDim && inferred.shape[i] != seen.shape[i]) return false;
  }
  return true;
}

Result<std::vector<Tensor>> Evaluate(const OpCall& call) {
  const Operator* op = BuiltinOps().Find(call.type);
  if (op == nullptr) return Error(Code::kNotFound, "no operator {}", call.type);
  const Node node = op_test::MakeNode(*op, call);
  NPUMESH_ASSIGN_OR_RETURN(const OpContext context, op_test::BindAndInfer(*op, call, node));
  std::vector<const void*> in;
  for (const OpInput& input : call.inputs) in.push_back(input.value.data());
  NPUMESH_ASSIGN_OR_RETURN(std::vector<Tensor> outputs, op->evaluate(context, in));
  EXPECT_EQ(outputs.size(), op->schema.outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorType& inferred = context.out(static_cast<int>(i));
    EXPECT_TRUE(Admits(inferred, outputs[i].type()))
        << inferred.ToString() << " and " << outputs[i].type().ToString();
  }
  return outputs;
}

template <typename T>
void Expect(const Tensor& seen, DataType dtype, const Shape& shape, const std::vector<T>& values) {
  EXPECT_EQ(seen.type(), (TensorType{dtype, shape})) << seen.type().ToString();
  const auto span = seen.as<T>();
  EXPECT_EQ(std::vector<T>(span.begin(), span.end()), values);
}

void ExpectError(const OpCall& call, Code code, const std::string& text) {
  const Status status = Evaluate(call).status();
  EXPECT_EQ(status.code(), code) << status.ToString();
  EXPECT_THAT(std::string(status.message()), HasSubstr(text));
}

Tensor Floats(Shape shape, const std::vector<float>& values) {
  return Make<float>(DataType::kFloat, std::move(shape), values);
}

Tensor Bools(Shape shape, const std::vector<uint8_t>& values) {
  return Make<uint8_t>(DataType::kBool, std::move(shape), values);
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(NonZero, CoordinatesInRowMajorOrder) {
  const Tensor x = Floats({2, 3}, {0, 1, -0.0f, kNan, 0, -2});
  const auto y = Evaluate({.type = "NonZero", .inputs = {{"x", x}}});
  ASSERT_TRUE(y.ok()) << y.status().ToString();
  Expect<int64_t>((*y)[0], DataType::kInt64, {3, 2}, {0, 1, 1, 0, 1, 2});
}

TEST(NonZero, TransposedAsInt32) {
  const Tensor x = Floats({2, 3}, {0, 1, 0, 3, 0, -2});
  const auto y =
      Evaluate({.type = "NonZero",
                .inputs = {{"x", x}},
                .attrs = {{"transpose", AttrValue::Bool(true)}, {"dtype", AttrValue::Int(3)}}});
  ASSERT_TRUE(y.ok()) << y.status().ToString();
  Expect<int32_t>((*y)[0], DataType::kInt32, {2, 3}, {0, 1, 1, 1, 0, 2});
}

TEST(NonZero, NothingAndScalars) {
  const auto none = Evaluate({.type = "NonZero", .inputs = {{"x", Floats({2}, {0, 0})}}});
  ASSERT_TRUE(none.ok());
  EXPECT_EQ((*none)[0].shape(), (Shape{0, 1}));
  const auto empty = Evaluate({.type = "NonZero", .inputs = {{"x", Floats({0, 4}, {})}}});
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ((*empty)[0].shape(), (Shape{0, 2}));
  const auto scalar = Evaluate({.type = "NonZero", .inputs = {{"x", Floats({}, {2})}}});
  ASSERT_TRUE(scalar.ok());
  EXPECT_EQ((*scalar)[0].shape(), (Shape{1, 0}));
}

TEST(NonZero, ZerosOfEveryWidth) {
  for (const DataType dtype :
       {DataType::kBool, DataType::kInt8, DataType::kUint16, DataType::kFloat16,
        DataType::kBfloat16, DataType::kInt32, DataType::kDouble, DataType::kUint64}) {
    const auto width = static_cast<size_t>(BitsOf(dtype)) / 8;
    Tensor x = Tensor::Allocate({dtype, {3}});
    x.mutable_data()[width] = std::byte{1};             // the lowest bit of element 1
    x.mutable_data()[3 * width - 1] = std::byte{0x80};  // the highest bit of element 2
    const auto y = Evaluate({.type = "Where", .inputs = {{"x", x}}});
    ASSERT_TRUE(y.ok()) << y.status().ToString();
    const std::vector<int64_t> expected =
        IsFloating(dtype) ? std::vector<int64_t>{1} : std::vector<int64_t>{1, 2};
    Expect<int64_t>((*y)[0], DataType::kInt64, {static_cast<int64_t>(expected.size()), 1},
                    expected);
  }
}

TEST(NonZero, RefusesAnIndexTypeThatIsNone) {
  ExpectError({.type = "NonZero",
               .inputs = {{"x", Floats({1}, {1})}},
               .attrs = {{"dtype", AttrValue::Int(0)}}},
              Code::kInvalidArgument, "attribute \"dtype\" is float32");
}

TEST(MaskedSelect, BroadcastsBoth) {
  const Tensor x = Floats({3}, {1, 2, 3});
  const Tensor mask = Bools({2, 3}, {1, 0, 1, 0, 1, 0});
  for (const char* type : {"MaskedSelect", "MaskedSelectV2", "MaskedSelectV3"}) {
    const auto y = Evaluate({.type = type, .inputs = {{"x", x}, {"mask", mask}}});
    ASSERT_TRUE(y.ok()) << y.status().ToString();
    Expect<float>((*y)[0], DataType::kFloat, {3}, {1, 3, 2});
  }
  const auto rows =
      Evaluate({.type = "MaskedSelect",
                .inputs = {{"x", Floats({2, 2}, {1, 2, 3, 4})}, {"mask", Bools({2, 1}, {0, 1})}}});
  ASSERT_TRUE(rows.ok());
  Expect<float>((*rows)[0], DataType::kFloat, {2}, {3, 4});
}

TEST(MaskedSelect, NothingChosen) {
  const auto y = Evaluate(
      {.type = "MaskedSelect", .inputs = {{"x", Floats({2}, {1, 2})}, {"mask", Bools({}, {0})}}});
  ASSERT_TRUE(y.ok());
  EXPECT_EQ((*y)[0].shape(), (Shape{0}));
}

TEST(MaskedSelect, Refuses) {
  const Tensor x = Floats({2}, {1, 2});
  ExpectError({.type = "MaskedSelect", .inputs = {{"x", x}, {"mask", x}}}, Code::kInvalidArgument,
              "mask is float32[2], expected bool");
  ExpectError({.type = "MaskedSelect", .inputs = {{"x", x}, {"mask", Bools({3}, {1, 1, 1})}}},
              Code::kInvalidArgument, "MaskedSelect");
}

TEST(Unique, FirstOccurrences) {
  const Tensor x = MakeInts({5, 3, 5, 5, -1, 3});
  const auto y = Evaluate({.type = "Unique", .inputs = {{"x", x}}});
  ASSERT_TRUE(y.ok()) << y.status().ToString();
  Expect<int64_t>((*y)[0], DataType::kInt64, {3}, {5, 3, -1});
  Expect<int32_t>((*y)[1], DataType::kInt32, {6}, {0, 1, 0, 0, 2, 1});
}

TEST(Unique, FloatsCompareByValue) {
  const Tensor x = Floats({5}, {0.0f, -0.0f, kNan, 1, kNan});
  const auto y = Evaluate({.type = "UniqueWithCounts",
                           .inputs = {{"x", x}},
                           .attrs = {{"out_idx", AttrValue::Int(9)}}});
  ASSERT_TRUE(y.ok()) << y.status().ToString();
  Expect<int64_t>((*y)[1], DataType::kInt64, {5}, {0, 0, 1, 2, 3});
  Expect<int64_t>((*y)[2], DataType::kInt64, {4}, {2, 1, 1, 1});
  EXPECT_FALSE(std::signbit((*y)[0].as<float>()[0]));
}

TEST(Unique, AlongAnAxis) {
  const Tensor x = MakeInts({1, 2, 1, 3, 4, 3}).WithType({DataType::kInt64, {2, 3}});
  const auto columns = Evaluate({.type = "UniqueWithCountsExt2",
                                 .inputs = {{"x", x}, {"axis", MakeInts({-1})}},
                                 .attrs = {{"out_idx", AttrValue::Int(3)}}});
  ASSERT_TRUE(columns.ok()) << columns.status().ToString();
  Expect<int64_t>((*columns)[0], DataType::kInt64, {2, 2}, {1, 2, 3, 4});
  Expect<int32_t>((*columns)[1], DataType::kInt32, {3}, {0, 1, 0});
  Expect<int32_t>((*columns)[2], DataType::kInt32, {2}, {2, 1});
  const auto whole =
      Evaluate({.type = "UniqueExt2", .inputs = {{"x", MakeInts({7, 7})}, {"axis", MakeInts({})}}});
  ASSERT_TRUE(whole.ok()) << whole.status().ToString();
  Expect<int64_t>((*whole)[0], DataType::kInt64, {1}, {7});
}

TEST(Unique, Refuses) {
  const Tensor x = Floats({1, 2}, {1, 2});
  ExpectError({.type = "Unique", .inputs = {{"x", x}}}, Code::kInvalidArgument,
              "expected one dimension");
  ExpectError({.type = "UniqueExt2", .inputs = {{"x", x}, {"axis", MakeInts({})}}},
              Code::kInvalidArgument, "\"axis\" is empty");
  ExpectError({.type = "UniqueExt2", .inputs = {{"x", x}, {"axis", MakeInts({2})}}},
              Code::kInvalidArgument, "axis");
}

TEST(Selection, InferenceWithoutShapes) {
  for (const char* type : {"NonZero", "Where", "Unique", "UniqueExt2"}) {
    const Operator& op = *BuiltinOps().Find(type);
    OpCall call{.type = type, .inputs = {{"x", Floats({2}, {1, 2})}}};
    if (op.schema.inputs.size() > 1) call.inputs.push_back({"axis", MakeInts({0})});
    const Node node = op_test::MakeNode(op, call);
    for (const Shape& shape : {Shape{-1}, Shape::UnknownRank()}) {
      Result<OpContext> context = OpContext::Bind(node, op.schema);
      ASSERT_TRUE(context.ok()) << context.status().ToString();
      context->set_in(0, {DataType::kFloat, shape});
      const Status status = op.infer(*context);
      EXPECT_TRUE(status.ok()) << status.ToString();
      EXPECT_FALSE(context->out(0).shape.is_static()) << type;
    }
  }
}

}  // namespace
}  // namespace npumesh
