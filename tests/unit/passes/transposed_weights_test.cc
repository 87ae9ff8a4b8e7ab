#include "graph/passes/rewrite/transposed_weights.h"
#include "graph/ops/builtin_ops.h"

#include <gtest/gtest.h>

#include "graph/ir/graph_builder.h"

namespace npumesh {
namespace {

class TransposedWeights : public testing::Test {
 protected:
  Value Weight(const Shape& shape) {
    return g_.Const("w" + std::to_string(++weights_), Tensor::Allocate({DataType::kFloat, shape}));
  }
  Value Turned(Value x, const std::vector<int64_t>& perm) {
    return g_.Op("Transpose", {{"x", x}, {"perm", g_.Ints(perm)}});
  }
  Value Product(const std::string& type, Value a, Value b, bool transposed) {
    return g_.Op(type, {{"x1", a}, {"x2", b}}, {{"transpose_x2", AttrValue::Bool(transposed)}});
  }
  // The type of what feeds input 1 of the product, and its transpose_x2, after the pass.
  std::pair<std::string, bool> AfterPass(Value product) {
    g_.Output({product});
    Model model = g_.Build().value();
    const NodeId id = product.node;
    ReadTransposedWeights(model, BuiltinOps());
    const Status whole = model.graph.Verify();
    EXPECT_TRUE(whole.ok()) << whole.ToString();
    const Node& node = model.graph.node(id);
    return {model.graph.node(node.inputs[1]->node).type, node.BoolAttr("transpose_x2", false)};
  }

  GraphBuilder g_;
  Value x_ = g_.Data("x", {DataType::kFloat, {2, 4}});
  int weights_ = 0;
};

TEST_F(TransposedWeights, AreReadAsTheyAre) {
  EXPECT_EQ(AfterPass(Product("MatMul", x_, Turned(Weight({3, 4}), {1, 0}), false)),
            std::pair(std::string("Const"), true));
}

TEST_F(TransposedWeights, TransposedTwiceAreNotTransposed) {
  EXPECT_EQ(AfterPass(Product("MatMulV2", x_, Turned(Weight({4, 3}), {-1, -2}), true)),
            std::pair(std::string("Const"), false));
}

TEST_F(TransposedWeights, OfOtherFormsStay) {
  EXPECT_EQ(AfterPass(Product("MatMul", x_, Turned(Weight({4, 3}), {0, 1}), false)),
            std::pair(std::string("Transpose"), false));
}

TEST_F(TransposedWeights, MustBeWeights) {
  const Value y = g_.Data("y", {DataType::kFloat, {3, 4}});
  EXPECT_EQ(AfterPass(Product("MatMul", x_, Turned(y, {1, 0}), false)),
            std::pair(std::string("Transpose"), false));
}

}  // namespace
}  // namespace npumesh
