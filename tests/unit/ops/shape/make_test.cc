// Fill, Empty, ZerosLike, OnesLike, Range.
// OneHot, Eye, LinSpace.
// Pad, PadV3, MirrorPad.
#include "tests/unit/ops/shape/shape_values.h"

namespace npumesh {
namespace {

using Ints = std::vector<int64_t>;

OpCall Fill(Tensor dims, Tensor value) {
  return {.type = "Fill", .inputs = {{"dims", std::move(dims)}, {"value", std::move(value)}}};
}

TEST(Fill, RepeatsTheValue) {
  for (const DataType dtype : AllDtypes()) {
    for (const Shape& shape : {Shape{}, Shape{7}, Shape{2, 3}, Shape{0, 3}, Shape{20011}}) {
      const Tensor y = RunOne(Fill(MakeInts(shape.dims()), FromDoubles(dtype, {}, {1})));
      const std::vector<double> ones(static_cast<size_t>(shape.elements()), 1);
      EXPECT_TRUE(SameBytes(y, FromDoubles(dtype, shape, ones)));
    }
  }
  const Tensor y = RunOne(
      Fill(Make<int32_t>(DataType::kInt32, {1}, {2}), FromDoubles(DataType::kFloat, {1}, {-2.5})));
  EXPECT_EQ(ToDoubles(y), (std::vector<double>{-2.5, -2.5}));
}

TEST(LinSpace, HitsBothEnds) {
  const auto run = [](double start, double stop, int64_t num) {
    return ToDoubles(RunOne({.type = "LinSpace",
                             .inputs = {{"start", FromDoubles(DataType::kFloat, {}, {start})},
                                        {"stop", FromDoubles(DataType::kFloat, {}, {stop})},
                                        {"num", MakeInts({num})}}}));
  };
  EXPECT_EQ(run(0, 1, 5), (std::vector<double>{0, 0.25, 0.5, 0.75, 1}));
  EXPECT_EQ(run(3, -3, 3), (std::vector<double>{3, 0, -3}));
  EXPECT_EQ(run(2, 9, 1), (std::vector<double>{2}));
  EXPECT_EQ(run(2, 9, 0), (std::vector<double>{}));
  EXPECT_EQ(run(0.1f, 0.7f, 100).back(), static_cast<double>(0.7f));
}

OpCall Padded(const std::string& type, const Tensor& x, const Ints& paddings,
              const std::string& mode = "") {
  const Shape shape = type == "PadV3" ? Shape({static_cast<int64_t>(paddings.size())})
                                      : Shape({x.shape().rank(), 2});
  OpCall call{.type = type,
              .inputs = {{"x", x}, {"paddings", Make<int64_t>(DataType::kInt64, shape, paddings)}}};
  if (!mode.empty()) call.attrs.emplace_back("mode", AttrValue::String(mode));
  return call;
}

// One row padded by hand in each mode; -1 stands for the constant.
struct ModeCase {
  const char* mode;
  const char* mirror;  // name in MirrorPad, if it has it
  Ints paddings;
  std::vector<int> sources;
};

const ModeCase kModes[] = {
    {"constant", "", {2, 1}, {-1, -1, 0, 1, 2, 3, -1}},
    {"reflect", "REFLECT", {2, 3}, {2, 1, 0, 1, 2, 3, 2, 1, 0}},
    {"symmetric", "SYMMETRIC", {2, 4}, {1, 0, 0, 1, 2, 3, 3, 2, 1, 0}},
    {"edge", "", {2, 1}, {0, 0, 0, 1, 2, 3, 3}},
    {"constant", "", {-1, 2}, {1, 2, 3, -1, -1}},
    {"edge", "", {0, -3}, {0}},
};

TEST(Pad, FillsByMode) {
  for (const ModeCase& test : kModes) {
    for (const DataType dtype : AllDtypes()) {
      const Tensor x = Pattern(dtype, {4}, 4);
      const std::vector<double> values = ToDoubles(x);
      std::vector<double> expected;
      for (const int source : test.sources) {
        expected.push_back(source < 0 ? 0 : values[static_cast<size_t>(source)]);
      }
      const Tensor want =
          FromDoubles(dtype, Shape({static_cast<int64_t>(expected.size())}), expected);
      EXPECT_TRUE(SameBytes(RunOne(Padded("PadV3", x, test.paddings, test.mode)), want))
          << test.mode;
      if (test.mirror[0] != '\0') {
        EXPECT_TRUE(SameBytes(RunOne(Padded("MirrorPad", x, test.paddings, test.mirror)), want));
      } else if (std::string(test.mode) == "constant") {
        EXPECT_TRUE(SameBytes(RunOne(Padded("Pad", x, test.paddings)), want));
      }
    }
  }
}

}  // namespace
}  // namespace npumesh
