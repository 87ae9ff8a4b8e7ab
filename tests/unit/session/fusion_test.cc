// Fusion in sessions: an observed run has a step for each operator.
#include <gmock/gmock.h>

#include "graph/passes/fusion/fusion.h"
#include "tests/unit/session/session_fixture.h"

namespace npumesh {
namespace {

using testing::ElementsAre;

class StepTypes final : public StepObserver {
 public:
  Status AfterStep(const StepView& view) override {
    types.push_back(view.step.type);
    return Status();
  }
  std::vector<std::string> types;
};

// y = -(x + 0.5), on the operators of npumesh.
Model SumAndNegation() {
  const TensorType type{DataType::kFloat, {4}};
  GraphBuilder g;
  const Value half = g.Const("half", Tensor::FromVector<float>(type, {0.5f, 0.5f, 0.5f, 0.5f}));
  const Value sum = g.Op("Add", {{"x1", g.Data("x", type)}, {"x2", half}});
  g.Output({g.Op("Neg", {{"x", sum}})});
  return std::move(g.Build()).value();
}

void WithFusingSession(const std::function<void(Session&)>& body) {
  SessionOptions options;
  options.compile.fuses = [](std::string_view) { return true; };
  const auto statuses = OnRanks(1, [&](World& world, DeviceMemory& memory) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto session,
                             Session::Create(world, memory, SumAndNegation(), options));
    body(*session);
    return Status();
  });
  EXPECT_TRUE(statuses[0].ok()) << statuses[0].ToString();
}

const Tensor& Input() {
  static const Tensor input =
      Tensor::FromVector<float>({DataType::kFloat, {4}}, {1.0f, 2.0f, 0.1f, -3.0f});
  return input;
}

std::vector<float> Floats(const Result<std::vector<Tensor>>& outputs) {
  EXPECT_TRUE(outputs.ok()) << outputs.status().ToString();
  if (!outputs.ok()) return {};
  const auto values = (*outputs)[0].as<float>();
  return {values.begin(), values.end()};
}

TEST(SessionFusion, AnObserverSeesEveryOperator) {
  WithFusingSession([](Session& session) {
    const std::vector<float> fused = Floats(session.Run({Input()}));
    EXPECT_EQ(session.stats().run.steps, 1u);
    StepTypes types;
    EXPECT_EQ(Floats(session.Run({Input()}, &types)), fused);
    EXPECT_THAT(types.types, ElementsAre("Add", "Neg"));
    EXPECT_EQ(session.stats().run.steps, 3u);
    EXPECT_EQ(session.stats().plans, 2u);
    EXPECT_EQ(Floats(session.Run({Input()})), fused);
    EXPECT_EQ(session.stats().run.steps, 4u);
    EXPECT_EQ(session.stats().plans, 2u);
  });
}

TEST(SessionFusion, PrepareShowsTheFusedPlan) {
  WithFusingSession([](Session& session) {
    const Result<const CompiledModel*> plan = session.Prepare({Input()});
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    ASSERT_EQ((*plan)->steps().size(), 1u);
    EXPECT_EQ((*plan)->steps()[0].type, "Add+Neg");
    EXPECT_EQ((*plan)->steps()[0].name, "Neg");
  });
}

// y = relu(x w), x being read twice.
Model SharedProduct() {
  GraphBuilder g;
  const Value x = g.Data("x", {DataType::kFloat, {4}});
  const Value row = g.Op("Reshape", {{"x", x}, {"shape", g.Ints({1, 4})}});
  const Value w = g.Const("w", Tensor::FromVector<float>({DataType::kFloat, {4, 1}}, {1, 2, 3, 4}));
  const Value product = g.Op("MatMul", {{"x1", row}, {"x2", w}}, {}, "product");
  g.Output({g.Op("Relu", {{"x", product}}), product});
  return std::move(g.Build()).value();
}

// What a session prints while it runs, under NPUMESH_TRACE or not.
std::string Printed(bool trace) {
  Env env = SmallEnv();
  env.trace = trace;
  SessionOptions options;
  options.compile.fuses = [](std::string_view) { return true; };
  testing::internal::CaptureStderr();
  const auto statuses = RunRanks(1, env, [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceMemory> memory,
                             DeviceMemory::Create(world));
    NPUMESH_ASSIGN_OR_RETURN(const auto session,
                             Session::Create(world, *memory, SharedProduct(), options));
    return session->Run({Input()}).status();
  });
  EXPECT_TRUE(statuses[0].ok()) << statuses[0].ToString();
  return testing::internal::GetCapturedStderr();
}

TEST(SessionFusion, TheTraceSaysWhichKernelAndWhyNothingIsFused) {
  const std::string printed = Printed(true);
  EXPECT_THAT(printed, testing::HasSubstr("step \"product\" (MatMul): kernel: panels, packed"));
  EXPECT_THAT(printed, testing::HasSubstr("step \"product\": not fused by "
                                          "MatMulBiasActivationFusionPass: no operator alone reads "
                                          "the product"));
  EXPECT_EQ(Printed(false), "");
}

}  // namespace
}  // namespace npumesh
