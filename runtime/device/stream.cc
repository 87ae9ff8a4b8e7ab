#include "runtime/device/stream.h"

#include <utility>

#include "runtime/device/stream_queue.h"

namespace npumesh {

Stream::Stream() : queue_(std::make_shared<StreamQueue>()) {}

Stream::~Stream() {
  queue_->RunUntil(queue_->last());
  queue_->Close();
}

void Stream::Enqueue(Task&& task) {
  queue_->Push(std::move(task));
}

void Stream::Record(const Event& event) {
  const uint64_t ticket = event.state_->Announce();
  const uint64_t index =
      queue_->Push({.kind = StreamItem::Kind::kRecord, .event = event.state_, .ticket = ticket});
  if (event.state_->Place(ticket, {queue_, index})) queue_->Hurry();
}

void Stream::Wait(const Event& event, std::chrono::seconds limit) {
  StreamItem item{.kind = StreamItem::Kind::kWait, .event = event.state_, .limit = limit};
  {
    const std::lock_guard lock(event.state_->mutex);
    item.ticket = event.state_->recorded;
    item.recorder = event.state_->recorder;
    if (item.ticket == 0 && event.state_->kind == Event::Kind::kPoint) return;
    ++event.state_->awaited;
  }
  queue_->Push(std::move(item));
}

void Stream::Reset(const Event& event) {
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
