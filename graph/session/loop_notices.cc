#include "graph/session/loop_notices.h"

#include <fmt/format.h>

#include <chrono>

#include "runtime/base/log.h"

namespace npumesh {
namespace {

// Written whatever the level is: the user of a job that hangs must see it.
void Tell(std::string_view loop, uint64_t turn, std::chrono::nanoseconds lasts) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(lasts).count();
  WriteLog(LogLevel::kWarning, {__FILE__, __LINE__},
           fmt::format("loop \"{}\" has run for {} s and begins turn {}; it goes on until its "
                       "condition is false",
                       loop, seconds, turn));
}

}  // namespace

void LoopNotices::Begin(std::string_view loop) {
  loops_.push_back({std::string(loop), SteadyClock::now(), NoticeTimes(world_.env().soft_timeout)});
}

void LoopNotices::Turn(uint64_t turn) {
  Loop& loop = loops_.back();
  Line().Turn(turn, loop.name, loop.since);
  const auto lasts = SteadyClock::now() - loop.since;
  if (loop.notices.Due(lasts)) Tell(loop.name, turn, lasts);
}

void LoopNotices::End() {
  if (loops_.size() <= lines_.size()) Line().Leave();
  loops_.pop_back();
}

LoopLine& LoopNotices::Line() {
  while (lines_.size() < loops_.size()) lines_.push_back(std::make_unique<LoopLine>(world_));
  return *lines_[loops_.size() - 1];
}

}  // namespace npumesh
