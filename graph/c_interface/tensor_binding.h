// Between npumesh_tensor and the tensors of a session.
#ifndef NPUMESH_GRAPH_C_INTERFACE_TENSOR_BINDING_H_
#define NPUMESH_GRAPH_C_INTERFACE_TENSOR_BINDING_H_

#include <vector>

#include "graph/engine/analyse/model_inputs.h"
#include "graph/engine/run/plan_cache.h"
#include "npumesh/npumesh.h"

namespace npumesh {

enum class BindFor : uint8_t {
  kRun,   // every input but an absent one has memory
  kTypes  // memory is optional, dimensions may be open
};

// Fills `operands` with what the session gets for these inputs. Errors (kInvalidArgument) name the
// input, what was expected and what was seen.
Status BindInputs(const std::vector<InputSpec>& specs, const npumesh_tensor* inputs, size_t count,
                  BindFor purpose, std::vector<PlanOperand>& operands);

// The memory of the outputs of one run. What it gave itself goes with it, unless it was handed
// over.
class OutputBinding {
 public:
  // All must outlive it. `allocator` may be null.
  OutputBinding(npumesh_tensor* outputs, npumesh_allocator allocator, void* context)
      : outputs_(outputs), allocator_(allocator), context_(context) {}
  ~OutputBinding();
  OutputBinding(const OutputBinding&) = delete;
  OutputBinding& operator=(const OutputBinding&) = delete;

  // Memory for outputs of these types. Errors (kInvalidArgument) name the output whose memory does
  // not suffice or has another dtype; kOutOfMemory.
  Result<std::vector<void*>> Place(const std::vector<TensorType>& types);
  // After the run: tells the caller of its outputs, whose dims are those of `types`.
  void HandOver(const std::vector<TensorType>& types);

 private:
  Result<void*> PlaceOf(size_t position, const TensorType& type);

  npumesh_tensor* const outputs_;
  const npumesh_allocator allocator_;
  void* const context_;
  std::vector<void*> places_;
  std::vector<void*> fresh_;
};

// A tensor of this type, without memory; its dims are those of `type`.
npumesh_tensor DescribeTensor(const TensorType& type);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_C_INTERFACE_TENSOR_BINDING_H_
