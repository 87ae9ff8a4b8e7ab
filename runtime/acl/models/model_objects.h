// What stands behind the handles of acl_base_mdl.h, acl_mdl.h and acl_op.h, and the tables that
// know them.
//
// Thread-safety: the tables may be used from any thread; an object by one thread at a time.
#ifndef NPUMESH_RUNTIME_ACL_MODELS_MODEL_OBJECTS_H_
#define NPUMESH_RUNTIME_ACL_MODELS_MODEL_OBJECTS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "acl/acl_mdl.h"
#include "runtime/acl/models/model_machine.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/handle_table.h"
#include "runtime/acl/process/leaks.h"

struct aclDataBuffer {
  void* data = nullptr;
  size_t size = 0;
};

struct aclTensorDesc {
  aclDataType dtype = ACL_DT_UNDEFINED;
  aclFormat format = ACL_FORMAT_ND;
  std::vector<int64_t> dims;
  std::vector<std::pair<int64_t, int64_t>> shape_range;
  std::vector<std::pair<int64_t, int64_t>> value_range;
  aclFormat storage_format = ACL_FORMAT_UNDEFINED;
  std::vector<int64_t> storage_dims;
  aclFormat origin_format = ACL_FORMAT_UNDEFINED;
  std::vector<int64_t> origin_dims;
  std::string name;
  std::string dynamic_input;
  bool constant = false;
  std::vector<std::byte> value;  // when constant
  aclMemType place = ACL_MEMTYPE_DEVICE;
};

struct aclmdlDataset {
  std::vector<aclDataBuffer*> buffers;                         // not owned
  std::map<size_t, std::shared_ptr<aclTensorDesc>> described;  // by position
};

struct aclmdlConfigHandle {
  std::map<aclmdlConfigAttr, uint64_t> numbers;  // also addresses
  std::map<aclmdlConfigAttr, std::string> paths;
};

struct aclmdlBundleQueryInfo {
  std::vector<npumesh::ModelFacts> models;  // empty before a file or bytes were read
};

struct aclmdlExecConfigHandle {
  std::map<aclmdlExecConfigAttr, uint64_t> numbers;
};

struct aclopAttr {
  npumesh::CallAttrs values;
};

struct aclopHandle {
  npumesh::OperatorCall call;
  std::shared_ptr<npumesh::MadeOperator> made;
};

struct aclGraphDumpOption {};

namespace npumesh {

// A model under its number.
struct AclModelEntry {
  uint32_t id = 0;
  AclDevice* device = nullptr;
  std::unique_ptr<LoadedModel> model;
  const Origin made = Origin::Here();
  std::atomic<size_t> gear{0};  // that was set last
  std::atomic<uint32_t> priority{0};
};

}  // namespace npumesh

struct aclmdlDesc {
  npumesh::ModelFacts facts;
  std::weak_ptr<npumesh::AclModelEntry> entry;  // expired: of a file, or of a model that ended
};

namespace npumesh {

// All live objects of the process. Made by the first call, never destroyed.
struct ModelObjects {
  static ModelObjects& Get();

  HandleTable<aclDataBuffer> buffers;
  HandleTable<aclTensorDesc> tensors;
  HandleTable<aclmdlDataset> datasets;
  HandleTable<aclmdlDesc> descriptions;
  HandleTable<aclmdlConfigHandle> configs;
  HandleTable<aclmdlExecConfigHandle> exec_configs;
  HandleTable<aclmdlBundleQueryInfo> bundle_queries;
  HandleTable<aclopAttr> op_attrs;
  HandleTable<aclopHandle> op_handles;
  HandleTable<aclGraphDumpOption> graph_dump_options;
};

// The models of the process.
class LoadedModels {
 public:
  static LoadedModels& Get();
  // Numbers the model.
  uint32_t Add(AclDevice& device, std::unique_ptr<LoadedModel> model);
  // Null for a number that no model has.
  std::shared_ptr<AclModelEntry> Find(uint32_t id) const;
  // Find, and the number is free from now on.
  std::shared_ptr<AclModelEntry> Take(uint32_t id);

 private:
  mutable std::mutex mutex_;
  uint32_t last_id_ = 0;
  bool ends_with_process_ = false;
  std::map<uint32_t, std::shared_ptr<AclModelEntry>> models_;
};

// The model with this number; ACL_ERROR_GE_EXEC_MODEL_ID_INVALID when there is not one.
aclError FindModel(const char* function, uint32_t id, std::shared_ptr<AclModelEntry>* entry);

// aclmdlLoad* and their relatives, whatever the model comes from; in acl_model.cc. An area that is
// too small, or no device memory, is an error before anything is loaded.
aclError LoadModelBytes(const char* function, const ModelBytes& bytes, uint32_t* id,
                        const ModelAreas& areas = {});
aclError DescribeModelBytes(const char* function, const ModelBytes& bytes, ModelFacts* facts);
// The number of models in a bundle, else 1.
aclError CountModelBytes(const char* function, const ModelBytes& bytes, size_t* count);

// The live object behind `handle`; otherwise null, after ACL_ERROR_INVALID_PARAM was recorded.
template <typename T>
std::shared_ptr<T> FindObject(const HandleTable<T>& table, const T* handle, const char* function,
                              const char* what) {
  std::shared_ptr<T> object = handle == nullptr ? nullptr : table.Find(handle);
  if (object == nullptr) {
    static_cast<void>(Fail(ACL_ERROR_INVALID_PARAM, function, "{} is no {}{}", fmt::ptr(handle),
                           what, handle == nullptr ? "" : ", or was destroyed"));
  }
  return object;
}

// True for a tensor's dimensions: none below -1 but a single -2, and a number of elements that
// there can be.
bool AreDims(const std::vector<int64_t>& dims);
// Bytes of a tensor; 0 where dimensions are open or the type has no width.
uint64_t BytesOfTensor(aclDataType dtype, const std::vector<int64_t>& dims);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_MODELS_MODEL_OBJECTS_H_
