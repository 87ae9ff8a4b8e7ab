#include "runtime/base/process/short_lock.h"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

namespace npumesh {
namespace {

TEST(ShortLock, LetsOneThreadInAtATime) {
  ShortLock lock;
  int64_t count = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10'000; ++i) {
        const std::lock_guard hold(lock);
        ++count;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(count, 40'000);
}

TEST(ShortLock, CanBeTried) {
  ShortLock lock;
  EXPECT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

// Longer than it insists: the waiter naps until the holder is done.
TEST(ShortLock, WaitsForALongHolder) {
  ShortLock lock;
  lock.lock();
  bool in = false;
  std::jthread waiter([&] {
    const std::lock_guard hold(lock);
    in = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(in);
  lock.unlock();
  waiter.join();
  EXPECT_TRUE(in);
}

}  // namespace
}  // namespace npumesh
