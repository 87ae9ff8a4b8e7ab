#include "runtime/world/notice_times.h"

#include <fmt/chrono.h>

#include <algorithm>

#include "runtime/base/env/env.h"

namespace npumesh {

bool NoticeTimes::Due(std::chrono::nanoseconds waited) {
  if (waited < next_) return false;
  constexpr int64_t kLast = 300;
  const int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(waited).count();
  int64_t next = (seconds / kLast + 1) * kLast;
  for (const int64_t early : {120, 60, 30}) {
    if (seconds < early) next = early;
  }
  next_ = std::chrono::seconds(next);
  return true;
}

std::string GivesUpText(std::chrono::seconds limit, std::chrono::nanoseconds waited) {
  if (limit == kNoTimeout) return "never gives up (HCCL_EXEC_TIMEOUT=0)";
  using Clock = std::chrono::system_clock;
  const auto left = std::chrono::duration_cast<Clock::duration>(limit - waited);
  const std::time_t end = Clock::to_time_t(Clock::now() + left);
  return fmt::format("gives up at {:%H:%M:%S}, {} s after it began", fmt::localtime(end),
                     limit.count());
}

}  // namespace npumesh
