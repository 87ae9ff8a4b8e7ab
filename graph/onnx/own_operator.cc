#include "graph/onnx/own_operator.h"

#include <algorithm>
#include <optional>

#include "graph/ops/builtin_ops.h"

namespace npumesh {
namespace {

// nullopt: no graph of ours holds such a value.
std::optional<AttrValue> AttrOf(const OnnxAttribute& attribute) {
  using Kind = OnnxAttribute::Kind;
  switch (attribute.kind) {
    case Kind::kFloat:
      return AttrValue::Float(attribute.f);
    case Kind::kInt:
      return AttrValue::Int(attribute.i);
    case Kind::kString:
      return AttrValue::String(attribute.s);
    case Kind::kTensor:
      return AttrValue::Value(attribute.tensor);
    case Kind::kFloats:
      return AttrValue::Floats(attribute.floats);
    case Kind::kInts:
      return AttrValue::Ints(attribute.ints);
    case Kind::kStrings:
      return AttrValue::Strings(attribute.strings);
    default:
      return std::nullopt;
  }
}

}  // namespace

const Operator* OwnOperatorOf(const OnnxNode& node, const OpRegistry& registry) {
  if (node.domain.empty() || BuiltinOps().Find(node.op) != nullptr) return nullptr;
  return registry.Find(node.op);
}

void LowerOwnOperator(const Operator& op, Lowering& lowering) {
  GraphEmitter::Attrs attrs;
  for (const OnnxAttribute& attribute : lowering.node().attributes) {
    std::optional<AttrValue> value = AttrOf(attribute);
    if (!value) {
      return lowering.Refuse(
          "attribute \"{}\" is of a kind that an operator of a library cannot have",
          attribute.name);
    }
    attrs.push_back({attribute.name, *std::move(value)});
  }
  Lowering::Inputs inputs;
  for (int i = 0; i < lowering.inputs(); ++i) inputs.push_back(lowering.Given(i));
  const Value made = lowering.Node(std::string(op.schema.type), std::move(inputs), std::move(attrs),
                                   std::max(lowering.outputs(), 1));
  for (int i = 0; i < lowering.outputs(); ++i) lowering.Out(i, Lowering::Port(made, i));
}

}  // namespace npumesh
