// StepLine: which step of a graph a rank runs, on the board, for those who look at the job from
// outside (rank_window.h). Like a loop (loop_line.h) it has a line among those of the groups: the
// number of the step is the call, the graph's name the node.
#ifndef NPUMESH_RUNTIME_WORLD_STEP_LINE_H_
#define NPUMESH_RUNTIME_WORLD_STEP_LINE_H_

#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/world/position.h"
#include "runtime/world/world.h"

namespace npumesh {

// Position::kind of a step; kinds of collectives are smaller, kLoopKind is greater.
inline constexpr uint32_t kStepKind = 253;

// Thread-safety: any thread; of steps that run at once the last to begin or end is seen.
class StepLine final : public WorldCompanion {
 public:
  // That of the world. Where the board has no line left, it says nothing.
  static StepLine& Of(World& world);

  explicit StepLine(World& world);
  ~StepLine() override;

  // Step `number` of the graph `name` begins.
  void Begin(uint64_t number, std::string_view name);
  void End();

 private:
  std::mutex mutex_;
  PositionLine* line_;  // null: none
};

// The step runs as long as this lives. `name` empty: "graph".
class RunningStepLine {
 public:
  RunningStepLine(World& world, uint64_t number, std::string_view name)
      : line_(StepLine::Of(world)) {
    line_.Begin(number, name.empty() ? "graph" : name);
  }
  ~RunningStepLine() { line_.End(); }
  RunningStepLine(const RunningStepLine&) = delete;
  RunningStepLine& operator=(const RunningStepLine&) = delete;

 private:
  StepLine& line_;
};

// Takes the lines of steps out of `positions`, and returns the latest.
std::optional<Position> TakeSteps(std::vector<Position>& positions);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_STEP_LINE_H_
