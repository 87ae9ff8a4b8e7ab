// ReduceStd and its like, against sums in long double.
#include <functional>
#include <numeric>

#include "tests/unit/op_values.h"

namespace npumesh {
namespace {

using Row = std::vector<long double>;
using Attrs = std::vector<std::pair<std::string, AttrValue>>;

long double MeanOf(const Row& row) {
  return std::accumulate(row.begin(), row.end(), 0.0L) / static_cast<long double>(row.size());
}
long double VarianceOf(const Row& row, int correction) {
  long double sum = 0;
  for (const long double x : row) sum += (x - MeanOf(row)) * (x - MeanOf(row));
  return sum / static_cast<long double>(static_cast<int>(row.size()) - correction);
}
long double Powers(const Row& row, long double p) {
  long double sum = 0;
  for (const long double x : row) sum += powl(fabsl(x), p);
  return sum;
}

struct StatisticCase {
  std::string type;
  std::string axes;  // port or attribute
  bool by_port;
  std::string keep;
  Attrs attrs;
  std::vector<std::function<long double(const Row&)>> outputs;
};

const std::vector<StatisticCase>& Cases() {
  static const std::vector<StatisticCase> cases = {
      {"ReduceStdV2",
       "dim",
       false,
       "keepdim",
       {{"correction", AttrValue::Int(0)}},
       {[](const Row& r) { return sqrtl(VarianceOf(r, 0)); }, MeanOf}},
      {"ReduceStd",
       "dim",
       false,
       "keepdim",
       {},
       {[](const Row& r) { return sqrtl(VarianceOf(r, 1)); }, MeanOf}},
      {"ReduceLogSumExp", "axes", true, "keep_dims", {}, {[](const Row& r) {
         long double sum = 0;
         for (const long double x : r) sum += expl(x);
         return logl(sum);
       }}},
      {"ReduceLogSum", "axes", true, "keep_dims", {}, {[](const Row& r) {
         return logl(MeanOf(r) * static_cast<long double>(r.size()));
       }}},
      {"LpNormV2", "axes", false, "keepdim", {}, {[](const Row& r) {
         return sqrtl(Powers(r, 2));
       }}},
      {"LpNormV2", "axes", false, "keepdim", {{"p", AttrValue::Float(3)}}, {[](const Row& r) {
         return cbrtl(Powers(r, 3));
       }}},
  };
  return cases;
}

struct StatisticAxes {
  Shape x;
  std::vector<int64_t> axes;
  Shape kept;
};

const StatisticAxes kStatisticAxes[] = {
    {{6}, {0}, {1}},
    {{3, 5}, {-1}, {3, 1}},
    {{3, 5}, {0}, {1, 5}},
    {{2, 3, 4}, {0, 2}, {1, 3, 1}},
    {{2, 3, 4}, {}, {1, 1, 1}},
    // more short rows than a block holds, and rows of several blocks
    {{700, 3}, {1}, {700, 1}},
    {{3, 700}, {0}, {1, 700}},
    {{4, 300}, {1}, {4, 1}},
    {{2, 1100}, {-1}, {2, 1}},
    {{1100, 2}, {0}, {1, 2}},
};

// 1 and more, so that logarithms exist.
Tensor Positive(DataType dtype, const Shape& shape) {
  std::vector<double> values = ToDoubles(Pattern(DataType::kFloat, shape));
  for (double& value : values) value = 1 + value / 4;
  return FromDoubles(dtype, shape, values);
}

std::vector<Row> RowsOf(const Tensor& x, const Shape& kept) {
  std::vector<Row> rows(static_cast<size_t>(kept.elements()));
  const std::vector<double> values = ToDoubles(x);
  for (std::vector<int64_t> at : Positions(x.shape())) {
    const double value = values[Index(x.shape(), at)];
    for (size_t d = 0; d < at.size(); ++d) {
      if (kept.dims()[d] == 1) at[d] = 0;
    }
    rows[Index(kept, at)].push_back(value);
  }
  return rows;
}

TEST(Statistics, AgreeWithTheFormula) {
  for (const StatisticCase& test : Cases()) {
    for (const StatisticAxes& axes : kStatisticAxes) {
      for (const DataType dtype : {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16}) {
        const Tensor x = Positive(dtype, axes.x);
        OpCall call{.type = test.type, .inputs = {{"x", x}}, .attrs = test.attrs};
        call.attrs.emplace_back(test.keep, AttrValue::Bool(true));
        if (test.by_port) {
          call.inputs.push_back({test.axes, MakeInts(axes.axes)});
        } else {
          call.attrs.emplace_back(test.axes, AttrValue::Ints(axes.axes));
        }
        const Result<std::vector<Tensor>> out = RunOp(call);
        ASSERT_TRUE(out.ok()) << test.type << ": " << out.status().ToString();
        const std::vector<Row> rows = RowsOf(x, axes.kept);
        for (size_t port = 0; port < test.outputs.size(); ++port) {
          const Tensor& y = (*out)[port];
          ASSERT_EQ(y.type(), (TensorType{dtype, axes.kept})) << test.type;
          for (size_t r = 0; r < rows.size(); ++r) {
            const auto expected = static_cast<double>(test.outputs[port](rows[r]));
            EXPECT_NEAR(ToDoubles(y)[r], expected, Ulp(dtype, expected)) << test.type;
          }
        }
      }
    }
  }
}

TEST(Statistics, WithoutKeptDimensions) {
  const Tensor x = Positive(DataType::kFloat, {2, 3});
  const Result<std::vector<TensorType>> types = InferOp(
      {.type = "ReduceStdV2", .inputs = {{"x", x}}, .attrs = {{"dim", AttrValue::Ints({0})}}});
  ASSERT_TRUE(types.ok());
  EXPECT_EQ((*types)[0].shape, Shape({3}));
  EXPECT_EQ((*types)[1].shape, Shape({3}));
}

}  // namespace
}  // namespace npumesh
