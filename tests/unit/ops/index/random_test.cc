// Philox and what is made of it.
#include "runtime/base/philox.h"

#include <bit>

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

TEST(RandomUniform, TakesTheLowBitsOfEachWord) {
  struct Case {
    DataType dtype;
    int64_t number;
    int bits;
  };
  for (const Case& test : {Case{DataType::kFloat, 0, 23}, Case{DataType::kFloat16, 1, 10},
                           Case{DataType::kBfloat16, 27, 7}}) {
    const Tensor y =
        RunOne(Numbers("StatelessRandomUniformV2", {2, 3}, 0x123456789abcdef, 5, test.number));
    ASSERT_EQ(y.type(), (TensorType{test.dtype, {2, 3}}));
    std::vector<double> expected;
    for (uint32_t i = 0; i < 6; ++i) {
      const uint32_t word = PhiloxBlock({i / 4, 0, 5, 0}, {0x89abcdef, 0x1234567})[i % 4];
      expected.push_back(std::ldexp(word & ((1u << test.bits) - 1), -test.bits));
    }
    EXPECT_EQ(ToDoubles(y), expected);
  }
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

TEST(Random, Refuses) {
  OpCall call = Numbers("StatelessRandomUniformV2", {2}, 1, 1);
  call.inputs[3].value = Make<int32_t>(DataType::kInt32, {}, {2});
  ExpectFails(call, Code::kUnsupported, {"\"alg\" is 2"});
  call = Numbers("StatelessRandomUniformV2", {2}, 1, 1, 3);
  ExpectFails(call, Code::kUnsupported, {"int32"});
  call = Numbers("StatelessRandomUniformV2", {2}, 1, 1);
  call.inputs[2].value = Make<uint64_t>(DataType::kUint64, {1}, {1});
  ExpectFails(call, Code::kInvalidArgument, {"\"counter\" is uint64[1]"});
  call = Numbers("StatelessRandomUniformV2", {-1}, 1, 1);
  ExpectFails(call, Code::kInvalidArgument, {"[-1]"});
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

TEST(Randperm, HoldsEveryNumberOnce) {
  const auto run = [](int64_t seed) {
    return ValuesOf<int64_t>(RunOne(
        {.type = "StatelessRandperm",
         .inputs = {
             {"n", MakeInts({50})}, {"seed", MakeInts({seed})}, {"offset", MakeInts({0})}}}));
  };
  std::vector<int64_t> y = run(1);
  EXPECT_NE(y, run(2));
  EXPECT_FALSE(std::is_sorted(y.begin(), y.end()));
  std::sort(y.begin(), y.end());
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], static_cast<int64_t>(i));
}

Tensor GenMask(const Ints& shape, double keep) {
  return RunOne({.type = "StatelessDropOutGenMask",
                 .inputs = {{"shape", MakeInts(shape)},
                            {"prob", FromDoubles(DataType::kFloat, {}, {keep})},
                            {"seed", MakeInts({5})},
                            {"seed1", MakeInts({0})},
                            {"offset", MakeInts({6, 7})}}});
}

TEST(Dropout, MaskHasABitForEachElement) {
  const Tensor mask = GenMask({13, 10}, 0.5);
  EXPECT_EQ(mask.type(), (TensorType{DataType::kUint8, {32}}));
  const std::vector<uint8_t> bytes = ValuesOf<uint8_t>(mask);
  for (uint32_t i = 0; i < 256; ++i) {
    const uint32_t word = PhiloxBlock({6 + i / 4, 0, 7, 0}, {5, 0})[i % 4];
    const bool expected = i < 130 && word * 0x1p-32 + 0x1p-33 < 0.5;
    EXPECT_EQ((bytes[i / 8] >> (i % 8) & 1) != 0, expected) << i;
  }
}

TEST(Dropout, DropsAndScales) {
  for (const DataType dtype : {DataType::kFloat, DataType::kFloat16}) {
    const Tensor x = Pattern(dtype, {3, 4}, 2);
    const Tensor mask = Make<uint8_t>(DataType::kUint8, {16},
                                      {0xa5, 0x0f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
    std::vector<double> expected;
    for (size_t i = 0; i < 12; ++i) {
      const bool kept = ((i < 8 ? 0xa5 >> i : 0x0f >> (i - 8)) & 1) != 0;
      expected.push_back(kept ? ToDoubles(x)[i] / 0.5 : 0);
    }
    const OpCall call{
        .type = "DropOutDoMask",
        .inputs = {{"x", x}, {"mask", mask}, {"keep_prob", FromDoubles(dtype, {1}, {0.5})}}};
    EXPECT_TRUE(SameBytes(RunOne(call), FromDoubles(dtype, {3, 4}, expected)));
  }
  ExpectFails({.type = "DropOutDoMask",
               .inputs = {{"x", Pattern(DataType::kFloat, {9})},
                          {"mask", Make<uint8_t>(DataType::kUint8, {1}, {1})},
                          {"keep_prob", FromDoubles(DataType::kFloat, {1}, {0.5})}}},
              Code::kInvalidArgument, {"expected 9 bits"});
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

}  // namespace
}  // namespace npumesh
