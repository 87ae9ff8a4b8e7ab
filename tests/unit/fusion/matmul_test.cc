// MatMulBiasActivationFusionPass.
#include "tests/unit/fusion/fusion_fixture.h"

namespace npumesh {
namespace {

class MatMulFusion : public FusionTest {
 protected:
  Value Product(Value a, Value b, const std::string& type = "MatMul") { return Two(type, a, b); }
  // Only this pass, so that nothing else takes what it must leave.
  void ExpectLeft(const std::vector<std::string>& steps) {
    const Outcome fused = Run([](std::string_view pass) { return pass == kMatMulFusionPass; });
    EXPECT_THAT(fused.steps, testing::ElementsAreArray(steps));
  }
};

TEST_F(MatMulFusion, TakesBiasAndActivationWithTheSameBits) {
  for (const DataType dtype : {kFloat, kHalf, DataType::kBfloat16}) {
    for (const char* activation :
         {"Relu", "Gelu", "GeluV2", "FastGelu", "Swish", "Sigmoid", "Tanh"}) {
      SCOPED_TRACE(fmt::format("{} {}", Name(dtype), activation));
      SetUpAnew();
      const Value product = Product(In({dtype, {5, 33}}), Weight({dtype, {33, 70}}));
      g_.Output({One(activation, Two("Add", product, Weight({dtype, {70}})))});
      ExpectSame({fmt::format("MatMul+Add+{}", activation)});
    }
  }
}

TEST_F(MatMulFusion, TakesOneOfBoth) {
  const Value x = In({kFloat, {5, 33}});
  const Value sum = Two("Add", Weight({kFloat, {1, 40}}), Product(x, Weight({kFloat, {33, 40}})));
  const Value active = One("Relu", Product(x, Weight({kFloat, {33, 40}})));
  g_.Output({sum, active});
  ExpectSame({"MatMul+Add", "MatMul+Relu"});
}

TEST_F(MatMulFusion, KnowsTheBiasOfTheOperator) {
  const Value product = g_.Op("MatMulV2", {{"x1", In({kFloat, {4, 8}})},
                                           {"x2", Weight({kFloat, {8, 16}})},
                                           {"bias", Weight({kFloat, {16}})}});
  g_.Output({One("Tanh", Two("Add", product, In({kFloat, {16}})))});
  ExpectSame({"MatMulV2+Add+Tanh"});
}

TEST_F(MatMulFusion, TakesBatchesAndTransposedOperands) {
  const Value product =
      g_.Op("BatchMatMul", {{"x1", In({kFloat, {2, 3, 4, 8}})}, {"x2", In({kFloat, {3, 16, 8}})}},
            {{"adj_x2", AttrValue::Bool(true)}});
  g_.Output({One("Relu", Two("Add", product, In({kFloat, {16}})))});
  ExpectSame({"BatchMatMul+Add+Relu"});
}

TEST_F(MatMulFusion, ProductsOverNothingAreTheBias) {
  const Value product = Product(In({kFloat, {3, 0}}), In({kFloat, {0, 8}}));
  g_.Output({One("Relu", Two("Add", product, In({kFloat, {8}})))});
  ExpectSame({"MatMul+Add+Relu"});
}

TEST_F(MatMulFusion, NanAndInfinityPassThrough) {
  const Value product = Product(In({kFloat, {3, 8}}), Weight({kFloat, {8, 4}}));
  const Value bias = g_.Const(
      "bias", Tensor::FromVector<float>({kFloat, {4}}, {std::nanf(""), INFINITY, -INFINITY, 0}));
  g_.Output({One("Relu", Two("Add", product, bias))});
  ExpectSame({"MatMul+Add+Relu"});
}

TEST_F(MatMulFusion, LeavesWhatOthersRead) {
  const Value x = In({kFloat, {4, 8}});
  const Value read_twice = Product(x, Weight({kFloat, {8, 4}}));
  const Value given_out = Product(x, Weight({kFloat, {8, 4}}));
  g_.Output({One("Relu", read_twice), One("Tanh", read_twice), given_out, One("Relu", given_out)});
  ExpectLeft({"MatMul", "MatMul", "Relu", "Tanh", "Relu"});
}

TEST_F(MatMulFusion, TakesAResidualWithTheSameBits) {
  for (const DataType dtype : {kFloat, kHalf, DataType::kBfloat16}) {
    for (const char* with : {"", "+Add", "+Relu", "+Add+Relu"}) {
      for (const bool first : {false, true}) {
        SCOPED_TRACE(fmt::format("{} {} {}", Name(dtype), with, first));
        SetUpAnew();
        const bool biased = std::string_view(with).starts_with("+Add");
        const Value x = In({dtype, {3, 7, 33}});
        Value y = Product(x, Weight({dtype, {33, 70}}), "BatchMatMul");
        if (biased) y = Two("Add", y, Weight({dtype, {70}}));
        const Value residual = In({dtype, {3, 7, 70}});
        y = first ? Two("Add", residual, y) : Two("Add", y, residual);
        if (std::string_view(with).ends_with("Relu")) y = One("Relu", y);
        g_.Output({y});
        ExpectSame({std::string("BatchMatMul+Add") + with});
      }
    }
  }
}

// k in several blocks, rows in several tiles, the last panel in part; a batch of products, and one
// over nothing.
TEST_F(MatMulFusion, AddsResidualsOfEveryShape) {
  for (const auto& [x, w] :
       {std::pair(Shape{70, 1700}, Shape{1700, 77}), std::pair(Shape{1, 64}, Shape{64, 96}),
        std::pair(Shape{4, 13, 8}, Shape{4, 8, 40}), std::pair(Shape{2, 3, 5, 8}, Shape{3, 8, 9}),
        std::pair(Shape{5, 0}, Shape{0, 6})}) {
    SCOPED_TRACE(fmt::format("{} {}", x, w));
    SetUpAnew();
    Shape y = x;
    y.mutable_dims().back() = w.dims().back();
    const Value product = Product(In({kFloat, x}), In({kFloat, w}), "BatchMatMul");
    g_.Output({Two("Add", product, In({kFloat, y}))});
    ExpectSame({"BatchMatMul+Add"});
  }
}

// As a decoder writes it: each product adds to what the layers before it left, which others read.
TEST_F(MatMulFusion, TakesTheResidualsOfLayers) {
  Value x = One("Neg", In({kFloat, {6, 40}}));
  for (int layer = 0; layer < 3; ++layer) {
    x = Two("Add", x, Product(One("Exp", x), Weight({kFloat, {40, 40}})));
  }
  g_.Output({x});
  ExpectSame({"Neg", "Exp", "MatMul+Add", "Exp", "MatMul+Add", "Exp", "MatMul+Add"});
}

TEST_F(MatMulFusion, ABiasOfTheOperatorComesBeforeBoth) {
  const Value product = g_.Op("MatMulV2", {{"x1", In({kFloat, {4, 8}})},
                                           {"x2", Weight({kFloat, {8, 16}})},
                                           {"bias", Weight({kFloat, {16}})}});
  const Value sum = Two("Add", In({kFloat, {16}}), product);
  g_.Output({One("Tanh", Two("Add", In({kFloat, {4, 16}}), sum))});
  ExpectSame({"MatMulV2+Add+Add+Tanh"});
}

// Of two products that are added, the second takes the first.
TEST_F(MatMulFusion, LeavesResidualsThatComeLater) {
  const Value first = Product(In({kFloat, {4, 8}}), Weight({kFloat, {8, 4}}));
  const Value second = Product(In({kFloat, {4, 8}}), Weight({kFloat, {8, 4}}));
  g_.Output({Two("Add", first, second)});
  ExpectSame({"MatMul", "MatMul+Add"});
}

TEST_F(MatMulFusion, LeavesOtherSums) {
  const Value x = In({kFloat, {4, 8}});
  const auto product = [&] { return Product(x, Weight({kFloat, {8, 4}})); };
  const Value column = Two("Add", product(), In({kFloat, {4, 1}}));
  const Value wider = Two("Add", product(), In({kFloat, {2, 4, 4}}));
  const Value scalar = Two("Add", product(), Scalar(1));
  const Value same = product();
  const Value doubled = Two("Add", same, same);
  g_.Output({column, wider, scalar, doubled});
  const Outcome fused = Run([](std::string_view pass) { return pass == kMatMulFusionPass; });
  EXPECT_EQ(fused.steps, Unfused().steps);
}

TEST_F(MatMulFusion, LeavesOtherTypes) {
  const Value halves = Product(In({kHalf, {4, 8}}), Weight({kHalf, {8, 4}}));
  const Value integers =
      Product(In({DataType::kInt32, {4, 8}}), Weight({DataType::kInt32, {8, 4}}));
  g_.Output(
      {Two("Add", halves, In({kFloat, {4}})), Two("Add", integers, In({DataType::kInt32, {4}}))});
  ExpectUntouched();
}

}  // namespace
}  // namespace npumesh
