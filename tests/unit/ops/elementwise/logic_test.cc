// Comparison, logic, selection, and operators of single bits.
#include "tests/unit/op_reference.h"
#include "tests/unit/ops/elementwise/pointwise_cases.h"

namespace npumesh {
namespace {

using CompareTest = testing::Test;

// ---- SelectV2 ----

OpCall Select(const Tensor& condition, const Tensor& then, const Tensor& other) {
  return {.type = "SelectV2",
          .inputs = {{"condition", condition}, {"then", then}, {"else", other}}};
}

TEST_F(CompareTest, SelectMovesBits) {
  const Tensor condition = Make<uint8_t>(kBool, {2}, {1, 0});
  const Tensor then = Make<uint32_t>(kF32, {2}, {0x7fa00001, 0x7fc00000});
  const Tensor other = Make<uint32_t>(kF32, {2}, {0x7fc00000, 0x80000000});
  const Tensor y = RunOne(Select(condition, then, other));
  EXPECT_EQ(ValuesOf<uint32_t>(y), (std::vector<uint32_t>{0x7fa00001, 0x80000000}));
  const DataType complex = DataType::kComplex64;
  const Tensor pair = RunOne(Select(condition, Make<uint64_t>(complex, {2}, {1, 2}),
                                    Make<uint64_t>(complex, {2}, {3, 4})));
  EXPECT_EQ(ValuesOf<uint64_t>(pair), (std::vector<uint64_t>{1, 4}));
}

// ---- MaskedFill ----

TEST(Bitwise, WorksOnEveryWidth) {
  for (const DataType dtype : kIntegers) {
    WithStorage(dtype, [&](auto tag) {
      using T = decltype(tag);
      if constexpr (std::is_integral_v<T>) {
        const std::vector<T> a = AnyBits<T>(40, 1);
        const std::vector<T> b = AnyBits<T>(40, 2);
        const auto run = [&](const std::string& type) {
          return RunOne(
              {.type = type,
               .inputs = {{"x1", Make<T>(dtype, {40}, a)}, {"x2", Make<T>(dtype, {40}, b)}}});
        };
        std::vector<T> all(40), any(40), one(40), none(40);
        for (size_t i = 0; i < 40; ++i) {
          all[i] = static_cast<T>(a[i] & b[i]);
          any[i] = static_cast<T>(a[i] | b[i]);
          one[i] = static_cast<T>(a[i] ^ b[i]);
          none[i] = static_cast<T>(~a[i]);
        }
        ExpectSame(run("BitwiseAnd"), all, "and");
        ExpectSame(run("BitwiseOr"), any, "or");
        ExpectSame(run("BitwiseXor"), one, "xor");
        ExpectSame(RunOne({.type = "Invert", .inputs = {{"x", Make<T>(dtype, {40}, a)}}}), none,
                   "not");
      }
    });
  }
}

}  // namespace
}  // namespace npumesh
