#include "tests/unit/ops/elementwise/pointwise_cases.h"

namespace npumesh {
namespace {

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

TEST(Bitwise, ShiftsLimitTheirCounts) {
  for (const DataType dtype : kIntegers) {
    WithStorage(dtype, [&](auto tag) {
      using T = decltype(tag);
      if constexpr (std::is_integral_v<T>) {
        constexpr int kBits = static_cast<int>(sizeof(T) * 8);
        const T x = static_cast<T>(~T(0) - 2);
        const std::vector<T> counts = {
            0, 1, 5, static_cast<T>(kBits - 1), static_cast<T>(kBits), static_cast<T>(100)};
        std::vector<T> right, left;
        for (const T count : counts) {
          const int limited = std::min<int>(static_cast<int>(count), kBits - 1);
          right.push_back(static_cast<T>(x >> limited));
          left.push_back(static_cast<T>(static_cast<uint64_t>(x) << limited));
        }
        const auto run = [&](const std::string& type) {
          return RunOne(
              {.type = type,
               .inputs = {{"x", Make<T>(dtype, {}, {x})}, {"y", Make<T>(dtype, {6}, counts)}}});
        };
        ExpectSame(run("RightShift"), right, std::string(Name(dtype)) + " right");
        ExpectSame(run("LeftShift"), left, std::string(Name(dtype)) + " left");
      }
    });
  }
  const Tensor minus = Make<int32_t>(DataType::kInt32, {1}, {-5});
  const Tensor x = Make<int32_t>(DataType::kInt32, {1}, {8});
  EXPECT_EQ(ValuesOf<int32_t>(RunOne({.type = "RightShift", .inputs = {{"x", x}, {"y", minus}}})),
            (std::vector<int32_t>{8}));
}

TEST(Bitwise, RefusesFloats) {
  const Tensor x = FromDoubles(kF32, Shape({1}), {1});
  const Status status = FailOf({.type = "Invert", .inputs = {{"x", x}}});
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("float32[1]"));
}

}  // namespace
}  // namespace npumesh
