// MaskedSoftmaxWithRelPosBias, MaskedCausalConv1d, ClippedSwiglu, MoeUpdateExpert, and the matmuls
// of the third version.
#include "tests/unit/op_gradient.h"
#include "tests/unit/op_reference.h"

namespace npumesh {
namespace {

using Ints = std::vector<int64_t>;

TEST(MaskedSoftmax, AddsMaskOfTheWindowAndBiasOfTheHead) {
  // Two images of two windows, three heads, planes of 2 x 2.
  const Tensor x = Waves(kF32, {2, 2, 3, 2, 2}), mask = Waves(kF32, {2, 2, 2}, 2),
               bias = Waves(kF32, {3, 2, 2}, 3);
  const auto run = [&](const Shape& shape, bool masked) {
    OpCall call = {
        .type = "MaskedSoftmaxWithRelPosBias",
        .inputs = {{"x", FromDoubles(kF32, shape, ToDoubles(x))}, {"relative_pos_bias", bias}},
        .attrs = {{"scale_value", AttrValue::Float(0.5f)}}};
    if (masked) call.inputs.push_back({"atten_mask", mask});
    return Outputs(call)[0];
  };
  for (const bool masked : {true, false}) {
    std::vector<double> expected;
    for (const Ints& at : Positions(x.shape())) {
      const auto score = [&](int64_t column) {
        Ints place = at;
        place[4] = column;
        return 0.5 * ToDoubles(x)[Index(x.shape(), place)] +
               ToDoubles(bias)[Index(bias.shape(), {at[2], at[3], column})] +
               (masked ? ToDoubles(mask)[Index(mask.shape(), {at[1], at[3], column})] : 0.0);
      };
      expected.push_back(std::exp(score(at[4])) / (std::exp(score(0)) + std::exp(score(1))));
    }
    ExpectNear(run({2, 2, 3, 2, 2}, masked), expected, 1e-6);
    ExpectNear(run({4, 3, 2, 2}, masked), expected, 1e-6);
  }
  ExpectFails({.type = "MaskedSoftmaxWithRelPosBias",
               .inputs = {{"x", Waves(kF32, {3, 3, 2, 2})},
                          {"atten_mask", mask},
                          {"relative_pos_bias", bias}}},
              Code::kInvalidArgument, {"atten_mask"});
}

TEST(MaskedCausalConv, SeesThePastAlone) {
  const Tensor x = FromDoubles(kF32, {4, 1, 2}, {1, 10, 2, 20, 3, 30, 4, 40});
  const Tensor weight = FromDoubles(kF32, {3, 2}, {100, 1, 10, 1, 1, 1});
  OpCall call = {.type = "MaskedCausalConv1d", .inputs = {{"input", x}, {"weight", weight}}};
  // The last tap meets the row itself, the one before it the row before.
  EXPECT_EQ(ToDoubles(Outputs(call)[0]), (std::vector<double>{1, 10, 12, 30, 123, 60, 234, 90}));
  call.inputs.push_back({"mask", Make<uint8_t>(DataType::kBool, {1, 4}, {1, 0, 1, 0})});
  EXPECT_EQ(ToDoubles(Outputs(call)[0]), (std::vector<double>{1, 10, 0, 0, 123, 60, 0, 0}));
  call.inputs.back().value = Make<uint8_t>(DataType::kBool, {4, 1}, {1, 0, 1, 0});
  ExpectFails(call, Code::kInvalidArgument, {"[B,S]"});
}

TEST(ClippedSwiglu, ClampsBothParts) {
  const std::vector<double> gate = {-9, 1, 8, 3}, linear = {2, -8, 0.5, 9};
  const auto formula = [](double a, double b) {
    a = std::min(a, 7.0);
    return a / (1 + std::exp(-static_cast<double>(1.702f) * a)) * (std::clamp(b, -7.0, 7.0) + 1);
  };
  std::vector<double> expected;
  for (size_t i = 0; i < 4; ++i) expected.push_back(formula(gate[i], linear[i]));
  const Tensor mixed = FromDoubles(kF32, {2, 4}, {-9, 2, 1, -8, 8, 0.5, 3, 9});
  const Tensor halves = FromDoubles(kF32, {2, 4}, {-9, 1, 2, -8, 8, 3, 0.5, 9});
  OpCall call = {.type = "ClippedSwiglu", .inputs = {{"x", mixed}}};
  ExpectNear(Outputs(call)[0], expected, 1e-6);
  call.inputs.push_back({"group_index", MakeInts({0, 1})});
  expected[2] = expected[3] = 0;
  ExpectNear(Outputs(call)[0], expected, 1e-6);
  call.inputs[0].value = halves;
  call.attrs = {{"interleaved", AttrValue::Bool(false)}};
  ExpectNear(Outputs(call)[0], expected, 1e-6);
  call.attrs = {{"dim", AttrValue::Int(2)}};
  ExpectFails(call, Code::kInvalidArgument, {"dim"});
}

TEST(MoeUpdateExpert, PicksACopyByRankOrToken) {
  const auto ids = [](Shape shape, const std::vector<int32_t>& values) {
    return Make<int32_t>(DataType::kInt32, std::move(shape), values);
  };
  const Tensor table = ids({3, 4}, {1, 7, 0, 0, 2, 3, 4, 0, 3, 5, 6, 8});
  OpCall call = {.type = "MoeUpdateExpert",
                 .inputs = {{"expert_ids", ids({2, 3}, {0, 1, 2, 2, 2, 1})}, {"eplb_table", table}},
                 .attrs = {{"balance_mode", AttrValue::Int(1)}}};
  EXPECT_EQ(ToDoubles(Outputs(call)[0]), (std::vector<double>{7, 3, 5, 6, 6, 4}));
  EXPECT_EQ(ToDoubles(Outputs(call)[1]), std::vector<double>(6, 1));
  // Rank 3 of 4: the second of two copies, and of three, each for two ranks, the second too.
  call.attrs = {{"local_rank_id", AttrValue::Int(3)}, {"world_size", AttrValue::Int(4)}};
  EXPECT_EQ(ToDoubles(Outputs(call)[0]), (std::vector<double>{7, 4, 6, 6, 6, 4}));
  call.inputs.push_back({"expert_scales", FromDoubles(kF32, {2, 3}, {4, 2, 2, 1, 1, 2})});
  call.inputs.push_back({"pruning_threshold", FromDoubles(kF32, {3}, {0, 0.25, 0.5})});
  EXPECT_EQ(ToDoubles(Outputs(call)[1]), (std::vector<double>{1, 1, 0, 1, 1, 1}));
  call.inputs.push_back({"active_mask", Make<uint8_t>(DataType::kBool, {2}, {0, 1})});
  EXPECT_EQ(ToDoubles(Outputs(call)[1]), (std::vector<double>{0, 0, 0, 1, 1, 1}));
  call.inputs[0].value = ids({2, 3}, {0, 1, 2, 2, 3, 1});
  ExpectFails(call, Code::kInvalidArgument, {"token 1 chose expert 3"});
  call.attrs = {};
  ExpectFails(call, Code::kInvalidArgument, {"rank -1 of -1"});
}

TEST(MatMulV3, IsTheSecondVersion) {
  const Tensor a = Waves(kF32, {4, 3}), b = Waves(kF32, {4, 5}, 2), bias = Waves(kF32, {5}, 3);
  const std::vector<OpInput> inputs = {{"x1", a}, {"x2", b}, {"bias", bias}};
  const std::pair<std::string, AttrValue> plain = {"transpose_x1", AttrValue::Bool(true)},
                                          adjoint = {"adj_x1", AttrValue::Bool(true)};
  const auto run = [&](const char* type, const std::pair<std::string, AttrValue>& attr) {
    return Outputs({.type = type, .inputs = inputs, .attrs = {attr}})[0];
  };
  EXPECT_TRUE(SameBytes(run("MatMulV3", plain), run("MatMulV2", plain)));
  EXPECT_TRUE(SameBytes(run("BatchMatMulV3", adjoint), run("BatchMatMulV2", adjoint)));
}

}  // namespace
}  // namespace npumesh
