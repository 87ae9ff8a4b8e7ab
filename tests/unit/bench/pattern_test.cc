#include "launch/bench/pattern.h"

#include <gmock/gmock.h>

#include <cstring>
#include <set>

namespace npumesh {
namespace {

constexpr int kRanks = 3;
constexpr uint64_t kCount = 10'000;  // more than one chunk, and no multiple of it

template <typename T>
std::vector<T> Filled(Pattern& pattern, int rank, uint64_t count = kCount) {
  std::vector<T> values(count);
  pattern.Fill(rank, std::as_writable_bytes(std::span(values)));
  return values;
}

template <typename T>
std::string Judge(Pattern& pattern, const std::vector<T>& values, const Piece& piece) {
  return pattern.FirstDifference(std::span(&piece, 1),
                                 reinterpret_cast<const std::byte*>(values.data()));
}

TEST(Pattern, MovedElementsAreAllDifferent) {
  Pattern pattern(DataType::kFloat, std::nullopt, kRanks);
  std::set<uint32_t> seen;
  for (int rank = 0; rank < kRanks; ++rank) {
    for (const uint32_t bits : Filled<uint32_t>(pattern, rank)) seen.insert(bits);
  }
  EXPECT_EQ(seen.size(), kRanks * kCount);
}

TEST(Pattern, FindsTheFirstElementThatWasNotMoved) {
  Pattern pattern(DataType::kInt16, std::nullopt, kRanks);
  std::vector<uint16_t> values = Filled<uint16_t>(pattern, 2);
  const Piece piece{0, kCount - 5, 2, 5};
  values.erase(values.begin(), values.begin() + 5);
  EXPECT_EQ(Judge(pattern, values, piece), "");
  values[9000] = 0;
  EXPECT_EQ(Judge(pattern, values, piece), "element 9000 is 0x0000, expected 0x6989 (from rank 2)");
}

// The sum in ascending and in descending order of the ranks, in the type's own arithmetic.
template <typename T>
void ExpectExactSums(DataType dtype, int ranks) {
  Pattern pattern(dtype, ReduceOp::kSum, ranks);
  std::vector<T> up(kCount), down(kCount);
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<T> next = Filled<T>(pattern, rank);
    const std::vector<T> last = Filled<T>(pattern, ranks - 1 - rank);
    for (size_t i = 0; i < kCount; ++i) {
      up[i] = static_cast<T>(up[i] + next[i]);
      down[i] = static_cast<T>(down[i] + last[i]);
    }
  }
  EXPECT_EQ(Judge(pattern, up, {0, kCount, Piece::kAllRanks, 0}), "") << Name(dtype);
  EXPECT_EQ(up, down) << Name(dtype);
}

TEST(Pattern, SumsAreExactInAnyOrder) {
  for (const int ranks : {1, 2, 3, 8, 64}) {
    ExpectExactSums<float>(DataType::kFloat, ranks);
    ExpectExactSums<double>(DataType::kDouble, ranks);
    ExpectExactSums<int8_t>(DataType::kInt8, ranks);
    ExpectExactSums<uint16_t>(DataType::kUint16, ranks);
    ExpectExactSums<int64_t>(DataType::kInt64, ranks);
  }
}

TEST(Pattern, ProductsAreExactInAnyOrder) {
  Pattern pattern(DataType::kFloat, ReduceOp::kProd, kRanks);
  std::vector<float> product(kCount, 1);
  for (int rank = kRanks - 1; rank >= 0; --rank) {
    const std::vector<float> next = Filled<float>(pattern, rank);
    for (size_t i = 0; i < kCount; ++i) product[i] *= next[i];
  }
  EXPECT_EQ(Judge(pattern, product, {0, kCount, Piece::kAllRanks, 0}), "");
}

TEST(Pattern, TellsAWrongReduction) {
  Pattern pattern(DataType::kFloat, ReduceOp::kMax, 2);
  const std::vector<float> only_mine = Filled<float>(pattern, 0);
  EXPECT_THAT(Judge(pattern, only_mine, {0, kCount, Piece::kAllRanks, 0}),
              testing::MatchesRegex("element 0 is 0x00000000, expected 0x.* \\(reduced\\)"));
}

}  // namespace
}  // namespace npumesh
