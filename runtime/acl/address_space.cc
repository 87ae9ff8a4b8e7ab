#include "runtime/acl/address_space.h"

#include <iterator>
#include <utility>

namespace npumesh {

void AddressSpace::Forget(const DeviceMemory& memory) {
  const std::lock_guard lock(mutex_);
  for (auto it = reservations_.begin(); it != reservations_.end();) {
    if (it->second.memory != &memory) {
      ++it;
      continue;
    }
    for (const auto& [address, block] : it->second.mapped) LeaveBlock(block);
    it = reservations_.erase(it);
  }
}

Result<void*> AddressSpace::Reserve(DeviceMemory& memory, uint64_t bytes) {
  NPUMESH_ASSIGN_OR_RETURN(void* address, book_.Allocate(memory, bytes));
  const std::lock_guard lock(mutex_);
  reservations_[static_cast<std::byte*>(address)] = {bytes, &memory, {}};
  return address;
}

Status AddressSpace::Release(void* address) {
  const std::lock_guard lock(mutex_);
  const auto found = reservations_.find(static_cast<std::byte*>(address));
  if (found == reservations_.end()) {
    return Error(Code::kInvalidArgument, "{} is not the start of reserved addresses",
                 fmt::ptr(address));
  }
  if (!found->second.mapped.empty()) {
    return Error(Code::kInvalidArgument, "{} block(s) are still mapped at {}; unmap them first",
                 found->second.mapped.size(), fmt::ptr(address));
  }
  reservations_.erase(found);
  return book_.Free(address);
}

aclrtDrvMemHandle AddressSpace::MakeBlock(uint64_t bytes) {
  auto block = std::make_unique<Block>(Block{bytes, false, false});
  const std::lock_guard lock(mutex_);
  Block* handle = block.get();
  blocks_.emplace(handle, std::move(block));
  return handle;
}

Status AddressSpace::FreeBlock(aclrtDrvMemHandle handle) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(static_cast<Block*>(handle));
  if (found == blocks_.end() || found->second->freed) {
    return Error(Code::kInvalidArgument, "{} is not a physical block", fmt::ptr(handle));
  }
  found->second->freed = true;
  if (!found->second->mapped) blocks_.erase(found);
  return Status();
}

Status AddressSpace::Map(void* address, uint64_t bytes, aclrtDrvMemHandle handle) {
  auto* at = static_cast<std::byte*>(address);
  const std::lock_guard lock(mutex_);
  const auto block = blocks_.find(static_cast<Block*>(handle));
  if (block == blocks_.end() || block->second->freed || block->second->mapped) {
    return Error(Code::kInvalidArgument, "{} is not a physical block that is free to be mapped",
                 fmt::ptr(handle));
  }
  if (bytes != block->second->bytes) {
    return Error(Code::kInvalidArgument, "size is {}, expected all {} bytes of the block", bytes,
                 block->second->bytes);
  }
  const auto reservation = Around(at);
  if (reservation == reservations_.end() ||
      bytes > reservation->second.bytes - static_cast<uint64_t>(at - reservation->first)) {
    return Error(Code::kInvalidArgument, "{} and the {} bytes behind it are not all reserved",
                 fmt::ptr(address), bytes);
  }
  if (Overlaps(reservation->second, at, bytes)) {
    return Error(Code::kInvalidArgument, "something is mapped already in the {} bytes at {}", bytes,
                 fmt::ptr(address));
  }
  reservation->second.mapped[at] = block->first;
  block->second->mapped = true;
  return Status();
}

Status AddressSpace::Unmap(void* address) {
  auto* at = static_cast<std::byte*>(address);
  const std::lock_guard lock(mutex_);
  const auto reservation = Around(at);
  if (reservation != reservations_.end()) {
    if (const auto block = reservation->second.mapped.extract(at)) {
      LeaveBlock(block.mapped());
      return Status();
    }
  }
  return Error(Code::kInvalidArgument, "nothing is mapped at {}", fmt::ptr(address));
}

AddressSpace::Reservations::iterator AddressSpace::Around(std::byte* address) {
  auto after = reservations_.upper_bound(address);
  if (after == reservations_.begin()) return reservations_.end();
  const auto found = std::prev(after);
  const auto offset = static_cast<uint64_t>(address - found->first);
  return offset < found->second.bytes ? found : reservations_.end();
}

bool AddressSpace::Overlaps(const Reservation& reservation, const std::byte* address,
                            uint64_t bytes) {
  for (const auto& [start, block] : reservation.mapped) {
    if (start < address + bytes && address < start + block->bytes) return true;
  }
  return false;
}

void AddressSpace::LeaveBlock(Block* block) {
  block->mapped = false;
  if (block->freed) blocks_.erase(block);
}

}  // namespace npumesh
