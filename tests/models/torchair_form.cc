#include "tests/models/torchair_form.h"

#include <algorithm>
#include <array>

#include "graph/ops/builtin_ops.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh::models {
namespace {

// Types among those the models use whose builders are "named" (ops.json, `style`).
constexpr std::array<std::string_view, 8> kNamed = {
    "BatchNormGradV3",         "Bitcast",          "DequantSwigluQuant", "DynamicQuant", "GeluV2",
    "RotaryPositionEmbedding", "ScatterPaKvCache", "TransQuantParamV2"};

bool IsNamed(std::string_view type) {
  return std::find(kNamed.begin(), kNamed.end(), type) != kNamed.end();
}

// Whether `port` is an element of the dynamic port `name`: name and digits.
bool IsElementOf(std::string_view port, std::string_view name) {
  if (!port.starts_with(name) || port.size() == name.size()) return false;
  const std::string_view digits = port.substr(name.size());
  return digits.find_first_not_of("0123456789") == std::string_view::npos;
}

TensorDesc UnfedOptional(std::string_view name) {
  TensorDesc desc;
  desc.name = std::string(name);
  desc.layout = "";
  desc.attrs.emplace("_is_unfed_optional", AttrValue::Int(1));
  return desc;
}

// Inputs in the order of the interface, absent optional ones as empty entries.
void WriteInputs(Node& node, const OpSchema& schema) {
  std::vector<std::optional<Value>> inputs;
  std::vector<TensorDesc> descs;
  for (const PortSpec& port : schema.inputs) {
    bool fed = false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const std::string& name = node.input_descs[i].name;
      const bool mine =
          port.kind == PortKind::kDynamic ? IsElementOf(name, port.name) : name == port.name;
      if (!mine) continue;
      fed = true;
      inputs.push_back(node.inputs[i]);
      descs.push_back(node.input_descs[i]);
    }
    if (!fed && port.kind == PortKind::kOptional) {
      inputs.emplace_back();
      descs.push_back(UnfedOptional(port.name));
    }
  }
  // A port that the interface lacks stays where it was: the code that binds the node says so.
  if (inputs.size() < node.inputs.size()) return;
  node.inputs = std::move(inputs);
  node.input_descs = std::move(descs);
}

void WriteOutputs(Node& node, const OpSchema& schema) {
  for (size_t i = 0; i < node.output_descs.size(); ++i) {
    const bool single = i < schema.outputs.size() && schema.outputs[i].kind != PortKind::kDynamic;
    if (single) {
      node.output_descs[i].name = std::string(schema.outputs[i].name);
    } else if (!schema.outputs.empty()) {
      node.output_descs[i].name = fmt::format("{}{}", schema.outputs.back().name, i);
    }
  }
}

}  // namespace

void WriteAsTorchAir(Model& model, const std::set<std::string>& on_host) {
  for (size_t i = 0; i < model.graph.nodes().size(); ++i) {
    Node& node = model.graph.node(static_cast<NodeId>(i));
    if (on_host.contains(node.name)) {
      node.input_descs[0].device_type = "CPU";
      node.output_descs[0].device_type = "CPU";
    }
    const Operator* const op = BuiltinOps().Find(node.type);
    const bool plain = node.type == "Data" || node.type == "RefData" || node.type == "Const" ||
                       node.type == "NetOutput";
    if (op == nullptr || plain) continue;
    WriteOutputs(node, op->schema);
    if (IsNamed(node.type)) continue;
    WriteInputs(node, op->schema);
    for (const AttrSpec& attr : op->schema.attrs) {
      if (attr.fallback) node.attrs.emplace(std::string(attr.name), *attr.fallback);
    }
  }
}

}  // namespace npumesh::models
