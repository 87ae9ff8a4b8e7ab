// SwigluMxQuant: DynamicMxQuant of the activation in double.
#include <cmath>

#include "tests/unit/op_types.h"
#include "tests/unit/op_values.h"
#include "tests/unit/ops/quant/small_values.h"

namespace npumesh {
namespace {

OpCall SwigluCall(DataType dtype, int64_t mode, bool left) {
  return {.type = "SwigluMxQuant",
          .inputs = {{"x", Noise(kBf16, {3, 2, 140}, 5, 9)}},
          .attrs = {{"dst_type", TypeAttr(dtype)},
                    {"swiglu_mode", AttrValue::Int(mode)},
                    {"activate_left", AttrValue::Bool(left)},
                    {"clamp_limit", AttrValue::Float(3.0f)},
                    {"glu_alpha", AttrValue::Float(1.5f)},
                    {"glu_bias", AttrValue::Float(0.5f)}}};
}

Tensor Activated(const Tensor& x, int64_t mode, bool left) {
  const std::vector<double> values = ToDoubles(x);
  const size_t half = 70;
  std::vector<double> z;
  for (size_t row = 0; row < values.size(); row += 2 * half) {
    for (size_t i = 0; i < half; ++i) {
      const double even = values[row + 2 * i], odd = values[row + 2 * i + 1];
      const double front = values[row + i], back = values[row + half + i];
      double gate = mode == 1 ? even : left ? front : back;
      double other = mode == 1 ? odd : left ? back : front;
      if (mode == 0) {
        z.push_back(gate / (1 + std::exp(-gate)) * other);
        continue;
      }
      gate = std::min(gate, 3.0);
      other = std::clamp(other, -3.0, 3.0);
      z.push_back(gate / (1 + std::exp(-1.5 * gate)) * (other + 0.5));
    }
  }
  return FromDoubles(kF32, {3, 2, 70}, z);
}

TEST(SwigluMxQuant, QuantisesTheActivation) {
  for (const DataType dtype : {kE4M3, kE2M1}) {
    for (const int64_t mode : {0, 1, 2}) {
      for (const bool left : {false, true}) {
        const OpCall call = SwigluCall(dtype, mode, left);
        const std::vector<Tensor> got = Results(call);
        const std::vector<Tensor> want =
            Results({.type = "DynamicMxQuant",
                     .inputs = {{"x", Activated(call.inputs[0].value, mode, left)}},
                     .attrs = {{"dst_type", TypeAttr(dtype)}}});
        ASSERT_EQ(got.size(), 2u);
        EXPECT_TRUE(SameBytes(got[0], want[0])) << Name(dtype) << " " << mode << left;
        EXPECT_TRUE(SameBytes(got[1], want[1])) << Name(dtype) << " " << mode << left;
      }
    }
  }
}

TEST(SwigluMxQuant, RowsBehindTheGroupsAreZeros) {
  OpCall call = SwigluCall(kE4M3, 0, true);
  const std::vector<Tensor> all = Results(call);
  call.inputs.push_back({"group_index", MakeInts({1, 0, 3})});
  const std::vector<Tensor> some = Results(call);
  for (size_t i = 0; i < 2; ++i) {
    std::vector<uint8_t> want = ValuesOf<uint8_t>(all[i]);
    std::fill(want.begin() + static_cast<int64_t>(want.size() / 6 * 4), want.end(), uint8_t{0});
    EXPECT_EQ(ValuesOf<uint8_t>(some[i]), want);
  }
}

TEST(SwigluMxQuant, RefusesByName) {
  const std::pair<const char*, AttrValue> attrs[] = {{"axis", AttrValue::Int(0)},
                                                     {"activate_dim", AttrValue::Int(1)},
                                                     {"swiglu_mode", AttrValue::Int(3)},
                                                     {"group_mode", AttrValue::Int(1)},
                                                     {"max_dtype_value", AttrValue::Float(2)}};
  for (const auto& [name, value] : attrs) {
    OpCall call = SwigluCall(kE4M3, 0, true);
    call.attrs = {{name, value}};
    ExpectFails(call, Code::kUnsupported, {"node_under_test", name});
  }
}

}  // namespace
}  // namespace npumesh
