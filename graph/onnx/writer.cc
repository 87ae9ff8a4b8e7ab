#include "graph/onnx/writer.h"

#include <fmt/ranges.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <set>

#include "graph/io/weights.h"
#include "graph/io/wire.h"
#include "graph/ir/graph_input.h"
#include "graph/ir/node_kind.h"
#include "graph/onnx/counterparts.h"
#include "graph/onnx/import.h"
#include "runtime/base/text/printable.h"
#include "runtime/base/type_numbers.h"

namespace npumesh {
namespace {

constexpr int64_t kFormat = 8;

void SetInfo(onnx::ValueInfoProto& info, const std::string& name, const TensorDesc& desc) {
  info.set_name(name);
  auto* tensor = info.mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(OnnxNumber(desc.dtype));
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
    proto_.add_opset_import()->set_version(kWrittenOpset);
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
    if (row == nullptr || !node.controls.empty() || !Translate(node, *row)) {
      missing_.push_back(fmt::format("\"{}\" ({})", Quotable(node.name), node.type));
    }
    return Status();
  }

  Status WriteWeight(const Node& node) {
    NPUMESH_ASSIGN_OR_RETURN(const Tensor value, LoadWeight(node, model_.path));
    const int number = OnnxNumber(value.dtype());
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

  // False: the node has a form without counterpart, and nothing is added.
  bool Translate(const Node& node, const Counterpart& row) {
    onnx::NodeProto written;
    written.set_name(node.name);
    written.set_op_type(std::string(row.theirs));
    OnnxDraft draft(graph_, model_.path, node, written);
    AddOperands(row, draft);
    for (size_t port = 0; port < node.output_descs.size(); ++port) {
      written.add_output(NameOf({node.id, static_cast<int>(port)}));
    }
    if ((row.finish && !row.finish(draft)) || !draft.complete()) return false;
    for (const onnx::TensorProto& constant : draft.constants()) *to_->add_initializer() = constant;
    for (const onnx::NodeProto& before : draft.before()) *to_->add_node() = before;
    *to_->add_node() = std::move(written);
    return true;
  }

  // Operands by port; several where the port takes many. One that is left out before others is an
  // empty name. Sizes that have to be int64 and are not are cast.
  void AddOperands(const Counterpart& row, OnnxDraft& draft) const {
    const Node& node = draft.from();
    int left_out = 0;
    for (const std::string_view port : row.ports) {
      bool fed = false;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const std::string& name = node.input_descs[i].name;
        const bool many = name.size() > port.size() && name.starts_with(port) &&
                          name.find_first_not_of("0123456789", port.size()) == std::string::npos;
        if (!node.inputs[i] || (name != port && !(many && row.ports.size() == 1))) continue;
        for (; left_out > 0; --left_out) draft.Operand("");
        const bool narrow = port == row.sizes && DtypeOf(*node.inputs[i]) == DataType::kInt32;
        const std::string operand = NameOf(*node.inputs[i]);
        draft.Operand(narrow ? draft.CastBefore(operand, DataType::kInt64) : operand);
        draft.Take(name);
        fed = true;
      }
      if (!fed) ++left_out;
    }
  }

  DataType DtypeOf(Value value) const {
    return graph_.node(value.node).output_descs[static_cast<size_t>(value.port)].dtype;
  }

  // An output of ONNX is a separate name: one that is an input, or asked for twice, is copied.
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
      TensorDesc desc = graph_.node(value.node).output_descs[static_cast<size_t>(value.port)];
      const std::vector<int64_t> ranks = sink.IntsAttr(kOutputRanksAttr);
      const bool known = desc.shape && desc.shape->has_rank();
      if (!known && i < ranks.size() && ranks[i] >= 0) {
        desc.shape = Shape(std::vector<int64_t>(static_cast<size_t>(ranks[i]), kUnknownDim));
      }
      SetInfo(*to_->add_output(), name, desc);
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
  return names;
}

}  // namespace npumesh
