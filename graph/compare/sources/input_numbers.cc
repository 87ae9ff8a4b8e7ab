#include "graph/compare/sources/input_numbers.h"

namespace npumesh {

std::vector<size_t> DumpedInputs(const Node& node, const OpRegistry& registry) {
  std::vector<size_t> fed;
  if (const Operator* op = registry.Find(node.type)) {
    if (const Result<OpContext> context = OpContext::Bind(node, op->schema); context.ok()) {
      for (int slot = 0; slot < context->slots(); ++slot) {
        if (context->has(slot)) fed.push_back(static_cast<size_t>(context->input_index(slot)));
      }
      return fed;
    }
  }
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i]) fed.push_back(i);
  }
  return fed;
}

}  // namespace npumesh
