#include "runtime/acl/memory/address_space.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "runtime/base/log.h"

namespace npumesh {
namespace {

PageRule RuleOf(int access) {
  return {.readable = (access & ACL_RT_MEM_ACCESS_FLAGS_READ) != 0,
          .writable = access == ACL_RT_MEM_ACCESS_FLAGS_READWRITE};
}

void Warn(const Status& status) {
  if (!status.ok()) NPUMESH_WARNING("reserved addresses: {}", status.message());
}

}  // namespace

void AddressSpace::Forget(DeviceMemory& memory) {
  const std::lock_guard lock(mutex_);
  for (auto it = reservations_.begin(); it != reservations_.end();) {
    if (it->second.memory != &memory) {
      ++it;
      continue;
    }
    while (!it->second.mapped.empty()) {
      const auto mapped = it->second.mapped.extract(it->second.mapped.begin());
      Warn(Leave(it->second, mapped.key(), mapped.mapped()));
    }
    memory.ReleaseAddresses(it->first);
    it = reservations_.erase(it);
  }
  for (const auto& [key, block] : blocks_) {
    if (block->memory != &memory) continue;
    if (block->shared != nullptr) block->shared->Close();
    block->memory = nullptr;
    block->home = nullptr;
    block->own = nullptr;
    block->claimed = false;
  }
  std::erase_if(lingering_, [&](const Lingering& entry) { return entry.memory == &memory; });
}

Result<void*> AddressSpace::Reserve(DeviceMemory& memory, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  FreeUnused();
  NPUMESH_ASSIGN_OR_RETURN(std::byte* const start, memory.ReserveAddresses(bytes));
  Reservation& reservation = reservations_[start];
  reservation.bytes = bytes;
  reservation.memory = &memory;
  return start;
}

Status AddressSpace::Release(void* address) {
  const std::lock_guard lock(mutex_);
  const auto found = reservations_.find(static_cast<std::byte*>(address));
  if (found == reservations_.end()) {
    return Error(Code::kInvalidArgument, "{} is not the start of reserved addresses",
                 fmt::ptr(address));
  }
  Reservation& reservation = found->second;
  if (!reservation.mapped.empty()) {
    return Error(Code::kInvalidArgument, "{} block(s) are still mapped at {}; unmap them first",
                 reservation.mapped.size(), fmt::ptr(address));
  }
  NPUMESH_RETURN_IF_ERROR(Evict(reservation, found->first, reservation.bytes));
  const Reservation released = std::move(reservation);
  reservations_.erase(found);
  Free({released.memory, nullptr, static_cast<std::byte*>(address), released.users});
  return Status();
}

Result<aclrtDrvMemHandle> AddressSpace::MakeBlock(uint64_t bytes, DeviceMemory& memory,
                                                  const aclrtPhysicalMemProp& prop) {
  auto block = std::make_unique<Block>();
  block->bytes = bytes;
  block->memory = &memory;
  block->prop = prop;
  const std::lock_guard lock(mutex_);
  FreeUnused();
  NPUMESH_RETURN_IF_ERROR(Claim(*block));
  Block* const handle = block.get();
  blocks_.emplace(handle, std::move(block));
  return static_cast<aclrtDrvMemHandle>(handle);
}

Status AddressSpace::Claim(Block& block) {
  NPUMESH_RETURN_IF_ERROR(block.memory->Claim(block.bytes));
  block.claimed = true;
  return Status();
}

void AddressSpace::Unclaim(Block& block) {
  if (std::exchange(block.claimed, false)) block.memory->Unclaim(block.bytes);
}

Status AddressSpace::FreeBlock(aclrtDrvMemHandle handle) {
  const std::lock_guard lock(mutex_);
  NPUMESH_ASSIGN_OR_RETURN(Block* const block, Find(handle));
  if (--block->references == 0 && block->at == nullptr) End(*block);
  return Status();
}

Result<aclrtPhysicalMemProp> AddressSpace::PropertiesOf(aclrtDrvMemHandle handle) const {
  const std::lock_guard lock(mutex_);
  NPUMESH_ASSIGN_OR_RETURN(const Block* const block, Find(handle));
  return block->prop;
}

Status AddressSpace::Map(void* address, uint64_t bytes, aclrtDrvMemHandle handle, bool access) {
  auto* const at = static_cast<std::byte*>(address);
  const std::lock_guard lock(mutex_);
  NPUMESH_ASSIGN_OR_RETURN(Block* const block, Find(handle));
  const auto reservation = Around(at);
  NPUMESH_RETURN_IF_ERROR(CheckMap(reservation, at, bytes, *block));
  Mapped mapped{block, false, {}};
  if (access) {
    mapped.access[{block->prop.location.type, block->prop.location.id}] =
        ACL_RT_MEM_ACCESS_FLAGS_READWRITE;
  }
  NPUMESH_ASSIGN_OR_RETURN(mapped.shown, Settle(reservation->second, at, *block));
  block->at = at;
  const Status shown = ShowAccess(*reservation->second.memory, at, mapped);
  reservation->second.mapped.emplace(at, std::move(mapped));
  return shown;
}

Status AddressSpace::CheckMap(const Reservations::iterator& reservation, const std::byte* at,
                              uint64_t bytes, const Block& block) const {
  if (block.at != nullptr) {
    return Error(Code::kInvalidArgument, "the physical block is mapped at {}; unmap it there first",
                 fmt::ptr(block.at));
  }
  if (block.memory == nullptr && block.imported == nullptr) {
    return Error(Code::kInvalidArgument, "the device of the physical block was reset");
  }
  if (bytes != block.bytes) {
    return Error(Code::kInvalidArgument, "size is {}, expected all {} bytes of the block", bytes,
                 block.bytes);
  }
  if (reservation == reservations_.end() ||
      bytes > reservation->second.bytes - static_cast<uint64_t>(at - reservation->first)) {
    return Error(Code::kInvalidArgument, "{} and the {} bytes behind it are not all reserved",
                 fmt::ptr(at), bytes);
  }
  if ((at - reservation->first) % 4096 != 0) {
    return Error(Code::kInvalidArgument, "{} is not the start of a page of 4096 bytes",
                 fmt::ptr(at));
  }
  if (Overlaps(reservation->second, at, bytes)) {
    return Error(Code::kInvalidArgument, "something is mapped already in the {} bytes at {}", bytes,
                 fmt::ptr(at));
  }
  return Status();
}

Result<bool> AddressSpace::Settle(Reservation& reservation, std::byte* at, Block& block) {
  if (block.home != nullptr && block.own == nullptr) {  // it rests somewhere
    if (block.home == at) {
      Around(at)->second.resting.erase(at);
      return false;
    }
    NPUMESH_RETURN_IF_ERROR(GiveOwnMemory(block));
  }
  NPUMESH_RETURN_IF_ERROR(Evict(reservation, at, block.bytes));
  const std::byte* const pages = block.imported != nullptr ? block.pages.start
                                 : block.shared != nullptr ? block.home
                                                           : nullptr;
  if (pages != nullptr) {
    NPUMESH_RETURN_IF_ERROR(reservation.memory->ShowAt(at, pages, block.bytes));
    return true;
  }
  if (block.home != nullptr) std::memcpy(at, block.home, block.bytes);
  EndOwnMemory(block);
  if (!block.claimed) Warn(Claim(block));
  block.home = at;
  return false;
}

Status AddressSpace::Unmap(void* address) {
  auto* const at = static_cast<std::byte*>(address);
  const std::lock_guard lock(mutex_);
  const auto reservation = Around(at);
  if (reservation != reservations_.end()) {
    if (const auto mapped = reservation->second.mapped.extract(at)) {
      return Leave(reservation->second, at, mapped.mapped());
    }
  }
  return Error(Code::kInvalidArgument, "nothing is mapped at {}", fmt::ptr(address));
}

Status AddressSpace::Leave(Reservation& reservation, std::byte* at, const Mapped& mapped) {
  Block& block = *mapped.block;
  const Status own = reservation.memory->ShowOwn(at, block.bytes);
  block.at = nullptr;
  if (!mapped.shown) {
    reservation.resting.emplace(at, &block);
    if (block.shared != nullptr) reservation.users.push_back(block.shared);
  }
  if (block.references == 0) End(block);
  return own;
}

Result<aclrtDrvMemHandle> AddressSpace::Retain(const void* address) {
  const std::lock_guard lock(mutex_);
  const Mapped* const mapped = MappedAround(static_cast<const std::byte*>(address));
  if (mapped == nullptr) {
    return Error(Code::kInvalidArgument, "no physical block is mapped at {}", fmt::ptr(address));
  }
  ++mapped->block->references;
  return static_cast<aclrtDrvMemHandle>(mapped->block);
}

Status AddressSpace::SetAccess(void* address, uint64_t bytes,
                               std::span<const aclrtMemAccessDesc> wishes) {
  const std::lock_guard lock(mutex_);
  NPUMESH_ASSIGN_OR_RETURN(const auto mappings, Whole(static_cast<std::byte*>(address), bytes));
  for (auto* const entry : mappings) {
    auto& [at, mapped] = *entry;
    for (const auto& wish : wishes) {
      mapped.access[{wish.location.type, wish.location.id}] = wish.flags;
    }
    NPUMESH_RETURN_IF_ERROR(ShowAccess(*Around(at)->second.memory, at, mapped));
  }
  return Status();
}

Status AddressSpace::ShowAccess(DeviceMemory& memory, std::byte* at, const Mapped& mapped) {
  int access = ACL_RT_MEM_ACCESS_FLAGS_NONE;
  for (const auto& [location, flags] : mapped.access) access |= flags;
  PageRule rule = RuleOf(access);
  const PageRule now = memory.RuleOf(at, mapped.block->bytes);
  rule.elsewhere = now.elsewhere;
  if (now.readable == rule.readable && now.writable == rule.writable) return Status();
  return memory.Protect(at, mapped.block->bytes, rule);
}

Result<aclrtMemAccessFlags> AddressSpace::AccessOf(const void* address,
                                                   const aclrtMemLocation& location) const {
  const std::lock_guard lock(mutex_);
  const Mapped* const mapped = MappedAround(static_cast<const std::byte*>(address));
  if (mapped == nullptr) {
    return Error(Code::kInvalidArgument, "no physical block is mapped at {}", fmt::ptr(address));
  }
  const auto access = mapped->access.find({location.type, location.id});
  return access == mapped->access.end() ? ACL_RT_MEM_ACCESS_FLAGS_NONE : access->second;
}

Result<std::shared_ptr<SharedTicket>> AddressSpace::Share(aclrtDrvMemHandle handle) {
  const std::lock_guard lock(mutex_);
  NPUMESH_ASSIGN_OR_RETURN(Block* const block, Find(handle));
  if (block->imported != nullptr) {
    return Error(Code::kInvalidArgument,
                 "the physical block is one of process {}, which alone shares it",
                 block->imported->owner());
  }
  if (block->shared != nullptr) return block->shared;
  if (block->memory == nullptr) {
    return Error(Code::kInvalidArgument, "the device of the physical block was reset");
  }
  if (block->home == nullptr) NPUMESH_RETURN_IF_ERROR(GiveOwnMemory(*block));
  NPUMESH_ASSIGN_OR_RETURN(const SharedBlock where, book_.Shareable(block->home, block->bytes));
  NPUMESH_ASSIGN_OR_RETURN(block->shared, SharedTicket::Create(SharedKind::kPhysical, where));
  return block->shared;
}

Result<std::shared_ptr<SharedTicket>> AddressSpace::Shared(uint64_t number) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, block] : blocks_) {
    if (block->shared != nullptr && block->shared->number() == number) return block->shared;
  }
  return Error(Code::kInvalidArgument, "this process does not share {:#x}", number);
}

Result<std::shared_ptr<SharedTicket>> AddressSpace::Shared(std::string_view key) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [handle, block] : blocks_) {
    if (block->shared != nullptr && block->shared->key() == key) return block->shared;
  }
  return Error(Code::kInvalidArgument, "this process does not share \"{}\"", key);
}

Result<aclrtDrvMemHandle> AddressSpace::Import(std::shared_ptr<SharedTicket> ticket,
                                               const aclrtPhysicalMemProp& prop) {
  auto block = std::make_unique<Block>();
  NPUMESH_ASSIGN_OR_RETURN(block->pages, ticket->MapBlock());
  block->bytes = ticket->page().bytes;
  block->prop = prop;
  block->imported = std::move(ticket);
  const std::lock_guard lock(mutex_);
  Block* const handle = block.get();
  blocks_.emplace(handle, std::move(block));
  return static_cast<aclrtDrvMemHandle>(handle);
}

AddressSpace::Reservations::iterator AddressSpace::Around(const std::byte* address) {
  const auto found = std::as_const(*this).Around(address);
  return found == reservations_.cend() ? reservations_.end() : reservations_.find(found->first);
}

AddressSpace::Reservations::const_iterator AddressSpace::Around(const std::byte* address) const {
  auto after = reservations_.upper_bound(const_cast<std::byte*>(address));
  if (after == reservations_.begin()) return reservations_.end();
  const auto found = std::prev(after);
  const auto offset = static_cast<uint64_t>(address - found->first);
  return offset < found->second.bytes ? found : reservations_.end();
}

const AddressSpace::Mapped* AddressSpace::MappedAround(const std::byte* address) const {
  const auto reservation = Around(address);
  if (reservation == reservations_.end()) return nullptr;
  const auto& mapped = reservation->second.mapped;
  auto after = mapped.upper_bound(const_cast<std::byte*>(address));
  if (after == mapped.begin()) return nullptr;
  const auto& [at, found] = *std::prev(after);
  return address < at + found.block->bytes ? &found : nullptr;
}

bool AddressSpace::Overlaps(const Reservation& reservation, const std::byte* address,
                            uint64_t bytes) {
  for (const auto& [start, mapped] : reservation.mapped) {
    if (start < address + bytes && address < start + mapped.block->bytes) return true;
  }
  return false;
}

Result<std::vector<std::pair<std::byte* const, AddressSpace::Mapped>*>> AddressSpace::Whole(
    std::byte* address, uint64_t bytes) {
  std::vector<std::pair<std::byte* const, Mapped>*> found;
  const auto reservation = Around(address);
  std::byte* end = address;
  if (reservation != reservations_.end()) {
    auto& mapped = reservation->second.mapped;
    for (auto next = mapped.find(address);
         next != mapped.end() && next->first == end && static_cast<uint64_t>(end - address) < bytes;
         ++next) {
      end += next->second.block->bytes;
      found.push_back(&*next);
    }
  }
  if (bytes != 0 && static_cast<uint64_t>(end - address) == bytes) return found;
  return Error(Code::kInvalidArgument, "{} bytes at {} are not one or several whole mappings",
               bytes, fmt::ptr(address));
}

Result<AddressSpace::Block*> AddressSpace::Find(aclrtDrvMemHandle handle) const {
  const auto found = blocks_.find(static_cast<Block*>(handle));
  if (found != blocks_.end() && found->second->references > 0) return found->first;
  return Error(Code::kInvalidArgument, "{} is not a physical block", fmt::ptr(handle));
}

Status AddressSpace::Evict(Reservation& reservation, const std::byte* at, uint64_t bytes) {
  std::vector<Block*> moving;
  for (const auto& [start, block] : reservation.resting) {
    if (start < at + bytes && at < start + block->bytes) moving.push_back(block);
  }
  for (Block* const block : moving) NPUMESH_RETURN_IF_ERROR(GiveOwnMemory(*block));
  return Status();
}

Status AddressSpace::GiveOwnMemory(Block& block) {
  FreeUnused();
  Unclaim(block);
  const Result<MemoryBook::Pages> allocated = book_.AllocatePages(*block.memory, block.bytes);
  if (!allocated.ok()) {
    Warn(Claim(block));
    return allocated.status();
  }
  const MemoryBook::Pages& pages = *allocated;
  if (block.home != nullptr) {
    std::memcpy(pages.start, block.home, block.bytes);
    Around(block.home)->second.resting.erase(block.home);
  }
  if (block.shared != nullptr) {
    block.shared->page().offset = block.memory->OffsetOf(pages.start);
  }
  block.home = pages.start;
  block.own = pages.block;
  return Status();
}

void AddressSpace::End(Block& block) {
  if (block.shared != nullptr) block.shared->Close();
  if (block.own == nullptr && block.home != nullptr) {
    Around(block.home)->second.resting.erase(block.home);
    if (block.shared == nullptr) DeviceMemory::Discard(block.home, block.bytes);
  }
  EndOwnMemory(block);
  Unclaim(block);
  blocks_.erase(&block);
}

void AddressSpace::EndOwnMemory(Block& block) {
  if (block.own == nullptr) return;
  std::vector<std::shared_ptr<SharedTicket>> users;
  if (block.shared != nullptr) users.push_back(block.shared);
  Free({block.memory, std::exchange(block.own, nullptr), nullptr, std::move(users)});
}

void AddressSpace::Free(Lingering entry) {
  std::erase_if(entry.users, [](const auto& ticket) { return !ticket->in_use(); });
  if (entry.users.empty()) return GiveBack(entry);
  lingering_.push_back(std::move(entry));
}

void AddressSpace::GiveBack(const Lingering& entry) {
  if (entry.block != nullptr) return Warn(book_.Free(entry.block));
  entry.memory->ReleaseAddresses(entry.addresses);
}

void AddressSpace::FreeUnused() {
  std::erase_if(lingering_, [this](const Lingering& entry) {
    const bool used = std::any_of(entry.users.begin(), entry.users.end(),
                                  [](const auto& ticket) { return ticket->in_use(); });
    if (!used) GiveBack(entry);
    return !used;
  });
}

}  // namespace npumesh
