#include "tests/ranks/shard/random_decoder.h"

#include <cmath>
#include <functional>

#include "graph/ir/graph_builder.h"
#include "tests/fuzz/engine/dice.h"

namespace npumesh {
namespace {

using fuzz::Dice;

constexpr float kEpsilon = 1e-5f;
constexpr float kHidden = -30000.0f;  // added to scores of tokens that come later

// A value of the graph and its numbers.
struct Both {
  Value value;
  Plain plain;
};

double Silu(double x) {
  return x / (1 + std::exp(-x));
}

class DecoderWriter {
 public:
  explicit DecoderWriter(const DecoderForm& form) : form_(form), dice_(form.seed) {}

  Result<WrittenDecoder> Write() {
    Both x = Enter();
    for (layer_ = 0; layer_ < form_.layers; ++layer_) {
      x = Beside(x, "attention", [this](const Both& in) { return Attention(in); });
      x = Beside(x, "mlp", [this](const Both& in) { return Mlp(in); });
    }
    if (!form_.norm_after) x = Norm(x, "last_norm");
    if (form_.logits) x = Logits(x);
    std::vector<Value> values = {x.value};
    std::vector<Plain> plains = {x.plain};
    for (const Both& cache : caches_) {
      values.push_back(cache.value);
      plains.push_back(cache.plain);
    }
    g_.Output(std::move(values));
    NPUMESH_ASSIGN_OR_RETURN(Model model, g_.Build());
    return WrittenDecoder{std::move(model), std::move(inputs_), std::move(held_),
                          std::move(plains)};
  }

 private:
  // ---- tensors ----

  // Uniform in [-scale, scale), rounded to float32 as the graph has it.
  Plain Random(std::vector<int64_t> shape, double scale) {
    int64_t count = 1;
    for (const int64_t dim : shape) count *= dim;
    Plain plain{std::move(shape), {}};
    for (int64_t i = 0; i < count; ++i) {
      const double unit = static_cast<double>(dice_.Below(1 << 20)) / (1 << 19) - 1;
      plain.values.push_back(static_cast<float>(unit * scale));
    }
    return plain;
  }

  static Tensor FloatsOf(const Plain& plain) {
    const std::vector<float> floats(plain.values.begin(), plain.values.end());
    return Tensor::FromVector<float>({DataType::kFloat, Shape(plain.shape)}, floats);
  }

  std::string Name(const std::string& what) const {
    return fmt::format("layer{}.{}", layer_, what);
  }

  Both Const(const std::string& name, Plain plain) {
    return {g_.Const(Name(name), FloatsOf(plain)), std::move(plain)};
  }

  std::vector<int64_t> Rows(int64_t columns) const {
    if (form_.batched) return {1, form_.rows, columns};
    return {form_.rows, columns};
  }

  // ---- layers ----

  Both Enter() {
    if (form_.vocabulary > 0) return Embed();
    Plain plain = Random(Rows(form_.hidden()), 1);
    inputs_.push_back(FloatsOf(plain));
    return {g_.Data("hidden_states", inputs_[0].type()), std::move(plain)};
  }

  Both Embed() {
    std::vector<int64_t> tokens;
    for (int64_t i = 0; i < form_.rows; ++i) tokens.push_back(dice_.Below(form_.vocabulary));
    const TensorType type{DataType::kInt64,
                          form_.batched ? Shape{1, form_.rows} : Shape{form_.rows}};
    inputs_.push_back(Tensor::FromVector<int64_t>(type, tokens));
    const Value ids = g_.Data("tokens", type);
    table_ = Const("table", Random({form_.vocabulary, form_.hidden()}, 1));
    Plain plain = PlainRows(table_.plain, tokens);
    plain.shape = Rows(form_.hidden());
    return {g_.Op("GatherV2", {{"x", table_.value}, {"indices", ids}, {"axis", g_.Int(0)}}),
            std::move(plain)};
  }

  // x + layer(norm(x)), or norm(x + layer(x)).
  Both Beside(const Both& x, const std::string& name,
              const std::function<Both(const Both&)>& layer) {
    if (form_.norm_after) return Norm(Add(x, layer(x)), name + "_norm");
    return Add(x, layer(Norm(x, name + "_norm")));
  }

  Both Norm(const Both& x, const std::string& name) {
    Plain scale = Random({form_.hidden()}, 0.5);
    for (double& value : scale.values) value = static_cast<float>(value + 1);
    const Both gamma = Const(name, std::move(scale));
    if (form_.norm == NormForm::kRms) {
      return {g_.Op("RmsNorm", {{"x", x.value}, {"gamma", gamma.value}},
                    {{"epsilon", AttrValue::Float(kEpsilon)}}, {}, 2),
              PlainRmsNorm(x.plain, gamma.plain, kEpsilon)};
    }
    const Both beta = Const(name + ".beta", Random({form_.hidden()}, 0.2));
    return {g_.Op("LayerNormV4",
                  {{"x", x.value},
                   {"normalized_shape", g_.Ints({form_.hidden()})},
                   {"gamma", gamma.value},
                   {"beta", beta.value}},
                  {{"epsilon", AttrValue::Float(kEpsilon)}}, {}, 3),
            PlainLayerNorm(x.plain, gamma.plain, beta.plain, kEpsilon)};
  }

  Both Add(const Both& a, const Both& b) {
    return {g_.Op("Add", {{"x1", a.value}, {"x2", b.value}}),
            PlainWith(a.plain, b.plain, [](double x, double y) { return x + y; })};
  }

  Both Mul(const Both& a, const Both& b) {
    return {g_.Op("Mul", {{"x1", a.value}, {"x2", b.value}}),
            PlainWith(a.plain, b.plain, [](double x, double y) { return x * y; })};
  }

  // The products of three dimensions are BatchMatMulV2.
  Value ProductOf(const Value& x, const Value& weight, bool transposed) {
    const bool batched = form_.batched;
    return g_.Op(batched ? "BatchMatMulV2" : form_.product, {{"x1", x}, {"x2", weight}},
                 {{batched ? "adj_x2" : "transpose_x2", AttrValue::Bool(transposed)}});
  }

  Both Linear(const Both& x, const std::string& name, int64_t columns) {
    const int64_t depth = x.plain.columns();
    std::vector<int64_t> shape = {depth, columns};
    if (form_.transposed) std::swap(shape[0], shape[1]);
    const Both weight = Const(name, Random(shape, 1 / std::sqrt(static_cast<double>(depth))));
    const Both y = {ProductOf(x.value, weight.value, form_.transposed),
                    PlainProduct(x.plain, weight.plain, form_.transposed)};
    return form_.bias ? Add(y, Const(name + ".bias", Random({columns}, 0.3))) : y;
  }

  // ---- attention ----

  struct Projected {
    Both query, key, value;
  };

  Projected Project(const Both& x) {
    const int64_t mine = form_.hidden();
    const int64_t theirs = form_.shared_heads * form_.head_size;
    if (form_.projections == ProjectionForm::kApart) {
      return {Linear(x, "wq", mine), Linear(x, "wk", theirs), Linear(x, "wv", theirs)};
    }
    const Both all = Linear(x, "wqkv", mine + 2 * theirs);
    const Value parts = Parts(all.value, {mine, theirs, theirs});
    return {{parts, PlainColumns(all.plain, 0, mine)},
            {g_.Port(parts, 1), PlainColumns(all.plain, mine, theirs)},
            {g_.Port(parts, 2), PlainColumns(all.plain, mine + theirs, theirs)}};
  }

  Value Parts(Value x, const std::vector<int64_t>& sizes) {
    const int count = static_cast<int>(sizes.size());
    const GraphBuilder::Attr parts = {"num_split", AttrValue::Int(count)};
    if (form_.attributes) {
      return g_.Op(
          "SplitVD", {{"x", x}},
          {parts, {"size_splits", AttrValue::Ints(sizes)}, {"split_dim", AttrValue::Int(-1)}}, {},
          count);
    }
    return g_.Op("SplitV", {{"x", x}, {"size_splits", g_.Ints(sizes)}, {"split_dim", g_.Int(-1)}},
                 {parts}, {}, count);
  }

  Both Attention(const Both& x) {
    const Projected in = Project(x);
    const Both key = Remembered(in.key, "past_key"), value = Remembered(in.value, "past_value");
    const Value query = Heads(in.query.value, form_.heads);
    const Plain plain = PlainAttention(in.query.plain, key.plain, value.plain,
                                       {form_.heads, form_.shared_heads, form_.cached});
    const bool written = form_.attention == AttentionForm::kWritten;
    const Value mixed =
        written ? Written(query, key.value, value.value) : Fused(query, key.value, value.value);
    return Linear({mixed, plain}, "wo", form_.hidden());
  }

  // [rows, heads * d] as [heads, rows, d].
  Value Heads(Value x, int heads) {
    return Turned(Reshape(x, {form_.rows, heads, form_.head_size}));
  }

  Value Turned(Value x) {
    if (form_.attributes) {
      return g_.Op("TransposeD", {{"x", x}}, {{"perm", AttrValue::Ints({1, 0, 2})}});
    }
    return g_.Op("Transpose", {{"x", x}, {"perm", g_.Ints({1, 0, 2})}});
  }

  // The heads of keys or values [heads, keys, d], below those that the cache has; numbers
  // [cached + rows, heads * d].
  Both Remembered(const Both& x, const std::string& name) {
    if (form_.caches == CacheForm::kNone) return {Heads(x.value, form_.shared_heads), x.plain};
    return form_.held() ? Held(x, name) : Given(x, name);
  }

  Both Given(const Both& x, const std::string& name) {
    const Plain old = Random({form_.shared_heads, form_.cached, form_.head_size}, 1);
    inputs_.push_back(FloatsOf(old));
    const Value past = g_.Data(Name(name), inputs_.back().type());
    const Value all =
        g_.Op("ConcatV2",
              {{"x0", past}, {"x1", Heads(x.value, form_.shared_heads)}, {"concat_dim", g_.Int(1)}},
              {{"N", AttrValue::Int(2)}});
    const Plain plain = PlainBelow(PlainJoined(old), x.plain);
    caches_.push_back({all, PlainApart(plain, form_.shared_heads)});
    return {all, plain};
  }

  // A RefData with the rows of this step written after those that are cached.
  Both Held(const Both& x, const std::string& name) {
    const int64_t wide = form_.shared_heads * form_.head_size;
    const Plain old = Random({form_.cached, wide}, 1), spare = Random({form_.spare, wide}, 1);
    const Plain blank = Random({form_.rows, wide}, 1);
    const bool heads_first =
        form_.caches == CacheForm::kScatter || form_.caches == CacheForm::kAssign;
    const auto arranged = [&](const Plain& plain) {
      Plain made = heads_first ? PlainApart(plain, form_.shared_heads) : plain;
      made.shape = heads_first
                       ? ShapeOfHeads(form_.keys())
                       : std::vector<int64_t>{form_.keys(), form_.shared_heads, form_.head_size};
      return made;
    };
    held_.push_back(inputs_.size());
    inputs_.push_back(FloatsOf(arranged(PlainBelow(PlainBelow(old, blank), spare))));
    const Value past = g_.RefData(Name(name), inputs_.back().type());
    const Value all = Updated(past, x.value);
    const Plain plain = PlainBelow(old, x.plain);
    caches_.push_back({all, arranged(PlainBelow(plain, spare))});
    const std::vector<int64_t> heads = {form_.shared_heads, form_.keys(), form_.head_size};
    return {heads_first ? Reshape(all, heads) : Turned(all), plain};
  }

  std::vector<int64_t> ShapeOfHeads(int64_t rows) const {
    return {1, form_.shared_heads, rows, form_.head_size};
  }

  Value Updated(Value past, Value x) {
    const Value heads = Reshape(Heads(x, form_.shared_heads), ShapeOfHeads(form_.rows));
    const Value rows = Reshape(x, {form_.rows, form_.shared_heads, form_.head_size});
    if (form_.caches == CacheForm::kAssign) {
      return g_.Op("Assign", {{"ref", past}, {"value", heads}});
    }
    if (form_.caches == CacheForm::kScatter) {
      return g_.Op("Scatter",
                   {{"var", past}, {"indices", g_.Ints({form_.cached})}, {"updates", heads}},
                   {{"reduce", AttrValue::String("update")}, {"axis", AttrValue::Int(-2)}});
    }
    std::vector<int64_t> places;
    for (int64_t row = 0; row < form_.rows; ++row) places.push_back(form_.cached + row);
    Value indices = g_.Ints(places);
    if (form_.caches == CacheForm::kScatterUpdate) {
      return g_.Op("ScatterUpdate", {{"var", past}, {"indices", indices}, {"updates", rows}});
    }
    indices = Reshape(indices, {form_.rows, 1});
    return g_.Op("ScatterNdUpdate", {{"var", past}, {"indices", indices}, {"updates", rows}});
  }

  // One head for several, as exporters repeat them.
  Value Repeat(Value x) {
    const int times = form_.heads / form_.shared_heads;
    const int64_t keys = form_.keys();
    if (times == 1) return x;
    const Value apart = g_.Op("Unsqueeze", {{"x", x}}, {{"axes", AttrValue::Ints({1})}});
    const Value wide = g_.Op(
        "BroadcastTo",
        {{"x", apart}, {"shape", g_.Ints({form_.shared_heads, times, keys, form_.head_size})}});
    return Reshape(wide, {form_.heads, keys, form_.head_size});
  }

  // Query [heads, rows, d], keys and values [shared heads, keys, d].
  Value Written(Value q, Value key, Value value) {
    const Value k = Repeat(key);
    const Value v = Repeat(value);
    const Value scores =
        g_.Op("BatchMatMulV2", {{"x1", q}, {"x2", k}}, {{"adj_x2", AttrValue::Bool(true)}});
    const Value scaled = g_.Op("Muls", {{"x", scores}}, {{"value", AttrValue::Float(Scale())}});
    Plain later{{form_.rows, form_.keys()}, {}};
    for (const bool hidden : Later()) later.values.push_back(hidden ? kHidden : 0);
    const Value masked =
        g_.Op("Add", {{"x1", scaled}, {"x2", Const("mask", std::move(later)).value}});
    const Value weights = g_.Op("SoftmaxV2", {{"x", masked}});
    const Value seen = g_.Op("BatchMatMulV2", {{"x1", weights}, {"x2", v}});
    return Reshape(Turned(seen), Rows(form_.hidden()));
  }

  // Which keys a row does not see, row by row.
  std::vector<bool> Later() const {
    std::vector<bool> later;
    for (int64_t row = 0; row < form_.rows; ++row) {
      for (int64_t key = 0; key < form_.keys(); ++key) later.push_back(key > form_.cached + row);
    }
    return later;
  }

  // [heads, rows, d] in the layout of the operators.
  Value Arranged(Value x, int64_t heads, int64_t rows) {
    if (form_.layout == "BNSD") return Reshape(x, {1, heads, rows, form_.head_size});
    const Value turned = Turned(x);
    if (form_.layout == "BSND") return Reshape(turned, {1, rows, heads, form_.head_size});
    return Reshape(turned, {1, rows, heads * form_.head_size});
  }

  Value Fused(Value query, Value key, Value value) {
    const Value q = Arranged(query, form_.heads, form_.rows);
    const Value k = Arranged(key, form_.shared_heads, form_.keys());
    const Value v = Arranged(value, form_.shared_heads, form_.keys());
    const Value made = FusedOperator(q, k, v);
    if (form_.layout != "BNSD") return Reshape(made, Rows(form_.hidden()));
    return Reshape(Turned(Reshape(made, {form_.heads, form_.rows, form_.head_size})),
                   Rows(form_.hidden()));
  }

  Value FusedOperator(Value q, Value k, Value v) {
    const GraphBuilder::Attr scale = {"scale_value", AttrValue::Float(Scale())};
    const GraphBuilder::Attr layout = {"input_layout", AttrValue::String(form_.layout)};
    const GraphBuilder::Attr heads = {"num_heads", AttrValue::Int(form_.heads)};
    const GraphBuilder::Attr shared = {"num_key_value_heads", AttrValue::Int(form_.shared_heads)};
    if (form_.attention == AttentionForm::kIncre) {
      const Value lengths = g_.Ints({form_.cached + form_.rows});
      return g_.Op("IncreFlashAttention",
                   {{"query", q}, {"key0", k}, {"value0", v}, {"actual_seq_lengths", lengths}},
                   {heads, shared, layout, scale});
    }
    Tensor hidden = Tensor::Allocate({DataType::kBool, {form_.rows, form_.keys()}});
    const std::vector<bool> later = Later();
    std::copy(later.begin(), later.end(), reinterpret_cast<uint8_t*>(hidden.mutable_data()));
    const Value mask = g_.Const(Name("later"), hidden);
    const std::vector<GraphBuilder::Input> inputs = {
        {"query", q}, {"key", k}, {"value", v}, {"atten_mask", mask}};
    if (form_.attention == AttentionForm::kPrompt) {
      return g_.Op(
          "PromptFlashAttention", inputs,
          {heads, shared, layout, scale, {"next_tokens", AttrValue::Int(int64_t{1} << 30)}});
    }
    const Value scores = g_.Op("FlashAttentionScore", inputs,
                               {{"head_num", AttrValue::Int(form_.heads)}, layout, scale}, {}, 4);
    return g_.Port(scores, 3);
  }

  float Scale() const {
    return static_cast<float>(1 / std::sqrt(static_cast<double>(form_.head_size)));
  }

  Value Reshape(Value x, std::vector<int64_t> shape) {
    return g_.Op("Reshape", {{"x", x}, {"shape", g_.Ints(std::move(shape))}});
  }

  // ---- the rest ----

  Both Mlp(const Both& x) {
    if (form_.mlp == MlpForm::kPlain) {
      const Both wide = Linear(x, "up", form_.ffn);
      return Linear({g_.Op("Relu", {{"x", wide.value}}),
                     PlainEach(wide.plain, [](double v) { return v > 0 ? v : 0; })},
                    "down", form_.hidden());
    }
    return Linear(form_.mlp == MlpForm::kSwiGlu ? Joined(x) : Gated(x), "down", form_.hidden());
  }

  Both Joined(const Both& x) {
    const Both wide = Linear(x, "gate_up", 2 * form_.ffn);
    const Plain gate = PlainEach(PlainColumns(wide.plain, 0, form_.ffn), Silu);
    return {g_.Op("SwiGlu", {{"x", wide.value}}),
            PlainWith(gate, PlainColumns(wide.plain, form_.ffn, form_.ffn),
                      [](double a, double b) { return a * b; })};
  }

  Both Gated(const Both& x) {
    const Both gate = Linear(x, "gate", form_.ffn);
    const Both up = Linear(x, "up", form_.ffn);
    return Mul({g_.Op("Swish", {{"x", gate.value}}), PlainEach(gate.plain, Silu)}, up);
  }

  Both Logits(const Both& x) {
    if (!form_.tied) return Linear(x, "logits", form_.vocabulary > 0 ? form_.vocabulary : 16);
    return {ProductOf(x.value, table_.value, true), PlainProduct(x.plain, table_.plain, true)};
  }

  const DecoderForm& form_;
  Dice dice_;
  GraphBuilder g_{"decoder"};
  int layer_ = 0;
  Both table_;
  std::vector<Tensor> inputs_;
  std::vector<size_t> held_;  // of inputs_
  std::vector<Both> caches_;  // of keys and values, with this step's
};

}  // namespace

DecoderForm DrawDecoder(uint64_t seed) {
  Dice dice(seed);
  DecoderForm form;
  form.seed = seed;
  form.layers = static_cast<int>(dice.Between(1, 3));
  form.rows = dice.Between(1, 7);
  form.heads = dice.Pick<int>({2, 3, 4, 4, 6, 8});
  form.shared_heads = form.heads;
  if (dice.Chance(50)) {
    do {
      form.shared_heads = static_cast<int>(dice.Between(1, form.heads));
    } while (form.heads % form.shared_heads != 0);
  }
  form.head_size = dice.Pick<int64_t>({4, 6, 8, 16});
  form.ffn = dice.Pick<int64_t>({8, 12, 16, 20, 22, 32, 33});
  form.vocabulary = dice.Chance(50) ? dice.Pick<int64_t>({12, 16, 17, 32, 50}) : 0;
  form.logits = dice.Chance(50);
  form.tied = form.logits && form.vocabulary > 0 && dice.Chance(50);
  form.bias = dice.Chance(40);
  form.transposed = dice.Chance(40);
  form.batched = dice.Chance(40);
  form.norm_after = dice.Chance(25);
  form.product = dice.Pick<std::string>({"MatMulV2", "MatMulV2", "MatMulV3"});
  form.norm = dice.Pick<NormForm>({NormForm::kRms, NormForm::kLayer});
  form.mlp = dice.Pick<MlpForm>({MlpForm::kSwiGlu, MlpForm::kGated, MlpForm::kPlain});
  form.projections = dice.Chance(40) ? ProjectionForm::kJoined : ProjectionForm::kApart;
  form.attributes = dice.Chance(30);
  form.attention = dice.Pick<AttentionForm>({AttentionForm::kWritten, AttentionForm::kWritten,
                                             AttentionForm::kPrompt, AttentionForm::kFlash,
                                             AttentionForm::kIncre, AttentionForm::kInfer});
  if (form.attention == AttentionForm::kIncre) form.rows = 1;
  form.layout = dice.Pick<std::string>({"BSH", "BSND", "BNSD"});
  form.caches = dice.Pick<CacheForm>({CacheForm::kNone, CacheForm::kGiven, CacheForm::kScatter,
                                      CacheForm::kScatterUpdate, CacheForm::kScatterNdUpdate,
                                      CacheForm::kAssign});
  const bool grows = form.caches != CacheForm::kNone && form.caches != CacheForm::kAssign;
  if (grows) form.cached = dice.Below(4);
  if (grows && form.held()) form.spare = dice.Below(3);
  return form;
}

std::string ToText(const DecoderForm& form) {
  constexpr const char* kNorms[] = {"rms", "layer"};
  constexpr const char* kMlps[] = {"swiglu", "gated", "plain"};
  constexpr const char* kAttentions[] = {"written", "prompt", "flash", "incre", "infer"};
  constexpr const char* kCaches[] = {
      "no", "given", "Scatter", "ScatterUpdate", "ScatterNdUpdate", "Assign"};
  const auto flag = [](bool set, const char* name) { return set ? name : ""; };
  return fmt::format(
      "seed {}: {} layers, {} rows, {} heads of {} (kv {}), ffn {}, vocabulary {}, {} "
      "norm, {} mlp, {} attention{}{}{}{}{}{}{}{}, {}, {}, {} caches {}+{}",
      form.seed, form.layers, form.rows, form.heads, form.head_size, form.shared_heads, form.ffn,
      form.vocabulary, kNorms[static_cast<int>(form.norm)], kMlps[static_cast<int>(form.mlp)],
      kAttentions[static_cast<int>(form.attention)], flag(form.logits, ", logits"),
      flag(form.tied, ", tied"), flag(form.bias, ", bias"), flag(form.transposed, ", transposed"),
      flag(form.batched, ", batched"), flag(form.norm_after, ", norm after"),
      flag(form.attributes, ", attributes"),
      flag(form.projections == ProjectionForm::kJoined, ", joined"), form.product, form.layout,
      kCaches[static_cast<int>(form.caches)], form.cached, form.spare);
}

Result<WrittenDecoder> WriteDecoder(const DecoderForm& form) {
  return DecoderWriter(form).Write();
}

}  // namespace npumesh
