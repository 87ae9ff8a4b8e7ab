// The decoder of decoder_training.h in plain loops.
#include <array>

#include "tests/models/decoder_training.h"
#include "tests/models/plain_math.h"

namespace npumesh::models {
namespace {

// Philox4x32-10 (Salmon et al., 2011): four words of one counter.
std::array<uint32_t, 4> RandomWords(uint64_t key, uint64_t low, uint64_t high) {
  std::array<uint64_t, 4> c = {low & 0xffffffff, low >> 32, high & 0xffffffff, high >> 32};
  uint64_t k0 = key & 0xffffffff, k1 = key >> 32;
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = 0xD2511F53u * c[0], b = 0xCD9E8D57u * c[2];
    c = {(b >> 32) ^ c[1] ^ k0, b & 0xffffffff, (a >> 32) ^ c[3] ^ k1, a & 0xffffffff};
    k0 = (k0 + 0x9E3779B9u) & 0xffffffff;
    k1 = (k1 + 0xBB67AE85u) & 0xffffffff;
  }
  return {static_cast<uint32_t>(c[0]), static_cast<uint32_t>(c[1]), static_cast<uint32_t>(c[2]),
          static_cast<uint32_t>(c[3])};
}

// One forward pass.
class DecoderPass {
 public:
  DecoderPass(const TrainingConfig& config, const TrainingBatch& batch, const ParameterReals& p)
      : config_(config), batch_(batch), p_(p) {}

  Real Loss() {
    Reals x = Embed();
    for (int64_t layer = 0; layer < config_.layers; ++layer) {
      prefix_ = std::to_string(layer) + ".";
      const Reals normal = LayerNormOf(x, Of("ln.gamma"), Of("ln.beta"), 1e-5);
      const Reals seen = LinearOf(Attention(normal), Of("wo"), config_.hidden, config_.hidden);
      x = SumOf(std::move(x), Dropout(WithBias(seen, Of("bo"))));
      x = SumOf(std::move(x), Dropout(Mlp(RmsNormOf(x, Of("rms.gamma"), 1e-6))));
    }
    prefix_ = "final.";
    const Reals last = LayerNormOf(x, Of("ln.gamma"), Of("ln.beta"), 1e-5);
    const Reals logits = LinearOf(last, p_.at("wte"), config_.hidden, config_.vocabulary);
    return CrossEntropyOf(logits, batch_.targets, config_.vocabulary);
  }

 private:
  const Reals& Of(const std::string& name) const { return p_.at(prefix_ + name); }

  Reals Embed() const {
    Reals x;
    for (size_t t = 0; t < batch_.tokens.size(); ++t) {
      for (int64_t i = 0; i < config_.hidden; ++i) {
        const int64_t position = static_cast<int64_t>(t) % config_.sequence;
        x.push_back(p_.at("wte")[At(batch_.tokens[t] * config_.hidden + i)] +
                    p_.at("wpe")[At(position * config_.hidden + i)]);
      }
    }
    return x;
  }

  Reals Attention(const Reals& x) {
    const int64_t s = config_.sequence, h = config_.hidden, d = config_.width();
    const Reals qkv = LinearOf(x, Of("wqkv"), h, 3 * h);
    const int64_t sequences = static_cast<int64_t>(x.size()) / (s * h);
    // Element `e` of head `n` of q (0), k (1) or v (2).
    const auto at = [&](int64_t b, int64_t t, int64_t part, int64_t n, int64_t e) -> const Real& {
      return qkv[At((b * s + t) * 3 * h + part * h + n * d + e)];
    };
    // [sequence of the batch, head, row, column], as the mask of dropout is numbered.
    Reals scores;
    for (int64_t b = 0; b < sequences; ++b) {
      for (int64_t n = 0; n < config_.heads; ++n) {
        for (int64_t i = 0; i < s; ++i) {
          for (int64_t j = 0; j < s; ++j) {
            Real sum;
            for (int64_t e = 0; e < d; ++e) sum += at(b, i, 0, n, e) * at(b, j, 1, n, e);
            scores.push_back(j <= i ? sum / std::sqrt(static_cast<double>(d)) : Real(-1e30));
          }
        }
      }
    }
    const Reals weights = Dropout(SoftmaxOf(scores, s));
    Reals out(x.size());
    for (int64_t b = 0; b < sequences; ++b) {
      for (int64_t n = 0; n < config_.heads; ++n) {
        for (int64_t i = 0; i < s; ++i) {
          for (int64_t e = 0; e < d; ++e) {
            Real sum;
            for (int64_t j = 0; j < s; ++j) {
              sum += weights[At(((b * config_.heads + n) * s + i) * s + j)] * at(b, j, 2, n, e);
            }
            out[At((b * s + i) * h + n * d + e)] = sum;
          }
        }
      }
    }
    return out;
  }

  Reals Mlp(const Reals& x) const {
    Reals inner = WithBias(LinearOf(x, Of("w1"), config_.hidden, config_.ffn), Of("b1"));
    for (Real& value : inner) value = GeluOf(value);
    return WithBias(LinearOf(inner, Of("w2"), config_.ffn, config_.hidden), Of("b2"));
  }

  Reals Dropout(Reals x) {
    if (config_.keep == 1) return x;
    const std::vector<bool> stays =
        KeptElements(kDropoutSeed, batch_.offsets[next_dropout_++], config_.keep, x.size());
    for (size_t i = 0; i < x.size(); ++i) x[i] = stays[i] ? x[i] / config_.keep : Real(0);
    return x;
  }

  const TrainingConfig& config_;
  const TrainingBatch& batch_;
  const ParameterReals& p_;
  std::string prefix_;
  size_t next_dropout_ = 0;
};

}  // namespace

std::vector<bool> KeptElements(int64_t seed, int64_t offset, double keep, size_t count) {
  std::vector<bool> stays;
  for (uint64_t block = 0; stays.size() < count; ++block) {
    for (const uint32_t word :
         RandomWords(static_cast<uint64_t>(seed), block, static_cast<uint64_t>(offset))) {
      if (stays.size() < count) stays.push_back((word + 0.5) / 4294967296.0 < keep);
    }
  }
  return stays;
}

LossFunction DecoderLoss(const TrainingConfig& config, const TrainingBatch& batch) {
  return [config, batch](const ParameterReals& p) { return DecoderPass(config, batch, p).Loss(); };
}

TrainingBatch MakeBatch(const TrainingConfig& config, int64_t sequences, int step) {
  TrainingBatch batch;
  for (int64_t i = 0; i < sequences * config.sequence; ++i) {
    // The same tokens at each step, so that the loss falls.
    batch.tokens.push_back((i * i + 3 * i + i / 5) % config.vocabulary);
    batch.targets.push_back((i * 7 + 2) % config.vocabulary);
  }
  for (int64_t i = 0; i < config.dropouts(); ++i) {
    batch.offsets.push_back((step * config.dropouts() + i) * 12);
  }
  return batch;
}

Parameters DecoderParameters(const TrainingConfig& config, uint64_t seed) {
  const int64_t h = config.hidden;
  Parameters p(seed);
  p.Add("wte", {config.vocabulary, h}, 0.5);
  p.Add("wpe", {config.sequence, h}, 0.5);
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string prefix = std::to_string(layer) + ".";
    p.Add(prefix + "ln.gamma", {h}, 0.25, 1);
    p.Add(prefix + "ln.beta", {h}, 0.25);
    p.Add(prefix + "wqkv", {3 * h, h}, 0.5);
    p.Add(prefix + "wo", {h, h}, 0.5);
    p.Add(prefix + "bo", {h}, 0.25);
    p.Add(prefix + "rms.gamma", {h}, 0.25, 1);
    p.Add(prefix + "w1", {config.ffn, h}, 0.5);
    p.Add(prefix + "b1", {config.ffn}, 0.25);
    p.Add(prefix + "w2", {h, config.ffn}, 0.5);
    p.Add(prefix + "b2", {h}, 0.25);
  }
  p.Add("final.ln.gamma", {h}, 0.25, 1);
  p.Add("final.ln.beta", {h}, 0.25);
  return p;
}

}  // namespace npumesh::models
