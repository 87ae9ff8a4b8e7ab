#include "graph/ops/toolbox/copy/strided_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace npumesh {
namespace {

TEST(StridedCopy, DefaultCopiesNothing) {
  StridedCopy().Run(nullptr, nullptr);
}

TEST(StridedCopy, EmptyAxisCopiesNothing) {
  StridedCopy({{0, 4, 4}, {3, 4, 4}}, 4).Run(nullptr, nullptr);
}

TEST(StridedCopy, NoAxesIsOneElement) {
  const int32_t from = 7;
  int32_t to = 0;
  StridedCopy({}, 4).Run(&from, &to);
  EXPECT_EQ(to, 7);
}

TEST(StridedCopy, WalksBackwards) {
  const std::vector<int16_t> from = {1, 2, 3, 4};
  std::vector<int16_t> to(4);
  StridedCopy({{4, -2, 2}}, 2).Run(&from[3], to.data());
  EXPECT_EQ(to, (std::vector<int16_t>{4, 3, 2, 1}));
}

TEST(StridedCopy, RepeatsWithStrideZero) {
  const std::vector<int64_t> from = {1, 2};
  std::vector<int64_t> to(6);
  StridedCopy({{3, 0, 16}, {2, 8, 8}}, 8).Run(from.data(), to.data());
  EXPECT_EQ(to, (std::vector<int64_t>{1, 2, 1, 2, 1, 2}));
}

// Every run length and every permutation of three axes, larger than one transposition block.
TEST(StridedCopy, TransposesEveryOrderAndElementSize) {
  const std::vector<int64_t> dims = {3, 35, 67};
  std::vector<int> order = {0, 1, 2};
  do {
    for (const size_t element : {1u, 2u, 3u, 4u, 8u, 16u, 24u}) {
      const auto size = static_cast<int64_t>(element);
      const std::vector<int64_t> from = {dims[1] * dims[2] * size, dims[2] * size, size};
      std::vector<CopyAxis> axes(3);
      int64_t to_stride = size;
      for (size_t i = 3; i-- > 0;) {
        const auto axis = static_cast<size_t>(order[i]);
        axes[i] = {dims[axis], from[axis], to_stride};
        to_stride *= dims[axis];
      }
      std::vector<unsigned char> x(static_cast<size_t>(to_stride));
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<unsigned char>(i * 31 + i / 256);
      std::vector<unsigned char> y(x.size());
      StridedCopy(axes, element).Run(x.data(), y.data());
      size_t next = 0;
      for (int64_t i = 0; i < axes[0].extent; ++i) {
        for (int64_t j = 0; j < axes[1].extent; ++j) {
          for (int64_t k = 0; k < axes[2].extent; ++k) {
            const int64_t at = i * axes[0].from + j * axes[1].from + k * axes[2].from;
            for (int64_t b = 0; b < size; ++b) {
              ASSERT_EQ(y[next++], x[static_cast<size_t>(at + b)]) << "element of " << element;
            }
          }
        }
      }
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

// A copy of up to four axes in any order: `to` is written without overlaps, perhaps with gaps;
// `from` may repeat, overlap and run backwards.
struct DrawnCopy {
  explicit DrawnCopy(uint32_t seed) {
    std::mt19937 random(seed);
    const auto below = [&](int64_t bound) {
      return static_cast<int64_t>(random() % static_cast<uint64_t>(bound));
    };
    constexpr size_t kElements[] = {1, 2, 3, 4, 8, 16};
    element = kElements[random() % std::size(kElements)];
    const auto item = static_cast<int64_t>(element);
    axes.resize(1 + random() % 4);
    int64_t to = item, from = item;
    for (CopyAxis& axis : axes) {
      axis.extent = 1 + below(axes.size() < 3 ? 90 : 12);
      axis.to = to;
      to *= axis.extent + below(2);
    }
    std::shuffle(axes.begin(), axes.end(), random);
    for (CopyAxis& axis : axes) {
      const int64_t kind = below(8);
      axis.from = kind == 0 ? 0 : kind == 1 ? item : kind == 2 ? -from : from;
      from *= axis.extent;
      first += axis.from < 0 ? -axis.from * (axis.extent - 1) : 0;
      reads += std::abs(axis.from) * (axis.extent - 1);
    }
    std::shuffle(axes.begin(), axes.end(), random);
    writes = to;
  }

  void Plainly(size_t depth, const unsigned char* x, unsigned char* y) const {
    if (depth == axes.size()) {
      std::copy_n(x, element, y);
      return;
    }
    const CopyAxis& axis = axes[depth];
    for (int64_t i = 0; i < axis.extent; ++i) {
      Plainly(depth + 1, x + i * axis.from, y + i * axis.to);
    }
  }

  size_t element = 1;
  std::vector<CopyAxis> axes;
  int64_t first = 0, reads = 0, writes = 0;  // bytes: before the first element, and at most
};

TEST(StridedCopy, DrawnCopiesAreThoseOfAPlainWalk) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    const DrawnCopy drawn(seed);
    std::vector<unsigned char> x(static_cast<size_t>(drawn.reads) + drawn.element);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<unsigned char>(i * 31 + i / 256);
    std::vector<unsigned char> y(static_cast<size_t>(drawn.writes), 0xee), expected = y;
    StridedCopy(drawn.axes, drawn.element).Run(x.data() + drawn.first, y.data());
    drawn.Plainly(0, x.data() + drawn.first, expected.data());
    ASSERT_EQ(y, expected) << "seed " << seed;
  }
}

}  // namespace
}  // namespace npumesh
