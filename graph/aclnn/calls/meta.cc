// The functions of acl_meta.h about tensors, scalars and lists.
#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_set>

#include "aclnn/acl_meta.h"
#include "graph/aclnn/calls/objects.h"
#include "graph/aclnn/calls/view.h"
#include "runtime/acl/process/errors.h"

using npumesh::Fail;

namespace npumesh {
namespace {

constexpr uint64_t kMostDims = 32;
constexpr uint64_t kMostElements = uint64_t{1} << 32;

// Which pointers are live objects of one kind: a freed one is told.
template <typename T>
class LiveObjects {
 public:
  T* Add(std::unique_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    live_.insert(object.get());
    return object.release();
  }
  bool Has(const T* object) {
    const std::lock_guard lock(mutex_);
    return live_.count(object) != 0;
  }
  template <typename Edit>
  void Change(const T* object, const Edit& edit) {
    const std::lock_guard lock(mutex_);
    if (live_.count(object) != 0) edit(*const_cast<T*>(object));
  }
  bool Delete(const T* object) {
    {
      const std::lock_guard lock(mutex_);
      if (live_.erase(object) == 0) return false;
    }
    delete object;
    return true;
  }

 private:
  std::mutex mutex_;
  std::unordered_set<const T*> live_;
};

template <typename T>
LiveObjects<T>& Live() {
  static auto* const live = new LiveObjects<T>;
  return *live;
}

template <typename T>
aclError Need(const char* function, const T* object) {
  if (object == nullptr) return Fail(ACLNN_ERR_PARAM_NULLPTR, function, "a null pointer");
  if (Live<T>().Has(object)) return ACL_SUCCESS;
  return Fail(ACLNN_ERR_PARAM_INVALID, function, "{} is not what the function takes, or was freed",
              fmt::ptr(object));
}

template <typename T>
aclError Destroy(const char* function, const T* object) {
  NPUMESH_ACL_TRY(Need(function, object));
  Live<T>().Delete(object);
  return ACL_SUCCESS;
}

template <typename Array, typename Value>
Array* CreateArray(const Value* values, uint64_t size) {
  if ((values == nullptr && size > 0) || size > kMostElements) return nullptr;
  auto array = std::make_unique<Array>();
  array->values.assign(values, values + size);
  return Live<Array>().Add(std::move(array));
}

// A copy that the caller deletes.
aclError GiveDims(const std::vector<int64_t>& dims, int64_t** values, uint64_t* count) {
  *values = new int64_t[std::max<size_t>(1, dims.size())];
  std::copy(dims.begin(), dims.end(), *values);
  *count = dims.size();
  return ACL_SUCCESS;
}

struct TensorFacts {
  const int64_t* dims;
  uint64_t rank;
  aclDataType dtype;
  const int64_t* strides;
  int64_t offset;
  aclFormat format;
  const int64_t* storage_dims;
  uint64_t storage_rank;
  void* data;
};

bool Fill(const TensorFacts& given, aclTensor* tensor) {
  const auto wrong = [](const int64_t* values, uint64_t count) {
    return count > kMostDims || (values == nullptr && count > 0) ||
           std::any_of(values, values + count, [](int64_t dim) { return dim < 0; });
  };
  if (wrong(given.dims, given.rank) || wrong(given.storage_dims, given.storage_rank) ||
      given.offset < 0 || (given.strides != nullptr && wrong(given.strides, given.rank))) {
    return false;
  }
  tensor->dims.assign(given.dims, given.dims + given.rank);
  if (given.strides != nullptr) {
    tensor->strides.assign(given.strides, given.strides + given.rank);
  } else {
    tensor->strides = PackedStrides(tensor->dims);
  }
  tensor->storage_dims.assign(given.storage_dims, given.storage_dims + given.storage_rank);
  tensor->offset = given.offset;
  tensor->dtype = given.dtype;
  tensor->format = given.format;
  tensor->data = given.data;
  return true;
}

// The bytes of a scalar of that type.
size_t ScalarBytes(aclDataType dtype) {
  const size_t bytes = aclDataTypeSize(dtype);
  return bytes <= sizeof(aclScalar::bytes) ? bytes : 0;
}

template <typename List, typename T>
List* CreateList(std::vector<T*> List::*elements, const T* const* values, uint64_t size) {
  if ((values == nullptr && size > 0) || size > kMostElements) return nullptr;
  auto list = std::make_unique<List>();
  for (uint64_t i = 0; i < size; ++i) {
    if (!Live<T>().Has(values[i])) return nullptr;
    (list.get()->*elements).push_back(const_cast<T*>(values[i]));
  }
  return Live<List>().Add(std::move(list));
}

template <typename List, typename T>
aclError DestroyList(const char* function, std::vector<T*> List::*elements, const List* list) {
  NPUMESH_ACL_TRY(Need(function, list));
  for (const T* element : list->*elements) Live<T>().Delete(element);
  return Destroy(function, list);
}

}  // namespace

bool IsLive(const aclTensor* tensor) {
  return Live<aclTensor>().Has(tensor);
}
void ReshapeLive(const aclTensor* tensor, const std::vector<int64_t>& dims) {
  Live<aclTensor>().Change(tensor, [&dims](aclTensor& live) {
    live.dims = dims;
    live.strides = PackedStrides(dims);
  });
}
bool IsLive(const aclScalar* scalar) {
  return Live<aclScalar>().Has(scalar);
}
bool IsLive(const aclIntArray* array) {
  return Live<aclIntArray>().Has(array);
}
bool IsLive(const aclFloatArray* array) {
  return Live<aclFloatArray>().Has(array);
}
bool IsLive(const aclBoolArray* array) {
  return Live<aclBoolArray>().Has(array);
}
bool IsLive(const aclTensorList* list) {
  return Live<aclTensorList>().Has(list) &&
         std::all_of(list->tensors.begin(), list->tensors.end(),
                     [](const aclTensor* tensor) { return IsLive(tensor); });
}
bool IsLive(const aclScalarList* list) {
  return Live<aclScalarList>().Has(list) &&
         std::all_of(list->scalars.begin(), list->scalars.end(),
                     [](const aclScalar* scalar) { return IsLive(scalar); });
}

}  // namespace npumesh

using npumesh::CreateArray;
using npumesh::CreateList;
using npumesh::Destroy;
using npumesh::DestroyList;
using npumesh::GiveDims;
using npumesh::Live;
using npumesh::Need;

aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType,
                           const int64_t* stride, int64_t offset, aclFormat format,
                           const int64_t* storageDims, uint64_t storageDimsNum,
                           void* tensorData) try {
  auto tensor = std::make_unique<aclTensor>();
  const npumesh::TensorFacts given{viewDims, viewDimsNum, dataType,       stride,    offset,
                                   format,   storageDims, storageDimsNum, tensorData};
  if (!npumesh::Fill(given, tensor.get())) return nullptr;
  return Live<aclTensor>().Add(std::move(tensor));
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return nullptr;
}

aclScalar* aclCreateScalar(void* value, aclDataType dataType) try {
  const size_t bytes = npumesh::ScalarBytes(dataType);
  if (value == nullptr || bytes == 0) return nullptr;
  auto scalar = std::make_unique<aclScalar>();
  scalar->dtype = dataType;
  std::memcpy(scalar->bytes, value, bytes);
  return Live<aclScalar>().Add(std::move(scalar));
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return nullptr;
}

aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size) try {
  return CreateArray<aclIntArray>(value, size);
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return nullptr;
}

aclFloatArray* aclCreateFloatArray(const float* value, uint64_t size) try {
  return CreateArray<aclFloatArray>(value, size);
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return nullptr;
}

aclBoolArray* aclCreateBoolArray(const bool* value, uint64_t size) try {
  return CreateArray<aclBoolArray>(value, size);
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return nullptr;
}

aclTensorList* aclCreateTensorList(const aclTensor* const* value, uint64_t size) try {
  return CreateList(&aclTensorList::tensors, value, size);
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return nullptr;
}

aclScalarList* aclCreateScalarList(const aclScalar* const* value, uint64_t size) try {
  return CreateList(&aclScalarList::scalars, value, size);
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return nullptr;
}

aclnnStatus aclDestroyTensor(const aclTensor* tensor) {
  return Destroy(__func__, tensor);
}
aclnnStatus aclDestroyScalar(const aclScalar* scalar) {
  return Destroy(__func__, scalar);
}
aclnnStatus aclDestroyIntArray(const aclIntArray* array) {
  return Destroy(__func__, array);
}
aclnnStatus aclDestroyFloatArray(const aclFloatArray* array) {
  return Destroy(__func__, array);
}
aclnnStatus aclDestroyBoolArray(const aclBoolArray* array) {
  return Destroy(__func__, array);
}
aclnnStatus aclDestroyTensorList(const aclTensorList* array) {
  return DestroyList(__func__, &aclTensorList::tensors, array);
}
aclnnStatus aclDestroyScalarList(const aclScalarList* array) {
  return DestroyList(__func__, &aclScalarList::scalars, array);
}

aclnnStatus aclGetViewShape(const aclTensor* tensor, int64_t** viewDims,
                            uint64_t* viewDimsNum) try {
  NPUMESH_ACL_TRY(Need(__func__, tensor));
  if (viewDims == nullptr || viewDimsNum == nullptr) return ACLNN_ERR_PARAM_NULLPTR;
  return GiveDims(tensor->dims, viewDims, viewDimsNum);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclnnStatus aclGetStorageShape(const aclTensor* tensor, int64_t** storageDims,
                               uint64_t* storageDimsNum) try {
  NPUMESH_ACL_TRY(Need(__func__, tensor));
  if (storageDims == nullptr || storageDimsNum == nullptr) return ACLNN_ERR_PARAM_NULLPTR;
  return GiveDims(tensor->storage_dims, storageDims, storageDimsNum);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclnnStatus aclGetViewStrides(const aclTensor* tensor, int64_t** stridesValue,
                              uint64_t* stridesNum) try {
  NPUMESH_ACL_TRY(Need(__func__, tensor));
  if (stridesValue == nullptr || stridesNum == nullptr) return ACLNN_ERR_PARAM_NULLPTR;
  return GiveDims(tensor->strides, stridesValue, stridesNum);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

namespace npumesh {
namespace {

// *result = what `of` says of a live object.
template <typename Object, typename T, typename Of>
aclnnStatus GetFact(const char* function, const Object* object, T* result, Of of) {
  NPUMESH_ACL_TRY(Need(function, object));
  if (result == nullptr) return Fail(ACLNN_ERR_PARAM_NULLPTR, function, "the result is null");
  *result = static_cast<T>(of(*object));
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace npumesh

using npumesh::GetFact;

aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* offset) {
  return GetFact(__func__, tensor, offset, [](const aclTensor& of) { return of.offset; });
}
aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* format) {
  return GetFact(__func__, tensor, format, [](const aclTensor& of) { return of.format; });
}
aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* dataType) {
  return GetFact(__func__, tensor, dataType, [](const aclTensor& of) { return of.dtype; });
}
aclnnStatus aclGetIntArraySize(const aclIntArray* array, uint64_t* size) {
  return GetFact(__func__, array, size, [](const aclIntArray& of) { return of.values.size(); });
}
aclnnStatus aclGetFloatArraySize(const aclFloatArray* array, uint64_t* size) {
  return GetFact(__func__, array, size, [](const aclFloatArray& of) { return of.values.size(); });
}
aclnnStatus aclGetBoolArraySize(const aclBoolArray* array, uint64_t* size) {
  return GetFact(__func__, array, size, [](const aclBoolArray& of) { return of.values.size(); });
}
aclnnStatus aclGetTensorListSize(const aclTensorList* tensorList, uint64_t* size) {
  return GetFact(__func__, tensorList, size,
                 [](const aclTensorList& of) { return of.tensors.size(); });
}
aclnnStatus aclGetScalarListSize(const aclScalarList* scalarList, uint64_t* size) {
  return GetFact(__func__, scalarList, size,
                 [](const aclScalarList& of) { return of.scalars.size(); });
}
aclnnStatus aclGetRawTensorAddr(const aclTensor* tensor, void** addr) {
  return GetFact(__func__, tensor, addr, [](const aclTensor& of) { return of.data; });
}

aclnnStatus aclInitTensor(aclTensor* tensor, const int64_t* viewDims, uint64_t viewDimsNum,
                          aclDataType dataType, const int64_t* stride, int64_t offset,
                          aclFormat format, const int64_t* storageDims, uint64_t storageDimsNum,
                          void* tensorDataAddr) try {
  NPUMESH_ACL_TRY(Need(__func__, tensor));
  const npumesh::TensorFacts given{viewDims, viewDimsNum, dataType,       stride,        offset,
                                   format,   storageDims, storageDimsNum, tensorDataAddr};
  if (npumesh::Fill(given, tensor)) return ACL_SUCCESS;
  return Fail(ACLNN_ERR_PARAM_INVALID, __func__, "dimensions, strides or the offset are negative");
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclnnStatus aclSetRawTensorAddr(aclTensor* tensor, void* addr) {
  NPUMESH_ACL_TRY(Need(__func__, tensor));
  tensor->data = addr;
  return ACL_SUCCESS;
}
