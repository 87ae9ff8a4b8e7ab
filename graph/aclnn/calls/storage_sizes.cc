// What tensors take in private formats: functions of acl_meta.h.
#include <algorithm>

#include "aclnn/acl_meta.h"
#include "graph/aclnn/calls/objects.h"
#include "graph/aclnn/calls/view.h"
#include "graph/io/layout.h"
#include "runtime/acl/process/errors.h"

using npumesh::AclnnView;
using npumesh::BlocksOf;
using npumesh::Code;
using npumesh::DataTypeFromRuntime;
using npumesh::Fail;
using npumesh::Layout;
using npumesh::LayoutName;
using npumesh::LayoutSpec;
using npumesh::Result;
using npumesh::Shape;

namespace {

// How a packed tensor is stored in a layout. Errors (kInvalidArgument): no such type, no such
// layout, a rank that does not fit.
Result<Shape> StorageOf(const std::vector<int64_t>& dims, aclDataType type, LayoutSpec layout) {
  const auto dtype = DataTypeFromRuntime(type);
  if (!dtype) {
    return npumesh::Error(Code::kInvalidArgument, "data type {} is not known",
                          static_cast<int>(type));
  }
  AclnnView view{{*dtype, Shape(dims)}, npumesh::PackedStrides(dims)};
  NPUMESH_RETURN_IF_ERROR(view.type.shape.Check());
  if (!layout.is_private()) return view.type.shape;
  view.layout = layout;
  NPUMESH_ASSIGN_OR_RETURN(const npumesh::BlockedTensor blocks, BlocksOf(view));
  return blocks.storage_shape();
}

aclnnStatus WeightSize(const char* function, const aclIntArray* shape, aclDataType type,
                       uint64_t* elements) {
  if (shape == nullptr || elements == nullptr) {
    return Fail(ACLNN_ERR_PARAM_NULLPTR, function, "tensorShape or weightTensorSize is null");
  }
  if (!npumesh::IsLive(shape) || shape->values.size() < 2) {
    return Fail(ACLNN_ERR_PARAM_INVALID, function,
                "tensorShape is no list of two dimensions or more");
  }
  const Result<Shape> storage = StorageOf(shape->values, type, {Layout::kFractalNz});
  if (!storage.ok()) {
    return Fail(ACLNN_ERR_PARAM_INVALID, function, "{}", storage.status().message());
  }
  *elements = static_cast<uint64_t>(storage->elements());
  return ACL_SUCCESS;
}

}  // namespace

aclnnStatus aclnnCalculateMatmulWeightSize(const aclIntArray* tensorShape,
                                           uint64_t* weightTensorSize) try {
  return WeightSize(__func__, tensorShape, ACL_FLOAT16, weightTensorSize);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclnnStatus aclnnCalculateMatmulWeightSizeV2(const aclIntArray* tensorShape, aclDataType dataType,
                                             uint64_t* weightTensorSize) try {
  return WeightSize(__func__, tensorShape, dataType, weightTensorSize);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclnnStatus aclnnNpuFormatCastCalculateSizeAndFormat(const aclTensor* srcTensor,
                                                     const int dstFormat, int /*additionalDtype*/,
                                                     int64_t** dstShape, uint64_t* dstShapeSize,
                                                     int* actualFormat) try {
  if (srcTensor == nullptr || dstShape == nullptr || dstShapeSize == nullptr ||
      actualFormat == nullptr) {
    return Fail(ACLNN_ERR_PARAM_NULLPTR, __func__, "a parameter is null");
  }
  if (!npumesh::IsLive(srcTensor)) {
    return Fail(ACLNN_ERR_PARAM_INVALID, __func__, "srcTensor is no tensor, or was destroyed");
  }
  const auto layout = npumesh::LayoutSpecOf(LayoutName(dstFormat));
  if (!layout) {
    return Fail(ACLNN_ERR_PARAM_INVALID, __func__, "dstFormat is {} ({}), which is not stored here",
                dstFormat, LayoutName(dstFormat));
  }
  const Result<Shape> storage = StorageOf(srcTensor->dims, srcTensor->dtype, *layout);
  if (!storage.ok()) {
    return Fail(ACLNN_ERR_PARAM_INVALID, __func__, "{}", storage.status().message());
  }
  const std::vector<int64_t>& dims = storage->dims();
  *dstShape = new int64_t[std::max<size_t>(1, dims.size())];
  std::copy(dims.begin(), dims.end(), *dstShape);
  *dstShapeSize = dims.size();
  *actualFormat = dstFormat;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}
