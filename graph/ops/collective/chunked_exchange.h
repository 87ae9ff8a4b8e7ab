// Tensors that travel between the ranks of a group in chunks, while others are computed.
#ifndef NPUMESH_GRAPH_OPS_COLLECTIVE_CHUNKED_EXCHANGE_H_
#define NPUMESH_GRAPH_OPS_COLLECTIVE_CHUNKED_EXCHANGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "collectives/communicator.h"
#include "runtime/base/status.h"
#include "runtime/device/stream.h"

namespace npumesh::fused {

// How many equal chunks `rows` rows of together `bytes` on the wire are cut into. A chunk is large
// enough for the cost of another collective to vanish. The same on all ranks if the arguments are.
int64_t ChunksOf(int64_t rows, uint64_t bytes);
// The same for chunks that need not be equal.
int64_t ChunksOf(uint64_t bytes);

// In place of what has nothing to do.
struct Nothing {
  template <typename... Args>
  void operator()(Args...) const {}
};

// Chunks of a product that travel between the ranks while the next one is computed.
//
// A kernel sends its chunks in order; a second thread does the collectives. With one chunk there is
// no such thread, and sending does the work at once. No allocation once the kernel ran.
class ChunkTravel {
 public:
  explicit ChunkTravel(int64_t chunks);

  int64_t chunks() const { return static_cast<int64_t>(statuses_.size()); }

  // Has `work(chunk)` done after the chunks that were sent before. `work`, a Status(int64_t), must
  // stay until AwaitAll.
  template <typename Work>
  void Send(int64_t chunk, const Work& work) {
    Status& status = statuses_[static_cast<size_t>(chunk)];
    if (stream_ == nullptr) {
      status = work(chunk);
      return;
    }
    stream_->Enqueue([&status, &work, chunk] {
      status = work(chunk);
      return Status();
    });
    Depart(chunk);
  }

  // Calls prepare(chunk) for every chunk and has work(chunk) done after it, then meanwhile(), then
  // use(chunk) for every chunk that has arrived. All but `work` return Status or nothing and run on
  // the calling thread, in order. Blocks until everything has arrived. The first failure of the
  // calling thread, else of `work`.
  template <typename Prepare, typename Work, typename Use = Nothing, typename Meanwhile = Nothing>
  Status Run(const Prepare& prepare, const Work& work, const Use& use = {},
             const Meanwhile& meanwhile = {}) {
    constexpr bool kUses = !std::is_same_v<Use, Nothing>;
    Status done;
    for (int64_t chunk = 0; chunk < chunks() && done.ok(); ++chunk) {
      done = StatusOf(prepare, chunk);
      if (done.ok()) Send(chunk, work);
    }
    if (done.ok()) done = StatusOf(meanwhile);
    for (int64_t chunk = 0; kUses && chunk < chunks() && done.ok(); ++chunk) {
      done = Await(chunk);
      if (done.ok()) done = StatusOf(use, chunk);
    }
    const Status arrived = AwaitAll();
    return done.ok() ? arrived : done;
  }

  // Blocks until the chunk has arrived; its failure.
  Status Await(int64_t chunk);
  // Blocks until everything that was sent has arrived, and gets ready for the next run; the first
  // failure.
  Status AwaitAll();

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
  void Depart(int64_t chunk);

  std::unique_ptr<Stream> stream_;  // null: one chunk
  std::vector<Event> arrived_;      // by chunk
  std::vector<Status> statuses_;    // by chunk
};

// Rows that travel between all ranks of a group in chunks, each while others are made or used.
//
// In a chunk a rank has a block of rows for every rank of its group, itself included, and gets one
// from each. What comes first is to say how many rows those are and where they lie; then Run sends
// one chunk after the other.
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

  // Collective over the group. As ChunkTravel::Run: prepare(chunk) fills its part of `send`, and
  // use(chunk) finds the chunk in `recv`. After a failure nothing is under way.
  template <typename Prepare, typename Use, typename Meanwhile = Nothing>
  Status Run(Communicator& group, const std::string& node, const std::byte* send, std::byte* recv,
             const Prepare& prepare, const Use& use, const Meanwhile& meanwhile = {}) {
    const auto exchange = [&](int64_t chunk) { return Exchange(group, node, send, recv, chunk); };
    return travel_.Run(prepare, exchange, use, meanwhile);
  }

 private:
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
