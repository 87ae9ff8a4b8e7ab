#include "tests/models/decoder_training.h"

#include <cmath>
#include <map>

#include "tests/models/aten_graph.h"
#include "tests/models/fused_attention.h"
#include "tests/models/training_optimizer.h"

namespace npumesh::models {
namespace {

constexpr const char* kAllRanks = "hccl_world_group";

// What the backward of a layer needs of its forward.
struct LayerMemory {
  std::string prefix;
  Value x, normal, norm_statistics;  // LayerNorm: input, output 0, ports 1 and 2
  Value q, k_turned, v, weights, kept_weights, weights_mask, seen;
  FusedAttentionInputs fused_inputs;
  Value fused;
  Value attention_mask;                           // of the dropout behind wo
  Value middle, rms, rms_flat, inner, activated;  // RmsNorm: input, output; around Gelu
  Value mlp_mask;
};

class StepWriter {
 public:
  StepWriter(const TrainingConfig& config, const Parameters& parameters, int rank)
      : config_(config),
        parts_(config.tensor_parallel),
        g_("training_step"),
        optimizer_(config, g_) {
    local_hidden_ = config.hidden / parts_;
    local_heads_ = config.heads / parts_;
    local_ffn_ = config.ffn / parts_;
    const TensorType ids{DataType::kInt64, {config.tokens()}};
    tokens_ = g_.Input("tokens", {DataType::kInt64, {config.batch, config.sequence}});
    targets_ = g_.Input("targets", ids);
    if (config.keep < 1) {
      const Value all = g_.HostInput("offsets", {DataType::kInt64, {config.dropouts()}});
      offsets_ = g_.Op("Unpack", {{"x", all}},
                       {{"num", AttrValue::Int(config.dropouts())}, {"axis", AttrValue::Int(0)}},
                       static_cast<int>(config.dropouts()));
    }
    for (const Parameter& whole : parameters.all()) {
      const Parameter own = ShardOf(config, whole, rank);
      const Value ref = g_.RefInput(own.name, {DataType::kFloat, own.shape});
      p_[own.name] = config.fully_sharded ? Gathered(ref, whole.shape) : ref;
      optimizer_.Declare(own, ref);
    }
    optimizer_.DeclareShared();
  }

  Result<Model> Write() {
    Forward();
    Backward();
    std::vector<Value> outputs = {loss_};
    for (const std::string& name : optimizer_.names()) outputs.push_back(Gradient(name));
    optimizer_.Write(gradients_);
    g_.Output(outputs);
    return g_.Build();
  }

 private:
  int64_t rows() const { return config_.tokens(); }
  Value P(const std::string& name) const { return p_.at(prefix_ + name); }
  // What a product takes: autocast's copy, or the value itself.
  Value Operand(Value x) { return config_.mixed ? g_.ToCopy(x, DataType::kBfloat16) : x; }
  Value W(const std::string& name) { return Operand(P(name)); }
  Value Wide(Value x) { return config_.mixed ? g_.ToCopy(x, DataType::kFloat) : x; }
  DataType dtype() const { return config_.mixed ? DataType::kBfloat16 : DataType::kFloat; }

  Value Gathered(Value slice, const Shape& shape) {
    const Value whole = g_.Op("HcomAllGather", {{"x", slice}},
                              {{"rank_size", AttrValue::Int(config_.data_parallel)},
                               {"group", AttrValue::String(kAllRanks)}});
    return g_.View(g_.Clone(whole), shape.dims());
  }
  Value Scattered(Value whole) {
    return g_.Clone(g_.Op("HcomReduceScatter", {{"x", g_.View(whole, {-1})}},
                          {{"reduction", AttrValue::String("sum")},
                           {"rank_size", AttrValue::Int(config_.data_parallel)},
                           {"group", AttrValue::String(kAllRanks)}}));
  }

  // ---- forward ----

  void Forward() {
    const int64_t b = config_.batch, s = config_.sequence, h = config_.hidden;
    positions_ = g_.Arange(s, DataType::kInt64);
    Value x = g_.Add(g_.Embedding(p_["wte"], tokens_), g_.Embedding(p_["wpe"], positions_));
    mask_ = g_.Op("Triu", {{"x", g_.Full({s, s}, -INFINITY)}}, {{"diagonal", AttrValue::Int(1)}});
    if (config_.fused_attention) fused_mask_ = CausalMask(g_, s);
    for (int64_t layer = 0; layer < config_.layers; ++layer) {
      prefix_ = std::to_string(layer) + ".";
      LayerMemory m;
      m.prefix = prefix_;
      x = Attention(x, m);
      x = Mlp(x, m);
      layers_.push_back(m);
    }
    prefix_ = "final.";
    last_ = x;
    last_normal_ = g_.LayerNorm(x, h, P("ln.gamma"), P("ln.beta"), 1e-5);
    flat_ = Operand(g_.View(last_normal_, {b * s, h}));
    const Value logits = Wide(g_.Mm(flat_, g_.T(Operand(p_["wte"]))));
    log_probabilities_ =
        g_.Op("LogSoftmaxV2", {{"logits", logits}}, {{"axes", AttrValue::Ints({-1})}});
    loss_ = g_.NllLoss(log_probabilities_, targets_);
  }

  // x + dropout(attention(layer_norm(x)) wo + bo).
  Value Attention(Value x, LayerMemory& m) {
    const int64_t b = config_.batch, s = config_.sequence, h = config_.hidden;
    m.x = x;
    m.norm_statistics = g_.LayerNorm(x, h, P("ln.gamma"), P("ln.beta"), 1e-5);
    m.normal = Operand(g_.View(m.norm_statistics, {rows(), h}));
    const Value qkv = g_.View(g_.Mm(m.normal, g_.T(W("wqkv"))), {b, s, 3 * local_hidden_});
    const Value parts = g_.Split(qkv, {local_hidden_, local_hidden_, local_hidden_}, 2);
    const Value seen = config_.fused_attention ? Fused(parts, m) : Decomposed(parts, m);
    m.seen = g_.View(seen, {rows(), local_hidden_});
    const Value out = g_.View(Completed(m.seen, g_.T(W("wo")), W("bo")), {b, s, h});
    return g_.Add(x, Wide(Dropout(out, {b, s, h}, m.attention_mask)));
  }

  // Attention of q, k and v, the ports of `parts`: [b, s, heads * width].
  Value Fused(Value parts, LayerMemory& m) {
    m.fused_inputs = {parts,       g_.Port(parts, 1), g_.Port(parts, 2),
                      fused_mask_, local_heads_,      Scale()};
    m.fused = FusedAttention(g_, m.fused_inputs);
    return g_.Port(m.fused, 3);
  }
  Value Decomposed(Value parts, LayerMemory& m) {
    const int64_t b = config_.batch, s = config_.sequence;
    m.q = Flat(g_.MulScalar(Heads(parts), Scale(), dtype()));
    m.k_turned = FlatTurned(Heads(g_.Port(parts, 1)));
    m.v = Flat(Heads(g_.Port(parts, 2)));
    const Value scores = g_.View(g_.Bmm(m.q, m.k_turned), {b, local_heads_, s, s});
    m.weights = g_.Softmax(g_.Add(Wide(scores), mask_));
    m.kept_weights = Operand(Dropout(m.weights, {b, local_heads_, s, s}, m.weights_mask));
    const Value seen = g_.Bmm(g_.View(m.kept_weights, {b * local_heads_, s, s}), m.v);
    const Value per_token =
        g_.Permute(g_.View(seen, {b, local_heads_, s, config_.width()}), {0, 2, 1, 3});
    return g_.View(g_.Clone(per_token), {b, s, local_hidden_});
  }

  // x + dropout(gelu(rms_norm(x) w1 + b1) w2 + b2).
  Value Mlp(Value x, LayerMemory& m) {
    const int64_t b = config_.batch, s = config_.sequence, h = config_.hidden;
    m.middle = x;
    m.rms = g_.Op("RmsNorm", {{"x", x}, {"gamma", P("rms.gamma")}},
                  {{"epsilon", AttrValue::Float(1e-6f)}});
    m.rms_flat = Operand(g_.View(m.rms, {rows(), h}));
    m.inner = g_.Addmm(W("b1"), m.rms_flat, g_.T(W("w1")), dtype());
    m.activated = g_.Unary("Gelu", m.inner);
    const Value out = g_.View(Completed(m.activated, g_.T(W("w2")), W("b2")), {b, s, h});
    return g_.Add(x, Wide(Dropout(out, {b, s, h}, m.mlp_mask)));
  }

  // The sum over ranks of x w, then the bias.
  Value Completed(Value x, Value w, Value bias) {
    if (parts_ == 1) return g_.Addmm(bias, x, w, dtype());
    return g_.Add(g_.AllReduce(g_.Mm(x, w), kAllRanks), bias);
  }

  double Scale() const { return 1 / std::sqrt(static_cast<double>(config_.width())); }

  // [b, s, heads * width] as [b, heads, s, width].
  Value Heads(Value x) {
    return g_.Permute(g_.View(x, {config_.batch, config_.sequence, local_heads_, config_.width()}),
                      {0, 2, 1, 3});
  }
  // What matmul makes of operands of rank 4: expand, and a view of rank 3.
  Value Flat(Value x) {
    const int64_t b = config_.batch, s = config_.sequence, d = config_.width();
    return g_.View(g_.Clone(g_.Expand(x, {b, local_heads_, s, d})), {b * local_heads_, s, d});
  }
  Value FlatTurned(Value x) {
    const int64_t b = config_.batch, s = config_.sequence, d = config_.width();
    const Value turned = g_.Expand(g_.Permute(x, {0, 1, 3, 2}), {b, local_heads_, d, s});
    return g_.View(g_.Clone(turned), {b * local_heads_, d, s});
  }

  Value Dropout(Value x, std::vector<int64_t> sizes, Value& mask) {
    if (config_.keep == 1) return x;
    const Value offset = g_.Port(offsets_, next_dropout_++);
    mask = g_.DropoutMask(std::move(sizes), config_.keep, kDropoutSeed, offset);
    return g_.DoMask(x, mask, config_.keep);
  }
  Value Undropped(Value grad, Value mask) {
    return config_.keep == 1 ? grad : g_.DoMask(grad, mask, config_.keep);
  }

  // ---- backward ----

  void Backward() {
    const int64_t b = config_.batch, s = config_.sequence, h = config_.hidden;
    prefix_ = "";
    const Value of_log =
        g_.NllLossBackward(g_.Full({}, 1), log_probabilities_, targets_, g_.Port(loss_, 1));
    const Value of_logits =
        Operand(g_.Op("LogSoftmaxGrad", {{"grad", of_log}, {"x", log_probabilities_}},
                      {{"axis", AttrValue::Ints({-1})}}));
    const Value of_table = OfWeight(of_logits, flat_);
    Value dx = Wide(g_.View(g_.Mm(of_logits, g_.T(g_.T(Operand(p_["wte"])))), {b, s, h}));
    prefix_ = "final.";
    dx = OfLayerNorm(dx, last_, last_normal_);
    for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
      prefix_ = layer->prefix;
      dx = g_.Add(dx, OfMlp(dx, *layer));
      dx = g_.Add(dx, OfAttention(dx, *layer));
    }
    prefix_ = "";
    Add("wte", g_.Add(of_table, g_.EmbeddingDenseBackward(dx, tokens_, config_.vocabulary)));
    Add("wpe", g_.EmbeddingDenseBackward(g_.Sum(dx, {0}), positions_, s));
  }

  Value OfMlp(Value dx, const LayerMemory& m) {
    const int64_t h = config_.hidden;
    const Value out = g_.View(Undropped(Operand(dx), m.mlp_mask), {rows(), h});
    Add("b2", OfBias(out, h));
    Add("w2", OfWeight(out, m.activated));
    const Value activated = g_.Mm(out, g_.T(g_.T(W("w2"))));
    const Value inner = g_.Op("GeluGrad", {{"dy", activated}, {"x", m.inner}, {"y", m.activated}});
    Add("b1", OfBias(inner, local_ffn_));
    Add("w1", OfWeight(inner, m.rms_flat));
    const Value normal = SumOverParts(Wide(g_.Mm(inner, g_.T(g_.T(W("w1"))))));
    const Value both =
        g_.Op("RmsNormGrad", {{"dy", g_.View(normal, {config_.batch, config_.sequence, h})},
                              {"x", m.middle},
                              {"rstd", g_.Port(m.rms, 1)},
                              {"gamma", P("rms.gamma")}});
    Add("rms.gamma", g_.Port(both, 1));
    return both;
  }

  Value OfAttention(Value dx, const LayerMemory& m) {
    const int64_t b = config_.batch, s = config_.sequence, h = config_.hidden;
    const Value out = g_.View(Undropped(Operand(dx), m.attention_mask), {rows(), h});
    Add("bo", OfBias(out, h));
    Add("wo", OfWeight(out, m.seen));
    const Value seen = g_.View(g_.Mm(out, g_.T(g_.T(W("wo")))), {b, s, local_hidden_});
    const Value qkv = config_.fused_attention ? OfFused(seen, m) : OfDecomposed(seen, m);
    const Value flat = g_.View(qkv, {rows(), 3 * local_hidden_});
    Add("wqkv", OfWeight(flat, m.normal));
    const Value normal = SumOverParts(Wide(g_.Mm(flat, g_.T(g_.T(W("wqkv"))))));
    return OfLayerNorm(g_.View(normal, {b, s, h}), m.x, m.norm_statistics);
  }

  // Gradients of q, k and v side by side.
  Value OfFused(Value dy, const LayerMemory& m) {
    const Value all = FusedAttentionBackward(g_, dy, m.fused_inputs, m.fused);
    return g_.Cat({all, g_.Port(all, 1), g_.Port(all, 2)}, 2);
  }
  Value OfDecomposed(Value dy, const LayerMemory& m) {
    const int64_t b = config_.batch, s = config_.sequence;
    const Value grad = Flat(Heads(dy));
    const Value kept = g_.View(m.kept_weights, {b * local_heads_, s, s});
    const Value dv = g_.Bmm(g_.Permute(kept, {0, 2, 1}), grad);
    const Value of_kept =
        Wide(g_.View(g_.Bmm(grad, g_.Permute(m.v, {0, 2, 1})), {b, local_heads_, s, s}));
    const Value of_scores = g_.SoftmaxBackward(Undropped(of_kept, m.weights_mask), m.weights);
    const Value scores = g_.View(Operand(of_scores), {b * local_heads_, s, s});
    const Value dq = g_.Bmm(scores, g_.Permute(m.k_turned, {0, 2, 1}));
    const Value dk_turned = g_.Bmm(g_.Permute(m.q, {0, 2, 1}), scores);
    return g_.Cat({Joined(dq, Scale()), Joined(g_.Permute(dk_turned, {0, 2, 1}), 1), Joined(dv, 1)},
                  2);
  }

  // [b * heads, s, width] times `scale` as [b, s, heads * width].
  Value Joined(Value x, double scale) {
    Value heads = g_.View(x, {config_.batch, local_heads_, config_.sequence, config_.width()});
    if (scale != 1) heads = g_.MulScalar(heads, scale, dtype());
    return g_.View(g_.Clone(g_.Permute(heads, {0, 2, 1, 3})),
                   {config_.batch, config_.sequence, local_hidden_});
  }

  Value OfLayerNorm(Value grad, Value x, Value norm) {
    const Value all =
        g_.LayerNormBackward(grad, x, g_.Port(norm, 1), g_.Port(norm, 2), P("ln.gamma"));
    Add("ln.gamma", g_.Port(all, 1));
    Add("ln.beta", g_.Port(all, 2));
    return all;
  }

  // Of the weight [out, in] of y = x wT.
  Value OfWeight(Value dy, Value x) { return Wide(g_.T(g_.T(g_.Mm(g_.T(dy), x)))); }
  Value OfBias(Value dy, int64_t width) { return Wide(g_.View(g_.Sum(dy, {0}, true), {width})); }
  Value SumOverParts(Value x) { return parts_ == 1 ? x : g_.AllReduce(x, kAllRanks); }

  // The gradient of parameter `name`, of all ranks.
  void Add(const std::string& name, Value grad) {
    if (config_.data_parallel > 1) {
      const Value sum = config_.fully_sharded ? Scattered(grad) : g_.AllReduce(grad, kAllRanks);
      grad = g_.DivScalar(sum, config_.data_parallel);
    }
    gradients_[prefix_ + name] = grad;
  }
  Value Gradient(const std::string& name) const { return gradients_.at(name); }

  const TrainingConfig& config_;
  int64_t parts_;
  int64_t local_hidden_ = 0, local_heads_ = 0, local_ffn_ = 0;
  AtenGraph g_;
  OptimizerWriter optimizer_;
  std::map<std::string, Value> p_;
  std::map<std::string, Value> gradients_;
  std::string prefix_;
  Value tokens_, targets_, offsets_, positions_, mask_, fused_mask_;
  Value last_, last_normal_, flat_, log_probabilities_, loss_;
  std::vector<LayerMemory> layers_;
  int next_dropout_ = 0;
};

}  // namespace

Result<Model> BuildDecoderStep(const TrainingConfig& config, const Parameters& parameters,
                               int rank) {
  return StepWriter(config, parameters, rank).Write();
}

}  // namespace npumesh::models
