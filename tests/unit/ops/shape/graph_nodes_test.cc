// Copies, reinterpretation and shape queries.
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

TEST(Structure, IdentityNCopiesEachTensor) {
  const Tensor a = Pattern(DataType::kFloat, {2, 3});
  const Tensor b = Pattern(DataType::kInt8, {4});
  const OpCall call{.type = "IdentityN", .inputs = {{"x0", a}, {"x1", b}}, .outputs = 2};
  const Result<std::vector<Tensor>> y = RunOp(call);
  ASSERT_TRUE(y.ok()) << y.status().ToString();
  EXPECT_TRUE(SameBytes((*y)[0], a));
  EXPECT_TRUE(SameBytes((*y)[1], b));
  OpCall short_of_one = call;
  short_of_one.outputs = 1;
  ExpectFails(short_of_one, Code::kCorrupt, {"2 inputs", "1 outputs"});
}

TEST(Structure, CopyGivesEachOutputTheTensor) {
  const Tensor x = Pattern(DataType::kInt16, {2, 3});
  OpCall call{
      .type = "Copy", .inputs = {{"x", x}}, .attrs = {{"N", AttrValue::Int(3)}}, .outputs = 3};
  const Result<std::vector<Tensor>> y = RunOp(call);
  ASSERT_TRUE(y.ok()) << y.status().ToString();
  for (const Tensor& copy : *y) EXPECT_TRUE(SameBytes(copy, x));
  call.outputs = 2;
  ExpectFails(call, Code::kInvalidArgument, {"N is 3", "2 outputs"});
}

TEST(Structure, AssignNeedsEqualTypes) {
  const auto call = [](Tensor ref, Tensor value) {
    return OpCall{.type = "Assign", .inputs = {{"ref", ref}, {"value", value}}};
  };
  const Tensor ref = Pattern(DataType::kFloat, {2, 3});
  ExpectFails(call(ref, Pattern(DataType::kFloat, {3})), Code::kInvalidArgument,
              {"float32[3]", "float32[2,3]"});
  ExpectFails(call(ref, Pattern(DataType::kInt32, {2, 3})), Code::kInvalidArgument, {"int32[2,3]"});
  EXPECT_EQ(RunOne(call(Pattern(DataType::kFloat, {1}), Pattern(DataType::kFloat, {}))).shape(),
            (Shape{1}));
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

TEST(Bitcast, RefusesWhatDoesNotDivide) {
  const auto call = [](TensorType from, DataType to, bool keep) {
    return OpCall{.type = "Bitcast",
                  .inputs = {{"x", Tensor::Allocate(std::move(from))}},
                  .attrs = {{"type", AttrValue::Type(to)}, {"keep_dim", AttrValue::Bool(keep)}}};
  };
  ExpectFails(call({DataType::kInt8, {3, 5}}, DataType::kInt32, false), Code::kInvalidArgument,
              {"[3,5]", "4"});
  ExpectFails(call({DataType::kInt8, {3, 5}}, DataType::kInt32, true), Code::kInvalidArgument,
              {"[3,5]", "a multiple of 4"});
  ExpectFails(call({DataType::kInt8, {}}, DataType::kInt32, false), Code::kInvalidArgument, {"[]"});
  ExpectFails(call({DataType::kInt32, {}}, DataType::kInt8, true), Code::kInvalidArgument, {"[]"});
  ExpectFails(call({DataType::kInt8, {2}}, DataType::kString, false), Code::kUnsupported,
              {"int8", "string"});
}

// ---- Shape, ShapeN, Size, Rank ----

TEST(ShapeQuery, AnswersInTheAskedType) {
  const Tensor x = Pattern(DataType::kBool, {2, 0, 3});
  const auto ask = [&](std::string type, DataType dtype) {
    return RunOne({.type = std::move(type),
                   .inputs = {{"x", x}},
                   .attrs = {{"dtype", AttrValue::Int(static_cast<int64_t>(dtype))}}});
  };
  for (const DataType dtype : {DataType::kInt32, DataType::kInt64}) {
    EXPECT_TRUE(SameBytes(ask("Shape", dtype), FromDoubles(dtype, {3}, {2, 0, 3})));
    EXPECT_TRUE(SameBytes(ask("Size", dtype), FromDoubles(dtype, {}, {0})));
  }
  EXPECT_TRUE(SameBytes(RunOne({.type = "Rank", .inputs = {{"x", x}}}),
                        FromDoubles(DataType::kInt32, {}, {3})));
  EXPECT_EQ(RunOne({.type = "Shape", .inputs = {{"x", Pattern(DataType::kInt8, {})}}}).type(),
            (TensorType{DataType::kInt32, {0}}));
}

TEST(ShapeQuery, ShapeNAnswersForEach) {
  const OpCall call{
      .type = "ShapeN",
      .inputs = {{"x0", Pattern(DataType::kFloat, {2, 3})}, {"x1", Pattern(DataType::kInt8, {5})}},
      .outputs = 2};
  const Result<std::vector<Tensor>> y = RunOp(call);
  ASSERT_TRUE(y.ok()) << y.status().ToString();
  EXPECT_TRUE(SameBytes((*y)[0], FromDoubles(DataType::kInt32, {2}, {2, 3})));
  EXPECT_TRUE(SameBytes((*y)[1], FromDoubles(DataType::kInt32, {1}, {5})));
  OpCall short_of_one = call;
  short_of_one.outputs = 1;
  ExpectFails(short_of_one, Code::kCorrupt, {"2 inputs"});
}

TEST(ShapeQuery, RefusesOtherTypesAndCountsThatDoNotFit) {
  ExpectFails({.type = "Shape",
               .inputs = {{"x", Pattern(DataType::kFloat, {2})}},
               .attrs = {{"dtype", AttrValue::Int(static_cast<int64_t>(DataType::kFloat))}}},
              Code::kInvalidArgument, {"dtype", "float32"});
  const Tensor wide = Tensor::Allocate({DataType::kInt8, {0, int64_t{1} << 40}});
  ExpectFails({.type = "Shape", .inputs = {{"x", wide}}}, Code::kInvalidArgument,
              {"1099511627776", "int32"});
}

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

}  // namespace
}  // namespace npumesh
