// Bundles of models: a part of acl_mdl.h. A file of one model is a bundle of one.
#include <algorithm>
#include <map>
#include <mutex>

#include "runtime/acl/models/model_objects.h"
#include "runtime/acl/process/api_span.h"

using npumesh::AclModelEntry;
using npumesh::ApiSpan;
using npumesh::Fail;
using npumesh::FindModel;
using npumesh::FindObject;
using npumesh::LoadedModels;
using npumesh::LoadModelBytes;
using npumesh::ModelAreas;
using npumesh::ModelBytes;
using npumesh::ModelObjects;

namespace {

struct Bundle {
  ModelBytes bytes;
  size_t count = 1;              // of models in it
  std::vector<uint32_t> models;  // that are loaded
};

// All bundles of the process.
class Bundles {
 public:
  static Bundles& Get() {
    static Bundles* const bundles = new Bundles;
    return *bundles;
  }

  uint32_t Add(Bundle bundle) {
    const std::lock_guard lock(mutex_);
    bundles_.emplace(++last_id_, std::move(bundle));
    return last_id_;
  }

  // ACL_ERROR_INVALID_PARAM when there is no such bundle.
  aclError Find(const char* function, uint32_t id, Bundle* bundle) const {
    const std::lock_guard lock(mutex_);
    const auto found = bundles_.find(id);
    if (found == bundles_.end()) {
      return Fail(ACL_ERROR_INVALID_PARAM, function, "there is no bundle {}, or it was unloaded",
                  id);
    }
    *bundle = found->second;
    return ACL_SUCCESS;
  }

  void NoteLoaded(uint32_t id, uint32_t model) {
    const std::lock_guard lock(mutex_);
    const auto found = bundles_.find(id);
    if (found != bundles_.end()) found->second.models.push_back(model);
  }

  // False when the model is not one of the bundle.
  bool NoteUnloaded(uint32_t id, uint32_t model) {
    const std::lock_guard lock(mutex_);
    const auto found = bundles_.find(id);
    return found != bundles_.end() && std::erase(found->second.models, model) > 0;
  }

  void Remove(uint32_t id) {
    const std::lock_guard lock(mutex_);
    bundles_.erase(id);
  }

 private:
  mutable std::mutex mutex_;
  uint32_t last_id_ = 0;
  std::map<uint32_t, Bundle> bundles_;
};

// What each model says of itself.
aclError DescribeBundle(const char* function, ModelBytes bytes,
                        std::vector<npumesh::ModelFacts>* models) {
  size_t count = 0;
  NPUMESH_ACL_TRY(npumesh::CountModelBytes(function, bytes, &count));
  for (size_t index = 0; index < count; ++index) {
    bytes.index = index;
    NPUMESH_ACL_TRY(npumesh::DescribeModelBytes(function, bytes, &models->emplace_back()));
  }
  return ACL_SUCCESS;
}

aclError MakeBundle(const char* function, ModelBytes bytes, uint32_t* id) {
  if (id == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "bundleId is null");
  const bool given = bytes.data != nullptr ? bytes.size > 0 : !bytes.path.empty();
  if (!given)
    return Fail(ACL_ERROR_INVALID_PARAM, function, "expected a file, or bytes and their size");
  std::vector<npumesh::ModelFacts> models;
  NPUMESH_ACL_TRY(DescribeBundle(function, bytes, &models));
  *id = Bundles::Get().Add({std::move(bytes), models.size(), {}});
  return ACL_SUCCESS;
}

ModelBytes FileBytes(const char* path) {
  return {path == nullptr ? "" : path, nullptr, 0};
}

ModelBytes MemoryBytes(const void* model, size_t size) {
  return {"model in memory", model, model == nullptr ? 0 : size};
}

aclError LoadOf(const char* function, uint32_t bundle_id, size_t index, uint32_t* model,
                const ModelAreas& areas = {}) {
  Bundle bundle;
  NPUMESH_ACL_TRY(Bundles::Get().Find(function, bundle_id, &bundle));
  if (model == nullptr || index >= bundle.count) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "index is {} of {} models{}", index,
                bundle.count, model == nullptr ? ", and modelId is null" : "");
  }
  bundle.bytes.index = index;
  NPUMESH_ACL_TRY(LoadModelBytes(function, bundle.bytes, model, areas));
  Bundles::Get().NoteLoaded(bundle_id, *model);
  return ACL_SUCCESS;
}

aclError Unload(const char* function, uint32_t id) {
  Bundle bundle;
  NPUMESH_ACL_TRY(Bundles::Get().Find(function, id, &bundle));
  for (const uint32_t model : bundle.models) static_cast<void>(LoadedModels::Get().Take(model));
  Bundles::Get().Remove(id);
  return ACL_SUCCESS;
}

// A bundle with all its models.
aclError LoadWhole(const char* function, ModelBytes bytes, uint32_t* id) {
  NPUMESH_ACL_TRY(MakeBundle(function, std::move(bytes), id));
  Bundle bundle;
  NPUMESH_ACL_TRY(Bundles::Get().Find(function, *id, &bundle));
  for (size_t index = 0; index < bundle.count; ++index) {
    uint32_t model = 0;
    const aclError loaded = LoadOf(function, *id, index, &model);
    if (loaded == ACL_SUCCESS) continue;
    static_cast<void>(Unload(function, *id));
    return loaded;
  }
  return ACL_SUCCESS;
}

std::shared_ptr<aclmdlBundleQueryInfo> QueryOf(const char* function,
                                               const aclmdlBundleQueryInfo* handle) {
  return FindObject(ModelObjects::Get().bundle_queries, handle, function, "query of a bundle");
}

// One that has read a bundle.
aclError NeedAnswered(const char* function, const aclmdlBundleQueryInfo* handle,
                      std::shared_ptr<aclmdlBundleQueryInfo>* query) {
  *query = QueryOf(function, handle);
  if (*query == nullptr) return ACL_ERROR_INVALID_PARAM;
  if (!(*query)->models.empty()) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, function,
              "the query has read no bundle; aclmdlBundleQueryInfoFromFile does");
}

aclError AskBytes(const char* function, const ModelBytes& bytes, aclmdlBundleQueryInfo* handle) {
  const auto query = QueryOf(function, handle);
  if (query == nullptr) return ACL_ERROR_INVALID_PARAM;
  if (bytes.data == nullptr && bytes.path.empty()) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "fileName is empty");
  }
  std::vector<npumesh::ModelFacts> models;
  NPUMESH_ACL_TRY(DescribeBundle(function, bytes, &models));
  query->models = std::move(models);
  return ACL_SUCCESS;
}

}  // namespace

aclError aclmdlBundleLoadFromFile(const char* modelPath, uint32_t* bundleId) try {
  const ApiSpan span(__func__);
  return LoadWhole(__func__, FileBytes(modelPath), bundleId);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlBundleLoadFromMem(const void* model, size_t modelSize, uint32_t* bundleId) try {
  const ApiSpan span(__func__);
  NPUMESH_ACL_EXPECT(model != nullptr, "model is null");
  return LoadWhole(__func__, MemoryBytes(model, modelSize), bundleId);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlBundleInitFromFile(const char* modelPath, void*, size_t, uint32_t* bundleId) try {
  return MakeBundle(__func__, FileBytes(modelPath), bundleId);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlBundleInitFromMem(const void* model, size_t modelSize, void*, size_t,
                                 uint32_t* bundleId) try {
  NPUMESH_ACL_EXPECT(model != nullptr, "model is null");
  return MakeBundle(__func__, MemoryBytes(model, modelSize), bundleId);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlBundleUnload(uint32_t bundleId) try {
  const ApiSpan span(__func__);
  return Unload(__func__, bundleId);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlBundleGetModelNum(uint32_t bundleId, size_t* modelNum) try {
  NPUMESH_ACL_EXPECT(modelNum != nullptr, "modelNum is null");
  Bundle bundle;
  NPUMESH_ACL_TRY(Bundles::Get().Find(__func__, bundleId, &bundle));
  *modelNum = bundle.count;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlBundleGetModelId(uint32_t bundleId, size_t index, uint32_t* modelId) try {
  NPUMESH_ACL_EXPECT(modelId != nullptr, "modelId is null");
  Bundle bundle;
  NPUMESH_ACL_TRY(Bundles::Get().Find(__func__, bundleId, &bundle));
  NPUMESH_ACL_EXPECT(index < bundle.models.size(), "index is {}, the bundle has {} loaded models",
                     index, bundle.models.size());
  *modelId = bundle.models[index];
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlBundleLoadModel(uint32_t bundleId, size_t index, uint32_t* modelId) try {
  const ApiSpan span(__func__);
  return LoadOf(__func__, bundleId, index, modelId);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlBundleLoadModelWithMem(uint32_t bundleId, size_t index, void* workPtr,
                                      size_t workSize, void* weightPtr, size_t weightSize,
                                      uint32_t* modelId) try {
  const ApiSpan span(__func__);
  return LoadOf(__func__, bundleId, index, modelId, {workPtr, workSize, weightPtr, weightSize});
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlBundleLoadModelWithConfig(uint32_t bundleId, size_t index,
                                         aclmdlConfigHandle* handle, uint32_t* modelId) try {
  const ApiSpan span(__func__);
  const auto config =
      FindObject(ModelObjects::Get().configs, handle, __func__, "configuration of a load");
  if (config == nullptr) return ACL_ERROR_INVALID_PARAM;
  NPUMESH_ACL_TRY(LoadOf(__func__, bundleId, index, modelId));
  std::shared_ptr<AclModelEntry> entry;
  NPUMESH_ACL_TRY(FindModel(__func__, *modelId, &entry));
  const auto priority = config->numbers.find(ACL_MDL_PRIORITY_INT32);
  if (priority != config->numbers.end()) {
    entry->priority = static_cast<uint32_t>(priority->second);
  }
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlBundleUnloadModel(uint32_t bundleId, uint32_t modelId) try {
  const ApiSpan span(__func__);
  NPUMESH_ACL_EXPECT(Bundles::Get().NoteUnloaded(bundleId, modelId),
                     "model {} is not loaded from bundle {}", modelId, bundleId);
  static_cast<void>(LoadedModels::Get().Take(modelId));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclmdlBundleQueryInfo* aclmdlBundleCreateQueryInfo() try {
  return static_cast<aclmdlBundleQueryInfo*>(
      ModelObjects::Get().bundle_queries.Add(std::make_shared<aclmdlBundleQueryInfo>()));
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return nullptr;
}

aclError aclmdlBundleDestroyQueryInfo(aclmdlBundleQueryInfo* queryInfo) try {
  if (QueryOf(__func__, queryInfo) == nullptr) return ACL_ERROR_INVALID_PARAM;
  static_cast<void>(ModelObjects::Get().bundle_queries.Take(queryInfo));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlBundleQueryInfoFromFile(const char* fileName, aclmdlBundleQueryInfo* queryInfo) try {
  return AskBytes(__func__, FileBytes(fileName), queryInfo);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlBundleQueryInfoFromMem(const void* model, size_t modelSize,
                                      aclmdlBundleQueryInfo* queryInfo) try {
  NPUMESH_ACL_EXPECT(model != nullptr && modelSize > 0, "expected a model and its size, seen {}",
                     modelSize);
  return AskBytes(__func__, MemoryBytes(model, modelSize), queryInfo);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlBundleGetQueryModelNum(const aclmdlBundleQueryInfo* queryInfo,
                                      size_t* modelNum) try {
  NPUMESH_ACL_EXPECT(modelNum != nullptr, "modelNum is null");
  std::shared_ptr<aclmdlBundleQueryInfo> query;
  NPUMESH_ACL_TRY(NeedAnswered(__func__, queryInfo, &query));
  *modelNum = query->models.size();
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlBundleGetVarWeightSize(const aclmdlBundleQueryInfo* queryInfo,
                                      size_t* variableWeightSize) try {
  NPUMESH_ACL_EXPECT(variableWeightSize != nullptr, "variableWeightSize is null");
  std::shared_ptr<aclmdlBundleQueryInfo> query;
  NPUMESH_ACL_TRY(NeedAnswered(__func__, queryInfo, &query));
  *variableWeightSize = 0;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlBundleGetSize(const aclmdlBundleQueryInfo* queryInfo, size_t index, size_t* workSize,
                             size_t* constWeightSize) try {
  NPUMESH_ACL_EXPECT(workSize != nullptr && constWeightSize != nullptr,
                     "a pointer for the result is null");
  std::shared_ptr<aclmdlBundleQueryInfo> query;
  NPUMESH_ACL_TRY(NeedAnswered(__func__, queryInfo, &query));
  NPUMESH_ACL_EXPECT(index < query->models.size(), "index is {} of {} models", index,
                     query->models.size());
  *workSize = query->models[index].work_bytes;
  *constWeightSize = query->models[index].weight_bytes;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}
