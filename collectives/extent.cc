#include "collectives/extent.h"

#include <algorithm>

namespace npumesh {
namespace {

// One past the last byte of the blocks.
uint64_t EndOf(std::span<const uint64_t> bytes, std::span<const uint64_t> at) {
  uint64_t end = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != 0) end = std::max(end, at[i] + bytes[i]);
  }
  return end;
}

Status CheckBuffer(const DeviceMemory& memory, const void* buffer, uint64_t bytes,
                   std::string_view role) {
  if (bytes == 0 || memory.Contains(buffer, bytes)) return Status();
  return Error(Code::kInvalidArgument, "its {} buffer of {} bytes is not in its HBM", role, bytes);
}

}  // namespace

std::vector<uint64_t> InBytes(std::span<const uint64_t> counts, DataType dtype) {
  std::vector<uint64_t> bytes;
  for (const uint64_t count : counts) {
    bytes.push_back(std::min(BytesOf(dtype, count).value_or(kTooManyBytes), kTooManyBytes));
  }
  return bytes;
}

std::vector<uint64_t> Packed(std::span<const uint64_t> bytes) {
  std::vector<uint64_t> at;
  uint64_t next = 0;
  for (const uint64_t block : bytes) {
    at.push_back(next);
    next = std::min(next + block, kTooManyBytes);
  }
  return at;
}

Extent ExtentOf(const Call& call, int rank, int size) {
  const uint64_t bytes = call.bytes();
  const uint64_t all = bytes * static_cast<uint64_t>(size);
  const bool is_root = rank == call.root;
  switch (call.kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kBroadcast:
      return {bytes, bytes};
    case CollectiveKind::kReduce:
      return {bytes, is_root ? bytes : 0};
    case CollectiveKind::kAllGather:
      return {bytes, all};
    case CollectiveKind::kReduceScatter:
      return {all, bytes};
    case CollectiveKind::kScatter:
      return {is_root ? all : 0, bytes};
    case CollectiveKind::kAllToAll:
      return {all, all};
    case CollectiveKind::kAllToAllV:
    case CollectiveKind::kAllToAllVC:
    case CollectiveKind::kAllGatherV:
    case CollectiveKind::kReduceScatterV:
      return {EndOf(call.send_bytes, call.send_at), EndOf(call.recv_bytes, call.recv_at)};
    case CollectiveKind::kBarrier:
    case CollectiveKind::kSendRecv:
    case CollectiveKind::kNone:
      break;
  }
  return {};
}

Status Refuse(const Call& call, int rank, int size, const DeviceMemory& memory) {
  if (BitsOf(call.dtype) % 8 != 0 || BitsOf(call.dtype) == 0) {
    return Error(Code::kUnsupported, "dtype {} cannot travel", Name(call.dtype));
  }
  const std::optional<uint64_t> bytes = BytesOf(call.dtype, call.count);
  if (!bytes || *bytes > kTooManyBytes / static_cast<uint64_t>(size)) {
    return Error(Code::kInvalidArgument, "{} elements are more than 62 bits of bytes", call.count);
  }
  if (Reduces(call.kind) && FindReduce(call.dtype, call.op) == nullptr) {
    return Error(Code::kUnsupported, "no {} of {}", Name(call.op), Name(call.dtype));
  }
  if (call.root < 0 || call.root >= size) {
    return Error(Code::kInvalidArgument, "root {} is outside the group of {}", call.root, size);
  }
  const Extent extent = ExtentOf(call, rank, size);
  NPUMESH_RETURN_IF_ERROR(CheckBuffer(memory, call.send, extent.send, "send"));
  return CheckBuffer(memory, call.recv, extent.recv, "receive");
}

}  // namespace npumesh
