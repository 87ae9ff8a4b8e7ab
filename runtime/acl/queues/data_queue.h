// DataQueue: messages between threads, at most `capacity` at a time.
//
// Thread-safety: all members may be called from any thread.
#ifndef NPUMESH_RUNTIME_ACL_QUEUES_DATA_QUEUE_H_
#define NPUMESH_RUNTIME_ACL_QUEUES_DATA_QUEUE_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>

namespace npumesh {

template <typename Message>
class DataQueue {
 public:
  enum class Outcome { kDone, kFull, kEmpty, kStopped };

  explicit DataQueue(size_t capacity) : capacity_(capacity) {}

  // `timeout_ms`: how long it waits for room, or for a message; -1: without limit.
  Outcome Push(Message message, int32_t timeout_ms) {
    std::unique_lock lock(mutex_);
    if (!Wait(lock, timeout_ms, [this] { return messages_.size() < capacity_; })) {
      return stopped_ ? Outcome::kStopped : Outcome::kFull;
    }
    messages_.push_back(std::move(message));
    changed_.notify_all();
    return Outcome::kDone;
  }
  Outcome Pop(Message* message, int32_t timeout_ms) {
    std::unique_lock lock(mutex_);
    if (!Wait(lock, timeout_ms, [this] { return !messages_.empty(); })) {
      return stopped_ ? Outcome::kStopped : Outcome::kEmpty;
    }
    *message = std::move(messages_.front());
    messages_.pop_front();
    changed_.notify_all();
    return Outcome::kDone;
  }

  // All that wait return, and later calls do not wait.
  void Stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  void Clear() {
    std::deque<Message> dropped;
    const std::lock_guard lock(mutex_);
    dropped.swap(messages_);
    changed_.notify_all();
  }
  size_t size() const {
    const std::lock_guard lock(mutex_);
    return messages_.size();
  }

 private:
  template <typename Ready>
  bool Wait(std::unique_lock<std::mutex>& lock, int32_t timeout_ms, Ready ready) {
    const auto over = [&] { return stopped_ || ready(); };
    if (timeout_ms < 0) {
      changed_.wait(lock, over);
    } else {
      changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), over);
    }
    return ready();
  }

  const size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Message> messages_;
  bool stopped_ = false;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_QUEUES_DATA_QUEUE_H_
