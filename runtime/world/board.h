// Board: memory that the ranks of a node share, in which each of them publishes its process, where
// it stands in each of its groups and, if it fails, the reason.
//
// A rank that leaves with an error says so here first, so that no rank waits for it. The page of a
// rank has one writer, the rank, and is read by the others without disturbing it.
//
// Thread-safety: any thread may call everything.
#ifndef NPUMESH_RUNTIME_WORLD_BOARD_H_
#define NPUMESH_RUNTIME_WORLD_BOARD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/world/position.h"
#include "runtime/world/setbacks.h"
#include "runtime/world/standing_page.h"
#include "runtime/world/transport.h"

namespace npumesh {

// What one rank can see of another on the board.
struct Sight {
  bool visible = false;  // false: on another node, the rest means nothing
  bool leaving = false;  // it has begun its orderly end
  Status lost;           // as Board::CheckPeer
  int process = 0;
  char process_state = 0;  // as in /proc/<process>/stat: 'R', 'S', 'T' stopped; 0: unknown
  bool stopped() const { return process_state == 'T' || process_state == 't'; }
  std::vector<Position> positions;  // one for each of its groups, closed ones too
  size_t lines = 0;  // that have ever been claimed; more than `positions` while one is written
};

class Board {
 public:
  static constexpr int kPositionLines = 512;
  static constexpr uint64_t kSharedAreaBytes = uint64_t{96} << 20;

  // Collective over the ranks of the transport, which must outlive the board.
  static Result<std::unique_ptr<Board>> Share(Transport& transport);

  // This rank has started without an error.
  void PublishStart();
  // This rank has begun its orderly end; without effect after a failure.
  void PublishEnd();
  // This rank leaves with an error. The first call wins.
  void PublishFailure(const Status& status);

  // kPeerLost naming rank and reason when `world_rank` is dead or has published a failure; else OK.
  // Ranks of other nodes: OK (only messages tell).
  Status CheckLost(int world_rank) const;

  // CheckLost, and the same for a rank with a setback that concerns this one and lasts.
  Status CheckPeer(int world_rank) const;

  // Failures after which ranks go on together.
  Setbacks& setbacks() { return setbacks_; }
  const Setbacks& setbacks() const { return setbacks_; }

  // CheckPeer over several ranks; the first failure, preferring a published reason over a death
  // that may be its consequence.
  Status CheckPeers(const std::vector<int>& world_ranks) const;

  // A line for one group of this rank, to be opened at once; null when all kPositionLines are
  // taken. Closing gives it back.
  PositionLine* ClaimPosition();

  // Takes microseconds: for waits that have grown long.
  Sight Look(int world_rank) const;

  // For standstill.h. Null for a rank of another node.
  StandingPage* standing_page(int world_rank) const;

  // Memory of `world_rank` that the floor above lays out as it likes: zero at the start, null for a
  // rank of another node. `kSharedAreaBytes` long.
  std::byte* shared_area(int world_rank) const;

 private:
  struct Page;
  Board(Transport& transport, std::unique_ptr<NodeSegment> segment);
  Page* page(int world_rank) const;
  // It has published a failure. REQUIRES: it is of this node.
  bool Failed(int world_rank) const;
  PositionLine* position_lines(int world_rank) const;

  Transport& transport_;
  const std::unique_ptr<NodeSegment> segment_;
  Setbacks setbacks_;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_BOARD_H_
