// StringFormat and PrintV2.
#include <numeric>

#include "tests/unit/op_values.h"

namespace npumesh {
namespace {

OpCall Format(const std::string& text, const std::vector<Tensor>& tensors, int64_t ends = 3) {
  OpCall call{.type = "StringFormat"};
  for (size_t i = 0; i < tensors.size(); ++i) {
    call.inputs.push_back({"x" + std::to_string(i), tensors[i]});
  }
  call.attrs = {{"template", AttrValue::String(text)},
                {"placeholder", AttrValue::String("{}")},
                {"summarize", AttrValue::Int(ends)}};
  return call;
}

std::string TextOf(const OpCall& call) {
  const Tensor y = RunOne(call);
  return reinterpret_cast<const char*>(y.data());
}

Tensor Counting(Shape shape) {
  std::vector<int64_t> values(static_cast<size_t>(shape.elements()));
  std::iota(values.begin(), values.end(), 0);
  return Make<int64_t>(DataType::kInt64, std::move(shape), values);
}

TEST(StringFormat, PutsTensorsInThePlaceOfThePlaceholders) {
  EXPECT_EQ(TextOf(Format("hello, tensor: {}", {Counting({10})})),
            "hello, tensor: [0 1 2 ... 7 8 9]");
  EXPECT_EQ(TextOf(Format("tensor({}, shape=[2]) and {}.", {Counting({2}), Counting({1})})),
            "tensor([0 1], shape=[2]) and [0].");
  EXPECT_EQ(TextOf(Format("nothing", {})), "nothing");
}

TEST(StringFormat, ShowsBothEndsOfEachDimension) {
  EXPECT_EQ(TextOf(Format("{}", {Counting({6})})), "[0 1 2 3 4 5]");
  EXPECT_EQ(TextOf(Format("{}", {Counting({7})}, -1)), "[0 1 2 3 4 5 6]");
  EXPECT_EQ(TextOf(Format("{}", {Counting({7})}, 1)), "[0 ... 6]");
  EXPECT_EQ(TextOf(Format("{}", {Counting({4, 2})}, 1)), "[[0 1]\n ……\n [6 7]]");
  EXPECT_EQ(TextOf(Format("{}", {Counting({2, 1, 2})})), "[[[0 1]]\n\n [[2 3]]]");
  EXPECT_EQ(TextOf(Format("{}", {Counting({})})), "0");
  EXPECT_EQ(TextOf(Format("{}", {Counting({0})})), "[]");
  EXPECT_EQ(TextOf(Format("{}", {Counting({3})}, 0)), "[...]");
}

TEST(StringFormat, WritesEveryTypeOfNumber) {
  for (const DataType dtype : AllDtypes()) {
    const std::string expected = dtype == DataType::kBool ? "[False True]" : "[0 1]";
    EXPECT_EQ(TextOf(Format("{}", {FromDoubles(dtype, {2}, {0, 1})})), expected) << Name(dtype);
  }
  EXPECT_EQ(TextOf(Format("{}", {FromDoubles(DataType::kFloat, {3}, {0.1, -1e30, 1.0 / 3})})),
            "[0.1 -1e+30 0.33333334]");
  EXPECT_EQ(TextOf(Format("{}", {FromDoubles(DataType::kDouble, {1}, {-2.2250738585072014e-308})})),
            "[-2.2250738585072014e-308]");
}

TEST(StringFormat, RefusesWhatItCannotWrite) {
  ExpectFails(Format("{} {}", {Counting({1})}), Code::kInvalidArgument,
              {"2 placeholders \"{}\"", "1 tensors"});
  const Tensor complex = Tensor::Allocate({DataType::kComplex64, {1}});
  ExpectFails(Format("{}", {complex}), Code::kUnsupported, {"complex64"});
}

std::string Printed(const std::string& text, const char* stream = "stderr") {
  std::vector<uint8_t> bytes(text.begin(), text.end());
  bytes.resize(bytes.size() + 3);
  const auto count = static_cast<int64_t>(bytes.size());
  const OpCall call{.type = "PrintV2",
                    .inputs = {{"x", Make<uint8_t>(DataType::kUint8, {count}, bytes)}},
                    .attrs = {{"output_stream", AttrValue::String(stream)}}};
  testing::internal::CaptureStderr();
  const Result<std::vector<Tensor>> nothing = RunOp(call);
  EXPECT_TRUE(nothing.ok()) << nothing.status().ToString();
  return testing::internal::GetCapturedStderr();
}

TEST(PrintV2, WritesTheTextAsALineWithoutControlCharacters) {
  EXPECT_THAT(Printed("two\nlines"), testing::StartsWith("two\nlines\n"));
  EXPECT_THAT(Printed("red \x1b[31m"), testing::StartsWith("red \\x1b[31m\n"));
  EXPECT_TRUE(BuiltinOps().Find("PrintV2")->side_effect) << "nobody reads what it gives";
}

TEST(PrintV2, RefusesWhatIsNoTextOrNoStream) {
  ExpectFails({.type = "PrintV2", .inputs = {{"x", Counting({2})}}}, Code::kUnsupported,
              {"int64[2]", "StringFormat"});
  const Tensor text = Make<uint8_t>(DataType::kUint8, {1}, {0});
  ExpectFails({.type = "PrintV2",
               .inputs = {{"x", text}},
               .attrs = {{"output_stream", AttrValue::String("log(info)")}}},
              Code::kUnsupported, {"log(info)", "stderr or stdout"});
}

}  // namespace
}  // namespace npumesh
