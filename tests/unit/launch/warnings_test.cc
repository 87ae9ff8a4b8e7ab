#include "launch/ranks/warnings.h"

#include <gmock/gmock.h>

namespace npumesh {
namespace {

TEST(Warnings, OfAllRanksComeOnceInTheirOrder) {
  EXPECT_THAT(MergeWarnings({PackWarnings({"b", "a"}), PackWarnings({}), PackWarnings({"a", "c"})}),
              testing::ElementsAre("b", "a", "c"));
  EXPECT_THAT(MergeWarnings({PackWarnings({"two\nlines"})}), testing::ElementsAre("two lines"));
}

TEST(Warnings, AreLinesOnStandardError) {
  testing::internal::CaptureStderr();
  PrintWarnings("run", {"one", "two"});
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "npumesh run: warning: one\nnpumesh run: warning: two\n");
}

}  // namespace
}  // namespace npumesh
