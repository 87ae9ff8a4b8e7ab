// Check keeps the first objection, and Define makes plan and run one operator.
#include "graph/ops/core/check.h"

#include <gmock/gmock.h>

#include "graph/ops/core/define.h"
#include "graph/ops/core/op_registry.h"
#include "tests/unit/op_test.h"

namespace npumesh {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// y = factor * x, by way of scratch memory.
struct TwofoldPlan : Planned {
  float factor = 0;
  int64_t count = 0;
  Workspace<char> odd;  // so that the next slice has to be aligned
  Workspace<float> room;
};

Result<TwofoldPlan> PlanTwofold(const OpContext& op) {
  Check check(op);
  const auto [height, width] = check.Matrix("x", DataType::kFloat);
  check.Shape("bias", {width});
  check.OneOf("mode", {"plain", "bold"});
  check.Between("times", 1, 3);
  TwofoldPlan plan;
  plan.factor = static_cast<float>(op.attr_int("times"));
  plan.count = height * width;
  plan.outputs = {{DataType::kFloat, {height, width}}};
  plan.odd = plan.scratch.Take<char>(3);
  plan.room = plan.scratch.Floats(plan.count);
  return check.Done(std::move(plan));
}

Status RunTwofold(const TwofoldPlan& plan, const KernelArgs& args) {
  plan.odd(args)[2] = 'x';
  float* const room = plan.room(args);
  const auto* x = static_cast<const float*>(args.in[0]);
  for (int64_t i = 0; i < plan.count; ++i) room[i] = x[i] * plan.factor;
  std::copy_n(room, plan.count, static_cast<float*>(args.out[0]));
  return Status();
}

Status AddOne(const OpContext&, TwofoldPlan* plan) {
  plan->factor += 1;
  plan->taken = {1};
  return Status();
}

OpRegistry Registry() {
  OpRegistry registry;
  registry.Add(Define<PlanTwofold, RunTwofold>("Twofold(x, bias?; times=2, mode=\"plain\") -> y"));
  registry.Add(
      Define<PlanTwofold, RunTwofold, AddOne>("Prepared(x, bias?; times=2, mode=\"plain\") -> y"));
  return registry;
}

OpCall Call(std::string type, Tensor x) {
  return {.type = std::move(type), .inputs = {{"x", std::move(x)}}};
}

Tensor Row() {
  return Make<float>(DataType::kFloat, {1, 2}, {3, 4});
}

TEST(Define, PlansAndRuns) {
  const OpRegistry registry = Registry();
  EXPECT_EQ(ValuesOf<float>(RunOne(registry, Call("Twofold", Row()))), (std::vector<float>{6, 8}));
  // Preparation is the kernel's alone.
  EXPECT_EQ(ValuesOf<float>(RunOne(registry, Call("Prepared", Row()))),
            (std::vector<float>{9, 12}));
}

TEST(Define, KernelsSayWhatTheyHaveTaken) {
  const OpRegistry registry = Registry();
  const Operator& op = *registry.Find("Prepared");
  const OpCall call = Call("Prepared", Row());
  const Node node = op_test::MakeNode(op, call);
  const Result<OpContext> context = op_test::BindAndInfer(op, call, node);
  ASSERT_TRUE(context.ok());
  const auto kernel = op.make_kernel(*context);
  ASSERT_TRUE(kernel.ok());
  EXPECT_TRUE((*kernel)->reads(0));
  EXPECT_FALSE((*kernel)->reads(1));
  EXPECT_EQ((*kernel)->scratch_bytes(), 128u);
}

TEST(Scratch, WhatNoMemoryHoldsIsNotLittle) {
  Scratch scratch;
  scratch.Take<int64_t>(int64_t{1} << 61);  // times 8 is 0 in 64 bits
  scratch.Floats(INT64_MAX);
  scratch.Floats(INT64_MAX);
  EXPECT_EQ(scratch.bytes(), uint64_t{1} << 62);
  Scratch none;
  none.Floats(-1);
  EXPECT_EQ(none.bytes(), 0u);
}

TEST(Check, SaysWhatIsSeenAndExpected) {
  const OpRegistry registry = Registry();
  const auto objection = [&](OpCall call) {
    const Status status = FailOf(registry, call);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(objection(Call("Twofold", MakeInts({1}))),
              AllOf(HasSubstr("node_under_test"), HasSubstr("x is int64[1], expected float32")));
  EXPECT_THAT(objection(Call("Twofold", Make<float>(DataType::kFloat, {2}, {1, 2}))),
              HasSubstr("x is float32[2], expected 2 dimensions"));
  OpCall call = Call("Twofold", Row());
  call.attrs = {{"times", AttrValue::Int(4)}};
  EXPECT_THAT(objection(call), HasSubstr("times is 4, expected 1 to 3"));
  call.attrs.push_back({"mode", AttrValue::String("wild")});
  EXPECT_THAT(objection(call), HasSubstr("mode is \"wild\", expected plain or bold"));
  call.inputs.push_back({"bias", Make<float>(DataType::kFloat, {3}, {1, 2, 3})});
  EXPECT_THAT(objection(call), HasSubstr("bias is float32[3], expected [2]"));
}

TEST(Check, AnOptionalInputWithoutElementsIsAbsent) {
  OpCall call = Call("Twofold", Row());
  call.inputs.push_back({"bias", Make<float>(DataType::kFloat, {0}, {})});
  EXPECT_EQ(ValuesOf<float>(RunOne(Registry(), call)), (std::vector<float>{6, 8}));
}

enum class Weight { kLight, kHeavy };

TEST(Check, ReadsWordsAndAxesAndSeesContradictions) {
  OpRegistry registry;
  registry.Add({.schema = Signature("Turn(x, to; weight=\"light\") -> y"),
                .infer =
                    [](OpContext& op) {
                      Check check(op);
                      const auto weight = check.Meaning<Weight>(
                          "weight", {{"light", Weight::kLight}, {"heavy", Weight::kHeavy}});
                      check.Consistent(op.outputs() == 1, "{} outputs", op.outputs());
                      const int axis = check.Axis("to", op.in("x").shape.rank());
                      op.set_out(0, {DataType::kFloat, Shape{weight == Weight::kHeavy ? axis : 7}});
                      return check.status();
                    },
                .value_inputs = {"to"}});
  OpCall call = Call("Turn", Row());
  call.inputs.push_back({"to", MakeInts({-1})});
  call.attrs = {{"weight", AttrValue::String("heavy")}};
  EXPECT_EQ((*InferOp(registry, call))[0].shape, Shape({1}));
  call.inputs[1].value = MakeInts({2});
  EXPECT_THAT(std::string(FailOf(registry, call).message()),
              HasSubstr("\"to\" names axis 2, but the tensor has rank 2"));
  call.outputs = 2;
  EXPECT_EQ(FailOf(registry, call).code(), Code::kCorrupt);
  call.attrs = {{"weight", AttrValue::String("odd")}};
  EXPECT_THAT(std::string(FailOf(registry, call).message()),
              HasSubstr("\"weight\" is \"odd\", expected light or heavy"));
}

TEST(TypeSet, NamesItsTypes) {
  EXPECT_EQ(kFloats.ToString(), "float32, float16 or bfloat16");
  EXPECT_EQ(TypeSet(DataType::kHifloat4).ToString(), "hifloat4");
  EXPECT_TRUE(kNarrow.Contains(DataType::kInt4));
  EXPECT_FALSE(kNarrow.Contains(DataType::kFloat));
}

}  // namespace
}  // namespace npumesh
