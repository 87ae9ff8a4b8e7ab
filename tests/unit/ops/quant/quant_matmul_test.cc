// QuantBatchMatmulV3 and WeightQuantBatchMatmulV2 against sums in double, which are exact here.
#include <cstring>

#include "tests/unit/ops/quant/quant_values.h"

namespace npumesh {
namespace {

// A matrix in the last two dimensions of a tensor, transposed or not, of a batch that is `batch` or
// broadcast.
struct View {
  const std::vector<double> values;
  int64_t rows;
  int64_t columns;
  bool transposed;

  double at(int64_t matrix, int64_t r, int64_t c) const {
    const int64_t in = transposed ? c * rows + r : r * columns + c;
    const int64_t matrices = static_cast<int64_t>(values.size()) / (rows * columns);
    return values[static_cast<size_t>((matrices == 1 ? 0 : matrix) * rows * columns + in)];
  }
};

std::vector<double> Product(const View& a, const View& b, int64_t batch) {
  std::vector<double> y;
  for (int64_t i = 0; i < batch; ++i) {
    for (int64_t r = 0; r < a.rows; ++r) {
      for (int64_t c = 0; c < b.columns; ++c) {
        double sum = 0;
        for (int64_t k = 0; k < a.columns; ++k) sum += a.at(i, r, k) * b.at(i, k, c);
        y.push_back(sum);
      }
    }
  }
  return y;
}

struct SizeCase {
  int64_t m, n, k;
};

// Above 1024 terms of the largest product a float is no longer exact; 600 columns are two blocks.
TEST(QuantBatchMatmulV3, IsExactInInt32) {
  const SizeCase cases[] = {{3, 5, 7},   {1, 1, 1},    {2, 600, 9},
                            {130, 3, 2}, {2, 3, 2500}, {300, 40, 70}};
  for (const SizeCase& c : cases) {
    for (const bool t1 : {false, true}) {
      for (const auto& [t2, known] :
           {std::pair(false, Known::kNo), std::pair(true, Known::kNo),
            std::pair(false, Known::kYes), std::pair(true, Known::kYes)}) {
        const Tensor x1 = Noise(DataType::kInt8, t1 ? Shape{c.k, c.m} : Shape{c.m, c.k}, 1, 127);
        Tensor x2 = Noise(DataType::kInt8, t2 ? Shape{c.n, c.k} : Shape{c.k, c.n}, 2, 127);
        if (c.k == 2500) {
          x2 = FromDoubles(DataType::kInt8, x2.shape(),
                           std::vector<double>(static_cast<size_t>(x2.elements()), -127));
        }
        const Tensor bias = Noise(DataType::kInt32, {c.n}, 3, 1e6);
        const Tensor y = MustRun({.type = "QuantBatchMatmulV3",
                                  .inputs = {{"x1", x1},
                                             {"x2", x2, known},
                                             {"scale", Pattern(DataType::kFloat, {1})},
                                             {"bias", bias}},
                                  .attrs = {{"dtype", AttrValue::Int(3)},
                                            {"transpose_x1", AttrValue::Bool(t1)},
                                            {"transpose_x2", AttrValue::Bool(t2)}}})[0];
        std::vector<double> want =
            Product({ToDoubles(x1), c.m, c.k, t1}, {ToDoubles(x2), c.k, c.n, t2}, 1);
        for (size_t i = 0; i < want.size(); ++i) {
          want[i] += ToDoubles(bias)[i % static_cast<size_t>(c.n)];
        }
        EXPECT_EQ(ToDoubles(y), want) << c.m << "x" << c.n << "x" << c.k;
      }
    }
  }
}

TEST(QuantBatchMatmulV3, ScalesColumnsAndRows) {
  const Tensor x1 = Noise(DataType::kInt8, {2, 3, 6}, 1, 20);
  const Tensor x2 = Noise(DataType::kInt8, {6, 4}, 2, 20);
  const Tensor scale = Noise(DataType::kFloat, {4}, 3, 0.1);
  const Tensor rows = Noise(DataType::kFloat, {3}, 4, 2);
  const Tensor shift = Noise(DataType::kFloat, {4}, 5, 3);
  const std::vector<double> sums =
      Product({ToDoubles(x1), 3, 6, false}, {ToDoubles(x2), 6, 4, false}, 2);
  std::vector<double> want;
  for (size_t i = 0; i < sums.size(); ++i) {
    want.push_back(sums[i] * ToDoubles(scale)[i % 4] * ToDoubles(rows)[i / 4 % 3] +
                   ToDoubles(shift)[i % 4]);
  }
  for (const DataType dtype : {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16}) {
    const Tensor y = MustRun(
        {.type = "QuantBatchMatmulV3",
         .inputs =
             {{"x1", x1}, {"x2", x2}, {"scale", scale}, {"bias", shift}, {"pertoken_scale", rows}},
         .attrs = {{"dtype", AttrValue::Int(static_cast<int64_t>(dtype))}}})[0];
    EXPECT_EQ(y.type(), (TensorType{dtype, {2, 3, 4}}));
    ExpectNear(y, want);
  }
}

TEST(QuantBatchMatmulV3, Int8ResultAndPackedScale) {
  const Tensor x1 = Noise(DataType::kInt8, {2, 8}, 1, 20);
  const Tensor x2 = Noise(DataType::kInt8, {8, 3}, 2, 20);
  const Tensor scale =
      MustRun({.type = "TransQuantParamV2",
               .inputs = {{"scale", FromDoubles(DataType::kFloat, {1}, {0.125})}}})[0];
  const Tensor offset = FromDoubles(DataType::kFloat, {3}, {1, -2, 3});
  std::vector<double> want = Product({ToDoubles(x1), 2, 8, false}, {ToDoubles(x2), 8, 3, false}, 1);
  for (size_t i = 0; i < want.size(); ++i) want[i] = want[i] * 0.125 + ToDoubles(offset)[i % 3];
  ExpectRounded(MustRun({.type = "QuantBatchMatmulV3",
                         .inputs = {{"x1", x1}, {"x2", x2}, {"scale", scale}, {"offset", offset}},
                         .attrs = {{"dtype", AttrValue::Int(2)}}})[0],
                want);
}

// ---- WeightQuantBatchMatmulV2 ----

struct WeightCase {
  bool transposed;
  int64_t group;  // 0: none
  bool per_column;
  DataType type;  // int32: eight int4 in each
};

TEST(WeightQuantBatchMatmulV2, DequantisesTheWeights) {
  const int64_t k = 12;
  const int64_t n = 8;
  std::vector<WeightCase> cases;
  for (const bool transposed : {false, true}) {
    for (const DataType type : {DataType::kInt8, DataType::kInt4, DataType::kInt32}) {
      cases.push_back({transposed, 0, false, type});
      cases.push_back({transposed, 0, true, type});
      cases.push_back({transposed, 5, true, type});
    }
  }
  for (const WeightCase& c : cases) {
    // Rows of int32 carry multiples of eight.
    const int64_t rows = c.type == DataType::kInt32 ? 16 : k;
    SCOPED_TRACE(fmt::format("transposed {} group {} {}", c.transposed, c.group, Name(c.type)));
    const Tensor x = Noise(DataType::kFloat16, {3, rows}, 1);
    const Tensor wide =
        Noise(DataType::kInt8, c.transposed ? Shape{n, rows} : Shape{rows, n}, 2, 7);
    Tensor weight = c.type == DataType::kInt8 ? wide : ToInt4(wide);
    if (c.type == DataType::kInt32) {
      Shape packed = wide.shape();
      packed[1] /= 8;
      weight = weight.WithType({DataType::kInt32, packed});
    }
    const int64_t groups = c.group == 0 ? 1 : (rows + c.group - 1) / c.group;
    const Shape scales = !c.per_column  ? Shape{1}
                         : c.group == 0 ? Shape{n}
                         : c.transposed ? Shape{n, groups}
                                        : Shape{groups, n};
    const Tensor scale = Noise(DataType::kFloat16, scales, 3);
    const Tensor offset = Noise(DataType::kFloat16, scales, 4, 3);
    const Tensor bias = Noise(DataType::kFloat16, {n}, 5);
    std::vector<double> want;
    for (int64_t r = 0; r < 3; ++r) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = ToDoubles(bias)[static_cast<size_t>(j)];
        for (int64_t i = 0; i < rows; ++i) {
          const int64_t g = c.group == 0 ? 0 : i / c.group;
          const auto at = static_cast<size_t>(!c.per_column  ? 0
                                              : c.transposed ? j * groups + g
                                                             : g * n + j);
          const auto w_at = static_cast<size_t>(c.transposed ? j * rows + i : i * n + j);
          sum += ToDoubles(x)[static_cast<size_t>(r * rows + i)] *
                 (ToDoubles(wide)[w_at] + ToDoubles(offset)[at]) * ToDoubles(scale)[at];
        }
        want.push_back(sum);
      }
    }
    OpCall call{.type = "WeightQuantBatchMatmulV2",
                .inputs = {{"x", x},
                           {"weight", weight},
                           {"antiquant_scale", scale},
                           {"antiquant_offset", offset},
                           {"bias", bias}},
                .attrs = {{"transpose_weight", AttrValue::Bool(c.transposed)},
                          {"antiquant_group_size", AttrValue::Int(c.group)}}};
    const Tensor y = MustRun(call)[0];
    EXPECT_EQ(y.type(), (TensorType{DataType::kFloat16, {3, n}}));
    ExpectNear(y, want, 1e-5);
    call.inputs.push_back({"quant_scale", FromDoubles(DataType::kFloat, {1}, {5})});
    call.inputs.push_back({"quant_offset", FromDoubles(DataType::kFloat, {1}, {2})});
    for (double& value : want) value = value * 5 + 2;
    ExpectRounded(MustRun(call)[0], want);
  }
}

// Weights that are packed are dequantised in registers, others in blocks.
TEST(WeightQuantBatchMatmulV2, PackedWeightsGiveTheSameBits) {
  const int64_t k = 1601, n = 530;  // more than a block of either
  for (const DataType dtype : {DataType::kFloat16, DataType::kBfloat16, DataType::kFloat}) {
    for (const bool transposed : {false, true}) {
      for (const int64_t m : {1, 3, 130}) {
        const auto run = [&](Known known) {
          const Shape shape = transposed ? Shape{n, k} : Shape{k, n};
          return MustRun({.type = "WeightQuantBatchMatmulV2",
                          .inputs = {{"x", Noise(dtype, {m, k}, 1)},
                                     {"weight", Noise(DataType::kInt8, shape, 2, 127), known},
                                     {"antiquant_scale", Noise(dtype, {m == 3 ? 1 : n}, 3)},
                                     {"bias", Noise(dtype, {n}, 4)}},
                          .attrs = {{"transpose_weight", AttrValue::Bool(transposed)}}})[0];
        };
        const Tensor packed = run(Known::kYes), blocks = run(Known::kNo);
        ASSERT_EQ(packed.bytes(), blocks.bytes());
        EXPECT_EQ(std::memcmp(packed.data(), blocks.data(), packed.bytes()), 0)
            << Name(dtype) << ", " << m << " rows" << (transposed ? ", transposed" : "");
      }
    }
  }
}

}  // namespace
}  // namespace npumesh
