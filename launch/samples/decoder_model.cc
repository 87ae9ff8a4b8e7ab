#include "launch/samples/decoder_model.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "graph/ir/graph_builder.h"
#include "runtime/base/float16.h"

namespace npumesh {
namespace {

// The name graphs use for the group of all ranks.
constexpr const char* kAllRanks = "hccl_world_group";
// Added to the scores of positions a token may not see; still a float16.
constexpr float kHidden = -30000.0f;
constexpr float kRotaryBase = 10000.0f;

// A row-major matrix of floats.
struct Matrix {
  int rows = 0;
  int columns = 0;
  std::vector<float> values;

  // Uniform in [-scale, scale).
  static Matrix Random(int rows, int columns, float scale, uint64_t seed) {
    Matrix matrix{rows, columns, std::vector<float>(static_cast<size_t>(rows) * columns)};
    std::mt19937_64 random(seed);
    for (float& value : matrix.values) {
      const auto unit = static_cast<float>(random() >> 40) * 0x1p-23f - 1.0f;
      value = unit * scale;
    }
    return matrix;
  }

  // Part `part` of `parts` equal ones.
  Matrix Rows(int part, int parts) const {
    const int count = rows / parts;
    const auto first = values.begin() + static_cast<ptrdiff_t>(part) * count * columns;
    return {count, columns, {first, first + static_cast<ptrdiff_t>(count) * columns}};
  }
  Matrix Columns(int part, int parts) const {
    const int count = columns / parts;
    Matrix result{rows, count, {}};
    for (int row = 0; row < rows; ++row) {
      const auto first = values.begin() + static_cast<ptrdiff_t>(row) * columns + part * count;
      result.values.insert(result.values.end(), first, first + count);
    }
    return result;
  }
  // `right` beside this one.
  Matrix Beside(const Matrix& right) const {
    Matrix result{rows, columns + right.columns, {}};
    for (int row = 0; row < rows; ++row) {
      for (const Matrix* side : {this, &right}) {
        const auto first = side->values.begin() + static_cast<ptrdiff_t>(row) * side->columns;
        result.values.insert(result.values.end(), first, first + side->columns);
      }
    }
    return result;
  }
};

class DecoderWriter {
 public:
  DecoderWriter(const DecoderConfig& config, int rank, int ranks)
      : config_(config), rank_(rank), ranks_(ranks), g_("decoder") {}

  Result<Model> Write() {
    Value x = g_.Data("hidden_states", {config_.dtype, {config_.sequence, config_.hidden}});
    WriteTables();
    for (layer_ = 0; layer_ < config_.layers; ++layer_) {
      x = Add(x, SumOverRanks(Attention(Norm(x, "attention_norm"))));
      x = Add(x, SumOverRanks(Mlp(Norm(x, "mlp_norm"))));
    }
    g_.Output({Norm(x, "final_norm")});
    return g_.Build();
  }

 private:
  int head_size() const { return config_.hidden / config_.heads; }
  int my_heads() const { return config_.heads / ranks_; }

  // Constants that all layers share: rotary angles and the causal mask.
  void WriteTables() {
    const int half = head_size() / 2;
    Matrix cosines{config_.sequence, head_size(), {}};
    Matrix sines = cosines;
    Matrix mask{config_.sequence, config_.sequence, {}};
    for (int position = 0; position < config_.sequence; ++position) {
      for (int i = 0; i < head_size(); ++i) {
        const float exponent = static_cast<float>(i % half) / static_cast<float>(half);
        const float angle = static_cast<float>(position) * std::pow(kRotaryBase, -exponent);
        cosines.values.push_back(std::cos(angle));
        sines.values.push_back(std::sin(angle));
      }
      for (int other = 0; other < config_.sequence; ++other) {
        mask.values.push_back(other <= position ? 0 : kHidden);
      }
    }
    cosines_ = Constant("rotary_cos", cosines);
    sines_ = Constant("rotary_sin", sines);
    mask_ = Constant("causal_mask", mask);
  }

  // This rank's heads, [sequence, my_heads * head_size], times its rows of Wo: a partial sum.
  Value Attention(Value x) {
    const Value q = Rotate(Heads(MatMul(x, ColumnsOf("wq", config_.hidden))));
    const Value k = Rotate(Heads(MatMul(x, ColumnsOf("wk", config_.hidden))));
    const Value v = Heads(MatMul(x, ColumnsOf("wv", config_.hidden)));
    const Value products =
        g_.Op("BatchMatMul", {{"x1", q}, {"x2", k}}, {{"adj_x2", AttrValue::Bool(true)}});
    const float scale = 1.0f / std::sqrt(static_cast<float>(head_size()));
    const Value scaled = g_.Op("Muls", {{"x", products}}, {{"value", AttrValue::Float(scale)}});
    const Value weights = g_.Op("SoftmaxV2", {{"x", Add(scaled, mask_)}});
    const Value seen = g_.Op("BatchMatMul", {{"x1", weights}, {"x2", v}});
    const Value joined = Reshape(Transpose(seen), {config_.sequence, my_heads() * head_size()});
    return MatMul(joined, RowsOf("wo", config_.hidden));
  }

  // This rank's part of the MLP: a partial sum.
  Value Mlp(Value x) {
    const Matrix gate = Weight("gate", config_.hidden, config_.ffn).Columns(rank_, ranks_);
    const Matrix up = Weight("up", config_.hidden, config_.ffn).Columns(rank_, ranks_);
    const Value both = MatMul(x, Constant(Name("gate_up"), gate.Beside(up)));
    return MatMul(g_.Op("SwiGlu", {{"x", both}}), RowsOf("down", config_.ffn));
  }

  Value SumOverRanks(Value partial) {
    if (ranks_ == 1) return partial;
    return g_.Op(
        "HcomAllReduce", {{"x", partial}},
        {{"reduction", AttrValue::String("sum")}, {"group", AttrValue::String(kAllRanks)}});
  }

  // x * cos + (-x2, x1) * sin with x = (x1, x2) (Su et al., RoFormer, 2021; half-split form).
  Value Rotate(Value x) {
    const int half = head_size() / 2;
    const Value halves = g_.Op(
        "SplitV", {{"x", x}, {"size_splits", g_.Ints({half, half})}, {"split_dim", g_.Int(-1)}},
        {{"num_split", AttrValue::Int(2)}}, {}, 2);
    const Value negated = g_.Op("Neg", {{"x", g_.Port(halves, 1)}});
    const Value turned =
        g_.Op("ConcatV2", {{"x0", negated}, {"x1", halves}, {"concat_dim", g_.Int(-1)}},
              {{"N", AttrValue::Int(2)}});
    return Add(Mul(x, cosines_), Mul(turned, sines_));
  }

  // [sequence, my_heads * head_size] as [my_heads, sequence, head_size].
  Value Heads(Value x) {
    return Transpose(Reshape(x, {config_.sequence, my_heads(), head_size()}));
  }

  Value Norm(Value x, const std::string& name) {
    const Matrix gamma = Weight(name, 1, config_.hidden);
    const TensorType type{config_.dtype, {config_.hidden}};
    std::vector<float> around_one = gamma.values;
    for (float& value : around_one) value += 1.0f;
    return g_.Op("RmsNorm",
                 {{"x", x}, {"gamma", g_.Const(Name(name), FromFloats(type, around_one))}},
                 {{"epsilon", AttrValue::Float(1e-6f)}}, {}, 2);
  }

  Value Add(Value a, Value b) { return g_.Op("Add", {{"x1", a}, {"x2", b}}); }
  Value Mul(Value a, Value b) { return g_.Op("Mul", {{"x1", a}, {"x2", b}}); }
  Value MatMul(Value a, Value b) { return g_.Op("MatMul", {{"x1", a}, {"x2", b}}); }
  Value Reshape(Value x, std::vector<int64_t> shape) {
    return g_.Op("Reshape", {{"x", x}, {"shape", g_.Ints(std::move(shape))}});
  }
  // Exchanges the first two of three dimensions.
  Value Transpose(Value x) { return g_.Op("Transpose", {{"x", x}, {"perm", g_.Ints({1, 0, 2})}}); }

  Value ColumnsOf(const std::string& name, int columns) {
    return Constant(Name(name), Weight(name, config_.hidden, columns).Columns(rank_, ranks_));
  }
  Value RowsOf(const std::string& name, int rows) {
    return Constant(Name(name), Weight(name, rows, config_.hidden).Rows(rank_, ranks_));
  }

  // The whole weight, which depends on seed, layer and name only.
  Matrix Weight(const std::string& name, int rows, int columns) const {
    uint64_t seed = config_.seed * 1000003 + static_cast<uint64_t>(layer_);
    for (const char c : name) seed = seed * 131 + static_cast<unsigned char>(c);
    return Matrix::Random(rows, columns, 1.0f / std::sqrt(static_cast<float>(rows + 15)), seed);
  }

  std::string Name(const std::string& weight) const {
    return fmt::format("layer{}.{}", layer_, weight);
  }

  Value Constant(const std::string& name, const Matrix& matrix) {
    return g_.Const(name,
                    FromFloats({config_.dtype, {matrix.rows, matrix.columns}}, matrix.values));
  }

  const DecoderConfig& config_;
  int rank_;
  int ranks_;
  GraphBuilder g_;
  int layer_ = 0;
  Value cosines_, sines_, mask_;
};

template <typename T>
std::vector<float> Widen(const Tensor& tensor) {
  std::vector<float> values;
  for (const T value : tensor.as<T>()) values.push_back(static_cast<float>(value));
  return values;
}

template <typename T>
Tensor Narrow(const TensorType& type, const std::vector<float>& values) {
  std::vector<T> narrow;
  for (const float value : values) narrow.push_back(T(value));
  return Tensor::FromVector(type, narrow);
}

}  // namespace

std::vector<float> ToFloats(const Tensor& tensor) {
  if (tensor.dtype() == DataType::kFloat16) return Widen<Float16>(tensor);
  if (tensor.dtype() == DataType::kBfloat16) return Widen<Bfloat16>(tensor);
  return Widen<float>(tensor);
}

Tensor FromFloats(const TensorType& type, const std::vector<float>& values) {
  if (type.dtype == DataType::kFloat16) return Narrow<Float16>(type, values);
  if (type.dtype == DataType::kBfloat16) return Narrow<Bfloat16>(type, values);
  return Tensor::FromVector(type, values);
}

Result<Model> BuildDecoder(const DecoderConfig& config, int rank, int ranks) {
  if (config.heads % ranks != 0 || config.ffn % ranks != 0) {
    return Error(Code::kInvalidArgument, "{} heads and an MLP of {} cannot be split over {} ranks",
                 config.heads, config.ffn, ranks);
  }
  if (config.hidden % (2 * config.heads) != 0) {
    return Error(Code::kInvalidArgument, "hidden {} is not a multiple of twice the {} heads",
                 config.hidden, config.heads);
  }
  if (!IsFloating(config.dtype) || config.dtype == DataType::kDouble) {
    return Error(Code::kInvalidArgument, "dtype {}; expected float32, float16 or bfloat16",
                 Name(config.dtype));
  }
  return DecoderWriter(config, rank, ranks).Write();
}

Tensor DecoderInput(const DecoderConfig& config) {
  const Matrix input = Matrix::Random(config.sequence, config.hidden, 1.0f, config.seed);
  return FromFloats({config.dtype, {config.sequence, config.hidden}}, input.values);
}

}  // namespace npumesh
