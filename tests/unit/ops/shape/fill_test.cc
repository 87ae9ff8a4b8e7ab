// Fill, Empty, ZerosLike, OnesLike, Range.
#include "tests/unit/ops/shape/shape_values.h"

namespace npumesh {
namespace {

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

TEST(Fill, RefusesWhatIsNoShapeOrNoElement) {
  const Tensor value = FromDoubles(DataType::kFloat, {}, {1});
  ExpectFails(Fill(MakeInts({2, -1}), value), Code::kInvalidArgument,
              {"\"dims\" holds -1 at position 1, expected 0 or more"});
  ExpectFails(Fill(MakeInts({INT64_MAX, 2}), value), Code::kInvalidArgument, {"63 bits"});
  ExpectFails(Fill(MakeInts({2}), Pattern(DataType::kFloat, {2})), Code::kInvalidArgument,
              {"value", "float32[2]"});
}

TEST(Empty, IsZero) {
  const Tensor y =
      RunOne({.type = "Empty",
              .inputs = {{"shape", MakeInts({2, 2})}},
              .attrs = {{"dtype", AttrValue::Int(static_cast<int64_t>(DataType::kBfloat16))}}});
  EXPECT_EQ(y.type(), (TensorType{DataType::kBfloat16, {2, 2}}));
  EXPECT_EQ(ToDoubles(y), (std::vector<double>(4, 0)));
  EXPECT_EQ(RunOne({.type = "Empty", .inputs = {{"shape", MakeInts({})}}}).type(),
            (TensorType{DataType::kInt32, {}}));
  ExpectFails({.type = "Empty",
               .inputs = {{"shape", MakeInts({1})}},
               .attrs = {{"dtype", AttrValue::Int(999)}}},
              Code::kCorrupt, {"dtype", "999"});
}

TEST(Like, ZerosAndOnes) {
  for (const DataType dtype : AllDtypes()) {
    for (const Shape& shape : {Shape{}, Shape{2, 3}, Shape{0}}) {
      const Tensor x = Pattern(dtype, shape);
      const auto filled = [&](double value) {
        return FromDoubles(dtype, shape,
                           std::vector<double>(static_cast<size_t>(shape.elements()), value));
      };
      EXPECT_TRUE(SameBytes(RunOne({.type = "ZerosLike", .inputs = {{"x", x}}}), filled(0)));
      EXPECT_TRUE(SameBytes(RunOne({.type = "OnesLike", .inputs = {{"x", x}}}), filled(1)));
    }
  }
  const Tensor complex = Tensor::Allocate({DataType::kComplex64, {2}});
  ExpectFails({.type = "OnesLike", .inputs = {{"x", complex}}}, Code::kUnsupported, {"complex64"});
}

OpCall Range(Tensor start, Tensor limit, Tensor delta, bool closed = false) {
  return {.type = "Range",
          .inputs = {{"start", std::move(start)},
                     {"limit", std::move(limit)},
                     {"delta", std::move(delta)}},
          .attrs = {{"is_closed", AttrValue::Bool(closed)}}};
}

Tensor One(DataType dtype, double value) {
  return FromDoubles(dtype, {}, {value});
}

TEST(Range, CountsInEveryDtype) {
  for (const DataType dtype : {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16,
                               DataType::kDouble, DataType::kInt32, DataType::kInt64}) {
    const auto range = [&](double start, double limit, double delta, bool closed) {
      const Tensor y =
          RunOne(Range(One(dtype, start), One(dtype, limit), One(dtype, delta), closed));
      EXPECT_EQ(y.dtype(), dtype);
      return ToDoubles(y);
    };
    using List = std::vector<double>;
    EXPECT_EQ(range(0, 4, 1, false), (List{0, 1, 2, 3}));
    EXPECT_EQ(range(0, 4, 1, true), (List{0, 1, 2, 3, 4}));
    EXPECT_EQ(range(1, 6, 2, false), (List{1, 3, 5}));
    EXPECT_EQ(range(1, 6, 2, true), (List{1, 3, 5}));
    EXPECT_EQ(range(5, 0, -2, false), (List{5, 3, 1}));
    EXPECT_EQ(range(3, -1, -2, true), (List{3, 1, -1}));
    EXPECT_EQ(range(3, 3, 1, false), List{});
    EXPECT_EQ(range(3, 3, 1, true), List{3});
    EXPECT_EQ(range(3, 2, 1, false), List{});
    EXPECT_EQ(range(3, 2, 1, true), List{});
  }
}

TEST(Range, ComputesElementsInDouble) {
  const Tensor y = RunOne(
      Range(One(DataType::kFloat, 0), One(DataType::kFloat, 1), One(DataType::kFloat, 0.1f)));
  ASSERT_EQ(y.shape(), (Shape{10}));
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(y.as<float>()[static_cast<size_t>(i)],
              static_cast<float>(i * static_cast<double>(0.1f)));
  }
}

TEST(Range, MixedDtypesGiveFloat) {
  const Tensor y =
      RunOne(Range(One(DataType::kInt32, 0), One(DataType::kFloat, 1), One(DataType::kFloat, 0.5)));
  EXPECT_EQ(y.dtype(), DataType::kFloat);
  EXPECT_EQ(ToDoubles(y), (std::vector<double>{0, 0.5}));
}

TEST(Range, SpansTheWholeOfInt64) {
  const auto ends = [](int64_t start, int64_t limit, int64_t delta) {
    const auto one = [](int64_t value) { return Make<int64_t>(DataType::kInt64, {}, {value}); };
    return Range(one(start), one(limit), one(delta));
  };
  EXPECT_EQ(ValuesOf<int64_t>(RunOne(ends(INT64_MIN, INT64_MAX, int64_t{1} << 62))),
            (std::vector<int64_t>{INT64_MIN, -(int64_t{1} << 62), 0, int64_t{1} << 62}));
  EXPECT_EQ(ValuesOf<int64_t>(RunOne(ends(INT64_MAX, INT64_MIN, INT64_MIN))),
            (std::vector<int64_t>{INT64_MAX, -1}));
  ExpectFails(ends(INT64_MIN, INT64_MAX, 1), Code::kInvalidArgument, {"no countable range"});
}

TEST(Range, RefusesEndlessAndUnknown) {
  const auto f = [](double value) { return One(DataType::kFloat, value); };
  ExpectFails(Range(f(0), f(1), f(0)), Code::kInvalidArgument, {"delta", "0"});
  ExpectFails(Range(f(0), f(INFINITY), f(1)), Code::kInvalidArgument, {"inf"});
  ExpectFails(Range(f(NAN), f(1), f(1)), Code::kInvalidArgument, {"nan"});
  ExpectFails(Range(Pattern(DataType::kFloat, {2}), f(1), f(1)), Code::kInvalidArgument,
              {"start", "float32[2]"});
  ExpectFails(Range(One(DataType::kBool, 0), f(1), f(1)), Code::kUnsupported, {"start", "bool"});
  OpCall unknown = Range(f(0), f(1), f(1));
  unknown.inputs[1].known = Known::kNo;
  ExpectFails(unknown, Code::kUnsupported, {"limit"});
}

}  // namespace
}  // namespace npumesh
