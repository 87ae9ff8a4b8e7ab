// Types that are known before inputs are, and contradictions that show by them.
#include "graph/engine/analyse/partial_types.h"
#include "graph/ops/builtin_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ir/graph_builder.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TensorType Floats(Shape shape) {
  return {DataType::kFloat, std::move(shape)};
}

class PartialTypesTest : public testing::Test {
 protected:
  Value Zeros(std::string name, Shape shape) {
    return g_.Const(std::move(name), Tensor::Allocate(Floats(std::move(shape))));
  }

  void Infer(PartialEffort effort = PartialEffort::kThorough) {
    model_ = g_.Build().value();
    g_ = GraphBuilder();
    const BoundGraph bound(model_.graph, BuiltinOps());
    const auto order = model_.graph.StableOrder();
    ASSERT_TRUE(order.ok());
    Result<PartialTypes> types = PartialTypes::Of(model_, bound, *order, nullptr, effort);
    ASSERT_TRUE(types.ok()) << types.status().ToString();
    types_ = std::make_unique<PartialTypes>(std::move(*types));
  }

  std::string TypeOf(const std::string& node, int port = 0) const {
    return types_->type({model_.graph.Find(node), port}).ToString();
  }
  std::string Contradiction() const { return std::string(types_->Contradictions().message()); }

  GraphBuilder g_;
  Model model_;
  std::unique_ptr<PartialTypes> types_;
};

TEST_F(PartialTypesTest, FollowOpenDimensionsThroughAGraph) {
  const Value x = g_.Data("x", Floats({-1, 16}));
  const Value product = g_.Op("MatMul", {{"x1", x}, {"x2", Zeros("w", {16, 8})}}, {}, "product");
  const Value sum = g_.Op("Add", {{"x1", product}, {"x2", Zeros("bias", {8})}}, {}, "sum");
  const Value flat = g_.Op("Reshape", {{"x", sum}, {"shape", g_.Ints({-1, 4, 2})}}, {}, "parted");
  g_.Output({g_.Op("Relu", {{"x", flat}}, {}, "relu")});
  Infer();
  EXPECT_EQ(TypeOf("product"), "float32[-1,8]");
  EXPECT_EQ(TypeOf("sum"), "float32[-1,8]");
  EXPECT_EQ(TypeOf("relu"), "float32[-1,4,2]");
  EXPECT_EQ(Contradiction(), "");
}

TEST_F(PartialTypesTest, KnowWhatComesOutOfLateOperators) {
  const Value x = g_.Data("x", Floats({4, -1}));
  const Value found = g_.Op("NonZero", {{"x", x}}, {}, "found");
  g_.Output({g_.Op("Neg", {{"x", found}}, {}, "behind")});
  Infer();
  EXPECT_THAT(TypeOf("found"), HasSubstr("-1"));
  EXPECT_EQ(TypeOf("found"), TypeOf("behind"));
}

TEST_F(PartialTypesTest, ConstantsThatDecideShapesAreComputed) {
  const Value x = g_.Data("x", Floats({-1}));
  const Value fixed = g_.Data("fixed", Floats({2, 3}));
  const Value shape = g_.Op("Shape", {{"x", fixed}}, {}, "shape");
  g_.Output({g_.Op("Reshape", {{"x", x}, {"shape", shape}}, {}, "formed")});
  Infer();
  EXPECT_THAT(TypeOf("formed"), HasSubstr("[2,3]"));
}

TEST_F(PartialTypesTest, QuickEffortAsksNothingOfUnknownRanks) {
  for (const PartialEffort effort : {PartialEffort::kQuick, PartialEffort::kThorough}) {
    const Value x = g_.Data("x", Floats(Shape::UnknownRank()));
    g_.Output({g_.Op("Cast", {{"x", x}}, {{"dst_type", AttrValue::Int(1)}}, "cast")});
    Infer(effort);
    const DataType dtype = types_->type({model_.graph.Find("cast"), 0}).dtype;
    const bool quick = effort == PartialEffort::kQuick;
    EXPECT_EQ(dtype, quick ? DataType::kUndefined : DataType::kFloat16);
  }
}

TEST_F(PartialTypesTest, AKnownNodeThatRefusesIsAContradiction) {
  const Value x = g_.Data("x", Floats({-1, 2}));
  const Value w = g_.Data("w", Floats({3, 4}));
  const Value bad = g_.Op("MatMul", {{"x1", w}, {"x2", Zeros("v", {5, 6})}}, {}, "bad");
  g_.Output({g_.Op("Relu", {{"x", x}}), bad});
  Infer();
  EXPECT_THAT(Contradiction(),
              AllOf(HasSubstr("node \"bad\" (MatMul)"), HasSubstr("[3,4]"), HasSubstr("[5,6]")));
}

TEST_F(PartialTypesTest, KnownDimensionsBesideOpenOnesContradict) {
  const Value x = g_.Data("x", Floats({-1, 768}));
  const Value product = g_.Op("MatMul", {{"x1", x}, {"x2", Zeros("w", {512, 8})}}, {}, "product");
  const Value sum = g_.Op("Add", {{"x1", x}, {"x2", g_.Data("y", Floats({-1, 767}))}}, {}, "sum");
  g_.Output({product, sum});
  Infer();
  EXPECT_THAT(Contradiction(), AllOf(HasSubstr("2 errors"), HasSubstr("node \"product\" (MatMul)"),
                                     HasSubstr("node \"sum\" (Add)"), HasSubstr("float32[-1,768]"),
                                     HasSubstr("float32[512,8]"), HasSubstr("float32[-1,767]")));
}

// Sizes that no probe tries are no contradiction.
TEST_F(PartialTypesTest, WhatIsHardToFindIsNotRefused) {
  const Value x = g_.Data("x", Floats({-1, 7}));
  const Value parted = g_.Op("Reshape", {{"x", x}, {"shape", g_.Ints({7, 8191})}}, {}, "parted");
  const Value broadcast =
      g_.Op("Add", {{"x1", g_.Data("a", Floats({-1, 1}))}, {"x2", g_.Data("b", Floats({3, -1}))}});
  g_.Output({parted, broadcast});
  Infer();
  EXPECT_EQ(Contradiction(), "");
}

// A value that only a run knows may be what the node needs.
TEST_F(PartialTypesTest, MissingValuesAreNoContradiction) {
  const Value x = g_.Data("x", Floats({2, 3}));
  const Value shape = g_.Data("shape", {DataType::kInt64, {2}});
  g_.Output({g_.Op("Reshape", {{"x", x}, {"shape", shape}}, {}, "formed"),
             g_.Op("Relu", {{"x", g_.Data("open", Floats({-1}))}})});
  Infer();
  EXPECT_EQ(Contradiction(), "");
}

TEST_F(PartialTypesTest, ModelsWithoutOpenDimensionsAreLeftToTheCompiler) {
  const Value x = g_.Data("x", Floats({2, 3}));
  g_.Output({g_.Op("MatMul", {{"x1", x}, {"x2", Zeros("w", {4, 5})}}, {}, "bad")});
  const Model closed = g_.Build().value();
  EXPECT_TRUE(CheckKnownTypes(closed, BuiltinOps(), nullptr).ok());
  g_ = GraphBuilder();
  const Value open = g_.Data("x", Floats({-1, 3}));
  g_.Output({g_.Op("MatMul", {{"x1", open}, {"x2", Zeros("w", {4, 5})}}, {}, "bad")});
  const Status status = CheckKnownTypes(g_.Build().value(), BuiltinOps(), nullptr);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("node \"bad\""));
}

TEST_F(PartialTypesTest, ADescribedGraphSaysThem) {
  const Value x = g_.Data("x", Floats({-1, 4}));
  g_.Output({g_.Op("Relu", {{"x", x}}, {}, "relu")});
  Infer();
  DescribePartly(*types_, model_.graph);
  const Node& relu = model_.graph.node(model_.graph.Find("relu"));
  EXPECT_EQ(relu.output_descs[0].shape, Shape({-1, 4}));
  EXPECT_EQ(relu.output_descs[0].dtype, DataType::kFloat);
  EXPECT_EQ(model_.graph.node(model_.graph.NetOutput()).input_descs[0].shape, Shape({-1, 4}));
}

}  // namespace
}  // namespace npumesh
