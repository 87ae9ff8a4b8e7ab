// Writes an ONNX model of one graph as bytes, with float32 activations.
//
//   OnnxGraph g;
//   auto x = g.Input("x", {2, 3});
//   auto y = g.Op("MatMul", {x, g.Floats("w", {3, 4}, weights)});
//   OnnxModel model = g.Finish(y, {2, 4});
//
// The numbers of fields and types are those of ONNX's protobuf definitions (onnx.ai). Nothing is
// checked here, because the program that loads the model checks it.
//
// Thread-safety: none.
#ifndef NPUMESH_TESTS_BENCH_DECODER_ONNX_WRITER_H_
#define NPUMESH_TESTS_BENCH_DECODER_ONNX_WRITER_H_

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace npumesh {

// A protobuf message in its wire form. Fields stand in the order in which they are added.
class ProtoMessage {
 public:
  ProtoMessage& Int(uint64_t field, int64_t value) {
    Varint(field << 3);
    Varint(static_cast<uint64_t>(value));
    return *this;
  }
  ProtoMessage& Float(uint64_t field, float value) {
    Varint(field << 3 | 5);
    const auto bits = std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) bytes_ += static_cast<char>(bits >> shift);
    return *this;
  }
  ProtoMessage& Bytes(uint64_t field, std::string_view value) {
    Varint(field << 3 | 2);
    Varint(value.size());
    bytes_ += value;
    return *this;
  }
  ProtoMessage& Strings(uint64_t field, const std::vector<std::string>& values) {
    for (const std::string& value : values) Bytes(field, value);
    return *this;
  }
  ProtoMessage& Message(uint64_t field, const ProtoMessage& message) {
    return Bytes(field, message.bytes_);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

using OnnxAttribute = std::pair<std::string, std::variant<int64_t, float, std::vector<int64_t>>>;
using OnnxAttributes = std::vector<OnnxAttribute>;
using OnnxShape = std::vector<int64_t>;

// A graph with one input and one output, both float32.
struct OnnxModel {
  std::string bytes;
  std::string input, output;  // names
  OnnxShape input_shape, output_shape;
};

// ONNX Runtime's own operators.
inline constexpr const char* kOnnxRuntimeDomain = "com.microsoft";

// Builds a graph in the order in which it runs. Values are names; "" stands for an input or output
// that is left out.
class OnnxGraph {
 public:
  // The graph's only input.
  std::string Input(const std::string& name, OnnxShape shape) {
    graph_.Message(11, Described(name, shape));
    model_.input = name;
    model_.input_shape = std::move(shape);
    return name;
  }
  // Constants: little-endian bytes of as many values as `shape` has.
  std::string Floats(const std::string& name, const OnnxShape& shape, std::string_view bytes) {
    return Constant(name, kFloat, shape, bytes);
  }
  std::string Ints(const std::vector<int64_t>& values) {
    return Constant(NewName(), kInt64, {static_cast<int64_t>(values.size())}, BytesOf(values));
  }
  std::string Scalar(float value) {
    return Constant(NewName(), kFloat, {}, BytesOf(std::vector<float>{value}));
  }

  // An operator with one output, which it returns.
  std::string Op(const std::string& type, const std::vector<std::string>& inputs,
                 const OnnxAttributes& attributes = {}, const std::string& domain = "") {
    std::string output = NewName();
    Node(type, inputs, {output}, attributes, domain);
    return output;
  }
  void Node(const std::string& type, const std::vector<std::string>& inputs,
            const std::vector<std::string>& outputs, const OnnxAttributes& attributes = {},
            const std::string& domain = "") {
    ProtoMessage node;
    node.Strings(1, inputs).Strings(2, outputs).Bytes(3, "node_" + NewName()).Bytes(4, type);
    for (const OnnxAttribute& attribute : attributes) node.Message(5, Written(attribute));
    graph_.Message(1, node.Bytes(7, domain));
  }
  std::string NewName() { return "value" + std::to_string(names_++); }

  // The model whose output is `value`. Ends the graph.
  OnnxModel Finish(const std::string& value, OnnxShape shape) {
    graph_.Message(12, Described(value, shape)).Bytes(2, "graph");
    ProtoMessage model;
    model.Int(1, kIrVersion).Message(7, graph_);
    model.Message(8, ProtoMessage().Bytes(1, "").Int(2, kOperatorSet));
    model.Message(8, ProtoMessage().Bytes(1, kOnnxRuntimeDomain).Int(2, 1));
    model_.bytes = model.bytes();
    model_.output = value;
    model_.output_shape = std::move(shape);
    return std::move(model_);
  }

 private:
  static constexpr int kIrVersion = 8;
  static constexpr int kOperatorSet = 17;
  static constexpr int kFloat = 1;
  static constexpr int kInt64 = 7;

  template <typename T>
  static std::string BytesOf(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
  }

  std::string Constant(const std::string& name, int type, const OnnxShape& shape,
                       std::string_view bytes) {
    ProtoMessage tensor;
    for (const int64_t dim : shape) tensor.Int(1, dim);
    graph_.Message(5, tensor.Int(2, type).Bytes(8, name).Bytes(9, bytes));
    return name;
  }

  static ProtoMessage Described(const std::string& name, const OnnxShape& shape) {
    ProtoMessage dims;
    for (const int64_t dim : shape) dims.Message(1, ProtoMessage().Int(1, dim));
    const ProtoMessage tensor = ProtoMessage().Int(1, kFloat).Message(2, dims);
    return ProtoMessage().Bytes(1, name).Message(2, ProtoMessage().Message(1, tensor));
  }

  static ProtoMessage Written(const OnnxAttribute& attribute) {
    const auto& [name, value] = attribute;
    ProtoMessage message;
    message.Bytes(1, name);
    if (const auto* i = std::get_if<int64_t>(&value)) return message.Int(3, *i).Int(20, 2);
    if (const auto* f = std::get_if<float>(&value)) return message.Float(2, *f).Int(20, 1);
    for (const int64_t i : std::get<std::vector<int64_t>>(value)) message.Int(8, i);
    return message.Int(20, 7);
  }

  ProtoMessage graph_;
  OnnxModel model_;
  int names_ = 0;
};

}  // namespace npumesh

#endif  // NPUMESH_TESTS_BENCH_DECODER_ONNX_WRITER_H_
