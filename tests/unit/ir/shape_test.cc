// Shapes: products that overflow, unknown dimensions, axes, broadcasting.
#include "graph/ir/shape.h"

#include <gmock/gmock.h>

#include <limits>

namespace npumesh {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(Shape, KnowsWhatIsKnown) {
  struct Case {
    Shape shape;
    bool has_rank;
    bool is_static;
    std::string_view text;
  };
  const Case cases[] = {
      {Shape(), true, true, "[]"},
      {Shape({2, 4}), true, true, "[2,4]"},
      {Shape({0}), true, true, "[0]"},
      {Shape({-1, 3}), true, false, "[-1,3]"},
      {Shape::UnknownRank(), false, false, "[?]"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(c.shape.has_rank(), c.has_rank) << c.text;
    EXPECT_EQ(c.shape.is_static(), c.is_static) << c.text;
    EXPECT_EQ(c.shape.ToString(), c.text);
    EXPECT_TRUE(c.shape.Check().ok()) << c.text;
  }
}

TEST(Shape, CountsElements) {
  EXPECT_EQ(Shape().elements(), 1);
  EXPECT_EQ(Shape({2, 3, 4}).elements(), 24);
  EXPECT_EQ(Shape({2, 0, 4}).elements(), 0);
}

TEST(Shape, CheckRefusesWhatCannotBeCounted) {
  struct Case {
    Shape shape;
    std::string_view expected;
  };
  const Case cases[] = {
      {Shape({-3}), "dimension -3 in shape [-3]"},
      {Shape({-2, 1}), "dimension -2 in shape [-2,1]"},
      {Shape({1, -2}), "dimension -2"},
      {Shape({kMax}), "more elements than 63 bits"},
      {Shape({int64_t{1} << 32, int64_t{1} << 32}), "more elements than 63 bits"},
      {Shape({0, int64_t{1} << 32, int64_t{1} << 32}), "more elements than 63 bits"},
      {Shape({-1, int64_t{1} << 32, int64_t{1} << 32}), "more elements than 63 bits"},
  };
  for (const Case& c : cases) {
    const Status status = c.shape.Check();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << c.shape.ToString();
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.expected));
  }
  EXPECT_TRUE(Shape({kMax / 16}).Check().ok());  // 16-byte elements still fit
}

TEST(Shape, NormalizesAxes) {
  EXPECT_EQ(NormalizeAxis(0, 3).value(), 0);
  EXPECT_EQ(NormalizeAxis(2, 3).value(), 2);
  EXPECT_EQ(NormalizeAxis(-1, 3).value(), 2);
  EXPECT_EQ(NormalizeAxis(-3, 3).value(), 0);
  for (const auto& [axis, rank] : {std::pair<int64_t, int>{3, 3}, {-4, 3}, {0, 0}}) {
    const Status status = NormalizeAxis(axis, rank).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_EQ(status.message(), fmt::format("axis {} is outside a tensor of rank {}", axis, rank));
  }
}

TEST(Shape, Broadcasts) {
  struct Case {
    Shape a;
    Shape b;
    Shape expected;
  };
  const Case cases[] = {
      {Shape(), Shape(), Shape()},
      {Shape(), Shape({3}), Shape({3})},
      {Shape({2, 3}), Shape({3}), Shape({2, 3})},
      {Shape({2, 1}), Shape({1, 3}), Shape({2, 3})},
      {Shape({4, 1, 3}), Shape({2, 1}), Shape({4, 2, 3})},
      {Shape({0}), Shape({1}), Shape({0})},
      {Shape({2, 0}), Shape({1, 1}), Shape({2, 0})},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(Broadcast(c.a, c.b).value(), c.expected);
    EXPECT_EQ(Broadcast(c.b, c.a).value(), c.expected);
  }
  for (const auto& [a, b] :
       {std::pair{Shape({2}), Shape({3})}, {Shape({2, 3}), Shape({2})}, {Shape({0}), Shape({2})}}) {
    const Status status = Broadcast(a, b).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(a.ToString()));
    EXPECT_THAT(std::string(status.message()), HasSubstr(b.ToString()));
  }
}

TEST(TensorType, BytesArePacked) {
  EXPECT_EQ((TensorType{DataType::kFloat, Shape({2, 3})}).bytes(), 24u);
  EXPECT_EQ((TensorType{DataType::kInt4, Shape({3})}).bytes(), 2u);
  EXPECT_EQ((TensorType{DataType::kUint1, Shape({9})}).bytes(), 2u);
  EXPECT_EQ((TensorType{DataType::kComplex128, Shape()}).bytes(), 16u);
  EXPECT_EQ((TensorType{DataType::kFloat, Shape({0})}).bytes(), 0u);
  EXPECT_EQ((TensorType{DataType::kFloat, Shape({2, 4})}).ToString(), "float32[2,4]");
}

}  // namespace
}  // namespace npumesh
