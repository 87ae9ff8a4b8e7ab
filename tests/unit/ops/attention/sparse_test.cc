// LightningIndexer, QuantLightningIndexer and SparseFlashAttention against double, in every layout.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/unit/op_types.h"
#include "tests/unit/op_unknown.h"
#include "tests/unit/op_values.h"
#include "tests/unit/ops/quant/quant_values.h"

namespace npumesh {
namespace {

Tensor Ints(const Shape& shape, const std::vector<int32_t>& values) {
  return Make<int32_t>(DataType::kInt32, shape, values);
}

// Two sequences of up to 3 queries and 6 keys; where row (b, s) of a tensor lies.
struct Layout {
  std::string queries;
  std::string keys;
  std::vector<int32_t> query_lengths = {3, 2};
  std::vector<int32_t> key_lengths = {5, 6};

  Shape QueryShape(int64_t heads, int64_t width) const {
    return queries == "TND" ? Shape{5, heads, width} : Shape{2, 3, heads, width};
  }
  Shape KeyShape(int64_t heads, int64_t width) const {
    if (keys == "TND") return {11, heads, width};
    return keys == "BSND" ? Shape{2, 6, heads, width} : Shape{4, 4, heads, width};
  }
  int64_t QueryRow(int64_t b, int64_t t) const { return b * 3 + t; }
  int64_t KeyRow(int64_t b, int64_t s) const {
    if (keys == "TND") return b * 5 + s;
    if (keys == "BSND") return b * 6 + s;
    const int64_t table[2][2] = {{3, 0}, {1, 2}};
    return table[b][s / 4] * 4 + s % 4;
  }
  void Feed(OpCall& call, const char* query, const char* key) const {
    const bool packed = queries == "TND";
    const int32_t second = query_lengths[1];
    call.inputs.push_back({query, Ints({2}, {3, packed ? 3 + second : second})});
    call.inputs.push_back({key, Ints({2}, {5, keys == "TND" ? 11 : 6})});
    if (keys == "PA_BSND") call.inputs.push_back({"block_table", Ints({2, 2}, {3, 0, 1, 2})});
  }
  // Keys that query t sees.
  int64_t Seen(int64_t b, int64_t t, bool causal) const {
    const int64_t keys_of = key_lengths[static_cast<size_t>(b)];
    return causal ? t + 1 + keys_of - query_lengths[static_cast<size_t>(b)] : keys_of;
  }
};

std::vector<Layout> Layouts() {
  std::vector<Layout> all;
  for (const char* queries : {"BSND", "TND"}) {
    for (const char* keys : {"BSND", "TND", "PA_BSND"}) all.push_back({queries, keys});
  }
  return all;
}

// Integers: scores are exact, and equal ones occur.
TEST(LightningIndexer, FindsTheHighestScores) {
  const int64_t heads = 3, width = 4, count = 4;
  for (const Layout& layout : Layouts()) {
    for (const bool causal : {true, false}) {
      for (const bool quantised : {false, true}) {
        const DataType dtype = quantised ? kInt8 : kBf16;
        const auto whole = [&](const Shape& shape, int seed) {
          return FromDoubles(dtype, shape, ToDoubles(Noise(DataType::kInt32, shape, seed, 4)));
        };
        const Tensor q = whole(layout.QueryShape(heads, width), 1);
        const Tensor k = whole(layout.KeyShape(1, width), 2);
        Shape weight_shape = q.shape(), scale_shape = k.shape();
        weight_shape.mutable_dims().pop_back();
        scale_shape.mutable_dims().pop_back();
        const DataType half = quantised ? kF16 : kBf16;
        const Tensor w = Pattern(half, weight_shape, 3), s1 = Pattern(half, weight_shape, 4),
                     s2 = Pattern(half, scale_shape, 5);
        OpCall call = {.type = quantised ? "QuantLightningIndexer" : "LightningIndexer",
                       .inputs = {{"query", q}, {"key", k}, {"weights", w}},
                       .attrs = {{"layout_query", AttrValue::String(layout.queries)},
                                 {"layout_key", AttrValue::String(layout.keys)},
                                 {"sparse_count", AttrValue::Int(count)},
                                 {"sparse_mode", AttrValue::Int(causal ? 3 : 0)}}};
        if (quantised) {
          call.inputs.push_back({"query_dequant_scale", s1});
          call.inputs.push_back({"key_dequant_scale", s2});
          call.attrs.emplace_back("query_quant_mode", AttrValue::Int(0));
          call.attrs.emplace_back("key_quant_mode", AttrValue::Int(0));
        } else {
          call.attrs.emplace_back("return_values", AttrValue::Bool(true));
        }
        layout.Feed(call, "actual_seq_lengths_query", "actual_seq_lengths_key");
        const int64_t rows = layout.queries == "TND" ? 5 : 6;
        std::vector<double> indices(static_cast<size_t>(rows * count), -1.0);
        std::vector<double> values(indices.size(), 0.0);
        const std::vector<double> qs = ToDoubles(q), ks = ToDoubles(k), ws = ToDoubles(w);
        for (int64_t b = 0; b < 2; ++b) {
          for (int64_t t = 0; t < layout.query_lengths[static_cast<size_t>(b)]; ++t) {
            const int64_t row = layout.QueryRow(b, t), seen = layout.Seen(b, t, causal);
            std::vector<double> scores;
            for (int64_t s = 0; s < seen; ++s) {
              const int64_t key = layout.KeyRow(b, s);
              double score = 0;
              for (int64_t h = 0; h < heads; ++h) {
                double product = 0;
                for (int64_t d = 0; d < width; ++d) {
                  product += qs[static_cast<size_t>((row * heads + h) * width + d)] *
                             ks[static_cast<size_t>(key * width + d)];
                }
                if (quantised) product *= ToDoubles(s1)[static_cast<size_t>(row * heads + h)];
                score += ws[static_cast<size_t>(row * heads + h)] * std::max(product, 0.0);
              }
              if (quantised) score *= ToDoubles(s2)[static_cast<size_t>(key)];
              scores.push_back(score);
            }
            std::vector<int64_t> order(scores.size());
            std::iota(order.begin(), order.end(), 0);
            std::stable_sort(order.begin(), order.end(), [&](int64_t x, int64_t y) {
              return scores[static_cast<size_t>(x)] > scores[static_cast<size_t>(y)];
            });
            for (int64_t i = 0; i < std::min(count, seen); ++i) {
              const int64_t at = order[static_cast<size_t>(i)];
              indices[static_cast<size_t>(row * count + i)] = static_cast<double>(at);
              values[static_cast<size_t>(row * count + i)] =
                  Rounded(kBf16, scores[static_cast<size_t>(at)]);
            }
          }
        }
        const std::vector<Tensor> got = Results(call);
        EXPECT_EQ(ToDoubles(got[0]), indices) << layout.queries << " " << layout.keys;
        if (!quantised) {
          EXPECT_EQ(ToDoubles(got[1]), values);
        }
      }
    }
  }
}

TEST(LightningIndexer, InfersWithUnknownDimensions) {
  const Tensor q = Noise(kF16, {2, 3, 2, 4}, 1), k = Noise(kF16, {2, 6, 1, 4}, 2);
  const OpCall call = {.type = "LightningIndexer",
                       .inputs = {{"query", q}, {"key", k}, {"weights", Noise(kF16, {2, 3, 2}, 3)}},
                       .attrs = {{"sparse_count", AttrValue::Int(3)}}};
  const Result<std::vector<TensorType>> types = InferOp(call);
  ASSERT_TRUE(types.ok()) << types.status().ToString();
  EXPECT_EQ((*types)[0], (TensorType{DataType::kInt32, {2, 3, 1, 3}}));
  EXPECT_EQ((*types)[1], (TensorType{kF16, {0}}));
  const Operator& op = *BuiltinOps().Find(call.type);
  const Node node = op_test::MakeNode(op, call);
  const Result<OpContext> known = op_test::BindAndInfer(op, call, node);
  ASSERT_TRUE(known.ok());
  op_test::ExpectSoundWithUnknowns(op, *known, *known);
}

TEST(SparseFlashAttention, AttendsToWhatIsChosen) {
  const int64_t heads = 4, kv = 2, width = 6, rope = 4, count = 3;
  for (const Layout& layout : Layouts()) {
    for (const DataType dtype : {kF32, kF16, kBf16}) {
      for (const int64_t block : {1, 2}) {
        const bool causal = block == 1, roped = layout.queries == "BSND";
        const Tensor q = Noise(dtype, layout.QueryShape(heads, width), 1);
        const Tensor k = Noise(dtype, layout.KeyShape(kv, width), 2);
        const Tensor v = Noise(dtype, layout.KeyShape(kv, width), 3);
        const Tensor qr = Noise(dtype, layout.QueryShape(heads, rope), 4);
        const Tensor kr = Noise(dtype, layout.KeyShape(kv, rope), 5);
        const int64_t rows = layout.queries == "TND" ? 5 : 6;
        std::vector<int32_t> lists;
        for (int64_t i = 0; i < rows * kv; ++i) {
          const auto first = static_cast<int32_t>(i % (block == 1 ? 3 : 2));
          lists.push_back(i == 2 ? -1 : first);  // one query has no positions
          lists.push_back(i % 4 == 1 ? -1 : 2);
          lists.push_back(i % 4 == 1 ? 1 : -1);  // behind the end of the list
        }
        OpCall call = {.type = "SparseFlashAttention",
                       .inputs = {{"query", q},
                                  {"key", k},
                                  {"value", v},
                                  {"sparse_indices", Ints(layout.QueryShape(kv, count), lists)}},
                       .attrs = {{"scale_value", AttrValue::Float(0.5f)},
                                 {"sparse_block_size", AttrValue::Int(block)},
                                 {"layout_query", AttrValue::String(layout.queries)},
                                 {"layout_kv", AttrValue::String(layout.keys)},
                                 {"sparse_mode", AttrValue::Int(causal ? 3 : 0)},
                                 {"attention_mode", AttrValue::Int(2)},
                                 {"return_softmax_lse", AttrValue::Bool(true)}}};
        layout.Feed(call, "actual_seq_lengths_query", "actual_seq_lengths_kv");
        if (roped) call.inputs.push_back({"query_rope", qr});
        if (roped) call.inputs.push_back({"key_rope", kr});
        std::vector<double> out(static_cast<size_t>(rows * heads * width), 0.0);
        std::vector<double> most(static_cast<size_t>(rows * heads), 0.0), sums = most;
        const auto at = [](const std::vector<double>& x, int64_t i) {
          return x[static_cast<size_t>(i)];
        };
        const std::vector<double> qs = ToDoubles(q), ks = ToDoubles(k), vs = ToDoubles(v),
                                  qrs = ToDoubles(qr), krs = ToDoubles(kr);
        for (int64_t b = 0; b < 2; ++b) {
          for (int64_t t = 0; t < layout.query_lengths[static_cast<size_t>(b)]; ++t) {
            for (int64_t h = 0; h < heads; ++h) {
              const int64_t row = layout.QueryRow(b, t), n = h / 2;
              std::vector<int64_t> keys;
              std::vector<double> scores;
              for (int64_t i = 0; i < count; ++i) {
                const int64_t entry = lists[static_cast<size_t>((row * kv + n) * count + i)];
                if (entry < 0) break;
                for (int64_t s = entry * block; s < entry * block + block; ++s) {
                  if (s >= layout.Seen(b, t, causal)) continue;
                  const int64_t key = layout.KeyRow(b, s) * kv + n, query = row * heads + h;
                  double score = 0;
                  for (int64_t d = 0; d < width; ++d) {
                    score += at(qs, query * width + d) * at(ks, key * width + d);
                  }
                  for (int64_t d = 0; roped && d < rope; ++d) {
                    score += at(qrs, query * rope + d) * at(krs, key * rope + d);
                  }
                  keys.push_back(key);
                  scores.push_back(0.5 * score);
                }
              }
              if (keys.empty()) continue;
              const double top = *std::max_element(scores.begin(), scores.end());
              double sum = 0;
              for (const double score : scores) sum += std::exp(score - top);
              for (size_t i = 0; i < keys.size(); ++i) {
                for (int64_t d = 0; d < width; ++d) {
                  out[static_cast<size_t>((row * heads + h) * width + d)] +=
                      std::exp(scores[i] - top) / sum * at(vs, keys[i] * width + d);
                }
              }
              const int64_t line = layout.queries == "TND" ? n * rows + row : (b * kv + n) * 3 + t;
              most[static_cast<size_t>(line * 2 + h % 2)] = top;
              sums[static_cast<size_t>(line * 2 + h % 2)] = sum;
            }
          }
        }
        const std::vector<Tensor> got = Results(call);
        EXPECT_EQ(got[0].type(), q.type());
        EXPECT_EQ(got[1].shape(),
                  layout.queries == "TND" ? Shape({kv, 5, 2}) : Shape({2, kv, 3, 2}));
        ExpectNear(got[0], out, 1e-5);
        ExpectNear(got[1], most, 1e-5);
        ExpectNear(got[2], sums, 1e-5);
      }
    }
  }
}

// Keys as they lie in the cache, and what they stand for: [rows, width + rope].
struct QuantisedKeys {
  Tensor stored;
  std::vector<double> values;

  QuantisedKeys(DataType dtype, const Shape& shape, int64_t width, int64_t rope, int64_t tile,
                int seed)
      : stored(Tensor::Allocate({kInt8, shape})) {
    const int64_t rows = shape.elements() / shape.dims().back(), tiles = width / tile;
    const Tensor numbers = Noise(kInt8, {rows, width}, seed, 100);
    const Tensor rotated = Noise(dtype, {rows, rope}, seed + 1);
    const Tensor scales = Noise(kF32, {rows, tiles}, seed + 2, 0.02);
    std::byte* to = stored.mutable_data();
    const auto append = [&to](const Tensor& tensor, int64_t row, int64_t bytes) {
      to = std::copy_n(tensor.data() + row * bytes, bytes, to);
    };
    for (int64_t r = 0; r < rows; ++r) {
      append(numbers, r, width);
      append(rotated, r, rope * 2);
      append(scales, r, tiles * 4);
      for (int64_t d = 0; d < width; ++d) {
        const auto scale = scales.as<float>()[static_cast<size_t>(r * tiles + d / tile)];
        const auto number = numbers.as<int8_t>()[static_cast<size_t>(r * width + d)];
        values.push_back(Rounded(dtype, static_cast<double>(static_cast<float>(number) * scale)));
      }
      for (int64_t d = 0; d < rope; ++d) {
        values.push_back(ToDoubles(rotated)[static_cast<size_t>(r * rope + d)]);
      }
    }
  }
};

TEST(KvQuantSparseFlashAttention, AttendsToWhatIsChosen) {
  const int64_t heads = 4, width = 16, rope = 6, tile = 8, count = 3, whole = width + rope;
  const int64_t stored = width + rope * 2 + width / tile * 4;
  int seed = 0;
  for (const Layout& layout : Layouts()) {
    for (const DataType dtype : {kF16, kBf16}) {
      for (const bool causal : {false, true}) {
        const Tensor q = Noise(dtype, layout.QueryShape(heads, whole), ++seed);
        const QuantisedKeys keys(dtype, layout.KeyShape(1, stored), width, rope, tile, seed);
        const int64_t rows = layout.queries == "TND" ? 5 : 6;
        std::vector<int32_t> lists;
        for (int64_t i = 0; i < rows; ++i) {
          lists.insert(lists.end(),
                       {i == 2 ? -1 : static_cast<int32_t>(i % 3), i % 4 == 1 ? -1 : 4, 3});
        }
        OpCall call = {.type = "KvQuantSparseFlashAttention",
                       .inputs = {{"query", q},
                                  {"key", keys.stored},
                                  {"value", keys.stored},
                                  {"sparse_indices", Ints(layout.QueryShape(1, count), lists)}},
                       .attrs = {{"scale_value", AttrValue::Float(0.5f)},
                                 {"key_quant_mode", AttrValue::Int(2)},
                                 {"value_quant_mode", AttrValue::Int(2)},
                                 {"layout_query", AttrValue::String(layout.queries)},
                                 {"layout_kv", AttrValue::String(layout.keys)},
                                 {"sparse_mode", AttrValue::Int(causal ? 3 : 0)},
                                 {"attention_mode", AttrValue::Int(2)},
                                 {"tile_size", AttrValue::Int(tile)},
                                 {"rope_head_dim", AttrValue::Int(rope)}}};
        layout.Feed(call, "actual_seq_lengths_query", "actual_seq_lengths_kv");
        const std::vector<double> qs = ToDoubles(q);
        std::vector<double> out(static_cast<size_t>(rows * heads * width), 0.0);
        for (int64_t b = 0; b < 2; ++b) {
          for (int64_t t = 0; t < layout.query_lengths[static_cast<size_t>(b)]; ++t) {
            const int64_t row = layout.QueryRow(b, t);
            for (int64_t h = 0; h < heads; ++h) {
              const double* query = qs.data() + (row * heads + h) * whole;
              std::vector<const double*> chosen;
              std::vector<double> weights;
              double sum = 0;
              for (int64_t i = 0; i < count; ++i) {
                const int64_t s = lists[static_cast<size_t>(row * count + i)];
                if (s < 0) break;
                if (s >= layout.Seen(b, t, causal)) continue;
                chosen.push_back(keys.values.data() + layout.KeyRow(b, s) * whole);
                weights.push_back(
                    std::exp(0.5 * std::inner_product(query, query + whole, chosen.back(), 0.0)));
                sum += weights.back();
              }
              double* result = out.data() + (row * heads + h) * width;
              for (size_t i = 0; i < chosen.size(); ++i) {
                for (int64_t d = 0; d < width; ++d) result[d] += weights[i] / sum * chosen[i][d];
              }
            }
          }
        }
        const std::vector<Tensor> got = Results(call);
        EXPECT_EQ(got[0].type(), (TensorType{dtype, layout.QueryShape(heads, width)}));
        ExpectNear(got[0], out, 1e-5);
      }
    }
  }
}

TEST(KvQuantSparseFlashAttention, RefusesByName) {
  const Tensor q = Noise(kF16, {1, 2, 2, 576}, 1), k = Noise(kInt8, {1, 3, 1, 656}, 2, 50);
  const OpCall call = {.type = "KvQuantSparseFlashAttention",
                       .inputs = {{"query", q},
                                  {"key", k},
                                  {"value", k},
                                  {"sparse_indices", Ints({1, 2, 1, 2}, {0, 1, 0, 1})}},
                       .attrs = {{"scale_value", AttrValue::Float(1)},
                                 {"key_quant_mode", AttrValue::Int(2)},
                                 {"value_quant_mode", AttrValue::Int(2)},
                                 {"attention_mode", AttrValue::Int(2)}}};
  EXPECT_EQ(Results(call)[0].shape(), Shape({1, 2, 2, 512}));
}

}  // namespace
}  // namespace npumesh
