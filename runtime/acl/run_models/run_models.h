// Models that run on streams: what stands behind an aclmdlRI, and behind all that belongs to one.
//
// Thread-safety: all members may be called from any thread.
#ifndef NPUMESH_RUNTIME_ACL_RUN_MODELS_RUN_MODELS_H_
#define NPUMESH_RUNTIME_ACL_RUN_MODELS_RUN_MODELS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "acl/acl_rt.h"
#include "runtime/acl/process/handle_table.h"
#include "runtime/acl/process/objects.h"
#include "runtime/device/recording.h"

namespace npumesh {

// What a task is called and what clients can ask of it. One that has no parameters is DEFAULT.
struct AclTaskNote : TaskNote {
  // Parameters as others; empty: they cannot be changed.
  using Remake = std::function<aclError(std::string_view function, const aclmdlRITaskParams&,
                                        Recording::Change*)>;
  AclTaskNote(std::string name, const aclmdlRITaskParams& params, Remake remake = nullptr,
              uint32_t kept_cores = 0)
      : name(std::move(name)), params(params), remake(std::move(remake)), kept_cores(kept_cores) {}

  const std::string name;
  const aclmdlRITaskParams params;
  const Remake remake;
  const uint32_t kept_cores;  // vector cores that a collective keeps until the other ranks come
};

// Eight bytes of device memory that decide which branch runs.
class AclCondition {
 public:
  // `word`: of a context, which frees it when it ends first.
  AclCondition(const AclContext& context, uint64_t* word);
  ~AclCondition();
  AclCondition(const AclCondition&) = delete;
  AclCondition& operator=(const AclCondition&) = delete;

  uint64_t* word() const { return word_; }
  uint64_t value() const { return std::atomic_ref(*word_).load(std::memory_order_acquire); }

 private:
  const std::weak_ptr<AclStream> lives_as_;  // ends with the context
  uint64_t* const word_;
};

// Tasks of a recording that are exchanged together.
struct AclTaskGroup {
  std::shared_ptr<Recording> recording;
  std::vector<size_t> tasks;
};

struct AclModel {
  enum class Origin {
    kCaptured,
    kBuilt,
    kBranch,  // of a conditional task: empty until it is captured, and ends with its root
  };
  AclModel(Origin origin, uint32_t id) : origin(origin), id(id) {}

  const Origin origin;
  const uint32_t id;

  // Null: a branch that was not captured.
  std::shared_ptr<Recording> recording() const {
    const std::lock_guard lock(mutex);
    return tasks;
  }

  mutable std::mutex mutex;  // guards what follows
  std::shared_ptr<Recording> tasks;
  std::string name;
  std::vector<std::pair<aclrtCallback, void*>> at_destroy;
  std::vector<std::shared_ptr<AclModel>> branches;
  std::vector<const void*> groups;      // handles
  std::vector<const void*> conditions;  // the same
  std::vector<aclrtStream> streams;     // of a built one, those that are bound
  bool end_marked = false;              // the same
  std::vector<aclrtStream> views;       // handles of its streams, once asked for
  std::map<size_t, aclmdlRITask> task_handles;
  Recording::Changes changes;  // until aclmdlRIUpdate
};

// A stream of a model, for those who list its tasks.
struct AclModelStream {
  std::shared_ptr<AclModel> model;
  size_t member = 0;
};

struct AclModelTask {
  std::shared_ptr<AclModel> model;
  size_t index = 0;
};

// A place in a built model that tasks can jump to.
struct AclLabel {
  std::mutex mutex;  // guards what follows
  std::weak_ptr<Recording> recording;
  RecordedPlace place;
};

struct AclLabelList {
  std::vector<std::shared_ptr<AclLabel>> labels;
};

// What a stream of the client takes updates for, between TaskUpdateBegin and TaskUpdateEnd.
struct AclTaskUpdate {
  std::shared_ptr<AclTaskGroup> group;
  std::shared_ptr<Recording> by;
};

class RunModels {
 public:
  HandleTable<AclModel> models;  // all, those that are being captured or built included
  HandleTable<AclTaskGroup> groups;
  HandleTable<AclCondition> conditions;
  HandleTable<AclModelStream> streams;
  HandleTable<AclModelTask> tasks;
  HandleTable<AclLabel> labels;
  HandleTable<AclLabelList> label_lists;

  std::shared_ptr<AclModel> Make(AclModel::Origin origin, std::shared_ptr<Recording> recording);
  // The client's handles of the model, of its branches and of what belongs to them die.
  void Forget(const std::shared_ptr<AclModel>& model);
  void Clear();

  // The model that `stream` is bound to; null: none.
  std::shared_ptr<AclModel> BoundTo(aclrtStream stream) const;
  void Bind(aclrtStream stream, const std::shared_ptr<AclModel>& model);
  void Unbind(aclrtStream stream);

  // False when the stream updates already.
  bool BeginUpdate(aclrtStream stream, AclTaskUpdate update);
  std::optional<AclTaskUpdate> EndUpdate(aclrtStream stream);

 private:
  std::atomic<uint32_t> next_id_{0};
  mutable std::mutex mutex_;  // guards what follows
  std::map<aclrtStream, std::shared_ptr<AclModel>> bound_;
  std::map<aclrtStream, AclTaskUpdate> updates_;
};

// A model that can run, or be asked for what was taken down. Errors: ACL_ERROR_INVALID_PARAM for
// null, ACL_ERROR_RT_PARAM_INVALID for no model, ACL_ERROR_RT_MODEL_CAPTURED while it is captured
// or built.
aclError NeedModel(const char* function, aclmdlRI handle, std::shared_ptr<AclModel>* model);
// The same, also while it is captured or built.
aclError NeedAnyModel(const char* function, aclmdlRI handle, std::shared_ptr<AclModel>* model);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_RUN_MODELS_RUN_MODELS_H_
