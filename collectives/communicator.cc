#include "collectives/communicator.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "collectives/algorithms/algorithm.h"
#include "collectives/contract/meeting.h"

namespace npumesh {

struct Communicator::Impl {
  World& world;
  DeviceMemory& memory;
  std::string name;
  std::vector<int> world_ranks;
  int rank = 0;
  std::unique_ptr<Meeting> meeting;
  std::vector<std::byte> scratch = std::vector<std::byte>(kSmallBytes);
  Status broken;  // the first error; everything after it fails with it
  Totals totals;

  Status Run(const Call& call, std::string_view node);
  Status Perform(const Call& call, std::string_view node);
  // Why this rank cannot take part; OK when it can.
  Status Refuse(const Call& call) const;
  Status CheckBuffer(const void* buffer, uint64_t bytes, std::string_view role) const;
  int size() const { return static_cast<int>(world_ranks.size()); }
};

namespace {

bool Reduces(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduceScatter;
}

// One past the last byte of the blocks.
uint64_t EndOf(std::span<const uint64_t> bytes, std::span<const uint64_t> at) {
  uint64_t end = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != 0) end = std::max(end, at[i] + bytes[i]);
  }
  return end;
}

struct Extent {
  uint64_t send = 0;
  uint64_t recv = 0;
};

// Bytes a call touches behind its two pointers.
Extent ExtentOf(const Call& call, int size) {
  const uint64_t bytes = call.bytes();
  const uint64_t all = bytes * static_cast<uint64_t>(size);
  switch (call.kind) {
    case CollectiveKind::kAllReduce:
      return {bytes, bytes};
    case CollectiveKind::kAllGather:
      return {bytes, all};
    case CollectiveKind::kReduceScatter:
      return {all, bytes};
    case CollectiveKind::kBroadcast:
      return {bytes, bytes};
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kAllToAllV:
      return {EndOf(call.send_bytes, call.send_at), EndOf(call.recv_bytes, call.recv_at)};
    case CollectiveKind::kBarrier:
    case CollectiveKind::kNone:
      break;
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Communicator>> Communicator::Create(World& world, DeviceMemory& memory,
                                                           std::string name,
                                                           std::vector<int> world_ranks) {
  const std::set<int> members(world_ranks.begin(), world_ranks.end());
  const auto me = std::find(world_ranks.begin(), world_ranks.end(), world.rank());
  if (me == world_ranks.end()) {
    return Error(Code::kInvalidArgument, "group \"{}\" (ranks {}): rank {} is no member", name,
                 RangeText(world_ranks), world.rank());
  }
  if (members.size() != world_ranks.size() || *members.begin() < 0 ||
      *members.rbegin() >= world.size()) {
    return Error(Code::kInvalidArgument,
                 "group \"{}\" (ranks {}): expected different ranks of 0 to {}", name,
                 RangeText(world_ranks), world.size() - 1);
  }
  auto impl = std::unique_ptr<Impl>(new Impl{world, memory, std::move(name), world_ranks});
  impl->rank = static_cast<int>(me - world_ranks.begin());
  NPUMESH_ASSIGN_OR_RETURN(impl->meeting, Meeting::Open(world, impl->name, impl->world_ranks));
  return std::unique_ptr<Communicator>(new Communicator(std::move(impl)));
}

Communicator::Communicator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Communicator::~Communicator() = default;

int Communicator::rank() const {
  return impl_->rank;
}
int Communicator::size() const {
  return impl_->size();
}
const std::string& Communicator::name() const {
  return impl_->name;
}
const std::vector<int>& Communicator::world_ranks() const {
  return impl_->world_ranks;
}
Communicator::Totals Communicator::totals() const {
  return impl_->totals;
}

Status Communicator::Impl::CheckBuffer(const void* buffer, uint64_t bytes,
                                       std::string_view role) const {
  if (bytes == 0 || memory.Contains(buffer, bytes)) return Status();
  return Error(Code::kInvalidArgument, "its {} buffer of {} bytes is not in its HBM", role, bytes);
}

Status Communicator::Impl::Refuse(const Call& call) const {
  const std::optional<uint64_t> bytes = BytesOf(call.dtype, call.count);
  if (BitsOf(call.dtype) % 8 != 0 || BitsOf(call.dtype) == 0) {
    return Error(Code::kUnsupported, "dtype {} cannot travel", Name(call.dtype));
  }
  if (!bytes || *bytes > (uint64_t{1} << 62) / static_cast<uint64_t>(size())) {
    return Error(Code::kInvalidArgument, "{} elements are more than 62 bits of bytes", call.count);
  }
  if (Reduces(call.kind) && FindReduce(call.dtype, call.op) == nullptr) {
    return Error(Code::kUnsupported, "no {} of {}", Name(call.op), Name(call.dtype));
  }
  if (call.root < 0 || call.root >= size()) {
    return Error(Code::kInvalidArgument, "root {} is outside the group of {}", call.root, size());
  }
  const Extent extent = ExtentOf(call, size());
  NPUMESH_RETURN_IF_ERROR(CheckBuffer(call.send, extent.send, "send"));
  return CheckBuffer(call.recv, extent.recv, "receive");
}

Status Communicator::Impl::Run(const Call& call, std::string_view node) {
  NPUMESH_RETURN_IF_ERROR(broken);
  const auto start = SteadyClock::now();
  broken = Perform(call, node);
  totals.seconds += std::chrono::duration<double>(SteadyClock::now() - start).count();
  totals.calls += 1;
  if (broken.ok()) totals.bytes += ExtentOf(call, size()).send;
  return broken;
}

Status Communicator::Impl::Perform(const Call& call, std::string_view node) {
  Request request;
  request.kind = call.kind;
  request.dtype = static_cast<int32_t>(call.dtype);
  request.op = static_cast<uint32_t>(call.op);
  request.root = call.root;
  request.count = call.count;
  request.set_node(node);
  Buffers buffers;
  if (Status refusal = Refuse(call); !refusal.ok()) {
    request.set_refusal(refusal.message());
  } else {
    const Extent extent = ExtentOf(call, size());
    if (extent.send != 0) buffers.send_offset = memory.OffsetOf(call.send);
    if (extent.recv != 0) buffers.recv_offset = memory.OffsetOf(call.recv);
    buffers.send_bytes = call.send_bytes;
    buffers.send_at = call.send_at;
    buffers.recv_bytes = call.recv_bytes;
  }
  NPUMESH_RETURN_IF_ERROR(meeting->Arrive(request, buffers, {}));

  const Facts facts{size(), meeting->in_window(), call.bytes(), Reduces(call.kind)};
  const Env& env = world.env();
  const Algorithm& algorithm = Choose(call.kind, facts, env.hccl_algo, env.trace);
  const Deadline deadline =
      env.exec_timeout == kNoTimeout ? Deadline::Never() : Deadline::After(env.exec_timeout);
  Members members{rank, size(), world, memory, *meeting, world_ranks, scratch, deadline};
  const auto who = [&](Status status) {
    return status.WithContext(fmt::format("{} \"{}\" (group {}, call {}, {})", Name(call.kind),
                                          node, name, meeting->sequence(), algorithm.name));
  };
  NPUMESH_RETURN_IF_ERROR(who(algorithm.run(call, members)));
  NPUMESH_RETURN_IF_ERROR(meeting->Depart());
  return algorithm.finish ? who(algorithm.finish(call, members)) : Status();
}

Status Communicator::AllReduce(const void* send, void* recv, uint64_t count, DataType dtype,
                               ReduceOp op, std::string_view node) {
  Call call{CollectiveKind::kAllReduce, dtype, op, 0, count};
  call.send = static_cast<const std::byte*>(send);
  call.recv = static_cast<std::byte*>(recv);
  return impl_->Run(call, node);
}

Status Communicator::AllGather(const void* send, void* recv, uint64_t send_count, DataType dtype,
                               std::string_view node) {
  Call call{CollectiveKind::kAllGather, dtype, ReduceOp::kSum, 0, send_count};
  call.send = static_cast<const std::byte*>(send);
  call.recv = static_cast<std::byte*>(recv);
  return impl_->Run(call, node);
}

Status Communicator::ReduceScatter(const void* send, void* recv, uint64_t recv_count,
                                   DataType dtype, ReduceOp op, std::string_view node) {
  Call call{CollectiveKind::kReduceScatter, dtype, op, 0, recv_count};
  call.send = static_cast<const std::byte*>(send);
  call.recv = static_cast<std::byte*>(recv);
  return impl_->Run(call, node);
}

Status Communicator::Broadcast(void* buffer, uint64_t count, DataType dtype, int root,
                               std::string_view node) {
  Call call{CollectiveKind::kBroadcast, dtype, ReduceOp::kSum, root, count};
  call.send = static_cast<const std::byte*>(buffer);
  call.recv = static_cast<std::byte*>(buffer);
  return impl_->Run(call, node);
}

Status Communicator::AllToAll(const void* send, void* recv, uint64_t count, DataType dtype,
                              std::string_view node) {
  const std::vector<uint64_t> bytes(static_cast<size_t>(size()), BytesOf(dtype, count).value_or(0));
  std::vector<uint64_t> at(bytes.size());
  std::exclusive_scan(bytes.begin(), bytes.end(), at.begin(), uint64_t{0});
  Call call{CollectiveKind::kAllToAll, dtype, ReduceOp::kSum, 0, count};
  call.send = static_cast<const std::byte*>(send);
  call.recv = static_cast<std::byte*>(recv);
  call.send_bytes = call.recv_bytes = bytes;
  call.send_at = call.recv_at = at;
  return impl_->Run(call, node);
}

Status Communicator::AllToAllV(const void* send, std::span<const uint64_t> send_counts,
                               std::span<const uint64_t> send_displacements, void* recv,
                               std::span<const uint64_t> recv_counts,
                               std::span<const uint64_t> recv_displacements, DataType dtype,
                               std::string_view node) {
  const uint64_t width = BytesOf(dtype, 1).value_or(0);
  const auto in_bytes = [&](std::span<const uint64_t> counts) {
    std::vector<uint64_t> bytes(static_cast<size_t>(size()), 0);
    const size_t n = std::min(bytes.size(), counts.size());
    for (size_t i = 0; i < n; ++i) bytes[i] = counts[i] * width;
    return bytes;
  };
  const std::vector<uint64_t> send_bytes = in_bytes(send_counts);
  const std::vector<uint64_t> send_at = in_bytes(send_displacements);
  const std::vector<uint64_t> recv_bytes = in_bytes(recv_counts);
  const std::vector<uint64_t> recv_at = in_bytes(recv_displacements);
  Call call{CollectiveKind::kAllToAllV, dtype, ReduceOp::kSum, 0, 0};
  call.send = static_cast<const std::byte*>(send);
  call.recv = static_cast<std::byte*>(recv);
  call.send_bytes = send_bytes;
  call.send_at = send_at;
  call.recv_bytes = recv_bytes;
  call.recv_at = recv_at;
  return impl_->Run(call, node);
}

Status Communicator::Barrier(std::string_view node) {
  return impl_->Run(Call{CollectiveKind::kBarrier, DataType::kInt8}, node);
}

}  // namespace npumesh
