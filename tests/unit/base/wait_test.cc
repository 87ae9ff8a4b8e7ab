#include "runtime/base/process/wait.h"

#include <gtest/gtest.h>

namespace npumesh {
namespace {

// What 64 waiters take from a processor depends on how often each of them wakes.
TEST(Wait, NapsAreShortAtFirstAndAThousandthOfALongWait) {
  const WaitPolicy policy;
  EXPECT_EQ(NapNanoseconds(policy, 0), policy.nap_ns);
  int64_t waited = 0;
  int64_t naps = 0;
  for (; waited < 1'000'000'000; ++naps) {
    const int64_t nap = NapNanoseconds(policy, naps);
    // Never long beside what was waited already.
    if (naps >= 64) {
      EXPECT_LE(nap, waited / 16) << naps;
    }
    EXPECT_GE(NapNanoseconds(policy, naps + 1), nap);
    waited += nap;
  }
  EXPECT_LE(naps, 2'000);  // 20,000 with naps of one length
  EXPECT_LE(NapNanoseconds(policy, 1'000'000), 1'000'000);
}

TEST(Wait, ManyWaitersYieldLessOftenBeforeTheyNap) {
  EXPECT_EQ(WaitPolicy::YieldsFor(1, 2), 4096);
  EXPECT_EQ(WaitPolicy::YieldsFor(2, 2), 4096);
  EXPECT_EQ(WaitPolicy::YieldsFor(4, 2), 2048);
  EXPECT_EQ(WaitPolicy::YieldsFor(64, 2), 128);
  EXPECT_EQ(WaitPolicy::YieldsFor(512, 0), 128);  // the system does not say how many cores
  EXPECT_EQ(WaitPolicy::ForCores(8, 2).yields, 1024);
}

TEST(Wait, ALongNapStaysWhatItIs) {
  WaitPolicy policy;
  policy.nap_ns = 5'000'000;
  EXPECT_EQ(NapNanoseconds(policy, 0), 5'000'000);
  EXPECT_EQ(NapNanoseconds(policy, 10'000), 5'000'000);
}

TEST(Wait, EndsWhenItIsReadyOrTheWatchFails) {
  int asked = 0;
  WaitPolicy policy;
  policy.yields = 8;
  EXPECT_TRUE(WaitUntil(
                  policy, [&] { return ++asked > 100; }, [] { return Status(); })
                  .ok());
  policy.watch_every = std::chrono::milliseconds(1);
  const Status status = WaitUntil(
      policy, [] { return false; }, [] { return Error(Code::kPeerLost, "gone"); });
  EXPECT_EQ(status.code(), Code::kPeerLost);
}

}  // namespace
}  // namespace npumesh
