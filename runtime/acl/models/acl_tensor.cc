// Buffers and tensor descriptions: acl_base_mdl.h.
#include <algorithm>
#include <cstring>
#include <limits>

#include "runtime/acl/models/model_objects.h"

using npumesh::Fail;
using npumesh::FindObject;
using npumesh::ModelObjects;

namespace {

std::shared_ptr<aclDataBuffer> BufferOf(const aclDataBuffer* handle, const char* function) {
  return FindObject(ModelObjects::Get().buffers, handle, function, "data buffer");
}

std::shared_ptr<aclTensorDesc> TensorOf(const aclTensorDesc* handle, const char* function) {
  return FindObject(ModelObjects::Get().tensors, handle, function, "tensor description");
}

// The dimensions of a call; an error is recorded.
aclError TakeDims(const char* function, int count, const int64_t* dims,
                  std::vector<int64_t>* taken) {
  if (count < 0 || count > ACL_MAX_DIM_CNT || (count > 0 && dims == nullptr)) {
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "numDims is {}{}, expected 0 to {} and their dims", count,
                dims == nullptr ? " and dims null" : "", ACL_MAX_DIM_CNT);
  }
  taken->assign(dims, dims + count);
  if (npumesh::AreDims(*taken)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, function, "[{}] is no shape", fmt::join(*taken, ","));
}

bool IsOpenRank(const aclTensorDesc& tensor) {
  return tensor.dims.size() == 1 && tensor.dims[0] == -2;
}

bool IsPlain(aclFormat format) {
  return format == ACL_FORMAT_ND || format == ACL_FORMAT_NCHW || format == ACL_FORMAT_NHWC ||
         format == ACL_FORMAT_NCDHW || format == ACL_FORMAT_NDHWC || format == ACL_FORMAT_HWCN;
}

aclError SetFormat(const char* function, aclTensorDesc* desc, aclFormat format,
                   aclFormat aclTensorDesc::*member) {
  const auto tensor = TensorOf(desc, function);
  if (tensor == nullptr) return ACL_ERROR_INVALID_PARAM;
  (*tensor).*member = format;
  return ACL_SUCCESS;
}

aclError SetDims(const char* function, aclTensorDesc* desc, int count, const int64_t* dims,
                 std::vector<int64_t> aclTensorDesc::*member) {
  const auto tensor = TensorOf(desc, function);
  if (tensor == nullptr) return ACL_ERROR_INVALID_PARAM;
  std::vector<int64_t> taken;
  NPUMESH_ACL_TRY(TakeDims(function, count, dims, &taken));
  (*tensor).*member = std::move(taken);
  return ACL_SUCCESS;
}

aclError SetRange(const char* function, aclTensorDesc* desc, size_t count,
                  const int64_t (*ranges)[2],
                  std::vector<std::pair<int64_t, int64_t>> aclTensorDesc::*member) {
  const auto tensor = TensorOf(desc, function);
  if (tensor == nullptr) return ACL_ERROR_INVALID_PARAM;
  if (count > ACL_MAX_DIM_CNT || (count > 0 && ranges == nullptr)) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "{} ranges{}, expected at most {}", count,
                ranges == nullptr ? " at null" : "", ACL_MAX_DIM_CNT);
  }
  auto& taken = (*tensor).*member;
  taken.clear();
  for (size_t i = 0; i < count; ++i) taken.emplace_back(ranges[i][0], ranges[i][1]);
  return ACL_SUCCESS;
}

}  // namespace

aclDataBuffer* aclCreateDataBuffer(void* data, size_t size) try {
  auto buffer = std::make_shared<aclDataBuffer>(aclDataBuffer{data, size});
  return static_cast<aclDataBuffer*>(ModelObjects::Get().buffers.Add(std::move(buffer)));
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return nullptr;
}

aclError aclDestroyDataBuffer(const aclDataBuffer* dataBuffer) try {
  if (BufferOf(dataBuffer, __func__) == nullptr) return ACL_ERROR_INVALID_PARAM;
  static_cast<void>(ModelObjects::Get().buffers.Take(dataBuffer));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclUpdateDataBuffer(aclDataBuffer* dataBuffer, void* data, size_t size) try {
  const auto buffer = BufferOf(dataBuffer, __func__);
  if (buffer == nullptr) return ACL_ERROR_INVALID_PARAM;
  *buffer = {data, size};
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

void* aclGetDataBufferAddr(const aclDataBuffer* dataBuffer) try {
  const auto buffer = BufferOf(dataBuffer, __func__);
  return buffer == nullptr ? nullptr : buffer->data;
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return nullptr;
}

size_t aclGetDataBufferSizeV2(const aclDataBuffer* dataBuffer) try {
  const auto buffer = BufferOf(dataBuffer, __func__);
  return buffer == nullptr ? 0 : buffer->size;
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return 0;
}

uint32_t aclGetDataBufferSize(const aclDataBuffer* dataBuffer) try {
  constexpr size_t kMost = std::numeric_limits<uint32_t>::max();
  return static_cast<uint32_t>(std::min(aclGetDataBufferSizeV2(dataBuffer), kMost));
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return 0;
}

aclTensorDesc* aclCreateTensorDesc(aclDataType dataType, int numDims, const int64_t* dims,
                                   aclFormat format) try {
  auto tensor = std::make_shared<aclTensorDesc>();
  if (TakeDims(__func__, numDims, dims, &tensor->dims) != ACL_SUCCESS) return nullptr;
  tensor->dtype = dataType;
  tensor->format = format;
  return static_cast<aclTensorDesc*>(ModelObjects::Get().tensors.Add(std::move(tensor)));
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return nullptr;
}

void aclDestroyTensorDesc(const aclTensorDesc* desc) try {
  if (TensorOf(desc, __func__) != nullptr) {
    static_cast<void>(ModelObjects::Get().tensors.Take(desc));
  }
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
}

aclDataType aclGetTensorDescType(const aclTensorDesc* desc) try {
  const auto tensor = TensorOf(desc, __func__);
  return tensor == nullptr ? ACL_DT_UNDEFINED : tensor->dtype;
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return ACL_DT_UNDEFINED;
}

aclFormat aclGetTensorDescFormat(const aclTensorDesc* desc) try {
  const auto tensor = TensorOf(desc, __func__);
  return tensor == nullptr ? ACL_FORMAT_UNDEFINED : tensor->format;
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return ACL_FORMAT_UNDEFINED;
}

size_t aclGetTensorDescSize(const aclTensorDesc* desc) try {
  const auto tensor = TensorOf(desc, __func__);
  return tensor == nullptr ? 0 : npumesh::BytesOfTensor(tensor->dtype, tensor->dims);
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return 0;
}

size_t aclGetTensorDescElementCount(const aclTensorDesc* desc) try {
  const auto tensor = TensorOf(desc, __func__);
  return tensor == nullptr ? 0 : npumesh::BytesOfTensor(ACL_INT8, tensor->dims);
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return 0;
}

size_t aclGetTensorDescNumDims(const aclTensorDesc* desc) try {
  const auto tensor = TensorOf(desc, __func__);
  if (tensor == nullptr) return 0;
  return IsOpenRank(*tensor) ? static_cast<size_t>(ACL_UNKNOWN_RANK) : tensor->dims.size();
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return 0;
}

aclError aclGetTensorDescDimV2(const aclTensorDesc* desc, size_t index, int64_t* dimSize) try {
  NPUMESH_ACL_EXPECT(dimSize != nullptr, "dimSize is null");
  const auto tensor = TensorOf(desc, __func__);
  if (tensor == nullptr) return ACL_ERROR_INVALID_PARAM;
  NPUMESH_ACL_EXPECT(index < tensor->dims.size(), "axis {} of {}", index, tensor->dims.size());
  *dimSize = tensor->dims[index];
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

int64_t aclGetTensorDescDim(const aclTensorDesc* desc, size_t index) try {
  int64_t dim = -1;
  return aclGetTensorDescDimV2(desc, index, &dim) == ACL_SUCCESS ? dim : -1;
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return -1;
}

aclError aclGetTensorDescDimRange(const aclTensorDesc* desc, size_t index, size_t dimRangeNum,
                                  int64_t* dimRange) try {
  NPUMESH_ACL_EXPECT(dimRange != nullptr && dimRangeNum >= 2,
                     "dimRange is to have 2 numbers, seen {}",
                     dimRange == nullptr ? 0 : dimRangeNum);
  const auto tensor = TensorOf(desc, __func__);
  if (tensor == nullptr) return ACL_ERROR_INVALID_PARAM;
  NPUMESH_ACL_EXPECT(index < tensor->dims.size(), "axis {} of {}", index, tensor->dims.size());
  const bool given = index < tensor->shape_range.size();
  dimRange[0] = given ? tensor->shape_range[index].first : tensor->dims[index];
  dimRange[1] = given ? tensor->shape_range[index].second : tensor->dims[index];
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclSetTensorShapeRange(aclTensorDesc* desc, size_t dimsCount, int64_t dimsRange[][2]) try {
  return SetRange(__func__, desc, dimsCount, dimsRange, &aclTensorDesc::shape_range);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclSetTensorValueRange(aclTensorDesc* desc, size_t valueCount,
                                int64_t valueRange[][2]) try {
  return SetRange(__func__, desc, valueCount, valueRange, &aclTensorDesc::value_range);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

void aclSetTensorDescName(aclTensorDesc* desc, const char* name) try {
  const auto tensor = TensorOf(desc, __func__);
  if (tensor != nullptr) tensor->name = name == nullptr ? "" : name;
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
}

const char* aclGetTensorDescName(aclTensorDesc* desc) try {
  const auto tensor = TensorOf(desc, __func__);
  return tensor == nullptr ? "" : tensor->name.c_str();
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return "";
}

aclError aclSetTensorFormat(aclTensorDesc* desc, aclFormat format) try {
  return SetFormat(__func__, desc, format, &aclTensorDesc::storage_format);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclSetTensorShape(aclTensorDesc* desc, int numDims, const int64_t* dims) try {
  return SetDims(__func__, desc, numDims, dims, &aclTensorDesc::storage_dims);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclSetTensorStorageFormat(aclTensorDesc* desc, aclFormat format) try {
  return SetFormat(__func__, desc, format, &aclTensorDesc::storage_format);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclSetTensorStorageShape(aclTensorDesc* desc, int numDims, const int64_t* dims) try {
  return SetDims(__func__, desc, numDims, dims, &aclTensorDesc::storage_dims);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclSetTensorOriginFormat(aclTensorDesc* desc, aclFormat format) try {
  return SetFormat(__func__, desc, format, &aclTensorDesc::origin_format);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclSetTensorOriginShape(aclTensorDesc* desc, int numDims, const int64_t* dims) try {
  return SetDims(__func__, desc, numDims, dims, &aclTensorDesc::origin_dims);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclTransTensorDescFormat(const aclTensorDesc* srcDesc, aclFormat dstFormat,
                                  aclTensorDesc** dstDesc) try {
  NPUMESH_ACL_EXPECT(dstDesc != nullptr, "dstDesc is null");
  const auto tensor = TensorOf(srcDesc, __func__);
  if (tensor == nullptr) return ACL_ERROR_INVALID_PARAM;
  if (!IsPlain(tensor->format) || !IsPlain(dstFormat)) {
    return Fail(ACL_ERROR_FEATURE_UNSUPPORTED, __func__,
                "format {} to {}: only plain formats have a common shape",
                static_cast<int>(tensor->format), static_cast<int>(dstFormat));
  }
  auto made = std::make_shared<aclTensorDesc>(*tensor);
  made->format = dstFormat;
  *dstDesc = static_cast<aclTensorDesc*>(ModelObjects::Get().tensors.Add(std::move(made)));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclTensorDesc* aclGetTensorDescByIndex(aclTensorDesc* desc, size_t index) try {
  const auto tensor = TensorOf(desc, __func__);
  return tensor != nullptr && index == 0 ? desc : nullptr;
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return nullptr;
}

void* aclGetTensorDescAddress(const aclTensorDesc* desc) try {
  static_cast<void>(TensorOf(desc, __func__));
  return nullptr;
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return nullptr;
}

aclError aclSetTensorDynamicInput(aclTensorDesc* desc, const char* dynamicInputName) try {
  NPUMESH_ACL_EXPECT(dynamicInputName != nullptr, "dynamicInputName is null");
  const auto tensor = TensorOf(desc, __func__);
  if (tensor == nullptr) return ACL_ERROR_INVALID_PARAM;
  tensor->dynamic_input = dynamicInputName;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclSetTensorConst(aclTensorDesc* desc, void* dataBuffer, size_t length) try {
  const auto tensor = TensorOf(desc, __func__);
  if (tensor == nullptr) return ACL_ERROR_INVALID_PARAM;
  NPUMESH_ACL_EXPECT(dataBuffer != nullptr && length > 0, "expected data and their length, seen {}",
                     length);
  tensor->value.resize(length);
  std::memcpy(tensor->value.data(), dataBuffer, length);
  tensor->constant = true;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclSetTensorPlaceMent(aclTensorDesc* desc, aclMemType memType) try {
  const auto tensor = TensorOf(desc, __func__);
  if (tensor == nullptr) return ACL_ERROR_INVALID_PARAM;
  NPUMESH_ACL_EXPECT(
      memType >= ACL_MEMTYPE_DEVICE && memType <= ACL_MEMTYPE_HOST_COMPILE_INDEPENDENT,
      "memType is {}, expected 0 to 2", static_cast<int>(memType));
  tensor->place = memType;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}
