#include "runtime/device/event_state.h"
#include "runtime/device/stream_queue.h"

namespace npumesh {

uint64_t EventState::Announce() {
  const std::lock_guard lock(mutex);
  recorded_point = {};
  fates.emplace_back();
  ++recorded;
  Forget();
  return recorded;
}

// Keeps the last record, whose fate a later wait asks for.
void EventState::Forget() {
  while (first < recorded && FateOf(first).reached && FateOf(first).waits == 0) ++first;
  const uint64_t gone = first - kept;
  if (2 * gone < fates.size()) return;
  fates.erase(fates.begin(), fates.begin() + static_cast<std::ptrdiff_t>(gone));
  kept = first;
}

bool EventState::Reached(uint64_t ticket) const {
  return ticket < first || fates[ticket - kept].reached;
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
    RecordFate& fate = FateOf(ticket);
    fate.reached = true;
    fate.failure = failure = stream_failure;
    set = true;
    if (ticket > highest_reached) {
      highest_reached = ticket;
      reached_at = std::chrono::steady_clock::now();
    }
    Forget();
  }
  changed.notify_all();
}

void EventState::Clear() {
  const std::lock_guard lock(mutex);
  set = false;
}

std::optional<uint64_t> EventState::EnterWait(QueuePosition* position) {
  const std::lock_guard lock(mutex);
  if (recorded == 0 && kind == Event::Kind::kPoint) return std::nullopt;
  ++awaited;
  *position = recorder;
  if (recorded != 0) ++FateOf(recorded).waits;
  return recorded;
}

void EventState::LeaveWait(uint64_t ticket) {
  const std::lock_guard lock(mutex);
  --awaited;
  if (ticket == 0) return;
  --FateOf(ticket).waits;
  Forget();
}

bool EventState::Passable(uint64_t ticket) {
  const std::lock_guard lock(mutex);
  return MayPass(ticket);
}

Status EventState::Pass(uint64_t ticket, std::chrono::seconds limit,
                        const std::function<bool()>& aborted) {
  const auto over = [&] { return MayPass(ticket) || aborted(); };
  std::unique_lock lock(mutex);
  ++held;
  if (limit.count() == 0) {
    changed.wait(lock, over);
  } else {
    changed.wait_for(lock, limit, over);
  }
  --held;
  if (MayPass(ticket)) {
    const Status& theirs = ticket == 0 ? failure : FateOf(ticket).failure;
    return theirs.WithContext("the stream of an event that was waited for failed");
  }
  if (aborted()) return Status();
  return Error(Code::kTimeout, "a stream waited {} s for an event that was not reached",
               limit.count());
}

void EventState::Wake() {
  { const std::lock_guard lock(mutex); }  // who asks `aborted` next sees the answer
  changed.notify_all();
}

bool EventState::WaitUntilDone(Deadline deadline) {
  std::unique_lock lock(mutex);
  const auto done = [this, ticket = recorded] { return Reached(ticket); };
  if (deadline.at != Deadline::Never().at) return changed.wait_until(lock, deadline.at, done);
  changed.wait(lock, done);
  return true;
}

Event::Event(Kind kind) : state_(std::make_shared<EventState>(kind)) {}

bool Event::Done() const {
  std::shared_ptr<StreamQueue> recorder;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->LastReached()) return true;
    recorder = state_->recorder.queue.lock();
  }
  if (recorder) recorder->Hurry();
  return false;
}

void Event::Reach() const {
  const uint64_t ticket = state_->Announce();
  static_cast<void>(state_->Place(ticket, {}));
  state_->Reach(ticket, Status());
}

void Event::Clear() const {
  state_->Clear();
}

bool Event::Reached() const {
  if (!Done()) return false;
  const std::lock_guard lock(state_->mutex);
  return state_->set && state_->LastReached();
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
  if (state_->set && state_->LastReached()) return state_->reached_at;
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
