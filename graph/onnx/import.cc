#include "graph/onnx/import.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "graph/onnx/graph_scope.h"
#include "graph/onnx/mistakes.h"
#include "graph/onnx/node_order.h"
#include "graph/onnx/op_table.h"
#include "graph/onnx/own_operator.h"
#include "graph/onnx/quantised_nodes.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

// Nodes whose operators have no row, by operator.
class MissingOps {
 public:
  MissingOps(const OnnxModel& model, const OpRegistry& registry)
      : model_(model), registry_(registry) {
    Look(model.graph.nodes, model.opsets);
    for (const OnnxFunction& function : model.functions) Look(function.nodes, function.opsets);
  }

  Status status() const {
    if (nodes_.empty()) return Status();
    std::vector<std::string> lines;
    for (const auto& [op, nodes] : nodes_) {
      lines.push_back(fmt::format("{} ({})", op, fmt::join(nodes, ", ")));
    }
    return Error(
        Code::kUnsupported,
        "{} operator{} without a translation: {}; npumesh import --ops has those with one, and an "
        "operator of another domain may come from --op-library",
        lines.size(), lines.size() == 1 ? "" : "s", fmt::join(lines, "; "));
  }

 private:
  void Look(const std::vector<OnnxNode>& nodes, const std::map<std::string, int64_t>& opsets) {
    for (const OnnxNode& node : nodes) {
      for (const OnnxAttribute& attribute : node.attributes) {
        if (attribute.graph != nullptr) Look(attribute.graph->nodes, opsets);
      }
      const auto opset = opsets.find(node.domain);
      const int64_t version = opset == opsets.end() ? 0 : opset->second;
      if (IsFunction(node) || FindOnnxOp(node.domain, node.op, version) != nullptr) continue;
      if (OwnOperatorOf(node, registry_) != nullptr) continue;
      const std::string domain = node.domain.empty() ? "" : node.domain + ".";
      nodes_[fmt::format("{}{} of version {}", Quotable(domain), Quotable(node.op), version)]
          .push_back(node.Who());
    }
  }

  bool IsFunction(const OnnxNode& node) const {
    return std::any_of(model_.functions.begin(), model_.functions.end(),
                       [&](const OnnxFunction& function) {
                         return function.name == node.op && function.domain == node.domain;
                       });
  }

  const OnnxModel& model_;
  const OpRegistry& registry_;
  std::map<std::string, std::vector<std::string>> nodes_;
};

// Newer versions may mean something else by the same names.
Status CheckVersions(const OnnxModel& model) {
  constexpr int64_t kNewest = 23;
  const auto standard = model.opsets.find("");
  if (standard == model.opsets.end() || standard->second <= kNewest) return Status();
  return Error(
      Code::kUnsupported,
      "uses operator set {} of ONNX; npumesh knows those up to {}: export the model for an "
      "older one",
      standard->second, kNewest);
}

class ModelImport {
 public:
  ModelImport(const OnnxModel& model, const OpRegistry& registry, const OnnxImportOptions& options)
      : model_(model),
        options_(options),
        scope_(model, registry, nullptr, model.graph.name.empty() ? "graph" : model.graph.name) {}

  // `missing`: what is known to be wrong already; success: nothing.
  Result<Model> Run(const Status& missing) {
    std::vector<Status> mistakes = {missing};
    for (const OnnxValueInfo& input : model_.graph.inputs) {
      AddInput(input);
      if (scope_.emitter().ok()) continue;
      mistakes.push_back(scope_.emitter().TakeFailure());
      scope_.Break(input.name);
    }
    std::ranges::copy(scope_.Mistakes(model_.graph), std::back_inserter(mistakes));
    std::erase_if(mistakes, [](const Status& mistake) { return mistake.ok(); });
    if (!mistakes.empty()) return OneOf(mistakes);
    std::vector<Value> outputs;
    for (const OnnxValue& output : scope_.OutputsOf(model_.graph)) {
      outputs.insert(outputs.end(), output.items.begin(), output.items.end());
    }
    NPUMESH_ASSIGN_OR_RETURN(Model model, scope_.emitter().Finish(outputs));
    DescribeOutputs(model.graph, outputs);
    for (const auto& [value, names] : dim_names_) {
      model.graph.node(value.node).attrs[std::string(kDimNamesAttr)] = AttrValue::Strings(names);
    }
    model.name = model_.graph.name;
    return model;
  }

 private:
  void DescribeOutputs(Graph& graph, const std::vector<Value>& outputs) {
    std::vector<int64_t> ranks;
    for (const Value output : outputs) {
      const Shape& shape = scope_.emitter().type(output).shape;
      ranks.push_back(shape.has_rank() ? shape.rank() : -1);
    }
    graph.node(graph.NetOutput()).attrs[std::string(kOutputRanksAttr)] = AttrValue::Ints(ranks);
  }

  void AddInput(const OnnxValueInfo& input) {
    // Files of version 3 list their weights among the inputs.
    if (model_.graph.initialisers.count(input.name) > 0) return;
    const auto value = options_.values.find(input.name);
    if (value != options_.values.end()) return AddConstant(input, value->second);
    const OnnxType* type = &input.type;
    const auto length = options_.sequence_lengths.find(input.name);
    const bool empty = length != options_.sequence_lengths.end() && length->second == 0;
    if (type->kind == OnnxKind::kOptional && empty) {
      return scope_.Define(input.name, OnnxValue{OnnxKind::kOptional, {}, false});
    }
    if (type->kind == OnnxKind::kOptional && type->element != nullptr) type = type->element.get();
    if (type->kind == OnnxKind::kSequence) return AddSequence(input, *type);
    scope_.Define(input.name, OnnxValue::Of(AddData(input.name, *type)));
  }

  void AddConstant(const OnnxValueInfo& input, const Tensor& value) {
    const bool fits = input.type.kind == OnnxKind::kTensor &&
                      input.type.tensor.dtype == value.dtype() &&
                      Specialises(input.type.tensor.shape, value.shape());
    if (!fits) {
      return scope_.emitter().Fail(
          Error(Code::kInvalidArgument, "input \"{}\" is {} and cannot be the constant {}",
                Quotable(input.name), input.type.tensor.ToString(), value.type().ToString()));
    }
    scope_.Define(input.name, OnnxValue::Of(scope_.emitter().Const(value, input.name)));
  }

  // Whether `given` has what `declared` says of a shape.
  static bool Specialises(const Shape& declared, const Shape& given) {
    if (!declared.has_rank()) return true;
    if (declared.rank() != given.rank()) return false;
    for (int d = 0; d < declared.rank(); ++d) {
      if (declared[d] >= 0 && declared[d] != given[d]) return false;
    }
    return true;
  }

  Value AddTensor(const std::string& name, const OnnxType& type) {
    TensorType fixed = type.tensor;
    const auto shape = options_.shapes.find(name);
    if (shape != options_.shapes.end()) {
      if (!Specialises(fixed.shape, shape->second)) {
        scope_.emitter().Fail(Error(Code::kInvalidArgument,
                                    "input \"{}\" is {} and cannot have the shape {}",
                                    Quotable(name), fixed.ToString(), shape->second.ToString()));
        return {};
      }
      fixed.shape = shape->second;
    }
    const Value value = scope_.emitter().Data(name, fixed);
    const bool named = std::any_of(type.dim_names.begin(), type.dim_names.end(),
                                   [](const std::string& each) { return !each.empty(); });
    if (named && scope_.emitter().ok()) dim_names_.emplace_back(value, type.dim_names);
    return value;
  }

  Value AddData(const std::string& name, const OnnxType& type) {
    const bool usable = type.kind == OnnxKind::kTensor && BitsOf(type.tensor.dtype) > 0;
    if (usable) return AddTensor(name, type);
    scope_.emitter().Fail(Error(
        Code::kUnsupported, "input \"{}\" is {}, which a graph of npumesh cannot take",
        Quotable(name), type.kind == OnnxKind::kTensor ? Name(type.tensor.dtype) : "no tensor"));
    return {};
  }

  void AddSequence(const OnnxValueInfo& input, const OnnxType& type) {
    const auto length = options_.sequence_lengths.find(input.name);
    if (length == options_.sequence_lengths.end() || type.element == nullptr) {
      scope_.emitter().Fail(
          Error(Code::kUnsupported,
                "input \"{0}\" is a sequence, whose number of elements npumesh has to know; give "
                "it with --sequence {0}=N",
                Quotable(input.name)));
      return;
    }
    OnnxValue sequence{OnnxKind::kSequence, {}, true, type.element->tensor.dtype};
    for (int i = 0; i < length->second; ++i) {
      sequence.items.push_back(AddData(fmt::format("{}.{}", input.name, i), *type.element));
    }
    scope_.Define(input.name, std::move(sequence));
  }

  const OnnxModel& model_;
  const OnnxImportOptions& options_;
  GraphScope scope_;
  std::vector<std::pair<Value, std::vector<std::string>>> dim_names_;
};

}  // namespace

Result<Model> ImportOnnx(const OnnxModel& model, const OpRegistry& registry,
                         const OnnxImportOptions& options) {
  const auto import = [&]() -> Result<Model> {
    NPUMESH_RETURN_IF_ERROR(CheckVersions(model));
    NPUMESH_ASSIGN_OR_RETURN(const std::optional<SortedModel> sorted, InOrder(model));
    if (sorted && options.note) {
      options.note(fmt::format("{} node{} stood before one that makes what {}; they are sorted",
                               sorted->moved, sorted->moved == 1 ? "" : "s",
                               sorted->moved == 1 ? "it reads" : "they read"));
    }
    const OnnxModel& in_order = sorted ? sorted->model : model;
    const std::optional<OnnxModel> joined = WithQuantisedNodes(in_order);
    const OnnxModel& ordered = joined ? *joined : in_order;
    const Status missing = MissingOps(ordered, registry).status();
    NPUMESH_ASSIGN_OR_RETURN(Model imported, ModelImport(ordered, registry, options).Run(missing));
    imported.path = model.path;
    return imported;
  };
  Result<Model> imported = import();
  if (imported.ok() || model.path.empty()) return imported;
  return imported.status().WithContext(model.path);
}

}  // namespace npumesh
