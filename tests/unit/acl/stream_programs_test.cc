// Random programs of streams and events: host functions are the tasks, and a plain model says what
// has to run before what. Events of each family are recorded again and again, on any stream.
//
//   stream_programs [--first=SEED] [--seeds=N]
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bitset>
#include <deque>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "tests/seed_range.h"
#include "tests/unit/acl/acl_test.h"

namespace npumesh {
namespace {

SeedRange seeds{0, 500};

constexpr size_t kMostTasks = 128;
using Tasks = std::bitset<kMostTasks>;

// In which order tasks have run.
class Log {
 public:
  void Add(size_t task) {
    const std::lock_guard lock(mutex_);
    order_.push_back(task);
  }
  Tasks Seen() const {
    Tasks seen;
    for (const size_t task : Order()) seen.set(task);
    return seen;
  }
  std::vector<size_t> Order() const {
    const std::lock_guard lock(mutex_);
    return order_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<size_t> order_;
};

struct HostTask {
  Log* log;
  size_t number;
  int turns;  // before it says that it runs

  // Few yields: each costs a busy machine a time slice of every other process.
  static void Run(void* data) {
    const auto& task = *static_cast<HostTask*>(data);
    std::atomic<int> turns{task.turns};  // counted one by one
    while (turns.fetch_sub(1) > 0) {
      if (turns % 16384 == 0) std::this_thread::yield();
    }
    task.log->Add(task.number);
  }
};

// What the interface promises, from nothing but the calls in the order of the host.
class Model {
 public:
  Model(size_t streams, size_t events) : past_(streams), at_(events), recorded_(events) {}

  void Run(size_t stream, size_t task) {
    before_.push_back(past_[stream] | host_);
    past_[stream].set(task);
  }
  void Record(size_t stream, size_t event) {
    at_[event] = past_[stream] | host_;
    recorded_[event] = true;
  }
  void Wait(size_t stream, size_t event) {
    if (recorded_[event]) past_[stream] |= at_[event];
  }
  // The host has waited: all that it asks for later comes later.
  const Tasks& Synchronize(size_t stream) { return host_ |= past_[stream]; }
  const Tasks& SynchronizeEvent(size_t event) { return host_ |= at_[event]; }

  bool recorded(size_t event) const { return recorded_[event]; }
  size_t tasks() const { return before_.size(); }
  // What has to run before a task.
  const Tasks& Before(size_t task) const { return before_[task]; }

 private:
  Tasks host_;
  std::vector<Tasks> past_;  // by stream: what runs before what it is given next
  std::vector<Tasks> at_;    // by event: what runs before its last record
  std::vector<bool> recorded_;
  std::vector<Tasks> before_;
};

class StreamPrograms : public AclTest {
 protected:
  // Runs the program of `seed`; what was out of order, or empty.
  std::string Play(uint64_t seed) {
    std::mt19937_64 dice(seed);
    const auto draw = [&dice](size_t below) { return static_cast<size_t>(dice() % below); };
    std::vector<aclrtStream> streams(2 + draw(6));
    std::vector<aclrtEvent> events(1 + draw(5));
    for (aclrtStream& stream : streams) stream = NewStream();
    std::vector<bool> signals;
    for (aclrtEvent& event : events) {
      const size_t family = draw(3);
      signals.push_back(family == 2);
      EXPECT_EQ(family == 0   ? aclrtCreateEvent(&event)
                : family == 1 ? aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC)
                              : aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC),
                ACL_SUCCESS);
    }
    Model model(streams.size(), events.size());
    Log log;
    std::deque<HostTask> tasks;  // which keep their addresses
    std::string wrong;
    const auto expect_done = [&](const Tasks& done, std::string_view what) {
      const Tasks missing = done & ~log.Seen();
      if (missing.any() && wrong.empty()) {
        wrong = fmt::format("{} returned before task {} had run", what, missing._Find_first());
      }
    };
    const size_t steps = 20 + draw(150);
    for (size_t step = 0; step < steps && model.tasks() < kMostTasks; ++step) {
      const size_t s = draw(streams.size()), e = draw(events.size());
      const size_t kind = draw(100);
      if (kind < 45) {
        const int turns = draw(4) == 0 ? static_cast<int>(draw(50000)) : 0;
        HostTask& task = tasks.emplace_back(HostTask{&log, model.tasks(), turns});
        EXPECT_EQ(aclrtLaunchHostFunc(streams[s], HostTask::Run, &task), ACL_SUCCESS);
        model.Run(s, task.number);
      } else if (kind < 70) {
        EXPECT_EQ(aclrtRecordEvent(events[e], streams[s]), ACL_SUCCESS);
        model.Record(s, e);
      } else if (kind < 95) {
        // A signal holds the stream until its first record, which may stand after this wait.
        if (signals[e] && !model.recorded(e)) continue;
        EXPECT_EQ(aclrtStreamWaitEvent(streams[s], events[e]), ACL_SUCCESS);
        model.Wait(s, e);
      } else if (kind < 98) {
        EXPECT_EQ(aclrtSynchronizeEvent(events[e]), ACL_SUCCESS);
        expect_done(model.SynchronizeEvent(e), "aclrtSynchronizeEvent");
      } else {
        EXPECT_EQ(aclrtSynchronizeStream(streams[s]), ACL_SUCCESS);
        expect_done(model.Synchronize(s), "aclrtSynchronizeStream");
      }
    }
    for (const aclrtStream stream : streams) {
      EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
      EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
    }
    for (const aclrtEvent event : events) EXPECT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
    return wrong.empty() ? Disorder(model, log.Order()) : wrong;
  }

 private:
  static std::string Disorder(const Model& model, const std::vector<size_t>& order) {
    if (order.size() != model.tasks()) {
      return fmt::format("{} of {} tasks have run", order.size(), model.tasks());
    }
    Tasks seen;
    for (const size_t task : order) {
      if (seen[task]) return fmt::format("task {} has run twice", task);
      const Tasks missing = model.Before(task) & ~seen;
      if (missing.any()) {
        return fmt::format("task {} has run before task {}", task, missing._Find_first());
      }
      seen.set(task);
    }
    return {};
  }
};

TEST_F(StreamPrograms, RunInAnOrderThatTheirCallsAllow) {
  for (uint64_t seed = seeds.first; seed < seeds.end() && !HasFailure(); ++seed) {
    EXPECT_EQ(Play(seed), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace npumesh

int main(int argc, char** argv) {
  return npumesh::RunSeededTests(argc, argv, &npumesh::seeds);
}
