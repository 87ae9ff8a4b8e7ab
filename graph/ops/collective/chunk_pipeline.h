// Chunks of a product that travel between the ranks while the next one is computed.
//
// A kernel sends its chunks in order; a second thread does the collectives. With one chunk there is
// no such thread, and sending does the work at once. No allocation once the kernel ran.
#ifndef NPUMESH_GRAPH_OPS_COLLECTIVE_CHUNK_PIPELINE_H_
#define NPUMESH_GRAPH_OPS_COLLECTIVE_CHUNK_PIPELINE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/device/stream.h"

namespace npumesh::fused {

// How many equal chunks `rows` rows of together `bytes` on the wire are cut into. A chunk is large
// enough for the cost of another collective to vanish. The same on all ranks if the arguments are.
int64_t ChunksOf(int64_t rows, uint64_t bytes);
// The same for chunks that need not be equal.
int64_t ChunksOf(uint64_t bytes);

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

  // Calls prepare(chunk) for every chunk in order and has work(chunk) done after it, both of them
  // Status(int64_t). Blocks until everything has arrived. The first failure of prepare, else of
  // work.
  template <typename Prepare, typename Work>
  Status Run(const Prepare& prepare, const Work& work) {
    Status prepared;
    for (int64_t chunk = 0; chunk < chunks() && prepared.ok(); ++chunk) {
      prepared = prepare(chunk);
      if (prepared.ok()) Send(chunk, work);
    }
    const Status arrived = AwaitAll();
    return prepared.ok() ? arrived : prepared;
  }

  // Blocks until the chunk has arrived; its failure.
  Status Await(int64_t chunk);
  // Blocks until everything that was sent has arrived, and gets ready for the next run; the first
  // failure.
  Status AwaitAll();

 private:
  void Depart(int64_t chunk);

  std::unique_ptr<Stream> stream_;  // null: one chunk
  std::vector<Event> arrived_;      // by chunk
  std::vector<Status> statuses_;    // by chunk
};

}  // namespace npumesh::fused

#endif  // NPUMESH_GRAPH_OPS_COLLECTIVE_CHUNK_PIPELINE_H_
