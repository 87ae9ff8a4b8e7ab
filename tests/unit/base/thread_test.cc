#include "runtime/base/process/thread.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <new>

namespace npumesh {
namespace {

TEST(Thread, RunsItsBody) {
  std::thread thread;
  int seen = 0;
  ASSERT_TRUE(StartThread("a test", &thread, [&seen] { seen = 7; }).ok());
  thread.join();
  EXPECT_EQ(seen, 7);
}

// They wait for each other, so all of them run.
TEST(Thread, OnThreadsCallsAllAtTheSameTime) {
  constexpr int kCount = 5;
  std::barrier<> meeting(kCount);
  std::atomic<int> sum{0};
  ASSERT_TRUE(OnThreads(kCount, "a test", [&](int i) {
                meeting.arrive_and_wait();
                sum += i;
              }).ok());
  EXPECT_EQ(sum, 0 + 1 + 2 + 3 + 4);
  EXPECT_TRUE(OnThreads(0, "a test", [&](int) { ++sum; }).ok());
  EXPECT_TRUE(TryThreads(3, "a test").ok());
  EXPECT_TRUE(TryThreads(-1, "a test").ok());
  EXPECT_EQ(sum, 10);
}

TEST(Thread, OnThreadsThrowsWhatOneOfThemThrows) {
  std::atomic<int> called{0};
  const auto body = [&called](int i) {
    ++called;
    if (i == 2) throw std::bad_alloc();
  };
  EXPECT_THROW((void)OnThreads(4, "a test", body), std::bad_alloc);
  EXPECT_EQ(called, 4);
}

// In a child, whose address space has room for few stacks: more threads than that are refused, and
// none of them is called.
TEST(Thread, WhatTheSystemRefusesIsAnError) {
#if defined(NPUMESH_SANITIZED)
  GTEST_SKIP() << "a sanitizer needs more address space than the limit leaves";
#endif
  const pid_t child = fork();
  if (child == 0) {
    constexpr int kMany = 4096;
    constexpr rlim_t kRoom = rlim_t{4} << 30;
    const rlimit limit{kRoom, kRoom};
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(10);
    std::atomic<int> called{0};
    const Status refused = OnThreads(kMany, "many", [&](int) { ++called; });
    if (refused.code() != Code::kIo || called != 0) _exit(11);
    if (refused.message().find("cannot start a thread for many: ") == std::string::npos) _exit(12);
    _exit(0);
  }
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  ASSERT_TRUE(WIFEXITED(state)) << state;
  EXPECT_EQ(WEXITSTATUS(state), 0);
}

}  // namespace
}  // namespace npumesh
