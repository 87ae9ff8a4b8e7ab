// Comm: what an HcclComm handle stands for, and the table of all of them.
//
// Thread-safety: all members may be called from any thread. Operators of one Comm run one after the
// other, whatever streams they came from.
#ifndef NPUMESH_COLLECTIVES_HCCL_COMM_COMM_H_
#define NPUMESH_COLLECTIVES_HCCL_COMM_COMM_H_

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/communicator.h"
#include "collectives/hccl/comm/config.h"
#include "collectives/hccl/comm/verdict.h"
#include "hccl/hccl_comm.h"
#include "runtime/acl/process/device_context.h"
#include "runtime/base/process/short_lock.h"

namespace npumesh {

class Comm {
 public:
  enum class Origin { kRootInfo, kClusterInfo, kSubGroup };

  Comm(AclDevice* device, std::unique_ptr<Communicator> communicator, CommConfig config,
       Origin origin)
      : device_(device),
        communicator_(std::move(communicator)),
        config_(std::move(config)),
        origin_(origin) {}

  HcclComm handle() { return this; }
  AclDevice* device() const { return device_; }
  const CommConfig& config() const { return config_; }
  Origin origin() const { return origin_; }
  const std::string& name() const { return communicator_->name(); }
  uint32_t rank() const { return static_cast<uint32_t>(communicator_->rank()); }
  uint32_t size() const { return static_cast<uint32_t>(communicator_->size()); }
  const std::vector<int>& world_ranks() const { return communicator_->world_ranks(); }
  // All in one block that operators may use.
  bool in_hbm(const void* pointer, uint64_t bytes) const {
    return device_->memory.ForCollectives(pointer, bytes);
  }

  // Runs `work`, which takes the Communicator, now. What goes wrong is kept for
  // HcclGetCommAsyncError. `call` is the operator's name for messages.
  template <typename Work>
  Status Run(std::string_view call, const Work& work) {
    const std::lock_guard lock(running_);
    Status status = work(*communicator_);
    return status.ok() ? status : Failed(call, status);
  }

  // Communicator::Close; what went wrong is kept, too.
  Status Close() {
    return Run("HcclCommDestroy", [](Communicator& group) { return group.Close(); });
  }

  // The first error of an operator that ran; HCCL_SUCCESS when there was none.
  Verdict async_error() const;

  bool suspended() const { return suspended_.load(); }
  void set_suspended(bool suspended) { suspended_.store(suspended); }

 private:
  // Keeps the first of all failures; returns `status` with the operator's name.
  [[gnu::cold]] Status Failed(std::string_view call, const Status& status);

  AclDevice* const device_;
  // Contended only when a program uses one communicator from several streams at once, which HCCL
  // does not allow.
  ShortLock running_;
  std::unique_ptr<Communicator> communicator_;  // collectives under `running_`
  const CommConfig config_;
  const Origin origin_;
  mutable std::mutex async_mutex_;
  Verdict async_error_;  // guarded by async_mutex_
  std::atomic<bool> suspended_{false};
};

// All communicators of the process, until aclFinalize.
class CommTable {
 public:
  static CommTable& OfProcess();

  // E_PARA for a name that its device uses already.
  Verdict CheckName(const AclDevice* device, const std::string& name) const;
  void Add(std::shared_ptr<Comm> comm);
  // Null for a handle that is no live communicator. Every operator asks, mostly for the one that
  // its thread asked for last: that one is found without the lock.
  std::shared_ptr<Comm> Find(HcclComm handle) const;
  // Prefers the one of the thread's device: ranks as threads use the same names.
  std::shared_ptr<Comm> FindByName(const std::string& name) const;
  // The one of this device; null without one.
  std::shared_ptr<Comm> FindByName(const AclDevice* device, const std::string& name) const;
  // The communicator of a device that was made from a rank table; null without one.
  std::shared_ptr<Comm> FindClusterComm(const AclDevice* device) const;
  void Remove(HcclComm handle);

 private:
  // What a thread has found last. A handle that is found stays live as long as the version does.
  struct Last {
    HcclComm handle = nullptr;
    std::weak_ptr<Comm> comm;
    uint64_t version = 0;
  };
  [[gnu::cold]] std::shared_ptr<Comm> FindUnderLock(HcclComm handle, Last* last) const;

  mutable ShortLock mutex_;
  std::map<HcclComm, std::shared_ptr<Comm>> comms_;
  std::atomic<uint64_t> version_{0};  // changes when a handle dies
  bool ends_with_acl_ = false;        // AtFinalize has been told
};

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_HCCL_COMM_COMM_H_
