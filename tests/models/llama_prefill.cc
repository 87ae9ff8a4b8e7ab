#include "tests/models/llama_prefill.h"

#include <cmath>

#include "tests/models/aten_graph.h"
#include "tests/models/plain_math.h"

namespace npumesh::models {
namespace {

constexpr double kRotaryBase = 10000;
constexpr double kEpsilon = 1e-5;

double Frequency(int64_t i, int64_t width) {
  return std::pow(kRotaryBase, -2.0 * static_cast<double>(i) / static_cast<double>(width));
}

// Part `part` of `parts` of the rows, or of the columns, of a matrix.
Tensor PartOf(const Parameter& whole, bool rows, int64_t part, int64_t parts, DataType dtype) {
  const int64_t height = whole.shape[0], columns = whole.shape[1];
  std::vector<double> values;
  for (int64_t i = 0; i < height * columns; ++i) {
    const int64_t place = rows ? i / columns / (height / parts) : i % columns / (columns / parts);
    if (place == part) values.push_back(whole.values[At(i)]);
  }
  const Shape shape = rows ? Shape({height / parts, columns}) : Shape({height, columns / parts});
  return TensorOf(shape, values, dtype);
}

class PrefillWriter {
 public:
  PrefillWriter(const PrefillConfig& config, const Parameters& weights, int rank, int ranks)
      : config_(config),
        weights_(weights),
        rank_(rank),
        ranks_(ranks),
        g_("prefill"),
        heads_(config.heads / ranks),
        key_heads_(config.key_heads / ranks) {}

  Result<Model> Write() {
    if (config_.symbol_input) length_ = g_.HostInput("s0", {DataType::kInt64, Shape()});
    Value x = g_.Input("hidden_states", {config_.dtype, {1, -1, config_.hidden}});
    const Value positions = g_.Input("position_ids", {DataType::kInt64, {1, -1}});
    if (!config_.symbol_input) length_ = g_.SymSize(x, 1);
    WriteTables(positions);
    for (int64_t layer = 0; layer < config_.layers; ++layer) {
      prefix_ = std::to_string(layer) + ".";
      x = g_.Add(x, Attention(Norm(x, "input_norm")));
      x = g_.Add(x, Mlp(Norm(x, "post_norm")));
    }
    g_.Output({x});
    return g_.Build();
  }

 private:
  Value To(Value x, DataType dtype) { return g_.ToCopy(x, dtype); }
  Value ToOwn(Value x) { return To(x, config_.dtype); }
  Value Mul(Value a, Value b) { return g_.Mul(a, b, config_.dtype); }

  // cos and sin [1, 1, s, width], and the mask [s, s].
  void WriteTables(Value positions) {
    std::vector<double> frequencies;
    for (int64_t i = 0; i < config_.width() / 2; ++i) {
      frequencies.push_back(Frequency(i, config_.width()));
    }
    const Value inverse = g_.Weight("inv_freq", TensorOf({config_.width() / 2}, frequencies));
    const Value angles = g_.Mul(g_.Unsqueeze(To(positions, DataType::kFloat), 2),
                                g_.Unsqueeze(g_.Unsqueeze(inverse, 0), 1));
    const Value both = g_.Cat({angles, angles}, -1);
    cos_ = g_.Unsqueeze(ToOwn(g_.Unary("Cos", both)), 1);
    sin_ = g_.Unsqueeze(ToOwn(g_.Unary("Sin", both)), 1);
    const Value full =
        g_.Op("Fill", {{"dims", g_.Pack({length_, length_})}, {"value", g_.Scalar(-INFINITY)}});
    mask_ = g_.Op("Triu", {{"x", full}}, {{"diagonal", AttrValue::Int(1)}});
  }

  Value Norm(Value x, const std::string& name) {
    const Value wide = To(x, DataType::kFloat);
    const Value mean = g_.Mean(g_.PowScalar(wide, 2), {-1}, true);
    const Value scaled = g_.Mul(wide, g_.Unary("Rsqrt", g_.AddScalar(mean, kEpsilon)));
    const Parameter& gamma = weights_.at(prefix_ + name);
    return Mul(g_.Weight(gamma.name, TensorOf(gamma, config_.dtype)), ToOwn(scaled));
  }

  // x [1, s, in] times the transpose of this rank's rows of a weight.
  Value Linear(Value x, const std::string& name, int64_t in, bool by_rows) {
    const Parameter& whole = weights_.at(prefix_ + name);
    const Value w = g_.Weight(whole.name, PartOf(whole, by_rows, rank_, ranks_, config_.dtype));
    const int64_t out = by_rows ? whole.shape[0] / ranks_ : whole.shape[0];
    const Value flat = g_.ViewSym(x, {length_, in});
    return g_.ViewSym(g_.Mm(flat, g_.T(w)), {int64_t{1}, length_, out});
  }
  Value Completed(Value partial) {
    return ranks_ == 1 ? partial : g_.AllReduce(partial, "hccl_world_group");
  }

  Value Attention(Value x) {
    const int64_t h = config_.hidden;
    const Value q = Rotate(Heads(Linear(x, "q", h, true), heads_));
    const Value k = Repeat(Rotate(Heads(Linear(x, "k", h, true), key_heads_)));
    const Value v = Repeat(Heads(Linear(x, "v", h, true), key_heads_));
    const Value products =
        g_.ViewSym(g_.Bmm(Flat(q, length_, config_.width()),
                          Flat(g_.Permute(k, {0, 1, 3, 2}), config_.width(), length_)),
                   {int64_t{1}, heads_, length_, length_});
    const Value scaled =
        g_.MulScalar(products, 1 / std::sqrt(static_cast<double>(config_.width())), config_.dtype);
    const Value scores = g_.Add(scaled, ToOwn(mask_));
    const Value weights = ToOwn(g_.Softmax(To(scores, DataType::kFloat)));
    const Value seen =
        g_.ViewSym(g_.Bmm(Flat(weights, length_, length_), Flat(v, length_, config_.width())),
                   {int64_t{1}, heads_, length_, config_.width()});
    const Value joined = g_.ViewSym(g_.Clone(g_.Permute(seen, {0, 2, 1, 3})),
                                    {int64_t{1}, length_, heads_ * config_.width()});
    return Completed(Linear(joined, "o", heads_ * config_.width(), false));
  }

  Value Mlp(Value x) {
    const Value gate = g_.Op("Swish", {{"x", Linear(x, "gate", config_.hidden, true)}},
                             {{"scale", AttrValue::Float(1)}});
    const Value inner = Mul(gate, Linear(x, "up", config_.hidden, true));
    return Completed(Linear(inner, "down", config_.ffn / ranks_, false));
  }

  // [1, s, heads * width] as [1, heads, s, width].
  Value Heads(Value x, int64_t heads) {
    return g_.Permute(g_.ViewSym(x, {int64_t{1}, length_, heads, config_.width()}), {0, 2, 1, 3});
  }
  // A named builder: "rotate" is not written, mode 0 neither.
  Value Rotate(Value x) {
    return g_.Op("RotaryPositionEmbedding", {{"x", x}, {"cos", cos_}, {"sin", sin_}});
  }
  // [1, key heads, s, width] with each head as often as query heads share it.
  Value Repeat(Value x) {
    const int64_t times = heads_ / key_heads_;
    const Value spread =
        g_.ExpandSym(g_.Unsqueeze(x, 2), {int64_t{1}, key_heads_, times, length_, config_.width()});
    return g_.ViewSym(g_.Clone(spread), {int64_t{1}, heads_, length_, config_.width()});
  }
  Value Flat(Value x, Size rows, Size columns) {
    const Value same = g_.ExpandSym(x, {int64_t{1}, heads_, rows, columns});
    return g_.ViewSym(same, {heads_, rows, columns});
  }

  const PrefillConfig& config_;
  const Parameters& weights_;
  int rank_, ranks_;
  AtenGraph g_;
  int64_t heads_, key_heads_;
  std::string prefix_;
  Value length_, cos_, sin_, mask_;
};

// x [s, heads * width], rotated head by head in the half-split form (Su et al., RoFormer, 2021).
Reals Rotated(Reals x, int64_t heads, int64_t width, int64_t first) {
  const int64_t half = width / 2;
  for (size_t row = 0; row < x.size() / At(heads * width); ++row) {
    for (int64_t n = 0; n < heads; ++n) {
      for (int64_t i = 0; i < half; ++i) {
        const double angle =
            static_cast<double>(first + static_cast<int64_t>(row)) * Frequency(i, width);
        Real& a = x[row * At(heads * width) + At(n * width + i)];
        Real& b = x[row * At(heads * width) + At(n * width + i + half)];
        const Real turned = a * std::cos(angle) - b * std::sin(angle);
        b = b * std::cos(angle) + a * std::sin(angle);
        a = turned;
      }
    }
  }
  return x;
}

// Causal attention of s rows; query head n reads key head n * key_heads / heads.
Reals Attended(const PrefillConfig& c, const Reals& q, const Reals& k, const Reals& v) {
  const int64_t s = static_cast<int64_t>(q.size()) / c.hidden, d = c.width();
  const int64_t key_width = c.key_heads * d;
  Reals out(q.size());
  for (int64_t n = 0; n < c.heads; ++n) {
    const int64_t shared = n * c.key_heads / c.heads * d;
    for (int64_t i = 0; i < s; ++i) {
      Reals scores;
      for (int64_t j = 0; j <= i; ++j) {
        Real sum;
        for (int64_t e = 0; e < d; ++e) {
          sum += q[At(i * c.hidden + n * d + e)] * k[At(j * key_width + shared + e)];
        }
        scores.push_back(sum / std::sqrt(static_cast<double>(d)));
      }
      const Reals weights = SoftmaxOf(scores, i + 1);
      for (int64_t e = 0; e < d; ++e) {
        Real& sum = out[At(i * c.hidden + n * d + e)];
        for (int64_t j = 0; j <= i; ++j) sum += weights[At(j)] * v[At(j * key_width + shared + e)];
      }
    }
  }
  return out;
}

}  // namespace

Parameters PrefillWeights(const PrefillConfig& config, uint64_t seed) {
  const int64_t h = config.hidden, keys = config.key_heads * config.width();
  Parameters p(seed);
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string prefix = std::to_string(layer) + ".";
    p.Add(prefix + "input_norm", {h}, 0.25, 1);
    p.Add(prefix + "q", {h, h}, 0.25);
    p.Add(prefix + "k", {keys, h}, 0.25);
    p.Add(prefix + "v", {keys, h}, 0.25);
    p.Add(prefix + "o", {h, h}, 0.25);
    p.Add(prefix + "post_norm", {h}, 0.25, 1);
    p.Add(prefix + "gate", {config.ffn, h}, 0.25);
    p.Add(prefix + "up", {config.ffn, h}, 0.25);
    p.Add(prefix + "down", {h, config.ffn}, 0.25);
  }
  for (const Parameter& own : p.all()) {
    p.at(own.name).values = ValuesIn(TensorOf(own, config.dtype));
  }
  return p;
}

std::vector<double> PrefillInput(const PrefillConfig& config, int64_t sequence) {
  Parameters noise(static_cast<uint64_t>(100 + sequence));
  noise.Add("x", {sequence, config.hidden}, 1);
  return ValuesIn(TensorOf(noise.at("x"), config.dtype));
}

Result<Model> BuildPrefill(const PrefillConfig& config, const Parameters& weights, int rank,
                           int ranks) {
  return PrefillWriter(config, weights, rank, ranks).Write();
}

std::vector<double> PrefillReference(const PrefillConfig& config, const Parameters& weights,
                                     const std::vector<double>& hidden_states, int64_t first) {
  const ParameterReals p = weights.Constants();
  const int64_t h = config.hidden, keys = config.key_heads * config.width();
  Reals x(hidden_states.begin(), hidden_states.end());
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const auto of = [&](const std::string& name) -> const Reals& {
      return p.at(std::to_string(layer) + "." + name);
    };
    const Reals normal = RmsNormOf(x, of("input_norm"), kEpsilon);
    const Reals q = Rotated(LinearOf(normal, of("q"), h, h), config.heads, config.width(), first);
    const Reals k =
        Rotated(LinearOf(normal, of("k"), h, keys), config.key_heads, config.width(), first);
    const Reals v = LinearOf(normal, of("v"), h, keys);
    x = SumOf(std::move(x), LinearOf(Attended(config, q, k, v), of("o"), h, h));
    const Reals again = RmsNormOf(x, of("post_norm"), kEpsilon);
    Reals inner = LinearOf(again, of("gate"), h, config.ffn);
    const Reals up = LinearOf(again, of("up"), h, config.ffn);
    for (size_t i = 0; i < inner.size(); ++i) inner[i] = SiluOf(inner[i]) * up[i];
    x = SumOf(std::move(x), LinearOf(inner, of("down"), config.ffn, h));
  }
  std::vector<double> values;
  for (const Real& value : x) values.push_back(value.value);
  return values;
}

}  // namespace npumesh::models
