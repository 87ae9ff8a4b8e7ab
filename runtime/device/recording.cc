#include "runtime/device/recording.h"

#include <algorithm>
#include <utility>

#include "runtime/device/running_task.h"
#include "runtime/device/stream_program.h"
#include "runtime/device/stream_queue.h"

namespace npumesh {

Status Recording::Run() {
  const std::lock_guard lock(running_);
  for (Task& task : beginning_) NPUMESH_RETURN_IF_ERROR(task());
  if (kind_ == Kind::kCaptured) return RunInOrder();
  StreamProgram program(*this);
  {
    const std::lock_guard known(mutex_);
    program_ = &program;
  }
  Status status = program.Run();
  const std::lock_guard known(mutex_);
  program_ = nullptr;
  return status;
}

Status Recording::RunInOrder() {
  for (RecordedTask& task : tasks_) {
    if (RunningTask::Aborted()) break;
    NPUMESH_RETURN_IF_ERROR(RunTask(task));
  }
  return Status();
}

Status Recording::RunTask(RecordedTask& task) {
  if (task.left_out || task.work == nullptr) return Status();
  if (!task.exchangeable) return (*task.work)();
  std::shared_ptr<Task> work;  // stays what it is until it is done
  {
    const std::lock_guard lock(exchanging_);
    work = task.work;
  }
  return (*work)();
}

void Recording::Abort() {
  const std::lock_guard lock(mutex_);
  if (program_ != nullptr) program_->Abort();
}

bool Recording::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

size_t Recording::task_count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(std::count_if(tasks_.begin(), tasks_.end(), [](const auto& task) {
    return task.work != nullptr || task.control != nullptr;
  }));
}

void Recording::AddBeginning(Task&& task) {
  const std::lock_guard lock(mutex_);
  beginning_.push_back(std::move(task));
}

void Recording::AddHead(size_t member) {
  const std::lock_guard lock(mutex_);
  heads_.push_back(member);
}

size_t Recording::AddMember(std::weak_ptr<StreamQueue> queue, int32_t stream) {
  const std::lock_guard lock(mutex_);
  members_.push_back({.queue = std::move(queue)});
  streams_.push_back(stream);
  return members_.size() - 1;
}

void Recording::Add(size_t member, Task&& task, std::shared_ptr<const TaskNote> note) {
  auto work = std::make_shared<Task>(std::move(task));
  const std::lock_guard lock(mutex_);
  Member& of = members_[member];
  if (of.group) of.group->push_back(tasks_.size());
  tasks_.push_back({.member = member,
                    .work = std::move(work),
                    .note = std::move(note),
                    .exchangeable = of.group.has_value()});
  ++of.tasks;
  ++of.places;
  of.joined = false;
}

void Recording::AddControl(size_t member, Control control, std::shared_ptr<const TaskNote> note) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back({.member = member, .control = std::move(control), .note = std::move(note)});
  ++members_[member].tasks;
  ++members_[member].places;
}

void Recording::AddNote(size_t member, std::shared_ptr<const TaskNote> note) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back({.member = member, .note = std::move(note)});
  ++members_[member].places;
}

size_t Recording::MarkRecord(size_t member, uint64_t* tasks) {
  const std::lock_guard lock(mutex_);
  *tasks = members_[member].tasks;
  marks_.push_back({tasks_.size(), member, std::nullopt});
  return marks_.size() - 1;
}

RecordedPlace Recording::EndOf(size_t member) const {
  const std::lock_guard lock(mutex_);
  return {member, members_[member].places};
}

void Recording::Join(size_t member, size_t other, uint64_t tasks, size_t mark) {
  const std::lock_guard lock(mutex_);
  marks_.push_back({tasks_.size(), member, mark});
  if (member != other && members_[other].tasks == tasks) members_[other].joined = true;
}

int Recording::unjoined() const {
  const std::lock_guard lock(mutex_);
  if (kind_ == Kind::kBuilt) return 0;
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

bool Recording::Update(Changes* changes) {
  const std::unique_lock lock(running_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  for (auto& [index, change] : *changes) {
    RecordedTask& task = tasks_[index];
    if (change.work) task.work = std::make_shared<Task>(std::move(change.work));
    if (change.note != nullptr) task.note = std::move(change.note);
    task.left_out = task.left_out || change.leave_out;
  }
  changes->clear();
  return true;
}

bool Recording::BeginGroup(size_t member) {
  const std::lock_guard lock(mutex_);
  if (members_[member].group) return false;
  members_[member].group.emplace();
  return true;
}

bool Recording::InGroup(size_t member) const {
  const std::lock_guard lock(mutex_);
  return members_[member].group.has_value();
}

std::optional<std::vector<size_t>> Recording::EndGroup(size_t member) {
  const std::lock_guard lock(mutex_);
  return std::exchange(members_[member].group, std::nullopt);
}

bool Recording::Exchange(const std::vector<size_t>& group, const Recording& by) {
  std::vector<std::shared_ptr<Task>> works;
  for (const RecordedTask& task : by.tasks_) {
    if (task.work != nullptr) works.push_back(task.work);
  }
  if (works.size() != group.size()) return false;
  const std::lock_guard lock(exchanging_);
  for (size_t i = 0; i < group.size(); ++i) tasks_[group[i]].work.swap(works[i]);
  return true;
}

}  // namespace npumesh
