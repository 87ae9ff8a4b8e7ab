// LayerNormFusionPass. The fused step sums in another order and takes the root in double. Unfused,
// the roundings of mean, difference, square, sum, root, reciprocal, two products and a sum are less
// than 10 half units of 2^-23 of the largest value.
#include "tests/unit/fusion/fusion_fixture.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::Not;

constexpr double kLayerNormBound = 10 * 0x1p-24;

enum class RootForm { kRsqrt, kReciprocal, kQuotient };
constexpr RootForm kRootForms[] = {RootForm::kRsqrt, RootForm::kReciprocal, RootForm::kQuotient};

class LayerNormFusion : public FusionTest {
 protected:
  Value Mean(Value x, bool keep_dims = true, int64_t axis = -1) {
    return g_.Op("ReduceMean", {{"x", x}, {"axes", g_.Ints({axis})}},
                 {{"keep_dims", AttrValue::Bool(keep_dims)}});
  }
  // c / sqrt(variance + epsilon).
  Value Quotient(Value c, Value squares, RootForm form, Value epsilon) {
    const Value sum = Two("Add", Mean(squares), epsilon);
    if (form == RootForm::kRsqrt) return Two("Mul", c, One("Rsqrt", sum));
    const Value root = One("Sqrt", sum);
    if (form == RootForm::kQuotient) return Two("RealDiv", c, root);
    return Two("Mul", c, One("Reciprocal", root));
  }
  Value Normal(Value x, RootForm form = RootForm::kRsqrt) {
    const Value c = Two("Sub", x, Mean(x));
    return Quotient(c, Two("Mul", c, c), form, Scalar(1e-5f));
  }
  Value Affine(Value normal, int64_t columns, DataType dtype = kFloat) {
    const Value scaled = Two("Mul", normal, Weight({dtype, {columns}}));
    return Two("Add", scaled, Weight({dtype, {columns}}));
  }
};

TEST_F(LayerNormFusion, TakesEachFormOfTheRoot) {
  const std::string names[] = {"Rsqrt+Mul", "Sqrt+Reciprocal+Mul", "Sqrt+RealDiv"};
  for (const RootForm form : kRootForms) {
    SetUpAnew();
    g_.Output({Affine(Normal(In({kFloat, {3, 5, 300}}), form), 300)});
    ExpectNear({"ReduceMean+Sub+Mul+ReduceMean+Add+" + names[static_cast<int>(form)] + "+Mul+Add"},
               kLayerNormBound);
  }
}

TEST_F(LayerNormFusion, TakesOtherSquaresAndOrders) {
  const Value x = In({kFloat, {5, 64}});
  const Value c = Two("Sub", x, Mean(x, true, 1));
  const Value root = One("Rsqrt", Two("Add", Scalar(1e-6f), Mean(Two("Pow", c, Scalar(2)))));
  const Value scaled = Two("Mul", Weight({kFloat, {1, 64}}), Two("Mul", root, c));
  g_.Output({Two("AddV2", Weight({kFloat, {64}}), scaled)});
  ExpectNear({"ReduceMean+Sub+Pow+ReduceMean+Add+Rsqrt+Mul+Mul+AddV2"}, kLayerNormBound);
}

TEST_F(LayerNormFusion, TakesGammaAloneOrNothing) {
  const TensorType type = {kFloat, {7, 48}};
  g_.Output({Normal(In(type)), Two("Mul", Normal(In(type)), Weight({kFloat, {48}}))});
  ExpectNear({"ReduceMean+Sub+Mul+ReduceMean+Add+Rsqrt+Mul",
              "ReduceMean+Sub+Mul+ReduceMean+Add+Rsqrt+Mul+Mul"},
             kLayerNormBound);
}

// A residual is no beta: it has a value for each element.
TEST_F(LayerNormFusion, LeavesAResidualBehindIt) {
  const Value x = In({kFloat, {7, 48}});
  const Value scaled = Two("Mul", Normal(x), Weight({kFloat, {48}}));
  g_.Output({Two("Add", scaled, x)});
  ExpectNear({"ReduceMean+Sub+Mul+ReduceMean+Add+Rsqrt+Mul+Mul", "Add"}, kLayerNormBound);
}

TEST_F(LayerNormFusion, TakesSixteenBitsThatAreNormalisedInFloat) {
  const std::pair<DataType, double> types[] = {{kHalf, 0x1p-10}, {DataType::kBfloat16, 0x1p-7}};
  for (const auto& [dtype, bound] : types) {
    SetUpAnew();
    const Value x = In({dtype, {6, 128}});
    g_.Output({Cast(Affine(Normal(Cast(x, kFloat)), 128), dtype)});
    ExpectNear({"Cast+ReduceMean+Sub+Mul+ReduceMean+Add+Rsqrt+Mul+Mul+Add+Cast"}, bound);
  }
}

// A row of one element has no variance, one of equal elements neither.
TEST_F(LayerNormFusion, RowsWithoutVarianceGiveBeta) {
  const Value ones = In({kFloat, {4, 1}});
  const Value equal = In(Tensor::FromVector<float>({kFloat, {1, 4}}, {7, 7, 7, 7}));
  g_.Output({Affine(Normal(ones), 1), Affine(Normal(equal), 4)});
  const Outcome fused = Fused();
  EXPECT_EQ(fused.steps.size(), 2u);
  const Outcome plain = Unfused();
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(Doubles(fused.outputs[i]), Doubles(plain.outputs[i]));
}

TEST_F(LayerNormFusion, LeavesWhatIsNoLayerNorm) {
  const Value x = In({kFloat, {8, 8}});
  const Value y = In({kFloat, {8, 8}});
  const auto norm = [&](Value c) {
    return Quotient(c, One("Square", c), RootForm::kRsqrt, Scalar(1));
  };
  const Value shared = Two("Sub", x, Mean(x));
  g_.Output({norm(Two("Sub", x, Mean(y))),           // the mean of something else
             norm(Two("Sub", x, Mean(x, true, 0))),  // over the rows
             norm(Two("Sub", Mean(x), x)),           // the other way round
             norm(Two("Add", x, Mean(x))),
             Quotient(shared, One("Square", shared), RootForm::kRsqrt, Scalar(1)),
             shared});  // the difference is an output
  for (const std::string& step : Fused().steps) {
    EXPECT_THAT(step, Not(testing::ContainsRegex("ReduceMean.Sub.Square")));
    EXPECT_THAT(step, Not(testing::ContainsRegex("Sub.Square.ReduceMean")));
  }
}

// What reads the mean keeps the norm whole from the difference on: that is a RmsNorm.
TEST_F(LayerNormFusion, LeavesTheRestToRmsNorm) {
  const Value x = In({kFloat, {8, 8}});
  const Value mean = Mean(x);
  const Value c = Two("Sub", x, mean);
  const Value normal = Quotient(c, One("Square", c), RootForm::kRsqrt, Scalar(1e-5f));
  g_.Output({Two("Mul", normal, Weight({kFloat, {8}})), mean});
  ExpectNear({"ReduceMean", "Sub", "Square+ReduceMean+Add+Rsqrt+Mul+Mul"}, kLayerNormBound);
  EXPECT_THAT(Fused().said, ElementsAre("Mul_1: not fused by LayerNormFusionPass at \"Rsqrt\": "
                                        "others read what lies between"));
}

}  // namespace
}  // namespace npumesh
