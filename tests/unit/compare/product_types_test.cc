// Every operator that is a product of matrices goes through every pass, check and reference that
// knows products.
#include <gmock/gmock.h>

#include "graph/compare/golden/reference_ops.h"
#include "graph/engine/analyse/partial_types.h"
#include "graph/ir/graph_builder.h"
#include "graph/ops/builtin_ops.h"
#include "graph/passes/fusion/fusion.h"
#include "graph/passes/rewrite/private_formats.h"
#include "graph/passes/rewrite/transposed_weights.h"
#include "graph/session/session.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> ProductTypes() {
  std::vector<std::string> types;
  for (const std::string_view type : BuiltinOps().Types()) {
    if (BuiltinOps().Find(type)->axes.product()) types.emplace_back(type);
  }
  return types;
}

class ProductType : public testing::TestWithParam<std::string> {
 protected:
  const ProductTrait& trait() const { return *BuiltinOps().Find(GetParam())->axes.product(); }

  Value Product(Value left, Value right, bool transposed = false) {
    return g_.Op(GetParam(),
                 {{std::string(trait().left), left}, {std::string(trait().right), right}},
                 {{std::string(trait().right_transposed), AttrValue::Bool(transposed)}}, "product");
  }
  Value Weight(Shape shape) {
    return g_.Const("w", Tensor::Allocate({DataType::kFloat, std::move(shape)}));
  }
  Value Data(const std::string& name, Shape shape) {
    return g_.Data(name, {DataType::kFloat, std::move(shape)});
  }

  // Types of the steps that run for inputs of zeros.
  std::vector<std::string> Steps(Value output, const std::vector<Shape>& inputs) {
    g_.Output({output});
    std::vector<Tensor> data;
    for (const Shape& shape : inputs) data.push_back(Tensor::Allocate({DataType::kFloat, shape}));
    std::vector<std::string> steps;
    Run(BuiltinOps(), [&](Session& session) -> Status {
      NPUMESH_ASSIGN_OR_RETURN(const CompiledModel* const plan, session.Prepare(data));
      for (const Step& step : plan->steps()) steps.push_back(step.type);
      return Status();
    });
    return steps;
  }

  void Run(const OpRegistry& registry, const std::function<Status(Session&)>& body) {
    const Model model = g_.Build().value();
    Env env;
    env.hbm_bytes = uint64_t{8} << 20;
    const auto statuses = RunRanks(1, env, [&](World& world) -> Status {
      NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
      SessionOptions options;
      options.registry = &registry;
      options.compile.fuses = [](std::string_view) { return true; };
      NPUMESH_ASSIGN_OR_RETURN(const auto session, Session::Create(world, *memory, model, options));
      return body(*session);
    });
    EXPECT_TRUE(statuses[0].ok()) << statuses[0].ToString();
  }

  GraphBuilder g_;
};

TEST(ProductTypes, AreTheMatMulFamily) {
  EXPECT_THAT(ProductTypes(), ElementsAre("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "MatMul",
                                          "MatMulV2", "MatMulV3"));
}

TEST_P(ProductType, NamesPortsAndAttributesThatExist) {
  const OpSchema& schema = BuiltinOps().Find(GetParam())->schema;
  for (const std::string_view name : {trait().left_transposed, trait().right_transposed}) {
    EXPECT_TRUE(std::any_of(schema.attrs.begin(), schema.attrs.end(), [&](const AttrSpec& attr) {
      return attr.name == name && attr.pattern.get<bool>() != nullptr;
    })) << name;
  }
  EXPECT_EQ(schema.inputs[0].name, trait().left);
  EXPECT_EQ(schema.inputs[1].name, trait().right);
  EXPECT_EQ(trait().bias.empty(), schema.inputs.size() == 2);
}

TEST_P(ProductType, IsFusedWithBiasAndActivation) {
  const Value product = Product(Data("x", {2, 4}), Weight({4, 3}));
  const Value sum = g_.Op("Add", {{"x1", product}, {"x2", Data("b", {3})}});
  EXPECT_THAT(Steps(g_.Op("Relu", {{"x", sum}}), {{2, 4}, {3}}),
              ElementsAre(GetParam() + "+Add+Relu"));
}

TEST_P(ProductType, IsFusedIntoAttention) {
  const Value q = Data("q", {2, 3, 4});
  const Value k = Data("k", {2, 5, 4});
  const Value scores = Product(q, k, true);
  const Value weights =
      g_.Op("SoftmaxV2", {{"x", scores}}, {{"axes", AttrValue::Ints({-1})}}, "softmax");
  const std::vector<std::string> steps =
      Steps(Product(weights, Data("v", {2, 5, 6})), {{2, 3, 4}, {2, 5, 4}, {2, 5, 6}});
  EXPECT_EQ(steps.size(), 1u) << testing::PrintToString(steps);
}

TEST_P(ProductType, HasItsWeightInAPrivateFormat) {
  g_.Output({Product(Data("x", {2, 4}), Weight({4, 3}))});
  Model model = g_.Build().value();
  EXPECT_EQ(UseInternalFormatWeight(model).value(), 1);
  EXPECT_EQ(model.graph.node(model.graph.Find("w")).output_descs[0].layout, "FRACTAL_NZ");
}

TEST_P(ProductType, ReadsATransposedWeightAsItIs) {
  const Value turned =
      g_.Op("Transpose", {{"x", Weight({3, 4})}, {"perm", g_.Ints({1, 0})}}, {}, "turn");
  g_.Output({Product(Data("x", {2, 4}), turned)});
  Model model = g_.Build().value();
  ReadTransposedWeights(model, BuiltinOps());
  const Node& product = model.graph.node(model.graph.Find("product"));
  EXPECT_EQ(model.graph.node(product.inputs[1]->node).name, "w");
  EXPECT_TRUE(product.BoolAttr(trait().right_transposed, false));
}

TEST_P(ProductType, IsRefusedWhereKnownDimensionsDoNotFit) {
  g_.Output({Product(Data("x", {-1, 4}), Weight({3, 5}), true)});
  const Status status = CheckKnownTypes(g_.Build().value(), BuiltinOps(), nullptr);
  EXPECT_THAT(status.message(), HasSubstr("node \"product\""));
}

TEST_P(ProductType, HasAReferenceInFloat64) {
  const Tensor left = Tensor::FromVector<float>({DataType::kFloat, {1, 3}}, {1e8f, 1, -1e8f});
  const Tensor ones = Tensor::FromVector<float>({DataType::kFloat, {3, 1}}, {1, 1, 1});
  const Value x = Data("x", {1, 3});
  const Value y = Data("y", {3, 1});
  g_.Output({Product(x, y)});
  Run(ReferenceOps(), [&](Session& session) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> sums, session.Run({left, ones}));
    EXPECT_EQ(sums[0].as<float>()[0], 1.0f);
    return Status();
  });
}

INSTANTIATE_TEST_SUITE_P(All, ProductType, testing::ValuesIn(ProductTypes()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace npumesh
