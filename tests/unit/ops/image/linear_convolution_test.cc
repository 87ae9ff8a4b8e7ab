// QLinearConv against the sum over all positions, on drawn cases: exact, so bit by bit, whichever
// way to sum the processor has.
#include <cmath>
#include <random>

#include "tests/unit/op_types.h"
#include "tests/unit/ops/image/drawn_convolution.h"

namespace npumesh {
namespace {

constexpr DataType kInt32 = DataType::kInt32, kUint8 = DataType::kUint8;

// Zeros, bias and scales of a drawn convolution, where they are fed.
struct DrawnQuantisation {
  DataType x = kInt8, filter = kInt8, y = kInt32;
  int64_t x_zero = 0, y_zero = 0;
  std::vector<int64_t> filter_zero;
  std::vector<int32_t> bias;
  std::vector<float> scale;

  DrawnQuantisation(std::mt19937& random, int64_t outputs) {
    const auto channels = static_cast<size_t>(outputs);
    constexpr DataType kBytes[] = {kInt8, kUint8}, kTo[] = {kInt8, kUint8, kFloat, kInt32};
    x = kBytes[random() % 2];
    filter = kBytes[random() % 2];
    y = kTo[random() % 4];
    const auto byte = [&](DataType dtype) {
      return static_cast<int64_t>(random() % 256) - (dtype == kInt8 ? 128 : 0);
    };
    if (random() % 2 == 0) x_zero = byte(x);
    filter_zero.resize(random() % 2 == 0 ? 1 : channels, filter == kUint8 ? 128 : 0);
    for (int64_t& zero : filter_zero) {
      if (random() % 3 == 0) zero = byte(filter);
    }
    if (y == kInt8 || y == kUint8) y_zero = byte(y);
    bias.resize(random() % 2 == 0 ? channels : 0);
    for (int32_t& value : bias) value = static_cast<int32_t>(random() % 100001) - 50000;
    scale.resize(y == kInt32 ? 0 : random() % 2 == 0 ? 1 : channels);
    for (float& value : scale) value = static_cast<float>(random() % 1000) * 0x1p-18f;
  }

  // What becomes of a sum.
  double Stored(int64_t sum, size_t channel) const {
    const auto all = static_cast<int32_t>(sum + (bias.empty() ? 0 : bias[channel]));
    if (y == kInt32) return all;
    const float scaled = static_cast<float>(all) * scale[scale.size() == 1 ? 0 : channel];
    if (y == kFloat) return static_cast<double>(scaled);
    const double least = y == kInt8 ? -128 : 0;
    return std::clamp(std::nearbyint(double{scaled}) + static_cast<double>(y_zero), least,
                      least + 255);
  }
};

Tensor OneByte(DataType dtype, const std::vector<int64_t>& values) {
  std::vector<double> wide(values.begin(), values.end());
  return FromDoubles(dtype, {static_cast<int64_t>(values.size())}, wide);
}

OpCall LinearConvCall(const DrawnConvolution& drawn, const DrawnQuantisation& quantised,
                      const Tensor& x, const Tensor& filter) {
  OpCall call = {.type = "QLinearConv",
                 .inputs = {{"x", ChannelsBehind(x)}, {"filter", filter, Known::kYes}},
                 .attrs = {{"dtype", AttrValue::Int(static_cast<int64_t>(quantised.y))},
                           {"strides", OfImage(drawn.strides, true)},
                           {"dilations", OfImage(drawn.dilations, true)},
                           {"pads", AttrValue::Ints(drawn.pads)},
                           {"groups", AttrValue::Int(drawn.groups)},
                           {"data_format", AttrValue::String("NHWC")}}};
  const auto feed = [&](const std::string& port, Tensor value, Known known = Known::kNo) {
    call.inputs.push_back({port, std::move(value), known});
  };
  feed("x_zero", OneByte(quantised.x, {quantised.x_zero}));
  feed("filter_zero", OneByte(quantised.filter, quantised.filter_zero), Known::kYes);
  const auto count = [](const auto& list) { return Shape({static_cast<int64_t>(list.size())}); };
  if (!quantised.bias.empty()) {
    feed("bias", Make<int32_t>(kInt32, count(quantised.bias), quantised.bias));
  }
  if (!quantised.scale.empty()) {
    feed("scale", Make<float>(kFloat, count(quantised.scale), quantised.scale));
  }
  if (quantised.y == kInt8 || quantised.y == kUint8) {
    feed("y_zero", OneByte(quantised.y, {quantised.y_zero}));
  }
  return call;
}

template <typename X, typename W>
Tensor Expected(const DrawnConvolution& drawn, const DrawnQuantisation& quantised, const Tensor& x,
                const Tensor& filter) {
  std::vector<double> want;
  for (const Dims& at : Positions(drawn.y())) {
    const auto channel = static_cast<size_t>(at[1]);
    const std::vector<int64_t>& zeros = quantised.filter_zero;
    const int64_t sum =
        drawn.Sum(at, std::span<const X>(x.as<X>()), std::span<const W>(filter.as<W>()),
                  quantised.x_zero, quantised.x_zero, zeros[zeros.size() == 1 ? 0 : channel]);
    want.push_back(quantised.Stored(sum, channel));
  }
  return FromDoubles(quantised.y, drawn.y(), want);
}

TEST(QLinearConv, GivesTheExactSums) {
  std::mt19937 random(11);
  for (int i = 0; i < 120; ++i) {
    SCOPED_TRACE(i);
    DrawnConvolution drawn(random);
    if (i % 3 == 0) {  // a filter for each channel
      drawn.groups = 1 + static_cast<int64_t>(random() % 40);
      drawn.filter[0] = drawn.groups;
      drawn.filter[1] = 1;
      drawn.x[1] = drawn.groups;
    }
    const DrawnQuantisation quantised(random, drawn.filter[0]);
    const Tensor x = Bytes(random, drawn.x, quantised.x);
    const Tensor filter = Bytes(random, drawn.filter, quantised.filter);
    OpCall call = LinearConvCall(drawn, quantised, x, filter);
    call.threads = 1 + i % 2;
    const auto expected =
        quantised.x == kInt8
            ? (quantised.filter == kInt8 ? Expected<int8_t, int8_t> : Expected<int8_t, uint8_t>)
            : (quantised.filter == kInt8 ? Expected<uint8_t, int8_t> : Expected<uint8_t, uint8_t>);
    const Tensor want = expected(drawn, quantised, x, filter);
    EXPECT_TRUE(SameBytes(Results(call)[0], ChannelsBehind(want)))
        << drawn.x.ToString() << " " << drawn.filter.ToString();
    if (HasFailure()) return;
  }
}

// Of images whose sums do not fit into a cache together: by rows, with some left over, and by
// images.
TEST(QLinearConv, GivesTheExactSumsByRowsAndByImages) {
  std::mt19937 random(23);
  const std::tuple<int, int, int, int> cases[] = {// images, size, inputs, outputs
                                                  {2, 41, 3, 70},
                                                  {1, 90, 16, 16},
                                                  {7, 16, 8, 64},
                                                  {3, 33, 5, 120}};
  for (const auto& [images, size, inputs, outputs] : cases) {
    for (const int64_t kernel : {1, 3}) {
      DrawnConvolution drawn(random);
      drawn.groups = 1;
      drawn.filter = {outputs, inputs, kernel, kernel};
      drawn.x = {images, inputs, size, size};
      drawn.strides = {1 + size % 2, 1};
      drawn.dilations = {1, 1};
      drawn.pads = {0, kernel / 2, kernel / 2, 0};
      DrawnQuantisation quantised(random, outputs);
      quantised.x = quantised.filter = kUint8;
      quantised.x_zero = 3;
      quantised.filter_zero = {kernel == 1 ? 128 : 120};
      quantised.y = kInt32;
      quantised.scale.clear();
      const Tensor x = Bytes(random, drawn.x, kUint8);
      const Tensor filter = Bytes(random, drawn.filter, kUint8);
      const Tensor want = Expected<uint8_t, uint8_t>(drawn, quantised, x, filter);
      EXPECT_TRUE(
          SameBytes(Results(LinearConvCall(drawn, quantised, x, filter))[0], ChannelsBehind(want)))
          << images << " images of " << size << ", kernel " << kernel;
    }
  }
}

// Bytes of [96, 127].
Tensor LargeBytes(std::mt19937& random, const Shape& shape, DataType dtype) {
  Tensor made = Bytes(random, shape, dtype);
  for (int64_t i = 0; i < made.elements(); ++i) {
    std::byte& byte = made.mutable_data()[i];
    byte = (byte & std::byte{0x1f}) | std::byte{0x60};
  }
  return made;
}

// Sums of more than 24 bits, which float32 does not tell apart, whatever oneDNN takes for the size.
TEST(QLinearConv, LargeSumsAreExact) {
  std::mt19937 random(17);
  for (const DataType dtype : {kInt8, kUint8}) {
    for (const auto& [outputs, size] : {std::pair{5, 5}, {1, 3}, {64, 9}}) {
      DrawnConvolution drawn(random);
      drawn.groups = 1;
      drawn.filter = {outputs, 300, 3, 3};
      drawn.x = {1, 300, size, size};
      drawn.strides = drawn.dilations = {1, 1};
      drawn.pads = {0, 0, 0, 0};
      DrawnQuantisation quantised(random, outputs);
      quantised.x = dtype;
      quantised.filter = kInt8;
      quantised.y = kInt32;
      quantised.x_zero = 0;
      quantised.filter_zero = {0};
      quantised.scale.clear();
      const Tensor x = LargeBytes(random, drawn.x, dtype);
      const Tensor filter = LargeBytes(random, drawn.filter, kInt8);
      const auto expected = dtype == kInt8 ? Expected<int8_t, int8_t> : Expected<uint8_t, int8_t>;
      const Tensor want = expected(drawn, quantised, x, filter);
      EXPECT_TRUE(
          SameBytes(Results(LinearConvCall(drawn, quantised, x, filter))[0], ChannelsBehind(want)))
          << outputs << " outputs of " << size;
    }
  }
}

TEST(QLinearConv, SaysHowItSums) {
  std::mt19937 random(5);
  DrawnConvolution drawn(random);
  drawn.groups = 1;
  drawn.filter = {4, 3, 2, 2};
  drawn.x[1] = 3;
  const DrawnQuantisation quantised(random, drawn.filter[0]);
  const Tensor x = Bytes(random, drawn.x, quantised.x);
  const OpCall call =
      LinearConvCall(drawn, quantised, x, Bytes(random, drawn.filter, quantised.filter));
  EXPECT_THAT(ChoiceOf(call), testing::HasSubstr("not depthwise: a filter takes several channels"));
  drawn.groups = drawn.filter[0] = drawn.x[1] = 3;
  drawn.filter[1] = 1;
  const DrawnQuantisation other(random, 3);
  EXPECT_EQ(ChoiceOf(LinearConvCall(drawn, other, Bytes(random, drawn.x, other.x),
                                    Bytes(random, drawn.filter, other.filter))),
            "depthwise");
}

}  // namespace
}  // namespace npumesh
