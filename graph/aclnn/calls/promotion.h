// In which type operands of several types are computed: PyTorch's rule, which aclnn has as well.
#ifndef NPUMESH_GRAPH_ACLNN_CALLS_PROMOTION_H_
#define NPUMESH_GRAPH_ACLNN_CALLS_PROMOTION_H_

#include <string_view>
#include <vector>

#include "runtime/base/data_type.h"

namespace npumesh {

struct PromotionOperand {
  enum class Rank : uint8_t { kScalar, kNoDimensions, kTensor };
  DataType dtype = DataType::kUndefined;
  Rank rank = Rank::kTensor;
};

// The smallest type that holds both; kUndefined without one.
DataType Promote(DataType a, DataType b);

// Whether a result of type `from` may be written into a tensor of type `to`: a complex one not into
// a real one, a real one not into integers, and into bool nothing else.
bool CanCast(DataType from, DataType to);

// How PyTorch's errors name a type that it has: "Long" for int64.
std::string_view TorchName(DataType type);

// Tensors count before tensors of no dimensions, and those before scalars: what comes later changes
// the type only when its kind (bool, integer, real, complex) is higher. A scalar has the type that
// PyTorch gives a number: bool, int64, float32 or complex64.
DataType PromoteAll(const std::vector<PromotionOperand>& operands);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ACLNN_CALLS_PROMOTION_H_
