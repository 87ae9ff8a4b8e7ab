#include "graph/engine/run/device_pool.h"

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

}  // namespace

Result<std::shared_ptr<const DeviceConstant>> DeviceConstant::Upload(const Tensor& tensor,
                                                                     DeviceMemory& memory,
                                                                     uint64_t margin) {
  NPUMESH_ASSIGN_OR_RETURN(void* const block, memory.Allocate(tensor.bytes() + 2 * margin));
  auto* const to = static_cast<std::byte*>(block) + margin;
  tensor.Stream(kPieceBytes, [&](uint64_t offset, uint64_t bytes) {
    std::memcpy(to + offset, tensor.data() + offset, bytes);
  });
  return std::shared_ptr<const DeviceConstant>(new DeviceConstant(tensor, block, margin, memory));
}

DeviceConstant::~DeviceConstant() {
  FreeOrComplain(memory_, block_);
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
  NPUMESH_ASSIGN_OR_RETURN(std::shared_ptr<const DeviceConstant> constant,
                           DeviceConstant::Upload(tensor, memory_, margin_));
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

Status DevicePool::Reserve(Area& area, uint64_t bytes) {
  if (area.address != nullptr && area.bytes >= bytes) return Status();
  Release(area);
  NPUMESH_ASSIGN_OR_RETURN(void* const block, memory_.Allocate(bytes + 2 * margin_));
  area.address = static_cast<std::byte*>(block) + margin_;
  area.bytes = bytes;
  ++generation_;
  return Status();
}

void DevicePool::Release(Area& area) {
  if (area.address == nullptr) return;
  FreeOrComplain(memory_, static_cast<std::byte*>(area.address) - margin_);
  area = Area();
  ++generation_;
}

}  // namespace npumesh
