// The lanes give the same bits with every instruction set and every compiler: of each function a
// digest over all floats of 16 bits and 2^20 others. A change of a digest is a change of results.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "graph/ops/toolbox/lanes/lane_table.h"
#include "graph/ops/toolbox/values/cast.h"

namespace npumesh {
namespace {

// All floats of 16 bits, then 2^20 floats of all signs and exponents.
std::vector<float> AllNumbers() {
  std::vector<uint16_t> halves(size_t{1} << 16);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
  std::vector<float> numbers(halves.size());
  HalfToFloat(halves.data(), numbers.data(), halves.size());
  for (uint32_t i = 0; i < (1u << 20); ++i) {
    numbers.push_back(std::bit_cast<float>((i << 12) | (i * 2654435761u >> 20)));
  }
  return numbers;
}

// Beside each number another one, beside the first ones themselves.
std::vector<float> Others(const std::vector<float>& numbers) {
  std::vector<float> others(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    others[i] = i < 1000 ? numbers[i] : numbers[(i * 2654435761u) % numbers.size()];
  }
  return others;
}

uint32_t BitsOfValue(float value) {
  return std::isnan(value) ? 0x7fc00000u : std::bit_cast<uint32_t>(value);
}
uint32_t BitsOfValue(uint8_t value) {
  return value;
}

// FNV-1a of the results; all NaNs are one.
template <typename Number>
uint64_t DigestOf(LaneFn lanes, const std::vector<float>& a, const std::vector<float>& b,
                  const LaneParams& params) {
  constexpr size_t kCount = 501;  // no whole number of vectors
  std::vector<Number> y(a.size());
  for (size_t at = 0; at < a.size(); at += kCount) {
    const void* in[] = {a.data() + at, b.data() + at};
    lanes(in, y.data() + at, std::min(kCount, a.size() - at), params);
  }
  uint64_t digest = 0xcbf29ce484222325;
  for (const Number value : y) digest = (digest ^ BitsOfValue(value)) * 0x100000001b3;
  return digest;
}

struct KnownBits {
  LoopOp op;
  uint64_t digest;
  LaneParams params = {};
};

constexpr KnownBits kKnownBits[] = {
    {LoopOp::kAdd, 0x77a54d2a3687dbec},
    {LoopOp::kSub, 0x822f61b93896d89b},
    {LoopOp::kMul, 0x4a78830cb4f9c51f},
    {LoopOp::kDiv, 0x3cac41fc68446804},
    {LoopOp::kMax, 0xa14f9dd3333d9f7a},
    {LoopOp::kMin, 0x75afbbc74c90706b},
    {LoopOp::kSwiGlu, 0x3f00934691ebab93},
    {LoopOp::kFloorDiv, 0xd84c10d8e48b4cab},
    {LoopOp::kEqual, 0xad39555e746c5b8c},
    {LoopOp::kNotEqual, 0xbb4531dce83beabc},
    {LoopOp::kLess, 0x981e81dd002e7df7},
    {LoopOp::kLessEqual, 0xcc23a15fd6ac2482},
    {LoopOp::kGreater, 0xe755d95fb3fc8923},
    {LoopOp::kGreaterEqual, 0x06090f644015e072},
    {LoopOp::kSqrt, 0xf48e2896dda0847a},
    {LoopOp::kRsqrt, 0xe086c2e019c19a97},
    {LoopOp::kNeg, 0x92c9711f5a111680},
    {LoopOp::kReciprocal, 0x4f57e45e0324603a},
    {LoopOp::kAbs, 0x3bf803e3da111680},
    {LoopOp::kSquare, 0xce66ea0e3846bcfe},
    {LoopOp::kSign, 0x85ca341e13762325},
    {LoopOp::kFloor, 0x114192233cb4fff8},
    {LoopOp::kCeil, 0x33f61550012175be},
    {LoopOp::kRelu, 0x5afb211d94d59d59},
    {LoopOp::kExpm1, 0x673f9c9fee420542},
    {LoopOp::kLog1p, 0xf4a14728691c3cda},
    {LoopOp::kTanh, 0x475072e99d33e905},
    {LoopOp::kErf, 0xdda776ddef5d2dfc},
    {LoopOp::kSigmoid, 0x085e83c7bc9b56cd},
    {LoopOp::kRelu6, 0xf93f683d4858b7b0},
    {LoopOp::kHardSwish, 0x30cf53db69f2ce2e},
    {LoopOp::kHardSigmoid, 0x5113ab87e0633ade, {0x1.555554p-3, 0.5}},
    {LoopOp::kLeakyRelu, 0x861bcc7795b20873, {0x1.99999ap-4}},
    {LoopOp::kGeluTanh, 0xe3d23f7fb214734d},
    {LoopOp::kGeluErf, 0xe48e9a599f247ec7},
    {LoopOp::kFastGelu, 0x0e63a09cc75bd96b},
    {LoopOp::kExp, 0x8db602413b6f8268, {1, 1, 0}},
    {LoopOp::kExp, 0xdc1cd358a8b0bb30, {0x1.d5240f0e0e078p-1, 0.5, -3}},
    {LoopOp::kLog, 0xb8aefae146d94ce9, {1, 1, 0}},
    {LoopOp::kLog, 0xe17844eefb7bd047, {0x1.26bb1bbb55516p+1, 0.5, 3}},
    {LoopOp::kSwish, 0x43f943981c1081d3, {1}},
    {LoopOp::kSwish, 0xdff4d1920685936f, {0x1.333334p-2}},
    {LoopOp::kSin, 0x2e81318c4669ac00},
    {LoopOp::kCos, 0x6edcc456ecd8209d},
};

bool GivesBools(LoopOp op) {
  return op >= LoopOp::kEqual && op <= LoopOp::kGreaterEqual;
}

TEST(LaneBits, EachFunctionGivesTheKnownBits) {
  const std::vector<float> a = AllNumbers();
  const std::vector<float> b = Others(a);
  // Larger angles are the C library's.
  std::vector<float> angles = a;
  for (float& x : angles) x = std::fabs(x) <= 0x1p20f ? x : 0.5f;
  for (const auto& [op, digest, params] : kKnownBits) {
    const LaneFn lanes = FindLanes(op, LoopType::kFloat);
    ASSERT_NE(lanes, nullptr) << NameOf(op);
    const std::vector<float>& x = op == LoopOp::kSin || op == LoopOp::kCos ? angles : a;
    EXPECT_EQ(GivesBools(op) ? DigestOf<uint8_t>(lanes, x, b, params)
                             : DigestOf<float>(lanes, x, b, params),
              digest)
        << NameOf(op);
  }
}

// Through the C library, as a double.
TEST(LaneBits, LargeAnglesAreReduced) {
  const std::vector<float> a = {0x1p21f, 3e7f, -1e30f, 3.4e38f, 1, 0x1.8p20f};
  const auto expect = [&](LoopOp op, double (*function)(double)) {
    std::vector<float> y(a.size());
    const void* in[] = {a.data()};
    FindLanes(op, LoopType::kFloat)(in, y.data(), a.size(), {});
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(y[i], static_cast<float>(function(static_cast<double>(a[i])))) << a[i];
    }
  };
  expect(LoopOp::kSin, std::sin);
  expect(LoopOp::kCos, std::cos);
}

// Whole and partial vectors of every other type give what C++ says.
template <typename Number>
class LanesOf : public testing::Test {};
using Numbers = testing::Types<int32_t, int64_t, double>;
TYPED_TEST_SUITE(LanesOf, Numbers);

TYPED_TEST(LanesOf, ArithmeticAndRelations) {
  using Number = TypeParam;
  const LoopType type = std::is_same_v<Number, double>    ? LoopType::kDouble
                        : std::is_same_v<Number, int64_t> ? LoopType::kLong
                                                          : LoopType::kInt;
  std::vector<Number> a, b;
  for (int i = 0; i < 77; ++i) {
    a.push_back(static_cast<Number>(i * i * 7919 % 101 - 50));
    b.push_back(static_cast<Number>(i * 104729 % 97 - 48));
  }
  const void* in[] = {a.data(), b.data()};
  const auto expect = [&](LoopOp op, Number (*value)(Number, Number)) {
    std::vector<Number> y(a.size());
    FindLanes(op, type)(in, y.data(), y.size(), {});
    for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], value(a[i], b[i])) << NameOf(op) << i;
  };
  const auto relation = [&](LoopOp op, bool (*holds)(Number, Number)) {
    std::vector<uint8_t> y(a.size());
    FindLanes(op, type)(in, y.data(), y.size(), {});
    for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], holds(a[i], b[i])) << NameOf(op) << i;
  };
  expect(LoopOp::kAdd, [](Number p, Number q) { return p + q; });
  expect(LoopOp::kSub, [](Number p, Number q) { return p - q; });
  expect(LoopOp::kMul, [](Number p, Number q) { return p * q; });
  expect(LoopOp::kMax, [](Number p, Number q) { return std::max(p, q); });
  expect(LoopOp::kMin, [](Number p, Number q) { return std::min(p, q); });
  expect(LoopOp::kNeg, [](Number p, Number) { return -p; });
  expect(LoopOp::kAbs, [](Number p, Number) { return p < 0 ? -p : p; });
  expect(LoopOp::kSquare, [](Number p, Number) { return p * p; });
  expect(LoopOp::kSign, [](Number p, Number) { return static_cast<Number>((p > 0) - (p < 0)); });
  expect(LoopOp::kRelu, [](Number p, Number) { return std::max<Number>(p, 0); });
  relation(LoopOp::kEqual, [](Number p, Number q) { return p == q; });
  relation(LoopOp::kNotEqual, [](Number p, Number q) { return p != q; });
  relation(LoopOp::kLess, [](Number p, Number q) { return p < q; });
  relation(LoopOp::kLessEqual, [](Number p, Number q) { return p <= q; });
  relation(LoopOp::kGreater, [](Number p, Number q) { return p > q; });
  relation(LoopOp::kGreaterEqual, [](Number p, Number q) { return p >= q; });
}

}  // namespace
}  // namespace npumesh
