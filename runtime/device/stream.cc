#include "runtime/device/stream.h"

#include <optional>
#include <utility>

#include "runtime/device/running_task.h"
#include "runtime/device/stream_program.h"
#include "runtime/device/stream_queue.h"

namespace npumesh {

Stream::Stream(int32_t number) : queue_(std::make_shared<StreamQueue>(number)) {}

void Stream::Watch(Watcher watcher) {
  StreamQueue::Watch(watcher);
}

uint64_t Stream::LastOfThread() {
  return StreamQueue::LastOfThread();
}

Stream::~Stream() {
  queue_->RunUntil(queue_->last());
  queue_->Close();
}

Status Stream::Ready() {
  return queue_->Ready();
}

void Stream::Enqueue(Task&& task) {
  queue_->PushOrRecord(std::move(task));
}

void Stream::Enqueue(Task&& task, Note note) {
  size_t member = 0;
  if (const auto recording = queue_->recording(&member)) {
    recording->Add(member, std::move(task), std::move(note));
  } else {
    queue_->PushOrRecord(std::move(task));
  }
}

bool Stream::BeginRecording(const std::shared_ptr<Recording>& into) {
  if (queue_->recording(nullptr) != nullptr) return false;
  queue_->EnterRecording(into, into->AddMember(queue_, queue_->number()));
  return true;
}

std::shared_ptr<Recording> Stream::recording(size_t* member) const {
  return queue_->recording(member);
}

bool Stream::records() const {
  return queue_->records();
}

void Stream::TakeDown(Control control, Note note) {
  size_t member = 0;
  if (const auto recording = queue_->recording(&member)) {
    recording->AddControl(member, std::move(control), std::move(note));
  }
}

void Stream::TakeDown(Note note) {
  size_t member = 0;
  const auto recording = queue_->recording(&member);
  if (recording != nullptr && note != nullptr) recording->AddNote(member, std::move(note));
}

std::optional<RecordedPlace> Stream::RecordedEnd() const {
  size_t member = 0;
  const auto recording = queue_->recording(&member);
  if (recording == nullptr) return std::nullopt;
  return recording->EndOf(member);
}

Stream::Place Stream::PlaceOf(const Event& event) const {
  RecordedPoint point;
  const auto theirs = event.state_->RecordingOf(&point);
  const auto ours = queue_->recording(nullptr);
  if (theirs == ours) return Place::kHere;
  if (theirs == nullptr) return Place::kOutside;
  return ours == nullptr && theirs->kind() == Recording::Kind::kCaptured ? Place::kJoins
                                                                         : Place::kForeign;
}

// Tasks of a captured recording run in the order of their calls: a wait is only noted.
bool Stream::WaitInRecording(const Event& event, std::chrono::seconds limit, Note note) {
  RecordedPoint point;
  const auto theirs = event.state_->RecordingOf(&point);
  size_t member = 0;
  const auto ours = queue_->recording(&member);
  if (ours != nullptr && ours->kind() == Recording::Kind::kBuilt) {
    WaitInProgram(event, limit, std::move(note));
    return true;
  }
  if (theirs == nullptr) return ours != nullptr;
  if (ours == nullptr) {
    member = theirs->AddMember(queue_, queue_->number());
    queue_->EnterRecording(theirs, member);
  }
  if (ours == nullptr || ours == theirs) {
    theirs->Join(member, point.member, point.tasks, point.mark);
  }
  TakeDown(std::move(note));
  return true;
}

// In a run, the wait is for the member that has recorded the event to come that far; an event from
// outside is waited for as it is by then.
void Stream::WaitInProgram(const Event& event, std::chrono::seconds limit, Note note) {
  RecordedPoint point;
  if (event.state_->RecordingOf(&point) != nullptr) {
    const auto passes = [point](const StreamProgram& program) -> Result<Flow> {
      const bool done = program.Progress(point.member) >= point.tasks;
      return Flow{done ? Flow::Kind::kNext : Flow::Kind::kAgain, {}};
    };
    TakeDown(passes, std::move(note));
    return;
  }
  const auto await = [event, limit] {
    const auto passes = [&event] {
      return event.state_->kind == Event::Kind::kPoint ? event.Done() : event.Reached();
    };
    return AwaitInTask(passes, {.what = "for an event of another stream", .limit = limit});
  };
  Enqueue(await, std::move(note));
}

void Stream::Record(const Event& event, Note note) {
  size_t member = 0;
  if (const auto recording = queue_->recording(&member)) {
    if (recording->kind() == Recording::Kind::kBuilt) {
      const auto reach = [event] {
        event.Reach();
        return Status();
      };
      recording->Add(member, reach, std::move(note));
    } else {
      TakeDown(std::move(note));
    }
    RecordedPoint point{.recording = recording, .member = member};
    point.mark = recording->MarkRecord(member, &point.tasks);
    event.state_->TakeDown(std::move(point));
    return;
  }
  const uint64_t ticket = event.state_->Announce();
  const uint64_t index =
      queue_->Push({.kind = StreamItem::Kind::kRecord, .event = event.state_, .ticket = ticket});
  if (event.state_->Place(ticket, {queue_, index})) queue_->Hurry();
}

void Stream::Wait(const Event& event, std::chrono::seconds limit, Note note) {
  if (WaitInRecording(event, limit, std::move(note))) return;
  StreamItem item{.kind = StreamItem::Kind::kWait, .event = event.state_, .limit = limit};
  const std::optional<uint64_t> ticket = event.state_->EnterWait(&item.recorder);
  if (!ticket) return;
  item.ticket = *ticket;
  queue_->Push(std::move(item));
}

void Stream::Reset(const Event& event, Note note) {
  size_t member = 0;
  if (const auto recording = queue_->recording(&member)) {
    const auto clear = [event] {
      event.Clear();
      return Status();
    };
    if (recording->kind() == Recording::Kind::kBuilt) {
      recording->Add(member, clear, std::move(note));
    } else {
      TakeDown(std::move(note));
    }
    return;
  }
  queue_->Push({.kind = StreamItem::Kind::kReset, .event = event.state_});
}

Status Stream::Synchronize() {
  return queue_->RunAll();
}

bool Stream::SynchronizeUntil(Deadline deadline) {
  queue_->Hurry();
  return queue_->AwaitUntil(queue_->last(), deadline);
}

void Stream::Abort() {
  queue_->Abort();
}

Status Stream::failure() const {
  return queue_->failure();
}

bool Stream::Idle() const {
  if (queue_->idle()) return true;
  queue_->Hurry();
  return false;
}

void Stream::StopOnFailure(bool stop) {
  queue_->stop_on_failure(stop);
}

}  // namespace npumesh
