// A rank's part of the board, as its owner writes it and as others read it: the ranks of the node
// (board.h), and commands that look at a job from outside (rank_window.h).
#ifndef NPUMESH_RUNTIME_WORLD_BOARD_PAGE_H_
#define NPUMESH_RUNTIME_WORLD_BOARD_PAGE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/world/position.h"

namespace npumesh {

enum class BoardState : uint32_t { kStarting = 0, kRunning = 1, kFailed = 2, kLeaving = 3 };

// The first page of the part.
struct BoardPage {
  static constexpr uint32_t kLayout = 5;
  static constexpr size_t kTextBytes = 2048;

  uint32_t layout;  // kLayout, written last; a peer built from other sources says something else
  int32_t process;  // as its owner sees it
  std::atomic<uint32_t> state;    // BoardState
  std::atomic<uint32_t> claimed;  // a failure is being written; the first one wins
  uint32_t code;                  // Code of the failure; published by `state`
  uint32_t text_bytes;
  std::atomic<uint32_t> lines;  // position lines that have ever been claimed
  int32_t rank;                 // of the owner in the world
  int32_t world_size;
  char text[kTextBytes];

  std::string_view failure() const;
};

namespace board {

// A rank's part of the segment: its page, its position lines, its StandingPage, its shared area,
// its setbacks.
inline constexpr char kLabel[] = "board";
inline constexpr uint64_t kPageBytes = 4096;
inline constexpr int kPositionLines = 512;
inline constexpr uint64_t kLinesBytes = kPositionLines * sizeof(PositionLine);
static_assert(kLinesBytes % kPageBytes == 0 && sizeof(BoardPage) <= kPageBytes);

// The positions of a part: one for each of its owner's groups, closed ones too, that is not being
// written just now. `lines`: how many have ever been claimed.
std::vector<Position> ReadPositions(const std::byte* part, size_t* lines);

}  // namespace board
}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_BOARD_PAGE_H_
