// Attention over caches: pages, lists, quantised keys and values, shared prefixes, rotary parts.
#include <numeric>

#include "tests/unit/op_types.h"
#include "tests/unit/ops/attention/attention_reference.h"

namespace npumesh {
namespace {

OpCall Fused(Tensor q, Tensor k, Tensor v, int64_t heads, int64_t key_heads,
             const std::string& layout) {
  return {.type = "FusedInferAttentionScore",
          .inputs = {{"query", std::move(q)}, {"key0", std::move(k)}, {"value0", std::move(v)}},
          .attrs = {{"num_heads", AttrValue::Int(heads)},
                    {"num_key_value_heads", AttrValue::Int(key_heads)},
                    {"input_layout", AttrValue::String(layout)},
                    {"scale", AttrValue::Float(0.25f)}}};
}

// ---- pages ----

constexpr int64_t kPage = 4;

// Block `i` of sequence `b`: scattered, no two alike.
int32_t BlockOf(int64_t b, int64_t i, int64_t pages) {
  return static_cast<int32_t>((b * pages + i) * 5 % 7);
}

// The cache of 7 blocks that holds the heads, in the form with `rank` dimensions.
Tensor Paged(const Heads& h, int rank) {
  const int64_t pages = (h.rows + kPage - 1) / kPage;
  const int64_t tile = 4;
  const Shape shape = rank == 3   ? Shape{7, kPage, h.heads * h.width}
                      : rank == 4 ? Shape{7, h.heads, kPage, h.width}
                                  : Shape{7, h.heads, h.width / tile, kPage, tile};
  return CacheOf(kF16, shape, h, [&](int64_t b, int64_t i) { return BlockOf(b, i, pages); });
}

Tensor Table(int64_t batches, int64_t pages) {
  std::vector<int32_t> table;
  for (int64_t b = 0; b < batches; ++b) {
    for (int64_t i = 0; i < pages; ++i) table.push_back(BlockOf(b, i, pages));
  }
  return Make<int32_t>(DataType::kInt32, {batches, pages}, table);
}

TEST(PagedAttention, ReadsEveryFormOfTheCache) {
  const Heads k = Noise(kF16, 2, 2, 11, 8, 2);
  const Heads v = Noise(kF16, 2, 2, 11, 8, 3);
  for (const int64_t rows : {1, 3}) {
    const Heads q = Noise(kF16, 2, 4, rows, 8, 1);
    for (const int rank : {3, 4, 5}) {
      SCOPED_TRACE(rank);
      OpCall call = Fused(InLayout(kF16, "BSH", q), Paged(k, rank), Paged(v, rank), 4, 2, "BSH");
      call.inputs.push_back({"block_table", Table(2, 3)});
      call.inputs.push_back({"actual_seq_lengths_kv", MakeInts({11, 6})});
      call.attrs.push_back({"block_size", AttrValue::Int(kPage)});
      call.attrs.push_back({"sparse_mode", AttrValue::Int(3)});
      Plain plain{.scale = 0.25, .kv_rows = {11, 6}};
      plain.sees = [&](int64_t b, int64_t, int64_t i, int64_t j) {
        return j <= i + plain.kv_rows[static_cast<size_t>(b)] - rows;
      };
      ExpectHeads(RunOne(call), "BSH", PlainAttention(q, k, v, plain).out);
    }
  }
}

// With packed queries the query lengths are sums, those of a paged cache are not.
TEST(PagedAttention, PackedQueries) {
  const Heads q = Noise(kF16, 2, 4, 3, 8, 1);
  const Heads k = Noise(kF16, 2, 2, 11, 8, 2);
  const std::vector<int64_t> starts = {0, 3, 4};
  OpCall call = Fused(InLayout(kF16, "TND", q, starts), Paged(k, 4), Paged(k, 4), 4, 2, "TND");
  call.inputs.push_back({"block_table", Table(2, 3)});
  call.inputs.push_back({"actual_seq_lengths", MakeInts({3, 4})});
  call.inputs.push_back({"actual_seq_lengths_kv", MakeInts({11, 6})});
  const Plain plain{.scale = 0.25, .q_rows = {3, 1}, .kv_rows = {11, 6}};
  ExpectHeads(RunOne(call), "TND", PlainAttention(q, k, k, plain).out, starts);
}

TEST(PagedAttention, RefusesForeignBlocks) {
  const Heads q = Noise(kF16, 2, 2, 1, 8, 1);
  const Heads k = Noise(kF16, 2, 2, 11, 8, 2);
  OpCall call = Fused(InLayout(kF16, "BSH", q), Paged(k, 3), Paged(k, 3), 2, 2, "BSH");
  call.inputs.push_back({"block_table", Make<int32_t>(DataType::kInt32, {2, 1}, {0, 7})});
  ExpectFails(call, Code::kInvalidArgument, {"block_table", "key lengths"});
  call.inputs.push_back({"actual_seq_lengths_kv", MakeInts({4, 1})});
  ExpectFails(call, Code::kInvalidArgument, {"block 7", "sequence 1", "7 blocks"});
  call.inputs.back().value = MakeInts({5, 1});
  ExpectFails(call, Code::kInvalidArgument, {"key length", "5", "4 rows"});
}

// ---- lists ----

TEST(AttentionOverLists, EverySequenceHasItsOwnTensor) {
  for (const std::string layout : {"BNSD", "BSH"}) {
    const Heads q = Noise(kF16, 2, 2, 1, 8, 1);
    const Heads k0 = Noise(kF16, 1, 2, 5, 8, 2);
    const Heads k1 = Noise(kF16, 1, 2, 9, 8, 3);
    OpCall call{.type = "IncreFlashAttention",
                .inputs = {{"query", InLayout(kF16, layout, q)},
                           {"key0", InLayout(kF16, layout, k0)},
                           {"key1", InLayout(kF16, layout, k1)},
                           {"value0", InLayout(kF16, layout, k0)},
                           {"value1", InLayout(kF16, layout, k1)}},
                .attrs = {{"num_heads", AttrValue::Int(2)},
                          {"num_key_value_heads", AttrValue::Int(2)},
                          {"input_layout", AttrValue::String(layout)}}};
    Heads joined = Zeros(2, 2, 9, 8);
    for (int64_t n = 0; n < 2; ++n) {
      for (int64_t d = 0; d < 8; ++d) {
        for (int64_t s = 0; s < 5; ++s) joined.at(0, n, s, d) = k0.at(0, n, s, d);
        for (int64_t s = 0; s < 9; ++s) joined.at(1, n, s, d) = k1.at(0, n, s, d);
      }
    }
    ExpectHeads(RunOne(call), layout, PlainAttention(q, joined, joined, {.kv_rows = {5, 9}}).out);
  }
}

// ---- quantised caches ----

// Integers in [-8, 7].
Heads Integers(int64_t batches, int64_t heads, int64_t rows, int64_t width, int seed) {
  Heads h = Noise(DataType::kFloat, batches, heads, rows, width, seed);
  for (double& value : h.values) value = std::floor(value * 8);
  return h;
}

Tensor PackedInt4(const std::string& letters, const Heads& h) {
  const Tensor wide = InLayout(DataType::kInt8, letters, h);
  Tensor packed = Tensor::Allocate({DataType::kInt4, wide.shape()});
  const auto from = wide.as<int8_t>();
  for (size_t i = 0; i < from.size(); ++i) {
    const auto bits = static_cast<uint8_t>((from[i] & 15) << (i % 2 * 4));
    packed.mutable_data()[i / 2] |= static_cast<std::byte>(bits);
  }
  return packed;
}

struct ModeCase {
  int64_t mode;
  Shape scales;
  // Index of the scale of (b, n, s, d).
  std::function<int64_t(int64_t b, int64_t n, int64_t s, int64_t d)> index;
};

TEST(QuantisedCache, EveryModeFindsItsScale) {
  const int64_t rows = 5;
  const int64_t width = 64;
  const std::vector<ModeCase> cases = {
      {0, {1}, [](int64_t, int64_t, int64_t, int64_t) { return 0; }},
      {1, {1}, [](int64_t, int64_t, int64_t, int64_t) { return 0; }},
      {2, {1}, [](int64_t, int64_t, int64_t, int64_t) { return 0; }},
      {3, {1}, [](int64_t, int64_t, int64_t, int64_t) { return 0; }},
      {0, {2, 1, 64}, [&](int64_t, int64_t n, int64_t, int64_t d) { return n * width + d; }},
      {1, {1, 2, 5}, [&](int64_t b, int64_t, int64_t s, int64_t) { return b * rows + s; }},
      {1, {1, 2, 8}, [&](int64_t b, int64_t, int64_t s, int64_t) { return b * 8 + s; }},
      {2, {2}, [](int64_t, int64_t n, int64_t, int64_t) { return n; }},
      {3,
       {2, 2, 5},
       [&](int64_t b, int64_t n, int64_t s, int64_t) { return (b * 2 + n) * rows + s; }},
      {6,
       {1, 2, 2, 5, 2},
       [&](int64_t b, int64_t n, int64_t s, int64_t d) {
         return ((b * 2 + n) * rows + s) * 2 + d / 32;
       }},
  };
  const Heads q = Noise(kF16, 2, 2, 1, width, 1);
  const Heads k = Integers(2, 2, rows, width, 2);
  const Heads v = Integers(2, 2, rows, width, 3);
  for (const ModeCase& c : cases) {
    for (const DataType type : {DataType::kInt8, DataType::kInt4}) {
      SCOPED_TRACE(fmt::format("mode {} {}", c.mode, Name(type)));
      const int64_t count = c.scales.elements();
      const Heads scale = Noise(kF16, 1, 1, 1, count, 4);
      const Heads offset = Noise(kF16, 1, 1, 1, count, 5);
      const auto pack = [&](const Heads& h) {
        return type == DataType::kInt8 ? InLayout(type, "BNSD", h) : PackedInt4("BNSD", h);
      };
      OpCall call = Fused(InLayout(kF16, "BNSD", q), pack(k), pack(v), 2, 2, "BNSD");
      for (const std::string name : {"key", "value"}) {
        call.inputs.push_back(
            {name + "_antiquant_scale", FromDoubles(kF16, c.scales, scale.values)});
        call.inputs.push_back(
            {name + "_antiquant_offset", FromDoubles(kF16, c.scales, offset.values)});
        call.attrs.push_back({name + "_antiquant_mode", AttrValue::Int(c.mode)});
      }
      Heads wide_k = k;
      Heads wide_v = v;
      for (const auto& at : Positions({2, 2, rows, width})) {
        const int64_t i = c.index(at[0], at[1], at[2], at[3]);
        for (Heads* h : {&wide_k, &wide_v}) {
          double& value = h->at(at[0], at[1], at[2], at[3]);
          value = (value + offset.at(0, 0, 0, i)) * scale.at(0, 0, 0, i);
        }
      }
      const Tensor got = RunOne(call);
      const std::vector<double> want =
          PlainAttention(q, wide_k, wide_v, {.scale = 0.25}).out.values;
      const std::vector<double> values = ToDoubles(got);
      ASSERT_EQ(values.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i) {
        ASSERT_NEAR(values[i], want[i], 0.51 * Ulp(kF16, want[i]) + 2e-5);
      }
    }
  }
}

TEST(QuantisedCache, ScalesOfPages) {
  const Heads q = Noise(kF16, 1, 2, 1, 8, 1);
  Heads k = Integers(1, 2, 7, 8, 2);
  const Tensor pages = [&] {
    const Tensor half = Paged(k, 4);
    return FromDoubles(DataType::kInt8, half.shape(), ToDoubles(half));
  }();
  for (const int64_t mode : {4, 5}) {
    const Shape scales = mode == 4 ? Shape{7, kPage} : Shape{7, 2, kPage};
    const Heads scale = Noise(kF16, 1, 1, 1, scales.elements(), 4);
    OpCall call = Fused(InLayout(kF16, "BSH", q), pages, pages, 2, 2, "BSH");
    call.inputs.push_back({"block_table", Table(1, 2)});
    call.inputs.push_back({"actual_seq_lengths_kv", MakeInts({7})});
    for (const std::string name : {"key", "value"}) {
      call.inputs.push_back({name + "_antiquant_scale", FromDoubles(kF16, scales, scale.values)});
      call.attrs.push_back({name + "_antiquant_mode", AttrValue::Int(mode)});
    }
    Heads wide = k;
    for (const auto& at : Positions({1, 2, 7, 8})) {
      const int64_t block = BlockOf(0, at[2] / kPage, 2);
      const size_t i = mode == 4 ? Index(scales, {block, at[2] % kPage})
                                 : Index(scales, {block, at[1], at[2] % kPage});
      wide.at(0, at[1], at[2], at[3]) *= scale.values[i];
    }
    ExpectHeads(RunOne(call), "BSH", PlainAttention(q, wide, wide, {.scale = 0.25}).out);
  }
}

TEST(QuantisedCache, OneTensorMayHoldBothScales) {
  const Heads q = Noise(kF16, 1, 1, 1, 8, 1);
  const Heads k = Integers(1, 1, 3, 8, 2);
  OpCall call{.type = "IncreFlashAttention",
              .inputs = {{"query", InLayout(kF16, "BSH", q)},
                         {"key0", InLayout(DataType::kInt8, "BSH", k)},
                         {"value0", InLayout(DataType::kInt8, "BSH", k)}},
              .attrs = {{"num_heads", AttrValue::Int(1)}}};
  call.inputs.push_back({"antiquant_scale", FromDoubles(kF16, {2, 1}, {0.5, 0.25})});
  Heads wide_k = k;
  Heads wide_v = k;
  for (double& value : wide_k.values) value *= 0.5;
  for (double& value : wide_v.values) value *= 0.25;
  ExpectHeads(RunOne(call), "BSH", PlainAttention(q, wide_k, wide_v, {}).out);
}

// ---- everything in int8 ----

TEST(QuantisedAttention, RoundsProbabilitiesAndOutput) {
  const int64_t columns = 200;
  Heads q = Integers(1, 2, 3, 8, 1);
  Heads k = Integers(1, 1, columns, 8, 2);
  Heads v = Integers(1, 1, columns, 8, 3);
  const double scores = 0.03125;
  const double probabilities = 2000;
  const double sums = 0.0009765625;
  OpCall call{.type = "PromptFlashAttention",
              .inputs = {{"query", InLayout(DataType::kInt8, "BSH", q)},
                         {"key", InLayout(DataType::kInt8, "BSH", k)},
                         {"value", InLayout(DataType::kInt8, "BSH", v)},
                         {"deq_scale1", FromDoubles(DataType::kFloat, {1}, {scores})},
                         {"quant_scale1", FromDoubles(DataType::kFloat, {1}, {probabilities})},
                         {"deq_scale2", FromDoubles(DataType::kFloat, {1}, {sums})}},
              .attrs = {{"num_heads", AttrValue::Int(2)}, {"scale_value", AttrValue::Float(2)}}};
  Heads expected = Zeros(1, 2, 3, 8);
  for (int64_t h = 0; h < 2; ++h) {
    for (int64_t i = 0; i < 3; ++i) {
      std::vector<double> p;
      for (int64_t j = 0; j < columns; ++j) {
        double dot = 0;
        for (int64_t d = 0; d < 8; ++d) dot += q.at(0, h, i, d) * k.at(0, 0, j, d);
        p.push_back(std::exp(dot * scores * 2));
      }
      const double sum = std::accumulate(p.begin(), p.end(), 0.0);
      for (int64_t j = 0; j < columns; ++j) {
        const double rounded =
            std::min(std::nearbyint(p[static_cast<size_t>(j)] / sum * probabilities), 127.0);
        for (int64_t d = 0; d < 8; ++d)
          expected.at(0, h, i, d) += rounded * v.at(0, 0, j, d) * sums;
      }
    }
  }
  const Tensor out = RunOne(call);
  EXPECT_EQ(out.dtype(), kF16);
  // A probability that lies on the border of rounding may fall to either side.
  const std::vector<double> values = ToDoubles(out);
  for (const auto& at : Positions({1, 3, 2, 8})) {
    const double want = expected.at(0, at[2], at[1], at[3]);
    EXPECT_NEAR(values[Index({1, 3, 2, 8}, at)], want, Ulp(kF16, want) + 8 * sums);
  }

  call.inputs.push_back({"quant_scale2", FromDoubles(DataType::kFloat, {1}, {16})});
  call.inputs.push_back({"quant_offset2", FromDoubles(DataType::kFloat, {1}, {3})});
  const Tensor eight = RunOne(call);
  EXPECT_EQ(eight.dtype(), DataType::kInt8);
  for (const auto& at : Positions({1, 3, 2, 8})) {
    const double want = expected.at(0, at[2], at[1], at[3]) * 16 + 3;
    EXPECT_NEAR(ToDoubles(eight)[Index({1, 3, 2, 8}, at)], want, 0.51 + 8 * sums * 16);
  }
}

// ---- prefix and rotary part ----

TEST(AttentionExtras, SharedPrefixStandsInFront) {
  const Heads q = Noise(kF16, 2, 2, 3, 8, 1);
  const Heads k = Noise(kF16, 2, 2, 5, 8, 2);
  const Heads prefix = Noise(kF16, 1, 2, 4, 8, 3);
  OpCall call = Fused(InLayout(kF16, "BNSD", q), InLayout(kF16, "BNSD", k),
                      InLayout(kF16, "BNSD", k), 2, 2, "BNSD");
  call.inputs.push_back({"key_shared_prefix", InLayout(kF16, "BNSD", prefix)});
  call.inputs.push_back({"value_shared_prefix", InLayout(kF16, "BNSD", prefix)});
  call.inputs.push_back({"actual_shared_prefix_len", MakeInts({3})});
  Heads joined = Zeros(2, 2, 8, 8);
  for (const auto& at : Positions({2, 2, 8, 8})) {
    joined.at(at[0], at[1], at[2], at[3]) =
        at[2] < 3 ? prefix.at(0, at[1], at[2], at[3]) : k.at(at[0], at[1], at[2] - 3, at[3]);
  }
  ExpectHeads(RunOne(call), "BNSD", PlainAttention(q, joined, joined, {.scale = 0.25}).out);
}

TEST(AttentionExtras, RotaryPartJoinsTheScores) {
  const Heads q = Noise(kF16, 2, 4, 1, 8, 1);
  const Heads q_rope = Noise(kF16, 2, 4, 1, 4, 2);
  const Heads k = Noise(kF16, 2, 1, 11, 8, 3);
  const Heads k_rope = Noise(kF16, 2, 1, 11, 4, 4);
  OpCall call = Fused(InLayout(kF16, "BNSD", q), Paged(k, 4), Paged(k, 4), 4, 1, "BNSD");
  call.inputs.push_back({"query_rope", InLayout(kF16, "BNSD", q_rope)});
  call.inputs.push_back({"key_rope", Paged(k_rope, 4)});
  call.inputs.push_back({"block_table", Table(2, 3)});
  call.inputs.push_back({"actual_seq_lengths_kv", MakeInts({11, 5})});
  Plain plain{.scale = 0.25, .kv_rows = {11, 5}};
  plain.shift = [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    double dot = 0;
    for (int64_t d = 0; d < 4; ++d) dot += q_rope.at(b, h, i, d) * k_rope.at(b, 0, j, d);
    return dot * plain.scale;
  };
  ExpectHeads(RunOne(call), "BNSD", PlainAttention(q, k, k, plain).out);
  call.inputs[3].value = InLayout(kF16, "BNSD", Noise(kF16, 1, 4, 1, 4, 2));
  ExpectFails(call, Code::kInvalidArgument, {"rotary part"});
  call.inputs.erase(call.inputs.begin() + 3);
  ExpectFails(call, Code::kInvalidArgument, {"rotary part"});
}

}  // namespace
}  // namespace npumesh
