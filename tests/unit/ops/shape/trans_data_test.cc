// TransData and its layouts, against the index formulas of docs/private_formats.md.
#include <numeric>

#include "graph/ops/toolbox/copy/blocked_layout.h"
#include "tests/unit/op_test.h"
#include "tests/unit/ops/shape/shape_values.h"

namespace npumesh {
namespace {

// Where element (n, c, h, w) of an NCHW tensor, or (n, h = c, w) of ND with c = 1, is stored.
struct Image {
  int64_t n = 1, c = 1, h = 1, w = 1;
};

int64_t NzIndex(const Image& size, int64_t c0, int64_t b, int64_t h, int64_t w) {
  const int64_t w1 = (size.w + c0 - 1) / c0;
  const int64_t h1 = (size.h + 15) / 16;
  return b * w1 * h1 * 16 * c0 + (w / c0) * h1 * 16 * c0 + (h / 16) * 16 * c0 + (h % 16) * c0 +
         w % c0;
}

int64_t Nc1hwc0Index(const Image& size, int64_t c0, const Image& at) {
  const int64_t c1 = (size.c + c0 - 1) / c0;
  return (((at.n * c1 + at.c / c0) * size.h + at.h) * size.w + at.w) * c0 + at.c % c0;
}

int64_t FractalZIndex(const Image& size, int64_t c0, const Image& at) {
  const int64_t n1 = (size.n + 15) / 16;
  return ((at.c / c0) * size.h * size.w + at.h * size.w + at.w) * n1 * 16 * c0 +
         (at.n / 16) * 16 * c0 + (at.n % 16) * c0 + at.c % c0;
}

// With groups; at.n counts over all groups, at.c within one.
int64_t GroupedIndex(const Image& size, int64_t groups, int64_t c0, const Image& at) {
  const int64_t cin = size.c;
  const int64_t cout = size.n / groups;
  const int64_t e =
      std::min(std::lcm(std::lcm(cin, c0) / cin, std::lcm(cout, int64_t{16}) / cout), groups);
  const int64_t c1 = (e * cin + c0 - 1) / c0;
  const int64_t cout_rounded = (e * cout + 15) / 16 * 16;
  const int64_t group = at.n / cout;
  const int64_t v = group % e;
  const int64_t ci = v * cin + at.c;
  const int64_t co = v * cout + at.n % cout;
  return ((((group / e) * c1 + ci / c0) * size.h + at.h) * size.w + at.w) * cout_rounded * c0 +
         co * c0 + ci % c0;
}

// Elements 1, 2, 3 ... as integers of this width, so that padding (0) is told from elements.
template <typename T>
Tensor Counted(DataType dtype, Shape shape) {
  std::vector<T> values(static_cast<size_t>(shape.elements()));
  std::iota(values.begin(), values.end(), T{1});
  return Tensor::FromVector<T>({dtype, std::move(shape)}, values);
}

Result<std::vector<Tensor>> TransData(const Tensor& src, const std::string& from,
                                      const std::string& to, int64_t groups = 1) {
  return RunOp({.type = "TransData",
                .inputs = {{"src", src}},
                .attrs = {{"src_format", AttrValue::String(from)},
                          {"dst_format", AttrValue::String(to)},
                          {"groups", AttrValue::Int(groups)}}});
}

// The storage that `place`, called with (n, c, h, w), describes.
template <typename T, typename Place>
std::vector<T> Placed(const Tensor& nchw, const Image& size, int64_t storage, Place place) {
  std::vector<T> expected(static_cast<size_t>(storage), T{0});
  size_t i = 0;
  for (int64_t n = 0; n < size.n; ++n) {
    for (int64_t c = 0; c < size.c; ++c) {
      for (int64_t h = 0; h < size.h; ++h) {
        for (int64_t w = 0; w < size.w; ++w, ++i) {
          expected[static_cast<size_t>(place(Image{n, c, h, w}))] = nchw.as<T>()[i];
        }
      }
    }
  }
  return expected;
}

template <typename T>
void CheckNz(DataType dtype, int64_t c0) {
  for (const Image& size :
       {Image{1, 1, 1, 1}, Image{1, 1, 16, 32}, Image{2, 1, 17, 33}, Image{3, 1, 31, 5}}) {
    const Tensor nd = Counted<T>(dtype, {size.n, size.h, size.w});
    const auto nz = TransData(nd, "ND", "FRACTAL_NZ");
    ASSERT_TRUE(nz.ok()) << nz.status().ToString();
    const Shape shape({size.n, (size.w + c0 - 1) / c0, (size.h + 15) / 16, 16, c0});
    EXPECT_EQ((*nz)[0].shape(), shape);
    const auto place = [&](const Image& at) { return NzIndex(size, c0, at.n, at.h, at.w); };
    EXPECT_THAT((*nz)[0].as<T>(),
                testing::ElementsAreArray(Placed<T>(nd, size, shape.elements(), place)));
  }
}

TEST(TransData, FractalNzOfEveryWidth) {
  CheckNz<uint8_t>(DataType::kInt8, 32);
  CheckNz<uint8_t>(DataType::kUint8, 32);
  CheckNz<uint16_t>(DataType::kFloat16, 16);
  CheckNz<uint16_t>(DataType::kBfloat16, 16);
  CheckNz<uint32_t>(DataType::kFloat, 16);
  CheckNz<uint32_t>(DataType::kInt32, 16);
  CheckNz<uint64_t>(DataType::kInt64, 16);
}

TEST(TransData, FractalNzOfAVectorIsOneRow) {
  const auto nz = TransData(Counted<uint16_t>(DataType::kFloat16, {20}), "ND", "FRACTAL_NZ");
  ASSERT_TRUE(nz.ok());
  EXPECT_EQ((*nz)[0].shape(), Shape({2, 1, 16, 16}));
  EXPECT_EQ((*nz)[0].as<uint16_t>()[256 + 3], 20);
}

TEST(TransData, TheNameMayFixTheInnerBlock) {
  const auto nz = TransData(Counted<uint32_t>(DataType::kFloat, {3, 5}), "ND", "FRACTAL_NZ_C0_2");
  ASSERT_TRUE(nz.ok());
  EXPECT_EQ((*nz)[0].shape(), Shape({3, 1, 16, 2}));
}

TEST(TransData, Nc1hwc0) {
  for (const Image& size : {Image{1, 1, 1, 1}, Image{2, 16, 3, 5}, Image{2, 37, 2, 3}}) {
    const Tensor nchw = Counted<uint16_t>(DataType::kFloat16, {size.n, size.c, size.h, size.w});
    const auto blocked = TransData(nchw, "NCHW", "NC1HWC0");
    ASSERT_TRUE(blocked.ok()) << blocked.status().ToString();
    const Shape shape({size.n, (size.c + 15) / 16, size.h, size.w, 16});
    EXPECT_EQ((*blocked)[0].shape(), shape);
    const auto place = [&](const Image& at) { return Nc1hwc0Index(size, 16, at); };
    EXPECT_THAT((*blocked)[0].as<uint16_t>(),
                testing::ElementsAreArray(Placed<uint16_t>(nchw, size, shape.elements(), place)));
    const auto nhwc = TransData(nchw, "NCHW", "NHWC");
    ASSERT_TRUE(nhwc.ok());
    EXPECT_TRUE(SameBytes((*TransData((*nhwc)[0], "NHWC", "NC1HWC0"))[0], (*blocked)[0]));
  }
}

TEST(TransData, FractalZ) {
  for (const Image& size : {Image{1, 1, 1, 1}, Image{16, 32, 3, 3}, Image{19, 37, 2, 3}}) {
    const Tensor nchw = Counted<uint16_t>(DataType::kFloat16, {size.n, size.c, size.h, size.w});
    const auto blocked = TransData(nchw, "NCHW", "FRACTAL_Z");
    ASSERT_TRUE(blocked.ok()) << blocked.status().ToString();
    const Shape shape({(size.c + 15) / 16 * size.h * size.w, (size.n + 15) / 16, 16, 16});
    EXPECT_EQ((*blocked)[0].shape(), shape);
    const auto place = [&](const Image& at) { return FractalZIndex(size, 16, at); };
    EXPECT_THAT((*blocked)[0].as<uint16_t>(),
                testing::ElementsAreArray(Placed<uint16_t>(nchw, size, shape.elements(), place)));
    const auto hwcn = TransData(nchw, "NCHW", "HWCN");
    ASSERT_TRUE(hwcn.ok());
    EXPECT_TRUE(SameBytes((*TransData((*hwcn)[0], "HWCN", "FRACTAL_Z"))[0], (*blocked)[0]));
  }
}

TEST(TransData, FractalZOfGroups) {
  struct Case {
    Image size;
    int64_t groups;
    Shape shape;
  };
  // (cin, cout, groups) = (4, 8, 4): e = min(lcm(4, 2), 4) = 4; (3, 5, 7): e = min(16, 7) = 7;
  // (20, 16, 2): e = min(lcm(4, 1), 2) = 2; (16, 16, 3): e = 1.
  for (const Case& c : {Case{{32, 4, 2, 3}, 4, Shape({6, 2, 16, 16})},
                        Case{{35, 3, 1, 2}, 7, Shape({4, 3, 16, 16})},
                        Case{{32, 20, 1, 1}, 2, Shape({3, 2, 16, 16})},
                        Case{{48, 16, 2, 1}, 3, Shape({6, 1, 16, 16})}}) {
    const Tensor nchw =
        Counted<uint32_t>(DataType::kFloat, {c.size.n, c.size.c, c.size.h, c.size.w});
    const auto blocked = TransData(nchw, "NCHW", "FRACTAL_Z", c.groups);
    ASSERT_TRUE(blocked.ok()) << blocked.status().ToString();
    EXPECT_EQ((*blocked)[0].shape(), c.shape);
    const auto place = [&](const Image& at) { return GroupedIndex(c.size, c.groups, 16, at); };
    EXPECT_THAT((*blocked)[0].as<uint32_t>(), testing::ElementsAreArray(Placed<uint32_t>(
                                                  nchw, c.size, c.shape.elements(), place)));
  }
}

TEST(TransData, PlainLayoutsArePermutations) {
  const Tensor nchw = Counted<uint16_t>(DataType::kFloat16, {2, 3, 4, 5});
  const auto nhwc = TransData(nchw, "NCHW", "NHWC");
  ASSERT_TRUE(nhwc.ok());
  EXPECT_EQ((*nhwc)[0].shape(), Shape({2, 4, 5, 3}));
  EXPECT_EQ((*nhwc)[0].as<uint16_t>()[1], 1 + 4 * 5);  // (0, 0, 0, c = 1)
  const auto hwcn = TransData((*nhwc)[0], "NHWC", "HWCN");
  ASSERT_TRUE(hwcn.ok());
  EXPECT_EQ((*hwcn)[0].shape(), Shape({4, 5, 3, 2}));
  EXPECT_TRUE(SameBytes((*TransData((*hwcn)[0], "HWCN", "NCHW"))[0], nchw));
  EXPECT_TRUE(SameBytes((*TransData(nchw, "ND", "NCHW"))[0], nchw));
}

TEST(TransData, BackAndForthIsTheSame) {
  for (const auto& [from, to, groups] : {std::tuple("ND", "FRACTAL_NZ", 1),
                                         {"NCHW", "NC1HWC0", 1},
                                         {"NHWC", "NC1HWC0", 1},
                                         {"NCHW", "FRACTAL_Z", 1},
                                         {"HWCN", "FRACTAL_Z", 1},
                                         {"NCHW", "FRACTAL_Z", 3}}) {
    const Tensor plain = Counted<uint16_t>(DataType::kInt16, {21, 5, 3, 18});
    const auto tensor = BlockedTensor::Create(*LayoutSpecOf(from), plain.shape(), *LayoutSpecOf(to),
                                              plain.dtype(), groups);
    ASSERT_TRUE(tensor.ok()) << from << to << tensor.status().ToString();
    Tensor stored = Tensor::Allocate({plain.dtype(), tensor->storage_shape()});
    Tensor back = Tensor::Allocate(plain.type());
    ConvertLayout(*tensor, Direction::kToPrivate, 2, plain.data(), stored.mutable_data());
    ConvertLayout(*tensor, Direction::kToPlain, 2, stored.data(), back.mutable_data());
    EXPECT_TRUE(SameBytes(back, plain)) << from << " " << to;
  }
}

}  // namespace
}  // namespace npumesh
