#include "runtime/world/step_line.h"

#include <chrono>
#include <memory>

namespace npumesh {
namespace {

// Told apart from groups, whose numbers are hashes of 64 bits.
constexpr uint64_t kStepNumber = 0x73746570;

int64_t Now() {
  return std::chrono::nanoseconds(SteadyClock::now().time_since_epoch()).count();
}

}  // namespace

StepLine& StepLine::Of(World& world) {
  return static_cast<StepLine&>(
      *world.Keep("step line", [&] { return std::make_unique<StepLine>(world); }));
}

StepLine::StepLine(World& world) : line_(world.board().ClaimPosition()) {
  if (line_ == nullptr) return;
  line_->Open(kStepNumber, "steps", Now());
  line_->Enter(0, kStepKind, "", Now());
  line_->Leave(Now());
}

StepLine::~StepLine() {
  if (line_ != nullptr) line_->Close(Now());
}

void StepLine::Begin(uint64_t number, std::string_view name) {
  if (line_ == nullptr) return;
  std::lock_guard lock(mutex_);
  line_->Enter(number, kStepKind, name, Now());
}

void StepLine::End() {
  if (line_ == nullptr) return;
  std::lock_guard lock(mutex_);
  line_->Leave(Now());
}

std::optional<Position> TakeSteps(std::vector<Position>& positions) {
  std::optional<Position> step;
  for (const Position& position : positions) {
    const bool named = position.kind == kStepKind && position.phase != Phase::kClosed;
    if (named && !position.node.empty() && (!step || position.since_ns > step->since_ns)) {
      step = position;
    }
  }
  std::erase_if(positions, [](const Position& position) { return position.kind == kStepKind; });
  return step;
}

}  // namespace npumesh
