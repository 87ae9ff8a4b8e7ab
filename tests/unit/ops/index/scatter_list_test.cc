// ScatterList and QuantUpdateScatter against loops, and Cmo.
#include <cmath>

#include "tests/unit/op_reference.h"
#include "tests/unit/op_values.h"

namespace npumesh {
namespace {

Tensor Count(const Shape& shape, double from) {
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = from + static_cast<double>(i);
  return FromDoubles(kF32, shape, values);
}

// Two caches [2,5,3] (axis -2) or [2,3,5] (axis -1) that take parts of two steps.
OpCall ListCall(int64_t axis, const Tensor& indice) {
  const bool last = axis == -1;
  const Shape cache = last ? Shape{2, 3, 5} : Shape{2, 5, 3};
  const Shape updates = last ? Shape{2, 2, 3, 2} : Shape{2, 2, 2, 3};
  return {.type = "ScatterList",
          .inputs = {{"var0", Count(cache, 100)},
                     {"var1", Count(cache, 200)},
                     {"indice", indice},
                     {"updates", Count(updates, 0)}},
          .attrs = {{"axis", AttrValue::Int(axis)}},
          .outputs = 2};
}

TEST(ScatterList, WritesStepsFromAStartOn) {
  for (const int64_t axis : {-1, -2}) {
    const OpCall call = ListCall(axis, MakeInts({3, 0}));
    const std::vector<Tensor> got = Results(call);
    for (size_t entry = 0; entry < 2; ++entry) {
      const int64_t start = entry == 0 ? 3 : 0;
      std::vector<double> want = ToDoubles(call.inputs[entry].value);
      for (size_t o = 0; o < 2; ++o) {
        for (size_t t = 0; t < 2; ++t) {
          for (size_t d = 0; d < 3; ++d) {
            const size_t at = static_cast<size_t>(start) + t;
            const double value =
                static_cast<double>((entry * 2 + o) * 6 + (axis == -1 ? d * 2 + t : t * 3 + d));
            want[o * 15 + (axis == -1 ? d * 5 + at : at * 3 + d)] = value;
          }
        }
      }
      EXPECT_EQ(ToDoubles(got[entry]), want) << axis << " " << entry;
    }
  }
}

TEST(ScatterList, TakesLengthsAndAMask) {
  OpCall call = ListCall(-2, Make<int32_t>(DataType::kInt32, {2, 2}, {4, 1, 0, 2}));
  std::vector<Tensor> got = Results(call);
  std::vector<double> want = ToDoubles(call.inputs[0].value);
  for (size_t o = 0; o < 2; ++o) {
    for (size_t d = 0; d < 3; ++d) want[o * 15 + 12 + d] = static_cast<double>(o * 6 + d);
  }
  EXPECT_EQ(ToDoubles(got[0]), want);

  call.inputs.push_back({"mask", Make<uint8_t>(DataType::kUint8, {2}, {0, 1})});
  const std::vector<Tensor> masked = Results(call);
  EXPECT_TRUE(SameBytes(masked[0], call.inputs[0].value));
  EXPECT_TRUE(SameBytes(masked[1], got[1]));
}

TEST(ScatterList, Refuses) {
  ExpectFails(ListCall(-2, MakeInts({4, 0})), Code::kInvalidArgument,
              {"node_under_test", "indice", "entry 0"});
  OpCall call = ListCall(-2, MakeInts({0, 0}));
  call.attrs = {{"axis", AttrValue::Int(-3)}};
  ExpectFails(call, Code::kUnsupported, {"axis is -3"});
  call.attrs = {{"reduce", AttrValue::String("add")}};
  ExpectFails(call, Code::kUnsupported, {"reduce \"add\""});
}

// A cache [3,2,4,3] of int8 that takes two entries of one step.
OpCall QuantCall(const Tensor& indices, bool multiplies) {
  return {.type = "QuantUpdateScatter",
          .inputs = {{"var", Tensor::Allocate({DataType::kInt8, {3, 2, 4, 3}})},
                     {"indices", indices},
                     {"updates", Count({2, 2, 1, 3}, -6.3)},
                     {"quant_scales", FromDoubles(kF32, {3}, {0.5, 2, 0.25})},
                     {"quant_zero_points", FromDoubles(kF32, {1}, {3})}},
          .attrs = {{"reduce", AttrValue::String("update")},
                    {"reciprocal_scale", AttrValue::Bool(multiplies)}}};
}

TEST(QuantUpdateScatter, QuantisesWhatItWrites) {
  const double scales[] = {0.5, 2, 0.25};
  for (const bool multiplies : {false, true}) {
    for (const bool pairs : {false, true}) {
      OpCall call = QuantCall(
          pairs ? Make<int64_t>(DataType::kInt64, {2, 2}, {2, 3, 0, 1}) : MakeInts({3, 1}),
          multiplies);
      std::fill_n(call.inputs[0].value.mutable_data(), 72, std::byte{9});
      std::vector<double> want(72, 9);
      for (size_t entry = 0; entry < 2; ++entry) {
        const size_t batch = pairs ? 2 - 2 * entry : entry, step = entry == 0 ? 3 : 1;
        for (size_t o = 0; o < 2; ++o) {
          for (size_t d = 0; d < 3; ++d) {
            const double value = -6.3 + static_cast<double>((entry * 2 + o) * 3 + d);
            const double scaled = multiplies ? value * scales[d] : value / scales[d];
            want[((batch * 2 + o) * 4 + step) * 3 + d] = std::nearbyint(scaled + 3);
          }
        }
      }
      const Tensor got = Results(call)[0];
      const std::vector<int8_t> bytes = ValuesOf<int8_t>(got);
      EXPECT_EQ(std::vector<double>(bytes.begin(), bytes.end()), want);
    }
  }
}

TEST(QuantUpdateScatter, Refuses) {
  OpCall call = QuantCall(MakeInts({4, 0}), false);
  ExpectFails(call, Code::kInvalidArgument, {"node_under_test", "indices"});
  call = QuantCall(MakeInts({0, 0}), false);
  call.attrs.push_back({"axis", AttrValue::Int(1)});
  ExpectFails(call, Code::kUnsupported, {"axis 1"});
}

TEST(Cmo, HasNoResult) {
  const OpCall call = {.type = "Cmo",
                       .inputs = {{"src", Count({4}, 0)}},
                       .attrs = {{"max_size", AttrValue::Int(16)}}};
  EXPECT_TRUE(Results(call).empty());
}

}  // namespace
}  // namespace npumesh
