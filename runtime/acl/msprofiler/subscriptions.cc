// Subscriptions: the operators of a model go into a pipe as they run. A part of acl_prof.h.
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "acl/acl_prof.h"
#include "acl/error_codes/ge_error_codes.h"
#include "runtime/acl/models/model_objects.h"
#include "runtime/acl/msprofiler/operator_record.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/handle_table.h"
#include "runtime/acl/process/process.h"
#include "runtime/base/log.h"
#include "runtime/base/process/thread.h"

using npumesh::Fail;
using npumesh::HandleTable;
using npumesh::OperatorRecord;

struct aclprofSubscribeConfig {
  bool times = false;
  int fd = -1;
};

namespace {

constexpr size_t kMostWaiting = 65536;
constexpr std::chrono::seconds kPatience{10};

template <size_t kRoom>
void PutText(std::string_view text, std::array<char, kRoom>& to) {
  std::copy_n(text.begin(), std::min(text.size(), kRoom - 1), to.begin());
}

uint64_t Microseconds(std::chrono::system_clock::time_point time) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count());
}

// The records of one model on their way into its pipe.
class Subscription {
 public:
  Subscription(uint32_t model, const aclprofSubscribeConfig& config)
      : model_(model), config_(config) {}
  ~Subscription() { End(); }
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

  npumesh::Status Begin() {
    return npumesh::StartThread("a subscription", &writer_, [this] { Write(); });
  }

  void Add(const npumesh::RunOperator& operation) {
    OperatorRecord record;
    record.model = model_;
    if (config_.times) {
      record.begin_us = Microseconds(operation.begin);
      record.end_us = Microseconds(operation.end);
    }
    record.thread = static_cast<uint32_t>(gettid());
    PutText(operation.type, record.type);
    PutText(operation.name, record.name);
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    if (waiting_.size() >= kMostWaiting) {
      ++lost_;
      return;
    }
    waiting_.push_back(record);
    changed_.notify_one();
  }

  // Writes what waits and closes the pipe's end.
  void End() {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(ended_, true)) return;
      deadline_ = std::chrono::steady_clock::now() + kPatience;
    }
    changed_.notify_one();
    if (writer_.joinable()) writer_.join();
    close(config_.fd);
    if (lost_ == 0) return;
    NPUMESH_ERROR("aclprofModelSubscribe: {} records of model {} are lost: its pipe was not read",
                  lost_, model_);
  }

 private:
  void Write() {
    sigset_t pipe_ends;  // a reader that has gone is an error of the write alone
    sigemptyset(&pipe_ends);
    sigaddset(&pipe_ends, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_ends, nullptr);
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return ended_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const OperatorRecord record = waiting_.front();
      waiting_.pop_front();
      lock.unlock();
      const bool written = WriteOne(record);
      lock.lock();
      if (written) continue;
      lost_ += 1 + waiting_.size();
      waiting_.clear();
      if (ended_) return;
    }
  }

  // False when the reader has gone, or does not read until the end.
  bool WriteOne(const OperatorRecord& record) {
    while (true) {
      pollfd room = {config_.fd, POLLOUT, 0};
      const int ready = poll(&room, 1, 100);
      if (ready > 0 && (room.revents & POLLOUT) != 0) {
        // Less than what a pipe takes as a whole.
        return write(config_.fd, &record, sizeof record) == sizeof record;
      }
      if (ready != 0 && errno != EINTR) return false;
      const std::lock_guard lock(mutex_);
      if (ended_ && std::chrono::steady_clock::now() >= deadline_) return false;
    }
  }

  const uint32_t model_;
  const aclprofSubscribeConfig config_;
  std::mutex mutex_;  // guards the rest but the thread
  std::condition_variable changed_;
  std::deque<OperatorRecord> waiting_;
  bool ended_ = false;
  std::chrono::steady_clock::time_point deadline_;
  uint64_t lost_ = 0;
  std::thread writer_;
};

struct Subscriptions {
  HandleTable<aclprofSubscribeConfig> configs;
  std::mutex mutex;  // guards the rest
  bool ends_with_process = false;
  std::map<uint32_t, std::shared_ptr<Subscription>> by_model;

  static Subscriptions& Get() {
    static Subscriptions* const subscriptions = new Subscriptions;
    return *subscriptions;
  }

  // REQUIRES: the caller holds the mutex.
  void EndWithProcess() {
    if (std::exchange(ends_with_process, true)) return;
    npumesh::AclProcess::Get().AtFinalize([this] {
      std::map<uint32_t, std::shared_ptr<Subscription>> ending;
      const std::lock_guard lock(mutex);
      ending.swap(by_model);
      ends_with_process = false;
      for (const auto& [model, subscription] : ending) subscription->End();
    });
  }
};

}  // namespace

aclprofSubscribeConfig* aclprofCreateSubscribeConfig(int8_t timeInfoSwitch, aclprofAicoreMetrics,
                                                     void* fd) try {
  if (fd == nullptr) {
    Fail(ACL_ERROR_INVALID_PARAM, __func__, "fd is null");
    return nullptr;
  }
  auto config = std::make_shared<aclprofSubscribeConfig>();
  config->times = timeInfoSwitch != 0;
  std::memcpy(&config->fd, fd, sizeof config->fd);
  return static_cast<aclprofSubscribeConfig*>(Subscriptions::Get().configs.Add(std::move(config)));
} catch (...) {
  npumesh::FailThrown(__func__);
  return nullptr;
}

aclError aclprofDestroySubscribeConfig(const aclprofSubscribeConfig* profSubscribeConfig) try {
  NPUMESH_ACL_EXPECT(Subscriptions::Get().configs.Take(profSubscribeConfig) != nullptr,
                     "{} is no configuration of a subscription, or was destroyed",
                     fmt::ptr(profSubscribeConfig));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclprofModelSubscribe(uint32_t modelId,
                               const aclprofSubscribeConfig* profSubscribeConfig) try {
  auto& subscriptions = Subscriptions::Get();
  const auto config = subscriptions.configs.Find(profSubscribeConfig);
  NPUMESH_ACL_EXPECT(config != nullptr, "{} is no configuration of a subscription",
                     fmt::ptr(profSubscribeConfig));
  std::shared_ptr<npumesh::AclModelEntry> entry;
  NPUMESH_ACL_TRY(npumesh::FindModel(__func__, modelId, &entry));
  const std::lock_guard lock(subscriptions.mutex);
  NPUMESH_ACL_EXPECT(subscriptions.by_model.count(modelId) == 0,
                     "model {} is subscribed to already; aclprofModelUnSubscribe ends that",
                     modelId);
  auto made = std::make_shared<Subscription>(modelId, *config);
  NPUMESH_ACL_TRY(npumesh::Report(__func__, made->Begin()));
  subscriptions.EndWithProcess();
  subscriptions.by_model.emplace(modelId, made);
  entry->model->Watch([made](const npumesh::RunOperator& operation) { made->Add(operation); });
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclprofModelUnSubscribe(uint32_t modelId) try {
  auto& subscriptions = Subscriptions::Get();
  std::shared_ptr<Subscription> ending;
  {
    const std::lock_guard lock(subscriptions.mutex);
    const auto found = subscriptions.by_model.find(modelId);
    NPUMESH_ACL_EXPECT(found != subscriptions.by_model.end(), "model {} is not subscribed to",
                       modelId);
    ending = found->second;
    subscriptions.by_model.erase(found);
  }
  if (const auto entry = npumesh::LoadedModels::Get().Find(modelId)) entry->model->Watch(nullptr);
  ending->End();
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}
