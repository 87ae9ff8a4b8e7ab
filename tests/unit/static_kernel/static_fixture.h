// What tests of static kernels share: a graph that is run with and without them.
#ifndef NPUMESH_TESTS_UNIT_STATIC_KERNEL_STATIC_FIXTURE_H_
#define NPUMESH_TESTS_UNIT_STATIC_KERNEL_STATIC_FIXTURE_H_

#include <fmt/format.h>
#include <stdlib.h>

#include <bit>
#include <filesystem>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "graph/static_kernel/static_kernels.h"
#include "tests/unit/fusion/fusion_fixture.h"

namespace npumesh {

class StaticKernelTest : public FusionTest {
 protected:
  static void SetUpTestSuite() {
    std::string pattern = (std::filesystem::temp_directory_path() / "npumesh_bits_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    std::filesystem::create_directory(folder_ / "build");
    StaticKernelOptions options;
    options.build_dir = folder_ / "build";
    options.store_root = folder_ / "store";
    Result<std::unique_ptr<StaticKernels>> made = StaticKernels::Create(options);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    kernels_ = std::move(*made);
  }
  static void TearDownTestSuite() {
    kernels_.reset();
    std::filesystem::remove_all(folder_);
  }

  // Numbers at which formulas and roundings differ, among others.
  static Tensor Special(const TensorType& type, uint32_t seed) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    constexpr float kSpecial[] = {0.0f,       -0.0f,         1.0f,       -1.0f,     kInfinity,
                                  -kInfinity, 0x1p-149f,     0x1p-127f,  -0x1p-15f, 0x1.ffcp-15f,
                                  65504.0f,   65519.0f,      65520.0f,   -70000.0f, 3.4e38f,
                                  1e-8f,      5.9604645e-8f, 0x1.8p-25f, 88.0f,     -104.5f,
                                  700.0f,     -700.0f,       0x1p21f,    -0x1p25f,  std::nanf("")};
    std::mt19937 random(seed);
    std::vector<float> values(static_cast<size_t>(type.shape.elements()));
    for (float& value : values) {
      const uint32_t drawn = static_cast<uint32_t>(random());
      switch (drawn % 4) {
        case 0:
          value = kSpecial[(drawn >> 8) % std::size(kSpecial)];
          break;
        case 1:
          value = std::bit_cast<float>(static_cast<uint32_t>(random()));
          break;
        default:
          value = static_cast<float>(static_cast<int32_t>(random())) * 0x1p-29f;
      }
    }
    Tensor tensor = Tensor::Allocate(type);
    FindConvert(kFloat, type.dtype)(values.data(), tensor.mutable_data(), values.size());
    return tensor;
  }

  // Numbers around those at which integers are clipped and ties are rounded, as doubles.
  static double Clipping(std::mt19937& random) {
    constexpr double kSpecial[] = {
        0.5,    -0.5,   1.5,          2.5,          126.5,
        127.5,  128.0,  -128.5,       -129.0,       254.5,
        255.5,  256.0,  32767.5,      65535.5,      8388607.5,
        0x1p23, 0x1p31, 2147483520.0, 2147483647.5, -2147483648.5,
        0x1p32, 0x1p63, -0x1p63,      0x1p100,      1 + 0x1p-8 + 0x1p-40};
    return kSpecial[random() % std::size(kSpecial)];
  }

  // Elements of any type: half of them around its borders and those of others, the rest any bits.
  static Tensor Borders(const TensorType& type, uint32_t seed) {
    std::mt19937 random(seed);
    Tensor tensor = Tensor::Allocate(type);
    const size_t width = static_cast<size_t>(BitsOf(type.dtype)) / 8;
    std::byte* to = tensor.mutable_data();
    for (int64_t i = 0; i < type.shape.elements(); ++i, to += width) {
      const double value = Clipping(random);
      uint64_t bits = uint64_t{random()} << 32 | random();
      if (type.dtype == DataType::kBool) bits &= 0x0101010101010101u;
      std::memcpy(to, &bits, width);
      if (random() % 2 == 0) FindConvert(DataType::kDouble, type.dtype)(&value, to, 1);
    }
    return tensor;
  }

  static bool BothNan(const Tensor& a, const Tensor& b, size_t i) {
    if (!IsFloating(a.dtype())) return false;
    const size_t width = static_cast<size_t>(BitsOf(a.dtype())) / 8;
    const auto is_nan = [&](const Tensor& tensor) {
      double value = 0;
      FindConvert(tensor.dtype(), DataType::kDouble)(
          static_cast<const std::byte*>(tensor.data()) + i * width, &value, 1);
      return std::isnan(value);
    };
    return is_nan(a) && is_nan(b);
  }

  void Out(Value value) { outputs_.push_back(value); }

  // Every output has the same bits with and without static kernels, NaNs are NaNs; and `least`
  // steps were static kernels. Gives what ran with them.
  Outcome ExpectSameBits(int least = 1) {
    g_.Output(outputs_);
    const Outcome plain = Run(nullptr);
    Outcome fast = Run(nullptr, kernels_.get());
    Compare(plain, fast);
    EXPECT_GE(fast.static_steps, least);
    EXPECT_EQ(kernels_->stats().failed, 0);
    return fast;
  }

  static void Compare(const Outcome& plain, const Outcome& fast) {
    ASSERT_EQ(fast.outputs.size(), plain.outputs.size());
    for (size_t i = 0; i < plain.outputs.size(); ++i) {
      ASSERT_EQ(fast.outputs[i].type(), plain.outputs[i].type());
      const size_t width = static_cast<size_t>(BitsOf(plain.outputs[i].dtype())) / 8;
      const auto* seen = static_cast<const std::byte*>(fast.outputs[i].data());
      const auto* expected = static_cast<const std::byte*>(plain.outputs[i].data());
      int shown = 0;
      for (size_t e = 0; e < plain.outputs[i].bytes() / width && shown < 5; ++e) {
        if (std::memcmp(seen + e * width, expected + e * width, width) == 0) continue;
        if (BothNan(fast.outputs[i], plain.outputs[i], e)) continue;
        ++shown;
        ADD_FAILURE() << "output " << i << " " << plain.outputs[i].type().ToString() << " element "
                      << e << ": seen " << Hex(seen + e * width, width) << ", expected "
                      << Hex(expected + e * width, width);
      }
    }
  }

  static std::string Hex(const std::byte* bytes, size_t width) {
    std::string text = "0x";
    for (size_t i = width; i-- > 0;) text += fmt::format("{:02x}", static_cast<int>(bytes[i]));
    return text;
  }

  std::vector<Value> outputs_;
  inline static std::filesystem::path folder_;
  inline static std::unique_ptr<StaticKernels> kernels_;
};

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_STATIC_KERNEL_STATIC_FIXTURE_H_
