#include "graph/engine/run/comm_stream.h"

#include "graph/passes/analysis/node_error.h"
#include "runtime/base/process/running_step.h"

namespace npumesh {

using Clock = std::chrono::steady_clock;

CommStream::CommStream(CompiledModel& model, Stream& stream, std::vector<StepSpan>& spans,
                       StepProfile& profile)
    : model_(model),
      stream_(stream),
      spans_(spans),
      profile_(profile),
      index_(model.steps().size()) {
  for (size_t i = 0; i < model.steps().size(); ++i) {
    if (!model.steps()[i].beside) continue;
    index_[i] = tasks_.size();
    tasks_.emplace_back().step = i;
  }
}

void CommStream::Begin() {
  for (Task& task : tasks_) task.status = Status();
  launched_ = 0;
  checked_ = 0;
  failed_ = false;
}

void CommStream::Launch(size_t step, const KernelArgs& args) {
  Task& task = tasks_[index_[step]];
  task.args = &args;
  launched_ = index_[step] + 1;
  stream_.Enqueue([this, &task] {
    Run(task);
    return Status();
  });
  stream_.Record(task.done);
  // Asking wakes the worker, which would otherwise give the host time to come and wait.
  static_cast<void>(task.done.Done());
}

void CommStream::Run(Task& task) {
  if (failed_) return;
  Step& step = model_.steps()[task.step];
  StepSpan& span = spans_[task.step];
  span.start = Clock::now();
  const InStep here({step.name.c_str(), step.type.c_str(), task.step, model_.steps().size()});
  const Status status = step.kernel->Run(*task.args);
  span.end = Clock::now();
  if (status.ok()) return profile_.RanBeside(task.step, span.start, span.end);
  failed_ = true;
  task.status = AtNode(step.name, step.type, step.origin, status);
}

Status CommStream::Await(size_t step) {
  tasks_[index_[step]].done.Synchronize();
  return FirstFailure(index_[step] + 1);
}

Status CommStream::AwaitAll() {
  static_cast<void>(stream_.Synchronize());  // tasks keep their failures to themselves
  return FirstFailure(launched_);
}

Status CommStream::FirstFailure(size_t count) {
  for (; checked_ < count; ++checked_) NPUMESH_RETURN_IF_ERROR(tasks_[checked_].status);
  return Status();
}

}  // namespace npumesh
