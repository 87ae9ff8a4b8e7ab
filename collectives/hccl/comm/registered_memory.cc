#include "collectives/hccl/comm/registered_memory.h"

#include <string>
#include <utility>

namespace npumesh {

RegisteredMemory& RegisteredMemory::OfProcess() {
  static RegisteredMemory* const table = new RegisteredMemory;
  return *table;
}

Verdict RegisteredMemory::Register(const Comm& comm, const void* address, uint64_t bytes,
                                   void** handle) {
  if (!comm.in_hbm(address, bytes)) {
    std::string why = comm.device()->memory.WhyNot(address, bytes);
    if (why.empty()) why = "are not in the memory of this device; take it from aclrtMalloc";
    return Refuse(HCCL_E_PARA, "EI0003: addr: {} bytes at {} {}", bytes, fmt::ptr(address), why);
  }
  auto entry = std::make_unique<Entry>(Entry{&comm, bytes});
  *handle = entry.get();
  const std::lock_guard lock(mutex_);
  entries_.emplace(*handle, std::move(entry));
  return {};
}

Verdict RegisteredMemory::Deregister(const Comm& comm, const void* handle) {
  NPUMESH_RETURN_IF_REFUSED(Check(comm, handle));
  const std::lock_guard lock(mutex_);
  entries_.erase(handle);
  return {};
}

Verdict RegisteredMemory::Check(const Comm& comm, const void* handle) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(handle);
  if (found != entries_.end() && found->second->comm == &comm) return {};
  return Refuse(HCCL_E_NOT_FOUND,
                "EI0003: {} is no memory that was registered with this "
                "communicator, or it was deregistered",
                handle);
}

void RegisteredMemory::ForgetComm(const Comm& comm) {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [&](const auto& entry) { return entry.second->comm == &comm; });
}

}  // namespace npumesh
