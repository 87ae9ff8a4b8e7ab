// Symmetric windows: memory of which every rank of a communicator knows where each peer's part is.
//
// Thread-safety: all members may be called from any thread.
#ifndef NPUMESH_COLLECTIVES_HCCL_COMM_WINDOWS_H_
#define NPUMESH_COLLECTIVES_HCCL_COMM_WINDOWS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "collectives/hccl/comm/comm.h"
#include "collectives/hccl/comm/verdict.h"

namespace npumesh {

class WindowTable {
 public:
  static WindowTable& OfProcess();

  // Collective over `comm`; at once, not on a stream. E_PARA when the memory is not the device's or
  // the sum of this rank's windows is more than its configuration allows; E_MEMORY.
  Verdict Register(const std::shared_ptr<Comm>& comm, void* address, uint64_t bytes,
                   HcclCommSymWindow* handle);
  // E_PARA for what is no window.
  Verdict Deregister(HcclCommSymWindow handle);
  // The window of `comm` that contains all of [pointer, pointer + bytes); E_NOT_FOUND.
  Verdict Find(const Comm& comm, const void* pointer, uint64_t bytes, HcclCommSymWindow* handle,
               size_t* offset) const;
  // E_NOT_SUPPORT when the peer is on another host.
  Verdict PeerPointer(HcclCommSymWindow handle, size_t offset, uint32_t peer, void** pointer) const;

  // The communicator ends, and its windows with it.
  void ForgetComm(const Comm& comm);

 private:
  struct Window {
    const Comm* comm;
    std::vector<int> world_ranks;
    AclDevice* device;
    const std::byte* begin;
    uint64_t bytes;
    std::vector<uint64_t> offsets;  // in the HBM of each rank
  };

  uint64_t BytesOf(const Comm& comm) const;  // hold mutex_

  mutable std::mutex mutex_;
  std::map<HcclCommSymWindow, std::unique_ptr<Window>> windows_;
};

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_HCCL_COMM_WINDOWS_H_
