// Philox and what is made of it.
// Indices drawn by weight.
// ApplyTopKTopPWithSorted against the definition, with drawn logits.
#include <bit>
#include <cstddef>
#include <numeric>

#include "runtime/base/philox.h"
#include "tests/unit/op_gradient.h"
#include "tests/unit/op_reference.h"
#include "tests/unit/op_values.h"
#include "tests/unit/ops/image/image_values.h"

namespace npumesh {
namespace {

// The known answers of the paper's own implementation (Random123, kat_vectors, philox4x32 10).
TEST(Philox, KnownAnswers) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(PhiloxBlock({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(PhiloxBlock({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(PhiloxBlock({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, TheCounterCarriesIntoItsHighHalf) {
  PhiloxStream stream(7, UINT64_MAX, 3);
  for (int i = 0; i < 4; ++i) stream.Next();
  EXPECT_EQ(stream.Next(), PhiloxBlock({0, 0, 4, 0}, {7, 0})[0]);
}

OpCall Numbers(const std::string& type, const Ints& shape, uint64_t seed, uint64_t offset,
               int64_t dtype = 0) {
  return {.type = type,
          .inputs = {{"shape", MakeInts(shape)},
                     {"key", Make<uint64_t>(DataType::kUint64, {1}, {seed})},
                     {"counter", Make<uint64_t>(DataType::kUint64, {2}, {0, offset})},
                     {"alg", Make<int32_t>(DataType::kInt32, {}, {1})}},
          .attrs = {{"dtype", AttrValue::Int(dtype)}}};
}

TEST(RandomUniform, IsUniform) {
  for (const int64_t dtype : {0, 11}) {
    const std::vector<double> y =
        ToDoubles(RunOne(Numbers("StatelessRandomUniformV2", {20000}, 1, 2, dtype)));
    double sum = 0;
    for (const double value : y) {
      ASSERT_TRUE(value >= 0 && value < 1);
      sum += value;
    }
    EXPECT_NEAR(sum / 20000, 0.5, 5 * std::sqrt(1.0 / 12 / 20000));  // five deviations
  }
}

TEST(RandomNormal, IsBoxMullerOnPairs) {
  const std::vector<double> uniform =
      ToDoubles(RunOne(Numbers("StatelessRandomUniformV2", {8}, 9, 4)));
  const std::vector<double> normal =
      ToDoubles(RunOne(Numbers("StatelessRandomNormalV2", {7}, 9, 4)));
  for (size_t i = 0; i < 7; ++i) {
    const double radius = std::sqrt(-2 * std::log(std::max(uniform[i & ~1u], 1e-7)));
    const double angle = 2 * std::acos(-1) * uniform[i | 1u];
    const double expected = radius * (i % 2 == 0 ? std::sin(angle) : std::cos(angle));
    EXPECT_NEAR(normal[i], expected, 1e-6);
  }
}

TEST(Random, RepeatsItselfAndMovesWithTheOffset) {
  const Tensor first = RunOne(Numbers("StatelessRandomNormalV2", {100}, 3, 0));
  EXPECT_TRUE(SameBytes(first, RunOne(Numbers("StatelessRandomNormalV2", {100}, 3, 0))));
  EXPECT_FALSE(SameBytes(first, RunOne(Numbers("StatelessRandomNormalV2", {100}, 3, 12))));
  EXPECT_FALSE(SameBytes(first, RunOne(Numbers("StatelessRandomNormalV2", {100}, 4, 0))));
}

TEST(Bernoulli, IsOneBelowTheProbability) {
  const auto run = [](const Tensor& prob, int64_t count) {
    return RunOne({.type = "StatelessBernoulli",
                   .inputs = {{"shape", MakeInts({count})},
                              {"prob", prob},
                              {"seed", MakeInts({11})},
                              {"offset", MakeInts({0})}},
                   .attrs = {{"dtype", AttrValue::Int(12)}}});
  };
  const Tensor some = run(FromDoubles(DataType::kFloat, {}, {0.25}), 20000);
  EXPECT_EQ(some.dtype(), DataType::kBool);
  double ones = 0;
  for (const double value : ToDoubles(some)) ones += value;
  EXPECT_NEAR(ones / 20000, 0.25, 5 * std::sqrt(0.25 * 0.75 / 20000));
  EXPECT_EQ(ToDoubles(run(FromDoubles(DataType::kFloat, {3}, {0, 1, 0}), 3)),
            (std::vector<double>{0, 1, 0}));
}

// Every run of the stateful form goes on where the last one stopped; a new kernel starts anew.
TEST(Dropout, StatefulMasksDifferFromRunToRun) {
  const OpCall call = {
      .type = "DropOutGenMask",
      .inputs = {{"shape", MakeInts({3, 50})}, {"prob", FromDoubles(DataType::kFloat, {1}, {0.5})}},
      .attrs = {{"seed", AttrValue::Int(5)}, {"seed2", AttrValue::Int(6)}}};
  const Operator& op = *BuiltinOps().Find(call.type);
  EXPECT_FALSE(op.pure);
  const Node node = op_test::MakeNode(op, call);
  const Result<OpContext> context = op_test::BindAndInfer(op, call, node);
  ASSERT_TRUE(context.ok()) << context.status().ToString();
  EXPECT_EQ(context->out(0), (TensorType{DataType::kUint8, {32}}));
  const Result<std::unique_ptr<Kernel>> kernel = op.make_kernel(*context);
  ASSERT_TRUE(kernel.ok());
  std::vector<uint8_t> first(32, 1), second(32, 1);
  for (std::vector<uint8_t>* mask : {&first, &second}) {
    const void* in[] = {call.inputs[0].value.data(), call.inputs[1].value.data()};
    void* out[] = {mask->data()};
    ASSERT_TRUE((*kernel)->Run({in, out}).ok());
  }
  EXPECT_NE(first, second);
  EXPECT_EQ(ValuesOf<uint8_t>(RunOne(call)), first);
  // 150 bits, half of them set more or less, and zeros behind.
  int set = 0;
  for (const uint8_t byte : first) set += std::popcount(byte);
  EXPECT_NEAR(set, 75, 30);
  EXPECT_EQ(std::vector<uint8_t>(first.begin() + 19, first.end()), std::vector<uint8_t>(13, 0));
}

OpCall Draw(const Tensor& x, int64_t samples, bool replacement, int64_t offset = 0) {
  return {.type = "MultinomialWithReplacement",
          .inputs = {{"x", x}, {"seed", MakeInts({42})}, {"offset", MakeInts({offset})}},
          .attrs = {{"numsamples", AttrValue::Int(samples)},
                    {"replacement", AttrValue::Bool(replacement)}}};
}

TEST(Multinomial, DrawsByWeight) {
  const Tensor x = FromDoubles(DataType::kFloat, {2, 4}, {1, 0, 2, 5, 0, 0, 7, 0});
  const Tensor y = RunOne(Draw(x, 4000, true));
  ASSERT_EQ(y.type(), (TensorType{DataType::kInt64, {2, 4000}}));
  std::vector<int> counts(8, 0);
  for (size_t i = 0; i < 8000; ++i) {
    const auto drawn = static_cast<size_t>(y.as<int64_t>()[i]);
    ASSERT_LT(drawn, 4u);
    ++counts[i / 4000 * 4 + drawn];
  }
  // 4000 draws with p = 1/8: a deviation of 21; five of them are never seen.
  EXPECT_NEAR(counts[0], 500, 105);
  EXPECT_NEAR(counts[2], 1000, 140);
  EXPECT_NEAR(counts[3], 2500, 155);
  EXPECT_EQ(counts[1], 0);
  EXPECT_EQ(counts[6], 4000);
}

TEST(Multinomial, WithoutReplacementEveryIndexComesOnce) {
  const Tensor x = FromDoubles(DataType::kFloat, {5}, {1, 2, 0, 4, 8});
  std::vector<int64_t> first_drawn(5, 0);
  for (int64_t offset = 0; offset < 600; ++offset) {
    std::vector<int64_t> drawn = ValuesOf<int64_t>(RunOne(Draw(x, 4, false, offset)));
    ++first_drawn[static_cast<size_t>(drawn[0])];
    std::sort(drawn.begin(), drawn.end());
    ASSERT_EQ(drawn, (std::vector<int64_t>{0, 1, 3, 4}));
  }
  // 600 * 8 / 15 with a deviation of 12.2.
  EXPECT_NEAR(static_cast<double>(first_drawn[4]), 320, 61);
  EXPECT_NEAR(static_cast<double>(first_drawn[0]), 40, 31);
}

struct SortedRows {
  Tensor values, places;
};

SortedRows SortRows(const Tensor& logits) {
  const std::vector<double> all = ToDoubles(logits);
  const auto width = static_cast<size_t>(logits.shape()[1]);
  std::vector<double> values, places;
  for (size_t r = 0; r < all.size(); r += width) {
    std::vector<size_t> order(width);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return all[r + a] < all[r + b]; });
    for (const size_t at : order) {
      values.push_back(all[r + at]);
      places.push_back(static_cast<double>(at));
    }
  }
  return {FromDoubles(logits.dtype(), logits.shape(), values),
          FromDoubles(DataType::kInt32, logits.shape(), places)};
}

// Equal logits are drawn too. A sum of probabilities that a rounding could move over its limit is
// not drawn by these seeds, which the test checks.
TEST(ApplyTopKTopP, RandomLogits) {
  Random random(20261207);
  for (int turn = 0; turn < 120; ++turn) {
    const DataType types[] = {kF32, kF16, kBf16};
    const DataType dtype = types[turn % 3];
    const auto rows = static_cast<int64_t>(1 + random.Bits() % 3),
               width = static_cast<int64_t>(1 + random.Bits() % 9);
    std::vector<double> drawn, ks, ps;
    for (int64_t i = 0; i < rows * width; ++i) {
      drawn.push_back(static_cast<double>(random.Bits() % 9) - 4);
    }
    for (int64_t r = 0; r < rows; ++r) {
      ks.push_back(static_cast<double>(1 + random.Bits() % static_cast<uint64_t>(width)));
      ps.push_back(random.Unit());
    }
    const Tensor logits = FromDoubles(dtype, {rows, width}, drawn);
    const SortedRows sorted = SortRows(logits);
    OpCall call = {.type = "ApplyTopKTopPWithSorted",
                   .inputs = {{"sorted_value", sorted.values}, {"sorted_indices", sorted.places}}};
    const bool by_k = turn % 4 != 0, by_p = turn % 4 != 1;
    const Tensor p = FromDoubles(kF32, {rows}, ps);
    if (by_p) call.inputs.push_back({"p", p});
    if (by_k) call.inputs.push_back({"k", FromDoubles(DataType::kInt32, {rows}, ks)});
    std::vector<double> want = drawn;
    for (int64_t r = 0; r < rows; ++r) {
      const auto first = static_cast<size_t>(r * width), n = static_cast<size_t>(width);
      const std::vector<double> places = ToDoubles(sorted.places),
                                values = ToDoubles(sorted.values);
      const double least =
          by_k ? values[first + n - static_cast<size_t>(ks[static_cast<size_t>(r)])] : -100;
      double total = 0, sum = 0;
      for (size_t i = 0; i < n; ++i)
        total += values[first + i] < least ? 0 : std::exp(values[first + i]);
      for (size_t i = 0; i < n; ++i) {
        const double v = values[first + i];
        sum += v < least ? 0 : std::exp(v) / total;
        const double limit = 1 - ToDoubles(p)[static_cast<size_t>(r)];
        const bool unlikely = by_p && i + 1 < n && sum <= limit;
        ASSERT_GT(std::abs(sum - limit), 1e-9) << "the draw lies at a limit";
        if (v < least || unlikely) {
          want[first + static_cast<size_t>(places[first + i])] =
              -std::numeric_limits<double>::infinity();
        }
      }
    }
    EXPECT_EQ(ToDoubles(Results(call)[0]), want) << "turn " << turn;
  }
}

}  // namespace
}  // namespace npumesh
