// Pad, PadV3, MirrorPad.
#include "tests/unit/ops/shape/shape_values.h"

namespace npumesh {
namespace {

using Ints = std::vector<int64_t>;

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

// A constant of any type, which the other modes do not read.
TEST(Pad, OtherModesIgnoreTheConstant) {
  const Tensor x = Pattern(DataType::kFloat, {4}, 4);
  for (const char* const mode : {"edge", "reflect", "symmetric"}) {
    OpCall call = Padded("PadV3", x, {1, 2}, mode);
    const Tensor without = RunOne(call);
    call.inputs.push_back({"constant_values", MakeInts({0})});
    EXPECT_TRUE(SameBytes(RunOne(call), without)) << mode;
  }
}

TEST(Pad, EveryDimensionAndAConstant) {
  const Tensor x = FromDoubles(DataType::kFloat, {1, 2, 2}, {1, 2, 3, 4});
  OpCall call = Padded("PadV3", x, {0, 1, 1, 0, -1, 1});
  call.inputs.push_back({"constant_values", FromDoubles(DataType::kFloat, {}, {9})});
  const Tensor y = RunOne(call);
  EXPECT_EQ(y.shape(), Shape({2, 3, 2}));
  EXPECT_EQ(ToDoubles(y), (std::vector<double>{9, 9, 2, 9, 4, 9, 9, 9, 9, 9, 9, 9}));
  // all that comes before, then all that comes behind
  OpCall split = Padded("PadV3", x, {0, 1, -1, 1, 0, 1});
  split.inputs.push_back(call.inputs[2]);
  split.attrs.emplace_back("paddings_contiguous", AttrValue::Bool(false));
  EXPECT_TRUE(SameBytes(RunOne(split), y));
}

TEST(Pad, ScalarsAndEmptyTensors) {
  const Tensor one = FromDoubles(DataType::kFloat, {}, {5});
  EXPECT_TRUE(SameBytes(RunOne(Padded("PadV3", one, {})), one));
  const Tensor none = FromDoubles(DataType::kFloat, {0, 1}, {});
  EXPECT_EQ(ToDoubles(RunOne(Padded("PadV3", none, {1, 1, 0, 1}))),
            (std::vector<double>{0, 0, 0, 0}));
}

TEST(Pad, RefusesWhatCannotBe) {
  const Tensor x = Pattern(DataType::kFloat, {2, 3});
  const auto fails = [&](const OpCall& call, const std::string& word) {
    ExpectFails(call, Code::kInvalidArgument, {word});
  };
  fails(Padded("PadV3", x, {1, 1}), "2 entries");
  fails(Padded("PadV3", x, {2, 0, 0, 0}, "reflect"), "dimension 0");
  fails(Padded("PadV3", x, {3, 0, 0, 0}, "symmetric"), "dimension 0");
  fails(Padded("PadV3", x, {0, 0, -4, 0}), "dimension 1");
  fails(Padded("PadV3", x, {0, 0, -2, -2}), "dimension 1");
  fails(Padded("PadV3", x, {0, 0, 0, INT64_MAX}), "dimension 1");
  fails(Padded("PadV3", x, {0, 0, 0, 0}, "wrap"), "\"mode\" is \"wrap\"");
  fails(Padded("MirrorPad", x, {0, 0, 0, 0}, "reflect"), "expected REFLECT");
  OpCall call = Padded("PadV3", x, {0, 0, 0, 0});
  call.inputs.push_back({"constant_values", FromDoubles(DataType::kFloat16, {}, {9})});
  fails(call, "\"constant_values\" is float16");
}

}  // namespace
}  // namespace npumesh
