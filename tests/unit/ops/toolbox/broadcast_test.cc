// Broadcasting: shapes against naive indexing, and the promotion of types.
#include "graph/ops/toolbox/copy/broadcast.h"

#include "tests/unit/op_reference.h"

namespace npumesh {
namespace {

Tensor Counting(DataType dtype, const Shape& shape, int64_t step) {
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<double>(static_cast<int64_t>(i) * step % 1021);
  }
  return FromDoubles(dtype, shape, values);
}

struct ShapeCase {
  Shape a, b, expected;
};

const ShapeCase kShapes[] = {
    {{4}, {4}, {4}},
    {{}, {}, {}},
    {{}, {1}, {1}},
    {{1}, {1, 1}, {1, 1}},
    {{3}, {}, {3}},
    {{1}, {3}, {3}},
    {{2, 3}, {3}, {2, 3}},
    {{2, 1}, {2, 3}, {2, 3}},
    {{2, 1}, {1, 3}, {2, 3}},
    {{2, 3, 4}, {3, 1}, {2, 3, 4}},
    {{2, 3, 4}, {2, 1, 4}, {2, 3, 4}},
    {{1, 3, 1, 5}, {2, 1, 4, 1}, {2, 3, 4, 5}},
    {{5, 1, 7, 1}, {1, 6, 1, 8}, {5, 6, 7, 8}},
    {{37, 700}, {700}, {37, 700}},
    {{37, 1}, {37, 700}, {37, 700}},
    {{3, 1, 700}, {2, 1}, {3, 2, 700}},
    {{513, 2}, {513, 1}, {513, 2}},
    {{1100}, {1}, {1100}},
    {{0}, {1}, {0}},
    {{0, 3}, {3}, {0, 3}},
    {{2, 0, 3}, {1, 1, 3}, {2, 0, 3}},
    {{1}, {2, 0}, {2, 0}},
};

TEST(BroadcastTest, EveryShapeAgreesWithNaiveIndexing) {
  for (const DataType dtype : {kF32, kF16, kF64, DataType::kInt8, DataType::kInt64}) {
    for (const ShapeCase& test : kShapes) {
      // Products of small factors and sums are exact in every type used here, modulo wrapping.
      const Tensor a = Counting(dtype, test.a, 1);
      const Tensor b = Counting(dtype, test.b, 3);
      for (const bool swapped : {false, true}) {
        const Tensor y =
            RunOne({.type = "Sub", .inputs = {{"x1", swapped ? b : a}, {"x2", swapped ? a : b}}});
        ASSERT_EQ(y.shape(), test.expected);
        const std::vector<double> left = ToDoubles(a);
        const std::vector<double> right = ToDoubles(b);
        std::vector<double> expected;
        for (size_t i = 0; i < static_cast<size_t>(y.elements()); ++i) {
          const double difference =
              left[SourceOf(a.shape(), y.shape(), i)] - right[SourceOf(b.shape(), y.shape(), i)];
          expected.push_back(swapped ? -difference : difference);
        }
        if (dtype == DataType::kInt8) {
          for (double& value : expected) value = static_cast<int8_t>(static_cast<int64_t>(value));
        }
        const std::vector<double> values = ToDoubles(y);
        for (size_t i = 0; i < expected.size(); ++i) {
          ASSERT_EQ(values[i], expected[i])
              << a.type().ToString() << " " << b.type().ToString() << " element " << i;
        }
      }
    }
  }
}

TEST(BroadcastTest, PlanKnowsItsFastPaths) {
  EXPECT_TRUE(BroadcastPlan({2, 3}, {2, 3}, 4).direct());
  EXPECT_TRUE(BroadcastPlan({3}, {1, 3}, 4).direct());
  EXPECT_FALSE(BroadcastPlan({3}, {2, 3}, 4).direct());
  EXPECT_TRUE(BroadcastPlan({1, 1}, {2, 3}, 4).scalar());
  EXPECT_FALSE(BroadcastPlan({3}, {2, 3}, 4).scalar());
}

TEST(BroadcastTest, GatherStartsAnywhere) {
  const std::vector<uint64_t> wide = {10, 11, 20, 21, 30, 31};  // three elements of 16 bytes
  const BroadcastPlan plan({3, 1}, {3, 2}, 16);
  uint64_t gathered[6];
  plan.Gather(wide.data(), 1, 3, gathered);
  const uint64_t expected[] = {10, 11, 20, 21, 20, 21};
  EXPECT_TRUE(std::equal(gathered, gathered + 6, expected));
}

TEST(BroadcastTest, TypesWithoutArithmeticDoNotPromote) {
  const TensorType text{DataType::kString, {2}};
  const TensorType real{DataType::kFloat, {2}};
  EXPECT_EQ(Promote(std::vector<TensorType>{text, real}), DataType::kUndefined);
  EXPECT_EQ(Promote(std::vector<TensorType>{text, text}), DataType::kString);
}

}  // namespace
}  // namespace npumesh
