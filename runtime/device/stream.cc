#include "runtime/device/stream.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/base/log.h"

namespace npumesh {

// Tickets count the Records of an event; `reached` is the highest ticket whose marker has been run.
struct Event::State {
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t recorded = 0;
  uint64_t reached = 0;
  std::chrono::steady_clock::time_point reached_at;
  Status failure;  // of the stream that reached it last

  bool done() const { return reached == recorded; }

  void Reach(uint64_t ticket, const Status& stream_failure) {
    {
      const std::lock_guard lock(mutex);
      if (ticket <= reached) return;  // a later Record on another stream was faster
      reached = ticket;
      reached_at = std::chrono::steady_clock::now();
      failure = stream_failure;
    }
    changed.notify_all();
  }

  // Blocks until `ticket` is reached.
  Status WaitFor(uint64_t ticket) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return reached >= ticket; });
    return failure;
  }

  // When the last Record was reached; nullopt when it was not, or when there is none.
  std::optional<std::chrono::steady_clock::time_point> Time() {
    const std::lock_guard lock(mutex);
    if (recorded == 0 || !done()) return std::nullopt;
    return reached_at;
  }
};

Event::Event() : state_(std::make_shared<State>()) {}

bool Event::Done() const {
  const std::lock_guard lock(state_->mutex);
  return state_->done();
}

void Event::Synchronize() const {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->done(); });
}

Result<std::chrono::nanoseconds> Event::Elapsed(const Event& from, const Event& to) {
  const auto start = from.state_->Time();
  const auto end = to.state_->Time();
  if (!start || !end) {
    return Error(Code::kInvalidArgument,
                 "no time between two events: the {} one was never recorded or is not reached yet",
                 start ? "second" : "first");
  }
  return std::chrono::duration_cast<std::chrono::nanoseconds>(*end - *start);
}

Stream::Stream()
    : worker_([this, rank = LogRank()] {
        SetLogRank(rank);
        Work();
      }) {}

Stream::~Stream() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  worker_.join();
}

void Stream::Push(Item item) {
  {
    const std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
  }
  changed_.notify_all();
}

void Stream::Enqueue(Task task) {
  Push({std::move(task), nullptr});
}

void Stream::Record(const Event& event) {
  uint64_t ticket = 0;
  {
    const std::lock_guard lock(event.state_->mutex);
    ticket = ++event.state_->recorded;
  }
  Push({nullptr,
        [state = event.state_, ticket](const Status& failure) { state->Reach(ticket, failure); }});
}

void Stream::Wait(const Event& event) {
  uint64_t ticket = 0;
  {
    const std::lock_guard lock(event.state_->mutex);
    ticket = event.state_->recorded;
  }
  if (ticket == 0) return;
  Enqueue([state = event.state_, ticket] {
    return state->WaitFor(ticket).WithContext("the stream of an event that was waited for failed");
  });
}

Status Stream::Synchronize() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return items_.empty() && !running_; });
  return failure_;
}

bool Stream::Idle() const {
  const std::lock_guard lock(mutex_);
  return items_.empty() && !running_;
}

void Stream::Work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !items_.empty() || closing_; });
    if (items_.empty()) return;
    running_ = true;
    Status status = failure_;
    {
      const Item item = std::move(items_.front());
      items_.pop_front();
      lock.unlock();
      if (item.marker) item.marker(status);
      if (item.task && status.ok()) status = item.task();
    }  // what the task holds is released before anybody is told that it is done
    lock.lock();
    failure_ = std::move(status);
    running_ = false;
    if (items_.empty()) changed_.notify_all();
  }
}

}  // namespace npumesh
