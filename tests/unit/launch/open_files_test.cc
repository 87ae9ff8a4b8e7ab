#include "launch/mpirun/open_files.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

namespace npumesh {
namespace {

constexpr uint64_t kUnlimited = ~uint64_t{0};

TEST(SoftLimitFor, IsRaisedOnlyWhereItIsTooLow) {
  const uint64_t wanted = WantedOpenFiles(4);
  EXPECT_EQ(*SoftLimitFor(4, 1024, 4096), 1024u);
  EXPECT_EQ(*SoftLimitFor(4, kUnlimited, kUnlimited), kUnlimited);
  EXPECT_EQ(*SoftLimitFor(4, wanted, wanted), wanted);
  EXPECT_EQ(*SoftLimitFor(4, 20, kUnlimited), wanted);
  EXPECT_EQ(*SoftLimitFor(4, 20, wanted), wanted);
}

TEST(SoftLimitFor, SaysHowToRaiseTheHardOne) {
  const Result<uint64_t> limit = SoftLimitFor(4, 20, WantedOpenFiles(4) - 1);
  ASSERT_FALSE(limit.ok());
  EXPECT_EQ(limit.status().code(), Code::kIo);
  EXPECT_THAT(
      std::string(limit.status().message()),
      testing::AllOf(testing::HasSubstr("4 ranks on this host want 96 open files, but only 95"),
                     testing::HasSubstr("ulimit -n 96")));
}

TEST(RaiseOpenFiles, ChangesTheLimitOfThisProcess) {
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  if (before.rlim_max < WantedOpenFiles(1)) GTEST_SKIP() << "the hard limit is too low here";
  struct rlimit low = before;
  low.rlim_cur = 32;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  const Status raised = RaiseOpenFiles(1);
  struct rlimit after;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &after), 0);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(raised.ok()) << raised.message();
  EXPECT_EQ(after.rlim_cur, WantedOpenFiles(1));
}

}  // namespace
}  // namespace npumesh
