// Stream and Event: work in order on a device, and points in it.
//
// A Stream runs its tasks one after the other on a worker thread of its own. The first task that
// fails stops the stream: later tasks are dropped, and Synchronize returns the failure. Events are
// reached all the same, so that nobody waits for ever; a stream that waits for an event of a failed
// stream fails, too.
//
// Thread-safety: all members may be called from any thread, except from a task of the same stream.
#ifndef NPUMESH_RUNTIME_DEVICE_STREAM_H_
#define NPUMESH_RUNTIME_DEVICE_STREAM_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "runtime/base/status.h"

namespace npumesh {

// A point in a stream, recorded once and waited for by hosts and other streams; may be recorded
// again.
class Event {
 public:
  Event();
  // True when the last Record has been reached (or when it was never recorded).
  bool Done() const;
  // Blocks until Done. Whether the stream failed is asked from the stream.
  void Synchronize() const;
  // Time between the completion of two recorded events; kInvalidArgument when either is not done or
  // was never recorded.
  static Result<std::chrono::nanoseconds> Elapsed(const Event& from, const Event& to);

 private:
  friend class Stream;
  struct State;
  std::shared_ptr<State> state_;
};

class Stream {
 public:
  using Task = std::function<Status()>;

  Stream();
  ~Stream();  // finishes what was enqueued
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void Enqueue(Task task);
  void Record(const Event& event);
  // Later tasks of this stream wait for the event's last Record.
  void Wait(const Event& event);
  // Blocks until all is done. Returns the first failure since the stream was made; it stays.
  Status Synchronize();
  // True when nothing is queued or running.
  bool Idle() const;

 private:
  // A task, or the marker of an event, which is told the stream's failure and is never dropped.
  struct Item {
    Task task;
    std::function<void(const Status&)> marker;
  };

  void Push(Item item);
  void Work();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
  bool running_ = false;
  bool closing_ = false;
  Status failure_;
  std::thread worker_;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_DEVICE_STREAM_H_
