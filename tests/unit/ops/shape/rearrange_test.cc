// ReverseV2, Roll, RepeatInterleave, DepthToSpace, SpaceToDepth.
#include "tests/unit/ops/shape/shape_values.h"

namespace npumesh {
namespace {

using Ints = std::vector<int64_t>;

int64_t Wrapped(int64_t i, int64_t extent) {
  return ((i % extent) + extent) % extent;
}

TEST(Reverse, TurnsTheListedAxes) {
  const Shape shape = {2, 3, 4};
  for (const Ints& axes : {Ints{}, Ints{0}, Ints{-1}, Ints{1, 2}, Ints{0, 1, 2}}) {
    for (const DataType dtype : AllDtypes()) {
      const Tensor x = Pattern(dtype, shape);
      const Tensor expected = Rearranged(x, shape, [&](std::vector<int64_t> at) {
        for (const int64_t axis : axes) {
          const auto d = static_cast<size_t>(Wrapped(axis, 3));
          at[d] = shape.dims()[d] - 1 - at[d];
        }
        return at;
      });
      EXPECT_TRUE(SameBytes(
          RunOne({.type = "ReverseV2", .inputs = {{"x", x}, {"axis", MakeInts(axes)}}}), expected));
    }
  }
  ExpectFails({.type = "ReverseV2",
               .inputs = {{"x", Pattern(DataType::kFloat, shape)}, {"axis", MakeInts({1, -2})}}},
              Code::kInvalidArgument, {"axis 1 twice"});
}

TEST(Roll, MovesAroundTheEnd) {
  const Shape shape = {3, 4};
  const Tensor x = Pattern(DataType::kInt32, shape);
  for (const Ints& shifts : {Ints{1, 0}, Ints{-1, 2}, Ints{7, -9}}) {
    const Tensor expected = Rearranged(x, shape, [&](std::vector<int64_t> at) {
      for (size_t d = 0; d < 2; ++d) at[d] = Wrapped(at[d] - shifts[d], shape.dims()[d]);
      return at;
    });
    EXPECT_TRUE(SameBytes(RunOne({.type = "Roll",
                                  .inputs = {{"x", x}},
                                  .attrs = {{"shifts", AttrValue::Ints(shifts)},
                                            {"dims", AttrValue::Ints({0, -1})}}}),
                          expected));
  }
  const Tensor flat =
      RunOne({.type = "Roll", .inputs = {{"x", x}}, .attrs = {{"shifts", AttrValue::Ints({5})}}});
  EXPECT_EQ(flat.shape(), shape);
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(ToDoubles(flat)[(i + 5) % 12], ToDoubles(x)[i]);
  ExpectFails({.type = "Roll",
               .inputs = {{"x", x}},
               .attrs = {{"shifts", AttrValue::Ints({1, 2})}, {"dims", AttrValue::Ints({0})}}},
              Code::kInvalidArgument, {"2 \"shifts\" for 1 \"dims\""});
}

OpCall Repeat(const Tensor& x, const Ints& repeats, int64_t axis) {
  return {.type = "RepeatInterleave",
          .inputs = {{"x", x}, {"repeats", MakeInts(repeats)}},
          .attrs = {{"axis", AttrValue::Int(axis)}}};
}

TEST(RepeatInterleave, RepeatsEachEntry) {
  const Tensor x = FromDoubles(DataType::kFloat16, {2, 2}, {1, 2, 3, 4});
  const auto run = [&](const Ints& repeats, int64_t axis) {
    return ToDoubles(RunOne(Repeat(x, repeats, axis)));
  };
  EXPECT_EQ(run({2}, 0), (std::vector<double>{1, 2, 1, 2, 3, 4, 3, 4}));
  EXPECT_EQ(run({2}, -1), (std::vector<double>{1, 1, 2, 2, 3, 3, 4, 4}));
  EXPECT_EQ(run({0, 3}, 1), (std::vector<double>{2, 2, 2, 4, 4, 4}));
  EXPECT_EQ(run({1, 0, 2, 1}, 1000), (std::vector<double>{1, 3, 3, 4}));
  ExpectFails(Repeat(x, {1, 2, 3}, 0), Code::kInvalidArgument, {"[1,2,3]"});
  ExpectFails(Repeat(x, {-1}, 0), Code::kInvalidArgument, {"none negative"});
  ExpectFails(Repeat(x, {INT64_MAX}, 0), Code::kInvalidArgument, {"too many"});
}

OpCall Blocks(const std::string& type, const Tensor& x, int64_t block, const std::string& format,
              const std::string& mode = "") {
  OpCall call{
      .type = type,
      .inputs = {{"x", x}},
      .attrs = {{"block_size", AttrValue::Int(block)}, {"data_format", AttrValue::String(format)}}};
  if (!mode.empty()) call.attrs.emplace_back("mode", AttrValue::String(mode));
  return call;
}

// The definition of ONNX, pixel by pixel.
TEST(DepthToSpace, SpreadsTheDepth) {
  const int64_t block = 2, channels = 3;
  const Tensor x = Pattern(DataType::kFloat, {2, channels * block * block, 2, 3});
  const Tensor last = Pattern(DataType::kFloat, {2, 2, 3, channels * block * block});
  for (const std::string mode : {"DCR", "CRD"}) {
    const auto depth = [&](int64_t row, int64_t column, int64_t channel) {
      const int64_t place = row * block + column;
      return mode == "DCR" ? place * channels + channel : channel * block * block + place;
    };
    const Tensor first = Rearranged(x, {2, channels, 4, 6}, [&](const std::vector<int64_t>& at) {
      return std::vector<int64_t>{at[0], depth(at[2] % block, at[3] % block, at[1]), at[2] / block,
                                  at[3] / block};
    });
    EXPECT_TRUE(SameBytes(RunOne(Blocks("DepthToSpace", x, block, "NCHW", mode)), first)) << mode;
    const Tensor behind =
        Rearranged(last, {2, 4, 6, channels}, [&](const std::vector<int64_t>& at) {
          return std::vector<int64_t>{at[0], at[1] / block, at[2] / block,
                                      depth(at[1] % block, at[2] % block, at[3])};
        });
    EXPECT_TRUE(SameBytes(RunOne(Blocks("DepthToSpace", last, block, "NHWC", mode)), behind))
        << mode;
    if (mode == "DCR") {
      EXPECT_TRUE(SameBytes(RunOne(Blocks("SpaceToDepth", first, block, "NCHW")), x));
      EXPECT_TRUE(SameBytes(RunOne(Blocks("SpaceToDepth", behind, block, "NHWC")), last));
    }
  }
  ExpectFails(Blocks("DepthToSpace", x, 5, "NCHW"), Code::kInvalidArgument, {"block_size 5"});
  ExpectFails(Blocks("SpaceToDepth", x, 2, "ND"), Code::kInvalidArgument, {"ND"});
  const Tensor high = Tensor::Allocate({DataType::kInt8, {1, int64_t{1} << 58, 1, 0}});
  ExpectFails(Blocks("DepthToSpace", high, 1 << 10, "NHWC"), Code::kInvalidArgument,
              {"cannot be cut"});
  const Tensor deep = Tensor::Allocate({DataType::kInt8, {1, 0, 1 << 10, int64_t{1} << 48}});
  ExpectFails(Blocks("SpaceToDepth", deep, 1 << 10, "NHWC"), Code::kInvalidArgument,
              {"cannot be cut"});
}

}  // namespace
}  // namespace npumesh
