#include "runtime/base/process/thread_census.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <thread>

#include "runtime/base/files/folder_reader.h"
#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

// The threads of a process are its own, so there is one census of them.
struct Census {
  std::mutex mutex;
  uint64_t next = 0;
  std::map<uint64_t, std::function<QueueSight()>> queues;
  std::set<pid_t> helpers;
  std::set<pid_t> still;
  pid_t sole_caller = 0;  // 0: not declared

  static Census& OfProcess() {
    static Census* const census = new Census;
    return *census;
  }
};

std::vector<QueueSight> LookAtQueues(const Census& census) {
  std::vector<QueueSight> sights;
  for (const auto& [number, look] : census.queues) sights.push_back(look());
  return sights;
}

// `still`, and all that cannot go on before one of them does.
std::set<pid_t> HeldBy(const std::set<pid_t>& still, const std::vector<QueueSight>& queues) {
  std::set<pid_t> held = still;
  size_t before = 0;
  while (held.size() != before) {
    before = held.size();
    for (const QueueSight& queue : queues) {
      if (!queue.idle && !held.contains(queue.runner)) continue;
      if (queue.worker != 0 && queue.worker != queue.runner) held.insert(queue.worker);
      if (!queue.idle) held.insert(queue.waiting.begin(), queue.waiting.end());
    }
  }
  return held;
}

bool IsHelper(const Census& census, pid_t thread, const std::vector<QueueSight>& queues) {
  if (census.sole_caller == 0) return census.helpers.contains(thread);
  return thread != census.sole_caller &&
         std::none_of(queues.begin(), queues.end(), [thread](const QueueSight& queue) {
           return queue.worker == thread || queue.runner == thread;
         });
}

bool AllHeld(const Census& census) {
  const std::vector<QueueSight> queues = LookAtQueues(census);
  const std::set<pid_t> held = HeldBy(census.still, queues);
  const bool moves = std::any_of(queues.begin(), queues.end(), [&](const QueueSight& queue) {
    return !queue.idle && !held.contains(queue.runner);
  });
  if (moves) return false;
  const std::set<pid_t> threads = ThreadsOfProcess();
  return !threads.empty() && std::all_of(threads.begin(), threads.end(), [&](pid_t thread) {
    return held.contains(thread) || IsHelper(census, thread, queues);
  });
}

}  // namespace

pid_t ThisThread() {
  thread_local const auto thread = static_cast<pid_t>(syscall(SYS_gettid));
  return thread;
}

std::set<pid_t> ThreadsOfProcess() {
  std::set<pid_t> threads;
  FolderReader tasks("/proc/self/task");
  while (const char* const name = tasks.Next()) {
    const auto thread = ParseInt(name, 1, std::numeric_limits<pid_t>::max(), "thread");
    if (thread.ok()) threads.insert(static_cast<pid_t>(*thread));
  }
  return tasks.error() != 0 ? std::set<pid_t>() : threads;
}

QueueInCensus::QueueInCensus(std::function<QueueSight()> look)
    : number_([&] {
        Census& census = Census::OfProcess();
        const std::lock_guard lock(census.mutex);
        census.queues.emplace(census.next, std::move(look));
        return census.next++;
      }()) {}

QueueInCensus::~QueueInCensus() {
  Census& census = Census::OfProcess();
  const std::lock_guard lock(census.mutex);
  census.queues.erase(number_);
}

void AddHelperThreads(const std::set<pid_t>& threads) {
  Census& census = Census::OfProcess();
  const std::lock_guard lock(census.mutex);
  census.helpers.insert(threads.begin(), threads.end());
}

HelperThread::HelperThread() {
  AddHelperThreads({ThisThread()});
}

HelperThread::~HelperThread() {
  Census& census = Census::OfProcess();
  const std::lock_guard lock(census.mutex);
  census.helpers.erase(ThisThread());
}

StillThread::StillThread() {
  Census& census = Census::OfProcess();
  const std::lock_guard lock(census.mutex);
  census.still.insert(ThisThread());
}

StillThread::~StillThread() {
  Census& census = Census::OfProcess();
  const std::lock_guard lock(census.mutex);
  census.still.erase(ThisThread());
}

void DeclareSoleCaller() {
  Census& census = Census::OfProcess();
  const std::lock_guard lock(census.mutex);
  census.sole_caller = ThisThread();
}

// Twice: after the first look no thread can give a queue work any more, so the second one sees
// all queues as they stay.
bool StandsStill() {
  Census& census = Census::OfProcess();
  const std::lock_guard lock(census.mutex);
  return AllHeld(census) && AllHeld(census);
}

#ifdef NPUMESH_SANITIZED
namespace {

// The runtime of ThreadSanitizer starts a thread with the first one of the program, others none.
[[maybe_unused]] const bool kKnowsTheSanitizer = [] {
  std::thread([] {}).join();
  std::set<pid_t> others = ThreadsOfProcess();
  others.erase(ThisThread());
  AddHelperThreads(others);
  return true;
}();

}  // namespace
#endif

}  // namespace npumesh
