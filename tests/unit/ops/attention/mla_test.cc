// MlaProlog, MlaPrologV2 and MlaPrologV3 against the formulas in double.
#include <cmath>

#include "tests/unit/op_types.h"
#include "tests/unit/op_unknown.h"
#include "tests/unit/op_values.h"
#include "tests/unit/ops/quant/quant_values.h"

namespace npumesh {
namespace {

using Values = std::vector<double>;

// x[m, k] w[k, n]
Values Product(const Values& x, const Values& w, int64_t m, int64_t n, int64_t k) {
  Values y(static_cast<size_t>(m * n), 0.0);
  for (int64_t i = 0; i < m * n * k; ++i) {
    const int64_t at = i % k, c = i / k % n, r = i / k / n;
    y[static_cast<size_t>(r * n + c)] +=
        x[static_cast<size_t>(r * k + at)] * w[static_cast<size_t>(at * n + c)];
  }
  return y;
}

Values Columns(const Values& x, int64_t width, int64_t first, int64_t count) {
  Values part;
  for (size_t r = 0; r < x.size() / static_cast<size_t>(width); ++r) {
    for (int64_t i = 0; i < count; ++i) {
      part.push_back(x[r * static_cast<size_t>(width) + static_cast<size_t>(first + i)]);
    }
  }
  return part;
}

Values Normed(Values x, const Values& gamma, double scale) {
  const size_t n = gamma.size();
  for (size_t first = 0; first < x.size(); first += n) {
    double squares = 0;
    for (size_t i = 0; i < n; ++i) squares += x[first + i] * x[first + i];
    const double rms = std::sqrt(squares / static_cast<double>(n) + 1e-5);
    for (size_t i = 0; i < n; ++i) x[first + i] *= scale * gamma[i] / rms;
  }
  return x;
}

// Pairs of neighbours are turned, and lie in two halves afterwards.
Values RotatedPairs(const Values& x, const Values& cos, const Values& sin, size_t first) {
  const size_t n = x.size();
  Values halves(n), y(n);
  for (size_t i = 0; i < n; ++i) halves[i] = x[i < n / 2 ? 2 * i : 2 * (i - n / 2) + 1];
  for (size_t i = 0; i < n; ++i) {
    const double other = i < n / 2 ? -halves[i + n / 2] : halves[i - n / 2];
    y[i] = halves[i] * cos[first + i] + other * sin[first + i];
  }
  return y;
}

struct Mla {
  int64_t tokens = 5, model = 24, latent_q = 10, heads = 3, head = 6, latent_kv = 16, rope = 16;
  int64_t blocks = 2, block_size = 4;
  std::vector<int64_t> index = {6, 1, -1, 0, 7};
  Tensor x, dq, uq, uk, dkv, gq, gkv, sin, cos, kv, kr;

  explicit Mla(DataType dtype) {
    x = Noise(dtype, {tokens, model}, 1);
    dq = Noise(dtype, {model, latent_q}, 2);
    uq = Noise(dtype, {latent_q, heads * (head + rope)}, 3);
    uk = Noise(dtype, {heads, head, latent_kv}, 4);
    dkv = Noise(dtype, {model, latent_kv + rope}, 5);
    gq = Noise(dtype, {latent_q}, 6);
    gkv = Noise(dtype, {latent_kv}, 7);
    sin = Noise(dtype, {tokens, rope}, 8);
    cos = Noise(dtype, {tokens, rope}, 9);
    kv = Noise(dtype, {blocks, block_size, 1, latent_kv}, 10);
    kr = Noise(dtype, {blocks, block_size, 1, rope}, 11);
  }

  OpCall Call(const std::string& type, const std::string& mode) const {
    OpCall call = {.type = type,
                   .inputs = {{"token_x", x},
                              {"weight_dq", dq},
                              {"weight_uq_qr", uq},
                              {"weight_uk", uk},
                              {"weight_dkv_kr", dkv},
                              {"rmsnorm_gamma_cq", gq},
                              {"rmsnorm_gamma_ckv", gkv},
                              {"rope_sin", sin},
                              {"rope_cos", cos},
                              {"kv_cache", kv},
                              {"kr_cache", kr}},
                   .attrs = {{"cache_mode", AttrValue::String(mode)}}};
    if (mode.starts_with("PA")) call.inputs.push_back({"cache_index", MakeInts(index)});
    return call;
  }

  // query, query_rope, kv_cache, kr_cache, query_norm
  std::vector<Values> Want(const std::string& mode, double scale_q, double scale_kv) const {
    const Values cq = Normed(Product(ToDoubles(x), ToDoubles(dq), tokens, latent_q, model),
                             ToDoubles(gq), scale_q);
    const int64_t both = head + rope;
    const Values all = Product(cq, ToDoubles(uq), tokens, heads * both, latent_q);
    std::vector<Values> want(4);
    want[0].resize(static_cast<size_t>(tokens * heads * latent_kv));
    want[1].resize(static_cast<size_t>(tokens * heads * rope));
    for (int64_t h = 0; h < heads; ++h) {
      const Values uk_h =
          Columns(ToDoubles(uk), heads * head * latent_kv, h * head * latent_kv, head * latent_kv);
      const Values q =
          Product(Columns(all, heads * both, h * both, head), uk_h, tokens, latent_kv, head);
      for (int64_t t = 0; t < tokens; ++t) {
        std::copy_n(q.begin() + t * latent_kv, latent_kv,
                    want[0].begin() + (t * heads + h) * latent_kv);
        const Values part = Columns(all, heads * both, h * both + head, rope);
        const Values turned =
            RotatedPairs({part.begin() + t * rope, part.begin() + (t + 1) * rope}, ToDoubles(cos),
                         ToDoubles(sin), static_cast<size_t>(t * rope));
        std::copy(turned.begin(), turned.end(), want[1].begin() + (t * heads + h) * rope);
      }
    }
    const Values keys = Product(ToDoubles(x), ToDoubles(dkv), tokens, latent_kv + rope, model);
    const Values ckv =
        Normed(Columns(keys, latent_kv + rope, 0, latent_kv), ToDoubles(gkv), scale_kv);
    want[2] = ToDoubles(kv);
    want[3] = ToDoubles(kr);
    for (int64_t t = 0; t < tokens; ++t) {
      const int64_t slot = mode.starts_with("PA") ? index[static_cast<size_t>(t)] : t;
      if (slot < 0) continue;
      const Values part = Columns(keys, latent_kv + rope, latent_kv, rope);
      const Values turned =
          RotatedPairs({part.begin() + t * rope, part.begin() + (t + 1) * rope}, ToDoubles(cos),
                       ToDoubles(sin), static_cast<size_t>(t * rope));
      for (int64_t i = 0; i < latent_kv; ++i) {  // latent_kv == rope: one tile each
        const int64_t to = slot * latent_kv + i;
        want[2][static_cast<size_t>(to)] = ckv[static_cast<size_t>(t * latent_kv + i)];
        want[3][static_cast<size_t>(to)] = turned[static_cast<size_t>(i)];
      }
    }
    want.push_back(cq);
    return want;
  }
};

// Intermediate results are rounded to the type of the tokens, so 16-bit ones are compared with a
// wider bound: three roundings of 2^-11, times the sums they go through.
double Bound(DataType dtype) {
  return dtype == kF32 ? 1e-5 : 2e-2;
}

TEST(MlaProlog, EveryVersionAndCache) {
  for (const DataType dtype : {kF32, kF16}) {
    for (const std::string mode : {"PA_BSND", "PA_NZ", "TND"}) {
      Mla test(dtype);
      if (mode == "TND") {
        test.kv = Noise(dtype, {test.tokens, 1, test.latent_kv}, 10);
        test.kr = Noise(dtype, {test.tokens, 1, test.rope}, 11);
      }
      const std::vector<Values> want = test.Want(mode, 1, 1);
      for (const std::string type : {"MlaProlog", "MlaPrologV2", "MlaPrologV3"}) {
        if (mode == "TND" && type != "MlaPrologV3") continue;  // their index is required
        const std::vector<Tensor> got = Results(test.Call(type, mode));
        ASSERT_GE(got.size(), 4u);
        EXPECT_EQ(got[0].shape(), Shape({test.tokens, test.heads, test.latent_kv}));
        EXPECT_EQ(got[1].shape(), Shape({test.tokens, test.heads, test.rope}));
        for (size_t i = 0; i < 4; ++i) ExpectNear(got[i], want[i], Bound(dtype));
        for (size_t i = 4; i < got.size(); ++i) EXPECT_EQ(got[i].shape(), Shape({0}));
      }
    }
  }
}

TEST(MlaPrologV3, ScalesAndReturnsTheNorm) {
  const Mla test(kF32);
  OpCall call = test.Call("MlaPrologV3", "PA_BSND");
  call.attrs.emplace_back("qc_qr_scale", AttrValue::Float(0.5f));
  call.attrs.emplace_back("kc_scale", AttrValue::Float(2.0f));
  call.attrs.emplace_back("query_norm_flag", AttrValue::Bool(true));
  const std::vector<Values> want = test.Want("PA_BSND", 0.5, 2);
  const std::vector<Tensor> got = Results(call);
  for (size_t i = 0; i < 4; ++i) ExpectNear(got[i], want[i], 1e-5);
  EXPECT_EQ(got[5].shape(), Shape({test.tokens, test.latent_q}));
  ExpectNear(got[5], want[4], 1e-5);
}

TEST(MlaProlog, BatchesOfSequences) {
  Mla test(kF32);
  OpCall flat = test.Call("MlaProlog", "PA_BSND"), batched = flat;
  const auto reshaped = [](const Tensor& x) {
    return FromDoubles(x.dtype(), {1, x.shape()[0], x.shape()[1]}, ToDoubles(x));
  };
  for (const size_t i : {0, 7, 8}) batched.inputs[i].value = reshaped(flat.inputs[i].value);
  const std::vector<Tensor> one = Results(flat), two = Results(batched);
  EXPECT_EQ(two[0].shape(), Shape({1, test.tokens, test.heads, test.latent_kv}));
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(ToDoubles(one[i]), ToDoubles(two[i])) << i;
}

}  // namespace
}  // namespace npumesh
