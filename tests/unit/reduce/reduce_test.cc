#include "collectives/reduce/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "collectives/reduce/targets.h"
#include "hwy/aligned_allocator.h"
#include "hwy/highway.h"
#include "runtime/base/float16.h"

namespace npumesh {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax, ReduceOp::kMin};

constexpr DataType kDtypes[] = {DataType::kFloat,  DataType::kFloat16, DataType::kBfloat16,
                                DataType::kDouble, DataType::kInt8,    DataType::kInt16,
                                DataType::kInt32,  DataType::kInt64,   DataType::kUint8,
                                DataType::kUint16, DataType::kUint32,  DataType::kUint64};

// The reference: one element at a time, written as the header says it.
template <typename Acc>
Acc CombineTwo(ReduceOp op, Acc a, Acc b) {
  if constexpr (std::is_integral_v<Acc>) {
    const auto wide_a = static_cast<uint64_t>(a);
    const auto wide_b = static_cast<uint64_t>(b);
    if (op == ReduceOp::kSum) return static_cast<Acc>(wide_a + wide_b);
    if (op == ReduceOp::kProd) return static_cast<Acc>(wide_a * wide_b);
    return op == ReduceOp::kMax ? std::max(a, b) : std::min(a, b);
  } else {
    if (op == ReduceOp::kSum) return a + b;
    if (op == ReduceOp::kProd) return a * b;
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
    if (op == ReduceOp::kMax) return a < b ? b : a;
    return b < a ? b : a;
  }
}

template <typename T, typename Acc>
void ReferenceOf(ReduceOp op, const std::vector<Bytes>& in, uint64_t count, Bytes& out) {
  for (uint64_t i = 0; i < count; ++i) {
    Acc acc{};
    for (size_t k = 0; k < in.size(); ++k) {
      T element;
      std::memcpy(&element, in[k].data() + i * sizeof(T), sizeof(T));
      const auto value = static_cast<Acc>(element);
      acc = k == 0 ? value : CombineTwo(op, acc, value);
    }
    if constexpr (std::is_floating_point_v<Acc>) {
      if (std::isnan(acc)) acc = std::numeric_limits<Acc>::quiet_NaN();
    }
    const auto result = static_cast<T>(acc);
    std::memcpy(out.data() + i * sizeof(T), &result, sizeof(T));
  }
}

Bytes Reference(DataType dtype, ReduceOp op, const std::vector<Bytes>& in, uint64_t count) {
  Bytes out(in[0].size());
  switch (dtype) {
    case DataType::kFloat:
      ReferenceOf<float, float>(op, in, count, out);
      break;
    case DataType::kFloat16:
      ReferenceOf<Float16, float>(op, in, count, out);
      break;
    case DataType::kBfloat16:
      ReferenceOf<Bfloat16, float>(op, in, count, out);
      break;
    case DataType::kDouble:
      ReferenceOf<double, double>(op, in, count, out);
      break;
    case DataType::kInt8:
      ReferenceOf<int8_t, int8_t>(op, in, count, out);
      break;
    case DataType::kInt16:
      ReferenceOf<int16_t, int16_t>(op, in, count, out);
      break;
    case DataType::kInt32:
      ReferenceOf<int32_t, int32_t>(op, in, count, out);
      break;
    case DataType::kInt64:
      ReferenceOf<int64_t, int64_t>(op, in, count, out);
      break;
    case DataType::kUint8:
      ReferenceOf<uint8_t, uint8_t>(op, in, count, out);
      break;
    case DataType::kUint16:
      ReferenceOf<uint16_t, uint16_t>(op, in, count, out);
      break;
    case DataType::kUint32:
      ReferenceOf<uint32_t, uint32_t>(op, in, count, out);
      break;
    case DataType::kUint64:
      ReferenceOf<uint64_t, uint64_t>(op, in, count, out);
      break;
    default:
      ADD_FAILURE() << "no reference for " << Name(dtype);
  }
  return out;
}

uint64_t WidthOf(DataType dtype) {
  return static_cast<uint64_t>(BitsOf(dtype)) / 8;
}

// Puts a value of ordinary size into element `i`; random bits are mostly huge or tiny.
void PutOrdinary(DataType dtype, double value, uint64_t i, Bytes& array) {
  const auto put = [&](auto element) {
    std::memcpy(array.data() + i * sizeof element, &element, sizeof element);
  };
  if (dtype == DataType::kFloat) put(static_cast<float>(value));
  if (dtype == DataType::kDouble) put(value);
  if (dtype == DataType::kFloat16) put(Float16(static_cast<float>(value)));
  if (dtype == DataType::kBfloat16) put(Bfloat16(static_cast<float>(value)));
}

// Random bits (NaN, infinities and subnormals among them); every other floating element is
// ordinary.
std::vector<Bytes> MakeInputs(DataType dtype, int inputs, uint64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> ordinary(-3, 3);
  std::vector<Bytes> in(static_cast<size_t>(inputs), Bytes(count * WidthOf(dtype)));
  for (Bytes& array : in) {
    for (uint8_t& byte : array) byte = static_cast<uint8_t>(random());
    for (uint64_t i = 0; i < count; i += 2) PutOrdinary(dtype, ordinary(random), i, array);
  }
  return in;
}

// Bit equality; names the first element that differs instead of printing both arrays.
testing::AssertionResult SameBits(const Bytes& seen, const Bytes& expected, uint64_t width) {
  const auto [at, other] =
      std::mismatch(seen.begin(), seen.end(), expected.begin(), expected.end());
  if (at == seen.end() && other == expected.end()) return testing::AssertionSuccess();
  const uint64_t element = static_cast<uint64_t>(at - seen.begin()) / width;
  auto failure = testing::AssertionFailure();
  failure << "element " << element << ", highest byte first, is";
  for (uint64_t b = width; b-- > 0;) failure << fmt::format(" {:02x}", seen[element * width + b]);
  failure << ", expected";
  for (uint64_t b = width; b-- > 0;) {
    failure << fmt::format(" {:02x}", expected[element * width + b]);
  }
  return failure;
}

// Each test runs once on every instruction set of this processor that the kernels have.
class ReduceTest : public testing::TestWithParam<int64_t> {
 protected:
  ReduceTest() { hwy::SetSupportedTargetsForTest(GetParam()); }
  ~ReduceTest() override { hwy::SetSupportedTargetsForTest(0); }
};

INSTANTIATE_TEST_SUITE_P(EveryTarget, ReduceTest,
                         testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& info) { return std::string(hwy::TargetName(info.param)); });

// How a call lays its arrays out in memory.
struct Layout {
  uint64_t misalignment = 0;  // bytes by which input k starts off alignment, times k + 1
  int outputs = 1;
  bool in_place = false;  // output 0 is the last input
  bool stream = false;
};

// An array that starts `offset` bytes behind an aligned address, with guards behind its end.
class Array {
 public:
  Array(const Bytes& content, uint64_t offset) : size_(content.size()) {
    memory_ = hwy::AllocateAligned<uint8_t>(size_ + offset + kGuard);
    data_ = memory_.get() + offset;
    std::copy(content.begin(), content.end(), data_);
    std::memset(data_ + size_, 0xa5, kGuard);
  }
  uint8_t* data() const { return data_; }
  Bytes Content() const { return Bytes(data_, data_ + size_); }
  bool GuardIsWhole() const {
    return std::all_of(data_ + size_, data_ + size_ + kGuard, [](uint8_t b) { return b == 0xa5; });
  }

 private:
  static constexpr uint64_t kGuard = 64;
  uint64_t size_;
  hwy::AlignedFreeUniquePtr<uint8_t[]> memory_;
  uint8_t* data_;
};

void ExpectReduces(DataType dtype, ReduceOp op, int inputs, uint64_t count, const Layout& layout) {
  SCOPED_TRACE(testing::Message() << Name(dtype) << " op " << static_cast<int>(op) << " inputs "
                                  << inputs << " count " << count << " misalignment "
                                  << layout.misalignment << " in place " << layout.in_place
                                  << " stream " << layout.stream);
  const std::vector<Bytes> contents =
      MakeInputs(dtype, inputs, count, static_cast<uint32_t>(count * 31) + inputs);
  std::vector<Array> arrays;
  std::vector<const void*> in;
  for (int k = 0; k < inputs; ++k) {
    arrays.emplace_back(contents[static_cast<size_t>(k)],
                        layout.misalignment * (static_cast<uint64_t>(k) + 1));
  }
  for (const Array& array : arrays) in.push_back(array.data());
  std::vector<Array> results;
  for (int o = 0; o < layout.outputs; ++o) {
    results.emplace_back(Bytes(contents[0].size(), 0xee),
                         layout.misalignment * static_cast<uint64_t>(o));
  }
  std::vector<void*> out;
  for (const Array& array : results) out.push_back(array.data());
  if (layout.in_place) out[0] = arrays.back().data();

  const ReduceFn reduce = FindReduce(dtype, op);
  ASSERT_NE(reduce, nullptr);
  reduce(in.data(), inputs, out.data(), layout.outputs, count, layout.stream);

  const Bytes expected = Reference(dtype, op, contents, count);
  for (int o = 0; o < layout.outputs; ++o) {
    const bool is_input = layout.in_place && o == 0;
    const Array& result = is_input ? arrays.back() : results[static_cast<size_t>(o)];
    ASSERT_TRUE(SameBits(result.Content(), expected, WidthOf(dtype))) << "output " << o;
    ASSERT_TRUE(result.GuardIsWhole()) << "output " << o;
  }
  for (int k = 0; k < inputs - (layout.in_place ? 1 : 0); ++k) {
    ASSERT_EQ(arrays[static_cast<size_t>(k)].Content(), contents[static_cast<size_t>(k)]);
  }
}

TEST_P(ReduceTest, EveryTypeOpAndNumberOfInputs) {
  for (const DataType dtype : kDtypes) {
    for (const ReduceOp op : kOps) {
      for (int inputs = 1; inputs <= 9; ++inputs) {
        ExpectReduces(dtype, op, inputs, 613, {});
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(ReduceTest, EveryCountAroundTheBlocks) {
  for (const DataType dtype : kDtypes) {
    for (const ReduceOp op : kOps) {
      for (uint64_t count = 0; count < 70; ++count) ExpectReduces(dtype, op, 3, count, {});
      for (const uint64_t count : {127, 128, 129, 255, 256, 257, 300}) {
        ExpectReduces(dtype, op, 3, count, {});
      }
    }
  }
}

TEST_P(ReduceTest, UnalignedArrays) {
  for (const DataType dtype : kDtypes) {
    for (const uint64_t misalignment : {uint64_t{1}, uint64_t{2}, uint64_t{13}, WidthOf(dtype)}) {
      for (const bool stream : {false, true}) {
        ExpectReduces(dtype, ReduceOp::kSum, 3, 401,
                      {.misalignment = misalignment, .outputs = 3, .stream = stream});
      }
    }
  }
}

TEST_P(ReduceTest, InPlaceAndManyOutputs) {
  for (const DataType dtype : kDtypes) {
    for (const ReduceOp op : kOps) {
      for (const bool stream : {false, true}) {
        ExpectReduces(dtype, op, 4, 517, {.outputs = 4, .in_place = true, .stream = stream});
        ExpectReduces(dtype, op, 1, 517, {.outputs = 2, .stream = stream});
      }
    }
  }
}

// All patterns of a 16-bit type: decoding and encoding are exact, NaN becomes one NaN.
TEST_P(ReduceTest, AllPatternsOfTheSmallFloats) {
  Bytes patterns(2 * 65536);
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto narrow = static_cast<uint16_t>(bits);
    std::memcpy(patterns.data() + 2 * bits, &narrow, 2);
  }
  for (const DataType dtype : {DataType::kFloat16, DataType::kBfloat16}) {
    Bytes result(patterns.size());
    const void* const in[] = {patterns.data()};
    void* const out[] = {result.data()};
    FindReduce(dtype, ReduceOp::kMax)(in, 1, out, 1, 65536, false);
    EXPECT_TRUE(
        SameBits(result, Reference(dtype, ReduceOp::kMax, {patterns}, 65536), WidthOf(dtype)))
        << Name(dtype);
  }
}

// Sums and products of all patterns with a few others: rounding, overflow, subnormal results.
TEST_P(ReduceTest, SmallFloatsRoundOnce) {
  Bytes patterns(2 * 65536);
  Bytes others(2 * 65536);
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto narrow = static_cast<uint16_t>(bits);
    const auto other = static_cast<uint16_t>(bits * 40503u);
    std::memcpy(patterns.data() + 2 * bits, &narrow, 2);
    std::memcpy(others.data() + 2 * bits, &other, 2);
  }
  for (const DataType dtype : {DataType::kFloat16, DataType::kBfloat16}) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd}) {
      Bytes result(patterns.size());
      const void* const in[] = {patterns.data(), others.data(), patterns.data()};
      void* const out[] = {result.data()};
      FindReduce(dtype, op)(in, 3, out, 1, 65536, false);
      EXPECT_TRUE(SameBits(result, Reference(dtype, op, {patterns, others, patterns}, 65536),
                           WidthOf(dtype)))
          << Name(dtype);
    }
  }
}

TEST_P(ReduceTest, HalfIsAccumulatedInFloat) {
  // 2048 + 1 + 1: rounding after each step would stay at 2048.
  const Float16 in0(2048.0f);
  const Float16 in1(1.0f);
  const void* const in[] = {&in0, &in1, &in1};
  Float16 result;
  void* const out[] = {&result};
  FindReduce(DataType::kFloat16, ReduceOp::kSum)(in, 3, out, 1, 1, false);
  EXPECT_EQ(static_cast<float>(result), 2050.0f);
}

TEST_P(ReduceTest, TheOrderIsThatOfTheInputs) {
  const float in0 = 1e8f;
  const float in1 = 1.0f;
  const float in2 = -1e8f;
  const void* const in[] = {&in0, &in1, &in2};
  float result = -1;
  void* const out[] = {&result};
  FindReduce(DataType::kFloat, ReduceOp::kSum)(in, 3, out, 1, 1, false);
  EXPECT_EQ(result, 0.0f);  // (1e8 + 1) - 1e8; any other grouping gives 1
}

TEST_P(ReduceTest, NanWinsAgainstEverything) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<std::vector<float>> cases = {
      {nan, inf, 1}, {inf, nan, 1}, {1, -inf, nan}, {-nan, 1, 2}, {nan, nan, nan}};
  for (const auto& values : cases) {
    for (const ReduceOp op : kOps) {
      const void* const in[] = {&values[0], &values[1], &values[2]};
      float result = 0;
      void* const out[] = {&result};
      FindReduce(DataType::kFloat, op)(in, 3, out, 1, 1, false);
      EXPECT_EQ(std::bit_cast<uint32_t>(result), 0x7fc00000u);
    }
  }
}

TEST_P(ReduceTest, OfEqualZerosTheFirstStays) {
  const float plus = 0.0f;
  const float minus = -0.0f;
  float result = 1;
  void* const out[] = {&result};
  for (const ReduceOp op : {ReduceOp::kMax, ReduceOp::kMin}) {
    const void* const plus_first[] = {&plus, &minus};
    FindReduce(DataType::kFloat, op)(plus_first, 2, out, 1, 1, false);
    EXPECT_FALSE(std::signbit(result));
    const void* const minus_first[] = {&minus, &plus};
    FindReduce(DataType::kFloat, op)(minus_first, 2, out, 1, 1, false);
    EXPECT_TRUE(std::signbit(result));
  }
}

TEST_P(ReduceTest, CombineIsTheReductionOfTwo) {
  constexpr uint64_t kCount = 203;
  for (const DataType dtype : kDtypes) {
    for (const ReduceOp op : kOps) {
      const auto contents = MakeInputs(dtype, 2, kCount, 7);
      Bytes inout = contents[1];
      const CombineFn combine = FindCombine(dtype, op);
      ASSERT_NE(combine, nullptr);
      combine(contents[0].data(), inout.data(), kCount);
      EXPECT_TRUE(SameBits(inout, Reference(dtype, op, contents, kCount), WidthOf(dtype)))
          << Name(dtype);
    }
  }
}

TEST_P(ReduceTest, NothingToDoIsDone) {
  const void* const in[] = {nullptr};
  void* const out[] = {nullptr};
  FindReduce(DataType::kFloat, ReduceOp::kSum)(in, 1, out, 1, 0, true);
  const float value = 3;
  const void* const one[] = {&value};
  FindReduce(DataType::kFloat, ReduceOp::kSum)(one, 1, nullptr, 0, 1, false);
}

TEST(FindReduce, OtherTypesAndOpsAreNotReduced) {
  for (const DataType dtype : {DataType::kBool, DataType::kString, DataType::kComplex64,
                               DataType::kInt4, DataType::kUndefined}) {
    for (const ReduceOp op : kOps) {
      EXPECT_EQ(FindReduce(dtype, op), nullptr) << Name(dtype);
      EXPECT_EQ(FindCombine(dtype, op), nullptr) << Name(dtype);
    }
  }
  const auto unknown = static_cast<ReduceOp>(4);
  EXPECT_EQ(FindReduce(DataType::kFloat, unknown), nullptr);
  EXPECT_EQ(FindCombine(DataType::kFloat, unknown), nullptr);
}

TEST(FindReduce, TheProcessorsBestIsTaken) {
  EXPECT_GE(hwy::SupportedAndGeneratedTargets().size(), 1u);
  // Highway 1.0 chooses when it is asked, and then forgets what DisableTargets (tests/isa) has
  // said.
  hwy::SetSupportedTargetsForTest(0);
  const ReduceFn best = FindReduce(DataType::kFloat, ReduceOp::kSum);
  hwy::SetSupportedTargetsForTest(hwy::SupportedAndGeneratedTargets().front());
  EXPECT_EQ(FindReduce(DataType::kFloat, ReduceOp::kSum), best);
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace
}  // namespace npumesh
