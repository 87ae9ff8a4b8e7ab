// The decoder of decoder_model.h, split over ranks; and the whole of it in plain loops, with the
// weights that stand in the graph of one card.
#include <cmath>
#include <cstring>

#include "launch/samples/decoder_model.h"
#include "launch/samples/plain_table.h"
#include "launch/samples/sample_content.h"

namespace npumesh {
namespace {

// A constant of the graph as a table, vectors as one row. REQUIRES: the graph has it, in float32.
Table ConstantOf(const Model& model, const std::string& name) {
  const Node& node = model.graph.node(model.graph.Find(name));
  const TensorAttr& value = *node.FindAttr("value")->get<TensorAttr>();
  const Shape& shape = *value.desc->shape;
  std::vector<float> narrow(static_cast<size_t>(shape.elements()));
  std::memcpy(narrow.data(), value.data->data(), narrow.size() * sizeof(float));
  const int64_t columns = shape[shape.rank() - 1];
  return {shape.elements() / columns, columns, {narrow.begin(), narrow.end()}};
}

class PlainDecoder {
 public:
  PlainDecoder(const DecoderConfig& config, const Model& whole) : config_(config), whole_(whole) {}

  Table Run(Table x) {
    for (int layer = 0; layer < config_.layers; ++layer) {
      prefix_ = fmt::format("layer{}.", layer);
      x = Sum(x, Product(Attention(Norm(x, "attention_norm")), Weight("wo")));
      x = Sum(x, Mlp(Norm(x, "mlp_norm")));
    }
    prefix_ = fmt::format("layer{}.", config_.layers);
    return Norm(x, "final_norm");
  }

 private:
  Table Weight(const std::string& name) const { return ConstantOf(whole_, prefix_ + name); }
  Table Norm(const Table& x, const std::string& name) const {
    return RmsNormOf(x, Weight(name), 1e-6);
  }

  Table Attention(const Table& x) const {
    const Table q = Product(x, Weight("wq")), k = Product(x, Weight("wk"));
    const Table v = Product(x, Weight("wv"));
    const int64_t width = config_.hidden / config_.heads;
    Table all = Table::Zeros(x.rows, config_.hidden);
    for (int64_t begin = 0; begin < config_.hidden; begin += width) {
      const Table seen = Head(Rotated(ColumnsOf(q, begin, width)),
                              Rotated(ColumnsOf(k, begin, width)), ColumnsOf(v, begin, width));
      for (int64_t row = 0; row < x.rows; ++row) {
        for (int64_t i = 0; i < width; ++i) all.at(row, begin + i) = seen.at(row, i);
      }
    }
    return all;
  }

  // One head: each position sees itself and those before it.
  static Table Head(const Table& q, const Table& k, const Table& v) {
    Table seen = Table::Zeros(q.rows, q.columns);
    for (int64_t row = 0; row < q.rows; ++row) {
      Table scores = Table::Zeros(1, row + 1);
      for (int64_t other = 0; other <= row; ++other) {
        for (int64_t i = 0; i < q.columns; ++i) {
          scores.at(0, other) += q.at(row, i) * k.at(other, i);
        }
        scores.at(0, other) /= std::sqrt(static_cast<double>(q.columns));
      }
      scores = SoftmaxOf(scores);
      for (int64_t other = 0; other <= row; ++other) {
        for (int64_t i = 0; i < q.columns; ++i) {
          seen.at(row, i) += scores.at(0, other) * v.at(other, i);
        }
      }
    }
    return seen;
  }

  // Pairs (i, i + half) of each row turned by position * 10000^(-i / half).
  static Table Rotated(const Table& x) {
    const int64_t half = x.columns / 2;
    Table turned = x;
    for (int64_t row = 0; row < x.rows; ++row) {
      for (int64_t i = 0; i < half; ++i) {
        const double exponent = static_cast<double>(i) / static_cast<double>(half);
        const double angle = static_cast<double>(row) * std::pow(10000.0, -exponent);
        const double a = x.at(row, i), b = x.at(row, i + half);
        turned.at(row, i) = a * std::cos(angle) - b * std::sin(angle);
        turned.at(row, i + half) = b * std::cos(angle) + a * std::sin(angle);
      }
    }
    return turned;
  }

  Table Mlp(const Table& x) const {
    const Table both = Product(x, Weight("gate_up"));
    Table inner = Each(ColumnsOf(both, 0, config_.ffn), Silu);
    for (int64_t row = 0; row < x.rows; ++row) {
      for (int64_t i = 0; i < config_.ffn; ++i) inner.at(row, i) *= both.at(row, config_.ffn + i);
    }
    return Product(inner, Weight("down"));
  }

  const DecoderConfig& config_;
  const Model& whole_;
  std::string prefix_;
};

}  // namespace

Result<SampleContent> MakeDecoder(int ranks) {
  const DecoderConfig config = {.layers = 2, .hidden = 32, .heads = 4, .ffn = 64, .sequence = 8};
  SampleContent content;
  for (int rank = 0; rank < ranks; ++rank) {
    NPUMESH_ASSIGN_OR_RETURN(Model model, BuildDecoder(config, rank, ranks));
    content.models.push_back(std::move(model));
  }
  NPUMESH_ASSIGN_OR_RETURN(const Model whole, BuildDecoder(config, 0, 1));
  const Tensor input = DecoderInput(config);
  const std::vector<float> narrow = ToFloats(input);
  const Table x = {config.sequence, config.hidden, {narrow.begin(), narrow.end()}};
  const Table y = PlainDecoder(config, whole).Run(x);
  const auto count = static_cast<size_t>(ranks);
  content.steps.push_back({std::vector<SampleTensors>(count, {{0, input}}),
                           std::vector<SampleTensors>(count, {{0, TensorOf(y)}})});
  return content;
}

}  // namespace npumesh
