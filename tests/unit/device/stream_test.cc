#include "runtime/device/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "runtime/base/log.h"

namespace npumesh {
namespace {

using testing::ElementsAre;

// A task that waits for the test to open it.
class Gate {
 public:
  npumesh::Task Task() {
    return [opened = opened_] {
      opened.wait();
      return Status();
    };
  }
  void Open() { promise_.set_value(); }

 private:
  std::promise<void> promise_;
  std::shared_future<void> opened_ = promise_.get_future().share();
};

TEST(Stream, RunsTasksInOrder) {
  Stream stream;
  std::vector<int> seen;
  for (int i = 0; i < 1000; ++i) {
    stream.Enqueue([&seen, i] {
      seen.push_back(i);
      return Status();
    });
  }
  ASSERT_TRUE(stream.Synchronize().ok());
  std::vector<int> expected(1000);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(seen, expected);
  EXPECT_TRUE(stream.Idle());
}

TEST(Stream, IsIdleOnlyWhenNothingRuns) {
  Stream stream;
  EXPECT_TRUE(stream.Idle());
  Gate gate;
  stream.Enqueue(gate.Task());
  EXPECT_FALSE(stream.Idle());
  gate.Open();
  ASSERT_TRUE(stream.Synchronize().ok());
  EXPECT_TRUE(stream.Idle());
}

TEST(Stream, DestructionFinishesWhatWasEnqueued) {
  std::atomic<int> done{0};
  {
    Stream stream;
    for (int i = 0; i < 100; ++i) {
      stream.Enqueue([&done] {
        ++done;
        return Status();
      });
    }
  }
  EXPECT_EQ(done, 100);
}

TEST(Stream, TheFirstFailureStopsItAndStays) {
  Stream stream;
  std::atomic<int> later{0};
  stream.Enqueue([] { return Error(Code::kTimeout, "first"); });
  stream.Enqueue([&later] {
    ++later;
    return Error(Code::kIo, "second");
  });
  EXPECT_EQ(stream.Synchronize().message(), "first");
  stream.Enqueue([&later] {
    ++later;
    return Status();
  });
  EXPECT_EQ(stream.Synchronize().code(), Code::kTimeout);
  EXPECT_EQ(later, 0);
}

TEST(Stream, ReleasesWhatATaskHoldsBeforeItIsDone) {
  Stream stream;
  auto held = std::make_shared<int>(0);
  const std::weak_ptr<int> seen = held;
  stream.Enqueue([held = std::move(held)] { return Status(); });
  ASSERT_TRUE(stream.Synchronize().ok());
  EXPECT_TRUE(seen.expired());
}

TEST(Stream, WorkerCarriesTheRankOfItsMaker) {
  SetLogRank(6);
  Stream stream;
  SetLogRank(-1);
  int rank = -1;
  stream.Enqueue([&rank] {
    rank = LogRank();
    return Status();
  });
  ASSERT_TRUE(stream.Synchronize().ok());
  EXPECT_EQ(rank, 6);
}

TEST(Stream, RunsOnTheThreadThatSynchronisesSoon) {
  Stream stream;
  std::thread::id ran_on;
  int attempts = 0;
  do {  // a loaded machine may let the worker come first
    stream.Enqueue([&ran_on] {
      ran_on = std::this_thread::get_id();
      return Status();
    });
    ASSERT_TRUE(stream.Synchronize().ok());
  } while (ran_on != std::this_thread::get_id() && ++attempts < 100);
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST(Stream, ProgressesWhenNobodySynchronises) {
  Stream stream;
  for (int i = 0; i < 5; ++i) {
    std::promise<std::thread::id> ran;
    stream.Enqueue([&ran] {
      ran.set_value(std::this_thread::get_id());
      return Status();
    });
    EXPECT_NE(ran.get_future().get(), std::this_thread::get_id());
    std::this_thread::sleep_for(std::chrono::milliseconds(10 * i));  // lets the worker sleep
  }
}

TEST(Stream, ManyThreadsMaySynchroniseOne) {
  Stream stream;
  int sum = 0;  // touched by tasks only, which never overlap
  std::vector<std::thread> hosts;
  for (int t = 0; t < 4; ++t) {
    hosts.emplace_back([&stream, &sum] {
      for (int i = 0; i < 500; ++i) {
        stream.Enqueue([&sum] {
          ++sum;
          return Status();
        });
        if (i % 3 != 0) continue;
        EXPECT_TRUE(stream.Synchronize().ok());
      }
    });
  }
  for (std::thread& host : hosts) host.join();
  ASSERT_TRUE(stream.Synchronize().ok());
  EXPECT_EQ(sum, 2000);
}

TEST(Stream, SynchronizeUntilLeavesTheWorkGoingOn) {
  Stream stream;
  Gate gate;
  stream.Enqueue(gate.Task());
  EXPECT_FALSE(stream.SynchronizeUntil(Deadline::After(std::chrono::milliseconds(5))));
  gate.Open();
  EXPECT_TRUE(stream.SynchronizeUntil(Deadline::Never()));
  EXPECT_TRUE(stream.Idle());
}

TEST(Stream, CanGoOnAfterAFailure) {
  Stream stream;
  stream.StopOnFailure(false);
  int later = 0;
  stream.Enqueue([] { return Error(Code::kIo, "first"); });
  stream.Enqueue([&later] {
    ++later;
    return Error(Code::kTimeout, "second");
  });
  EXPECT_EQ(stream.Synchronize().message(), "first");
  EXPECT_EQ(later, 1);
  EXPECT_EQ(stream.failure().message(), "first");
}

TEST(Stream, AbortDropsWhatIsQueued) {
  Stream stream;
  Event event;
  const Event signal(Event::Kind::kSignal);
  bool ran = false;
  stream.Wait(signal);
  stream.Enqueue([&ran] {
    ran = true;
    return Status();
  });
  stream.Record(event);
  EXPECT_FALSE(event.Done());  // hurries the worker into the wait
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  stream.Abort();
  EXPECT_TRUE(stream.Idle());
  EXPECT_TRUE(event.Done());
  EXPECT_FALSE(signal.Awaited());
  EXPECT_TRUE(stream.Synchronize().ok());
  EXPECT_FALSE(ran);
}

TEST(Event, NeverRecordedIsDoneAndHoldsNobody) {
  const Event event;
  EXPECT_TRUE(event.Done());
  event.Synchronize();
  Stream stream;
  stream.Wait(event);
  EXPECT_TRUE(stream.Synchronize().ok());
}

TEST(Event, IsDoneWhenTheStreamReachesIt) {
  Stream stream;
  Event event;
  Gate gate;
  stream.Enqueue(gate.Task());
  stream.Record(event);
  EXPECT_FALSE(event.Done());
  gate.Open();
  event.Synchronize();
  EXPECT_TRUE(event.Done());
}

TEST(Event, MayBeRecordedAgain) {
  Stream stream;
  Event event;
  stream.Record(event);
  event.Synchronize();
  Gate gate;
  stream.Enqueue(gate.Task());
  stream.Record(event);
  EXPECT_FALSE(event.Done());
  gate.Open();
  event.Synchronize();
  EXPECT_TRUE(event.Done());
}

TEST(Event, OrdersTwoStreams) {
  Stream producer;
  Stream consumer;
  Event produced;
  Event consumed;
  int value = 0;  // handed to and fro without a lock: the events order the accesses
  std::vector<int> seen;
  for (int i = 1; i <= 200; ++i) {
    producer.Wait(consumed);
    producer.Enqueue([&value, i] {
      value = i;
      return Status();
    });
    producer.Record(produced);
    consumer.Wait(produced);
    consumer.Enqueue([&value, &seen] {
      seen.push_back(value);
      return Status();
    });
    consumer.Record(consumed);
  }
  ASSERT_TRUE(producer.Synchronize().ok());
  ASSERT_TRUE(consumer.Synchronize().ok());
  std::vector<int> expected(200);
  std::iota(expected.begin(), expected.end(), 1);
  EXPECT_EQ(seen, expected);
}

TEST(Event, WaitMeansTheRecordBeforeIt) {
  Stream first;
  Stream second;
  Event event;
  first.Record(event);
  event.Synchronize();
  second.Wait(event);
  Gate gate;
  first.Enqueue(gate.Task());
  first.Record(event);  // after the Wait: does not hold the second stream
  EXPECT_TRUE(second.Synchronize().ok());
  gate.Open();
}

// A stream passed when a record of another stream, asked for later, had run.
TEST(Event, AWaitHoldsUntilItsOwnRecordWhateverIsRecordedLater) {
  for (const Event::Kind kind : {Event::Kind::kPoint, Event::Kind::kSignal}) {
    Stream first;
    Stream later;
    Stream waiting;
    const Event event(kind);
    std::vector<int> seen;
    Gate gate;
    first.Enqueue(gate.Task());
    first.Enqueue([&seen] {
      seen.push_back(1);
      return Status();
    });
    first.Record(event);
    waiting.Wait(event);
    waiting.Enqueue([&seen] {
      seen.push_back(2);
      return Status();
    });
    later.Record(event);
    later.Record(event);
    ASSERT_TRUE(later.Synchronize().ok());
    EXPECT_TRUE(event.Done());
    event.Synchronize();
    EXPECT_FALSE(waiting.SynchronizeUntil(Deadline::After(std::chrono::milliseconds(5))));
    gate.Open();
    ASSERT_TRUE(waiting.Synchronize().ok());
    EXPECT_THAT(seen, ElementsAre(1, 2));
  }
}

TEST(Event, TheTimeIsThatOfTheLastRecordWhicheverRunsLast) {
  Stream first;
  Stream later;
  const Event event;
  Gate gate;
  first.Enqueue(gate.Task());
  first.Record(event);
  later.Record(event);
  ASSERT_TRUE(later.Synchronize().ok());
  const auto time = event.Time();
  ASSERT_TRUE(time.ok());
  gate.Open();
  ASSERT_TRUE(first.Synchronize().ok());
  EXPECT_EQ(*event.Time(), *time);
}

// Of two records the one that a stream waits for belongs to a stream that failed.
TEST(Event, AWaitFailsWithTheStreamOfItsOwnRecord) {
  Stream failing;
  Stream sound;
  Stream waiting;
  const Event event;
  failing.Enqueue([] { return Error(Code::kPeerLost, "rank 3 is gone"); });
  failing.Record(event);
  waiting.Wait(event);
  sound.Record(event);
  ASSERT_TRUE(sound.Synchronize().ok());
  EXPECT_EQ(waiting.Synchronize().code(), Code::kPeerLost);
  sound.Wait(event);
  EXPECT_TRUE(sound.Synchronize().ok());
}

TEST(Event, OfAFailedStreamIsReachedAndPassesTheFailureOn) {
  Stream failing;
  Stream waiting;
  Event event;
  bool ran = false;
  failing.Enqueue([] { return Error(Code::kPeerLost, "rank 3 is gone"); });
  failing.Record(event);
  waiting.Wait(event);
  waiting.Enqueue([&ran] {
    ran = true;
    return Status();
  });
  event.Synchronize();
  const Status status = waiting.Synchronize();
  EXPECT_EQ(status.code(), Code::kPeerLost);
  EXPECT_THAT(std::string(status.message()), testing::EndsWith(": rank 3 is gone"));
  EXPECT_FALSE(ran);
}

TEST(Event, OutlivesItsHandle) {
  Stream stream;
  Gate gate;
  stream.Enqueue(gate.Task());
  {
    const Event event;
    stream.Record(event);
    stream.Wait(event);
  }
  gate.Open();
  EXPECT_TRUE(stream.Synchronize().ok());
}

TEST(Event, MeasuresTheTimeBetweenTwo) {
  Stream stream;
  Event start;
  Event end;
  stream.Record(start);
  stream.Enqueue([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return Status();
  });
  stream.Record(end);
  ASSERT_TRUE(stream.Synchronize().ok());
  const auto elapsed = Event::Elapsed(start, end);
  ASSERT_TRUE(elapsed.ok());
  EXPECT_GE(*elapsed, std::chrono::milliseconds(5));
  EXPECT_EQ(*Event::Elapsed(end, start), -*elapsed);
}

TEST(Event, SignalHoldsAStreamUntilItsRecordAndAgainAfterAReset) {
  Stream held;
  Stream other;
  const Event signal(Event::Kind::kSignal);
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> passed{false};
    held.Wait(signal);
    held.Reset(signal);
    held.Enqueue([&passed] {
      passed = true;
      return Status();
    });
    EXPECT_TRUE(signal.Awaited());
    EXPECT_FALSE(held.SynchronizeUntil(Deadline::After(std::chrono::milliseconds(1))));
    EXPECT_FALSE(passed);
    other.Record(signal);
    ASSERT_TRUE(held.Synchronize().ok());
    EXPECT_TRUE(passed);
    EXPECT_FALSE(signal.Awaited());
    EXPECT_FALSE(signal.Reached());
  }
}

TEST(Event, AWaitCanHaveALimit) {
  Stream stream;
  stream.Wait(Event(Event::Kind::kSignal), std::chrono::seconds(1));
  EXPECT_EQ(stream.Synchronize().code(), Code::kTimeout);
}

TEST(Event, SynchronizeUntilEndsAtTheDeadline) {
  Stream stream;
  Event event;
  Gate gate;
  stream.Enqueue(gate.Task());
  stream.Record(event);
  EXPECT_FALSE(event.SynchronizeUntil(Deadline::After(std::chrono::milliseconds(2))));
  gate.Open();
  EXPECT_TRUE(event.SynchronizeUntil(Deadline::Never()));
  EXPECT_TRUE(event.Reached());
}

TEST(Event, IsReachedByAStreamThatNobodySynchronises) {
  Stream first;
  Stream second;
  Event event;
  first.Enqueue([] { return Status(); });
  first.Record(event);
  second.Wait(event);
  ASSERT_TRUE(second.Synchronize().ok());
  EXPECT_TRUE(event.Reached());
}

TEST(Event, HasNoTimeBeforeItIsReached) {
  Stream stream;
  Event reached;
  Event pending;
  const Event never;
  stream.Record(reached);
  reached.Synchronize();
  Gate gate;
  stream.Enqueue(gate.Task());
  stream.Record(pending);
  EXPECT_EQ(Event::Elapsed(reached, never).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(Event::Elapsed(reached, pending).status().message(),
            "no time between two events: the second one was never recorded or is not reached yet");
  EXPECT_THAT(std::string(Event::Elapsed(pending, reached).status().message()),
              testing::HasSubstr("the first one"));
  gate.Open();
}

}  // namespace
}  // namespace npumesh
