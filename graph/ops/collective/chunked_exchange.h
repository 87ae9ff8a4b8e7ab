// Rows that travel between all ranks of a group in chunks, each while others are made or used.
//
// In a chunk a rank has a block of rows for every rank of its group, itself included, and gets one
// from each. What comes first is to say how many rows those are and where they lie; then Run sends
// one chunk after the other.
#ifndef NPUMESH_GRAPH_OPS_COLLECTIVE_CHUNKED_EXCHANGE_H_
#define NPUMESH_GRAPH_OPS_COLLECTIVE_CHUNKED_EXCHANGE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "collectives/communicator.h"
#include "graph/ops/collective/chunk_pipeline.h"

namespace npumesh::fused {

class RowTravel {
 public:
  // The number of chunks and the size of a row must be the same on all ranks.
  RowTravel(int64_t ranks, int64_t chunks, int64_t row_bytes);

  int64_t chunks() const { return travel_.chunks(); }

  // Rows for `rank` and from it.
  void SetRows(int64_t chunk, int64_t rank, int64_t sent, int64_t received);
  // Where they begin in the two buffers, in rows.
  void SetPlace(int64_t chunk, int64_t rank, int64_t send_row, int64_t recv_row);
  // In place of SetPlace: blocks follow each other in both buffers, by chunk, then by rank.
  void LineUp();
  // In place of all three: every block has `rows` rows; send(chunk, rank) and recv(chunk, rank) say
  // how many blocks lie in front of it.
  template <typename Send, typename Recv>
  void SetBlocks(int64_t rows, const Send& send, const Recv& recv) {
    for (int64_t chunk = 0; chunk < chunks(); ++chunk) {
      for (int64_t rank = 0; rank < static_cast<int64_t>(ranks_); ++rank) {
        SetRows(chunk, rank, rows, rows);
        SetPlace(chunk, rank, send(chunk, rank) * rows, recv(chunk, rank) * rows);
      }
    }
  }

  // Where a block begins, in bytes.
  uint64_t send_at(int64_t chunk, int64_t rank) const { return send_at_[Index(chunk, rank)]; }
  uint64_t recv_at(int64_t chunk, int64_t rank) const { return recv_at_[Index(chunk, rank)]; }

  // Collective over the group. Calls prepare(chunk) for every chunk, which fills its part of
  // `send` and whose end lets it travel, meanwhile(), then use(chunk) for every chunk that has
  // arrived in `recv`. They return Status or nothing and run on the calling thread, in order, while
  // other chunks are on their way. After a failure nothing is under way.
  template <typename Prepare, typename Use, typename Meanwhile = void (*)()>
  Status Run(
      Communicator& group, const std::string& node, const std::byte* send, std::byte* recv,
      const Prepare& prepare, const Use& use, const Meanwhile& meanwhile = [] {}) {
    const auto exchange = [&](int64_t chunk) { return Exchange(group, node, send, recv, chunk); };
    Status done;
    for (int64_t chunk = 0; chunk < chunks() && done.ok(); ++chunk) {
      done = StatusOf(prepare, chunk);
      if (done.ok()) travel_.Send(chunk, exchange);
    }
    if (done.ok()) done = StatusOf(meanwhile);
    for (int64_t chunk = 0; chunk < chunks() && done.ok(); ++chunk) {
      done = travel_.Await(chunk);
      if (done.ok()) done = StatusOf(use, chunk);
    }
    const Status arrived = travel_.AwaitAll();
    return done.ok() ? arrived : done;
  }

 private:
  template <typename Call, typename... Args>
  static Status StatusOf(const Call& call, Args... args) {
    if constexpr (std::is_void_v<decltype(call(args...))>) {
      call(args...);
      return Status();
    } else {
      return call(args...);
    }
  }
  size_t Index(int64_t chunk, int64_t rank) const {
    return static_cast<size_t>(chunk) * ranks_ + static_cast<size_t>(rank);
  }
  std::span<const uint64_t> Of(const std::vector<uint64_t>& list, int64_t chunk) const {
    return std::span<const uint64_t>(list).subspan(Index(chunk, 0), ranks_);
  }
  Status Exchange(Communicator& group, const std::string& node, const std::byte* send,
                  std::byte* recv, int64_t chunk) const;

  size_t ranks_;
  uint64_t row_bytes_;
  ChunkTravel travel_;
  // Bytes, by chunk and rank.
  std::vector<uint64_t> send_counts_, send_at_, recv_counts_, recv_at_;
};

}  // namespace npumesh::fused

#endif  // NPUMESH_GRAPH_OPS_COLLECTIVE_CHUNKED_EXCHANGE_H_
