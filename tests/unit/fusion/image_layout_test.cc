// ImageLayoutPass: random networks of convolutions whose numbers are small integers, so that every
// order of sums gives the same bits, with the pass and without it.
#include <algorithm>
#include <random>

#include "graph/ops/image/blocked_image.h"
#include "graph/passes/layout/image_layouts.h"
#include "tests/unit/fusion/fusion_fixture.h"

namespace npumesh {
namespace {

using Ints = std::vector<int64_t>;

// An image of a network.
struct Image {
  Value value;
  Shape shape;
};

class ImageLayout : public FusionTest {
 protected:
  int64_t Up(int64_t end) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(end)); }
  bool Maybe(int64_t one_in) { return Up(one_in) == 0; }
  template <typename T>
  T Any(const std::vector<T>& list) {
    return list[static_cast<size_t>(Up(static_cast<int64_t>(list.size())))];
  }

  // Integers of [-most, most].
  Tensor Integers(const Shape& shape, int64_t most) {
    std::vector<float> values(static_cast<size_t>(shape.elements()));
    for (float& value : values) value = static_cast<float>(Up(2 * most + 1) - most);
    return Tensor::FromVector({kFloat, shape}, values);
  }
  Value Constant(const Shape& shape, int64_t most) {
    return g_.Const(fmt::format("constant{}", ++names_), Integers(shape, most));
  }

  Image Elements(const char* type, const Image& x) { return {One(type, x.value), x.shape}; }
  Image With(const char* type, const Image& x, Value other) {
    return {Maybe(2) ? Two(type, x.value, other) : Two(type, other, x.value), x.shape};
  }
  // Keeps numbers small: what convolutions of them give is exact.
  Image Clipped(const Image& x) {
    return {g_.Op("ClipByValue", {{"x", x.value},
                                  {"clip_value_min", Scalar(-4)},
                                  {"clip_value_max", Scalar(static_cast<float>(3 + Up(3)))}}),
            x.shape};
  }

  Image Convolved(const Image& x, int64_t outputs, int64_t size, int64_t groups, int64_t stride) {
    const int64_t channels = x.shape[1], pad = Up(size), dilation = size > 1 && Maybe(5) ? 2 : 1;
    const int64_t reach = dilation * (size - 1) + 1;
    Shape y = x.shape;
    y[1] = outputs;
    for (const int d : {2, 3}) {
      const int64_t room = x.shape[d] + 2 * pad - reach;
      if (room < 0) return x;
      y[d] = room / stride + 1;
    }
    std::vector<std::pair<std::string, Value>> inputs = {
        {"x", x.value}, {"filter", Constant({outputs, channels / groups, size, size}, 2)}};
    if (Maybe(2)) inputs.emplace_back("bias", Constant({outputs}, 9));
    const Value value = g_.Op("Conv2D", inputs,
                              {{"strides", AttrValue::Ints({1, 1, stride, stride})},
                               {"pads", AttrValue::Ints({pad, pad, pad, pad})},
                               {"dilations", AttrValue::Ints({1, 1, dilation, dilation})},
                               {"groups", AttrValue::Int(groups)},
                               {"data_format", AttrValue::String("NCHW")}});
    return Maybe(4) ? Normed({value, y}) : Clipped({value, y});
  }
  Image AnyConvolution(const Image& x) {
    const int64_t channels = x.shape[1], stride = 1 + Up(2);
    if (Maybe(3)) return Convolved(x, channels, Any<int64_t>({3, 5}), channels, stride);
    const int64_t groups = channels % 2 == 0 && Maybe(4) ? 2 : 1;
    return Convolved(x, Any<int64_t>({6, 16, 20, 32, 48}), Any<int64_t>({1, 1, 3}), groups, stride);
  }

  Image Pooled(const Image& x) {
    Shape y = x.shape;
    for (const int d : {2, 3}) {
      if (y[d] < 2) return x;
      y[d] /= 2;
    }
    const bool most = Maybe(2);
    const Value value = g_.Op(
        most ? "MaxPoolV3" : "AvgPoolV2", {{"x", x.value}},
        {{"ksize", AttrValue::Ints({1, 1, 2, 2})}, {"strides", AttrValue::Ints({1, 1, 2, 2})}});
    return most ? Image{value, y} : Elements("Floor", {value, y});
  }

  // Statistics whose root is whole, so that every way to write the norm is exact.
  Image Normed(const Image& x) {
    const Shape channels = {x.shape[1]};
    Tensor variance = Integers(channels, 1);
    std::vector<float> squares;
    for (const float value : variance.as<float>()) squares.push_back(value > 0 ? 4 : 1);
    const Value spread = g_.Const(fmt::format("variance{}", ++names_),
                                  Tensor::FromVector({kFloat, channels}, squares));
    const Value value = g_.Op("BNInfer",
                              {{"x", x.value},
                               {"scale", Constant(channels, 2)},
                               {"offset", Constant(channels, 3)},
                               {"mean", Constant(channels, 3)},
                               {"variance", spread}},
                              {{"epsilon", AttrValue::Float(0)}});
    return Clipped(Elements("Floor", {value, x.shape}));
  }

  // The mean of an image decides the factors of its channels.
  Image Excited(const Image& x) {
    const int64_t pixels = x.shape[2] * x.shape[3];
    if ((pixels & (pixels - 1)) != 0) return x;  // the mean would be rounded
    const Value mean =
        g_.Op("ReduceMeanD", {{"x", x.value}},
              {{"axes", AttrValue::Ints({2, 3})}, {"keep_dims", AttrValue::Bool(true)}});
    const Image factors = Clipped(Elements("Floor", {mean, {x.shape[0], x.shape[1], 1, 1}}));
    return Clipped(With("Mul", x, factors.value));
  }

  Image Joined(const Image& x) {
    std::vector<Image> fitting;
    for (const Image& other : images_) {
      Shape alike = other.shape;
      alike[1] = x.shape[1];
      if (alike == x.shape) fitting.push_back(other);
    }
    const Image other = fitting.empty() ? x : Any(fitting);
    Shape y = x.shape;
    y[1] += other.shape[1];
    if (y[1] > 80) return x;
    return {g_.Op("ConcatD", {{"x0", x.value}, {"x1", other.value}},
                  {{"concat_dim", AttrValue::Int(1)}, {"N", AttrValue::Int(2)}}),
            y};
  }

  Image Added(const Image& x) {
    for (const Image& other : images_) {
      if (other.shape == x.shape && Maybe(2)) return Clipped(With("Add", x, other.value));
    }
    return Clipped(With("Add", x, Constant(x.shape, 3)));
  }

  // Height and width change places: an operator that knows no blocks.
  Image Turned(const Image& x) {
    const Shape y = {x.shape[0], x.shape[1], x.shape[3], x.shape[2]};
    return {g_.Op("TransposeD", {{"x", x.value}}, {{"perm", AttrValue::Ints({0, 1, 3, 2})}}), y};
  }

  Image Next(const Image& x) {
    switch (Up(13)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return AnyConvolution(x);
      case 4:
        return Elements("Relu", x);
      case 11:
        return Normed(x);
      case 5:
        return Pooled(x);
      case 6:
        return Excited(x);
      case 7:
        return Joined(x);
      case 8:
        return Added(x);
      case 9:
        return Clipped(With("Mul", x, Constant({x.shape[1], 1, 1}, 2)));
      case 10:
        return Turned(x);
      default:
        return Clipped(With("Add", x, Scalar(static_cast<float>(Up(5) - 2))));
    }
  }

  // A network of `operators` operators with several outputs.
  void Build(uint32_t seed, int operators) {
    random_.seed(seed);
    SetUpAnew();
    images_.clear();
    const Shape shape = {1 + Up(2), Any<int64_t>({3, 4, 16, 20}), 4 << Up(2), 4 << Up(2)};
    images_.push_back({In(Integers(shape, 3)), shape});
    for (int i = 0; i < operators; ++i) {
      const bool newest = !Maybe(4);
      images_.push_back(Next(newest ? images_.back() : Any(images_)));
    }
    std::vector<Value> outputs = {images_.back().value};
    for (const Image& image : images_) {
      const bool chosen = image.value.node != images_[0].value.node && Maybe(5);
      if (chosen && std::find(outputs.begin(), outputs.end(), image.value) == outputs.end()) {
        outputs.push_back(image.value);
      }
    }
    g_.Output(outputs);
  }

  static bool Has(const Outcome& outcome, const char* type) {
    return std::find(outcome.steps.begin(), outcome.steps.end(), type) != outcome.steps.end();
  }

  std::mt19937 random_;
  std::vector<Image> images_;
  int names_ = 0;
};

TEST_F(ImageLayout, RandomNetworksGiveTheSameBits) {
  int in_blocks = 0, joined = 0;
  for (uint32_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Build(seed, 14);
    const Outcome blocks = Fused(), plain = Unfused();
    in_blocks += Has(blocks, "TransData") ? 1 : 0;
    joined += Has(blocks, "Conv2D+BNInfer") ? 1 : 0;
    EXPECT_FALSE(Has(plain, "TransData"));
    ASSERT_EQ(blocks.outputs.size(), plain.outputs.size());
    for (size_t i = 0; i < blocks.outputs.size(); ++i) {
      ASSERT_EQ(blocks.outputs[i].type(), plain.outputs[i].type());
      ASSERT_EQ(Doubles(blocks.outputs[i]), Doubles(plain.outputs[i])) << "output " << i;
    }
  }
  EXPECT_GT(joined, 30);
  EXPECT_EQ(in_blocks > 100, ImageBlock() > 0) << in_blocks;
}

TEST_F(ImageLayout, IsSwitchedOffByName) {
  Build(1, 14);
  const Outcome off = Run([](std::string_view pass) { return pass != kImageLayoutPass; });
  EXPECT_FALSE(Has(off, "TransData"));
}

}  // namespace
}  // namespace npumesh
