#include "graph/ops/collective/chunked_exchange.h"

#include <algorithm>

namespace npumesh::fused {
namespace {

// A collective of this size takes some hundred microseconds, a hand-over to a thread less than ten.
constexpr uint64_t kLeastBytes = uint64_t{1} << 20;
constexpr uint64_t kMostChunks = 8;

}  // namespace

int64_t ChunksOf(int64_t rows, uint64_t bytes) {
  int64_t chunks = ChunksOf(bytes);
  while (chunks > 1 && rows % chunks != 0) --chunks;
  return chunks;
}

int64_t ChunksOf(uint64_t bytes) {
  return static_cast<int64_t>(std::clamp<uint64_t>(bytes / kLeastBytes, 1, kMostChunks));
}

ChunkTravel::ChunkTravel(int64_t chunks) : statuses_(static_cast<size_t>(chunks)) {
  if (chunks == 1) return;
  stream_ = std::make_unique<Stream>();
  for (int64_t i = 0; i < chunks; ++i) arrived_.emplace_back();
}

void ChunkTravel::Depart(int64_t chunk) {
  const Event& arrived = arrived_[static_cast<size_t>(chunk)];
  stream_->Record(arrived);
  // Asking wakes the stream's thread, which would otherwise give this one time to come and wait.
  static_cast<void>(arrived.Done());
}

Status ChunkTravel::Await(int64_t chunk) {
  if (stream_ != nullptr) arrived_[static_cast<size_t>(chunk)].Synchronize();
  return statuses_[static_cast<size_t>(chunk)];
}

Status ChunkTravel::AwaitAll() {
  if (stream_ != nullptr) static_cast<void>(stream_->Synchronize());
  Status first;
  for (Status& status : statuses_) {
    if (first.ok()) first = status;
    status = Status();
  }
  return first;
}

RowTravel::RowTravel(int64_t ranks, int64_t chunks, int64_t row_bytes)
    : ranks_(static_cast<size_t>(ranks)),
      row_bytes_(static_cast<uint64_t>(row_bytes)),
      travel_(chunks) {
  for (auto* list : {&send_counts_, &send_at_, &recv_counts_, &recv_at_}) {
    list->resize(ranks_ * static_cast<size_t>(chunks));
  }
}

void RowTravel::SetRows(int64_t chunk, int64_t rank, int64_t sent, int64_t received) {
  send_counts_[Index(chunk, rank)] = static_cast<uint64_t>(sent) * row_bytes_;
  recv_counts_[Index(chunk, rank)] = static_cast<uint64_t>(received) * row_bytes_;
}

void RowTravel::SetPlace(int64_t chunk, int64_t rank, int64_t send_row, int64_t recv_row) {
  send_at_[Index(chunk, rank)] = static_cast<uint64_t>(send_row) * row_bytes_;
  recv_at_[Index(chunk, rank)] = static_cast<uint64_t>(recv_row) * row_bytes_;
}

void RowTravel::LineUp() {
  uint64_t sent = 0;
  uint64_t received = 0;
  for (size_t i = 0; i < send_counts_.size(); ++i) {
    send_at_[i] = sent;
    recv_at_[i] = received;
    sent += send_counts_[i];
    received += recv_counts_[i];
  }
}

Status RowTravel::Exchange(Communicator& group, const std::string& node, const std::byte* send,
                           std::byte* recv, int64_t chunk) const {
  return group.AllToAllV(send, Of(send_counts_, chunk), Of(send_at_, chunk), recv,
                         Of(recv_counts_, chunk), Of(recv_at_, chunk), DataType::kInt8, node);
}

}  // namespace npumesh::fused
