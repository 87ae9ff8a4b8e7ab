// DequantRopeQuantKvcache and QkvRmsNormRopeCache against their definitions in double, on drawn
// cases.
#include <random>

#include "tests/unit/ops/attention/attention_reference.h"

namespace npumesh {
namespace {

using Doubles = std::vector<double>;

size_t At(int64_t index) {
  return static_cast<size_t>(index);
}

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}

  int64_t Between(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }
  bool Sometimes() { return Between(0, 1) == 1; }
  // Numbers in [least, most] that the type holds.
  Doubles Numbers(DataType dtype, int64_t count, double least, double most) {
    std::uniform_real_distribution<double> number(least, most);
    Doubles values(At(count));
    for (double& value : values) value = Rounded(dtype, number(random_));
    return values;
  }
  // Different slots below `slots`, and sometimes none (-1).
  std::vector<int64_t> Slots(int64_t count, int64_t slots) {
    std::vector<int64_t> all(At(slots));
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
    std::shuffle(all.begin(), all.end(), random_);
    all.resize(At(count));
    for (int64_t& slot : all) slot = Between(0, 4) == 0 ? -1 : slot;
    return all;
  }

 private:
  std::mt19937 random_;
};

// x rotated by halves.
Doubles Rotated(const Doubles& x, const double* cos, const double* sin) {
  const size_t half = x.size() / 2;
  Doubles y(x.size());
  for (size_t i = 0; i < half; ++i) {
    y[i] = x[i] * cos[i] - x[half + i] * sin[i];
    y[half + i] = x[half + i] * cos[half + i] + x[i] * sin[half + i];
  }
  return y;
}

Doubles Normalised(const Doubles& x, const Doubles& gamma, double epsilon) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  Doubles y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    y[i] = x[i] / std::sqrt(squares / static_cast<double>(x.size()) + epsilon) * gamma[i];
  }
  return y;
}

// What a cache of int8 holds. Near the middle of two integers either is right.
void ExpectQuantised(double seen, double exact) {
  const double bounded = std::clamp(exact, -128.0, 127.0);
  EXPECT_LE(std::abs(seen - bounded), 0.501) << exact;
}

void ExpectNear(DataType dtype, double seen, double exact) {
  const double unit = dtype == DataType::kFloat ? 1e-5 : dtype == DataType::kFloat16 ? 1e-3 : 8e-3;
  EXPECT_NEAR(seen, exact, unit * std::max(1.0, std::abs(exact)));
}

// A joint projection: heads of query, key and value.
struct ProjectionSizes {
  int64_t batch = 0, rows = 0, width = 0, heads = 0, kv_heads = 0;

  int64_t tokens() const { return batch * rows; }
  int64_t all() const { return (heads + 2 * kv_heads) * width; }
  int64_t kv() const { return kv_heads * width; }
};

DataType DrawnFloat(Draw& draw) {
  const DataType types[] = {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16};
  return types[draw.Between(0, 2)];
}

// ---- DequantRopeQuantKvcache ----

struct RopeCase : ProjectionSizes {
  DataType to = DataType::kFloat;
  bool integers = false, sequences = false, paged = false, offsets = false;
  int64_t blocks = 0, block_rows = 0;
  Doubles x, cos, sin, key_scale, value_scale, key_offset, value_offset;
  Doubles weight_scale, activation_scale, bias;
  DataType bias_type = DataType::kFloat;
  std::vector<int64_t> slots;

  explicit RopeCase(Draw& draw) {
    to = DrawnFloat(draw);
    integers = draw.Sometimes();
    sequences = draw.Sometimes();
    paged = draw.Sometimes();
    offsets = draw.Sometimes();
    batch = draw.Between(1, 3);
    rows = sequences ? draw.Between(1, 4) : 1;
    width = 2 * draw.Between(1, 5);
    heads = draw.Between(1, 4);
    kv_heads = draw.Between(1, 2);
    blocks = paged ? 4 : draw.Between(batch, 4);
    block_rows = paged ? 3 : 8;
    const DataType from = integers ? DataType::kInt32 : to;
    const double most = integers ? 1000 : 2;
    x = draw.Numbers(from, tokens() * all(), -most, most);
    cos = draw.Numbers(to, tokens() * width, -1, 1);
    sin = draw.Numbers(to, tokens() * width, -1, 1);
    const int64_t factors = draw.Sometimes() ? kv() : width;  // or those of one head for all
    key_scale = draw.Numbers(DataType::kFloat, factors, 0.01, 0.1);
    value_scale = draw.Numbers(DataType::kFloat, factors, 0.01, 0.1);
    key_offset = draw.Numbers(DataType::kFloat, factors, -9, 9);
    value_offset = draw.Numbers(DataType::kFloat, factors, -9, 9);
    slots = paged ? draw.Slots(tokens(), blocks * block_rows)
                  : draw.Slots(batch, block_rows - rows + 1);
    if (!integers) return;
    weight_scale = draw.Numbers(DataType::kFloat, all(), 0.001, 0.002);
    if (draw.Sometimes()) activation_scale = draw.Numbers(DataType::kFloat, tokens(), 0.5, 2);
    if (!draw.Sometimes()) return;
    bias_type = draw.Sometimes() ? DataType::kInt32 : to;
    bias = draw.Numbers(bias_type, all(), -3, 3);
  }

  OpCall Call() const {
    const auto table = sequences ? Shape({batch, rows, 1, width}) : Shape({batch, width});
    const Shape cache{blocks, block_rows, kv_heads, width};
    const auto floats = [](const Doubles& values) {
      return FromDoubles(DataType::kFloat, {static_cast<int64_t>(values.size())}, values);
    };
    const Tensor none = Tensor::Allocate({DataType::kFloat, {0}});
    OpCall call{
        .type = "DequantRopeQuantKvcache",
        .inputs =
            {{"x", FromDoubles(integers ? DataType::kInt32 : to,
                               sequences ? Shape({batch, rows, all()}) : Shape({batch, all()}), x)},
             {"cos", FromDoubles(to, table, cos)},
             {"sin", FromDoubles(to, table, sin)},
             {"k_cache", FromDoubles(DataType::kInt8, cache, Doubles(At(cache.elements()), 77))},
             {"v_cache", FromDoubles(DataType::kInt8, cache, Doubles(At(cache.elements()), 55))},
             {"indices", MakeInts(slots)},
             {"scale_k", floats(key_scale)},
             {"scale_v", floats(value_scale)},
             {"offset_k", offsets ? floats(key_offset) : none},
             {"offset_v", offsets ? floats(value_offset) : none}},
        .attrs = {{"size_splits", AttrValue::Ints({heads * width, kv(), kv()})},
                  {"cache_mode", AttrValue::String(paged ? "page" : "contiguous")}}};
    if (integers) {
      call.inputs.push_back({"weight_scale", floats(weight_scale)});
      call.inputs.push_back({"activation_scale", floats(activation_scale)});
      call.inputs.push_back({"bias", bias.empty() ? none : FromDoubles(bias_type, {all()}, bias)});
    }
    return call;
  }

  // Element i of the projection of a token.
  double Projected(int64_t token, int64_t i) const {
    double value = x[At(token * all() + i)];
    if (!integers) return value;
    if (!bias.empty() && bias_type == DataType::kInt32) value += bias[At(i)];
    value *= weight_scale[At(i)];
    if (!activation_scale.empty()) value *= activation_scale[At(token)];
    return !bias.empty() && bias_type != DataType::kInt32 ? value + bias[At(i)] : value;
  }

  // The heads of a token that begin at element `first`.
  Doubles Part(int64_t token, int64_t first, int64_t count, bool rotated) const {
    Doubles part;
    for (int64_t head = 0; head < count; ++head) {
      Doubles vector;
      for (int64_t i = 0; i < width; ++i) {
        vector.push_back(Projected(token, first + head * width + i));
      }
      if (rotated) vector = Rotated(vector, &cos[At(token * width)], &sin[At(token * width)]);
      part.insert(part.end(), vector.begin(), vector.end());
    }
    return part;
  }

  // -1: the token is not kept.
  int64_t CacheRow(int64_t token) const {
    const int64_t slot = slots[At(paged ? token : token / rows)];
    if (slot < 0 || paged) return slot;
    return token / rows * block_rows + slot + token % rows;
  }

  void Check(const std::vector<Tensor>& out) const {
    const int64_t first[] = {0, heads * width, heads * width + kv()};
    const int64_t counts[] = {heads, kv_heads, kv_heads};
    for (size_t p = 0; p < 3; ++p) {
      const Doubles seen = ToDoubles(out[p]);
      ASSERT_EQ(out[p].dtype(), to);
      std::map<int64_t, int64_t> token_of;  // by row of the cache
      for (int64_t token = 0; token < tokens(); ++token) {
        token_of[CacheRow(token)] = token;
        const Doubles exact = Part(token, first[p], counts[p], p < 2);
        for (size_t i = 0; i < exact.size(); ++i) {
          ExpectNear(to, seen[At(token) * exact.size() + i], exact[i]);
        }
      }
      if (p > 0) CheckCache(ToDoubles(out[p + 2]), p, first[p], token_of);
    }
  }

  void CheckCache(const Doubles& cache, size_t part, int64_t first,
                  const std::map<int64_t, int64_t>& token_of) const {
    const Doubles& scale = part == 1 ? key_scale : value_scale;
    const Doubles& offset = part == 1 ? key_offset : value_offset;
    for (int64_t row = 0; row < blocks * block_rows; ++row) {
      const auto found = token_of.find(row);
      const Doubles exact =
          found == token_of.end() ? Doubles() : Part(found->second, first, kv_heads, part == 1);
      for (int64_t i = 0; i < kv(); ++i) {
        const double seen = cache[At(row * kv() + i)];
        if (exact.empty()) {
          EXPECT_EQ(seen, part == 1 ? 77 : 55);
        } else {
          const size_t factor = At(i) % scale.size();
          ExpectQuantised(seen, exact[At(i)] / scale[factor] + (offsets ? offset[factor] : 0));
        }
      }
    }
  }
};

TEST(DequantRopeQuantKvcache, GivesWhatItsDefinitionSays) {
  Draw draw(1);
  for (int i = 0; i < 80; ++i) {
    SCOPED_TRACE(i);
    const RopeCase drawn(draw);
    const Result<std::vector<Tensor>> out = RunOp(drawn.Call());
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    drawn.Check(*out);
    if (HasFailure()) return;
  }
}

RopeCase SmallRope(bool integers) {
  for (unsigned seed = 0;; ++seed) {
    Draw draw(seed);
    RopeCase drawn(draw);
    if (drawn.integers == integers && drawn.sequences && !drawn.paged) return drawn;
  }
}

TEST(DequantRopeQuantKvcache, RefusesWhatDoesNotFit) {
  RopeCase late = SmallRope(false);
  late.slots[0] = late.block_rows;
  ExpectFails(late.Call(), Code::kInvalidArgument, {"token 0", "slot 8", "has 8"});
  OpCall splits = SmallRope(false).Call();
  splits.attrs[0].second = AttrValue::Ints({1, 2});
  ExpectFails(splits, Code::kInvalidArgument, {"size_splits"});
  OpCall mode = SmallRope(false).Call();
  mode.attrs[1].second = AttrValue::String("Norm");
  ExpectFails(mode, Code::kInvalidArgument, {"cache_mode", "Norm"});
  OpCall dynamic = SmallRope(false).Call();
  dynamic.attrs.emplace_back("quant_mode", AttrValue::String("dynamic"));
  ExpectFails(dynamic, Code::kUnsupported, {"dynamic"});
  OpCall integers = SmallRope(true).Call();
  integers.inputs[10].value = Tensor::Allocate({DataType::kFloat, {0}});
  ExpectFails(integers, Code::kInvalidArgument, {"weight_scale"});
  OpCall cos = SmallRope(false).Call();
  cos.inputs[1].value = cos.inputs[2].value = Tensor::Allocate({DataType::kFloat, {1, 3}});
  ExpectFails(cos, Code::kInvalidArgument, {"cos"});
}

// ---- QkvRmsNormRopeCache ----

struct NormCase : ProjectionSizes {
  DataType dtype = DataType::kFloat;
  bool quantised = false, offsets = false;
  int64_t tile = 0;
  static constexpr int64_t kBlocks = 3, kBlockSize = 5;
  Doubles qkv, cos, sin, q_gamma, k_gamma, k_scale, v_scale, k_offset, v_offset;
  std::vector<int64_t> slots;

  explicit NormCase(Draw& draw) {
    dtype = DrawnFloat(draw);
    quantised = draw.Sometimes();
    offsets = draw.Sometimes();
    batch = draw.Between(1, 3);
    rows = draw.Between(1, 3);
    tile = draw.Between(1, 4);
    width = 2 * tile * draw.Between(1, 3);
    heads = draw.Between(1, 3);
    kv_heads = draw.Between(1, 2);
    qkv = draw.Numbers(dtype, tokens() * all(), -3, 3);
    cos = draw.Numbers(dtype, tokens() * width, -1, 1);
    sin = draw.Numbers(dtype, tokens() * width, -1, 1);
    q_gamma = draw.Numbers(dtype, width, -2, 2);
    k_gamma = draw.Numbers(dtype, width, -2, 2);
    k_scale = draw.Numbers(DataType::kFloat, kv(), 0.02, 0.1);
    v_scale = draw.Numbers(DataType::kFloat, kv(), 0.02, 0.1);
    k_offset = draw.Numbers(DataType::kFloat, kv(), -9, 9);
    v_offset = draw.Numbers(DataType::kFloat, kv(), -9, 9);
    slots = draw.Slots(tokens(), kBlocks * kBlockSize);
  }

  OpCall Call() const {
    const DataType cache_type = quantised ? DataType::kInt8 : dtype;
    const Shape cache{kBlocks, kv() / tile, kBlockSize, tile};
    const auto factors = [&](bool given, const Doubles& values) {
      return given ? FromDoubles(DataType::kFloat, {kv_heads, width}, values)
                   : Tensor::Allocate({DataType::kFloat, {0}});
    };
    return {
        .type = "QkvRmsNormRopeCache",
        .inputs = {{"qkv", FromDoubles(dtype, {tokens(), all()}, qkv)},
                   {"q_gamma", FromDoubles(dtype, {width}, q_gamma)},
                   {"k_gamma", FromDoubles(dtype, {width}, k_gamma)},
                   {"cos", FromDoubles(dtype, {tokens(), width}, cos)},
                   {"sin", FromDoubles(dtype, {tokens(), width}, sin)},
                   {"index", MakeInts(slots)},
                   {"q_out", Tensor::Allocate({dtype, {tokens(), heads * width}})},
                   {"k_cache", FromDoubles(cache_type, cache, Doubles(At(cache.elements()), 77))},
                   {"v_cache", FromDoubles(cache_type, cache, Doubles(At(cache.elements()), 55))},
                   {"k_scale", factors(quantised, k_scale)},
                   {"v_scale", factors(quantised, v_scale)},
                   {"k_offset", factors(quantised && offsets, k_offset)},
                   {"v_offset", factors(quantised && offsets, v_offset)}},
        .attrs = {{"qkv_size", AttrValue::Ints({batch, rows, heads + 2 * kv_heads, width})},
                  {"head_nums", AttrValue::Ints({heads, kv_heads, kv_heads})}}};
  }

  // Head `head` of a token, counted through query, key and value.
  Doubles Head(int64_t token, int64_t head) const {
    const auto begin = qkv.begin() + token * all() + head * width;
    Doubles vector(begin, begin + width);
    if (head >= heads + kv_heads) return vector;
    vector = Normalised(vector, head < heads ? q_gamma : k_gamma, 1e-6);
    return Rotated(vector, &cos[At(token * width)], &sin[At(token * width)]);
  }

  void Check(const std::vector<Tensor>& out) const {
    ASSERT_EQ(out.size(), 6u);
    EXPECT_EQ(ToDoubles(out[0]), ToDoubles(out[3]));
    const Doubles parts[] = {ToDoubles(out[3]), ToDoubles(out[4]), ToDoubles(out[5])};
    Doubles keys = ToDoubles(out[1]), values = ToDoubles(out[2]);
    for (int64_t token = 0; token < tokens(); ++token) {
      for (int64_t head = 0; head < heads + 2 * kv_heads; ++head) {
        const Doubles exact = Head(token, head);
        const int part = head < heads ? 0 : head < heads + kv_heads ? 1 : 2;
        const int64_t in_part = part == 0 ? head : (head - heads) % kv_heads;
        const int64_t count = part == 0 ? heads : kv_heads;
        for (int64_t i = 0; i < width; ++i) {
          const int64_t element = in_part * width + i;
          ExpectNear(dtype, parts[part][At(token * count * width + element)], exact[At(i)]);
          const int64_t slot = slots[At(token)];
          if (part == 0 || slot < 0) continue;
          double& cached =
              (part == 1
                   ? keys
                   : values)[At(((slot / kBlockSize * (kv() / tile) + element / tile) * kBlockSize +
                                 slot % kBlockSize) *
                                    tile +
                                element % tile)];
          const Doubles& scale = part == 1 ? k_scale : v_scale;
          const Doubles& offset = part == 1 ? k_offset : v_offset;
          if (quantised) {
            ExpectQuantised(
                cached, exact[At(i)] / scale[At(element)] + (offsets ? offset[At(element)] : 0));
          } else {
            ExpectNear(dtype, cached, exact[At(i)]);
          }
          cached = part == 1 ? 77 : 55;  // seen
        }
      }
    }
    for (const double left : keys) EXPECT_EQ(left, 77);
    for (const double left : values) EXPECT_EQ(left, 55);
  }
};

TEST(QkvRmsNormRopeCache, GivesWhatItsDefinitionSays) {
  Draw draw(2);
  for (int i = 0; i < 80; ++i) {
    SCOPED_TRACE(i);
    const NormCase drawn(draw);
    const Result<std::vector<Tensor>> out = RunOp(drawn.Call());
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    drawn.Check(*out);
    if (HasFailure()) return;
  }
}

TEST(QkvRmsNormRopeCache, RefusesWhatDoesNotFit) {
  Draw draw(3);
  NormCase drawn(draw);
  while (!drawn.quantised) drawn = NormCase(draw);
  OpCall scale = drawn.Call();
  scale.inputs[9].value = Tensor::Allocate({DataType::kFloat, {0}});
  ExpectFails(scale, Code::kInvalidArgument, {"int8", "k_scale"});
  OpCall heads = drawn.Call();
  heads.attrs[1].second = AttrValue::Ints({drawn.heads, drawn.kv_heads, drawn.kv_heads + 1});
  ExpectFails(heads, Code::kInvalidArgument, {"head_nums"});
  constexpr int64_t kWild = std::numeric_limits<int64_t>::max();
  heads.attrs[1].second = AttrValue::Ints({kWild, kWild, kWild});
  ExpectFails(heads, Code::kInvalidArgument, {"head_nums"});
  OpCall size = drawn.Call();
  size.attrs[0].second = AttrValue::Ints({drawn.batch + 1, drawn.rows, 3, drawn.width});
  ExpectFails(size, Code::kInvalidArgument, {"qkv_size"});
  size.attrs[0].second = AttrValue::Ints({kWild, 2, kWild, 2});
  ExpectFails(size, Code::kInvalidArgument, {"qkv_size"});
  OpCall slots = drawn.Call();
  slots.inputs[7].value =
      Tensor::Allocate({DataType::kInt8, {3, drawn.kv() / drawn.tile, 0, drawn.tile}});
  ExpectFails(slots, Code::kInvalidArgument, {"v_cache", "as many slots"});
  OpCall mode = drawn.Call();
  mode.attrs.emplace_back("cache_mode", AttrValue::String("Norm"));
  ExpectFails(mode, Code::kUnsupported, {"Norm"});
  drawn.slots[0] = 15;
  ExpectFails(drawn.Call(), Code::kInvalidArgument, {"slot 15", "has 15"});
  drawn.slots[0] = 0;
  drawn.quantised = false;
  OpCall plain = drawn.Call();
  plain.inputs[9].value = FromDoubles(DataType::kFloat, {drawn.kv()}, drawn.k_scale);
  ExpectFails(plain, Code::kInvalidArgument, {"takes neither k_scale"});
}

}  // namespace
}  // namespace npumesh
