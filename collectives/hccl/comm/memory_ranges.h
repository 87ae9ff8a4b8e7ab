// Zero-copy memory: ranges of reserved addresses, and the blocks in them that operators may use
// directly. Every operator of npumesh is free of copies, so the table only keeps HCCL's rules.
//
// Thread-safety: all members may be called from any thread.
#ifndef NPUMESH_COLLECTIVES_HCCL_COMM_MEMORY_RANGES_H_
#define NPUMESH_COLLECTIVES_HCCL_COMM_MEMORY_RANGES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "collectives/hccl/comm/verdict.h"

namespace npumesh {

class MemoryRanges {
 public:
  // Visible to every communicator of the process.
  static MemoryRanges& OfProcess();

  // E_PARA when it is empty or overlaps another range.
  Verdict Set(const void* base, uint64_t bytes);
  // E_PARA for what is no range, or has an active block.
  Verdict Unset(const void* base);
  // E_PARA unless the block lies in one range and overlaps no active block.
  Verdict Activate(const void* begin, uint64_t bytes);
  // E_PARA unless `begin` is where an active block begins.
  Verdict Deactivate(const void* begin);

 private:
  using Spans = std::map<uintptr_t, uint64_t>;  // begin, bytes

  std::mutex mutex_;
  Spans ranges_;
  Spans active_;
};

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_HCCL_COMM_MEMORY_RANGES_H_
