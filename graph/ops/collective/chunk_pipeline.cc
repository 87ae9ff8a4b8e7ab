#include "graph/ops/collective/chunk_pipeline.h"

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

}  // namespace npumesh::fused
