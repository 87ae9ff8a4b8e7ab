// RegisteredMemory: memory that clients register with a communicator (HcclCommRegister). Operators
// of npumesh read and write all memory of a device directly, so the table only keeps the rules.
//
// Thread-safety: all members may be called from any thread.
#ifndef NPUMESH_COLLECTIVES_HCCL_COMM_REGISTERED_MEMORY_H_
#define NPUMESH_COLLECTIVES_HCCL_COMM_REGISTERED_MEMORY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "collectives/hccl/comm/comm.h"
#include "collectives/hccl/comm/verdict.h"

namespace npumesh {

class RegisteredMemory {
 public:
  static RegisteredMemory& OfProcess();

  // E_PARA for memory that is not all in one block of the device.
  Verdict Register(const Comm& comm, const void* address, uint64_t bytes, void** handle);
  // E_NOT_FOUND, of both, for a handle that is not one of `comm`.
  Verdict Deregister(const Comm& comm, const void* handle);
  Verdict Check(const Comm& comm, const void* handle) const;
  // The communicator ends, and what is registered with it.
  void ForgetComm(const Comm& comm);

 private:
  struct Entry {
    const Comm* comm = nullptr;
    uint64_t bytes = 0;
  };
  mutable std::mutex mutex_;
  std::map<const void*, std::unique_ptr<Entry>> entries_;  // by handle
};

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_HCCL_COMM_REGISTERED_MEMORY_H_
