#include "runtime/world/loop_line.h"

#include <algorithm>

#include "runtime/world/step_line.h"

namespace npumesh {
namespace {

// Told apart from groups, whose numbers are hashes of 64 bits.
constexpr uint64_t kLoopNumber = 0x6c6f6f70;

int64_t Nanoseconds(SteadyClock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

}  // namespace

LoopLine::LoopLine(World& world) : line_(world.board().ClaimPosition()) {
  if (line_ == nullptr) return;
  line_->Open(kLoopNumber, "loops", Nanoseconds(SteadyClock::now()));
  line_->Enter(0, kLoopKind, "", Nanoseconds(SteadyClock::now()));
  Leave();
}

LoopLine::~LoopLine() {
  if (line_ != nullptr) line_->Close(Nanoseconds(SteadyClock::now()));
}

void LoopLine::Turn(uint64_t turn, std::string_view name, SteadyClock::time_point since) {
  if (line_ == nullptr) return;
  if (turn == 1) {
    line_->Enter(turn, kLoopKind, name, Nanoseconds(since));
  } else {
    line_->EnterAgain(turn, Nanoseconds(since));
  }
}

void LoopLine::Leave() {
  if (line_ != nullptr) line_->Leave(Nanoseconds(SteadyClock::now()));
}

std::vector<Position> TakeLoops(std::vector<Position>& positions) {
  std::vector<Position> loops;
  for (const Position& position : positions) {
    if (position.kind == kLoopKind && position.active()) loops.push_back(position);
  }
  std::erase_if(positions, [](const Position& position) {
    return position.kind == kLoopKind || position.kind == kStepKind;
  });
  std::sort(loops.begin(), loops.end(),
            [](const Position& a, const Position& b) { return a.since_ns < b.since_ns; });
  return loops;
}

}  // namespace npumesh
