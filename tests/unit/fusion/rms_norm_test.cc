// RmsNormFusionPass. The fused step sums the squares in another order and takes the root in double,
// so results may differ in the last bits: unfused, w * r * gamma carries the roundings of the
// square, mean, sum, root, reciprocal and two products, less than 8 half units of 2^-23 together.
#include "tests/unit/fusion/fusion_fixture.h"

namespace npumesh {
namespace {

constexpr double kFloatBound = 8 * 0x1p-24;

class RmsNormFusion : public FusionTest {
 protected:
  Value Mean(Value x, bool keep_dims = true, int64_t axis = -1) {
    return g_.Op("ReduceMean", {{"x", x}, {"axes", g_.Ints({axis})}},
                 {{"keep_dims", AttrValue::Bool(keep_dims)}});
  }
  // The reciprocal root of the mean square of w plus epsilon.
  Value Root(Value squares, Value epsilon, bool keep_dims = true, int64_t axis = -1) {
    return One("Rsqrt", Two("Add", Mean(squares, keep_dims, axis), epsilon));
  }
  Value Square(Value w) { return Two("Mul", w, w); }
  void ExpectNotFused() {
    for (const std::string& step : Fused().steps) {
      EXPECT_THAT(step, testing::Not(testing::HasSubstr("ReduceMean+"))) << step;
    }
  }
};

TEST_F(RmsNormFusion, TakesTheFloatForm) {
  const Value x = In({kFloat, {3, 4, 300}});
  const Value quotient = Two("Mul", x, Root(Square(x), Scalar(1e-5f)));
  g_.Output({Two("Mul", quotient, Weight({kFloat, {300}}))});
  ExpectNear({"Mul+ReduceMean+Add+Rsqrt+Mul+Mul"}, kFloatBound);
}

TEST_F(RmsNormFusion, TakesOtherSquaresAndOrders) {
  for (const bool power : {false, true}) {
    SetUpAnew();
    const Value x = In({kFloat, {5, 64}});
    const Value squares = power ? Two("Pow", x, Scalar(2)) : One("Square", x);
    const Value root = One("Rsqrt", Two("Add", Scalar(1e-6f), Mean(squares, true, 1)));
    g_.Output({Two("Mul", Weight({kFloat, {1, 64}}), Two("Mul", root, x))});
    ExpectNear({power ? "Pow+ReduceMean+Add+Rsqrt+Mul+Mul" : "Square+ReduceMean+Add+Rsqrt+Mul+Mul"},
               kFloatBound);
  }
}

// As exporters write the root: its reciprocal, or a quotient.
TEST_F(RmsNormFusion, TakesOtherRoots) {
  for (const bool divides : {false, true}) {
    SetUpAnew();
    const Value x = In({kFloat, {5, 64}});
    const Value root = One("Sqrt", Two("Add", Mean(Square(x), true, 1), Scalar(1e-6f)));
    const Value quotient =
        divides ? Two("RealDiv", x, root) : Two("Mul", x, One("Reciprocal", root));
    g_.Output({Two("Mul", quotient, Weight({kFloat, {64}}))});
    ExpectNear({divides ? "Mul+ReduceMean+Add+Sqrt+RealDiv+Mul"
                        : "Mul+ReduceMean+Add+Sqrt+Reciprocal+Mul+Mul"},
               kFloatBound);
  }
}

TEST_F(RmsNormFusion, LeavesARootThatIsDivided) {
  const Value x = In({kFloat, {5, 64}});
  const Value root = One("Sqrt", Two("Add", Mean(Square(x), true, 1), Scalar(1e-6f)));
  g_.Output({Two("Mul", Two("RealDiv", root, x), Weight({kFloat, {64}}))});
  ExpectNotFused();
}

// Half a unit of the type where the float result lies near the middle of two values, and the
// product with gamma carries it on.
TEST_F(RmsNormFusion, TakesSixteenBitsThatAreNormalisedInFloat) {
  const std::pair<DataType, double> types[] = {{kHalf, 0x1p-10}, {DataType::kBfloat16, 0x1p-7}};
  for (const auto& [dtype, bound] : types) {
    for (const bool gamma_in_float : {false, true}) {
      SetUpAnew();
      const Value x = In({dtype, {6, 128}});
      const Value w = Cast(x, kFloat);
      const Value quotient = Two("Mul", w, Root(Square(w), Scalar(1e-5f)));
      if (gamma_in_float) {
        g_.Output({Cast(Two("Mul", quotient, Weight({kFloat, {128}})), dtype)});
        ExpectNear({"Cast+Mul+ReduceMean+Add+Rsqrt+Mul+Mul+Cast"}, bound);
      } else {
        g_.Output({Two("Mul", Weight({dtype, {128}}), Cast(quotient, dtype))});
        ExpectNear({"Cast+Mul+ReduceMean+Add+Rsqrt+Mul+Cast+Mul"}, bound);
      }
    }
  }
}

// As a float32 model is exported whose code casts to the type of its input.
TEST_F(RmsNormFusion, TakesCastsThatChangeNothing) {
  const Value x = In({kFloat, {6, 128}});
  const Value quotient = Cast(Two("Mul", x, Root(Square(x), Scalar(1e-5f))), kFloat);
  g_.Output({Cast(Two("Mul", Weight({kFloat, {128}}), quotient), kFloat)});
  ExpectNear({"Mul+ReduceMean+Add+Rsqrt+Mul+Cast+Mul+Cast"}, kFloatBound);
}

TEST_F(RmsNormFusion, AWidenedInputThatOthersReadKeepsItsCast) {
  const Value w = Cast(In({kHalf, {6, 128}}), kFloat);
  const Value quotient = Two("Mul", w, Root(Square(w), Scalar(1e-5f)));
  g_.Output({Two("Mul", quotient, Weight({kFloat, {128}})), w});
  ExpectNear({"Cast", "Mul+ReduceMean+Add+Rsqrt+Mul+Mul"}, kFloatBound);
}

TEST_F(RmsNormFusion, LeavesWhatIsNoRmsNorm) {
  const TensorType type{kFloat, {8, 8}};
  const Value x = In(type);
  const Value y = In(type);
  const Value gamma = Weight({kFloat, {8}});
  const auto norm = [&](Value w, Value root) { return Two("Mul", Two("Mul", w, root), gamma); };
  std::vector<Value> outputs = {
      norm(x, Root(Two("Mul", x, y), Scalar(1e-5f))),            // no square
      norm(y, Root(Square(x), Scalar(1e-5f))),                   // another numerator
      norm(x, Root(Square(x), Scalar(1e-5f), true, 0)),          // over the rows
      norm(x, Root(Square(x), Scalar(1e-5f), false)),            // along the rows
      norm(x, Root(Square(x), In({kFloat, {1}}))),               // epsilon is not known
      norm(x, Root(Two("Pow", x, Scalar(3)), Scalar(1e-5f))),    // a cube
      Two("Mul", Two("Mul", x, Root(Square(x), Scalar(1))), y),  // gamma for each row
      Two("Mul", x, Root(Square(x), Scalar(1)))};                // no gamma
  const Value root = Root(Square(x), Scalar(1e-5f));
  outputs.insert(outputs.end(), {norm(x, root), root});  // the root is an output
  g_.Output(outputs);
  ExpectNotFused();
}

// 16 bits all the way: the operators round the squares, the fused one would not.
TEST_F(RmsNormFusion, LeavesStatisticsInSixteenBits) {
  const Value x = In({kHalf, {8, 8}});
  const Value quotient = Two("Mul", x, Root(Square(x), Scalar(1e-3f, kHalf)));
  g_.Output({Two("Mul", quotient, Weight({kHalf, {8}}))});
  ExpectNotFused();
}

}  // namespace
}  // namespace npumesh
