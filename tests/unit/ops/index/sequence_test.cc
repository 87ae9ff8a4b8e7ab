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
}

}  // namespace
}  // namespace npumesh
