#include "collectives/hccl/comm/windows.h"

namespace npumesh {
namespace {

// Collective over the communicator: `mine` of every rank.
Result<std::vector<uint64_t>> GatherOffsets(Comm& comm, uint64_t mine) {
  DeviceMemory& memory = comm.device()->memory;
  NPUMESH_ASSIGN_OR_RETURN(void* const block,
                           memory.Allocate((comm.size() + 1) * sizeof(uint64_t)));
  auto* const numbers = static_cast<uint64_t*>(block);
  *numbers = mine;
  const Status gathered = comm.Run("HcclCommSymWinRegister", [&](Communicator& group) {
    return group.AllGather(numbers, numbers + 1, 1, DataType::kUint64);
  });
  std::vector<uint64_t> offsets(numbers + 1, numbers + 1 + comm.size());
  NPUMESH_RETURN_IF_ERROR(memory.Free(block));
  NPUMESH_RETURN_IF_ERROR(gathered);
  return offsets;
}

}  // namespace

WindowTable& WindowTable::OfProcess() {
  static WindowTable* const table = new WindowTable;
  return *table;
}

uint64_t WindowTable::BytesOf(const Comm& comm) const {
  uint64_t bytes = 0;
  for (const auto& [handle, window] : windows_) {
    if (window->comm == &comm) bytes += window->bytes;
  }
  return bytes;
}

Verdict WindowTable::Register(const std::shared_ptr<Comm>& comm, void* address, uint64_t bytes,
                              HcclCommSymWindow* handle) {
  if (!comm->in_hbm(address, bytes)) {
    const std::string why = comm->device()->memory.WhyNot(address, bytes);
    return Refuse(HCCL_E_PARA, "EI0003: {} bytes at {} {}", bytes, fmt::ptr(address),
                  why.empty() ? "are not in the memory of this device" : why);
  }
  {
    std::lock_guard lock(mutex_);
    if (const uint64_t used = BytesOf(*comm); bytes > comm->config().symmetric_bytes - used) {
      return Refuse(HCCL_E_PARA,
                    "EI0003: {} bytes on top of {} exceed hcclSymWinMaxMemSizePerRank, {} GB",
                    bytes, used, comm->config().symmetric_bytes >> 30);
    }
  }
  Result<std::vector<uint64_t>> offsets =
      GatherOffsets(*comm, comm->device()->memory.OffsetOf(address));
  if (!offsets.ok()) return VerdictOf(offsets.status());
  auto window = std::unique_ptr<Window>(new Window{comm.get(), comm->world_ranks(), comm->device(),
                                                   static_cast<const std::byte*>(address), bytes,
                                                   *std::move(offsets)});
  *handle = window.get();
  std::lock_guard lock(mutex_);
  windows_[*handle] = std::move(window);
  return {};
}

Verdict WindowTable::Deregister(HcclCommSymWindow handle) {
  std::lock_guard lock(mutex_);
  if (windows_.erase(handle) == 1) return {};
  return Refuse(HCCL_E_PARA, "EI0003: {} is no window", fmt::ptr(handle));
}

Verdict WindowTable::Find(const Comm& comm, const void* pointer, uint64_t bytes,
                          HcclCommSymWindow* handle, size_t* offset) const {
  const auto* begin = static_cast<const std::byte*>(pointer);
  std::lock_guard lock(mutex_);
  for (const auto& [each, window] : windows_) {
    if (window->comm != &comm || begin < window->begin) continue;
    const auto distance = static_cast<uint64_t>(begin - window->begin);
    if (distance > window->bytes || bytes > window->bytes - distance) continue;
    *handle = each;
    *offset = distance;
    return {};
  }
  return Refuse(HCCL_E_NOT_FOUND, "no window contains {} bytes at {}", bytes, fmt::ptr(pointer));
}

Verdict WindowTable::PeerPointer(HcclCommSymWindow handle, size_t offset, uint32_t peer,
                                 void** pointer) const {
  std::lock_guard lock(mutex_);
  const auto found = windows_.find(handle);
  if (found == windows_.end()) {
    return Refuse(HCCL_E_PARA, "EI0003: {} is no window", fmt::ptr(handle));
  }
  const Window& window = *found->second;
  if (peer >= window.offsets.size() || offset >= window.bytes) {
    return Refuse(HCCL_E_PARA, "EI0003: offset {} of rank {}; the window has {} bytes on {} ranks",
                  offset, peer, window.bytes, window.offsets.size());
  }
  *pointer =
      window.device->memory.PeerAddress(window.world_ranks[peer], window.offsets[peer] + offset);
  if (*pointer != nullptr) return {};
  return Refuse(HCCL_E_NOT_SUPPORT, "rank {} is on another host", peer);
}

void WindowTable::ForgetComm(const Comm& comm) {
  std::lock_guard lock(mutex_);
  std::erase_if(windows_, [&](const auto& entry) { return entry.second->comm == &comm; });
}

}  // namespace npumesh
