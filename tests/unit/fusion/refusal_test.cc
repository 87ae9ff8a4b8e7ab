// What a plan says about patterns that a pass found begin and did not fuse.
#include "graph/ops/builtin_ops.h"
#include "tests/unit/fusion/fusion_fixture.h"

namespace npumesh {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class FusionRefusals : public FusionTest {
 protected:
  // With all passes: "<step>: <what is said>".
  std::vector<std::string> Said() {
    const Result<Model> model = g_.Build();
    EXPECT_TRUE(model.ok()) << model.status().ToString();
    if (!model.ok()) return {};
    CompileOptions options;
    options.fuses = [](std::string_view) { return true; };
    std::vector<TensorType> types;
    for (const Tensor& input : inputs_) types.push_back(input.type());
    const auto plan =
        CompiledModel::Compile(*model, BuiltinOps(), types, inputs_, nullptr, options);
    EXPECT_TRUE(plan.ok()) << plan.status().ToString();
    if (!plan.ok()) return {};
    std::vector<std::string> said;
    for (const UnfusedNode& node : (*plan)->facts().unfused) {
      said.push_back(node.step + ": " + node.ToString());
    }
    return said;
  }
  Value Named(const std::string& type, const std::string& name, Value a, Value b) {
    return g_.Op(type, {{"x1", a}, {"x2", b}}, {}, name);
  }
  Value Unary(const std::string& type, const std::string& name, Value x) {
    return g_.Op(type, {{"x", x}}, {}, name);
  }
};

TEST_F(FusionRefusals, NothingIsSaidOfWhatIsFused) {
  const Value product = Two("MatMul", In({kFloat, {4, 8}}), Weight({kFloat, {8, 4}}));
  g_.Output({One("Relu", Two("Add", product, Weight({kFloat, {4}})))});
  EXPECT_THAT(Said(), IsEmpty());
}

TEST_F(FusionRefusals, OfProducts) {
  const Value x = In({kFloat, {4, 8}});
  const auto product = [&](const std::string& name) {
    return Named("MatMul", name, x, Weight({kFloat, {8, 4}}));
  };
  const Value twice = product("twice");
  const Value column = Named("Add", "sum", product("no_bias"), In({kFloat, {4, 1}}));
  const Value early = product("early");
  const Value late = Named("Add", "late", early, One("Neg", product("other")));
  const Value integers = Named("MatMul", "integers", In({DataType::kInt32, {4, 8}}),
                               Weight({DataType::kInt32, {8, 4}}));
  g_.Output({One("Exp", twice), One("Neg", twice), column, late, integers});
  const std::string pass = ": not fused by MatMulBiasActivationFusionPass: ";
  EXPECT_THAT(Said(), UnorderedElementsAre(
                          "twice" + pass + "no operator alone reads the product",
                          "no_bias" + pass + "what is added is neither a bias nor like the product",
                          "early" + pass + "what is added is computed after it",
                          "other" + pass + "neither a sum nor an activation of its type follows",
                          "integers" + pass + "the product is not of floats"));
}

TEST_F(FusionRefusals, OfControlEdges) {
  const Value product = Named("MatMul", "held", In({kFloat, {4, 8}}), Weight({kFloat, {8, 4}}));
  const Value other = One("Abs", In({kFloat, {8}}));
  g_.Order(product, other);
  g_.Output({One("Relu", product), other});
  EXPECT_THAT(Said(),
              ElementsAre("held: not fused by MatMulBiasActivationFusionPass: a control edge "
                          "holds one of its operators"));
}

// A root without a norm becomes part of a chain, which says what was found there.
TEST_F(FusionRefusals, OfNorms) {
  const Value x = In({kFloat, {4, 8}});
  const auto root = [&](const std::string& name, Value epsilon) {
    const Value mean = g_.Op("ReduceMean", {{"x", One("Square", x)}, {"axes", g_.Ints({-1})}},
                             {{"keep_dims", AttrValue::Bool(true)}});
    return Unary("Rsqrt", name, Two("Add", mean, epsilon));
  };
  const Value open = Named("Mul", "scaled", x, root("open", In({kFloat, {1}})));
  const Value bare = Named("Mul", "bare_scaled", x, root("bare", Scalar(1e-6f)));
  const Value lone = Unary("Rsqrt", "lone", In({kFloat, {8}}));
  g_.Output({open, bare, lone});
  const std::vector<std::string> said = Said();
  const std::string pass = "not fused by RmsNormFusionPass: ";
  EXPECT_THAT(said, Contains("open: " + pass + "epsilon is no constant"));
  EXPECT_THAT(said, Contains("bare: " + pass + "no product with gamma follows"));
  EXPECT_THAT(said, Contains("lone: " + pass + "its root is that of no sum"));
}

TEST_F(FusionRefusals, OfAttention) {
  const auto scores = [&] {
    return g_.Op("BatchMatMul", {{"x1", In({kFloat, {2, 8, 4}})}, {"x2", In({kFloat, {2, 8, 4}})}},
                 {{"adj_x2", AttrValue::Bool(true)}});
  };
  const Value first =
      g_.Op("SoftmaxV2", {{"x", scores()}}, {{"axes", AttrValue::Ints({1})}}, "rows");
  const Value last = Unary("SoftmaxV2", "last", scores());
  const Value alone = Unary("SoftmaxV2", "alone", In({kFloat, {2, 8, 8}}));
  const Value bent = Unary("SoftmaxV2", "bent", One("Tanh", scores()));
  g_.Output({first, last, alone, bent});
  const std::string pass = ": not fused by AttentionFusionPass: ";
  const std::vector<std::string> said = Said();
  EXPECT_THAT(said,
              Contains("rows" + pass + "the softmax is not that of floats over the last axis"));
  EXPECT_THAT(said, Contains("last" + pass + "no product alone reads the softmax from the left"));
  EXPECT_THAT(said, Contains("alone" + pass + "no product gives the scores"));
  EXPECT_THAT(said, Contains("bent" + pass +
                             "more than scale, shift and mask leads from the product to the "
                             "softmax"));
}

TEST_F(FusionRefusals, OfChains) {
  const Value x = In({kFloat, {8}});
  const Value shared = Unary("Exp", "shared", x);
  const Value wide = Named("Add", "wide", Unary("Neg", "narrow", x), In({kFloat, {4, 8}}));
  g_.Output({shared, Unary("Neg", "reader", shared), wide});
  const std::string pass = ": not fused by ElementwiseChainFusionPass: ";
  EXPECT_THAT(Said(), UnorderedElementsAre("wide" + pass + "what it reads has another shape",
                                           "reader" + pass + "others read what it reads"));
}

TEST_F(FusionRefusals, NameTheNodeInAStepOfAnother) {
  const Value root = Unary("Rsqrt", "root", In({kFloat, {8}}));
  g_.Output({Unary("Neg", "end", root)});
  EXPECT_THAT(Said(),
              ElementsAre("end: not fused by RmsNormFusionPass at \"root\": its root is that "
                          "of no sum"));
}

}  // namespace
}  // namespace npumesh
