// Captures: which captures of streams go on, and which calls they forbid meanwhile.
//
// Thread-safety: all members may be called from any thread.
#ifndef NPUMESH_RUNTIME_ACL_CAPTURES_H_
#define NPUMESH_RUNTIME_ACL_CAPTURES_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "acl/acl_rt.h"
#include "runtime/acl/handle_table.h"
#include "runtime/acl/objects.h"

namespace npumesh {

// What an aclmdlRI stands for.
struct AclModel {
  AclModel(std::shared_ptr<Recording> recording, const AclStream* origin, aclmdlRICaptureMode mode)
      : recording(std::move(recording)),
        origin(origin),
        mode(mode),
        thread(std::this_thread::get_id()) {}

  const std::shared_ptr<Recording> recording;
  const AclStream* const origin;  // to be compared only
  const aclmdlRICaptureMode mode;
  const std::thread::id thread;  // that has begun the capture
};

class Captures {
 public:
  // All models, those that are being captured included.
  HandleTable<AclModel> models;

  void Begin(const std::shared_ptr<AclModel>& model);
  void End(const std::shared_ptr<AclModel>& model);
  // Ends every capture and drops all models.
  void Clear();
  // The model that takes down what `recording` does; null: none.
  std::shared_ptr<AclModel> ModelOf(const std::shared_ptr<Recording>& recording) const;
  // The same as ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, for calls that do not only queue work: a
  // capture of this thread forbids them unless it is relaxed, a global one of any thread as well.
  // What the thread has chosen with ExchangeMode loosens that.
  aclError Permit(std::string_view function) const;
  // Sets the calling thread's mode; returns the one before.
  static aclmdlRICaptureMode ExchangeMode(aclmdlRICaptureMode mode);

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<AclModel>> active_;
  std::atomic<int> active_count_{0};
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_CAPTURES_H_
