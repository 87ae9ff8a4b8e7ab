// AttentionFusionPass. Fused, the 16 products of a score, each of at most 16, may be summed in
// another order: unfused and fused scores of at most 2^8 are both off by at most 2^4 * 2^-24 * 2^8,
// so the probabilities are by a factor of e^(2^-11). The roundings behind them are far smaller.
#include "tests/unit/fusion/fusion_fixture.h"

namespace npumesh {
namespace {

constexpr double kBound = 0x1p-11;

class AttentionFusion : public FusionTest {
 protected:
  Value Product(Value a, Value b, bool transposed = false) {
    return g_.Op("BatchMatMul", {{"x1", a}, {"x2", b}}, {{"adj_x2", AttrValue::Bool(transposed)}});
  }
  Value Scaled(Value x, float by = 0.125f) {
    return g_.Op("Muls", {{"x", x}}, {{"value", AttrValue::Float(by)}});
  }
  void ExpectNotFused() {
    for (const std::string& step : Fused().steps) {
      EXPECT_THAT(step, testing::Not(testing::HasSubstr("SoftmaxV2+"))) << step;
    }
  }
};

TEST_F(AttentionFusion, TakesEveryForm) {
  // Sizes beyond one tile in both directions.
  const Shape q{2, 3, 70, 16}, k{2, 3, 150, 16}, v{2, 3, 150, 24};
  for (const std::string form : {"plain", "scaled", "multiplied", "RealDiv", "Div", "transposed"}) {
    for (const Shape& mask : {Shape{}, Shape{150}, Shape{70, 150}, Shape{2, 1, 1, 150},
                              Shape{1, 3, 70, 150}, Shape{2, 3, 70, 150}}) {
      SCOPED_TRACE(form + " " + mask.ToString());
      SetUpAnew();
      const Value query = In({kFloat, q});
      const Value key = In({kFloat, k});
      const Value value = In({kFloat, v});
      std::string steps = "BatchMatMul";
      Value scores;
      if (form == "transposed") {
        const Value turned = g_.Op("Transpose", {{"x", key}, {"perm", g_.Ints({0, 1, 3, 2})}});
        scores = Scaled(Product(query, turned));
        steps = "Transpose+BatchMatMul+Muls";
      } else {
        scores = Product(query, key, true);
        if (form == "scaled") scores = Scaled(scores), steps += "+Muls";
        if (form == "multiplied") scores = Two("Mul", Scalar(0.3f), scores), steps += "+Mul";
        if (form.ends_with("Div")) scores = Two(form, scores, Scalar(4)), steps += "+" + form;
      }
      if (mask.rank() > 0) scores = Two("Add", scores, In({kFloat, mask})), steps += "+Add";
      g_.Output({Product(One("SoftmaxV2", scores), value)});
      ExpectNear({steps + "+SoftmaxV2+BatchMatMul"}, kBound);
    }
  }
}

TEST_F(AttentionFusion, TakesHeadsWithoutBatches) {
  const Value scores = Scaled(Product(In({kFloat, {4, 9, 8}}), In({kFloat, {4, 9, 8}}), true));
  const Value causal = In({kFloat, {9, 9}});
  g_.Output({Product(One("SoftmaxV2", Two("Add", causal, scores)), In({kFloat, {4, 9, 8}}))});
  ExpectNear({"BatchMatMul+Muls+Add+SoftmaxV2+BatchMatMul"}, kBound);
}

// A softmax of nothing but -inf is NaN, and so is the sum.
TEST_F(AttentionFusion, ARowThatSeesNothingIsNan) {
  const float inf = INFINITY;
  const Value scores = Product(In({kFloat, {1, 2, 8}}), In({kFloat, {1, 3, 8}}), true);
  const Value mask =
      g_.Const("mask", Tensor::FromVector<float>({kFloat, {2, 3}}, {-inf, -inf, -inf, 0, -inf, 0}));
  g_.Output({Product(One("SoftmaxV2", Two("Add", scores, mask)), In({kFloat, {1, 3, 4}}))});
  const std::vector<double> fused = Doubles(Fused().outputs[0]);
  const std::vector<double> plain = Doubles(Unfused().outputs[0]);
  ASSERT_EQ(Fused().steps.size(), 1u);
  for (size_t i = 0; i < fused.size(); ++i) {
    EXPECT_EQ(std::isnan(fused[i]), i < 4) << i;
    EXPECT_EQ(std::isnan(plain[i]), i < 4) << i;
  }
}

TEST_F(AttentionFusion, LeavesWhatIsNoAttention) {
  const TensorType type{kFloat, {2, 8, 8}};
  const Value q = In(type);
  const Value k = In(type);
  const Value v = In(type);
  const auto softmax = [&](Value x, int64_t axis) {
    return g_.Op("SoftmaxV2", {{"x", x}}, {{"axes", AttrValue::Ints({axis})}});
  };
  const Value weights = softmax(Product(q, k, true), -1);
  const Value untransposed = softmax(Product(q, k), -1);
  const Value columns = softmax(Product(q, k, true), 1);
  const Value masked = softmax(Two("Add", Product(q, k, true), In({kFloat, {2, 8, 1}})), -1);
  g_.Output({Product(weights, v), weights,  // others read the probabilities
             Product(untransposed, v),      // q k
             Product(columns, v),           // along the rows
             Product(masked, v),            // a mask that is the same for all columns
             Product(v, softmax(Product(q, k, true), -1)),          // v p
             Product(softmax(Product(q, k, true), -1), v, true)});  // p v^T
  ExpectNotFused();
}

}  // namespace
}  // namespace npumesh
