// Writes a graph as TorchAir's converters do: a method for each aten (or npu) call, which emits the
// operators, constants and attributes that its converter emits.
//
// What a positional builder writes stands in the file: unfed optional inputs as empty inputs with
// an undefined dtype, attributes at their defaults, output ports under the names of the interface.
// Index-like constants are int64, scalars float32 (or int64) of rank 0.
//
// Shapes are those PyTorch knows while tracing; the caller gives them where aten does.
#ifndef NPUMESH_TESTS_MODELS_ATEN_GRAPH_H_
#define NPUMESH_TESTS_MODELS_ATEN_GRAPH_H_

#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "graph/ir/graph_builder.h"

namespace npumesh::models {

// A size in a view: a number, or a symbol (an int64 scalar of the graph).
using Size = std::variant<int64_t, Value>;
using Sizes = std::vector<Size>;

class AtenGraph {
 public:
  explicit AtenGraph(std::string name = "graph_1") : g_(std::move(name)) {}

  // ---- inputs, in the order of their `index` ----
  Value Input(const std::string& name, TensorType type) { return g_.Data(name, std::move(type)); }
  // A small input that lives on the host: symbols, offsets of random numbers.
  Value HostInput(const std::string& name, TensorType type);
  // An argument that the graph updates.
  Value RefInput(const std::string& name, TensorType type) {
    return g_.RefData(name, std::move(type));
  }
  Value Weight(const std::string& name, const Tensor& value) { return g_.Const(name, value); }

  // ---- constants ----
  Value Ints(std::vector<int64_t> values) { return g_.Ints(std::move(values)); }
  Value Int(int64_t value) { return g_.Int(value); }
  Value Scalar(double value, DataType dtype = DataType::kFloat);

  // A node of any type with the outputs of its interface; output 0. `outputs` for dynamic ones.
  Value Op(const std::string& type, std::vector<GraphBuilder::Input> inputs,
           std::vector<GraphBuilder::Attr> attrs = {}, int outputs = 0);
  Value Port(Value value, int port) const { return g_.Port(value, port); }

  // ---- arithmetic ----
  Value Add(Value a, Value b) { return Binary("Add", a, b); }
  Value Sub(Value a, Value b) { return Binary("Sub", a, b); }
  // The converter casts the product to the promoted dtype, also when it has it already.
  Value Mul(Value a, Value b, DataType dtype = DataType::kFloat) {
    return ToCopy(Binary("Mul", a, b), dtype);
  }
  Value Div(Value a, Value b) { return Binary("RealDiv", a, b); }
  Value AddScalar(Value x, double value) { return Add(x, Scalar(value)); }
  // mul.Tensor with a Python number: Muls where x has 16 bits.
  Value MulScalar(Value x, double value, DataType dtype = DataType::kFloat);
  Value DivScalar(Value x, double value) { return Div(x, Scalar(value)); }
  Value RsubScalar(Value x, double value) { return Sub(Scalar(value), x); }
  Value PowScalar(Value x, double exponent) { return Binary("Pow", x, Scalar(exponent)); }
  Value Unary(const std::string& type, Value x) { return Op(type, {{"x", x}}); }
  Value Sum(Value x, std::vector<int64_t> dims, bool keep = false);
  Value Mean(Value x, std::vector<int64_t> dims, bool keep = false);

  // ---- products ----
  Value Mm(Value a, Value b) { return Op("MatMul", {{"x1", a}, {"x2", b}}); }
  // float32: the product times alpha, then the addend; 16 bits: the addend is the bias operand.
  Value Addmm(Value addend, Value a, Value b, DataType dtype = DataType::kFloat);
  Value Bmm(Value a, Value b) { return Op("BatchMatMul", {{"x1", a}, {"x2", b}}); }

  // ---- layout ----
  Value View(Value x, std::vector<int64_t> sizes);
  Value ViewSym(Value x, const Sizes& sizes);
  Value Permute(Value x, std::vector<int64_t> perm);
  Value T(Value x) { return Permute(x, {1, 0}); }
  Value Unsqueeze(Value x, int64_t dim);
  Value Squeeze(Value x, int64_t dim);
  Value Expand(Value x, std::vector<int64_t> sizes);
  Value ExpandSym(Value x, const Sizes& sizes);
  Value Clone(Value x) { return Op("Identity", {{"x", x}}); }
  Value Cat(const std::vector<Value>& parts, int64_t dim);
  Value Split(Value x, const std::vector<int64_t>& sizes, int64_t dim);  // ports of the result
  Value Slice(Value x, int64_t dim, Size start, Size end);
  Value Select(Value x, int64_t dim, int64_t index);
  Value ToCopy(Value x, DataType dtype);
  Value SymSize(Value x, int64_t dim);  // int64 scalar
  Value Pack(const Sizes& sizes);       // a vector of sizes, some of them symbols
  Value Arange(Size end, DataType dtype);
  Value Full(std::vector<int64_t> sizes, double value, DataType dtype = DataType::kFloat);

  // ---- layers and their backwards ----
  Value Embedding(Value weight, Value indices);
  Value EmbeddingDenseBackward(Value grad, Value indices, int64_t rows);
  Value Softmax(Value x);
  Value SoftmaxBackward(Value grad, Value y);
  // Ports: y, mean, rstd; dx, dgamma, dbeta.
  Value LayerNorm(Value x, int64_t width, Value gamma, Value beta, double epsilon);
  Value LayerNormBackward(Value grad, Value x, Value mean, Value rstd, Value gamma);
  // nll_loss over log_softmax, reduction mean. Ports of the first: loss, total weight.
  Value NllLoss(Value log_probabilities, Value targets);
  Value NllLossBackward(Value grad, Value log_probabilities, Value targets, Value total_weight);
  // Mask of native_dropout: `offset` is a scalar of the host (5.16).
  Value DropoutMask(std::vector<int64_t> sizes, double keep, int64_t seed, Value offset);
  Value DoMask(Value x, Value mask, double keep);
  // all_reduce over `group`, and the wait for it.
  Value AllReduce(Value x, const std::string& group);

  void Output(const std::vector<Value>& values) { g_.Output(values); }
  Result<Model> Build();

 private:
  Value Binary(const std::string& type, Value a, Value b) {
    return Op(type, {{"x1", a}, {"x2", b}});
  }
  GraphBuilder g_;
  std::set<std::string> on_host_;
};

}  // namespace npumesh::models

#endif  // NPUMESH_TESTS_MODELS_ATEN_GRAPH_H_
