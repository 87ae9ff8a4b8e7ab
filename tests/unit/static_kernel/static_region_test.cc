// Which operators become one static kernel, what it gives, and why others are left out.
#include "tests/unit/static_kernel/static_fixture.h"

namespace npumesh {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class StaticRegionTest : public StaticKernelTest {
 protected:
  Value Reshape(Value x, const std::vector<int64_t>& dims) {
    return g_.Op("Reshape", {{"x", x}, {"shape", g_.Ints(dims)}});
  }
  Value Named(const std::string& type, const std::string& name, Value x) {
    return g_.Op(type, {{"x", x}}, {}, name);
  }
  // A product, which no static kernel computes: a fence between regions.
  Value Fence(Value x) { return Two("MatMul", x, Weight({kFloat, {8, 8}})); }
};

TEST(CommonSpace, RefinesFrames) {
  EXPECT_EQ(CommonSpace({Shape({2, 1, 3})}), Shape({2, 1, 3}));
  EXPECT_EQ(CommonSpace({Shape({2, 6, 8}), Shape({12, 8})}), Shape({2, 6, 8}));
  EXPECT_EQ(CommonSpace({Shape({4, 128}), Shape({4, 8, 16})}), Shape({4, 8, 16}));
  EXPECT_EQ(CommonSpace({Shape({6, 4}), Shape({2, 12})}), Shape({2, 3, 4}));
  EXPECT_EQ(CommonSpace({Shape({4, 8}), Shape({1, 4, 8}), Shape({4, 8, 1})}), Shape({4, 8}));
  EXPECT_EQ(CommonSpace({Shape(), Shape({1, 1})}), Shape({1}));
  EXPECT_EQ(CommonSpace({Shape({2, 6}), Shape({3, 4})}), std::nullopt);
}

// The sum that a layer adds to later: given by the kernel that normalises it.
TEST_F(StaticRegionTest, GivesWhatOthersReadLater) {
  const Value sum = Two("Add", In({kFloat, {4, 8}}), In({kFloat, {4, 8}}));
  const Value norm = g_.Op("RmsNorm", {{"x", sum}, {"gamma", In({kFloat, {8}})}}, {}, {}, 2);
  Out(Two("Add", sum, Fence(norm)));
  EXPECT_THAT(ExpectSameBits(2).steps, ElementsAre("Add+RmsNorm", "MatMul", "Add"));
}

TEST_F(StaticRegionTest, GivesGraphOutputsOnItsWay) {
  const Value first = One("Exp", In({kFloat, {4, 8}}));
  const Value second = One("Neg", first);
  const Value third = One("Abs", second);
  Out(second);
  Out(third);
  Out(first);
  EXPECT_THAT(ExpectSameBits(1).steps, ElementsAre("Exp+Neg+Abs"));
}

// Numbers of rows as outputs beside the rows.
TEST_F(StaticRegionTest, GivesNumbersOfRows) {
  const Value x = In({kFloat, {6, 40}});
  const Value most = g_.Op("ReduceMax", {{"x", x}, {"axes", g_.Ints({-1})}},
                           {{"keep_dims", AttrValue::Bool(true)}});
  Out(most);
  Out(One("Exp", Two("Sub", x, most)));
  EXPECT_THAT(ExpectSameBits(1).steps, ElementsAre("ReduceMax+Sub+Exp"));
}

TEST_F(StaticRegionTest, WhatIsReadBeforeItsEndStaysOutside) {
  const Value first = Named("Exp", "first", In({kFloat, {4, 8}}));
  Out(Two("Mul", first, Fence(first)));
  const Outcome fast = ExpectSameBits(2);
  EXPECT_THAT(fast.steps, ElementsAre("Exp", "MatMul", "Mul"));
  EXPECT_THAT(fast.said, Contains("first: not fused by StaticKernelPass: others read it before the "
                                  "kernel of its reader ends"));
}

// The sum and the reciprocal root are read inside, the reciprocal root outside as well.
TEST_F(StaticRegionTest, PortsAreReadInside) {
  const Value norm = g_.Op(
      "AddRmsNorm",
      {{"x1", In({kFloat, {4, 8}})}, {"x2", In({kFloat, {4, 8}})}, {"gamma", In({kFloat, {8}})}},
      {}, {}, 3);
  Out(Two("Add", Two("Mul", g_.Port(norm, 2), g_.Port(norm, 1)), norm));
  Out(g_.Port(norm, 1));
  EXPECT_THAT(ExpectSameBits(1).steps, ElementsAre("AddRmsNorm+Mul+Add"));
}

// A writer in place reads what the kernel gives, behind the kernel.
TEST_F(StaticRegionTest, GivesWhatIsOverwrittenLater) {
  const Value first = One("Exp", In({kFloat, {4, 8}}));
  const Value second = One("Neg", first);
  const Value written = g_.Op("Assign", {{"ref", first}, {"value", Fence(second)}});
  Out(written);
  Out(second);
  EXPECT_THAT(ExpectSameBits(1).steps, ElementsAre("Exp+Neg", "MatMul", "Assign"));
}

// What the kernel would read later is overwritten between.
TEST_F(StaticRegionTest, AWriteBetweenKeepsOperatorsApart) {
  const TensorType type{kFloat, {4, 8}};
  inputs_.push_back(Fill(type, 1));
  const Value kept = g_.RefData("kept", type);
  const Value first = Two("Add", kept, Scalar(1));
  const Value written = g_.Op("Assign", {{"ref", kept}, {"value", In(type)}});
  Out(Two("Mul", first, written));
  EXPECT_THAT(ExpectSameBits(2).steps, ElementsAre("Add", "Assign", "Mul"));
}

// ---- control edges ----

TEST_F(StaticRegionTest, ControlEdgesHoldAnOperatorButNotItsKernel) {
  const Value first = Named("Exp", "first", In({kFloat, {4, 8}}));
  const Value second = One("Neg", first);
  const Value other = One("Abs", In({kFloat, {4, 8}}));
  g_.Order(first, other);
  Out(second);
  Out(other);
  const Outcome fast = ExpectSameBits(3);
  EXPECT_THAT(fast.said, Contains("first: not fused by StaticKernelPass: a control edge holds one "
                                  "of its operators"));
}

// ---- views ----

TEST_F(StaticRegionTest, ViewsBetweenElements) {
  const Value x = One("Exp", In({kFloat, {4, 8, 16}}));
  const Value merged = Two("Add", Reshape(x, {4, 128}), In({kFloat, {4, 128}}));
  const Value biased = Two("Mul", merged, In({kFloat, {128}}));
  const Value scaled = Two("Mul", biased, In({kFloat, {4, 1}}));
  Out(Two("Sub", Reshape(scaled, {32, 16}), In({kFloat, {16}})));
  EXPECT_THAT(ExpectSameBits(1).steps, ElementsAre("Exp+Add+Mul+Mul+Sub"));
}

TEST_F(StaticRegionTest, TwoViewsOfOneValue) {
  const Value x = One("Exp", In({kFloat, {4, 8, 16}}));
  const Value a = One("Neg", Reshape(x, {32, 16}));
  const Value b = One("Abs", Reshape(x, {4, 128}));
  Out(Two("Add", Reshape(a, {4, 128}), b));
  EXPECT_THAT(ExpectSameBits(1).steps, SizeIs(1));
}

// Others read the view, and so what it is a view of.
TEST_F(StaticRegionTest, ViewsThatAreReadOutside) {
  const Value view = Reshape(One("Exp", In({kFloat, {2, 4, 8}})), {8, 8});
  const Value end = One("Neg", view);
  Out(view);
  Out(Two("Add", Fence(end), view));
  EXPECT_THAT(ExpectSameBits(2).steps, ElementsAre("Exp+Neg", "MatMul", "Add"));
}

TEST_F(StaticRegionTest, ViewsBetweenRows) {
  const Value x = One("Exp", In({kHalf, {2, 3, 40}}));
  const Value soft = One("SoftmaxV2", Reshape(x, {6, 40}));
  Out(Two("Mul", Reshape(soft, {1, 2, 3, 40}), In({kHalf, {3, 40}})));
  EXPECT_THAT(ExpectSameBits(1).steps, ElementsAre("Exp+SoftmaxV2+Mul"));
}

TEST_F(StaticRegionTest, ViewsOfNumbersOfRows) {
  const Value x = In({kFloat, {2, 3, 40}});
  const Value most = g_.Op("ReduceMax", {{"x", x}, {"axes", g_.Ints({-1})}},
                           {{"keep_dims", AttrValue::Bool(true)}});
  Out(Two("Sub", Reshape(x, {6, 40}), Reshape(most, {6, 1})));
  EXPECT_THAT(ExpectSameBits(1).steps, ElementsAre("ReduceMax+Sub"));
}

// The numbers belong to rows of 8, and are read as numbers of something else.
TEST_F(StaticRegionTest, NumbersOfOtherRowsStayOutside) {
  const Value x = One("Exp", In({kFloat, {4, 4, 2}}));
  const Value most = g_.Op("ReduceMax", {{"x", Reshape(x, {4, 8})}, {"axes", g_.Ints({-1})}},
                           {{"keep_dims", AttrValue::Bool(true)}});
  Out(Two("Sub", x, most));
  ExpectSameBits(2);
}

// Without broadcasts the finer dimensions do not matter.
TEST_F(StaticRegionTest, RowsOfSeveralShortOnes) {
  const Value x = Two("Mul", In({kFloat, {4, 8, 16}}), In({kFloat, {4, 1, 1}}));
  Out(One("SoftmaxV2", Reshape(One("Neg", x), {4, 128})));
  EXPECT_THAT(ExpectSameBits(1).steps, ElementsAre("Mul+Neg+SoftmaxV2"));
}

TEST_F(StaticRegionTest, RowsThatAViewCutsEndARegion) {
  const Value x = Two("Mul", In({kFloat, {4, 8, 16}}), In({kFloat, {16}}));
  Out(One("SoftmaxV2", Reshape(x, {4, 128})));
  EXPECT_THAT(ExpectSameBits(2).steps, ElementsAre("Mul", "SoftmaxV2"));
}

TEST_F(StaticRegionTest, DimensionsThatCutAcrossEachOther) {
  const Value x = Named("Exp", "first", In({kFloat, {20, 60}}));
  Out(Two("Add", Reshape(x, {30, 40}), In({kFloat, {40}})));
  const Outcome fast = ExpectSameBits(2);
  EXPECT_THAT(fast.steps, ElementsAre("Exp", "Add"));
  EXPECT_THAT(fast.said, Contains("first: not fused by StaticKernelPass: a view between them cuts "
                                  "across their dimensions"));
}

TEST_F(StaticRegionTest, ViewsLeaveNoShortRows) {
  const Value x =
      g_.Op("Add", {{"x1", In({kFloat, {30, 20, 2}})}, {"x2", In({kFloat, {2}})}}, {}, "first");
  Out(Two("Add", Reshape(x, {30, 40}), In({kFloat, {40}})));
  const Outcome fast = ExpectSameBits(2);
  EXPECT_THAT(fast.said,
              Contains("first: not fused by StaticKernelPass: views leave it short rows"));
}

// ---- what is said ----

TEST_F(StaticRegionTest, NothingIsSaidOfWhatIsTaken) {
  Out(One("Neg", One("Exp", In({kFloat, {4, 8}}))));
  EXPECT_THAT(ExpectSameBits(1).said, IsEmpty());
}

TEST_F(StaticRegionTest, SaysWhatHasNoLoopForm) {
  const std::string pass = ": not fused by StaticKernelPass: ";
  Out(g_.Op("Cumsum", {{"x", In({kFloat, {4, 8}})}, {"axis", g_.Int(0)}}, {}, "cumsum"));
  Out(Named("Exp", "empty", In({kFloat, {0, 8}})));
  Out(g_.Op("LogSoftmaxV2", {{"logits", In({kFloat, {4, 8}})}}, {{"axes", AttrValue::Ints({0})}},
            "columns"));
  Out(g_.Op("RmsNorm", {{"x", In({kFloat, {3, 4, 8}})}, {"gamma", In({kFloat, {4, 8}})}}, {},
            "planes", 2));
  const std::vector<std::string> said = ExpectSameBits(0).said;
  EXPECT_THAT(said, Contains("cumsum" + pass + "it has no loop form"));
  EXPECT_THAT(said, Contains("empty" + pass + "it has no elements"));
  EXPECT_THAT(said, Contains("columns" + pass + "its rows do not run along the last axis alone"));
  EXPECT_THAT(said,
              Contains("planes" + pass + "it is not normalised over rows of the last dimension"));
}

TEST_F(StaticRegionTest, SaysWhatHasOtherRows) {
  const Value narrow = Named("Exp", "narrow", In({kFloat, {8}}));
  Out(Two("Add", narrow, In({kFloat, {4, 8}})));
  EXPECT_THAT(ExpectSameBits(2).said,
              ElementsAre("narrow: not fused by StaticKernelPass: what reads it has other rows"));
}

TEST_F(StaticRegionTest, SaysThatAKernelIsFull) {
  Value x = In({kFloat, {4, 8}});
  for (int i = 0; i < 33; ++i) x = Named(i % 2 == 0 ? "Neg" : "Abs", "op" + std::to_string(i), x);
  Out(x);
  EXPECT_THAT(ExpectSameBits(2).said,
              ElementsAre("op0: not fused by StaticKernelPass: the kernel of its reader has as "
                          "many operators as it may"));
}

}  // namespace
}  // namespace npumesh
