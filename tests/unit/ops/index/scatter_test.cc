// The scatter operators, against loops over positions.
// ScatterList and QuantUpdateScatter against loops, and Cmo.
#include <cmath>
#include <limits>

#include "tests/unit/op_reference.h"
#include "tests/unit/op_values.h"

namespace npumesh {
namespace {

using Join = double (*)(double, double);

double Set(double, double b) {
  return b;
}
double Add(double a, double b) {
  return a + b;
}
double Sub(double a, double b) {
  return a - b;
}
double Mul(double a, double b) {
  return a * b;
}

double Max(double a, double b) {
  return a > b ? a : b;
}
double Min(double a, double b) {
  return a < b ? a : b;
}

// Numeric types; sums of the patterns stay exact in each.
const DataType kTypes[] = {DataType::kFloat,  DataType::kFloat16, DataType::kBfloat16,
                           DataType::kDouble, DataType::kInt8,    DataType::kInt32,
                           DataType::kInt64,  DataType::kUint64};

// ---- ScatterElements ----

OpCall Elements(const Tensor& data, const Tensor& indices, const Tensor& updates, int64_t axis,
                const std::string& reduction) {
  return {.type = "ScatterElements",
          .inputs = {{"data", data}, {"indices", indices}, {"updates", updates}},
          .attrs = {{"axis", AttrValue::Int(axis)}, {"reduction", AttrValue::String(reduction)}}};
}

TEST(ScatterElements, JoinsAtEveryAxis) {
  const std::pair<const char*, Join> reductions[] = {
      {"none", Set}, {"add", Add}, {"mul", Mul}, {"max", Max}, {"min", Min}};
  const Shape data_shape = {3, 4, 2}, index_shape = {2, 3, 2};
  for (const DataType dtype : kTypes) {
    for (int axis = 0; axis < 3; ++axis) {
      const Tensor data = Pattern(dtype, data_shape), updates = Pattern(dtype, index_shape, 2);
      std::vector<double> places;
      for (size_t i = 0; i < 12; ++i) {
        places.push_back(static_cast<double>(i * 5 % static_cast<size_t>(data_shape[axis])));
      }
      for (const auto& [name, join] : reductions) {
        std::vector<double> expected = ToDoubles(data);
        size_t i = 0;
        for (std::vector<int64_t> at : Positions(index_shape)) {
          at[static_cast<size_t>(axis)] = static_cast<int64_t>(places[i]);
          double& element = expected[Index(data_shape, at)];
          element = join(element, ToDoubles(updates)[i++]);
        }
        for (const DataType index : {DataType::kInt32, DataType::kInt64}) {
          const Tensor y = RunOne(
              Elements(data, FromDoubles(index, index_shape, places), updates, axis - 3, name));
          EXPECT_TRUE(SameBytes(y, FromDoubles(dtype, data_shape, expected)))
              << name << " axis " << axis << " " << Name(dtype);
        }
      }
    }
  }
}

// ---- rows by tuples, and along dimension 0 ----

struct RowsCase {
  std::string type;
  Join join;
  std::string var = "var";
};

const RowsCase kTuples[] = {
    {"ScatterNdUpdate", Set},
    {"ScatterNdAdd", Add},
    {"ScatterNdSub", Sub},
    {"ScatterNdMax", Max},
    {"TensorScatterUpdate", Set, "x"},
    {"TensorScatterAdd", Add, "x"},
    {"TensorScatterSub", Sub, "x"},
    {"TensorScatterMax", Max, "input"},
    {"TensorScatterMin", Min, "input"},
};

void ExpectRows(const RowsCase& test, DataType dtype, const Tensor& var, const Tensor& indices,
                const Tensor& updates, const std::vector<size_t>& rows) {
  std::vector<double> expected = ToDoubles(var);
  const std::vector<double> given = ToDoubles(updates);
  const size_t width = rows.empty() ? 0 : given.size() / rows.size();
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t e = 0; e < width; ++e) {
      double& element = expected[rows[i] * width + e];
      element = test.join(element, given[i * width + e]);
    }
  }
  const Tensor y = RunOne(
      {.type = test.type, .inputs = {{test.var, var}, {"indices", indices}, {"updates", updates}}});
  EXPECT_TRUE(SameBytes(y, FromDoubles(dtype, var.shape(), expected)))
      << test.type << " " << Name(dtype);
}

TEST(ScatterNd, JoinsTheRowsOfTuples) {
  for (const RowsCase& test : kTuples) {
    for (const DataType dtype : kTypes) {
      if (dtype == DataType::kUint64 && test.join == Sub) continue;  // would wrap
      const Tensor var = FromDoubles(dtype, {2, 3, 2}, {60, 61, 62, 63, 64, 65, 2, 1, 4, 3, 6, 5});
      ExpectRows(test, dtype, var, FromDoubles(DataType::kInt32, {3, 2}, {1, 2, 0, 0, 1, 2}),
                 Pattern(dtype, {3, 2}), {5, 0, 5});
      ExpectRows(test, dtype, var, FromDoubles(DataType::kInt64, {2, 1}, {1, 0}),
                 Pattern(dtype, {2, 3, 2}), {1, 0});
      ExpectRows(test, dtype, var, FromDoubles(DataType::kInt64, {1, 3}, {1, 0, 1}),
                 Pattern(dtype, {1}), {7});
    }
  }
}

Tensor Count(const Shape& shape, double from) {
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = from + static_cast<double>(i);
  return FromDoubles(kF32, shape, values);
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

}  // namespace
}  // namespace npumesh
