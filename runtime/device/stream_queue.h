// StreamQueue: the items of one stream, and who runs them (stream.h says why). Known to
// runtime/device only.
//
// Exactly one thread runs items at a time: `running_` says that one does. A worker thread is
// started with the first item. It dozes while the stream is in use, sleeps when nothing came for a
// while, and never sleeps while something is queued.
//
// Thread-safety: all members may be called from any thread, but those that block not from an item
// of the same queue.
#ifndef NPUMESH_RUNTIME_DEVICE_STREAM_QUEUE_H_
#define NPUMESH_RUNTIME_DEVICE_STREAM_QUEUE_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/process/short_lock.h"
#include "runtime/base/process/thread_census.h"
#include "runtime/device/event_state.h"
#include "runtime/device/stream.h"

namespace npumesh {

struct StreamItem {
  enum class Kind : uint8_t { kTask, kRecord, kWait, kReset };
  Kind kind = Kind::kTask;
  Task task;
  std::shared_ptr<EventState> event;  // of the other kinds
  uint64_t ticket = 0;
  QueuePosition recorder;         // kWait: where the record stands that is waited for
  std::chrono::seconds limit{0};  // kWait
  pid_t thread = 0;               // that queued it; 0: while there was no watcher

  StreamItem* next = nullptr;  // in StreamItems
};

// Items in order. An item lies still from when it is queued to when it is given back, so it runs
// where it lies: to move a task costs as much as to queue it. Items are used again.
//
// Thread-safety: one thread at a time; an item that was taken out belongs to who took it.
class StreamItems {
 public:
  StreamItems();
  ~StreamItems();
  StreamItems(const StreamItems&) = delete;
  StreamItems& operator=(const StreamItems&) = delete;

  bool empty() const { return first_ == nullptr; }
  StreamItem& Push(StreamItem&& item) { return *Append() = std::move(item); }
  StreamItem& Push(Task&& task) {
    StreamItem& item = *Append();
    item.task = std::move(task);
    return item;
  }
  // Takes the first one out. REQUIRES: not empty.
  StreamItem* Take();
  // Takes all that are left out; each leads to the next one.
  StreamItem* TakeAll();
  // Gives back what was taken out and holds nothing any more.
  void GiveBack(StreamItem* item);

 private:
  // Room for usual queues, so that one that once was short allocates nothing when it is longer.
  static constexpr size_t kUsual = 64;

  StreamItem* Append();

  StreamItem* first_ = nullptr;
  StreamItem* last_ = nullptr;
  StreamItem* free_ = nullptr;
  size_t free_count_ = 0;
};

class StreamQueue {
 public:
  explicit StreamQueue(int32_t number);
  ~StreamQueue();
  StreamQueue(const StreamQueue&) = delete;
  StreamQueue& operator=(const StreamQueue&) = delete;

  // Returns the item's index; indices count from 1.
  uint64_t Push(StreamItem&& item);
  uint64_t Push(Task&& task);
  // The same for a task, or takes it down while the stream records.
  void PushOrRecord(Task&& task);
  // The index of the last item.
  uint64_t last() const;
  // Blocks until everything is done that was pushed before; runs it unless another thread runs.
  // Returns the first failure so far.
  Status RunAll();
  // The same up to item `index`.
  void RunUntil(uint64_t index);
  // Blocks until item `index` is done or the deadline; runs nothing. True when it is done.
  bool AwaitUntil(uint64_t index, Deadline deadline);
  // Starts the worker unless it is there. Error (kIo): the system gives no thread.
  Status Ready();
  // A thread waits for what is queued: the worker begins at once.
  void Hurry();
  void Abort();

  // Tasks go to `recording` from now on, as those of `member`.
  void EnterRecording(std::shared_ptr<Recording> recording, size_t member);
  void LeaveRecording();
  bool records() const { return records_.load(std::memory_order_relaxed); }
  // How recordings call the stream.
  int32_t number() const { return number_; }
  // Where tasks go; null: into this queue. `member`, unless null, is set to the stream's number.
  std::shared_ptr<Recording> recording(size_t* member) const;

  // Ends the worker after the item that it runs. The last call.
  void Close();

  Status failure() const;
  bool idle() const;
  void stop_on_failure(bool stop);

  // Stream::Watch and Stream::LastOfThread.
  static void Watch(Stream::Watcher watcher);
  static uint64_t LastOfThread();

 private:
  using Lock = std::unique_lock<ShortLock>;
  static constexpr uint64_t kNoIndex = std::numeric_limits<uint64_t>::max();

  template <typename Item>
  uint64_t PushItem(Item&& item);
  // Runs items until the queue is empty or `index` is done. REQUIRES: !running_.
  void RunUntil(Lock& lock, uint64_t index);
  void RunItems(Lock& lock, uint64_t index);
  void RunFront(Lock& lock);
  // `failure`: of the stream so far; `dropped`: it stops the item; `aborts`: how many came before.
  Status Run(StreamItem& item, const Status& failure, bool dropped, uint64_t aborts);
  Status RunTask(StreamItem& item, uint64_t aborts);
  Status PassEvent(const StreamItem& item, uint64_t aborts);
  [[gnu::cold]] void AwaitProgress(Lock& lock, uint64_t index);
  [[gnu::cold]] void TellWaiters();
  QueueSight Look() const;
  [[gnu::cold]] void StartWorker();
  void Work();
  // One doze; true when the worker shall run what is queued.
  bool Doze(Lock& lock);

  const int32_t number_;
  const int log_rank_;
  mutable ShortLock mutex_;
  StreamItems items_;
  uint64_t pushed_ = 0;
  uint64_t done_ = 0;  // items done, dropped ones included
  bool running_ = false;
  bool stop_on_failure_ = true;
  Status failure_;
  std::atomic<bool> records_{false};  // recording_ is not null: asked by every push
  std::shared_ptr<Recording> recording_;
  size_t recording_member_ = 0;

  std::condition_variable_any progress_;
  uint64_t awaited_ = kNoIndex;  // the least index that a thread is waiting for
  pid_t runner_ = 0;             // while running_
  pid_t worker_thread_ = 0;
  std::vector<std::pair<pid_t, uint64_t>> waiting_;  // without an end, for which index

  std::condition_variable_any worker_wakes_;
  std::thread worker_;
  bool worker_started_ = false;
  std::atomic<bool> has_worker_{false};  // asked by every call that queues something
  Status without_worker_;                // why it has no worker
  bool asleep_ = false;
  bool hurried_ = false;
  bool closing_ = false;
  std::chrono::microseconds doze_;
  int quiet_dozes_ = 0;

  std::atomic<uint64_t> aborts_{0};
  std::shared_ptr<EventState> held_by_;       // the event that an item of this queue is blocked on
  std::unique_ptr<QueueInCensus> in_census_;  // the last to be made, the first to go
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_DEVICE_STREAM_QUEUE_H_
