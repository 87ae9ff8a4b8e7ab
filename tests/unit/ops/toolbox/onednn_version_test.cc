// What the two versions of oneDNN say differently, and the walk through its implementations.
#include "graph/ops/toolbox/product/onednn_version.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "graph/ops/toolbox/product/onednn_call.h"

namespace npumesh {
namespace {

using dnnl::memory;

// Row-major strides of `dims` when the dimensions are stored in `order`, with `gap` elements more
// between neighbours of the outermost.
memory::dims StridesFor(const memory::dims& dims, const std::vector<size_t>& order, int64_t gap) {
  memory::dims strides(dims.size());
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = stride + (i == 0 ? gap : 0);
    stride *= dims[order[i]];
  }
  return strides;
}

TEST(OneDnnVersion, ADescriptorSaysWhatItWasMadeOf) {
  std::mt19937 random(1);
  const auto draw = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  constexpr memory::data_type kTypes[] = {memory::data_type::f32, memory::data_type::bf16,
                                          memory::data_type::s8};
  for (int trial = 0; trial < 200; ++trial) {
    memory::dims dims(static_cast<size_t>(draw(1, 5)));
    for (int64_t& dim : dims) dim = draw(2, 9);
    std::vector<size_t> order(dims.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    const memory::data_type type = kTypes[draw(0, 2)];
    const memory::dims strides = StridesFor(dims, order, 0);
    const memory::desc desc(dims, type, strides);
    EXPECT_EQ(DimsOf(desc), dims);
    EXPECT_EQ(StridesOf(desc), strides);
    EXPECT_EQ(ElementType(desc), type);
    EXPECT_TRUE(HoldsElementsOnly(desc));
    EXPECT_EQ(BytesOf(desc), BytesOf(memory::desc(dims, type, strides)));
    const memory::desc gaps(dims, type, StridesFor(dims, order, draw(1, 3)));
    EXPECT_NE(BytesOf(desc), BytesOf(gaps));
  }
}

TEST(OneDnnVersion, BlocksWithPaddingHoldElementsOnly) {
  const memory::desc desc({100, 70}, memory::data_type::f32, memory::format_tag::BA16a64b);
  EXPECT_EQ(desc.get_size(), 112u * 128u * sizeof(float));
  EXPECT_TRUE(HoldsElementsOnly(desc));
}

// Prefers one name, and keeps what was reported.
class OneWish final : public KernelTuning {
 public:
  explicit OneWish(std::string wish) : wish_(std::move(wish)) {}
  std::string Preferred(std::string_view) override { return wish_; }
  void Decided(std::string_view, std::vector<std::string> options,
               std::string_view taken) override {
    options_ = std::move(options);
    taken_ = taken;
  }
  const std::vector<std::string>& options() const { return options_; }
  const std::string& taken() const { return taken_; }

 private:
  const std::string wish_;
  std::vector<std::string> options_;
  std::string taken_;
};

auto DescribeConvolution(const dnnl::engine& engine) {
  constexpr auto kPlain = memory::format_tag::abcd;
  const memory::desc x({1, 16, 12, 12}, memory::data_type::f32, kPlain);
  const memory::desc w({16, 16, 3, 3}, memory::data_type::f32, kPlain);
  const memory::desc y({1, 16, 10, 10}, memory::data_type::f32, kPlain);
  const memory::dims one = {1, 1}, none = {0, 0};
  return DescribePrimitive<dnnl::convolution_forward>(
      engine, OurAttributes(), false, dnnl::prop_kind::forward_inference,
      dnnl::algorithm::convolution_direct, x, w, y, one, none, none, none);
}

TEST(FirstImplementation, IsNoReferenceWhereThereIsAnother) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const auto chosen = FirstImplementation([&] { return DescribeConvolution(engine); });
  EXPECT_FALSE(IsReference(chosen)) << chosen.impl_info_str();
}

TEST(TunedImplementation, IsTheOneThatIsWished) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const auto make = [&] { return DescribeConvolution(engine); };
  const std::string first = TunedImplementation(nullptr, make).impl_info_str();
  OneWish unknown("no such implementation");
  EXPECT_EQ(TunedImplementation(&unknown, make).impl_info_str(), first);
  EXPECT_EQ(unknown.taken(), first);
  ASSERT_FALSE(unknown.options().empty());
  EXPECT_EQ(unknown.options().front(), first);
  for (const std::string& name : unknown.options()) {
    OneWish wish(name);
    EXPECT_EQ(TunedImplementation(&wish, make).impl_info_str(), name);
    EXPECT_EQ(wish.taken(), name);
    EXPECT_EQ(wish.options(), unknown.options());
  }
}

}  // namespace
}  // namespace npumesh
