#include "runtime/device/stream_program.h"

#include <chrono>
#include <utility>

#include "runtime/base/files/shared_library.h"
#include "runtime/base/log.h"
#include "runtime/base/process/thread.h"
#include "runtime/device/running_task.h"

namespace npumesh {
namespace {

// How soon an abort of the stream is noticed whose task the run is.
constexpr std::chrono::milliseconds kLook{5};

}  // namespace

StreamProgram::StreamProgram(Recording& recording)
    : recording_(recording), lanes_(recording.streams().size()) {
  for (Lane& lane : lanes_) lane.before.push_back(0);
  for (RecordedTask& task : recording.tasks_) {
    Lane& lane = lanes_[task.member];
    lane.tasks.push_back(&task);
    const bool counts = task.work != nullptr || task.control != nullptr;
    lane.before.push_back(lane.before.back() + (counts ? 1 : 0));
  }
}

Status StreamProgram::Run() {
  std::unique_lock lock(mutex_);
  for (const size_t head : recording_.heads_) {
    if (Status status = Start({head, 0}); !status.ok()) failure_ = std::move(status);
  }
  while (running_ > 0) {
    if (RunningTask::Aborted() || !failure_.ok()) StopAll();
    changed_.wait_for(lock, kLook, [this] { return running_ == 0; });
  }
  lock.unlock();
  for (Lane& lane : lanes_) {
    if (lane.thread.joinable()) lane.thread.join();
  }
  if (!failure_.ok() || complete_ || stopped()) return failure_;
  return Error(Code::kInvalidArgument,
               "all streams of the model have stopped, and none came to the end that "
               "aclmdlRIEndTask marks");
}

void StreamProgram::Abort() {
  Stop(Error(Code::kTimeout, "the run of the model was aborted"));
}

uint64_t StreamProgram::Progress(size_t member) const {
  const std::lock_guard lock(mutex_);
  return lanes_[member].done;
}

Status StreamProgram::Start(RecordedPlace place) {
  Lane& lane = lanes_[place.member];
  if (lane.runs || stopped()) return Status();
  if (lane.thread.joinable()) lane.thread.join();  // it has stopped, and needs no lock any more
  NPUMESH_RETURN_IF_ERROR(
      StartThread("a stream of a model", &lane.thread, [this, place, rank = LogRank()] {
        SetLogRank(rank);
        RunLane(place);
      }));
  lane.runs = true;
  ++running_;
  return Status();
}

void StreamProgram::RunLane(RecordedPlace place) {
  const RunningTask running(aborts_, 0);
  const size_t member = place.member;
  while (!stopped() && place.index < lanes_[member].tasks.size()) {
    const Result<bool> goes_on =
        WithoutExceptions("a stream of a model", [&] { return Step(&place); });
    if (!goes_on.ok()) {
      Stop(goes_on.status());
      break;
    }
    if (!*goes_on) return;
  }
  const std::lock_guard lock(mutex_);
  Leave(member);
}

void StreamProgram::Leave(size_t member) {
  lanes_[member].runs = false;
  --running_;
  ++changes_;
  changed_.notify_all();
}

Result<bool> StreamProgram::Step(RecordedPlace* place) {
  RecordedTask& task = *lanes_[place->member].tasks[place->index];
  Flow flow;
  if (task.control != nullptr) {
    uint64_t seen = 0;
    {
      const std::lock_guard lock(mutex_);
      seen = changes_;
    }
    NPUMESH_ASSIGN_OR_RETURN(flow, task.control(*this));
    if (flow.kind == Flow::Kind::kAgain) AwaitChange(seen);
  } else {
    NPUMESH_RETURN_IF_ERROR(recording_.RunTask(task));
  }
  return Follow(flow, place);
}

Result<bool> StreamProgram::Follow(const Flow& flow, RecordedPlace* place) {
  const std::lock_guard lock(mutex_);
  switch (flow.kind) {
    case Flow::Kind::kAgain:
      return true;
    case Flow::Kind::kEnd:
      complete_ = true;
      StopAll();
      Leave(place->member);
      return false;
    case Flow::Kind::kJump:
      if (flow.place.member == place->member) {
        place->index = flow.place.index;
        SetDone(*place);
        return true;
      }
      if (lanes_[flow.place.member].runs) {
        return Error(Code::kInvalidArgument,
                     "a task of stream {} jumps into stream {}, which is running",
                     recording_.streams()[place->member], recording_.streams()[flow.place.member]);
      }
      SetDone(flow.place);
      NPUMESH_RETURN_IF_ERROR(Start(flow.place));
      Leave(place->member);
      return false;
    case Flow::Kind::kStart:
      if (!lanes_[flow.place.member].runs) SetDone(flow.place);
      NPUMESH_RETURN_IF_ERROR(Start(flow.place));
      [[fallthrough]];
    case Flow::Kind::kNext:
      ++place->index;
      SetDone(*place);
      return true;
  }
  return false;
}

void StreamProgram::SetDone(RecordedPlace place) {
  Lane& lane = lanes_[place.member];
  lane.done = lane.before[place.index];
  ++changes_;
  changed_.notify_all();
}

void StreamProgram::AwaitChange(uint64_t seen) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return changes_ != seen || stopped(); });
}

void StreamProgram::Stop(const Status& failure) {
  const std::lock_guard lock(mutex_);
  if (failure_.ok()) failure_ = failure;
  StopAll();
}

void StreamProgram::StopAll() {
  aborts_.store(1, std::memory_order_release);
  changed_.notify_all();
}

}  // namespace npumesh
