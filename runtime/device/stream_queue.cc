#include "runtime/device/stream_queue.h"

#include <algorithm>
#include <utility>

#include "runtime/base/files/shared_library.h"
#include "runtime/base/log.h"
#include "runtime/base/process/thread.h"
#include "runtime/device/running_task.h"

namespace npumesh {
namespace {

// How long a queued item may wait for a host that synchronises. It grows while hosts come, so that
// the worker does not take the core from them, and falls back when it was needed.
constexpr std::chrono::microseconds kShortestDoze{100};
constexpr std::chrono::microseconds kLongestDoze{2000};
constexpr int kQuietDozesBeforeSleep = 16;

// The thread logs as the rank whose stream it runs.
class LogRankScope {
 public:
  explicit LogRankScope(int rank) : rank_(rank), before_(LogRank()) {
    if (rank_ != before_) SetLogRank(rank_);
  }
  ~LogRankScope() {
    if (rank_ != before_) SetLogRank(before_);
  }
  LogRankScope(const LogRankScope&) = delete;
  LogRankScope& operator=(const LogRankScope&) = delete;

 private:
  const int rank_;
  const int before_;
};

std::atomic<Stream::Watcher> watcher{nullptr};

thread_local uint64_t last_of_thread = 0;

void TellWatcher(const StreamFailure& failure) {
  const auto watching = watcher.load(std::memory_order_acquire);
  if (watching != nullptr) watching(failure);
}

// What it holds is released.
void Empty(StreamItem& item) {
  if (item.kind == StreamItem::Kind::kTask) {
    item.task = Task();
    item.thread = 0;
  } else {
    item = StreamItem();
  }
}

}  // namespace

StreamItems::StreamItems() {
  for (size_t i = 0; i < kUsual; ++i) GiveBack(new StreamItem);
}

StreamItems::~StreamItems() {
  for (StreamItem* first : {first_, free_}) {
    while (first != nullptr) delete std::exchange(first, first->next);
  }
}

StreamItem* StreamItems::Append() {
  StreamItem* item = free_;
  if (item == nullptr) {
    item = new StreamItem;
  } else {
    free_ = std::exchange(item->next, nullptr);
    --free_count_;
  }
  (first_ == nullptr ? first_ : last_->next) = item;
  last_ = item;
  return item;
}

StreamItem* StreamItems::Take() {
  return std::exchange(first_, first_->next);
}

StreamItem* StreamItems::TakeAll() {
  return std::exchange(first_, nullptr);
}

void StreamItems::GiveBack(StreamItem* item) {
  if (free_count_ == kUsual) {
    delete item;
    return;
  }
  item->next = std::exchange(free_, item);
  ++free_count_;
}

StreamQueue::StreamQueue(int32_t number)
    : number_(number), log_rank_(LogRank()), doze_(kShortestDoze) {
  constexpr size_t kUsualThreads = 4;
  waiting_.reserve(kUsualThreads);
  in_census_ = std::make_unique<QueueInCensus>([this] { return Look(); });
}

StreamQueue::~StreamQueue() {
  in_census_.reset();
  Close();
}

void StreamQueue::Close() {
  {
    const Lock lock(mutex_);
    closing_ = true;
  }
  worker_wakes_.notify_one();
  if (worker_.joinable()) worker_.join();
}

template <typename Item>
uint64_t StreamQueue::PushItem(Item&& item) {
  Lock lock(mutex_);
  StreamItem& pushed = items_.Push(std::forward<Item>(item));
  const uint64_t index = ++pushed_;
  last_of_thread = index;
  if (watcher.load(std::memory_order_relaxed) != nullptr) pushed.thread = ThisThread();
  if (!worker_started_) StartWorker();
  if (std::exchange(asleep_, false)) {
    lock.unlock();
    worker_wakes_.notify_one();
  }
  return index;
}

uint64_t StreamQueue::Push(StreamItem&& item) {
  return PushItem(std::move(item));
}

uint64_t StreamQueue::Push(Task&& task) {
  return PushItem(std::move(task));
}

void StreamQueue::PushOrRecord(Task&& task) {
  if (!records()) {
    PushItem(std::move(task));
    return;
  }
  size_t member = 0;
  if (const auto taken = recording(&member)) {
    taken->Add(member, std::move(task));
  } else {
    PushItem(std::move(task));
  }
}

void StreamQueue::EnterRecording(std::shared_ptr<Recording> recording, size_t member) {
  const Lock lock(mutex_);
  recording_ = std::move(recording);
  recording_member_ = member;
  records_.store(true, std::memory_order_relaxed);
}

void StreamQueue::LeaveRecording() {
  std::shared_ptr<Recording> left;  // may end with what it holds: not under the lock
  const Lock lock(mutex_);
  left.swap(recording_);
  records_.store(false, std::memory_order_relaxed);
}

std::shared_ptr<Recording> StreamQueue::recording(size_t* member) const {
  const Lock lock(mutex_);
  if (member != nullptr) *member = recording_member_;
  return recording_;
}

uint64_t StreamQueue::last() const {
  const Lock lock(mutex_);
  return pushed_;
}

Status StreamQueue::failure() const {
  const Lock lock(mutex_);
  return failure_;
}

bool StreamQueue::idle() const {
  const Lock lock(mutex_);
  return done_ == pushed_;
}

void StreamQueue::stop_on_failure(bool stop) {
  const Lock lock(mutex_);
  stop_on_failure_ = stop;
}

Status StreamQueue::RunAll() {
  Lock lock(mutex_);
  RunUntil(lock, pushed_);
  return failure_;
}

void StreamQueue::RunUntil(uint64_t index) {
  Lock lock(mutex_);
  RunUntil(lock, index);
}

void StreamQueue::RunUntil(Lock& lock, uint64_t index) {
  while (done_ < index) {
    if (running_) {
      AwaitProgress(lock, index);
    } else {
      RunItems(lock, index);
    }
  }
}

// Until `index` is done or no thread runs.
void StreamQueue::AwaitProgress(Lock& lock, uint64_t index) {
  awaited_ = std::min(awaited_, index);
  const auto me = std::pair(ThisThread(), index);
  waiting_.push_back(me);
  progress_.wait(lock);
  waiting_.erase(std::find(waiting_.begin(), waiting_.end(), me));
}

QueueSight StreamQueue::Look() const {
  const Lock lock(mutex_);
  QueueSight sight{done_ == pushed_ && !running_, worker_thread_, running_ ? runner_ : 0, {}};
  for (const auto& [thread, index] : waiting_) {
    if (index > done_) sight.waiting.push_back(thread);
  }
  return sight;
}

bool StreamQueue::AwaitUntil(uint64_t index, Deadline deadline) {
  Lock lock(mutex_);
  while (done_ < index) {
    if (deadline.at == Deadline::Never().at) {
      AwaitProgress(lock, index);
      continue;
    }
    awaited_ = std::min(awaited_, index);
    if (progress_.wait_until(lock, deadline.at) == std::cv_status::timeout) {
      return done_ >= index;
    }
  }
  return true;
}

void StreamQueue::TellWaiters() {
  awaited_ = kNoIndex;  // those that go on waiting say so again
  progress_.notify_all();
}

void StreamQueue::RunItems(Lock& lock, uint64_t index) {
  const LogRankScope log_rank(log_rank_);
  running_ = true;
  runner_ = ThisThread();
  while (!items_.empty() && done_ < index) {
    RunFront(lock);
    if (done_ >= awaited_) TellWaiters();
  }
  running_ = false;
  if (awaited_ != kNoIndex) TellWaiters();
  if (hurried_ && !items_.empty()) worker_wakes_.notify_one();
}

void StreamQueue::RunFront(Lock& lock) {
  StreamItem* const item = items_.Take();
  const Status failure = failure_;
  const bool dropped = stop_on_failure_ && !failure.ok();
  const uint64_t aborts = aborts_.load(std::memory_order_relaxed);  // changes under the mutex
  const uint64_t index = done_ + 1;
  const pid_t thread = item->thread;
  lock.unlock();
  Status status =
      WithoutExceptions("a task of a stream", [&] { return Run(*item, failure, dropped, aborts); });
  Empty(*item);  // before anybody is told that it is done
  if (!status.ok()) TellWatcher({number_, index, thread, status});
  lock.lock();
  items_.GiveBack(item);
  if (!status.ok() && failure_.ok()) failure_ = std::move(status);
  ++done_;
}

Status StreamQueue::Run(StreamItem& item, const Status& failure, bool dropped, uint64_t aborts) {
  switch (item.kind) {
    case StreamItem::Kind::kTask:
      return dropped ? Status() : RunTask(item, aborts);
    case StreamItem::Kind::kRecord:
      item.event->Reach(item.ticket, failure);
      return Status();
    case StreamItem::Kind::kReset:
      item.event->Clear();
      return Status();
    case StreamItem::Kind::kWait: {
      Status status = dropped ? Status() : PassEvent(item, aborts);
      item.event->LeaveWait(item.ticket);
      return status;
    }
  }
  return Status();
}

Status StreamQueue::RunTask(StreamItem& item, uint64_t aborts) {
  const RunningTask running(aborts_, aborts);
  return item.task.Finish();
}

Status StreamQueue::PassEvent(const StreamItem& item, uint64_t aborts) {
  if (!item.event->Passable(item.ticket)) {
    // The record stands in another queue: run that far instead of waiting for another thread.
    if (const auto recorder = item.recorder.queue.lock()) recorder->RunUntil(item.recorder.index);
    {
      const Lock lock(mutex_);
      held_by_ = item.event;
    }
  }
  Status status = item.event->Pass(
      item.ticket, item.limit, [&] { return aborts_.load(std::memory_order_acquire) != aborts; });
  {
    const Lock lock(mutex_);
    held_by_.reset();
  }
  return status;
}

void StreamQueue::Watch(Stream::Watcher watching) {
  watcher.store(watching, std::memory_order_release);
}

uint64_t StreamQueue::LastOfThread() {
  return last_of_thread;
}

void StreamQueue::Abort() {
  StreamItem* dropped = nullptr;
  std::shared_ptr<EventState> held_by;
  {
    Lock lock(mutex_);
    aborts_.fetch_add(1, std::memory_order_acq_rel);
    dropped = items_.TakeAll();
    held_by = held_by_;
  }
  if (held_by) held_by->Wake();
  uint64_t count = 0;
  for (; dropped != nullptr; ++count) {
    const std::unique_ptr<StreamItem> item(std::exchange(dropped, dropped->next));
    if (item->kind == StreamItem::Kind::kRecord) item->event->Reach(item->ticket, Status());
    if (item->kind == StreamItem::Kind::kWait) item->event->LeaveWait(item->ticket);
  }
  Lock lock(mutex_);
  const uint64_t index = done_ + count + (running_ ? 1 : 0);
  done_ += count;
  while (running_ && done_ < index) AwaitProgress(lock, index);
  TellWaiters();
}

void StreamQueue::Hurry() {
  Lock lock(mutex_);
  if (items_.empty() || hurried_) return;
  hurried_ = true;
  if (!running_) worker_wakes_.notify_one();
}

void StreamQueue::StartWorker() {
  worker_started_ = true;
  without_worker_ = StartThread("a stream", &worker_, [this] {
    SetLogRank(log_rank_);
    Work();
  });
  has_worker_.store(without_worker_.ok(), std::memory_order_relaxed);
  if (!without_worker_.ok()) {
    NPUMESH_WARNING("work of a stream waits for a synchronise: {}", without_worker_.message());
  }
}

Status StreamQueue::Ready() {
  if (has_worker_.load(std::memory_order_relaxed)) return Status();
  const Lock lock(mutex_);
  if (!worker_.joinable()) StartWorker();
  return without_worker_;
}

void StreamQueue::Work() {
  Lock lock(mutex_);
  worker_thread_ = ThisThread();
  while (!closing_) {
    if (items_.empty() && quiet_dozes_ >= kQuietDozesBeforeSleep) {
      asleep_ = true;
      worker_wakes_.wait(lock, [this] { return closing_ || !asleep_; });
      quiet_dozes_ = 0;
      doze_ = kShortestDoze;
    }
    if (Doze(lock)) RunItems(lock, kNoIndex);
  }
}

bool StreamQueue::Doze(Lock& lock) {
  const uint64_t done = done_;
  const bool was_queued = !items_.empty();
  worker_wakes_.wait_for(lock, doze_, [this] { return closing_ || (hurried_ && !running_); });
  const bool moved = done_ != done || running_;
  quiet_dozes_ = moved || !items_.empty() ? 0 : quiet_dozes_ + 1;
  if (items_.empty() || running_ || closing_) {
    hurried_ = hurried_ && !items_.empty();
    if (moved) doze_ = std::min(doze_ * 2, kLongestDoze);
    return false;
  }
  if (!hurried_ && (!was_queued || moved)) return false;
  hurried_ = false;
  doze_ = kShortestDoze;
  return true;
}

}  // namespace npumesh
