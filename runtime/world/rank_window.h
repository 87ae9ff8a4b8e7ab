// RankWindow: what a process outside of a job sees of a rank on this host: the rank's part of the
// board, mapped read-only through /proc/<process>/fd. The rank is not stopped, not asked and not
// waited for, and takes no notice.
//
// Thread-safety: const members may be called from any thread.
#ifndef NPUMESH_RUNTIME_WORLD_RANK_WINDOW_H_
#define NPUMESH_RUNTIME_WORLD_RANK_WINDOW_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "runtime/world/board.h"
#include "runtime/world/step_line.h"

namespace npumesh {

// A rank at one moment.
struct RankGlance {
  bool started = false;          // the ranks have started without an error
  Sight sight;                   // `lost` is a failure that the rank has published
  std::vector<Position> loops;   // in which it is, the outermost first; not among the positions
  std::optional<Position> step;  // of a graph, that runs or ran last: `call` is its number, from 0
};

class RankWindow {
 public:
  // The ranks of a process: one, or several that are threads; none when the process has ended, is
  // no rank, belongs to another user or was built from other sources. Never blocks.
  static std::vector<RankWindow> Open(int process);

  int rank() const;
  int world_size() const;
  int process() const { return process_; }  // as this process sees it
  // Files of the boards that the process maps: ranks with one in common are of one job.
  const std::set<uint64_t>& boards() const { return boards_; }

  // A few microseconds. `sight.visible` is always true.
  RankGlance Look() const;

 private:
  RankWindow(int process, std::shared_ptr<const std::byte> part)
      : process_(process), part_(std::move(part)) {}

  int process_;
  std::shared_ptr<const std::byte> part_;  // page and position lines
  std::set<uint64_t> boards_;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_RANK_WINDOW_H_
