// Captures: which captures of streams go on, and which calls they forbid meanwhile.
//
// Thread-safety: all members may be called from any thread.
#ifndef NPUMESH_RUNTIME_ACL_STREAMS_CAPTURES_H_
#define NPUMESH_RUNTIME_ACL_STREAMS_CAPTURES_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "acl/acl_rt.h"
#include "runtime/acl/process/objects.h"
#include "runtime/acl/run_models/run_models.h"

namespace npumesh {

struct AclCapture {
  std::shared_ptr<AclModel> model;  // that takes the tasks down
  std::shared_ptr<Recording> recording;
  const AclStream* origin = nullptr;  // to be compared only
  aclmdlRICaptureMode mode = ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;
  std::thread::id thread = std::this_thread::get_id();  // that has begun it
  bool invalid = false;  // a call has spoilt it: its end gives no model
};

class Captures {
 public:
  void Begin(AclCapture capture);
  // Its streams queue their tasks again.
  void End(const AclCapture& capture);
  // The capture that `recording` belongs to is invalid from now on. Nothing if none goes on.
  void Invalidate(const std::shared_ptr<Recording>& recording);
  // Ends every capture.
  void Clear();
  // The capture that `recording` belongs to; nothing: none that goes on.
  std::optional<AclCapture> Find(const std::shared_ptr<Recording>& recording) const;
  // The same as ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, for calls that do not only queue work: a
  // capture of this thread forbids them unless it is relaxed, a global one of any thread as well.
  // What the thread has chosen with ExchangeMode loosens that.
  aclError Permit(std::string_view function) const;
  // Sets the calling thread's mode; returns the one before.
  static aclmdlRICaptureMode ExchangeMode(aclmdlRICaptureMode mode);

 private:
  mutable std::mutex mutex_;
  std::vector<AclCapture> active_;
  std::atomic<int> active_count_{0};
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_STREAMS_CAPTURES_H_
