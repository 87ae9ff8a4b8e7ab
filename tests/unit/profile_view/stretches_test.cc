// Stretches against a plain array of moments.
#include "launch/profile/stretches.h"

#include <gmock/gmock.h>

#include <bitset>
#include <random>

namespace npumesh::testing {
namespace {

constexpr size_t kMoments = 64;
using Moments = std::bitset<kMoments>;

Moments AsMoments(const Stretches& stretches) {
  Moments moments;
  for (const Stretches::Stretch& one : stretches.all()) {
    for (int64_t t = one.begin_ns; t < one.end_ns; ++t) moments.set(static_cast<size_t>(t));
  }
  return moments;
}

class RandomStretches {
 public:
  explicit RandomStretches(uint32_t seed) : random_(seed) {}

  // What it made, and as moments by another way.
  Stretches Make(Moments& moments) {
    std::vector<Stretches::Stretch> any;
    moments.reset();
    const size_t count = random_() % 7;
    for (size_t i = 0; i < count; ++i) {
      const int64_t begin = static_cast<int64_t>(random_() % kMoments);
      const int64_t end = static_cast<int64_t>(random_() % (kMoments + 1));
      any.push_back({begin, end});
      for (int64_t t = begin; t < end; ++t) moments.set(static_cast<size_t>(t));
    }
    return Stretches(any);
  }

 private:
  std::mt19937 random_;
};

TEST(StretchesTest, AgreeWithMomentsOneByOne) {
  RandomStretches random(7);
  for (int round = 0; round < 2000; ++round) {
    Moments a, b;
    const Stretches one = random.Make(a);
    const Stretches other = random.Make(b);
    EXPECT_EQ(AsMoments(one), a);
    EXPECT_EQ(one.total_ns(), static_cast<int64_t>(a.count()));
    EXPECT_EQ(AsMoments(one.And(other)), a & b);
    EXPECT_EQ(AsMoments(one.Or(other)), a | b);
    EXPECT_EQ(AsMoments(one.Without(other)), a & ~b);
    Moments window;
    for (size_t t = 10; t < 40; ++t) window.set(t);
    EXPECT_EQ(AsMoments(one.In({10, 40})), a & window);
    for (size_t i = 1; i < one.all().size(); ++i) {
      EXPECT_LT(one.all()[i - 1].end_ns, one.all()[i].begin_ns);
    }
  }
}

}  // namespace
}  // namespace npumesh::testing
