// AddressSpace: reserved device addresses and the physical blocks that clients map there.
//
// Peers can only map what lies in the HBM segment, so reserved addresses are a block of it, and a
// physical block is a claim without memory: the bytes are counted once, when the
// addresses are reserved.
//
// Thread-safety: all members may be called from any thread.
#ifndef NPUMESH_RUNTIME_ACL_ADDRESS_SPACE_H_
#define NPUMESH_RUNTIME_ACL_ADDRESS_SPACE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "acl/acl_rt.h"
#include "runtime/acl/memory_book.h"

namespace npumesh {

class AddressSpace {
 public:
  // Physical blocks come in multiples of it.
  static constexpr uint64_t kGranularity = uint64_t{2} << 20;

  explicit AddressSpace(MemoryBook& book) : book_(book) {}

  // The memory of a device is about to end: its reservations and all that is mapped there are gone.
  void Forget(const DeviceMemory& memory);

  // Errors: kOutOfMemory; kInvalidArgument with the rule that was broken, for all of them.
  Result<void*> Reserve(DeviceMemory& memory, uint64_t bytes);
  Status Release(void* address);
  aclrtDrvMemHandle MakeBlock(uint64_t bytes);
  Status FreeBlock(aclrtDrvMemHandle handle);
  Status Map(void* address, uint64_t bytes, aclrtDrvMemHandle handle);
  Status Unmap(void* address);

 private:
  struct Block {
    uint64_t bytes = 0;
    bool mapped = false;
    bool freed = false;  // by the client, while mapped
  };
  struct Reservation {
    uint64_t bytes = 0;
    const DeviceMemory* memory = nullptr;
    std::map<std::byte*, Block*> mapped;  // disjoint
  };
  using Reservations = std::map<std::byte*, Reservation>;

  // The reservation that holds `address`; end() when none does.
  Reservations::iterator Around(std::byte* address);
  static bool Overlaps(const Reservation& reservation, const std::byte* address, uint64_t bytes);
  void LeaveBlock(Block* block);

  MemoryBook& book_;
  std::mutex mutex_;
  Reservations reservations_;  // by first address
  std::unordered_map<Block*, std::unique_ptr<Block>> blocks_;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_ADDRESS_SPACE_H_
