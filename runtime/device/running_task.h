// RunningTask: which stream's task a thread runs, for tasks that wait for something that only
// others can bring about. Such a task must end when its stream is aborted.
//
// Thread-safety: of the calling thread.
#ifndef NPUMESH_RUNTIME_DEVICE_RUNNING_TASK_H_
#define NPUMESH_RUNTIME_DEVICE_RUNNING_TASK_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string_view>

#include "runtime/base/status.h"

namespace npumesh {

class RunningTask {
 public:
  // For the stream that runs it: `aborts` counts its aborts, `seen` were there when it began.
  RunningTask(const std::atomic<uint64_t>& aborts, uint64_t seen);
  ~RunningTask();
  RunningTask(const RunningTask&) = delete;
  RunningTask& operator=(const RunningTask&) = delete;

  // True when the stream whose task this thread runs was aborted since the task began; false
  // outside of tasks.
  static bool Aborted();

 private:
  const std::atomic<uint64_t>& aborts_;
  const uint64_t seen_;
  const RunningTask* const outer_;  // a task that waits may run tasks of other streams
};

struct TaskWait {
  std::string_view what;               // "for a notify"
  std::chrono::seconds limit{0};       // 0: without
  std::function<Status()> watch = {};  // asked now and then; its error ends the wait
};

// Blocks a task until `ready`, with naps in between. OK also when its stream is aborted. Error:
// kTimeout after the limit; that of the watch.
Status AwaitInTask(const std::function<bool()>& ready, const TaskWait& wait);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_DEVICE_RUNNING_TASK_H_
