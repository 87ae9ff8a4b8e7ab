// AddressSpace: reserved device addresses and the physical blocks that clients map there.
//
// Peers can only map what lies in the segment of the HBM, so reserved addresses are a row of those
// that it has without memory (DeviceMemory::ReserveAddresses), and a physical block is a claim: its
// bytes count from its making on. It has them where it is mapped first. They move when the
// addresses are needed for something else while the client still has the block, and have memory of
// their own when they are shared before they are mapped.
//
// A block of another process is shown in place of the pages of the reserved addresses. So are bytes
// that processes share and that have moved. Peers do not see such pages: DeviceMemory::RuleOf says
// `elsewhere`.
//
// Thread-safety: all members may be called from any thread.
#ifndef NPUMESH_RUNTIME_ACL_MEMORY_ADDRESS_SPACE_H_
#define NPUMESH_RUNTIME_ACL_MEMORY_ADDRESS_SPACE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "acl/acl_rt.h"
#include "runtime/acl/memory/memory_book.h"
#include "runtime/device/shared_ticket.h"

namespace npumesh {

class AddressSpace {
 public:
  // Physical blocks come in multiples of it.
  static constexpr uint64_t kGranularity = uint64_t{2} << 20;

  explicit AddressSpace(MemoryBook& book) : book_(book) {}

  // The memory of a device is about to end: its reservations and all that is mapped there are gone.
  void Forget(DeviceMemory& memory);

  // Errors, for all of them: kInvalidArgument with the rule that was broken, kOutOfMemory, those of
  // the system.
  Result<void*> Reserve(DeviceMemory& memory, uint64_t bytes);
  Status Release(void* address);

  // `memory`: that of the device in `prop`.
  Result<aclrtDrvMemHandle> MakeBlock(uint64_t bytes, DeviceMemory& memory,
                                      const aclrtPhysicalMemProp& prop);
  // One reference less; a block with none ends, but not while it is mapped.
  Status FreeBlock(aclrtDrvMemHandle handle);
  Result<aclrtPhysicalMemProp> PropertiesOf(aclrtDrvMemHandle handle) const;

  // `access`: whether the device of the block may read and write there.
  Status Map(void* address, uint64_t bytes, aclrtDrvMemHandle handle, bool access);
  Status Unmap(void* address);
  // The block that is mapped around `address`, with one reference more.
  Result<aclrtDrvMemHandle> Retain(const void* address);

  // A process has one set of pages, so it may do what any of its locations may. Of whole mappings,
  // side by side.
  Status SetAccess(void* address, uint64_t bytes, std::span<const aclrtMemAccessDesc> wishes);
  // Of what is mapped around `address`.
  Result<aclrtMemAccessFlags> AccessOf(const void* address, const aclrtMemLocation& location) const;

  // By which other processes import the block; the same at each call.
  Result<std::shared_ptr<SharedTicket>> Share(aclrtDrvMemHandle handle);
  // What Share has returned. Error: kInvalidArgument.
  Result<std::shared_ptr<SharedTicket>> Shared(uint64_t number) const;
  Result<std::shared_ptr<SharedTicket>> Shared(std::string_view key) const;
  // A block of the process that shares `ticket`, or of this one. Errors of SharedTicket::MapBlock.
  Result<aclrtDrvMemHandle> Import(std::shared_ptr<SharedTicket> ticket,
                                   const aclrtPhysicalMemProp& prop);

 private:
  struct Block {
    uint64_t bytes = 0;
    aclrtPhysicalMemProp prop{};
    DeviceMemory* memory = nullptr;  // null: of another process, or its device has ended
    int references = 1;              // of the client
    std::byte* at = nullptr;         // where it is mapped
    std::byte* home = nullptr;       // where its bytes are; null: it has none yet
    bool claimed = false;            // its bytes count as used, without memory of their own
    void* own = nullptr;             // the block of HBM that holds its bytes alone
    std::shared_ptr<SharedTicket> shared;
    std::shared_ptr<SharedTicket> imported;
    SharedTicket::MappedBlock pages;  // of `imported`
  };
  using Location = std::pair<aclrtMemLocationType, uint32_t>;
  struct Mapped {
    Block* block = nullptr;
    bool shown = false;  // pages of others are shown
    std::map<Location, aclrtMemAccessFlags> access;
  };
  struct Reservation {
    uint64_t bytes = 0;
    DeviceMemory* memory = nullptr;
    std::map<std::byte*, Mapped> mapped;   // disjoint
    std::map<std::byte*, Block*> resting;  // not mapped, with their bytes there; disjoint
    std::vector<std::shared_ptr<SharedTicket>> users;  // of bytes that were there
  };
  using Reservations = std::map<std::byte*, Reservation>;
  using Blocks = std::unordered_map<Block*, std::unique_ptr<Block>>;

  // The reservation that holds `address`; end() when none does.
  Reservations::iterator Around(const std::byte* address);
  Reservations::const_iterator Around(const std::byte* address) const;
  // The mapping that holds it; null when none does.
  const Mapped* MappedAround(const std::byte* address) const;
  static bool Overlaps(const Reservation& reservation, const std::byte* address, uint64_t bytes);
  // The mappings that make up exactly these bytes. Error: kInvalidArgument.
  Result<std::vector<std::pair<std::byte* const, Mapped>*>> Whole(std::byte* address,
                                                                  uint64_t bytes);
  // Error: kInvalidArgument for what is no block that the client has.
  Result<Block*> Find(aclrtDrvMemHandle handle) const;
  Status CheckMap(const Reservations::iterator& reservation, const std::byte* at, uint64_t bytes,
                  const Block& block) const;
  // The bytes of the block are at `at` from now on; true: they are shown there.
  Result<bool> Settle(Reservation& reservation, std::byte* at, Block& block);
  // The bytes of blocks that rest in a range go to memory of their own.
  Status Evict(Reservation& reservation, const std::byte* at, uint64_t bytes);
  // REQUIRES: the block is not mapped.
  Status GiveOwnMemory(Block& block);
  static Status ShowAccess(DeviceMemory& memory, std::byte* at, const Mapped& mapped);
  Status Leave(Reservation& reservation, std::byte* at, const Mapped& mapped);
  // REQUIRES: it is not mapped.
  void End(Block& block);
  void EndOwnMemory(Block& block);
  // Memory or addresses whose bytes other processes may still have mapped: given back when they
  // have ended that.
  struct Lingering {
    DeviceMemory* memory = nullptr;
    void* block = nullptr;  // of the HBM; null: `addresses`
    std::byte* addresses = nullptr;
    std::vector<std::shared_ptr<SharedTicket>> users;
  };
  void Free(Lingering entry);
  void GiveBack(const Lingering& entry);
  // The bytes of a block count as used, where that is possible, or no longer.
  static Status Claim(Block& block);
  static void Unclaim(Block& block);
  void FreeUnused();

  MemoryBook& book_;
  mutable std::mutex mutex_;
  Reservations reservations_;  // by first address
  Blocks blocks_;
  std::vector<Lingering> lingering_;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_MEMORY_ADDRESS_SPACE_H_
