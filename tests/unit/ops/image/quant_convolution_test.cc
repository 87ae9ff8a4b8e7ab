// QuantConv2D against the sum over all positions, on drawn cases: exact, so bit by bit.
#include <bit>
#include <random>

#include "tests/unit/op_values.h"
#include "tests/unit/ops/image/drawn_convolution.h"

namespace npumesh {
namespace {

// Scales as they are fed: floats, or their bits with the mark of TransQuantParamV2.
Tensor FedScales(DataType dtype, const std::vector<float>& scales) {
  const Shape shape({static_cast<int64_t>(scales.size())});
  if (dtype == DataType::kFloat) return Make<float>(dtype, shape, scales);
  std::vector<uint64_t> packed;
  for (const float scale : scales) {
    packed.push_back(uint64_t{1} << 46 | std::bit_cast<uint32_t>(scale));
  }
  return Make<uint64_t>(dtype, shape, packed);
}

// OIHW to HWIO.
Tensor ImageBeforeChannels(const Tensor& filter) {
  const Shape& from = filter.shape();
  const Shape shape({from[2], from[3], from[1], from[0]});
  std::vector<int8_t> values;
  for (const Dims& at : Positions(shape)) {
    values.push_back(filter.as<int8_t>()[Index(from, {at[3], at[2], at[0], at[1]})]);
  }
  return Make<int8_t>(DataType::kInt8, shape, values);
}

OpCall QuantConvCall(const DrawnConvolution& drawn, const Tensor& x, const Tensor& filter,
                     bool last, DataType y) {
  return {.type = "QuantConv2D",
          .inputs = {{"x", last ? ChannelsBehind(x) : x},
                     {"filter", last ? ImageBeforeChannels(filter) : filter}},
          .attrs = {{"dtype", AttrValue::Int(static_cast<int64_t>(y))},
                    {"strides", OfImage(drawn.strides, last)},
                    {"dilations", OfImage(drawn.dilations, last)},
                    {"pads", AttrValue::Ints(drawn.pads)},
                    {"groups", AttrValue::Int(drawn.groups)},
                    {"data_format", AttrValue::String(last ? "NHWC" : "NCHW")},
                    {"offset_x", AttrValue::Int(drawn.offset_x)}}};
}

TEST(QuantConv2D, GivesTheExactSums) {
  std::mt19937 random(7);
  constexpr DataType kTo[] = {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16};
  constexpr DataType kScales[] = {DataType::kUint64, DataType::kInt64, DataType::kFloat};
  for (int i = 0; i < 80; ++i) {
    SCOPED_TRACE(i);
    const DrawnConvolution drawn(random);
    const Tensor x = Bytes(random, drawn.x), filter = Bytes(random, drawn.filter);
    const bool last = random() % 2 == 0, biased = random() % 2 == 0;
    const DataType to = kTo[random() % 3];
    const auto channels = static_cast<size_t>(drawn.filter[0]);
    std::vector<float> scales(random() % 4 == 0 ? 1 : channels);
    for (float& scale : scales) scale = static_cast<float>(random() % 1000) * 0x1p-14f;
    std::vector<int32_t> bias(channels);
    for (int32_t& value : bias)
      value = biased ? static_cast<int32_t>(random() % 100001) - 50000 : 0;
    OpCall call = QuantConvCall(drawn, x, filter, last, to);
    call.inputs.push_back({"scale", FedScales(kScales[random() % 3], scales)});
    if (biased) {
      call.inputs.push_back({"bias", Make<int32_t>(DataType::kInt32, {drawn.filter[0]}, bias)});
    }
    std::vector<double> want;
    for (const Dims& at : Positions(drawn.y())) {
      const auto channel = static_cast<size_t>(at[1]);
      const int64_t products = drawn.Sum(at, x.as<int8_t>(), filter.as<int8_t>(), drawn.offset_x);
      const auto sum = static_cast<float>(products + bias[channel]);
      want.push_back(static_cast<double>(sum * scales[scales.size() == 1 ? 0 : channel]));
    }
    const Tensor expected = FromDoubles(to, drawn.y(), want);
    EXPECT_TRUE(SameBytes(Results(call)[0], last ? ChannelsBehind(expected) : expected))
        << drawn.x.ToString() << " " << drawn.filter.ToString();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace npumesh
