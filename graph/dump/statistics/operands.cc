#include "graph/dump/statistics/operands.h"

#include "graph/engine/plan/compiled_model.h"
#include "graph/ir/plain_layout.h"
#include "graph/passes/rewrite/stages.h"

namespace npumesh {
namespace {

DumpTensor Describe(const TensorType& type, const TensorDesc* desc, const void* data) {
  DumpTensor tensor;
  tensor.type = type;
  tensor.original_shape = type.shape;
  tensor.size = data == nullptr ? 0 : type.bytes();
  tensor.address = reinterpret_cast<uint64_t>(data);
  if (desc != nullptr) tensor.format = DumpFormatNumber(PlainLayoutOf(*desc));
  return tensor;
}

// Collectives move bytes: one dimension, no format.
void Flatten(const Step& step, DumpTensor* tensor) {
  if (!step.type.starts_with("Hcom")) return;
  tensor->type.shape = Shape({tensor->type.shape.elements()});
  tensor->format = kFormatNd;
}

// The position of the graph input at `address`; -1: it is not one, or stands for the output of an
// operator that ran in an earlier plan.
int GraphInputAt(const Address& address, const Graph& graph) {
  if (address.kind != Address::Kind::kInput) return -1;
  const NodeId id = graph.DataNodes()[address.offset];
  if (graph.node(id).FindAttr(kCrossedCut) != nullptr) return -1;
  return static_cast<int>(address.offset);
}

const TensorDesc* At(const std::vector<TensorDesc>& descs, int index) {
  const bool there = index >= 0 && static_cast<size_t>(index) < descs.size();
  return there ? &descs[static_cast<size_t>(index)] : nullptr;
}

}  // namespace

std::vector<DumpOperand> InputOperands(const StepView& view) {
  const Step& step = view.step;
  const Node& node = view.run.source.graph.node(step.node);
  std::vector<DumpOperand> operands;
  for (size_t slot = 0; slot < step.inputs.size(); ++slot) {
    if (step.inputs[slot].kind == Address::Kind::kNone) continue;
    DumpOperand& operand = operands.emplace_back();
    operand.data = view.args.in[slot];
    operand.tensor = Describe(step.input_types[slot], At(node.input_descs, step.input_ports[slot]),
                              operand.data);
    Flatten(step, &operand.tensor);
    operand.constant = step.inputs[slot].kind == Address::Kind::kConstant;
    operand.graph_input = GraphInputAt(step.inputs[slot], view.run.source.graph);
  }
  return operands;
}

std::vector<DumpOperand> OutputOperands(const RunView& run, size_t index) {
  const Step& step = run.model.steps()[index];
  const Node& node = run.source.graph.node(step.node);
  std::vector<DumpOperand> operands;
  for (size_t port = 0; port + step.others < step.outputs.size(); ++port) {
    DumpOperand& operand = operands.emplace_back();
    operand.data = run.args[index].out[port];
    operand.tensor = Describe(step.output_types[port],
                              At(node.output_descs, static_cast<int>(port)), operand.data);
    Flatten(step, &operand.tensor);
  }
  return operands;
}

bool OverwritesAnInput(const std::vector<DumpOperand>& inputs,
                       const std::vector<DumpOperand>& outputs) {
  for (const DumpOperand& in : inputs) {
    const auto* in_begin = static_cast<const std::byte*>(in.data);
    for (const DumpOperand& out : outputs) {
      const auto* out_begin = static_cast<const std::byte*>(out.data);
      if (in_begin < out_begin + out.tensor.size && out_begin < in_begin + in.tensor.size) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace npumesh
