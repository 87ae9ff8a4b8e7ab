// ScatterPaKvCache and KvRmsNormRopeCache.
#include "tests/unit/ops/attention/attention_reference.h"

namespace npumesh {
namespace {

Tensor Numbered(DataType dtype, const Shape& shape, double first) {
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<double>(i);
  return FromDoubles(dtype, shape, values);
}

// ---- ScatterPaKvCache ----

OpCall Scatter(Tensor key, Tensor key_cache, std::vector<int32_t> slots, Tensor value,
               Tensor value_cache) {
  const auto count = static_cast<int64_t>(slots.size());
  return {.type = "ScatterPaKvCache",
          .inputs = {{"key", std::move(key)},
                     {"key_cache", std::move(key_cache)},
                     {"slot_mapping", Make<int32_t>(DataType::kInt32, {count}, slots)},
                     {"value", std::move(value)},
                     {"value_cache", std::move(value_cache)}}};
}

TEST(ScatterPaKvCache, PutsRowsIntoTheirSlots) {
  for (const DataType dtype : {DataType::kInt8, DataType::kFloat16, DataType::kFloat}) {
    const Tensor key = Numbered(dtype, {3, 2, 4}, 1);
    const Tensor value = Numbered(dtype, {3, 2, 3}, 1);
    const Tensor keys = Numbered(dtype, {2, 4, 2, 4}, 0);
    const Tensor values = Numbered(dtype, {2, 4, 2, 3}, 0);
    const std::vector<int32_t> slots = {6, -1, 1};
    const Result<std::vector<Tensor>> out = RunOp(Scatter(key, keys, slots, value, values));
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    std::vector<double> want_keys = ToDoubles(keys);
    std::vector<double> want_values = ToDoubles(values);
    for (size_t t = 0; t < 3; ++t) {
      if (slots[t] < 0) continue;
      const auto slot = static_cast<size_t>(slots[t]);
      for (size_t i = 0; i < 8; ++i) want_keys[slot * 8 + i] = ToDoubles(key)[t * 8 + i];
      for (size_t i = 0; i < 6; ++i) want_values[slot * 6 + i] = ToDoubles(value)[t * 6 + i];
    }
    EXPECT_EQ(ToDoubles((*out)[0]), want_keys);
    EXPECT_EQ(ToDoubles((*out)[1]), want_values);
  }
}

TEST(ScatterPaKvCache, TilesAndAbsentValues) {
  const Tensor key = Numbered(DataType::kFloat16, {2, 1, 32}, 1);
  const Tensor keys = Numbered(DataType::kFloat16, {2, 2, 4, 16}, 0);
  const Tensor none = Tensor::Allocate({DataType::kFloat16, {0}});
  OpCall call = Scatter(key, keys, {5, 0}, none, none);
  call.attrs = {{"cache_mode", AttrValue::String("PA_NZ")}};
  const Result<std::vector<Tensor>> out = RunOp(call);
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  std::vector<double> want = ToDoubles(keys);
  for (const auto& [token, slot] : std::vector<std::pair<int64_t, int64_t>>{{0, 5}, {1, 0}}) {
    for (int64_t i = 0; i < 32; ++i) {
      want[Index({2, 2, 4, 16}, {slot / 4, i / 16, slot % 4, i % 16})] =
          ToDoubles(key)[static_cast<size_t>(token * 32 + i)];
    }
  }
  EXPECT_EQ(ToDoubles((*out)[0]), want);
}

// ---- KvRmsNormRopeCache ----

struct NormRope {
  Heads key;    // rotated
  Heads value;  // normalised
};

// The definition: kv = [value to normalise, key to rotate].
NormRope Expected(const Heads& kv, const Heads& gamma, const Heads& cos, const Heads& sin) {
  const int64_t dv = gamma.width;
  const int64_t dk = cos.width;
  NormRope result{Zeros(kv.batches, kv.heads, kv.rows, dk),
                  Zeros(kv.batches, kv.heads, kv.rows, dv)};
  for (const auto& at : Positions({kv.batches, kv.heads, kv.rows})) {
    double squares = 0;
    for (int64_t d = 0; d < dv; ++d) squares += std::pow(kv.at(at[0], at[1], at[2], d), 2);
    for (int64_t d = 0; d < dv; ++d) {
      result.value.at(at[0], at[1], at[2], d) =
          kv.at(at[0], at[1], at[2], d) / std::sqrt(squares / static_cast<double>(dv) + 1e-5) *
          gamma.at(0, 0, 0, d);
    }
    for (int64_t d = 0; d < dk / 2; ++d) {
      const int64_t row = cos.rows == 1 ? 0 : at[2];
      const double even = kv.at(at[0], at[1], at[2], dv + 2 * d);
      const double odd = kv.at(at[0], at[1], at[2], dv + 2 * d + 1);
      result.key.at(at[0], at[1], at[2], d) =
          even * cos.at(at[0], 0, row, d) - odd * sin.at(at[0], 0, row, d);
      result.key.at(at[0], at[1], at[2], dk / 2 + d) =
          odd * cos.at(at[0], 0, row, dk / 2 + d) + even * sin.at(at[0], 0, row, dk / 2 + d);
    }
  }
  return result;
}

struct CacheCase {
  std::string mode;
  std::vector<int64_t> index;
  // Element of (token b * S + s, d) in a cache of vectors of `width`; -1: not written.
  std::function<int64_t(int64_t b, int64_t s, int64_t d, int64_t width)> element;
};

TEST(KvRmsNormRopeCache, WritesEveryFormOfCache) {
  constexpr DataType kType = DataType::kFloat;
  constexpr int64_t kBlock = 4;
  const std::vector<int64_t> slots = {9, 2, -1, 7, 0, 11};
  const auto slot = [&](int64_t b, int64_t s) { return slots[static_cast<size_t>(b * 3 + s)]; };
  const auto tiled = [&](int64_t at, int64_t d, int64_t width) {
    return at / kBlock * kBlock * width + d / 16 * kBlock * 16 + at % kBlock * 16 + d % 16;
  };
  const std::vector<CacheCase> cases = {
      {"PA", slots,
       [&](int64_t b, int64_t s, int64_t d, int64_t width) {
         return slot(b, s) < 0 ? -1 : slot(b, s) * width + d;
       }},
      {"PA_BNSD", slots,
       [&](int64_t b, int64_t s, int64_t d, int64_t width) {
         return slot(b, s) < 0 ? -1 : slot(b, s) * width + d;
       }},
      {"PA_NZ", slots,
       [&](int64_t b, int64_t s, int64_t d, int64_t width) {
         return slot(b, s) < 0 ? -1 : tiled(slot(b, s), d, width);
       }},
      {"PA_BLK_BNSD",
       {8, 0},
       [&](int64_t b, int64_t s, int64_t d, int64_t width) {
         return ((b == 0 ? 8 : 0) + s) * width + d;
       }},
      {"PA_BLK_NZ",
       {8, 0},
       [&](int64_t b, int64_t s, int64_t d, int64_t width) {
         return tiled((b == 0 ? 8 : 0) + s, d, width);
       }},
      {"Norm",
       {3, -1, 0, 1, 2, 3},
       [&](int64_t b, int64_t s, int64_t d, int64_t width) -> int64_t {
         const std::vector<int64_t> rows = {3, -1, 0, 1, 2, 3};
         const int64_t row = rows[static_cast<size_t>(b * 3 + s)];
         return row < 0 ? -1 : (b * 4 + row) * width + d;
       }},
  };
  const Heads kv = Noise(kType, 2, 1, 3, 48, 1);
  const Heads gamma = Noise(kType, 1, 1, 1, 32, 2);
  const Heads cos = Noise(kType, 2, 1, 3, 16, 3);
  const Heads sin = Noise(kType, 2, 1, 3, 16, 4);
  const NormRope expected = Expected(kv, gamma, cos, sin);
  for (const CacheCase& c : cases) {
    SCOPED_TRACE(c.mode);
    const bool norm = c.mode == "Norm";
    const auto cache = [&](int64_t width) {
      return Numbered(kType, norm ? Shape{2, 1, 4, width} : Shape{3, 4, 1, width}, 1000);
    };
    const Result<std::vector<Tensor>> out =
        RunOp({.type = "KvRmsNormRopeCache",
               .inputs = {{"kv", InLayout(kType, "BNSD", kv)},
                          {"gamma", FromDoubles(kType, {32}, gamma.values)},
                          {"cos", InLayout(kType, "BNSD", cos)},
                          {"sin", InLayout(kType, "BNSD", sin)},
                          {"index", MakeInts(c.index)},
                          {"k_cache", cache(16)},
                          {"ckv_cache", cache(32)}},
               .attrs = {{"cache_mode", AttrValue::String(c.mode)}}});
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    ExpectHeads((*out)[2], "BNSD", expected.key);
    ExpectHeads((*out)[3], "BNSD", expected.value);
    for (const auto& [port, heads] :
         std::vector<std::pair<size_t, const Heads*>>{{0, &expected.key}, {1, &expected.value}}) {
      std::vector<double> want = ToDoubles(cache(heads->width));
      for (const auto& at : Positions({2, 3, heads->width})) {
        const int64_t element = c.element(at[0], at[1], at[2], heads->width);
        if (element >= 0) want[static_cast<size_t>(element)] = heads->at(at[0], 0, at[1], at[2]);
      }
      const std::vector<double> values = ToDoubles((*out)[port]);
      for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(values[i], want[i], 1e-5) << i;
    }
  }
}

OpCall Small(DataType cache, std::vector<int64_t> index) {
  constexpr DataType kType = DataType::kFloat;
  return {.type = "KvRmsNormRopeCache",
          .inputs = {{"kv", FromDoubles(kType, {1, 1, 1, 4}, {3, 4, 1, 2})},
                     {"gamma", FromDoubles(kType, {2}, {1, 1})},
                     {"cos", FromDoubles(kType, {1, 1, 1, 2}, {1, 1})},
                     {"sin", FromDoubles(kType, {1, 1, 1, 2}, {0, 0})},
                     {"index", MakeInts(index)},
                     {"k_cache", Tensor::Allocate({cache, {1, 1, 2, 2}})},
                     {"ckv_cache", Tensor::Allocate({cache, {1, 1, 2, 2}})}}};
}

TEST(KvRmsNormRopeCache, ValuesOfTheirOwn) {
  constexpr DataType kType = DataType::kFloat;
  OpCall call = Small(kType, {0});
  call.inputs[1].value = FromDoubles(kType, {4}, {1, 1, 1, 1});
  call.inputs[5].value = Tensor::Allocate({kType, {1, 1, 2, 4}});
  call.inputs[6].value = Tensor::Allocate({kType, {1, 1, 2, 3}});
  call.inputs.push_back({"v", FromDoubles(kType, {1, 1, 1, 3}, {7, 8, 9})});
  call.inputs[3].value = FromDoubles(kType, {1, 1, 1, 2}, {1, 1});
  const Result<std::vector<Tensor>> out = RunOp(call);
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  const double rstd = 1 / std::sqrt(30 / 4.0 + 1e-5);
  const std::vector<double> keys = ToDoubles((*out)[0]);
  const std::vector<double> want = {(3 - 4) * rstd, (4 + 3) * rstd, 1 * rstd, 2 * rstd};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(keys[i], want[i], 1e-6);
  EXPECT_EQ(ToDoubles((*out)[1]), (std::vector<double>{7, 8, 9, 0, 0, 0}));
  EXPECT_EQ((*out)[3].shape(), (Shape{1, 1, 1, 3}));
}

}  // namespace
}  // namespace npumesh
