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
    Health verdict;
  } cases[] = {
      {{-kMs, kMs}, Health::kGood},
      {{-5000 * kMs, 5000 * kMs}, Health::kGood},  // a slow network proves nothing
      {{9 * kMs, 30 * kMs}, Health::kGood},
      {{11 * kMs, 30 * kMs}, Health::kAdvice},
      {{-900 * kMs, -800 * kMs}, Health::kAdvice},
      {{1001 * kMs, 1002 * kMs}, Health::kWrong},
      {{-3000 * kMs, -2000 * kMs}, Health::kWrong},
  };
  for (const auto& [bounds, verdict] : cases) {
    EXPECT_EQ(JudgeOffset(bounds, "a").verdict, verdict) << bounds.low;
  }
  EXPECT_THAT(JudgeOffset({2000 * kMs, 2001 * kMs}, "a").seen,
              HasSubstr("2000.0 to 2001.0 ms ahead of a"));
}

}  // namespace
}  // namespace npumesh
