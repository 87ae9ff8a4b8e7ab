#include "tests/bench/decoder/onnx_block.h"

#include <cmath>

namespace npumesh {
namespace {

constexpr float kEpsilon = 1e-6f;

// What both forms share: weights and products.
class OnnxBlockWriter {
 public:
  OnnxBlockWriter(const DecoderConfig& config, const Model& model)
      : config_(config), model_(model) {}

 protected:
  int64_t heads() const { return config_.heads; }
  int64_t head_size() const { return config_.hidden / config_.heads; }
  int64_t sequence() const { return config_.sequence; }
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(head_size())); }

  // The bytes of a constant of the model; missing ones are remembered for Checked.
  std::string_view BytesOf(const std::string& name) {
    const NodeId id = model_.graph.Find(name);
    const AttrValue* value = id == kNoNode ? nullptr : model_.graph.node(id).FindAttr("value");
    const TensorAttr* tensor = value == nullptr ? nullptr : value->get<TensorAttr>();
    if (tensor == nullptr) missing_ = name;
    return tensor == nullptr ? std::string_view() : std::string_view(*tensor->data);
  }
  std::string Weight(const std::string& name, const OnnxShape& shape) {
    return g_.Floats(name, shape, BytesOf(name));
  }
  // The bytes of `count` columns of a constant with `columns` ones, from column `first` on.
  std::string ColumnsOf(const std::string& name, int64_t columns, int64_t first, int64_t count) {
    const std::string_view whole = BytesOf(name);
    const size_t row = static_cast<size_t>(columns) * sizeof(float);
    const size_t width = static_cast<size_t>(count) * sizeof(float);
    std::string bytes;
    for (size_t at = static_cast<size_t>(first) * sizeof(float); at < whole.size(); at += row) {
      bytes += whole.substr(at, width);
    }
    return bytes;
  }
  std::string Gamma(const std::string& name) { return Weight(name, {config_.hidden}); }

  // x times the weight `name`, [rows, columns].
  std::string Product(const std::string& x, const std::string& name, int64_t rows,
                      int64_t columns) {
    return g_.Op("MatMul", {x, Weight(name, {rows, columns})});
  }
  std::string Projected(const std::string& x, const std::string& name) {
    return Product(x, name, config_.hidden, config_.hidden);
  }

  Result<OnnxModel> Checked(OnnxModel model) const {
    if (missing_.empty()) return model;
    return Error(Code::kNotFound, "the decoder has no constant {}", missing_);
  }

  const DecoderConfig& config_;
  OnnxGraph g_;

 private:
  const Model& model_;
  std::string missing_;
};

class PlainBlockWriter : public OnnxBlockWriter {
 public:
  using OnnxBlockWriter::OnnxBlockWriter;

  Result<OnnxModel> Write() {
    const OnnxShape shape{sequence(), config_.hidden};
    std::string x = g_.Input("hidden_states", shape);
    WriteTables();
    x = g_.Op("Add", {x, Attention(Norm(x, "layer0.attention_norm"))});
    x = g_.Op("Add", {x, Mlp(Norm(x, "layer0.mlp_norm"))});
    return Checked(g_.Finish(Norm(x, "layer1.final_norm"), shape));
  }

 private:
  void WriteTables() {
    cosines_ = Weight("rotary_cos", {sequence(), head_size()});
    sines_ = Weight("rotary_sin", {sequence(), head_size()});
    mask_ = Weight("causal_mask", {sequence(), sequence()});
  }

  std::string Norm(const std::string& x, const std::string& gamma) {
    const std::string squares = g_.Op("Pow", {x, g_.Scalar(2)});
    const std::string mean =
        g_.Op("ReduceMean", {squares}, {{"axes", OnnxShape{-1}}, {"keepdims", int64_t{1}}});
    const std::string root = g_.Op("Sqrt", {g_.Op("Add", {mean, g_.Scalar(kEpsilon)})});
    return g_.Op("Mul", {g_.Op("Div", {x, root}), Gamma(gamma)});
  }

  // [sequence, hidden] as [heads, sequence, head_size].
  std::string Heads(const std::string& x) {
    const std::string parts = g_.Op("Reshape", {x, g_.Ints({sequence(), heads(), head_size()})});
    return Transposed(parts, {1, 0, 2});
  }

  std::string Transposed(const std::string& x, const OnnxShape& order) {
    return g_.Op("Transpose", {x}, {{"perm", order}});
  }

  std::string Rotated(const std::string& x) {
    const auto [first, second] = Halves(x, head_size() / 2);
    const std::string turned =
        g_.Op("Concat", {g_.Op("Neg", {second}), first}, {{"axis", int64_t{-1}}});
    return g_.Op("Add", {g_.Op("Mul", {x, cosines_}), g_.Op("Mul", {turned, sines_})});
  }

  std::pair<std::string, std::string> Halves(const std::string& x, int64_t half) {
    std::pair<std::string, std::string> halves{g_.NewName(), g_.NewName()};
    g_.Node("Split", {x, g_.Ints({half, half})}, {halves.first, halves.second},
            {{"axis", int64_t{-1}}});
    return halves;
  }

  std::string Attention(const std::string& x) {
    const std::string q = Rotated(Heads(Projected(x, "layer0.wq")));
    const std::string k = Rotated(Heads(Projected(x, "layer0.wk")));
    const std::string v = Heads(Projected(x, "layer0.wv"));
    const std::string scores = g_.Op("MatMul", {q, Transposed(k, {0, 2, 1})});
    const std::string scaled = g_.Op("Mul", {scores, g_.Scalar(scale())});
    const std::string weights =
        g_.Op("Softmax", {g_.Op("Add", {scaled, mask_})}, {{"axis", int64_t{-1}}});
    const std::string seen = Transposed(g_.Op("MatMul", {weights, v}), {1, 0, 2});
    return Projected(g_.Op("Reshape", {seen, g_.Ints({sequence(), config_.hidden})}), "layer0.wo");
  }

  std::string Mlp(const std::string& x) {
    const std::string both = Product(x, "layer0.gate_up", config_.hidden, 2 * config_.ffn);
    const auto [gate, up] = Halves(both, config_.ffn);
    const std::string swish = g_.Op("Mul", {gate, g_.Op("Sigmoid", {gate})});
    return Product(g_.Op("Mul", {swish, up}), "layer0.down", config_.ffn, config_.hidden);
  }

  std::string cosines_, sines_, mask_;
};

class FusedBlockWriter : public OnnxBlockWriter {
 public:
  using OnnxBlockWriter::OnnxBlockWriter;

  Result<OnnxModel> Write() {
    const OnnxShape shape{1, sequence(), config_.hidden};
    const std::string x = g_.Input("hidden_states", shape);
    WriteTables();
    const std::string normal =
        g_.Op("SimplifiedLayerNormalization", {x, Gamma("layer0.attention_norm")},
              {{"axis", int64_t{-1}}, {"epsilon", kEpsilon}});
    const auto [y, normal_y] = SumAndNorm(x, Attention(normal), "layer0.mlp_norm");
    const auto [z, normal_z] = SumAndNorm(y, Mlp(normal_y), "layer1.final_norm");
    return Checked(g_.Finish(normal_z, shape));
  }

 private:
  // The operator takes the angles of half a head, because the other half has the same.
  void WriteTables() {
    cosines_ = HalfTable("rotary_cos");
    sines_ = HalfTable("rotary_sin");
    mask_ = Weight("causal_mask", {1, 1, sequence(), sequence()});
    positions_ = g_.Ints({0});
  }
  std::string HalfTable(const std::string& name) {
    const int64_t half = head_size() / 2;
    return g_.Floats(name, {sequence(), half}, ColumnsOf(name, head_size(), 0, half));
  }

  // x + y, and the norm of it.
  std::pair<std::string, std::string> SumAndNorm(const std::string& x, const std::string& y,
                                                 const std::string& gamma) {
    const std::string sum = g_.NewName(), normal = g_.NewName();
    g_.Node("SkipSimplifiedLayerNormalization", {x, y, Gamma(gamma)}, {normal, "", "", sum},
            {{"epsilon", kEpsilon}}, kOnnxRuntimeDomain);
    return {sum, normal};
  }

  std::string Rotated(const std::string& x) {
    return g_.Op("RotaryEmbedding", {x, positions_, cosines_, sines_}, {{"num_heads", heads()}},
                 kOnnxRuntimeDomain);
  }

  std::string Attention(const std::string& x) {
    const std::string q = Rotated(Projected(x, "layer0.wq"));
    const std::string k = Rotated(Projected(x, "layer0.wk"));
    const std::string v = Projected(x, "layer0.wv");
    const std::string seen =
        g_.Op("MultiHeadAttention", {q, k, v, "", "", mask_},
              {{"num_heads", heads()}, {"scale", scale()}}, kOnnxRuntimeDomain);
    return Projected(seen, "layer0.wo");
  }

  std::string Mlp(const std::string& x) {
    const std::string gate = GateOrUp(x, "gate", 0);
    const std::string up = GateOrUp(x, "up", config_.ffn);
    const std::string swish = g_.Op("QuickGelu", {gate}, {{"alpha", 1.0f}}, kOnnxRuntimeDomain);
    return Product(g_.Op("Mul", {swish, up}), "layer0.down", config_.ffn, config_.hidden);
  }

  // x times the columns of gate_up from `first` on. So nothing is split afterwards.
  std::string GateOrUp(const std::string& x, const std::string& name, int64_t first) {
    const int64_t ffn = config_.ffn;
    const std::string columns = ColumnsOf("layer0.gate_up", 2 * ffn, first, ffn);
    return g_.Op("MatMul", {x, g_.Floats(name, {config_.hidden, ffn}, columns)});
  }

  std::string cosines_, sines_, positions_, mask_;
};

}  // namespace

Result<OnnxModel> PlainOnnxBlock(const DecoderConfig& config, const Model& model) {
  return PlainBlockWriter(config, model).Write();
}

Result<OnnxModel> FusedOnnxBlock(const DecoderConfig& config, const Model& model) {
  return FusedBlockWriter(config, model).Write();
}

}  // namespace npumesh
