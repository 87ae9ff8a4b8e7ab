// Lowering: one ONNX node on its way into our graph. A row of the operator table (op_table.h) takes
// it, reads operands and attributes, and writes nodes of ours.
//
// Mistakes are remembered (graph_emitter.h), so that rows read without error handling. What a row
// asks after a mistake has some answer: rank 0, no ints.
//
// Thread-safety: none.
#ifndef NPUMESH_GRAPH_ONNX_LOWERING_H_
#define NPUMESH_GRAPH_ONNX_LOWERING_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/onnx/graph_emitter.h"
#include "graph/onnx/onnx_model.h"

namespace npumesh {

// What a name of an ONNX graph stands for: a tensor, or a sequence or optional whose elements are
// known while the model is imported.
struct OnnxValue {
  OnnxKind kind = OnnxKind::kTensor;
  std::vector<Value> items;               // one for a tensor
  bool present = true;                    // false: an optional without element
  DataType dtype = DataType::kUndefined;  // of the elements of an empty sequence

  static OnnxValue Of(Value value) { return {OnnxKind::kTensor, {value}}; }
};

// A value, and an order of its dimensions.
struct OrderedValue {
  Value value;
  std::vector<int64_t> perm;
};

// The names that a node sees (graph_scope.h).
class GraphScope;

class Lowering {
 public:
  using Inputs = GraphEmitter::Inputs;
  using Attrs = GraphEmitter::Attrs;

  // All must outlive the lowering. `operands` has an entry for each input of the node; an operand
  // that is left out has no items. `version`: of the operator set.
  Lowering(const OnnxNode& node, int64_t version, GraphEmitter& emitter,
           std::vector<std::optional<OnnxValue>> operands, GraphScope* scope);

  const OnnxNode& node() const { return node_; }
  int64_t version() const { return version_; }
  GraphEmitter& emitter() { return emitter_; }
  GraphScope& scope() { return *scope_; }

  // ---- operands ----
  int inputs() const { return static_cast<int>(operands_.size()); }
  int outputs() const { return static_cast<int>(node_.outputs.size()); }
  bool has(int input) const;
  // Whether output `output` may be read.
  bool wants(int output) const;
  // A tensor operand. Error: it is left out, or is no tensor.
  Value in(int input);
  // The same where it may be left out.
  std::optional<Value> Given(int input) {
    return has(input) ? std::optional(in(input)) : std::nullopt;
  }
  const OnnxValue& operand(int input);

  // ---- attributes; the fallback when the node has none ----
  bool has_attr(std::string_view name) const { return node_.Find(name) != nullptr; }
  int64_t Int(std::string_view name, int64_t fallback) const;
  float Float(std::string_view name, float fallback) const;
  std::string Text(std::string_view name, std::string_view fallback) const;
  std::vector<int64_t> IntList(std::string_view name) const;
  std::vector<float> FloatList(std::string_view name) const;

  // ---- types and values known now ----
  DataType dtype(Value value) const { return emitter_.type(value).dtype; }
  const Shape& shape(Value value) const { return emitter_.type(value).shape; }
  // Error (kUnsupported): the rank is not known; 0 then.
  int Rank(Value value);
  // In [0, rank). Error: it is outside.
  int Axis(int64_t axis, int rank);
  // The size of dimension `axis`; -1: it is open, absent, or unknown.
  int64_t KnownSize(Value value, int axis) const;
  // Errors: there is no dimension `axis` (kCorrupt), or it is not known (kUnsupported); 1 then.
  int64_t Dim(Value value, int axis);
  std::optional<std::vector<int64_t>> KnownInts(Value value) const;
  std::optional<std::vector<double>> KnownNumbers(Value value) const;
  // Of a value that has one element; nullopt: it has another number of them.
  std::optional<double> KnownNumber(Value value) const;
  // Whether a list of `count` times `each` entries may be made now. Error (kUnsupported): it is too
  // long to come from a sane model.
  bool Affords(int64_t count, int64_t each = 1);
  // Integers of attribute `name` or, where newer versions have them, of input `input`; nullopt:
  // neither is there. Error: the input is not known now.
  std::optional<std::vector<int64_t>> IntsOf(std::string_view name, int input);

  // ---- nodes of ours ----
  // `type` with the name of the ONNX node; for rows that become one node.
  Value Node(const std::string& type, const Inputs& inputs, const Attrs& attrs = {},
             int outputs = 1);
  // `type` below the name of the ONNX node.
  Value Op(const std::string& type, const Inputs& inputs, const Attrs& attrs = {}, int outputs = 1);
  // A node that runs graphs (GraphEmitter::Call).
  Value Call(const std::string& type, const Inputs& inputs, std::vector<Model> models,
             const std::vector<TensorType>& types);
  static Value Port(Value value, int port) { return {value.node, port}; }

  Value Unary(const std::string& type, Value x) { return Op(type, {x}); }
  Value Binary(const std::string& type, Value a, Value b) { return Op(type, {a, b}); }
  Value Add(Value a, Value b) { return Binary("Add", a, b); }
  Value Sub(Value a, Value b) { return Binary("Sub", a, b); }
  Value Mul(Value a, Value b) { return Binary("Mul", a, b); }
  // The quotient, without its fraction where both are integers.
  Value Div(Value a, Value b) { return Binary(Quotient(a, b), a, b); }
  Value Max(Value a, Value b) { return Binary("Maximum", a, b); }
  Value Min(Value a, Value b) { return Binary("Minimum", a, b); }
  Value MatMul(Value a, Value b);
  Value Select(Value condition, Value yes, Value no);
  // Our operator that divides a by b as ONNX does: our Div rounds integers down.
  std::string Quotient(Value a, Value b);
  Value Cast(Value x, DataType dtype);  // x itself when it has this type already
  // x as float32 where it is float16 or bfloat16: what is added up, or rounded in several steps, is
  // computed so.
  Value Wide(Value x);
  Value Scalar(double value, DataType dtype);
  // A scalar of the type of `like`. Error: that is not known.
  Value Like(double value, Value like);
  Value Ints(const std::vector<int64_t>& values);
  Value IntScalar(int64_t value);
  Value Floats(const std::vector<float>& values, Shape shape);
  Value Reshape(Value x, const std::vector<int64_t>& shape);
  // x with its first `kept` dimensions, also where they are 0, and then `rest`.
  Value ReshapeAfter(Value x, int kept, const std::vector<int64_t>& rest);
  // The elements of x along `axis` (counted from the end where negative) of `rank` dimensions, the
  // others being 1.
  Value Along(Value x, int64_t axis, int rank);
  Value ReshapeTo(Value x, Value shape, int rank = -1);
  // Where x has been transposed and this goes back: what it was before.
  Value Transpose(Value x, const std::vector<int64_t>& perm);
  // What x is a transposition of, and the order of its dimensions; nullopt: it is no transposition.
  std::optional<OrderedValue> OrderOf(Value x) const;
  // REQUIRES: both in [0, rank of x).
  Value SwapAxes(Value x, int a, int b);
  Value Unsqueeze(Value x, const std::vector<int64_t>& axes);
  Value Squeeze(Value x, const std::vector<int64_t>& axes);
  Value Concat(const std::vector<Value>& values, int64_t axis);
  Value Slice(Value x, int64_t axis, int64_t begin, int64_t end);
  Value Gather(Value x, Value indices, int64_t axis);
  Value Broadcast(Value x, Value shape);
  Value Filled(Value shape, Value value);  // a tensor of this shape, full of the scalar `value`
  Value ShapeOf(Value x);                  // int64 vector
  Value DimOf(Value x, int64_t axis);      // int64 vector of one element
  Value Range(Value start, Value limit, Value delta);
  Value Reduce(const std::string& type, Value x, const std::vector<int64_t>& axes, bool keep);
  // Padded with `value` at the edges: rank begins, then rank ends.
  Value PadWith(Value x, const std::vector<int64_t>& pads, double value);

  // ---- results ----
  void Out(int output, Value value);
  void Out(int output, OnnxValue value);
  const std::vector<std::optional<OnnxValue>>& results() const { return results_; }

  bool ok() const { return emitter_.ok(); }
  template <typename... Args>
  void Fail(Code code, fmt::format_string<Args...> format, Args&&... args) {
    emitter_.Fail(Error(code, format, std::forward<Args>(args)...).WithContext(node_.Who()));
  }
  template <typename... Args>
  void Refuse(fmt::format_string<Args...> format, Args&&... args) {
    Fail(Code::kUnsupported, format, std::forward<Args>(args)...);
  }

 private:
  std::string NameOf(std::string_view below) const;

  const OnnxNode& node_;
  int64_t version_;
  GraphEmitter& emitter_;
  std::vector<std::optional<OnnxValue>> operands_;
  GraphScope* scope_;
  std::vector<std::optional<OnnxValue>> results_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ONNX_LOWERING_H_
