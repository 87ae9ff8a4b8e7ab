#include "collectives/hccl/comm/comm.h"

#include <utility>

#include "runtime/base/log.h"

namespace npumesh {
namespace {

// The first communicator of a table that fits; null without one.
template <typename Table, typename Fits>
std::shared_ptr<Comm> FirstOf(const Table& comms, const Fits& fits) {
  for (const auto& [handle, comm] : comms) {
    if (fits(*comm)) return comm;
  }
  return nullptr;
}

}  // namespace

Status Comm::Failed(std::string_view call, const Status& status) {
  Status told = status.WithContext(call);
  bool first = false;
  {
    const std::lock_guard lock(async_mutex_);
    first = async_error_.ok();
    if (first) async_error_ = VerdictOf(told);
  }
  // The program that asks the stream may print no more than a number.
  if (first)
    NPUMESH_ERROR("{} (HcclResult {})", told.message(), static_cast<int>(ResultOf(status.code())));
  return told;
}

Verdict Comm::async_error() const {
  const std::lock_guard lock(async_mutex_);
  return async_error_;
}

CommTable& CommTable::OfProcess() {
  static CommTable* const table = new CommTable;
  return *table;
}

Verdict CommTable::CheckName(const AclDevice* device, const std::string& name) const {
  if (FindByName(device, name) == nullptr) return {};
  return Refuse(HCCL_E_PARA,
                "EI0003: a communicator named \"{}\" exists already on this device; destroy it or "
                "choose another hcclCommName",
                name);
}

void CommTable::Add(std::shared_ptr<Comm> comm) {
  {
    const std::lock_guard lock(mutex_);
    comms_[comm->handle()] = std::move(comm);
    if (std::exchange(ends_with_acl_, true)) return;
  }
  AtFinalize([this] {
    std::map<HcclComm, std::shared_ptr<Comm>> ending;  // die outside of the lock
    const std::lock_guard lock(mutex_);
    ending.swap(comms_);
    ++version_;
    ends_with_acl_ = false;
  });
}

std::shared_ptr<Comm> CommTable::Find(HcclComm handle) const {
  thread_local Last last;
  if (last.handle == handle && last.version == version_.load(std::memory_order_acquire)) {
    if (std::shared_ptr<Comm> comm = last.comm.lock()) return comm;
  }
  return FindUnderLock(handle, &last);
}

std::shared_ptr<Comm> CommTable::FindUnderLock(HcclComm handle, Last* last) const {
  const std::lock_guard lock(mutex_);
  const auto found = comms_.find(handle);
  if (found == comms_.end()) return nullptr;
  *last = {handle, found->second, version_.load(std::memory_order_relaxed)};
  return found->second;
}

std::shared_ptr<Comm> CommTable::FindByName(const std::string& name) const {
  const Result<AclDevice*> device = CurrentDevice();
  std::shared_ptr<Comm> elsewhere;
  const std::lock_guard lock(mutex_);
  for (const auto& [handle, comm] : comms_) {
    if (comm->name() != name) continue;
    if (device.ok() && comm->device() == *device) return comm;
    elsewhere = comm;
  }
  return elsewhere;
}

std::shared_ptr<Comm> CommTable::FindByName(const AclDevice* device,
                                            const std::string& name) const {
  const std::lock_guard lock(mutex_);
  return FirstOf(comms_,
                 [&](const Comm& comm) { return comm.device() == device && comm.name() == name; });
}

std::shared_ptr<Comm> CommTable::FindClusterComm(const AclDevice* device) const {
  const std::lock_guard lock(mutex_);
  return FirstOf(comms_, [device](const Comm& comm) {
    return comm.device() == device && comm.origin() == Comm::Origin::kClusterInfo;
  });
}

void CommTable::Remove(HcclComm handle) {
  std::shared_ptr<Comm> last;  // dies outside of the lock
  const std::lock_guard lock(mutex_);
  if (const auto found = comms_.find(handle); found != comms_.end()) {
    last = std::move(found->second);
    comms_.erase(found);
    ++version_;
  }
}

}  // namespace npumesh
