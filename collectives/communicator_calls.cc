// The collectives of Communicator: each says what it is as a Call.
#include <initializer_list>

#include "collectives/communicator_impl.h"
#include "collectives/extent.h"

namespace npumesh {
namespace {

Call MakeCall(CollectiveKind kind, const void* send, void* recv, uint64_t count, DataType dtype,
              ReduceOp op = ReduceOp::kSum, int root = 0) {
  Call call{kind, dtype, op, root, count};
  call.send = static_cast<const std::byte*>(send);
  call.recv = static_cast<std::byte*>(recv);
  return call;
}

// Blocks by group rank, in bytes. Lists of a wrong length are filled up, so that the members can
// still meet and be told.
struct Blocks {
  std::vector<uint64_t> bytes;
  std::vector<uint64_t> at;

  Blocks(std::span<const uint64_t> counts, std::span<const uint64_t> displacements, DataType dtype,
         int size)
      : bytes(InBytes(counts, dtype)), at(InBytes(displacements, dtype)) {
    bytes.resize(static_cast<size_t>(size));
    at.resize(static_cast<size_t>(size));
  }
  // Blocks that follow each other.
  Blocks(std::span<const uint64_t> counts, DataType dtype)
      : bytes(InBytes(counts, dtype)), at(Packed(bytes)) {}
  // The same block for every rank.
  Blocks(uint64_t count, DataType dtype, int size)
      : Blocks(std::vector<uint64_t>(static_cast<size_t>(size), count), {}, dtype, size) {}
};

void SetBlocks(const Blocks& send, const Blocks& recv, Call* call) {
  call->send_bytes = send.bytes;
  call->send_at = send.at;
  call->recv_bytes = recv.bytes;
  call->recv_at = recv.at;
}

// What is wrong with a list that should have `expected` entries; empty: nothing.
std::string Complaint(std::string_view list, size_t entries, size_t expected) {
  if (entries == expected) return {};
  return fmt::format("{}: {} entries, expected {}", list, entries, expected);
}

std::string FirstOf(std::initializer_list<std::string> complaints) {
  for (const std::string& complaint : complaints) {
    if (!complaint.empty()) return complaint;
  }
  return {};
}

}  // namespace

Status Communicator::AllReduce(const void* send, void* recv, uint64_t count, DataType dtype,
                               ReduceOp op, std::string_view node) {
  return impl_->Run(MakeCall(CollectiveKind::kAllReduce, send, recv, count, dtype, op), node);
}

Status Communicator::Reduce(const void* send, void* recv, uint64_t count, DataType dtype,
                            ReduceOp op, int root, std::string_view node) {
  return impl_->Run(MakeCall(CollectiveKind::kReduce, send, recv, count, dtype, op, root), node);
}

Status Communicator::AllGather(const void* send, void* recv, uint64_t send_count, DataType dtype,
                               std::string_view node) {
  return impl_->Run(MakeCall(CollectiveKind::kAllGather, send, recv, send_count, dtype), node);
}

Status Communicator::AllGatherV(const void* send, uint64_t send_count, void* recv,
                                std::span<const uint64_t> recv_counts,
                                std::span<const uint64_t> recv_displacements, DataType dtype,
                                std::string_view node) {
  const auto n = static_cast<size_t>(size());
  const Blocks out(send_count, dtype, size());
  const Blocks in(recv_counts, recv_displacements, dtype, size());
  Call call = MakeCall(CollectiveKind::kAllGatherV, send, recv, 0, dtype);
  SetBlocks(out, in, &call);
  return impl_->Run(call, node,
                    FirstOf({Complaint("recv_counts", recv_counts.size(), n),
                             Complaint("recv_displacements", recv_displacements.size(), n)}));
}

Status Communicator::ReduceScatter(const void* send, void* recv, uint64_t recv_count,
                                   DataType dtype, ReduceOp op, std::string_view node) {
  return impl_->Run(MakeCall(CollectiveKind::kReduceScatter, send, recv, recv_count, dtype, op),
                    node);
}

Status Communicator::ReduceScatterV(const void* send, std::span<const uint64_t> send_counts,
                                    std::span<const uint64_t> send_displacements, void* recv,
                                    uint64_t recv_count, DataType dtype, ReduceOp op,
                                    std::string_view node) {
  const auto n = static_cast<size_t>(size());
  const Blocks out(send_counts, send_displacements, dtype, size());
  const Blocks in(recv_count, dtype, size());
  Call call = MakeCall(CollectiveKind::kReduceScatterV, send, recv, 0, dtype, op);
  SetBlocks(out, in, &call);
  return impl_->Run(call, node,
                    FirstOf({Complaint("send_counts", send_counts.size(), n),
                             Complaint("send_displacements", send_displacements.size(), n)}));
}

Status Communicator::Broadcast(void* buffer, uint64_t count, DataType dtype, int root,
                               std::string_view node) {
  return impl_->Run(
      MakeCall(CollectiveKind::kBroadcast, buffer, buffer, count, dtype, ReduceOp::kSum, root),
      node);
}

Status Communicator::Scatter(const void* send, void* recv, uint64_t recv_count, DataType dtype,
                             int root, std::string_view node) {
  return impl_->Run(
      MakeCall(CollectiveKind::kScatter, send, recv, recv_count, dtype, ReduceOp::kSum, root),
      node);
}

Status Communicator::AllToAll(const void* send, void* recv, uint64_t count, DataType dtype,
                              std::string_view node) {
  return impl_->Run(MakeCall(CollectiveKind::kAllToAll, send, recv, count, dtype), node);
}

Status Communicator::AllToAllV(const void* send, std::span<const uint64_t> send_counts,
                               std::span<const uint64_t> send_displacements, void* recv,
                               std::span<const uint64_t> recv_counts,
                               std::span<const uint64_t> recv_displacements, DataType dtype,
                               std::string_view node) {
  const auto n = static_cast<size_t>(size());
  const Blocks out(send_counts, send_displacements, dtype, size());
  const Blocks in(recv_counts, recv_displacements, dtype, size());
  Call call = MakeCall(CollectiveKind::kAllToAllV, send, recv, 0, dtype);
  SetBlocks(out, in, &call);
  return impl_->Run(call, node,
                    FirstOf({Complaint("send_counts", send_counts.size(), n),
                             Complaint("send_displacements", send_displacements.size(), n),
                             Complaint("recv_counts", recv_counts.size(), n),
                             Complaint("recv_displacements", recv_displacements.size(), n)}));
}

Status Communicator::AllToAllVC(const void* send, std::span<const uint64_t> matrix, void* recv,
                                DataType dtype, std::string_view node) {
  const auto n = static_cast<size_t>(size());
  const auto me = static_cast<size_t>(rank());
  const std::string complaint = Complaint("send_count_matrix", matrix.size(), n * n);
  std::vector<uint64_t> row(n);
  std::vector<uint64_t> column(n);
  for (size_t r = 0; complaint.empty() && r < n; ++r) {
    row[r] = matrix[me * n + r];
    column[r] = matrix[r * n + me];
  }
  const Blocks out(row, dtype);
  const Blocks in(column, dtype);
  Call call = MakeCall(CollectiveKind::kAllToAllVC, send, recv, 0, dtype);
  SetBlocks(out, in, &call);
  return impl_->Run(call, node, complaint);
}

Status Communicator::Barrier(std::string_view node) {
  return impl_->Run(MakeCall(CollectiveKind::kBarrier, nullptr, nullptr, 0, DataType::kInt8), node);
}

}  // namespace npumesh
