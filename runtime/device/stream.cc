#include "runtime/device/stream.h"

#include <optional>
#include <utility>

#include "runtime/device/stream_queue.h"

namespace npumesh {

Stream::Stream() : queue_(std::make_shared<StreamQueue>()) {}

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

std::shared_ptr<Recording> Stream::BeginRecording() {
  if (queue_->recording(nullptr) != nullptr) return nullptr;
  auto recording = std::make_shared<Recording>();
  queue_->EnterRecording(recording, recording->AddMember(queue_));
  return recording;
}

std::shared_ptr<Recording> Stream::recording() const {
  return queue_->recording(nullptr);
}

bool Stream::records() const {
  return queue_->records();
}

Stream::Place Stream::PlaceOf(const Event& event) const {
  RecordedPoint point;
  const auto theirs = event.state_->RecordingOf(&point);
  const auto ours = queue_->recording(nullptr);
  if (theirs == ours) return Place::kHere;
  if (ours == nullptr) return Place::kJoins;
  return theirs == nullptr ? Place::kOutside : Place::kForeign;
}

// Tasks of a recording run in the order of their calls: a wait is only noted.
bool Stream::WaitInRecording(const Event& event) {
  RecordedPoint point;
  const auto theirs = event.state_->RecordingOf(&point);
  if (theirs == nullptr) return recording() != nullptr;
  size_t member = 0;
  const auto ours = queue_->recording(&member);
  if (ours == nullptr) {
    member = theirs->AddMember(queue_);
    queue_->EnterRecording(theirs, member);
  }
  if (ours == nullptr || ours == theirs) theirs->Join(member, point.member, point.tasks);
  return true;
}

void Stream::Record(const Event& event) {
  size_t member = 0;
  if (const auto recording = queue_->recording(&member)) {
    event.state_->TakeDown({recording, member, recording->TasksOf(member)});
    return;
  }
  const uint64_t ticket = event.state_->Announce();
  const uint64_t index =
      queue_->Push({.kind = StreamItem::Kind::kRecord, .event = event.state_, .ticket = ticket});
  if (event.state_->Place(ticket, {queue_, index})) queue_->Hurry();
}

void Stream::Wait(const Event& event, std::chrono::seconds limit) {
  if (WaitInRecording(event)) return;
  StreamItem item{.kind = StreamItem::Kind::kWait, .event = event.state_, .limit = limit};
  const std::optional<uint64_t> ticket = event.state_->EnterWait(&item.recorder);
  if (!ticket) return;
  item.ticket = *ticket;
  queue_->Push(std::move(item));
}

void Stream::Reset(const Event& event) {
  if (records()) return;
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
