#include "graph/passes/rewrite/constant_folding.h"

#include <cstring>

#include "graph/passes/analysis/value_flow.h"

namespace npumesh {
namespace {

bool AllInputsConstant(const OpContext& context) {
  for (int slot = 0; slot < context.slots(); ++slot) {
    if (context.has(slot) && context.value(slot) == nullptr) return false;
  }
  return true;
}

uint64_t OutputBytes(const OpContext& context) {
  uint64_t bytes = 0;
  for (int i = 0; i < context.outputs(); ++i) bytes += context.out(i).bytes();
  return bytes;
}

Result<std::vector<Tensor>> Evaluate(const Operator& op, const OpContext& context) {
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Kernel> kernel, op.make_kernel(context));
  std::vector<const void*> in;
  for (int slot = 0; slot < context.slots(); ++slot) {
    const Tensor* const value = context.has(slot) ? context.value(slot) : nullptr;
    in.push_back(value != nullptr ? value->data() : nullptr);
  }
  std::vector<Tensor> outputs;
  std::vector<void*> out;
  for (int i = 0; i < context.outputs(); ++i) {
    outputs.push_back(Tensor::Allocate(context.out(i)));
    out.push_back(outputs.back().mutable_data());
  }
  const auto scratch_bytes = static_cast<int64_t>(kernel->scratch_bytes());
  Tensor scratch = Tensor::Allocate({DataType::kUint8, Shape({scratch_bytes})});
  NPUMESH_RETURN_IF_ERROR(kernel->Run({in.data(), out.data(), scratch.mutable_data()}));
  return outputs;
}

}  // namespace

bool IsRepeatable(const Operator& op, const OpContext& context) {
  return op.pure && !op.late() && !op.collective && !op.side_effect && op.in_place.empty() &&
         context.outputs() > 0;
}

Result<std::optional<std::vector<Tensor>>> FoldConstants(const Operator& op,
                                                         const OpContext& context, uint64_t most) {
  if (!IsRepeatable(op, context) || !(op.axes.shape_query() || AllInputsConstant(context)))
    return std::optional<std::vector<Tensor>>();
  if (op.view) {
    return std::optional(std::vector<Tensor>{context.value(0)->WithType(context.out(0))});
  }
  if (OutputBytes(context) > most) return std::optional<std::vector<Tensor>>();
  NPUMESH_ASSIGN_OR_RETURN(std::vector<Tensor> outputs, Evaluate(op, context));
  return std::optional(std::move(outputs));
}

Tensor Aligned(const Tensor& tensor) {
  if (reinterpret_cast<uintptr_t>(tensor.data()) % 16 == 0) return tensor;
  Tensor copy = Tensor::Allocate(tensor.type());
  std::memcpy(copy.mutable_data(), tensor.data(), tensor.bytes());
  return copy;
}

}  // namespace npumesh
