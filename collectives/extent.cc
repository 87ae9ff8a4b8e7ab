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

// Bytes from one pointer of a call on; `listed`: the end of the blocks it lists there.
uint64_t BytesIn(Portion portion, const Call& call, bool is_root, int size, uint64_t listed) {
  const uint64_t block = call.bytes();
  const uint64_t all = block * static_cast<uint64_t>(size);
  switch (portion) {
    case Portion::kNothing:
      return 0;
    case Portion::kBlock:
      return block;
    case Portion::kBlockAtRoot:
      return is_root ? block : 0;
    case Portion::kAllBlocks:
      return all;
    case Portion::kAllAtRoot:
      return is_root ? all : 0;
    case Portion::kListed:
      return listed;
  }
  return 0;
}

Status CheckBuffer(const DeviceMemory& memory, const void* buffer, uint64_t bytes,
                   std::string_view role) {
  const std::string why = WhyNoBuffer(memory, buffer, bytes, role);
  return why.empty() ? Status() : Error(Code::kInvalidArgument, "{}", why);
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
  const KindTraits& traits = TraitsOf(call.kind);
  const bool is_root = rank == call.root;
  return {
      BytesIn(traits.send, call, is_root, size, EndOf(call.send_bytes, call.send_at)),
      BytesIn(traits.recv, call, is_root, size, EndOf(call.recv_bytes, call.recv_at)),
  };
}

std::string WhyNoBuffer(const DeviceMemory& memory, const void* buffer, uint64_t bytes,
                        std::string_view role) {
  if (bytes == 0 || memory.ForCollectives(buffer, bytes)) return "";
  const std::string why = memory.WhyNot(buffer, bytes);
  return why.empty() ? fmt::format("its {} buffer of {} bytes is not in its HBM", role, bytes)
                     : fmt::format("the {} bytes of its {} buffer {}", bytes, role, why);
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
