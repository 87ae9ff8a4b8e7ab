#include "graph/engine/run/device_pool.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/log.h"
#include "runtime/device/stream.h"

namespace npumesh {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{4} << 20;

// For destructors: a block that cannot be freed is a bug, but none that the caller can mend.
void FreeOrComplain(DeviceMemory& memory, void* address) {
  if (const Status status = memory.Free(address); !status.ok()) {
    NPUMESH_ERROR("device memory of a plan: {}", status.message());
  }
}

void CopyTo(std::byte* to, const Tensor& tensor) {
  tensor.Stream(kPieceBytes, [&](uint64_t offset, uint64_t bytes) {
    std::memcpy(to + offset, tensor.data() + offset, bytes);
  });
}

uint64_t WholeBlocks(uint64_t bytes) {
  return (std::max<uint64_t>(bytes, 1) + kHbmAlignment - 1) / kHbmAlignment * kHbmAlignment;
}

}  // namespace

Result<std::shared_ptr<const DeviceConstant>> DeviceConstant::Upload(const Tensor& tensor,
                                                                     DeviceMemory& memory,
                                                                     uint64_t margin) {
  NPUMESH_ASSIGN_OR_RETURN(void* const block, memory.Allocate(tensor.bytes() + 2 * margin));
  CopyTo(static_cast<std::byte*>(block) + margin, tensor);
  return std::shared_ptr<const DeviceConstant>(new DeviceConstant(tensor, block, margin, memory));
}

std::shared_ptr<const DeviceConstant> DeviceConstant::UploadTo(void* place, const Tensor& tensor,
                                                               DeviceMemory& memory) {
  CopyTo(static_cast<std::byte*>(place), tensor);
  return std::shared_ptr<const DeviceConstant>(new DeviceConstant(tensor, place, memory));
}

DeviceConstant::~DeviceConstant() {
  if (block_ != nullptr) FreeOrComplain(memory_, block_);
}

DevicePool::DevicePool(DeviceMemory& memory, uint64_t margin) : memory_(memory), margin_(margin) {}

DevicePool::~DevicePool() {
  Release(arena_);
  Release(scratch_);
  for (auto& [position, area] : inputs_) Release(area);
}

Result<std::shared_ptr<const DeviceConstant>> DevicePool::Constant(const Tensor& tensor) {
  auto& known = constants_[{tensor.data(), tensor.bytes()}];
  if (std::shared_ptr<const DeviceConstant> constant = known.lock()) return constant;
  const uint64_t whole = WholeBlocks(tensor.bytes());
  std::shared_ptr<const DeviceConstant> constant;
  if (given_.weights != nullptr && whole <= given_.weight_bytes - weights_taken_) {
    constant = DeviceConstant::UploadTo(static_cast<std::byte*>(given_.weights) + weights_taken_,
                                        tensor, memory_);
    weights_taken_ += whole;
  } else {
    NPUMESH_ASSIGN_OR_RETURN(constant, DeviceConstant::Upload(tensor, memory_, margin_));
  }
  known = constant;
  if (uploaded_) uploaded_(tensor);
  return constant;
}

void DevicePool::ForgetUnusedConstants() {
  std::erase_if(constants_, [](const auto& entry) { return entry.second.expired(); });
}

void* DevicePool::input(int position) const {
  const auto area = inputs_.find(position);
  return area == inputs_.end() ? nullptr : area->second.address;
}

uint64_t DevicePool::constant_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [key, constant] : constants_) {
    if (!constant.expired()) bytes += key.second;
  }
  return bytes;
}

Stream& DevicePool::communication_stream() {
  if (communication_stream_ == nullptr) communication_stream_ = std::make_unique<Stream>();
  return *communication_stream_;
}

Status DevicePool::ReserveArena(uint64_t bytes) {
  return ReserveInGiven(arena_, scratch_, /*at_end=*/false, bytes);
}

Status DevicePool::ReserveScratch(uint64_t bytes) {
  return ReserveInGiven(scratch_, arena_, /*at_end=*/true, bytes);
}

void* DevicePool::PlaceInGiven(uint64_t bytes, const Area& other, bool at_end) const {
  const uint64_t all = given_.work_bytes / kHbmAlignment * kHbmAlignment;
  const uint64_t taken = other.given ? other.bytes : 0;
  if (given_.work == nullptr || bytes > all || taken > all - bytes) return nullptr;
  return static_cast<std::byte*>(given_.work) + (at_end ? all - bytes : 0);
}

Status DevicePool::ReserveInGiven(Area& area, const Area& other, bool at_end, uint64_t bytes) {
  if (area.address != nullptr && area.bytes >= bytes) return Status();
  const uint64_t whole = WholeBlocks(bytes);
  void* const place = PlaceInGiven(whole, other, at_end);
  if (place == nullptr) return Reserve(area, bytes);
  Release(area);
  area = {place, whole, /*given=*/true};
  ++generation_;
  return Status();
}

Status DevicePool::Reserve(Area& area, uint64_t bytes) {
  if (area.address != nullptr && area.bytes >= bytes) return Status();
  Release(area);
  NPUMESH_ASSIGN_OR_RETURN(void* const block, memory_.Allocate(bytes + 2 * margin_));
  area = {static_cast<std::byte*>(block) + margin_, bytes, /*given=*/false};
  ++generation_;
  return Status();
}

void DevicePool::Release(Area& area) {
  if (area.address == nullptr) return;
  if (!area.given) FreeOrComplain(memory_, static_cast<std::byte*>(area.address) - margin_);
  area = Area();
  ++generation_;
}

}  // namespace npumesh
