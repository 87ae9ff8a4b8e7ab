// ElementwiseChainFusionPass.
#include "tests/unit/fusion/fusion_fixture.h"

namespace npumesh {
namespace {

using testing::ElementsAre;

class ElementwiseFusion : public FusionTest {
 protected:
  static constexpr DataType kInt = DataType::kInt32;
};

// Around the length of a block, and a block in the middle of a row.
TEST_F(ElementwiseFusion, RunsChainsOfAnyLengthWithTheSameBits) {
  for (const DataType dtype : {kFloat, kHalf, DataType::kBfloat16, DataType::kDouble}) {
    for (const Shape& shape : {Shape{1}, Shape{511}, Shape{512}, Shape{513}, Shape{7, 300}}) {
      SCOPED_TRACE((TensorType{dtype, shape}).ToString());
      SetUpAnew();
      const Value x = In({dtype, shape});
      Value y = Two("Mul", Two("Add", x, In({dtype, shape})), x);
      y = Two("Sub", One("Tanh", y), Scalar(0.3f, dtype));
      g_.Output({One("Abs", y)});
      ExpectSame({"Add+Mul+Tanh+Sub+Abs"});
    }
  }
}

TEST_F(ElementwiseFusion, BroadcastsOperands) {
  const Value x = In({kFloat, {6, 5, 40}});
  Value y = Two("Add", x, In({kFloat, {40}}));
  y = Two("Mul", In({kFloat, {5, 1}}), y);
  y = Two("Maximum", y, In({kFloat, {6, 1, 40}}));
  g_.Output({Two("RealDiv", y, In({kFloat, {1, 1, 1}}))});
  ExpectSame({"Add+Mul+Maximum+RealDiv"});
}

TEST_F(ElementwiseFusion, ADiamondIsOneStep) {
  const Value x = Two("Add", In({kFloat, {600}}), Scalar(1));
  g_.Output({Two("Mul", x, One("Sigmoid", x))});
  ExpectSame({"Add+Sigmoid+Mul"});
}

TEST_F(ElementwiseFusion, ConvertsBetweenOperators) {
  const Value wide = Two("Mul", Cast(In({kHalf, {700}}), kFloat), In({kFloat, {700}}));
  const Value narrow = Cast(wide, DataType::kBfloat16);
  g_.Output({Cast(Two("Add", narrow, In({DataType::kBfloat16, {700}})), kInt)});
  ExpectSame({"Cast+Mul+Cast+Add+Cast"});
}

TEST_F(ElementwiseFusion, ComparesAndSelects) {
  const Value x = In({kFloat, {3, 400}});
  const Value above = Two("Greater", Two("Mul", x, Scalar(2)), In({kFloat, {400}}));
  g_.Output({g_.Op("SelectV2", {{"condition", above}, {"then", x}, {"else", Scalar(-1)}})});
  ExpectSame({"Mul+Greater+SelectV2"});
}

TEST_F(ElementwiseFusion, CountsInIntegers) {
  const Value x = In({kInt, {600}});
  g_.Output({One("Abs", Two("Mul", Two("Add", x, In({kInt, {600}})), x))});
  ExpectSame({"Add+Mul+Abs"});
}

TEST_F(ElementwiseFusion, LongChainsAreCut) {
  Value x = In({kFloat, {100}});
  for (int i = 0; i < 40; ++i) x = One(i % 2 == 0 ? "Sigmoid" : "Neg", x);
  g_.Output({x});
  const Outcome fused = Fused();
  EXPECT_THAT(fused.steps, testing::SizeIs(3));
  EXPECT_EQ(Doubles(fused.outputs[0]), Doubles(Unfused().outputs[0]));
}

TEST_F(ElementwiseFusion, LeavesWhatOthersRead) {
  const Value sum = Two("Add", In({kFloat, {8}}), In({kFloat, {8}}));
  const Value given_out = One("Neg", In({kFloat, {8}}));
  const Value reduced = g_.Op("ReduceSum", {{"x", sum}, {"axes", g_.Ints({0})}});
  g_.Output({One("Abs", sum), reduced, given_out, One("Exp", given_out)});
  ExpectUntouched();
}

TEST_F(ElementwiseFusion, LeavesOperandsThatAreBroadcastFirst) {
  const Value row = One("Exp", In({kFloat, {8}}));
  g_.Output({Two("Add", row, In({kFloat, {4, 8}}))});
  ExpectUntouched();
}

// It says at which element it failed.
TEST_F(ElementwiseFusion, LeavesDivisionsThatMayFail) {
  const Value x = One("Neg", In({kInt, {8}}));
  g_.Output({One("Abs", Two("FloorDiv", x,
                            g_.Const("three", Tensor::FromVector<int32_t>(
                                                  {kInt, {8}}, std::vector<int32_t>(8, 3)))))});
  ExpectUntouched();
}

TEST_F(ElementwiseFusion, WritesOverAnOperandNobodyReadsAnyMore) {
  const Value sum = g_.Op("ReduceSum", {{"x", In({kFloat, {2, 900}})}, {"axes", g_.Ints({0})}});
  const Value y = Two("Mul", One("Exp", One("Neg", sum)), sum);
  g_.Output({y});
  ExpectSame({"ReduceSum", "Neg+Exp+Mul"});
}

}  // namespace
}  // namespace npumesh
