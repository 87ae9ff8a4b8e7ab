// DumpSink: who takes the files of dumps in place of the disk, for a process that has asked for
// them (acldumpRegCallback).
//
// Thread-safety: all functions may be called from any thread; the sink is called by one at a time.
#ifndef NPUMESH_RUNTIME_BASE_FILES_DUMP_SINK_H_
#define NPUMESH_RUNTIME_BASE_FILES_DUMP_SINK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace npumesh {

class DumpSink {
 public:
  // A piece of a file: `offset` counts from its begin; its last piece says so.
  struct Piece {
    const std::string& path;
    std::span<const std::byte> bytes;
    uint64_t offset = 0;
    bool last = false;
  };
  using Take = std::function<Status(const Piece&)>;

  // Replaces the one before; empty: files go to the disk. Waits for a call of the one before.
  static void Set(Take take);
  static bool Active();
  // A whole file, made of parts, in pieces of at most 1 MiB; an empty one is one piece. The sink's
  // first error. False in `taken`: there is no sink, and nothing was done.
  using Parts = std::vector<std::span<const std::byte>>;
  static Status Give(const std::string& path, const Parts& parts, bool* taken);
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_FILES_DUMP_SINK_H_
