#include "graph/ops/core/define.h"

#include "graph/ops/core/infer_checks.h"

namespace npumesh::define {

Status SetOutputs(OpContext& op, const std::vector<TensorType>& types) {
  for (size_t port = 0; port < types.size(); ++port) {
    NPUMESH_RETURN_IF_ERROR(
        SetOutput(op, static_cast<int>(port), types[port].dtype, types[port].shape));
  }
  return Status();
}

}  // namespace npumesh::define
