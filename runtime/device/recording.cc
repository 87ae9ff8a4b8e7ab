#include "runtime/device/recording.h"

#include <algorithm>
#include <utility>

#include "runtime/device/running_task.h"
#include "runtime/device/stream_queue.h"

namespace npumesh {

Status Recording::Run() {
  const std::lock_guard lock(running_);
  for (Task& task : tasks_) {
    if (RunningTask::Aborted()) break;
    NPUMESH_RETURN_IF_ERROR(task());
  }
  return Status();
}

bool Recording::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

size_t Recording::task_count() const {
  const std::lock_guard lock(mutex_);
  return tasks_.size();
}

size_t Recording::AddMember(std::weak_ptr<StreamQueue> queue) {
  const std::lock_guard lock(mutex_);
  members_.push_back({std::move(queue)});
  return members_.size() - 1;
}

void Recording::Add(size_t member, Task&& task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  ++members_[member].tasks;
  members_[member].joined = false;
}

uint64_t Recording::TasksOf(size_t member) const {
  const std::lock_guard lock(mutex_);
  return members_[member].tasks;
}

void Recording::Join(size_t member, size_t other, uint64_t tasks) {
  const std::lock_guard lock(mutex_);
  if (member != other && members_[other].tasks == tasks) members_[other].joined = true;
}

int Recording::unjoined() const {
  const std::lock_guard lock(mutex_);
  const auto unjoined = [](const Member& member) { return !member.joined; };
  return static_cast<int>(std::count_if(members_.begin() + 1, members_.end(), unjoined));
}

void Recording::End() {
  std::vector<Member> members;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    members.swap(members_);
  }
  for (const Member& member : members) {
    if (const auto queue = member.queue.lock()) queue->LeaveRecording();
  }
}

}  // namespace npumesh
