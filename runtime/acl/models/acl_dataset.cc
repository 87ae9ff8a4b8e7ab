// Datasets and configurations of models: acl_mdl.h.
#include <cstring>

#include "runtime/acl/models/model_objects.h"

using npumesh::Fail;
using npumesh::FindObject;
using npumesh::ModelObjects;

namespace {

std::shared_ptr<aclmdlDataset> DatasetOf(const aclmdlDataset* handle, const char* function) {
  return FindObject(ModelObjects::Get().datasets, handle, function, "dataset");
}

// Bytes of the value of an attribute.
size_t BytesOf(aclmdlConfigAttr attr) {
  const bool is_int = attr == ACL_MDL_PRIORITY_INT32 || attr == ACL_MDL_WITHOUT_GRAPH_INT32;
  return is_int ? sizeof(int32_t) : sizeof(size_t);
}

size_t BytesOf(aclmdlExecConfigAttr attr) {
  const bool is_int = attr == ACL_MDL_STREAM_SYNC_TIMEOUT || attr == ACL_MDL_EVENT_SYNC_TIMEOUT ||
                      attr == ACL_MDL_EXEC_PRIORITY_INT32;
  return is_int ? sizeof(int32_t) : sizeof(size_t);
}

// The number in `size` bytes; a value of 4 bytes is signed.
uint64_t NumberIn(const void* value, size_t size) {
  if (size == sizeof(int32_t)) {
    int32_t number = 0;
    std::memcpy(&number, value, sizeof number);
    return static_cast<uint64_t>(int64_t{number});
  }
  uint64_t number = 0;
  std::memcpy(&number, value, sizeof number);
  return number;
}

template <typename Attr>
aclError CheckValue(const char* function, Attr attr, Attr last, const void* value, size_t size) {
  if (attr < 0 || attr > last) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "attr {} is not known, expected 0 to {}",
                static_cast<int>(attr), static_cast<int>(last));
  }
  if (value != nullptr && size == BytesOf(attr)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, function, "the value of attr {} has {} bytes{}, expected {}",
              static_cast<int>(attr), size, value == nullptr ? " at null" : "", BytesOf(attr));
}

}  // namespace

aclmdlDataset* aclmdlCreateDataset() try {
  return static_cast<aclmdlDataset*>(
      ModelObjects::Get().datasets.Add(std::make_shared<aclmdlDataset>()));
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return nullptr;
}

aclError aclmdlDestroyDataset(const aclmdlDataset* dataset) try {
  const auto found = DatasetOf(dataset, __func__);
  if (found == nullptr) return ACL_ERROR_INVALID_PARAM;
  for (const auto& [position, tensor] : found->described) {
    static_cast<void>(ModelObjects::Get().tensors.Take(tensor.get()));
  }
  static_cast<void>(ModelObjects::Get().datasets.Take(dataset));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlAddDatasetBuffer(aclmdlDataset* dataset, aclDataBuffer* dataBuffer) try {
  const auto found = DatasetOf(dataset, __func__);
  if (found == nullptr) return ACL_ERROR_INVALID_PARAM;
  if (FindObject(ModelObjects::Get().buffers, dataBuffer, __func__, "data buffer") == nullptr) {
    return ACL_ERROR_INVALID_PARAM;
  }
  found->buffers.push_back(dataBuffer);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

size_t aclmdlGetDatasetNumBuffers(const aclmdlDataset* dataset) try {
  const auto found = DatasetOf(dataset, __func__);
  return found == nullptr ? 0 : found->buffers.size();
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return 0;
}

aclDataBuffer* aclmdlGetDatasetBuffer(const aclmdlDataset* dataset, size_t index) try {
  const auto found = DatasetOf(dataset, __func__);
  if (found == nullptr) return nullptr;
  if (index < found->buffers.size()) return found->buffers[index];
  static_cast<void>(Fail(ACL_ERROR_INVALID_PARAM, __func__, "index is {}, the dataset has {}",
                         index, found->buffers.size()));
  return nullptr;
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return nullptr;
}

aclError aclmdlSetDatasetTensorDesc(aclmdlDataset* dataset, aclTensorDesc* tensorDesc,
                                    size_t index) try {
  const auto found = DatasetOf(dataset, __func__);
  if (found == nullptr) return ACL_ERROR_INVALID_PARAM;
  NPUMESH_ACL_EXPECT(index < found->buffers.size(), "index is {}, the dataset has {} buffers",
                     index, found->buffers.size());
  std::shared_ptr<aclTensorDesc> copy;
  if (tensorDesc != nullptr) {
    const auto tensor =
        FindObject(ModelObjects::Get().tensors, tensorDesc, __func__, "tensor description");
    if (tensor == nullptr) return ACL_ERROR_INVALID_PARAM;
    copy = std::make_shared<aclTensorDesc>(*tensor);
    ModelObjects::Get().tensors.Add(copy);
  }
  if (const auto before = found->described.find(index); before != found->described.end()) {
    static_cast<void>(ModelObjects::Get().tensors.Take(before->second.get()));
    found->described.erase(before);
  }
  if (copy != nullptr) found->described[index] = std::move(copy);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclTensorDesc* aclmdlGetDatasetTensorDesc(const aclmdlDataset* dataset, size_t index) try {
  const auto found = DatasetOf(dataset, __func__);
  if (found == nullptr) return nullptr;
  const auto tensor = found->described.find(index);
  return tensor == found->described.end() ? nullptr : tensor->second.get();
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return nullptr;
}

aclmdlConfigHandle* aclmdlCreateConfigHandle() try {
  return static_cast<aclmdlConfigHandle*>(
      ModelObjects::Get().configs.Add(std::make_shared<aclmdlConfigHandle>()));
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return nullptr;
}

aclError aclmdlDestroyConfigHandle(aclmdlConfigHandle* handle) try {
  const auto& configs = ModelObjects::Get().configs;
  if (FindObject(configs, handle, __func__, "configuration of a load") == nullptr) {
    return ACL_ERROR_INVALID_PARAM;
  }
  static_cast<void>(ModelObjects::Get().configs.Take(handle));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlSetConfigOpt(aclmdlConfigHandle* handle, aclmdlConfigAttr attr,
                            const void* attrValue, size_t valueSize) try {
  const auto config =
      FindObject(ModelObjects::Get().configs, handle, __func__, "configuration of a load");
  if (config == nullptr) return ACL_ERROR_INVALID_PARAM;
  NPUMESH_ACL_TRY(CheckValue(__func__, attr, ACL_NPU_PERF_MODE, attrValue, valueSize));
  const uint64_t number = NumberIn(attrValue, valueSize);
  if (attr == ACL_MDL_PATH_PTR || attr == ACL_MDL_WEIGHT_PATH_PTR) {
    const auto* path = reinterpret_cast<const char*>(number);
    NPUMESH_ACL_EXPECT(path != nullptr, "the path is null");
    config->paths[attr] = path;
  } else {
    config->numbers[attr] = number;
  }
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlSetExternalWeightAddress(aclmdlConfigHandle* handle, const char* weightFileName,
                                        void* devPtr, size_t size) try {
  if (FindObject(ModelObjects::Get().configs, handle, __func__, "configuration of a load") ==
      nullptr) {
    return ACL_ERROR_INVALID_PARAM;
  }
  NPUMESH_ACL_EXPECT(weightFileName != nullptr && devPtr != nullptr && size > 0,
                     "expected the name of a file and its memory, seen {} bytes", size);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclmdlExecConfigHandle* aclmdlCreateExecConfigHandle() try {
  return static_cast<aclmdlExecConfigHandle*>(
      ModelObjects::Get().exec_configs.Add(std::make_shared<aclmdlExecConfigHandle>()));
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return nullptr;
}

aclError aclmdlDestroyExecConfigHandle(const aclmdlExecConfigHandle* handle) try {
  const auto& configs = ModelObjects::Get().exec_configs;
  if (FindObject(configs, handle, __func__, "configuration of an execution") == nullptr) {
    return ACL_ERROR_INVALID_PARAM;
  }
  static_cast<void>(ModelObjects::Get().exec_configs.Take(handle));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlSetExecConfigOpt(aclmdlExecConfigHandle* handle, aclmdlExecConfigAttr attr,
                                const void* attrValue, size_t valueSize) try {
  const auto config = FindObject(ModelObjects::Get().exec_configs, handle, __func__,
                                 "configuration of an execution");
  if (config == nullptr) return ACL_ERROR_INVALID_PARAM;
  NPUMESH_ACL_TRY(CheckValue(__func__, attr, ACL_MDL_NPU_PERF_MODE, attrValue, valueSize));
  config->numbers[attr] = NumberIn(attrValue, valueSize);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}
