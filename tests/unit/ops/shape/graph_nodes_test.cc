// Copies, reinterpretation and shape queries.
// StringFormat and PrintV2.
#include <numeric>

#include "tests/unit/op_values.h"

namespace npumesh {
namespace {

// ---- copies ----

TEST(Structure, CopiesKeepTheBytes) {
  for (const DataType dtype : AllDtypes()) {
    for (const Shape& shape : {Shape{}, Shape{2, 3}, Shape{0, 3}}) {
      const Tensor x = Pattern(dtype, shape);
      for (const char* type : {"Identity", "TensorMove"}) {
        EXPECT_TRUE(SameBytes(RunOne({.type = type, .inputs = {{"x", x}}}), x));
      }
      const Tensor other = Pattern(dtype, shape, 4);
      EXPECT_TRUE(
          SameBytes(RunOne({.type = "Assign", .inputs = {{"ref", other}, {"value", x}}}), x));
    }
  }
  EXPECT_TRUE(BuiltinOps().Find("Identity")->view);
  EXPECT_FALSE(BuiltinOps().Find("TensorMove")->view);
}

// ---- Bitcast ----

struct BitcastCase {
  TensorType from;
  TensorType to;
  bool keep_dim = false;
};

TEST(Bitcast, ComputesTheShape) {
  const std::vector<BitcastCase> cases = {
      {{DataType::kFloat, {2, 3}}, {DataType::kInt32, {2, 3}}},
      {{DataType::kFloat, {2, 3}}, {DataType::kInt32, {2, 3}}, true},
      {{DataType::kFloat, {2, 3}}, {DataType::kInt8, {2, 3, 4}}},
      {{DataType::kFloat, {2, 3}}, {DataType::kInt8, {2, 12}}, true},
      {{DataType::kInt8, {3, 4}}, {DataType::kFloat, {3}}},
      {{DataType::kInt8, {3, 8}}, {DataType::kFloat, {3, 2}}, true},
      {{DataType::kInt64, {}}, {DataType::kInt32, {2}}},
      {{DataType::kInt32, {2, 3}}, {DataType::kInt4, {2, 3, 8}}},
      {{DataType::kInt32, {2, 3}}, {DataType::kInt4, {2, 24}}, true},
      {{DataType::kInt16, {0, 2}}, {DataType::kInt32, {0}}},
  };
  for (const BitcastCase& c : cases) {
    const auto types = InferOp({.type = "Bitcast",
                                .inputs = {{"x", Tensor::Allocate(c.from)}},
                                .attrs = {{"type", AttrValue::Type(c.to.dtype)},
                                          {"keep_dim", AttrValue::Bool(c.keep_dim)}}});
    ASSERT_TRUE(types.ok()) << types.status().ToString();
    EXPECT_EQ((*types)[0], c.to) << (*types)[0].ToString();
    EXPECT_EQ((*types)[0].bytes(), c.from.bytes());
  }
}

// ---- Shape, ShapeN, Size, Rank ----

TEST(Structure, MissingOutputPortIsCorrupt) {
  const Operator* op = BuiltinOps().Find("TensorMove");
  const OpCall call{.type = "TensorMove", .inputs = {{"x", Pattern(DataType::kFloat, {2})}}};
  Node node = op_test::MakeNode(*op, call);
  node.output_descs.clear();
  Result<OpContext> context = OpContext::Bind(node, op->schema);
  ASSERT_TRUE(context.ok());
  context->set_in(0, call.inputs[0].value.type());
  EXPECT_EQ(op->infer(*context).code(), Code::kCorrupt);
}

OpCall Format(const std::string& text, const std::vector<Tensor>& tensors, int64_t ends = 3) {
  OpCall call{.type = "StringFormat"};
  for (size_t i = 0; i < tensors.size(); ++i) {
    call.inputs.push_back({"x" + std::to_string(i), tensors[i]});
  }
  call.attrs = {{"template", AttrValue::String(text)},
                {"placeholder", AttrValue::String("{}")},
                {"summarize", AttrValue::Int(ends)}};
  return call;
}

std::string TextOf(const OpCall& call) {
  const Tensor y = RunOne(call);
  return reinterpret_cast<const char*>(y.data());
}

Tensor Counting(Shape shape) {
  std::vector<int64_t> values(static_cast<size_t>(shape.elements()));
  std::iota(values.begin(), values.end(), 0);
  return Make<int64_t>(DataType::kInt64, std::move(shape), values);
}

TEST(StringFormat, PutsTensorsInThePlaceOfThePlaceholders) {
  EXPECT_EQ(TextOf(Format("hello, tensor: {}", {Counting({10})})),
            "hello, tensor: [0 1 2 ... 7 8 9]");
  EXPECT_EQ(TextOf(Format("tensor({}, shape=[2]) and {}.", {Counting({2}), Counting({1})})),
            "tensor([0 1], shape=[2]) and [0].");
  EXPECT_EQ(TextOf(Format("nothing", {})), "nothing");
}

TEST(StringFormat, ShowsBothEndsOfEachDimension) {
  EXPECT_EQ(TextOf(Format("{}", {Counting({6})})), "[0 1 2 3 4 5]");
  EXPECT_EQ(TextOf(Format("{}", {Counting({7})}, -1)), "[0 1 2 3 4 5 6]");
  EXPECT_EQ(TextOf(Format("{}", {Counting({7})}, 1)), "[0 ... 6]");
  EXPECT_EQ(TextOf(Format("{}", {Counting({4, 2})}, 1)), "[[0 1]\n ……\n [6 7]]");
  EXPECT_EQ(TextOf(Format("{}", {Counting({2, 1, 2})})), "[[[0 1]]\n\n [[2 3]]]");
  EXPECT_EQ(TextOf(Format("{}", {Counting({})})), "0");
  EXPECT_EQ(TextOf(Format("{}", {Counting({0})})), "[]");
  EXPECT_EQ(TextOf(Format("{}", {Counting({3})}, 0)), "[...]");
}

TEST(StringFormat, WritesEveryTypeOfNumber) {
  for (const DataType dtype : AllDtypes()) {
    const std::string expected = dtype == DataType::kBool ? "[False True]" : "[0 1]";
    EXPECT_EQ(TextOf(Format("{}", {FromDoubles(dtype, {2}, {0, 1})})), expected) << Name(dtype);
  }
  EXPECT_EQ(TextOf(Format("{}", {FromDoubles(DataType::kFloat, {3}, {0.1, -1e30, 1.0 / 3})})),
            "[0.1 -1e+30 0.33333334]");
  EXPECT_EQ(TextOf(Format("{}", {FromDoubles(DataType::kDouble, {1}, {-2.2250738585072014e-308})})),
            "[-2.2250738585072014e-308]");
}

std::string Printed(const std::string& text, const char* stream = "stderr") {
  std::vector<uint8_t> bytes(text.begin(), text.end());
  bytes.resize(bytes.size() + 3);
  const auto count = static_cast<int64_t>(bytes.size());
  const OpCall call{.type = "PrintV2",
                    .inputs = {{"x", Make<uint8_t>(DataType::kUint8, {count}, bytes)}},
                    .attrs = {{"output_stream", AttrValue::String(stream)}}};
  testing::internal::CaptureStderr();
  const Result<std::vector<Tensor>> nothing = RunOp(call);
  EXPECT_TRUE(nothing.ok()) << nothing.status().ToString();
  return testing::internal::GetCapturedStderr();
}

TEST(PrintV2, WritesTheTextAsALineWithoutControlCharacters) {
  EXPECT_THAT(Printed("two\nlines"), testing::StartsWith("two\nlines\n"));
  EXPECT_THAT(Printed("red \x1b[31m"), testing::StartsWith("red \\x1b[31m\n"));
  EXPECT_TRUE(BuiltinOps().Find("PrintV2")->side_effect) << "nobody reads what it gives";
}

}  // namespace
}  // namespace npumesh
