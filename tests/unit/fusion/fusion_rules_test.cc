// What holds for all fusion passes.
#include "graph/ops/builtin_ops.h"
#include "tests/unit/fusion/fusion_fixture.h"

namespace npumesh {
namespace {

using testing::ElementsAre;

class FusionRules : public FusionTest {};

TEST_F(FusionRules, EachPassIsSwitchedByItsName) {
  const Value x = In({kFloat, {2, 8, 8}});
  const Value scores =
      g_.Op("BatchMatMul", {{"x1", x}, {"x2", x}}, {{"adj_x2", AttrValue::Bool(true)}});
  const Value seen = Two("BatchMatMul", One("SoftmaxV2", scores), x);
  const Value mean = g_.Op("ReduceMean", {{"x", One("Square", seen)}, {"axes", g_.Ints({-1})}},
                           {{"keep_dims", AttrValue::Bool(true)}});
  const Value root = One("Rsqrt", Two("Add", mean, Scalar(1e-6f)));
  const Value norm = Two("Mul", Two("Mul", seen, root), Weight({kFloat, {8}}));
  const Value product = Two("BatchMatMul", norm, Weight({kFloat, {1, 8, 8}}));
  g_.Output({One("Neg", One("Exp", Two("Add", product, Weight({kFloat, {8}}))))});
  const std::vector<std::string> attention = {"BatchMatMul", "SoftmaxV2", "BatchMatMul"};
  const auto with = [this](std::string_view pass) {
    return Run([pass](std::string_view name) { return name == pass; }).steps;
  };
  EXPECT_EQ(Unfused().steps.size(), 13u);
  EXPECT_EQ(Run([](std::string_view) { return false; }).steps, Unfused().steps);
  EXPECT_EQ(with(kAttentionFusionPass).front(), "BatchMatMul+SoftmaxV2+BatchMatMul");
  EXPECT_EQ(with(kAttentionFusionPass).size(), 11u);
  EXPECT_EQ(with(kRmsNormFusionPass)[3], "Square+ReduceMean+Add+Rsqrt+Mul+Mul");
  EXPECT_EQ(with(kMatMulFusionPass)[9], "BatchMatMul+Add");
  EXPECT_EQ(with(kElementwiseFusionPass).back(), "Add+Exp+Neg");
  EXPECT_THAT(Fused().steps,
              ElementsAre("BatchMatMul+SoftmaxV2+BatchMatMul",
                          "Square+ReduceMean+Add+Rsqrt+Mul+Mul", "BatchMatMul+Add", "Exp+Neg"));
}

// What one operator of the step reads must not be overwritten before the step runs.
TEST_F(FusionRules, AWriteBetweenKeepsOperatorsApart) {
  const TensorType type{kFloat, {8}};
  inputs_.push_back(Fill(type, 1));
  const Value kept = g_.RefData("kept", type);
  const Value sum = Two("Add", kept, Scalar(1));
  const Value written = g_.Op("Assign", {{"ref", kept}, {"value", In(type)}});
  g_.Output({Two("Mul", sum, written)});
  ExpectSame({"Add", "Assign", "Mul"});
}

TEST_F(FusionRules, AWriteBehindThemDoesNot) {
  const TensorType type{kFloat, {8}};
  inputs_.push_back(Fill(type, 1));
  const Value kept = g_.RefData("kept", type);
  const Value sum = One("Neg", Two("Add", kept, Scalar(1)));
  const Value written = g_.Op("Assign", {{"ref", kept}, {"value", sum}});
  g_.Output({written});
  ExpectSame({"Add+Neg", "Assign"});
}

TEST_F(FusionRules, ControlEdgesKeepOperatorsApart) {
  const Value a = Two("Add", In({kFloat, {8}}), Scalar(1));
  const Value b = One("Neg", a);
  const Value other = One("Abs", In({kFloat, {8}}));
  g_.Order(a, other);
  g_.Output({b, other});
  ExpectUntouched();
}

TEST_F(FusionRules, FoldedOperandsAreConstants) {
  const Value one = Two("Add", Scalar(0.25f), Scalar(0.75f));
  g_.Output({One("Neg", Two("Mul", In({kFloat, {8}}), One("Sqrt", one)))});
  ExpectSame({"Mul+Neg"});
}

TEST_F(FusionRules, TheStepHasTheNameOfItsLastNode) {
  g_.Output(
      {g_.Op("Neg", {{"x", g_.Op("Exp", {{"x", In({kFloat, {8}})}}, {}, "first")}}, {}, "last")});
  const Result<Model> model = g_.Build();
  ASSERT_TRUE(model.ok());
  std::string fused_into;
  CompileOptions options;
  options.fuses = [](std::string_view) { return true; };
  options.observer = [&](std::string_view stage, const Model& seen) {
    if (stage != "Build") return;
    fused_into = seen.graph.node(seen.graph.Find("first")).StringAttr("_fused_into", "");
    EXPECT_EQ(seen.graph.node(seen.graph.Find("last")).FindAttr("_fused_into"), nullptr);
  };
  const auto compiled =
      CompiledModel::Compile(*model, BuiltinOps(), {inputs_[0].type()}, {}, nullptr, options);
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  ASSERT_EQ((*compiled)->steps().size(), 1u);
  EXPECT_EQ((*compiled)->steps()[0].name, "last");
  EXPECT_EQ((*compiled)->arena_bytes(), 512u);  // the output: nothing between
  EXPECT_EQ(fused_into, "last");
}

}  // namespace
}  // namespace npumesh
