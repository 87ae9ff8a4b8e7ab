#include "launch/run/int_ranges.h"

#include <gmock/gmock.h>

#include <set>

#include "launch/run/input_source.h"

namespace npumesh {
namespace {

using testing::HasSubstr;

InputSpec Spec(std::string name, int64_t index, DataType dtype) {
  InputSpec spec;
  spec.name = std::move(name);
  spec.index = index;
  spec.declared = {dtype, {256}};
  return spec;
}

const std::vector<InputSpec>& DrawnInputs() {
  static const std::vector<InputSpec> inputs = {Spec("x", 0, DataType::kFloat),
                                                Spec("ids", 1, DataType::kInt64),
                                                Spec("bytes", 2, DataType::kInt8)};
  return inputs;
}

std::string Refusal(const std::string& text) {
  const Result<IntRanges> ranges = IntRanges::Parse({text});
  const Status status = ranges.ok() ? ranges->For(DrawnInputs()).status() : ranges.status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument) << text;
  return std::string(status.message());
}

std::set<int64_t> Values(const std::string& text, int input) {
  const auto ranges = IntRanges::Parse({text})->For(DrawnInputs());
  EXPECT_TRUE(ranges.ok()) << ranges.status().ToString();
  std::vector<TensorType> types;
  for (const InputSpec& spec : DrawnInputs()) types.push_back(spec.declared);
  const auto step = RandomInputs(DrawnInputs(), types, *ranges, 1, 0)->Step(0);
  std::set<int64_t> values;
  const Tensor& tensor = (*step)[static_cast<size_t>(input)];
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    values.insert(tensor.dtype() == DataType::kInt8 ? tensor.as<int8_t>()[static_cast<size_t>(i)]
                                                    : tensor.as<int64_t>()[static_cast<size_t>(i)]);
  }
  return values;
}

TEST(IntRanges, ValuesAreThoseOfTheRangeAndAllOfThem) {
  EXPECT_THAT(Values("ids=0:5", 1), testing::ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(Values("1=-2:1", 1), testing::ElementsAre(-2, -1, 0));
  EXPECT_THAT(Values("bytes=-128:-126", 2), testing::ElementsAre(-128, -127));
  EXPECT_THAT(Values("ids=9:10", 1), testing::ElementsAre(9));
}

TEST(IntRanges, WithoutOneValuesAreAsEver) {
  std::set<int64_t> values;
  const Tensor tensor = *RandomTensor({DataType::kInt64, {256}}, {3, 0, 1, 0});
  for (const int64_t value : tensor.as<int64_t>()) values.insert(value);
  EXPECT_THAT(values, testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(IntRanges, WhatIsNoRangeIsQuoted) {
  for (const char* text : {"ids", "=0:5", "ids=5", "ids=5:5", "ids=5:4", "ids=0:x", "ids=0:5:6",
                           "ids=99999999999999999999:0"}) {
    EXPECT_THAT(Refusal(text), HasSubstr(fmt::format("--int-range \"{}\": expected", text)));
  }
  EXPECT_THAT(Refusal("idz=0:5"), HasSubstr("no such input; the graph has x (float32[256]), ids"));
  EXPECT_THAT(Refusal("x=0:5"), HasSubstr("float32[256] does not hold 0 to 4"));
  EXPECT_THAT(Refusal("bytes=0:129"), HasSubstr("int8[256] does not hold 0 to 128"));
}

}  // namespace
}  // namespace npumesh
