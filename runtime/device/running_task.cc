#include "runtime/device/running_task.h"

#include "runtime/base/process/wait.h"

namespace npumesh {
namespace {

const RunningTask*& OfThisThread() {
  thread_local const RunningTask* task = nullptr;
  return task;
}

}  // namespace

RunningTask::RunningTask(const std::atomic<uint64_t>& aborts, uint64_t seen)
    : aborts_(aborts), seen_(seen), outer_(OfThisThread()) {
  OfThisThread() = this;
}

RunningTask::~RunningTask() {
  OfThisThread() = outer_;
}

bool RunningTask::Aborted() {
  const RunningTask* const task = OfThisThread();
  return task != nullptr && task->aborts_.load(std::memory_order_acquire) != task->seen_;
}

Status AwaitInTask(const std::function<bool()>& ready, const TaskWait& wait) {
  const Deadline deadline =
      wait.limit.count() == 0 ? Deadline::Never() : Deadline::After(wait.limit);
  WaitPolicy policy;
  policy.yields = 256;
  policy.watch_every = std::chrono::milliseconds(10);
  return WaitUntil(
      policy, [&] { return ready() || RunningTask::Aborted(); },
      [&]() -> Status {
        if (deadline.expired()) {
          return Error(Code::kTimeout, "a stream waited {} s {}", wait.limit.count(), wait.what);
        }
        return wait.watch ? wait.watch() : Status();
      });
}

}  // namespace npumesh
