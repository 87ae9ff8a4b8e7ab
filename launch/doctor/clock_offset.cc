#include "launch/doctor/clock_offset.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace npumesh {
namespace {

constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kAdviceAbove = 10 * kMillisecond;
constexpr int64_t kWrongAbove = 1000 * kMillisecond;

// The least distance from zero that the bounds allow.
int64_t SurelyApart(const OffsetBounds& bounds) {
  if (bounds.low > 0) return bounds.low;
  return bounds.high < 0 ? -bounds.high : 0;
}

}  // namespace

OffsetBounds BoundOffset(const std::vector<ClockMeeting>& mine,
                         const std::vector<ClockMeeting>& theirs) {
  using Limits = std::numeric_limits<int64_t>;
  OffsetBounds bounds{Limits::min(), Limits::max()};
  for (size_t i = 0; i < mine.size(); ++i) {
    bounds.low = std::max(bounds.low, theirs[i].entry - mine[i].exit);
    bounds.high = std::min(bounds.high, theirs[i].exit - mine[i].entry);
  }
  return bounds;
}

Finding JudgeOffset(const OffsetBounds& bounds, const std::string& reference) {
  const int64_t apart = SurelyApart(bounds);
  const auto milliseconds = [](int64_t value) {
    return static_cast<double>(value) / static_cast<double>(kMillisecond);
  };
  if (apart <= kAdviceAbove) {
    return {"clock", Severity::kInfo, fmt::format("agrees with {}", reference), ""};
  }
  return {"clock", apart > kWrongAbove ? Severity::kError : Severity::kAdvice,
          fmt::format("{:.1f} to {:.1f} ms ahead of {}: times of their logs and timelines do not "
                      "fit together",
                      milliseconds(bounds.low), milliseconds(bounds.high), reference),
          "timedatectl set-ntp true, or chronyc makestep"};
}

}  // namespace npumesh
