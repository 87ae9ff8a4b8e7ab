// Which threads stand still: only those of whom it is certain.
#include "runtime/base/process/thread_census.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <thread>

namespace npumesh {
namespace {

// A thread that is somewhere, until it is let go.
class OtherThread {
 public:
  // `inside` runs in the thread and may return what is to live as long as the thread waits.
  explicit OtherThread(std::function<std::shared_ptr<void>()> inside)
      : thread_([this, inside = std::move(inside)] {
          const std::shared_ptr<void> kept = inside();
          id_ = ThisThread();
          while (!over_) std::this_thread::yield();
        }) {
    while (id_ == 0) std::this_thread::yield();
  }
  ~OtherThread() {
    over_ = true;
    thread_.join();
  }
  pid_t id() const { return id_; }

 private:
  std::atomic<pid_t> id_{0};
  std::atomic<bool> over_{false};
  std::thread thread_;
};

std::shared_ptr<void> Nothing() {
  return nullptr;
}
std::shared_ptr<void> Still() {
  return std::make_shared<StillThread>();
}

// A sanitizer has separate threads.
class ThreadCensus : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::set<pid_t> others = ThreadsOfProcess();
    others.erase(ThisThread());
    AddHelperThreads(others);
  }
};

TEST_F(ThreadCensus, CountsTheThreadsOfTheProcess) {
  const size_t alone = ThreadsOfProcess().size();
  EXPECT_TRUE(ThreadsOfProcess().contains(ThisThread()));
  const OtherThread other(Nothing);
  EXPECT_NE(other.id(), ThisThread());
  EXPECT_EQ(ThreadsOfProcess().size(), alone + 1);
}

TEST_F(ThreadCensus, AThreadThatNobodyKnowsMayGoOn) {
  const StillThread still;
  EXPECT_TRUE(StandsStill());
  {
    const OtherThread other(Nothing);
    EXPECT_FALSE(StandsStill());
  }
  const OtherThread waits(Still);
  EXPECT_TRUE(StandsStill());
}

TEST_F(ThreadCensus, AHelperDoesNotCount) {
  const StillThread still;
  const OtherThread helper([] { return std::make_shared<HelperThread>(); });
  EXPECT_TRUE(StandsStill());
}

TEST_F(ThreadCensus, AWorkerIsHeldByItsQueue) {
  const OtherThread worker(Nothing);
  QueueSight sight{.idle = true, .worker = worker.id()};
  const QueueInCensus queue([&] { return sight; });
  const StillThread still;
  EXPECT_TRUE(StandsStill()) << "nobody gives it work";
  sight = {.idle = false, .worker = worker.id()};
  EXPECT_FALSE(StandsStill()) << "it is about to begin";
  sight.runner = worker.id();
  EXPECT_FALSE(StandsStill()) << "it works";
  sight.runner = ThisThread();
  EXPECT_TRUE(StandsStill()) << "somebody who stands still is at its work";
}

TEST_F(ThreadCensus, WhoWaitsForAQueueIsHeldByItsRunner) {
  const OtherThread runner(Still);
  const QueueInCensus queue(
      [&] { return QueueSight{.idle = false, .runner = runner.id(), .waiting = {ThisThread()}}; });
  EXPECT_TRUE(StandsStill());
  const OtherThread second(Nothing);
  EXPECT_FALSE(StandsStill());
}

TEST_F(ThreadCensus, ChainsOfQueuesAreFollowed) {
  const OtherThread last(Still);
  const OtherThread middle(Nothing);
  const QueueInCensus first(
      [&] { return QueueSight{.idle = false, .runner = middle.id(), .waiting = {ThisThread()}}; });
  EXPECT_FALSE(StandsStill());
  const QueueInCensus second(
      [&] { return QueueSight{.idle = false, .runner = last.id(), .waiting = {middle.id()}}; });
  EXPECT_TRUE(StandsStill());
}

}  // namespace
}  // namespace npumesh
