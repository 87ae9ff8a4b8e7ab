// Every way in which a kernel can be made gives the same numbers. Operands are multiples of 1/64 in
// [-1, 1), so products are multiples of 2^-12; sums of fewer than 2^12 of them are exact in
// float32 in any order, and one rounding follows: results are equal bytes.
#include <gmock/gmock.h>

#include <set>

#include "graph/ops/builtin_ops.h"
#include "graph/tuning/contest.h"
#include "graph/tuning/trial.h"
#include "tests/unit/op_test.h"
#include "tests/unit/op_values.h"

namespace npumesh {
namespace {

using ::testing::HasSubstr;

// Prefers what a trial wants.
class TrialTuning final : public KernelTuning {
 public:
  std::string Preferred(std::string_view decision) override {
    const auto wanted = trial->wanted.find(decision);
    return wanted == trial->wanted.end() ? std::string() : wanted->second;
  }
  void Decided(std::string_view decision, std::vector<std::string> options,
               std::string_view taken) override {
    trial->decided[std::string(decision)] = {std::move(options), std::string(taken)};
  }

  Trial* trial = nullptr;
};

class TunedKernels : public ::testing::Test {
 protected:
  // The texts of all preferences that were honoured; each gave the outputs of the ordinary kernel,
  // which took `decision`.
  std::set<std::string> Compare(const OpCall& call,
                                std::string_view decision = "product of floats") {
    const Operator* const op = BuiltinOps().Find(call.type);
    const Node node = op_test::MakeNode(*op, call);
    Result<OpContext> context = op_test::BindAndInfer(*op, call, node);
    EXPECT_TRUE(context.ok()) << context.status().ToString();
    context->set_tuning(&tuning_);
    const MakeTrial make = [&](const Preferences& wanted) -> Result<Trial> {
      Trial trial;
      trial.wanted = wanted;
      tuning_.trial = &trial;
      NPUMESH_ASSIGN_OR_RETURN(trial.kernel, op->make_kernel(*context));
      return trial;
    };
    const Result<Trial> ordinary = make({});
    EXPECT_TRUE(ordinary.ok()) << ordinary.status().ToString();
    EXPECT_TRUE(ordinary->decided.contains(decision)) << ordinary->kernel->choice().ToString();
    const TunableStep step = StepOf(*context);
    const std::vector<Tensor> expected = OutputsOf(step, *ordinary->kernel);
    std::set<std::string> texts;
    for (const Trial& trial : OtherTrials(*ordinary, make, 64)) {
      const std::vector<Tensor> seen = OutputsOf(step, *trial.kernel);
      EXPECT_TRUE(SameBytes(seen[0], expected[0])) << TextOf(trial.wanted);
      texts.insert(TextOf(trial.wanted));
    }
    return texts;
  }

 private:
  static TunableStep StepOf(const OpContext& context) {
    TunableStep step;
    for (int slot = 0; slot < context.slots(); ++slot) {
      step.inputs.push_back(context.has(slot) ? context.in(slot) : TensorType());
      step.constants.push_back(context.value(slot));
    }
    step.outputs = {context.out(0)};
    return step;
  }
  static std::vector<Tensor> OutputsOf(const TunableStep& step, Kernel& kernel) {
    auto operands = ContestOperands::Make(step, uint64_t{1} << 30);
    const Status status = kernel.Run(operands->ArgsFor(kernel));
    EXPECT_TRUE(status.ok()) << status.ToString();
    return operands->outputs();
  }

  TrialTuning tuning_;
};

Tensor Small(DataType dtype, const Shape& shape) {
  std::vector<double> values;
  for (int64_t i = 0; i < shape.elements(); ++i) {
    values.push_back(static_cast<double>(i * 37 % 128 - 64) / 64);
  }
  return FromDoubles(dtype, shape, values);
}

OpCall Product(DataType dtype, const Shape& x1, const Shape& x2, Known known) {
  return {.type = "MatMulV2",
          .inputs = {{"x1", Tensor::Allocate({dtype, x1}), Known::kNo},
                     {"x2", Small(dtype, x2), known}}};
}

TEST_F(TunedKernels, ProductsWithConstantsOfSixteenBits) {
  for (const DataType dtype : {DataType::kFloat16, DataType::kBfloat16}) {
    for (const int64_t rows : {1, 5, 12, 13, 40, 65}) {
      const std::set<std::string> ways =
          Compare(Product(dtype, {rows, 96}, {96, 200}, Known::kYes));
      EXPECT_FALSE(ways.empty()) << rows;
      if (dtype == DataType::kFloat16) {
        EXPECT_TRUE(ways.contains("product of floats: widened"));
      }
    }
  }
}

TEST_F(TunedKernels, ProductsOfFloats) {
  for (const Known known : {Known::kNo, Known::kYes}) {
    const std::set<std::string> ways =
        Compare(Product(DataType::kFloat, {33, 64}, {64, 70}, known));
    EXPECT_TRUE(ways.contains("product of floats: native"));
  }
}

TEST_F(TunedKernels, Convolutions) {
  OpCall call = {.type = "Conv2D",
                 .inputs = {{"x", Tensor::Allocate({DataType::kFloat, {2, 16, 9, 9}}), Known::kNo},
                            {"filter", Small(DataType::kFloat, {16, 16, 3, 3}), Known::kYes}},
                 .attrs = {{"strides", AttrValue::Ints({1, 1, 1, 1})},
                           {"pads", AttrValue::Ints({1, 1, 1, 1})},
                           {"data_format", AttrValue::String("NCHW")}}};
  for (const std::string& way : Compare(call, "oneDNN")) EXPECT_THAT(way, HasSubstr("oneDNN: "));
}

}  // namespace
}  // namespace npumesh
