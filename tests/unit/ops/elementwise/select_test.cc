// Select and MaskedScatter.
#include "tests/unit/op_values.h"

namespace npumesh {
namespace {

Tensor Mask(Shape shape, const std::vector<uint8_t>& values) {
  return Make<uint8_t>(DataType::kBool, std::move(shape), values);
}

TEST(Select, AMaskOfLowerRankChoosesBlocks) {
  for (const DataType dtype : AllDtypes()) {
    const Tensor x1 = Pattern(dtype, {2, 3}, 1), x2 = Pattern(dtype, {2, 3}, 2);
    const std::vector<double> a = ToDoubles(x1), b = ToDoubles(x2);
    const auto run = [&](const Tensor& mask) {
      return RunOne({.type = "Select", .inputs = {{"condition", mask}, {"x1", x1}, {"x2", x2}}});
    };
    EXPECT_TRUE(SameBytes(run(Mask({2, 3}, {1, 0, 0, 0, 1, 1})),
                          FromDoubles(dtype, {2, 3}, {a[0], b[1], b[2], b[3], a[4], a[5]})));
    EXPECT_TRUE(SameBytes(run(Mask({2}, {0, 1})),
                          FromDoubles(dtype, {2, 3}, {b[0], b[1], b[2], a[3], a[4], a[5]})));
    EXPECT_TRUE(SameBytes(run(Mask({}, {1})), x1));
  }
}

TEST(Select, Refuses) {
  const Tensor x = Pattern(DataType::kFloat, {2, 3});
  ExpectFails(
      {.type = "Select", .inputs = {{"condition", Mask({3}, {1, 1, 1})}, {"x1", x}, {"x2", x}}},
      Code::kInvalidArgument, {"[3]", "[2,3]"});
  ExpectFails({.type = "Select", .inputs = {{"condition", x}, {"x1", x}, {"x2", x}}},
              Code::kInvalidArgument, {"expected bool"});
}

TEST(MaskedScatter, TakesUpdatesInOrder) {
  for (const DataType dtype : AllDtypes()) {
    const Tensor x = Pattern(dtype, {2, 3}), updates = Pattern(dtype, {5}, 4);
    const std::vector<double> a = ToDoubles(x), u = ToDoubles(updates);
    const auto run = [&](const Tensor& mask) {
      return RunOne(
          {.type = "MaskedScatter", .inputs = {{"x", x}, {"mask", mask}, {"updates", updates}}});
    };
    EXPECT_TRUE(SameBytes(run(Mask({2, 3}, {0, 1, 0, 1, 0, 1})),
                          FromDoubles(dtype, {2, 3}, {a[0], u[0], a[2], u[1], a[4], u[2]})));
    EXPECT_TRUE(SameBytes(run(Mask({3}, {1, 0, 1})),
                          FromDoubles(dtype, {2, 3}, {u[0], a[1], u[1], u[2], a[4], u[3]})));
  }
}

TEST(MaskedScatter, Refuses) {
  const auto call = [](const Tensor& mask) {
    return OpCall{.type = "MaskedScatter",
                  .inputs = {{"x", Pattern(DataType::kFloat, {2, 2})},
                             {"mask", mask},
                             {"updates", Pattern(DataType::kFloat, {3})}}};
  };
  ExpectFails(call(Mask({2, 2}, {1, 1, 1, 1})), Code::kInvalidArgument, {"has 3 elements"});
  ExpectFails(call(Mask({3}, {1, 1, 1})), Code::kInvalidArgument, {"[3]", "[2,2]"});
}

}  // namespace
}  // namespace npumesh
