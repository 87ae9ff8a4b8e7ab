// GroupedMatmulSwigluQuantV2 and GroupedMatmulFinalizeRouting with uneven experts and one without
// rows, on integers whose sums are exact.
#include <cmath>
#include <cstring>
#include <functional>

#include "graph/ops/toolbox/values/element_io.h"
#include "tests/unit/ops/collective/group_types.h"
#include "tests/unit/ops/quant/small_values.h"

namespace npumesh {
namespace {

using testing::ElementsAre;

constexpr int64_t kRows = 7;
constexpr int64_t kInner = 3;
constexpr int64_t kExperts = 3;
constexpr int64_t kColumns = 6;
const std::vector<int64_t> kCounts = {4, 0, 2};  // one row is of no expert

std::vector<double> Numbers(int64_t count, int seed) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<double>((i * i + 3 * i + 2 * seed) % 7 - 3));
  }
  return values;
}
std::vector<double> Scales(int64_t count, int seed) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(std::ldexp(1.0, (i + seed) % 3 - 2));
  return values;
}

// Element (k, n) of an expert's weights.
double Weight(int64_t expert, int64_t k, int64_t n) {
  return Numbers(kExperts * kInner * kColumns,
                 2)[static_cast<size_t>((expert * kInner + k) * kColumns + n)];
}

Tensor Weights(bool transposed) {
  std::vector<double> values;
  for (int64_t e = 0; e < kExperts; ++e) {
    for (int64_t i = 0; i < kInner * kColumns; ++i) {
      values.push_back(transposed ? Weight(e, i % kInner, i / kInner)
                                  : Weight(e, i / kColumns, i % kColumns));
    }
  }
  return FromDoubles(
      DataType::kInt8,
      transposed ? Shape{kExperts, kColumns, kInner} : Shape{kExperts, kInner, kColumns}, values);
}

Tensor GroupList(bool counts) {
  std::vector<int64_t> list;
  int64_t sum = 0;
  for (const int64_t count : kCounts) list.push_back(counts ? count : sum += count);
  return MakeInts(list);
}

// The expert of a row; -1: of none.
int64_t ExpertOf(int64_t row) {
  for (int64_t e = 0; e < kExperts; ++e) {
    if (row < kCounts[static_cast<size_t>(e)]) return e;
    row -= kCounts[static_cast<size_t>(e)];
  }
  return -1;
}

// (x w) of a row and column, scaled by both.
double Product(int64_t row, int64_t column) {
  const int64_t e = ExpertOf(row);
  double sum = 0;
  for (int64_t k = 0; k < kInner; ++k) {
    sum += Numbers(kRows * kInner, 1)[static_cast<size_t>(row * kInner + k)] * Weight(e, k, column);
  }
  return sum * Scales(kExperts * kColumns, 1)[static_cast<size_t>(e * kColumns + column)] *
         Scales(kRows, 2)[static_cast<size_t>(row)];
}

Tensor X() {
  return FromDoubles(DataType::kInt8, {kRows, kInner}, Numbers(kRows * kInner, 1));
}

OpCall Swiglu(bool counts, bool transposed) {
  return {.type = "GroupedMatmulSwigluQuantV2",
          .inputs = {{"x", X()},
                     {"x_scale", FromDoubles(DataType::kFloat, {kRows}, Scales(kRows, 2))},
                     {"group_list", GroupList(counts)},
                     {"weight0", Weights(transposed)},
                     {"weight_scale0", FromDoubles(DataType::kFloat, {kExperts, kColumns},
                                                   Scales(kExperts * kColumns, 1))}},
          .attrs = {{"group_list_type", AttrValue::Int(counts ? 1 : 0)},
                    {"transpose_weight", AttrValue::Bool(transposed)}}};
}

TEST(GroupedMatmulSwigluQuantV2, GatesAndQuantisesRows) {
  for (const bool counts : {false, true}) {
    for (const bool transposed : {false, true}) {
      const Result<std::vector<Tensor>> out = RunOp(Swiglu(counts, transposed));
      ASSERT_TRUE(out.ok()) << out.status().ToString();
      EXPECT_EQ((*out)[0].type(), (TensorType{DataType::kInt8, {kRows, kColumns / 2}}));
      for (int64_t row = 0; row < kRows; ++row) {
        std::vector<double> s;
        double most = 0;
        for (int64_t i = 0; i < kColumns / 2 && ExpertOf(row) >= 0; ++i) {
          const double gate = Product(row, i);
          s.push_back(gate / (1 + std::exp(-gate)) * Product(row, kColumns / 2 + i));
          most = std::max(most, std::fabs(s.back()));
        }
        const double scale = ToDoubles((*out)[1])[static_cast<size_t>(row)];
        EXPECT_NEAR(scale, most / 127, most * 1e-6) << "row " << row;
        for (int64_t i = 0; i < kColumns / 2; ++i) {
          const double y = ToDoubles((*out)[0])[static_cast<size_t>(row * kColumns / 2 + i)];
          const double want = most == 0 ? 0 : s[static_cast<size_t>(i)] * 127 / most;
          // To the nearest, where float32 does not fall on the other side.
          EXPECT_NEAR(y, want, 0.5 + 1e-4) << "row " << row << ", column " << i;
        }
      }
    }
  }
}

OpCall Finalize(bool counts) {
  return {.type = "GroupedMatmulFinalizeRouting",
          .inputs = {{"x", X()},
                     {"w", Weights(false)},
                     {"scale", FromDoubles(DataType::kFloat, {kExperts, kColumns},
                                           Scales(kExperts * kColumns, 1))},
                     {"pertoken_scale", FromDoubles(DataType::kFloat, {kRows}, Scales(kRows, 2))},
                     {"group_list", GroupList(counts)},
                     {"shared_input",
                      FromDoubles(DataType::kBfloat16, {2, kColumns}, Numbers(2 * kColumns, 5))},
                     {"logit", FromDoubles(DataType::kFloat, {kRows}, Scales(kRows, 0))},
                     {"row_index", MakeInts({3, 0, 3, 1, 2, 0, 1})}},
          .attrs = {{"group_list_type", AttrValue::Int(counts ? 1 : 0)},
                    {"shared_input_weight", AttrValue::Float(0.5f)},
                    {"shared_input_offset", AttrValue::Int(1)},
                    {"output_bs", AttrValue::Int(4)}}};
}

// The rows of the experts' products, weighted and added where they came from, on half of the shared
// input in rows 1 and 2.
std::vector<double> RoutedRows(const std::function<double(int64_t row, int64_t column)>& product) {
  const std::vector<int64_t> index = {3, 0, 3, 1, 2, 0, 1};
  std::vector<double> rows(4 * kColumns);
  for (int64_t i = 0; i < 2 * kColumns; ++i) {
    rows[static_cast<size_t>(kColumns + i)] =
        0.5 * Numbers(2 * kColumns, 5)[static_cast<size_t>(i)];
  }
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t c = 0; c < kColumns && ExpertOf(row) >= 0; ++c) {
      rows[static_cast<size_t>(index[static_cast<size_t>(row)] * kColumns + c)] +=
          product(row, c) * Scales(kRows, 0)[static_cast<size_t>(row)];
    }
  }
  return rows;
}

// Values that the type has, of 8 bits or fewer too.
Tensor Stored(DataType dtype, const Shape& shape, const std::vector<double>& values) {
  if (kFloats.Contains(dtype) || dtype == DataType::kInt64)
    return FromDoubles(dtype, shape, values);
  const Tensor wide = FromDoubles(DataType::kFloat, shape, values);
  if (kEightBitFloats.Contains(dtype)) return Narrow(dtype, wide);
  Tensor tensor = Tensor::Allocate({dtype, shape});
  const auto store = kQuantised.Contains(dtype) ? StoreNumbers : StoreNarrow;
  store(dtype, wide.as<float>().data(), tensor.mutable_data(), 0, shape.elements());
  return tensor;
}

// How x and w are quantised, and what scales them.
struct Kind {
  const char* name;
  DataType x, w, scale;
  int64_t depth;  // elements of k that share a scale; 0: all, and rows have scales
  bool transposed = false;
  bool offset = false;
};

constexpr Kind kKinds[] = {
    {"float8", DataType::kFloat8E4M3Fn, DataType::kFloat8E4M3Fn, DataType::kFloat, 0, true},
    {"hifloat8", DataType::kHifloat8, DataType::kHifloat8, DataType::kBfloat16, 0},
    {"mxfp8", DataType::kFloat8E4M3Fn, DataType::kFloat8E5M2, DataType::kFloat8E8M0, 32},
    {"mxfp8 transposed", DataType::kFloat8E5M2, DataType::kFloat8E4M3Fn, DataType::kFloat8E8M0, 32,
     true},
    {"mxfp4", DataType::kFloat4E2M1, DataType::kFloat4E2M1, DataType::kFloat8E8M0, 32},
    {"mxfp4 transposed", DataType::kFloat4E2M1, DataType::kFloat4E2M1, DataType::kFloat8E8M0, 32,
     true},
    {"int4", DataType::kInt8, DataType::kInt4, DataType::kInt64, 68},
    {"int4 in groups with offsets", DataType::kInt8, DataType::kInt4, DataType::kInt64, 17, false,
     true},
};
constexpr int64_t kDeep = 68;  // elements of k: two blocks and a rest

int64_t BlocksOf(const Kind& kind) {
  if (kind.depth == 32) return 4;  // in pairs
  return kind.depth == 0 ? 1 : kDeep / kind.depth;
}

// The scale of a column of an expert for a block of k. As stored: [E,G,N], or in pairs.
size_t ScaleIndex(const Kind& kind, int64_t e, int64_t block, int64_t column) {
  if (kind.depth != 32)
    return static_cast<size_t>((e * BlocksOf(kind) + block) * kColumns + column);
  const int64_t at = kind.transposed ? (e * kColumns + column) * 2 + block / 2
                                     : (e * 2 + block / 2) * kColumns + column;
  return static_cast<size_t>(at * 2 + block % 2);
}

Tensor WeightScales(const Kind& kind) {
  const int64_t blocks = BlocksOf(kind);
  const std::vector<double> scales = Scales(kExperts * blocks * kColumns, 1);
  if (kind.depth == 0) return Stored(kind.scale, {kExperts, kColumns}, scales);
  if (kind.depth == 32) {
    return Stored(
        kind.scale,
        kind.transposed ? Shape{kExperts, kColumns, 2, 2} : Shape{kExperts, 2, kColumns, 2},
        scales);
  }
  std::vector<double> packed;  // the bits of float32
  for (const double scale : scales) {
    const auto value = static_cast<float>(scale);
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    packed.push_back(bits);
  }
  return Stored(kind.scale, {kExperts, blocks, kColumns}, packed);
}

OpCall FinalizeOf(const Kind& kind) {
  OpCall call = Finalize(true);
  const Shape w =
      kind.transposed ? Shape{kExperts, kColumns, kDeep} : Shape{kExperts, kDeep, kColumns};
  call.inputs[0].value = Stored(kind.x, {kRows, kDeep}, Numbers(kRows * kDeep, 1));
  call.inputs[1].value = Stored(kind.w, w, Numbers(w.elements(), 2));
  call.inputs[2].value = WeightScales(kind);
  if (kind.depth == 32) {
    call.inputs[3].value = Stored(kind.scale, {kRows, 2, 2}, Scales(kRows * 4, 2));
  }
  call.inputs.push_back(
      {"bias", Stored(DataType::kFloat, {kExperts, kColumns}, Numbers(kExperts * kColumns, 4))});
  if (kind.offset) {
    const Shape offsets = {kExperts, BlocksOf(kind), kColumns};
    call.inputs.push_back(
        {"offset", Stored(DataType::kFloat, offsets, Numbers(offsets.elements(), 6))});
  }
  call.attrs.push_back({"transpose_w", AttrValue::Bool(kind.transposed)});
  return call;
}

// An element of the products before they are weighted.
double ProductOf(const Kind& kind, int64_t row, int64_t column) {
  const std::vector<double> x = Numbers(kRows * kDeep, 1);
  const std::vector<double> w = Numbers(kExperts * kDeep * kColumns, 2);
  const std::vector<double> row_scale = Scales(kind.depth == 32 ? kRows * 4 : kRows, 2);
  const std::vector<double> bias = Numbers(kExperts * kColumns, 4);
  const std::vector<double> offset = Numbers(kExperts * BlocksOf(kind) * kColumns, 6);
  const int64_t e = ExpertOf(row), depth = kind.depth == 0 ? kDeep : kind.depth;
  const std::vector<double> scales = Scales(kExperts * BlocksOf(kind) * kColumns, 1);
  const bool four_bits = kind.w == DataType::kInt4;
  double sum = 0;
  for (int64_t k = 0; k < kDeep; ++k) {
    const int64_t at =
        kind.transposed ? (e * kColumns + column) * kDeep + k : (e * kDeep + k) * kColumns + column;
    const double left = x[static_cast<size_t>(row * kDeep + k)];
    double product = (four_bits ? left - 8 : left) * w[static_cast<size_t>(at)] *
                     scales[ScaleIndex(kind, e, k / depth, column)];
    if (kind.depth == 32) product *= row_scale[static_cast<size_t>(row * 4 + k / 32)];
    if (kind.offset) product += left * offset[ScaleIndex(kind, e, k / depth, column)];
    sum += product;
  }
  const double shift = bias[static_cast<size_t>(e * kColumns + column)];
  if (kind.depth == 32) return sum + shift;
  const double scale = row_scale[static_cast<size_t>(row)];
  return four_bits ? (sum + shift) * scale : sum * scale + shift;
}

TEST(GroupedMatmulFinalizeRouting, ReadsEveryQuantisation) {
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(kind.name);
    const OpCall call = FinalizeOf(kind);
    const std::vector<double> want =
        RoutedRows([&](int64_t row, int64_t c) { return ProductOf(kind, row, c); });
    EXPECT_EQ(ToDoubles(RunOne(call)), want);
  }
}

TEST(GroupedFusions, TypesWithUnknownDimensions) {
  const std::vector<In> swiglu = {{"x", DataType::kInt8, {-1, 3}},
                                  {"x_scale", DataType::kFloat, {-1}},
                                  {"group_list", DataType::kInt64, {2}},
                                  {"weight0", DataType::kInt8, {2, 3, 8}},
                                  {"weight_scale0", DataType::kFloat, {2, 8}}};
  EXPECT_THAT(TypesIn(1, 0, "GroupedMatmulSwigluQuantV2", swiglu, {}),
              ElementsAre("int8[-1,4]", "float32[-1]"));
  const std::vector<In> finalize = {{"x", DataType::kInt8, {-1, 3}},
                                    {"w", DataType::kInt8, {2, 3, 8}},
                                    {"scale", DataType::kFloat, {2, 8}},
                                    {"group_list", DataType::kInt64, {2}},
                                    {"row_index", DataType::kInt64, {-1}}};
  EXPECT_THAT(
      TypesIn(1, 0, "GroupedMatmulFinalizeRouting", finalize, {{"output_bs", AttrValue::Int(5)}}),
      ElementsAre("float32[5,8]"));
}

}  // namespace
}  // namespace npumesh
