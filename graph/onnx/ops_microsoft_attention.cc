// Attention of com.microsoft, as ONNX Runtime's optimisers and builders write it.
//
// Tensors of heads are [batch, heads, length, size] here; scores are [batch, heads, queries, keys].
#include <cmath>
#include <limits>

#include "graph/onnx/op_table.h"
#include "graph/onnx/rewrites.h"

namespace npumesh {
namespace {

// [B, S, heads * size] as [B, heads, S, size].
Value SplitHeads(Lowering& at, Value x, int64_t heads) {
  const int64_t width = at.Dim(x, 2);
  if (!at.ok()) return x;
  if (heads < 1 || width % heads != 0) {
    at.Fail(Code::kCorrupt, "{} heads of rows of {} elements; expected a divisor", heads, width);
    return x;
  }
  return at.Transpose(at.ReshapeAfter(x, 2, {heads, width / heads}), {0, 2, 1, 3});
}

// And back.
Value JoinHeads(Lowering& at, Value x) {
  const int64_t width = at.Dim(x, 1) * at.Dim(x, 3);
  return at.ReshapeAfter(at.Transpose(x, {0, 2, 1, 3}), 2, {width});
}

// Columns [begin, end) of the last dimension.
Value Columns(Lowering& at, Value x, int64_t begin, int64_t end) {
  return at.Slice(x, at.Rank(x) - 1, begin, end);
}

// Positions of keys, [keys], and of queries, [queries, 1], where the last query stands at the last
// key; int64.
struct Positions {
  Value keys, queries;
};

Positions PositionsOf(Lowering& at, Value q, Value k) {
  const Value count = at.Reshape(at.DimOf(k, 2), {}), rows = at.Reshape(at.DimOf(q, 2), {});
  const Value first = at.Sub(count, rows);
  const Value queries = at.Add(CountTo(at, rows, DataType::kInt64), first);
  return {CountTo(at, count, DataType::kInt64), at.Unsqueeze(queries, {1})};
}

// What is added to scores: nothing where `seen`, `filler` elsewhere.
Value Filler(Lowering& at, Value seen, double filler) {
  return at.Select(seen, at.Scalar(0, DataType::kFloat), at.Scalar(filler, DataType::kFloat));
}

// Which keys of each row of the batch count: those before its number, and where there are two for
// each row those from its second one on. Sizes may be open. nullopt after an objection.
std::optional<Value> SeenBetween(Lowering& at, Value mask, Value q, Value k) {
  const int64_t batch = at.KnownSize(q, 0), count = at.KnownSize(mask, 0);
  if (batch >= 0 && count >= 0 && count != batch && count != 2 * batch) {
    at.Refuse("a mask of {} numbers for a batch of {}; expected one or two for each row", count,
              batch);
    return std::nullopt;
  }
  const Value keys = PositionsOf(at, q, k).keys;
  const Value numbers = at.Cast(mask, DataType::kInt64);
  const Value rows = at.DimOf(q, 0);
  const auto part = [&](Value of, Value begin, Value end) {
    return at.Reshape(AsNode(at, "Slice", 13, {of, begin, end})[0], {-1, 1, 1, 1});
  };
  const Value zero = at.Reshape(at.Scalar(0, DataType::kInt64), {1});
  const Value seen = at.Binary("Less", keys, part(numbers, zero, rows));
  if (batch >= 0 && count == batch) return seen;
  // Zeros behind the numbers: where there is one for each row, it begins with the first key.
  const Value every = CountTo(at, at.Reshape(rows, {}), DataType::kInt64);
  const Value longer = at.Concat({numbers, at.Mul(every, at.Scalar(0, DataType::kInt64))}, 0);
  const Value begins = part(longer, rows, at.Add(rows, rows));
  return at.Binary("LogicalAnd", seen, at.Binary("GreaterEqual", keys, begins));
}

// The mask of operand `input` as a summand of scores; nullopt: it is left out.
//   [B]: how many keys count      [2 B]: .. and, after these, where they begin
//   [B, keys]: 1 for each that counts    [B, queries, keys], [B, 1, M, M]: for each query as well
std::optional<Value> MaskOf(Lowering& at, int input, Value q, Value k) {
  if (!at.has(input)) return std::nullopt;
  const Value mask = at.in(input);
  const double filler = at.Float("mask_filter_value", -10000);
  const int rank = at.Rank(mask);
  if (rank == 1) {
    const std::optional<Value> seen = SeenBetween(at, mask, q, k);
    return seen ? std::optional(Filler(at, *seen, filler)) : std::nullopt;
  }
  const Value seen = at.Binary("Greater", mask, at.Like(0, mask));
  if (rank == 2) return Filler(at, at.Unsqueeze(seen, {1, 2}), filler);
  if (rank == 3) return Filler(at, at.Unsqueeze(seen, {1}), filler);
  at.Refuse("a mask of {} dimensions; expected 1 to 3", rank);
  return std::nullopt;
}

// What hides the keys after each query.
Value CausalMask(Lowering& at, Value q, Value k) {
  const Positions positions = PositionsOf(at, q, k);
  return Filler(at, at.Binary("LessEqual", positions.keys, positions.queries),
                std::numeric_limits<float>::lowest());
}

double ScaleOf(Lowering& at, Value q) {
  const float scale = at.Float("scale", 0);
  return scale != 0 ? scale
                    : 1 / std::sqrt(static_cast<double>(std::max<int64_t>(at.Dim(q, 3), 1)));
}

// softmax(scale q k' + summands) v, in float32.
Value Attend(Lowering& at, Value q, Value k, Value v, double scale,
             const std::vector<std::optional<Value>>& summands, double softcap = 0) {
  Value scores = at.Op("BatchMatMulV2", {at.Wide(q), at.Wide(k)}, {{"adj_x2", true}});
  scores = at.Mul(scores, at.Like(scale, scores));
  if (softcap != 0) {
    const Value cap = at.Like(softcap, scores);
    scores = at.Mul(at.Unary("Tanh", at.Div(scores, cap)), cap);
  }
  for (const std::optional<Value>& summand : summands) {
    if (summand) scores = at.Add(scores, at.Wide(*summand));
  }
  const int64_t last = at.Rank(scores) - 1;
  const Value shares = at.Op("SoftmaxV2", {scores}, {{"axes", AttrValue::Ints({last})}});
  return at.Cast(at.MatMul(shares, at.Wide(v)), at.dtype(q));
}

Value AddGiven(Lowering& at, Value x, std::optional<Value> summand) {
  return summand ? at.Add(x, *summand) : x;
}

// ---- Attention ----

// The parts of the product with the weights: widths of q, k and v.
std::vector<int64_t> WidthsOf(Lowering& at, int64_t all) {
  std::vector<int64_t> widths = at.IntList("qkv_hidden_sizes");
  if (widths.empty()) widths.assign(3, all / 3);
  if (at.ok() && (widths.size() != 3 || widths[0] + widths[1] + widths[2] != all)) {
    at.Fail(Code::kCorrupt, "qkv_hidden_sizes do not add up to the {} columns of the weights", all);
  }
  return widths;
}

// From the products of q, k and v with their weights, side by side; inputs of the node from `mask`
// on: mask, past, and for `bias` what is added to scores.
void AttendProduct(Lowering& at, Value product, int mask, int past, int bias) {
  if (at.Int("do_rotary", 0) != 0) return at.Refuse("do_rotary is not translated");
  const std::vector<int64_t> widths = WidthsOf(at, at.Dim(product, 2));
  const int64_t heads = at.Int("num_heads", 1);
  if (!at.ok()) return;
  const Value q = SplitHeads(at, Columns(at, product, 0, widths[0]), heads);
  Value k = SplitHeads(at, Columns(at, product, widths[0], widths[0] + widths[1]), heads);
  Value v = SplitHeads(at, Columns(at, product, widths[0] + widths[1], at.Dim(product, 2)), heads);
  if (at.has(past)) {
    const auto before = [&](int64_t part) {
      return at.Squeeze(at.Slice(at.in(past), 0, part, part + 1), {0});
    };
    k = at.Concat({before(0), k}, 2);
    v = at.Concat({before(1), v}, 2);
  }
  if (at.wants(1)) at.Out(1, at.Concat({at.Unsqueeze(k, {0}), at.Unsqueeze(v, {0})}, 0));
  std::vector<std::optional<Value>> summands = {MaskOf(at, mask, q, k)};
  if (at.Int("unidirectional", 0) != 0) summands.emplace_back(CausalMask(at, q, k));
  if (bias >= 0) summands.push_back(at.Given(bias));
  at.Out(0, JoinHeads(at, Attend(at, q, k, v, ScaleOf(at, q), summands)));
}

void LowerAttention(Lowering& at) {
  if (at.has(6)) return at.Refuse("past_sequence_length (a shared cache) is not translated");
  const Value product = AsNode(at, "MatMul", 13, {at.in(0), at.in(1)})[0];
  AttendProduct(at, AddGiven(at, product, at.Given(2)), 3, 4, 5);
}

// Bytes: the product is that of integers.
void LowerQAttention(Lowering& at) {
  const Value sum = ByteProduct(at, at.in(0), at.Given(6), at.in(1), at.Given(7));
  const auto scale = [&](int input) {
    return at.KnownSize(at.in(input), 0) == 1 ? at.Reshape(at.in(input), {}) : at.in(input);
  };
  const Value scaled = at.Mul(at.Cast(sum, DataType::kFloat), at.Mul(scale(3), scale(4)));
  AttendProduct(at, at.Add(scaled, at.in(2)), 5, 8, -1);
}

// ---- MultiHeadAttention ----

void LowerMultiHeadAttention(Lowering& at) {
  const int64_t heads = at.Int("num_heads", 1);
  for (const int cached : {8, 9}) {
    if (at.has(cached)) return at.Refuse("a shared cache (input {}) is not translated", cached);
  }
  Value q = at.in(0), k, v;
  const int rank = at.Rank(q);
  if (!at.ok()) return;
  const auto packed = [&](Value from, int64_t part) {  // [B, S, heads, parts, size]
    return at.Transpose(at.Squeeze(at.Slice(from, 3, part, part + 1), {3}), {0, 2, 1, 3});
  };
  // The bias has the widths of q, k and v, one after the other.
  const auto biased = [&](Value x, int64_t begin) {
    if (!at.has(3)) return x;
    return at.Add(x, at.Slice(at.in(3), 0, begin, begin + at.Dim(x, 2)));
  };
  if (rank == 5) {
    if (at.has(3)) return at.Refuse("a bias beside q, k and v in one tensor is not translated");
    k = packed(q, 1), v = packed(q, 2), q = packed(q, 0);
  } else {
    if (!at.has(1)) return at.Fail(Code::kCorrupt, "has a query of {} dimensions and no key", rank);
    const int64_t width = at.Dim(q, 2);
    q = SplitHeads(at, biased(q, 0), heads);
    const int of_key = at.Rank(at.in(1));
    if (of_key == 5) {
      k = packed(at.in(1), 0), v = packed(at.in(1), 1);
    } else if (of_key == 4) {
      k = at.in(1), v = at.in(2);  // of heads already, without a bias
    } else {
      k = SplitHeads(at, biased(at.in(1), width), heads);
      v = SplitHeads(at, biased(at.in(2), width + at.Dim(at.in(1), 2)), heads);
    }
  }
  if (at.has(6)) k = at.Concat({at.in(6), k}, 2);
  if (at.has(7)) v = at.Concat({at.in(7), v}, 2);
  if (at.wants(1)) at.Out(1, k);
  if (at.wants(2)) at.Out(2, v);
  if (at.wants(3)) return at.Refuse("output 3 (scores) is not translated");
  std::vector<std::optional<Value>> summands = {MaskOf(at, 4, q, k), at.Given(5)};
  if (at.Int("unidirectional", 0) != 0) summands.emplace_back(CausalMask(at, q, k));
  at.Out(0, JoinHeads(at, Attend(at, q, k, v, ScaleOf(at, q), summands)));
}

// ---- rotation ----

// x [.., size] with its first elements rotated by angles whose cosines and sines are rows of half
// as many: pairs are neighbours, or lie half a row apart.
Value Rotated(Lowering& at, Value x, Value cosines, Value sines, bool neighbours) {
  const int64_t half = at.Dim(cosines, at.Rank(cosines) - 1), size = at.Dim(x, at.Rank(x) - 1);
  const int rank = at.Rank(x);
  if (!at.ok()) return x;
  const Value turned = 2 * half == size ? x : Columns(at, x, 0, 2 * half);
  Value a, b;
  if (neighbours) {
    const Value pairs = at.ReshapeAfter(turned, rank - 1, {half, 2});
    a = at.Squeeze(Columns(at, pairs, 0, 1), {rank});
    b = at.Squeeze(Columns(at, pairs, 1, 2), {rank});
  } else {
    a = Columns(at, turned, 0, half);
    b = Columns(at, turned, half, 2 * half);
  }
  const Value first = at.Sub(at.Mul(a, cosines), at.Mul(b, sines));
  const Value second = at.Add(at.Mul(b, cosines), at.Mul(a, sines));
  Value y;
  if (neighbours) {
    const Value pairs =
        at.Concat({at.Unsqueeze(first, {rank}), at.Unsqueeze(second, {rank})}, rank);
    y = at.ReshapeAfter(pairs, rank - 1, {2 * half});
  } else {
    y = at.Concat({first, second}, rank - 1);
  }
  return 2 * half == size ? y : at.Concat({y, Columns(at, x, 2 * half, size)}, rank - 1);
}

// Inputs: x [B, S, heads * size] or [B, heads, S, size], positions [1] (of the first) or [B, S],
// cosines and sines by position.
void LowerRotaryEmbedding(Lowering& at) {
  const Value x = at.in(0), positions = at.Cast(at.in(1), DataType::kInt64);
  const int rank = at.Rank(x);
  int64_t heads = at.Int("num_heads", 0);
  if (at.Int("is_packed_batching", 0) != 0) return at.Refuse("is_packed_batching");
  if (at.ok() && rank != 3 && rank != 4) return at.Refuse("a tensor of {} dimensions", rank);
  if (rank == 3 && heads == 0) heads = at.Dim(x, 2) / std::max<int64_t>(2 * at.Dim(at.in(2), 1), 1);
  const Value split = rank == 3 ? SplitHeads(at, x, heads) : x;
  Value places = positions;
  if (at.Rank(positions) == 1) {
    const Value count = CountTo(at, at.Reshape(at.DimOf(split, 2), {}), DataType::kInt64);
    places = at.Unsqueeze(at.Add(count, positions), {0});
  }
  const auto rows = [&](int table) {
    return at.Unsqueeze(at.Gather(at.in(table), places, 0), {1});
  };
  const Value y = Rotated(at, split, rows(2), rows(3), at.Int("interleaved", 0) != 0);
  at.Out(0, rank == 3 ? JoinHeads(at, y) : y);
}

// ---- GroupQueryAttention ----

// Keys or values of all positions: those of the cache, of which each row of the batch has `before`
// [B, 1], and the new ones after them. `count`: of the positions, a scalar.
Value WithCache(Lowering& at, std::optional<Value> cache, Value fresh, Value before, Value count) {
  if (!cache) return fresh;
  const Value all = at.Concat({*cache, fresh}, 2);
  // Places of the cache that are not filled yet are left out. A shared cache is as long as all.
  const Value room = at.DimOf(*cache, 2);
  const Value places = at.Unsqueeze(CountTo(at, count, DataType::kInt64), {0});
  const Value behind = at.Add(places, at.Sub(room, before));
  const Value last = at.Sub(at.DimOf(all, 2), at.IntScalar(1));
  const Value chosen = at.Min(at.Select(at.Binary("Less", places, before), places, behind), last);
  return at.Op("GatherV2", {all, chosen, at.IntScalar(2)}, {{"batch_dims", 1}});
}

// Inputs: query, key, value (or all of them in the query), cache of keys and values, lengths less
// one of the rows of the batch, largest length, cosines, sines, positions, summands of scores.
void LowerGroupQueryAttention(Lowering& at) {
  const int64_t heads = at.Int("num_heads", 1), groups = at.Int("kv_num_heads", 1);
  if (at.Int("smooth_softmax", 0) > 0 || at.has(11)) return at.Refuse("sinks are not translated");
  for (int input = 12; input < at.inputs(); ++input) {
    if (at.has(input)) return at.Refuse("input {} is not translated", input);
  }
  if (at.wants(3)) return at.Refuse("output 3 (scores) is not translated");
  Value query = at.in(0);
  const int64_t width = at.Dim(query, 2);
  if (at.ok() && (heads < 1 || groups < 1 || heads % groups != 0)) {
    return at.Fail(Code::kCorrupt, "{} heads in {} groups; expected a multiple", heads, groups);
  }
  if (!at.ok()) return;
  Value key, value;
  if (at.has(1)) {
    key = at.in(1), value = at.in(2);
  } else {
    const int64_t size = width / (heads + 2 * groups), first = heads * size;
    key = Columns(at, query, first, first + groups * size);
    value = Columns(at, query, first + groups * size, width);
    query = Columns(at, query, 0, first);
  }
  Value q = SplitHeads(at, query, heads), k = SplitHeads(at, key, groups);
  Value v = SplitHeads(at, value, groups);
  const Value rows = at.Reshape(at.DimOf(q, 2), {});
  const Value largest = at.Reshape(at.Cast(at.in(6), DataType::kInt64), {});
  // Of each row of the batch: positions in all, and those before the new ones; none in a prompt.
  const Value total =
      at.Add(at.Reshape(at.Cast(at.in(5), DataType::kInt64), {-1, 1}), at.IntScalar(1));
  const Value prompt = at.Binary("Equal", rows, largest);
  const Value before = at.Select(prompt, at.Like(0, total), at.Sub(total, rows));
  const Value steps = at.Unsqueeze(CountTo(at, rows, DataType::kInt64), {0});
  const Value positions = at.Add(before, steps);  // of queries, [B, S]
  if (at.Int("do_rotary", 0) != 0) {
    const Value places = at.has(9) ? at.Cast(at.in(9), DataType::kInt64) : positions;
    const auto table = [&](int input) {
      return at.Unsqueeze(at.Gather(at.in(input), places, 0), {1});
    };
    const bool neighbours = at.Int("rotary_interleaved", 0) != 0;
    q = Rotated(at, q, table(7), table(8), neighbours);
    k = Rotated(at, k, table(7), table(8), neighbours);
  }
  Value count = largest;
  if (at.has(3)) count = at.Max(count, at.Reshape(at.DimOf(at.in(3), 2), {}));
  k = WithCache(at, at.Given(3), k, before, count);
  v = WithCache(at, at.Given(4), v, before, count);
  at.Out(1, k);
  at.Out(2, v);
  // Keys [B, 1, 1, 1, T] against queries [B, 1, 1, S, 1].
  const Value keys = CountTo(at, at.Reshape(at.DimOf(k, 2), {}), DataType::kInt64);
  const Value queries = at.Unsqueeze(positions, {1, 2, 4});
  Value seen = at.Binary("LessEqual", keys, queries);
  if (const int64_t window = at.Int("local_window_size", -1); window > 0) {
    const Value first = at.Sub(queries, at.IntScalar(window));
    seen = at.Binary("LogicalAnd", seen, at.Binary("Greater", keys, first));
  }
  std::vector<std::optional<Value>> summands = {
      Filler(at, seen, std::numeric_limits<float>::lowest())};
  const int64_t size = at.Dim(q, 3);
  if (at.has(10)) {
    const Value bias = at.in(10);
    summands.emplace_back(
        at.Dim(bias, 1) == 1
            ? at.Unsqueeze(bias, {1})
            : at.ReshapeTo(bias,
                           at.Concat({at.DimOf(bias, 0), at.Ints({groups, heads / groups}),
                                      at.DimOf(bias, 2), at.DimOf(bias, 3)},
                                     0),
                           5));
  }
  const auto by_groups = [&](Value x) {  // [B, groups, heads of a group, S, size]
    const Value dims = at.Concat(
        {at.DimOf(x, 0), at.Ints({groups, heads / groups}), at.DimOf(x, 2), at.Ints({size})}, 0);
    return at.ReshapeTo(x, dims, 5);
  };
  const Value y = Attend(at, by_groups(q), at.Unsqueeze(k, {2}), at.Unsqueeze(v, {2}),
                         ScaleOf(at, q), summands, at.Float("softcap", 0));
  const Value back =
      at.Concat({at.DimOf(q, 0), at.Ints({heads}), at.DimOf(q, 2), at.Ints({size})}, 0);
  const Value whole = at.ReshapeTo(y, back, 4);
  at.emitter().Hint(whole, {at.dtype(q), Shape({-1, heads, -1, size})});
  at.Out(0, JoinHeads(at, whole));
}

}  // namespace

void AddMicrosoftAttentionRows(std::vector<OnnxOp>& rows) {
  constexpr std::string_view kHere = kMicrosoftDomain;
  const OnnxOp all[] = {
      {"Attention", 1, LowerAttention, "BatchMatMulV2, SoftmaxV2",
       "T=R T T? J? T? T? J? do_rotary:int mask_filter_value:float num_heads:int! "
       "past_present_share_buffer:int qkv_hidden_sizes:ints rotary_embedding_dim:int scale:float "
       "unidirectional:int",
       kHere},
      {"GroupQueryAttention", 1, LowerGroupQueryAttention, "GatherV2, BatchMatMulV2, SoftmaxV2",
       "T=R T? T? T? T? J J T? T? L? T? T? _? _? do_rotary:int k_quant_type:string "
       "kv_cache_bit_width:int kv_num_heads:int! "
       "local_window_size:int num_heads:int! qk_output:int rotary_interleaved:int scale:float "
       "smooth_softmax:int softcap:float v_quant_type:string",
       kHere},
      {"MultiHeadAttention", 1, LowerMultiHeadAttention, "BatchMatMulV2, SoftmaxV2",
       "T=R T? T? T? J? T? T? T? J? J? mask_filter_value:float num_heads:int! scale:float "
       "unidirectional:int",
       kHere},
      {"QAttention", 1, LowerQAttention, "BatchMatMulV2, Cast, SoftmaxV2",
       "T=Y U=Y V=R V V J? T? U? V? do_rotary:int mask_filter_value:float num_heads:int! "
       "past_present_share_buffer:int scale:float unidirectional:int",
       kHere},
      {"RotaryEmbedding", 1, LowerRotaryEmbedding, "GatherV2, Mul, Sub, Add",
       "T=R L T T interleaved:int is_packed_batching:int num_heads:int rotary_embedding_dim:int "
       "scale:float",
       kHere},
  };
  rows.insert(rows.end(), std::begin(all), std::end(all));
}

}  // namespace npumesh
