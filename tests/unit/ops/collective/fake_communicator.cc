#include "tests/unit/ops/collective/fake_communicator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <map>

namespace npumesh {

struct Communicator::Impl {
  std::string name;
  std::vector<int> world_ranks;
};

namespace {

std::map<const Communicator*, std::vector<std::string>>& Calls() {
  static std::map<const Communicator*, std::vector<std::string>> calls;
  return calls;
}

uint64_t Bytes(uint64_t count, DataType dtype) {
  return BytesOf(dtype, count).value();
}

void Copy(void* to, const void* from, uint64_t bytes) {
  if (bytes > 0) std::memmove(to, from, bytes);
}

std::string_view OpName(ReduceOp op) {
  return op == ReduceOp::kSum    ? "sum"
         : op == ReduceOp::kProd ? "prod"
         : op == ReduceOp::kMax  ? "max"
                                 : "min";
}

}  // namespace

// The World and the memory are never read.
Result<std::unique_ptr<Communicator>> Communicator::Create(World&, DeviceMemory&, std::string name,
                                                           std::vector<int> world_ranks,
                                                           const CommunicatorOptions&) {
  auto impl = std::make_unique<Impl>(Impl{std::move(name), std::move(world_ranks)});
  return std::unique_ptr<Communicator>(new Communicator(std::move(impl)));
}

Communicator::Communicator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Communicator::~Communicator() {
  Calls().erase(this);
}

int Communicator::rank() const {
  return 0;
}
int Communicator::size() const {
  return static_cast<int>(impl_->world_ranks.size());
}
const std::string& Communicator::name() const {
  return impl_->name;
}
const std::vector<int>& Communicator::world_ranks() const {
  return impl_->world_ranks;
}

Status Communicator::AllReduce(const void* send, void* recv, uint64_t count, DataType dtype,
                               ReduceOp op, std::string_view node) {
  Calls()[this].push_back(
      fmt::format("AllReduce count={} {} {} node={}", count, Name(dtype), OpName(op), node));
  Copy(recv, send, Bytes(count, dtype));
  return Status();
}

Status Communicator::AllGather(const void* send, void* recv, uint64_t send_count, DataType dtype,
                               std::string_view node) {
  Calls()[this].push_back(
      fmt::format("AllGather count={} {} node={}", send_count, Name(dtype), node));
  const uint64_t bytes = Bytes(send_count, dtype);
  for (int r = 0; r < size(); ++r) {
    Copy(static_cast<std::byte*>(recv) + static_cast<uint64_t>(r) * bytes, send, bytes);
  }
  return Status();
}

Status Communicator::ReduceScatter(const void* send, void* recv, uint64_t recv_count,
                                   DataType dtype, ReduceOp op, std::string_view node) {
  Calls()[this].push_back(fmt::format("ReduceScatter count={} {} {} node={}", recv_count,
                                      Name(dtype), OpName(op), node));
  Copy(recv, send, Bytes(recv_count, dtype));
  return Status();
}

Status Communicator::Broadcast(void*, uint64_t count, DataType dtype, int root,
                               std::string_view node) {
  Calls()[this].push_back(
      fmt::format("Broadcast count={} {} root={} node={}", count, Name(dtype), root, node));
  return Status();
}

Status Communicator::AllToAll(const void* send, void* recv, uint64_t count, DataType dtype,
                              std::string_view node) {
  Calls()[this].push_back(fmt::format("AllToAll count={} {} node={}", count, Name(dtype), node));
  Copy(recv, send, Bytes(count, dtype) * static_cast<uint64_t>(size()));
  return Status();
}

Status Communicator::AllToAllV(const void* send, std::span<const uint64_t> send_counts,
                               std::span<const uint64_t> send_displacements, void* recv,
                               std::span<const uint64_t> recv_counts,
                               std::span<const uint64_t> recv_displacements, DataType dtype,
                               std::string_view node) {
  Calls()[this].push_back(fmt::format("AllToAllV send={}@{} recv={}@{} {} node={}", send_counts,
                                      send_displacements, recv_counts, recv_displacements,
                                      Name(dtype), node));
  for (size_t r = 0; r < recv_counts.size(); ++r) {
    Copy(static_cast<std::byte*>(recv) + Bytes(recv_displacements[r], dtype),
         static_cast<const std::byte*>(send) + Bytes(send_displacements[r], dtype),
         Bytes(std::min(send_counts[r], recv_counts[r]), dtype));
  }
  return Status();
}

Status Communicator::AllToAllVC(const void* send, std::span<const uint64_t> matrix, void* recv,
                                DataType dtype, std::string_view node) {
  Calls()[this].push_back(
      fmt::format("AllToAllVC matrix={} {} node={}", matrix, Name(dtype), node));
  uint64_t at = 0;
  for (int r = 0; r < size(); ++r) {
    const uint64_t bytes = Bytes(matrix[static_cast<size_t>(r * size())], dtype);
    Copy(static_cast<std::byte*>(recv) + at, send, std::min(bytes, Bytes(matrix[0], dtype)));
    at += bytes;
  }
  return Status();
}

Status Communicator::Reduce(const void* send, void* recv, uint64_t count, DataType dtype,
                            ReduceOp op, int root, std::string_view node) {
  Calls()[this].push_back(fmt::format("Reduce count={} {} {} root={} node={}", count, Name(dtype),
                                      OpName(op), root, node));
  if (root == rank()) Copy(recv, send, Bytes(count, dtype));
  return Status();
}

Status Communicator::Scatter(const void*, void*, uint64_t recv_count, DataType dtype, int root,
                             std::string_view node) {
  Calls()[this].push_back(
      fmt::format("Scatter count={} {} root={} node={}", recv_count, Name(dtype), root, node));
  return Status();
}

Status Communicator::AllGatherV(const void* send, uint64_t send_count, void* recv,
                                std::span<const uint64_t> recv_counts,
                                std::span<const uint64_t> recv_displacements, DataType dtype,
                                std::string_view node) {
  Calls()[this].push_back(fmt::format("AllGatherV count={} recv={}@{} {} node={}", send_count,
                                      recv_counts, recv_displacements, Name(dtype), node));
  for (size_t r = 0; r < recv_counts.size(); ++r) {
    Copy(static_cast<std::byte*>(recv) + Bytes(recv_displacements[r], dtype), send,
         Bytes(std::min(send_count, recv_counts[r]), dtype));
  }
  return Status();
}

Status Communicator::ReduceScatterV(const void* send, std::span<const uint64_t> send_counts,
                                    std::span<const uint64_t> send_displacements, void* recv,
                                    uint64_t recv_count, DataType dtype, ReduceOp op,
                                    std::string_view node) {
  Calls()[this].push_back(fmt::format("ReduceScatterV send={}@{} count={} {} {} node={}",
                                      send_counts, send_displacements, recv_count, Name(dtype),
                                      OpName(op), node));
  Copy(recv, static_cast<const std::byte*>(send) + Bytes(send_displacements[0], dtype),
       Bytes(recv_count, dtype));
  return Status();
}

Status Communicator::Send(const void*, uint64_t count, DataType dtype, int peer,
                          std::string_view node) {
  Calls()[this].push_back(
      fmt::format("Send count={} {} to={} node={}", count, Name(dtype), peer, node));
  return Status();
}

Status Communicator::Recv(void* buffer, uint64_t count, DataType dtype, int peer,
                          std::string_view node) {
  Calls()[this].push_back(
      fmt::format("Recv count={} {} from={} node={}", count, Name(dtype), peer, node));
  std::memset(buffer, 1, Bytes(count, dtype));
  return Status();
}

Status Communicator::BatchSendRecv(std::span<const SendRecvItem> items, std::string_view node) {
  Calls()[this].push_back(fmt::format("BatchSendRecv items={} node={}", items.size(), node));
  return Status();
}

Status Communicator::Barrier(std::string_view) {
  return Status();
}

Communicator::Totals Communicator::totals() const {
  return {};
}

std::unique_ptr<Communicator> MakeFakeCommunicator(std::string name, std::vector<int> world_ranks) {
  alignas(64) static std::byte nothing[64];
  auto& world = *reinterpret_cast<World*>(nothing);
  auto& memory = *reinterpret_cast<DeviceMemory*>(nothing);
  return Communicator::Create(world, memory, std::move(name), std::move(world_ranks)).value();
}

std::vector<std::string>& CallsOf(Communicator& communicator) {
  return Calls()[&communicator];
}

}  // namespace npumesh
