#include "launch/doctor/clock_offset.h"

#include <gmock/gmock.h>

namespace npumesh {
namespace {

using testing::HasSubstr;

TEST(ClockOffset, EachMeetingBoundsIt) {
  // Their clock is 100 ahead. They come 10 late, then I come 30 late.
  const std::vector<ClockMeeting> mine = {{1000, 1015}, {2030, 2040}};
  const std::vector<ClockMeeting> theirs = {{1110, 1120}, {2100, 2145}};
  const OffsetBounds bounds = BoundOffset(mine, theirs);
  EXPECT_EQ(bounds.low, 95);    // 1110 - 1015
  EXPECT_EQ(bounds.high, 115);  // 2145 - 2030
}

TEST(ClockOffset, VerdictsLookAtWhatIsSure) {
  constexpr int64_t kMs = 1'000'000;
  const struct {
    OffsetBounds bounds;
    Severity verdict;
  } cases[] = {
      {{-kMs, kMs}, Severity::kInfo},
      {{-5000 * kMs, 5000 * kMs}, Severity::kInfo},  // a slow network proves nothing
      {{9 * kMs, 30 * kMs}, Severity::kInfo},
      {{11 * kMs, 30 * kMs}, Severity::kAdvice},
      {{-900 * kMs, -800 * kMs}, Severity::kAdvice},
      {{1001 * kMs, 1002 * kMs}, Severity::kError},
      {{-3000 * kMs, -2000 * kMs}, Severity::kError},
  };
  for (const auto& [bounds, verdict] : cases) {
    EXPECT_EQ(JudgeOffset(bounds, "a").severity, verdict) << bounds.low;
  }
  EXPECT_THAT(JudgeOffset({2000 * kMs, 2001 * kMs}, "a").text,
              HasSubstr("2000.0 to 2001.0 ms ahead of a"));
}

}  // namespace
}  // namespace npumesh
