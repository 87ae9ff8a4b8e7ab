#include "launch/run/weight_progress.h"

#include <gtest/gtest.h>

namespace npumesh {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

TEST(WeightProgress, OneLineThatEndsWithTheLastWeight) {
  EXPECT_EQ(WeightProgressText({512 * kMiB, 1024 * kMiB}), "\rload weights 50% 512/1024 MiB");
  EXPECT_EQ(WeightProgressText({1024 * kMiB, 1024 * kMiB}), "\rload weights 100% 1024/1024 MiB\n");
}

TEST(WeightProgress, SmallModelsHaveNone) {
  EXPECT_EQ(WeightProgressText({kMiB, kMiB}), "");
  EXPECT_EQ(WeightProgressText({0, 0}), "");
}

}  // namespace
}  // namespace npumesh
