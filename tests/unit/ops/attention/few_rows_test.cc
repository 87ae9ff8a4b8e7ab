// Attention of a few rows, which reads keys and values where they lie: its inner loops beside the
// plain ones that define them, bit by bit, and drawn calls beside the plain formula.
#include <bit>
#include <random>

#include "graph/ops/attention/head_block.h"
#include "graph/ops/toolbox/values/cast.h"
#include "tests/unit/op_types.h"
#include "tests/unit/ops/attention/attention_reference.h"

namespace npumesh {
namespace {

using attention::HeadBlock;

// ---- blocks ----

std::vector<float> Normal(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

// A cache with elements between its rows and heads that no kernel may read as data.
struct Cache {
  Cache(DataType type, int64_t row_count, int64_t head_count, int64_t row_width, bool by_head,
        uint32_t seed)
      : dtype(type), rows(row_count), heads(head_count), width(row_width) {
    row_stride = by_head ? width + 3 : heads * (width + 1) + 2;
    head_stride = by_head ? rows * row_stride + 5 : width + 1;
    const auto elements = static_cast<size_t>(rows * row_stride + heads * head_stride);
    const std::vector<float> wide = Normal(elements, seed);
    bytes.resize(elements * WidthOf(dtype));
    floats.resize(elements);
    if (dtype == DataType::kFloat) {
      std::memcpy(bytes.data(), wide.data(), bytes.size());
      floats = wide;
    } else {
      FindConvert(DataType::kFloat, dtype)(wide.data(), bytes.data(), elements);
      FindConvert(dtype, DataType::kFloat)(bytes.data(), floats.data(), elements);
    }
  }

  HeadBlock Block() const {
    return {.dtype = dtype,
            .data = bytes.data(),
            .rows = rows,
            .heads = heads,
            .width = width,
            .row_stride = row_stride,
            .head_stride = head_stride};
  }
  const float* At(int64_t row, int64_t head) const {
    return floats.data() + row * row_stride + head * head_stride;
  }

  DataType dtype;
  int64_t rows, heads, width;
  int64_t row_stride, head_stride;
  std::vector<std::byte> bytes;
  std::vector<float> floats;
};

// In sixteen sums, of which half are added to the other half until one is left.
float PlainDot(const float* x, const float* y, int64_t width) {
  float sums[16] = {};
  for (int64_t i = 0; i < width; ++i) sums[i % 16] += x[i] * y[i];
  for (int half = 8; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  }
  return sums[0];
}

uint32_t Bits(float value) {
  return std::bit_cast<uint32_t>(value);
}

struct BlockCase {
  DataType dtype;
  int64_t rows, heads, queries, width;
  bool by_head;
};

std::vector<BlockCase> BlockCases() {
  std::vector<BlockCase> cases;
  for (const DataType dtype : {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16}) {
    for (const int64_t width : {1, 3, 4, 8, 15, 16, 17, 33, 64, 80, 128}) {
      for (const bool by_head : {false, true}) {
        cases.push_back({dtype, 11, 3, 1, width, by_head});
        cases.push_back({dtype, 4, 2, 3, width, by_head});
        cases.push_back({dtype, 1, 1, 2, width, by_head});
      }
    }
  }
  return cases;
}

TEST(HeadBlocks, ScoresAreThePlainDotProducts) {
  for (const BlockCase& c : BlockCases()) {
    const Cache cache(c.dtype, c.rows, c.heads, c.width, c.by_head, 1);
    const std::vector<float> query = Normal(static_cast<size_t>(c.heads * c.queries * c.width), 2);
    const int64_t stride = c.rows + 2;
    std::vector<float> scores(static_cast<size_t>(c.heads * c.queries * stride), -7);
    ScoreBlock(cache.Block(), query.data(), c.queries, scores.data(), stride);
    for (int64_t q = 0; q < c.heads * c.queries; ++q) {
      for (int64_t row = 0; row < stride; ++row) {
        const float want = row >= c.rows ? -7
                                         : PlainDot(query.data() + q * c.width,
                                                    cache.At(row, q / c.queries), c.width);
        ASSERT_EQ(Bits(scores[static_cast<size_t>(q * stride + row)]), Bits(want))
            << Name(c.dtype) << " width " << c.width << " query " << q << " row " << row;
      }
    }
  }
}

TEST(HeadBlocks, SumsAddRowAfterRow) {
  for (const BlockCase& c : BlockCases()) {
    const Cache cache(c.dtype, c.rows, c.heads, c.width, c.by_head, 3);
    const int64_t stride = c.rows + 1;
    const std::vector<float> weights = Normal(static_cast<size_t>(c.heads * c.queries * stride), 4);
    std::vector<float> sums = Normal(static_cast<size_t>(c.heads * c.queries * c.width), 5);
    std::vector<float> want = sums;
    AddBlock(cache.Block(), weights.data(), stride, c.queries, sums.data());
    for (int64_t q = 0; q < c.heads * c.queries; ++q) {
      for (int64_t row = 0; row < c.rows; ++row) {
        const float weight = weights[static_cast<size_t>(q * stride + row)];
        for (int64_t d = 0; d < c.width; ++d) {
          want[static_cast<size_t>(q * c.width + d)] += weight * cache.At(row, q / c.queries)[d];
        }
      }
    }
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(Bits(sums[i]), Bits(want[i])) << Name(c.dtype) << " width " << c.width << " " << i;
    }
  }
}

// ---- drawn calls ----

// Everything that decides which rows lie in a tile and how the cache is read.
struct Draw {
  explicit Draw(uint32_t number) : seed(number), random(number) {
    const DataType dtypes[] = {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16};
    dtype = dtypes[Below(3)];
    kv_heads = 1 + Below(5);
    heads = kv_heads * (1 + Below(4));
    batches = 1 + Below(3);
    rows = Below(2) == 0 ? 1 : 1 + Below(10);
    columns = Below(3) == 0 ? 1 + Below(290) : 1 + Below(40);
    width = 1 + Below(40);
    v_width = Below(2) == 0 ? width : 1 + Below(40);
    const char* const layouts[] = {"BSH", "BSND", "BNSD"};
    layout = layouts[Below(3)];
    masked = Below(3) == 0;
    paged = Below(3) == 0;
    prefix = !paged && Below(4) == 0 ? 1 + Below(20) : 0;
    lengths = paged || (prefix == 0 && Below(3) == 0);
  }
  int64_t Below(int64_t bound) {
    return static_cast<int64_t>(random() % static_cast<uint32_t>(bound));
  }
  std::string ToString() const {
    return fmt::format(
        "seed {}: {} {} batches {} heads {} over {} rows {} columns {} widths {}, {}{}{}{}", seed,
        layout, Name(dtype), batches, heads, kv_heads, rows, columns, width, v_width,
        masked ? " masked" : "", paged ? " paged" : "", prefix > 0 ? " prefix" : "");
  }

  uint32_t seed;
  std::mt19937 random;
  DataType dtype;
  int64_t kv_heads, heads, batches, rows, columns, width, v_width;
  std::string layout;
  bool masked, paged, lengths;
  int64_t prefix;
};

constexpr int64_t kPageRows = 16;

// The blocks of a cache lie backwards.
int64_t BlockOf(const Draw& draw, int64_t batch, int64_t page) {
  const int64_t pages = (draw.columns + kPageRows - 1) / kPageRows;
  return draw.batches * pages - 1 - (batch * pages + page);
}

Tensor InPages(const Draw& draw, const Heads& h) {
  const int64_t pages = (h.rows + kPageRows - 1) / kPageRows;
  const Shape shape = draw.layout == "BNSD"
                          ? Shape{h.batches * pages, h.heads, kPageRows, h.width}
                          : Shape{h.batches * pages, kPageRows, h.heads * h.width};
  return CacheOf(draw.dtype, shape, h, [&](int64_t b, int64_t i) { return BlockOf(draw, b, i); });
}

Tensor TableOf(const Draw& draw) {
  const int64_t pages = (draw.columns + kPageRows - 1) / kPageRows;
  std::vector<int32_t> table;
  for (int64_t b = 0; b < draw.batches; ++b) {
    for (int64_t i = 0; i < pages; ++i) table.push_back(static_cast<int32_t>(BlockOf(draw, b, i)));
  }
  return Make<int32_t>(DataType::kInt32, {draw.batches, pages}, table);
}

// A prefix that all sequences share, in front of each.
Heads Joined(const Heads& prefix, const Heads& h) {
  Heads joined = Zeros(h.batches, h.heads, prefix.rows + h.rows, h.width);
  for (int64_t b = 0; b < h.batches; ++b) {
    for (int64_t n = 0; n < h.heads; ++n) {
      for (int64_t s = 0; s < joined.rows; ++s) {
        for (int64_t d = 0; d < h.width; ++d) {
          joined.at(b, n, s, d) =
              s < prefix.rows ? prefix.at(0, n, s, d) : h.at(b, n, s - prefix.rows, d);
        }
      }
    }
  }
  return joined;
}

void ExpectThePlainFormula(Draw draw) {
  SCOPED_TRACE(draw.ToString());
  const DataType dtype = draw.dtype;
  const Heads q = Noise(dtype, draw.batches, draw.heads, draw.rows, draw.width, 1);
  Heads k = Noise(dtype, draw.batches, draw.kv_heads, draw.columns, draw.width, 2);
  Heads v = Noise(dtype, draw.batches, draw.kv_heads, draw.columns, draw.v_width, 3);
  const auto in = [&](const Heads& h) {
    return draw.paged ? InPages(draw, h) : InLayout(dtype, draw.layout, h);
  };
  OpCall call{
      .type = "FusedInferAttentionScore",
      .inputs = {{"query", InLayout(dtype, draw.layout, q)}, {"key0", in(k)}, {"value0", in(v)}},
      .attrs = {{"num_heads", AttrValue::Int(draw.heads)},
                {"num_key_value_heads", AttrValue::Int(draw.kv_heads)},
                {"input_layout", AttrValue::String(draw.layout)},
                {"scale", AttrValue::Float(0.5f)}}};
  Plain plain{.scale = 0.5};
  if (draw.paged) {
    call.inputs.push_back({"block_table", TableOf(draw)});
    call.attrs.push_back({"block_size", AttrValue::Int(kPageRows)});
  }
  if (draw.lengths) {
    for (int64_t b = 0; b < draw.batches; ++b)
      plain.kv_rows.push_back(1 + draw.Below(draw.columns));
    call.inputs.push_back({"actual_seq_lengths_kv", MakeInts(plain.kv_rows)});
  }
  if (draw.prefix > 0) {
    const Heads front_k = Noise(dtype, 1, draw.kv_heads, draw.prefix, draw.width, 4);
    const Heads front_v = Noise(dtype, 1, draw.kv_heads, draw.prefix, draw.v_width, 5);
    call.inputs.push_back({"key_shared_prefix", InLayout(dtype, draw.layout, front_k)});
    call.inputs.push_back({"value_shared_prefix", InLayout(dtype, draw.layout, front_v)});
    k = Joined(front_k, k);
    v = Joined(front_v, v);
  }
  std::vector<double> mask;
  if (draw.masked) {
    const Shape shape{draw.batches, 1, draw.rows, draw.prefix + draw.columns};
    for (int64_t i = 0; i < shape.elements(); ++i) mask.push_back(draw.Below(3) == 0 ? 1 : 0);
    call.inputs.push_back({"atten_mask", FromDoubles(DataType::kBool, shape, mask)});
    plain.sees = [&mask, shape](int64_t b, int64_t, int64_t i, int64_t j) {
      return mask[Index(shape, {b, 0, i, j})] == 0;
    };
  }
  ExpectHeads(RunOne(call), draw.layout, PlainAttention(q, k, v, plain).out);
}

TEST(AttentionDraws, AgreeWithTheFormula) {
  constexpr uint32_t kDraws = 120;
  for (uint32_t seed = 0; seed < kDraws && !testing::Test::HasFailure(); ++seed) {
    ExpectThePlainFormula(Draw(seed));
  }
}

// Whichever thread comes to a wrong block first.
TEST(AttentionOnThreads, TheFirstFailureIsReported) {
  SetWorthThreads(0);
  const int64_t batches = 7;
  const Heads q = Noise(DataType::kFloat16, batches, 2, 1, 8, 1);
  const Tensor cache = Pattern(DataType::kFloat16, {9, kPageRows, 16});
  OpCall call{.type = "FusedInferAttentionScore",
              .inputs = {{"query", InLayout(DataType::kFloat16, "BSH", q)},
                         {"key0", cache},
                         {"value0", cache},
                         {"block_table",
                          Make<int32_t>(DataType::kInt32, {batches, 1}, {0, 1, 2, 11, 12, 13, 14})},
                         {"actual_seq_lengths_kv", MakeInts({4, 4, 4, 4, 4, 4, 4})}},
              .attrs = {{"num_heads", AttrValue::Int(2)},
                        {"num_key_value_heads", AttrValue::Int(2)},
                        {"input_layout", AttrValue::String("BSH")},
                        {"block_size", AttrValue::Int(kPageRows)}},
              .threads = 3};
  for (int i = 0; i < 50; ++i) {
    const Result<std::vector<Tensor>> out = RunOp(call);
    ASSERT_FALSE(out.ok());
    ASSERT_NE(out.status().ToString().find("block 11"), std::string::npos)
        << out.status().ToString();
  }
}

}  // namespace
}  // namespace npumesh
