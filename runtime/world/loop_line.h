// LoopLine: how far a rank has come in a loop, on the board, for those who wait for the rank.
//
// A loop is not a group, but it has a line among those of the groups (position.h): its turn is the
// call, its name the node, and its beginning the time.
#ifndef NPUMESH_RUNTIME_WORLD_LOOP_LINE_H_
#define NPUMESH_RUNTIME_WORLD_LOOP_LINE_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/base/process/wait.h"
#include "runtime/world/position.h"
#include "runtime/world/world.h"

namespace npumesh {

// Position::kind of a loop; kinds of collectives are smaller, kGatheringKind is greater.
inline constexpr uint32_t kLoopKind = 254;

// Thread-safety: for the thread that runs the loop.
class LoopLine {
 public:
  // Takes a line of the board. Where none is left, it says nothing. `world` must outlive it.
  explicit LoopLine(World& world);
  // Gives the line back.
  ~LoopLine();
  LoopLine(const LoopLine&) = delete;
  LoopLine& operator=(const LoopLine&) = delete;

  // Turn `turn` begins, of the loop `name` that began at `since`.
  void Turn(uint64_t turn, std::string_view name, SteadyClock::time_point since);
  // The rank has left the loop.
  void Leave();

 private:
  PositionLine* line_;  // null: none
};

// Takes the lines of loops out of `positions`, and returns those of loops that run, the one that
// began first in front.
std::vector<Position> TakeLoops(std::vector<Position>& positions);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_LOOP_LINE_H_
