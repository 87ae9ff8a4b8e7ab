#include "graph/passes/fusion/strided_view.h"

#include <gtest/gtest.h>

#include <numeric>

namespace npumesh {
namespace {

// The element numbers that a view lists in C order.
std::vector<int64_t> Elements(const StridedView& view) {
  std::vector<int64_t> elements = {0};
  for (int i = 0; i < view.rank(); ++i) {
    for (const StridedView::Factor& factor : view.dim(i)) {
      std::vector<int64_t> next;
      for (const int64_t base : elements) {
        for (int64_t k = 0; k < factor.extent; ++k) next.push_back(base + k * factor.stride);
      }
      elements = std::move(next);
    }
  }
  return elements;
}

TEST(StridedView, OfATensorListsItsElements) {
  const StridedView view(Shape{2, 1, 3, 4});
  std::vector<int64_t> expected(24);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(Elements(view), expected);
  EXPECT_EQ(view.rank(), 4);
  EXPECT_EQ(view.extent(2), 3);
  EXPECT_EQ(view.stride(0), 12);
  EXPECT_EQ(view.stride(1), 0);
  EXPECT_EQ(view.stride(3), 1);
}

TEST(StridedView, PermutedAndJoinedKeepsTheOrder) {
  StridedView view(Shape{2, 3, 4});
  view.Permute({1, 0, 2});
  ASSERT_TRUE(view.Reshape({6, 4}));  // rows 0 and 3, 1 and 4, 2 and 5
  EXPECT_EQ(view.extent(0), 6);
  EXPECT_EQ(view.stride(0), std::nullopt);
  EXPECT_EQ(Elements(view), (std::vector<int64_t>{0,  1,  2,  3,  12, 13, 14, 15, 4,  5,  6,  7,
                                                  16, 17, 18, 19, 8,  9,  10, 11, 20, 21, 22, 23}));
  ASSERT_TRUE(view.Reshape({3, 2, 2, 2}));
  EXPECT_EQ(view.stride(0), 4);
  EXPECT_EQ(view.stride(1), 12);
  EXPECT_EQ(view.stride(2), 2);
}

TEST(StridedView, DimensionsThatFollowEachOtherBecomeOne) {
  StridedView view(Shape{2, 3, 4});
  view.Permute({2, 0, 1});
  ASSERT_TRUE(view.Reshape({4, 6}));
  EXPECT_EQ(view.stride(0), 1);
  EXPECT_EQ(view.stride(1), 4);
}

TEST(StridedView, RepeatsWhatIsBroadcast) {
  StridedView view(Shape{2, 1, 2});
  ASSERT_TRUE(view.Broadcast({3, 2, 2, 2}));
  EXPECT_EQ(Elements(view), (std::vector<int64_t>{0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1,
                                                  2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3}));
  ASSERT_TRUE(view.Reshape({12, 2}));
  EXPECT_EQ(view.stride(0), std::nullopt);
  EXPECT_EQ(view.stride(1), 1);
}

TEST(StridedView, RefusesWhatIsNoView) {
  StridedView view(Shape{2, 3, 4});
  EXPECT_FALSE(view.Broadcast({3, 4}));
  EXPECT_FALSE(view.Broadcast({4, 3, 4}));
  view.Permute({1, 0, 2});
  const std::vector<int64_t> before = Elements(view);
  EXPECT_FALSE(view.Reshape({2, 12}));  // would cut the 3
  EXPECT_FALSE(view.Reshape({3, 2, 2}));
  EXPECT_EQ(Elements(view), before);
  EXPECT_EQ(view.rank(), 3);
}

}  // namespace
}  // namespace npumesh
