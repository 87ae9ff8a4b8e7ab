#include "graph/onnx/writer.h"

#include <fmt/ranges.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <functional>
#include <set>

#include "graph/io/weights.h"
#include "graph/io/wire.h"
#include "graph/ir/graph_input.h"
#include "graph/ir/node_kind.h"
#include "graph/onnx/reader.h"
#include "runtime/base/printable.h"

namespace npumesh {
namespace {

constexpr int64_t kOpset = 17;
constexpr int64_t kFormat = 8;

// ---- attributes ----

onnx::AttributeProto& Added(onnx::NodeProto& node, const std::string& name,
                            onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(type);
  return attribute;
}

void AddInt(onnx::NodeProto& node, const std::string& name, int64_t value) {
  Added(node, name, onnx::AttributeProto::INT).set_i(value);
}

void AddFloat(onnx::NodeProto& node, const std::string& name, float value) {
  Added(node, name, onnx::AttributeProto::FLOAT).set_f(value);
}

void AddInts(onnx::NodeProto& node, const std::string& name, const std::vector<int64_t>& values) {
  onnx::AttributeProto& attribute = Added(node, name, onnx::AttributeProto::INTS);
  for (const int64_t value : values) attribute.add_ints(value);
}

// ---- rows ----

// A counterpart: operands of ours by port, in the order of ONNX. `finish` sets attributes; false:
// this node has a form that ONNX has not.
struct Counterpart {
  std::string_view ours;
  std::string_view theirs;
  std::vector<std::string_view> ports;
  bool (*finish)(const Node& from, onnx::NodeProto& to) = nullptr;
};

bool FinishTranspose(const Node& from, onnx::NodeProto& to) {
  AddInts(to, "perm", from.IntsAttr("perm"));
  return true;
}

bool FinishConcat(const Node& from, onnx::NodeProto& to) {
  AddInt(to, "axis", from.IntAttr("concat_dim", 0));
  return true;
}

bool FinishSoftmax(const Node& from, onnx::NodeProto& to) {
  const std::vector<int64_t> axes = from.IntsAttr("axes");
  if (axes.size() > 1 || from.BoolAttr("half_to_float", false)) return false;
  AddInt(to, "axis", axes.empty() ? -1 : axes[0]);
  return true;
}

bool FinishCast(const Node& from, onnx::NodeProto& to) {
  const std::optional<DataType> dtype = DataTypeFromRuntime(from.IntAttr("dst_type", -1));
  const int number = dtype ? OnnxTypeOf(*dtype) : 0;
  AddInt(to, "to", number);
  return number != 0;
}

bool FinishFlatten(const Node& from, onnx::NodeProto& to) {
  AddInt(to, "axis", from.IntAttr("axis", 1));
  return true;
}

bool FinishLeakyRelu(const Node& from, onnx::NodeProto& to) {
  AddFloat(to, "alpha", from.FloatAttr("negative_slope", 0));
  return true;
}

bool FinishElu(const Node& from, onnx::NodeProto& to) {
  AddFloat(to, "alpha", from.FloatAttr("alpha", 1));
  return from.FloatAttr("scale", 1) == 1 && from.FloatAttr("input_scale", 1) == 1;
}

bool PlainExponent(const Node& from, onnx::NodeProto& /*to*/) {
  return from.FloatAttr("base", -1) == -1 && from.FloatAttr("scale", 1) == 1 &&
         from.FloatAttr("shift", 0) == 0;
}

bool FinishReduce(const Node& from, onnx::NodeProto& to) {
  const std::vector<int64_t> axes = from.IntsAttr("axes");
  if (!axes.empty()) AddInts(to, "axes", axes);
  AddInt(to, "keepdims", from.BoolAttr("keep_dims", false) ? 1 : 0);
  return !from.BoolAttr("noop_with_empty_axes", false) || !axes.empty();
}

// Products of two matrices; transposed ones are Gemm.
bool FinishMatMul(const Node& from, onnx::NodeProto& to) {
  const bool a = from.BoolAttr("transpose_x1", false), b = from.BoolAttr("transpose_x2", false);
  if (!a && !b && to.input_size() == 2) return true;
  to.set_op_type("Gemm");
  AddInt(to, "transA", a ? 1 : 0);
  AddInt(to, "transB", b ? 1 : 0);
  return true;
}

bool FinishBatchMatMul(const Node& from, onnx::NodeProto& to) {
  return !from.BoolAttr("adj_x1", false) && !from.BoolAttr("adj_x2", false) && to.input_size() == 2;
}

// The numbers of the image of [1, 1, image...].
std::vector<int64_t> ImageOf(const std::vector<int64_t>& list) {
  return list.size() < 2 ? list : std::vector<int64_t>(list.begin() + 2, list.end());
}

// Pads of ours are pairs.
std::vector<int64_t> PadsOf(const std::vector<int64_t>& pairs) {
  std::vector<int64_t> pads;
  for (size_t i = 0; i < pairs.size(); i += 2) pads.push_back(pairs[i]);
  for (size_t i = 1; i < pairs.size(); i += 2) pads.push_back(pairs[i]);
  return pads;
}

bool ChannelsFirst(const Node& from) {
  return from.StringAttr("data_format", "").starts_with("NC");
}

bool FinishConv(const Node& from, onnx::NodeProto& to) {
  AddInts(to, "strides", ImageOf(from.IntsAttr("strides")));
  AddInts(to, "pads", PadsOf(from.IntsAttr("pads")));
  const std::vector<int64_t> dilations = ImageOf(from.IntsAttr("dilations"));
  if (!dilations.empty()) AddInts(to, "dilations", dilations);
  AddInt(to, "group", from.IntAttr("groups", 1));
  return ChannelsFirst(from) && from.StringAttr("padding", "").empty();
}

bool FinishPool(const Node& from, onnx::NodeProto& to) {
  AddInts(to, "kernel_shape", ImageOf(from.IntsAttr("ksize")));
  AddInts(to, "strides", ImageOf(from.IntsAttr("strides")));
  AddInts(to, "pads", PadsOf(from.IntsAttr("pads")));
  if (from.BoolAttr("ceil_mode", false)) AddInt(to, "ceil_mode", 1);
  const bool average = to.op_type() == "AveragePool";
  if (average && !from.BoolAttr("exclusive", true)) AddInt(to, "count_include_pad", 1);
  return from.StringAttr("padding_mode", "CALCULATED") == "CALCULATED" &&
         from.StringAttr("data_format", "NCHW") == "NCHW" &&
         !from.BoolAttr("global_pooling", false) && from.IntAttr("divisor_override", 0) == 0;
}

bool FinishBatchNorm(const Node& from, onnx::NodeProto& to) {
  AddFloat(to, "epsilon", from.FloatAttr("epsilon", 1e-5F));
  return true;
}

// The axis of a GatherV2 is an operand; it has to be a constant, which the caller looks up.
const std::vector<Counterpart>& Counterparts() {
  using Ports = std::vector<std::string_view>;
  static const Ports kX = {"x"}, kPair = {"x1", "x2"};
  static const std::vector<Counterpart> rows = {
      {"Abs", "Abs", kX},
      {"Acos", "Acos", kX},
      {"Acosh", "Acosh", kX},
      {"Add", "Add", kPair},
      {"AddV2", "Add", kPair},
      {"Asin", "Asin", kX},
      {"Asinh", "Asinh", kX},
      {"Atan", "Atan", kX},
      {"Atanh", "Atanh", kX},
      {"AvgPoolV2", "AveragePool", kX, FinishPool},
      {"BNInfer",
       "BatchNormalization",
       {"x", "scale", "offset", "mean", "variance"},
       FinishBatchNorm},
      {"BatchMatMul", "MatMul", kPair, FinishBatchMatMul},
      {"BatchMatMulV2", "MatMul", {"x1", "x2", "bias"}, FinishBatchMatMul},
      {"Cast", "Cast", kX, FinishCast},
      {"Ceil", "Ceil", kX},
      {"ConcatD", "Concat", kX, FinishConcat},
      {"Conv2D", "Conv", {"x", "filter", "bias"}, FinishConv},
      {"Conv3D", "Conv", {"x", "filter", "bias"}, FinishConv},
      {"Cos", "Cos", kX},
      {"Cosh", "Cosh", kX},
      {"Elu", "Elu", kX, FinishElu},
      {"Equal", "Equal", kPair},
      {"Erf", "Erf", kX},
      {"Exp", "Exp", kX, PlainExponent},
      {"Flatten", "Flatten", kX, FinishFlatten},
      {"Floor", "Floor", kX},
      {"Greater", "Greater", kPair},
      {"GreaterEqual", "GreaterOrEqual", kPair},
      {"Identity", "Identity", kX},
      {"IsNan", "IsNaN", kX},
      {"LeakyRelu", "LeakyRelu", kX, FinishLeakyRelu},
      {"Less", "Less", kPair},
      {"LessEqual", "LessOrEqual", kPair},
      {"Log", "Log", kX, PlainExponent},
      {"LogSoftmaxV2", "LogSoftmax", {"logits"}, FinishSoftmax},
      {"LogicalAnd", "And", kPair},
      {"LogicalNot", "Not", kX},
      {"LogicalOr", "Or", kPair},
      {"MatMul", "MatMul", {"x1", "x2", "bias"}, FinishMatMul},
      {"MatMulV2", "MatMul", {"x1", "x2", "bias"}, FinishMatMul},
      {"MatMulV3", "MatMul", {"x1", "x2", "bias"}, FinishMatMul},
      {"MaxPoolV3", "MaxPool", kX, FinishPool},
      {"Maximum", "Max", kPair},
      {"Minimum", "Min", kPair},
      {"Mul", "Mul", kPair},
      {"Neg", "Neg", kX},
      {"Pow", "Pow", kPair},
      {"RealDiv", "Div", kPair},
      {"Reciprocal", "Reciprocal", kX},
      {"ReduceMaxD", "ReduceMax", kX, FinishReduce},
      {"ReduceMeanD", "ReduceMean", kX, FinishReduce},
      {"ReduceMinD", "ReduceMin", kX, FinishReduce},
      {"ReduceProdD", "ReduceProd", kX, FinishReduce},
      {"Relu", "Relu", kX},
      {"Reshape", "Reshape", {"x", "shape"}},
      {"Rint", "Round", kX},
      {"SelectV2", "Where", {"condition", "then", "else"}},
      {"Sigmoid", "Sigmoid", kX},
      {"Sign", "Sign", kX},
      {"Sin", "Sin", kX},
      {"Sinh", "Sinh", kX},
      {"SoftmaxV2", "Softmax", kX, FinishSoftmax},
      {"Softsign", "Softsign", kX},
      {"Sqrt", "Sqrt", kX},
      {"SqueezeV3", "Squeeze", {"x", "axes"}},
      {"Sub", "Sub", kPair},
      {"Tan", "Tan", kX},
      {"Tanh", "Tanh", kX},
      {"Tile", "Tile", {"x", "multiples"}},
      {"TransposeD", "Transpose", kX, FinishTranspose},
      {"UnsqueezeV3", "Unsqueeze", {"x", "axes"}},
  };
  return rows;
}

const Counterpart* FindCounterpart(std::string_view type) {
  const std::vector<Counterpart>& rows = Counterparts();
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [&](const Counterpart& each) { return each.ours == type; });
  return row == rows.end() ? nullptr : &*row;
}

// ---- the file ----

void SetInfo(onnx::ValueInfoProto& info, const std::string& name, const TensorDesc& desc) {
  info.set_name(name);
  auto* tensor = info.mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(OnnxTypeOf(desc.dtype));
  if (!desc.shape || !desc.shape->has_rank()) return;
  auto* shape = tensor->mutable_shape();
  for (const int64_t dim : desc.shape->dims()) {
    auto* added = shape->add_dim();
    if (dim >= 0) added->set_dim_value(dim);
  }
}

class OnnxFileWriter {
 public:
  explicit OnnxFileWriter(const Model& model) : model_(model), graph_(model.graph) {}

  Result<std::string> Write() {
    proto_.set_ir_version(kFormat);
    proto_.set_producer_name("npumesh");
    proto_.add_opset_import()->set_version(kOpset);
    to_ = proto_.mutable_graph();
    to_->set_name(graph_.name().empty() ? "graph" : graph_.name());
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph_.StableOrder());
    for (const NodeId id : order) NPUMESH_RETURN_IF_ERROR(WriteNode(graph_.node(id)));
    if (!missing_.empty()) {
      return Error(Code::kUnsupported, "{} nodes have no counterpart in ONNX: {}", missing_.size(),
                   fmt::join(missing_, ", "));
    }
    const NodeId sink = graph_.NetOutput();
    if (sink != kNoNode) WriteOutputs(graph_.node(sink));
    return SerializeWire(proto_);
  }

 private:
  std::string NameOf(Value value) const {
    const std::string& name = graph_.node(value.node).name;
    return value.port == 0 ? name : fmt::format("{}.{}", name, value.port);
  }

  Status WriteNode(const Node& node) {
    if (IsInputNode(node)) {
      SetInfo(*to_->add_input(), node.name, GraphInputDesc(node));
      return Status();
    }
    if (IsWeightNode(node)) return WriteWeight(node);
    if (IsFurniture(node)) return Status();
    const Counterpart* const row = FindCounterpart(node.type);
    onnx::NodeProto written;
    const bool fits = row != nullptr && node.controls.empty() && Translate(node, *row, written);
    if (!fits) {
      missing_.push_back(fmt::format("\"{}\" ({})", Quotable(node.name), node.type));
      return Status();
    }
    *to_->add_node() = std::move(written);
    return Status();
  }

  Status WriteWeight(const Node& node) {
    NPUMESH_ASSIGN_OR_RETURN(const Tensor value, LoadWeight(node, model_.path));
    const int number = OnnxTypeOf(value.dtype());
    if (number == 0) {
      missing_.push_back(
          fmt::format("\"{}\" ({} of {})", Quotable(node.name), node.type, Name(value.dtype())));
      return Status();
    }
    onnx::TensorProto& tensor = *to_->add_initializer();
    tensor.set_name(node.name);
    tensor.set_data_type(number);
    for (const int64_t dim : value.shape().dims()) tensor.add_dims(dim);
    tensor.set_raw_data(value.data(), value.bytes());
    return Status();
  }

  // Operands by port; several where the port takes many.
  bool Translate(const Node& node, const Counterpart& row, onnx::NodeProto& to) const {
    to.set_name(node.name);
    to.set_op_type(std::string(row.theirs));
    size_t taken = 0;
    for (const std::string_view port : row.ports) {
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const std::string& name = node.input_descs[i].name;
        const bool many = name.size() > port.size() && name.starts_with(port) &&
                          name.find_first_not_of("0123456789", port.size()) == std::string::npos;
        if (!node.inputs[i] || (name != port && !(many && row.ports.size() == 1))) continue;
        to.add_input(NameOf(*node.inputs[i]));
        ++taken;
      }
    }
    for (size_t port = 0; port < node.output_descs.size(); ++port) {
      to.add_output(NameOf({node.id, static_cast<int>(port)}));
    }
    const auto fed = static_cast<size_t>(
        std::count_if(node.inputs.begin(), node.inputs.end(),
                      [](const std::optional<Value>& input) { return input.has_value(); }));
    return taken == fed && (row.finish == nullptr || row.finish(node, to));
  }

  // An output of ONNX is a name of its own: one that is an input, or asked for twice, is copied.
  void WriteOutputs(const Node& sink) {
    for (size_t i = 0; i < sink.inputs.size(); ++i) {
      if (!sink.inputs[i]) continue;
      const Value value = *sink.inputs[i];
      std::string name = NameOf(value);
      const bool made = !IsFurniture(graph_.node(value.node)) && returned_.insert(name).second;
      if (!made) {
        onnx::NodeProto& copy = *to_->add_node();
        copy.set_op_type("Identity");
        copy.add_input(name);
        name = fmt::format("output_{}", i);
        copy.set_name(name);
        copy.add_output(name);
      }
      const Node& producer = graph_.node(value.node);
      SetInfo(*to_->add_output(), name, producer.output_descs[static_cast<size_t>(value.port)]);
    }
  }

  const Model& model_;
  const Graph& graph_;
  onnx::ModelProto proto_;
  onnx::GraphProto* to_ = nullptr;
  std::vector<std::string> missing_;
  std::set<std::string> returned_;
};

}  // namespace

Result<std::string> WriteOnnx(const Model& model) {
  return OnnxFileWriter(model).Write();
}

std::vector<std::string_view> OperatorsWithCounterpart() {
  std::vector<std::string_view> names;
  for (const Counterpart& row : Counterparts()) names.push_back(row.ours);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace npumesh
