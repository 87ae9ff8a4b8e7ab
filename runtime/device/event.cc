#include "runtime/device/event_state.h"
#include "runtime/device/stream_queue.h"

namespace npumesh {

uint64_t EventState::Announce() {
  const std::lock_guard lock(mutex);
  recorded_point = {};
  return ++recorded;
}

void EventState::TakeDown(RecordedPoint point) {
  const std::lock_guard lock(mutex);
  recorded_point = std::move(point);
}

std::shared_ptr<Recording> EventState::RecordingOf(RecordedPoint* point) {
  const std::lock_guard lock(mutex);
  *point = recorded_point;
  std::shared_ptr<Recording> recording = point->recording.lock();
  return recording != nullptr && !recording->ended() ? recording : nullptr;
}

bool EventState::Place(uint64_t ticket, QueuePosition position) {
  const std::lock_guard lock(mutex);
  if (ticket == recorded) recorder = std::move(position);
  return held > 0;
}

void EventState::Reach(uint64_t ticket, const Status& stream_failure) {
  {
    const std::lock_guard lock(mutex);
    if (ticket <= reached) return;  // a later Record on another stream was faster
    reached = ticket;
    reached_at = std::chrono::steady_clock::now();
    failure = stream_failure;
    set = true;
  }
  changed.notify_all();
}

void EventState::Clear() {
  const std::lock_guard lock(mutex);
  set = false;
}

bool EventState::Passable(uint64_t ticket) {
  const std::lock_guard lock(mutex);
  return reached >= ticket && (kind == Event::Kind::kPoint || set);
}

Status EventState::Pass(uint64_t ticket, std::chrono::seconds limit,
                        const std::function<bool()>& aborted) {
  const auto passable = [&] { return reached >= ticket && (kind == Event::Kind::kPoint || set); };
  const auto over = [&] { return passable() || aborted(); };
  std::unique_lock lock(mutex);
  ++held;
  if (limit.count() == 0) {
    changed.wait(lock, over);
  } else {
    changed.wait_for(lock, limit, over);
  }
  --held;
  if (passable()) {
    return failure.WithContext("the stream of an event that was waited for failed");
  }
  if (aborted()) return Status();
  return Error(Code::kTimeout, "a stream waited {} s for an event that was not reached",
               limit.count());
}

void EventState::Wake() {
  { const std::lock_guard lock(mutex); }  // whoever asks `aborted` next sees the answer
  changed.notify_all();
}

bool EventState::WaitUntilDone(Deadline deadline) {
  const auto done = [this] { return reached == recorded; };
  std::unique_lock lock(mutex);
  if (deadline.at != Deadline::Never().at) return changed.wait_until(lock, deadline.at, done);
  changed.wait(lock, done);
  return true;
}

Event::Event(Kind kind) : state_(std::make_shared<EventState>(kind)) {}

bool Event::Done() const {
  std::shared_ptr<StreamQueue> recorder;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->reached == state_->recorded) return true;
    recorder = state_->recorder.queue.lock();
  }
  if (recorder) recorder->Hurry();
  return false;
}

bool Event::Reached() const {
  if (!Done()) return false;
  const std::lock_guard lock(state_->mutex);
  return state_->set && state_->reached == state_->recorded;
}

bool Event::Awaited() const {
  const std::lock_guard lock(state_->mutex);
  return state_->awaited > 0;
}

bool Event::InRecording() const {
  RecordedPoint point;
  return state_->RecordingOf(&point) != nullptr;
}

void Event::Synchronize() const {
  QueuePosition recorder;
  {
    const std::lock_guard lock(state_->mutex);
    recorder = state_->recorder;
  }
  if (const auto queue = recorder.queue.lock()) queue->RunUntil(recorder.index);
  static_cast<void>(state_->WaitUntilDone(Deadline::Never()));
}

bool Event::SynchronizeUntil(Deadline deadline) const {
  return Done() || state_->WaitUntilDone(deadline);
}

Result<std::chrono::steady_clock::time_point> Event::Time() const {
  const std::lock_guard lock(state_->mutex);
  if (state_->set && state_->reached == state_->recorded) return state_->reached_at;
  return Error(Code::kInvalidArgument, "an event that was never recorded or is not reached yet");
}

Result<std::chrono::nanoseconds> Event::Elapsed(const Event& from, const Event& to) {
  const auto start = from.Time();
  const auto end = to.Time();
  if (!start.ok() || !end.ok()) {
    return Error(Code::kInvalidArgument,
                 "no time between two events: the {} one was never recorded or is not reached yet",
                 start.ok() ? "second" : "first");
  }
  return std::chrono::duration_cast<std::chrono::nanoseconds>(*end - *start);
}

}  // namespace npumesh
