// MemoryBook: which memory clients of the C interface own, on which device or on the host.
//
// Thread-safety: all members may be called from any thread.
#ifndef NPUMESH_RUNTIME_ACL_MEMORY_MEMORY_BOOK_H_
#define NPUMESH_RUNTIME_ACL_MEMORY_MEMORY_BOOK_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/acl/process/leaks.h"
#include "runtime/base/status.h"
#include "runtime/device/device_memory.h"
#include "runtime/device/shared_ticket.h"

namespace npumesh {

class MemoryBook {
 public:
  ~MemoryBook();

  // The memories of this process's devices, from now on; empty: they are gone, and with them what
  // was allocated there.
  void Attach(std::vector<DeviceMemory*> memories);

  // Errors: kOutOfMemory.
  Result<void*> Allocate(DeviceMemory& memory, uint64_t bytes);
  // Errors: kInvalidArgument for what Allocate did not return.
  Status Free(void* pointer);
  // Whole pages in a block. Errors: kOutOfMemory.
  struct Pages {
    void* block = nullptr;  // for Free
    std::byte* start = nullptr;
  };
  Result<Pages> AllocatePages(DeviceMemory& memory, uint64_t bytes);
  void FreeAllOf(DeviceMemory& memory);
  // What clients have not freed, of one device, and of the host since there is a guard.
  std::vector<Leak> LeaksOf(const DeviceMemory& memory) const;
  std::vector<Leak> HostLeaks() const;
  // How other processes map bytes of one block. Errors: kInvalidArgument for bytes that are not all
  // in one block of this process's devices, kUnsupported where a device cannot be shared.
  Result<SharedBlock> Shareable(const void* pointer, uint64_t bytes) const;
  // Device memory of another process, mapped here.
  void AddForeign(const std::byte* start, uint64_t bytes);
  void RemoveForeign(const std::byte* start);
  // True when all bytes are device memory that the process may read (aclrtMemSetAccess): of one
  // block, or foreign.
  bool OnDevice(const void* pointer, uint64_t bytes) const;
  // Why not, for messages, when they begin in memory of a device: DeviceMemory::WhyNot. Empty: they
  // do not.
  std::string WhyNot(const void* pointer, uint64_t bytes) const;
  // What holds for all of the bytes; a plain rule for what is no memory of this process's devices.
  PageRule RuleOf(const void* pointer, uint64_t bytes) const;

  // The device of this process that holds `pointer`, by its place in Attach; -1: no device does.
  int DeviceOf(const void* pointer) const;
  // The block in use around a pointer; start null: there is no such block.
  struct Block {
    std::byte* start = nullptr;
    uint64_t bytes = 0;
  };
  Block BlockAround(const void* pointer) const;

  // Host memory of the client as if AllocateHost had returned it. False when a part of it is.
  bool Register(void* pointer, uint64_t bytes);
  // False for what Register was not called with.
  bool Unregister(void* pointer);
  // Page-aligned host memory; null when it is exhausted.
  void* AllocateHost(uint64_t bytes);
  // False for what AllocateHost did not return.
  bool FreeHost(void* pointer);
  // True when the bytes begin in a block of AllocateHost and end beyond it.
  bool BeyondHostBlock(const void* pointer, uint64_t bytes) const;
  // True when all bytes lie in one block of AllocateHost or Register.
  bool Pinned(const void* pointer, uint64_t bytes) const;

 private:
  mutable std::mutex mutex_;
  std::vector<DeviceMemory*> memories_;
  struct Held {
    DeviceMemory* memory = nullptr;
    Origin made;
  };
  std::unordered_map<void*, Held> blocks_;
  using Ranges = std::map<const std::byte*, uint64_t>;  // start -> bytes
  static bool Within(const Ranges& ranges, const void* pointer, uint64_t bytes);

  Ranges host_blocks_;
  std::map<const std::byte*, Origin> host_origins_;  // with a guard
  Ranges foreign_;
  Ranges registered_;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_MEMORY_MEMORY_BOOK_H_
