#include "runtime/acl/models/model_objects.h"

#include <algorithm>

#include "runtime/base/data_type.h"

namespace npumesh {

namespace {

// With a guard.
void TellUnloaded(const std::map<uint32_t, std::shared_ptr<AclModelEntry>>& models) {
  if (!Origin::guard()) return;
  std::vector<Leak> lost;
  for (const auto& [id, entry] : models) {
    lost.push_back({fmt::format("model {} (\"{}\")", id, entry->model->facts().name), entry->made});
  }
  TellLeaks("aclFinalize", "models", lost);
}

}  // namespace

ModelObjects& ModelObjects::Get() {
  static ModelObjects* const objects = new ModelObjects;
  return *objects;
}

LoadedModels& LoadedModels::Get() {
  static LoadedModels* const models = new LoadedModels;
  return *models;
}

uint32_t LoadedModels::Add(AclDevice& device, std::unique_ptr<LoadedModel> model) {
  auto entry = std::make_shared<AclModelEntry>();
  entry->device = &device;
  entry->model = std::move(model);
  const std::lock_guard lock(mutex_);
  if (!ends_with_process_) {
    AtFinalize([this] {
      std::map<uint32_t, std::shared_ptr<AclModelEntry>> ending;
      const std::lock_guard end_lock(mutex_);
      ending.swap(models_);
      TellUnloaded(ending);
      ends_with_process_ = false;
    });
    ends_with_process_ = true;
  }
  entry->id = ++last_id_;
  models_.emplace(entry->id, entry);
  return entry->id;
}

std::shared_ptr<AclModelEntry> LoadedModels::Find(uint32_t id) const {
  const std::lock_guard lock(mutex_);
  const auto found = models_.find(id);
  return found == models_.end() ? nullptr : found->second;
}

std::shared_ptr<AclModelEntry> LoadedModels::Take(uint32_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = models_.find(id);
  if (found == models_.end()) return nullptr;
  std::shared_ptr<AclModelEntry> entry = std::move(found->second);
  models_.erase(found);
  return entry;
}

aclError FindModel(const char* function, uint32_t id, std::shared_ptr<AclModelEntry>* entry) {
  *entry = LoadedModels::Get().Find(id);
  if (*entry != nullptr) return ACL_SUCCESS;
  return Fail(static_cast<aclError>(ACL_ERROR_GE_EXEC_MODEL_ID_INVALID), function,
              "there is no model {}, or it was unloaded", id);
}

bool AreDims(const std::vector<int64_t>& dims) {
  if (dims.size() == 1 && dims[0] == -2) return true;
  uint64_t elements = 1;
  for (const int64_t dim : dims) {
    if (dim < -1) return false;
    const bool overflows = __builtin_mul_overflow(
        elements, static_cast<uint64_t>(std::max<int64_t>(dim, 1)), &elements);
    if (overflows || elements > (uint64_t{1} << 58)) return false;
  }
  return true;
}

uint64_t BytesOfTensor(aclDataType dtype, const std::vector<int64_t>& dims) {
  const auto known = DataTypeFromRuntime(dtype);
  if (!known || BitsOf(*known) == 0 || !AreDims(dims)) return 0;
  uint64_t elements = 1;
  for (const int64_t dim : dims) {
    if (dim < 0) return 0;
    elements *= static_cast<uint64_t>(dim);
  }
  return npumesh::BytesOf(*known, elements).value_or(0);
}

}  // namespace npumesh
