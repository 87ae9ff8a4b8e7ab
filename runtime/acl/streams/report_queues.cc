#include "runtime/acl/streams/report_queues.h"

#include <algorithm>
#include <utility>

namespace npumesh {

bool ReportQueues::Subscribe(uint64_t thread, const AclStream* stream) {
  const std::lock_guard lock(mutex_);
  if (!subscribers_.try_emplace(stream, thread).second) return false;
  changed_.notify_all();
  return true;
}

bool ReportQueues::Unsubscribe(uint64_t thread, const AclStream* stream) {
  const std::lock_guard lock(mutex_);
  const auto found = subscribers_.find(stream);
  if (found == subscribers_.end() || found->second != thread) return false;
  Drop(stream);
  return true;
}

bool ReportQueues::Subscribed(const AclStream* stream) const {
  const std::lock_guard lock(mutex_);
  return subscribers_.contains(stream);
}

void ReportQueues::Forget(const AclStream* stream) {
  const std::lock_guard lock(mutex_);
  if (subscribers_.contains(stream)) Drop(stream);
}

void ReportQueues::Drop(const AclStream* stream) {
  auto& reports = waiting_[subscribers_.at(stream)];
  for (const auto& report : reports) report->over = report->over || report->stream == stream;
  std::erase_if(reports, [stream](const auto& report) { return report->stream == stream; });
  subscribers_.erase(stream);
  changed_.notify_all();
}

void ReportQueues::Post(const AclStream* stream, std::function<void()> call, bool wait) {
  const auto report = std::make_shared<Report>(Report{stream, std::move(call), false});
  std::unique_lock lock(mutex_);
  const auto subscriber = subscribers_.find(stream);
  if (subscriber == subscribers_.end()) return;  // unsubscribed since it was launched
  waiting_[subscriber->second].push_back(report);
  changed_.notify_all();
  if (wait) changed_.wait(lock, [&report] { return report->over; });
}

ReportQueues::Outcome ReportQueues::RunOne(uint64_t thread, Deadline deadline) {
  std::unique_lock lock(mutex_);
  const auto subscribed = [&] {
    return std::any_of(subscribers_.begin(), subscribers_.end(),
                       [thread](const auto& entry) { return entry.second == thread; });
  };
  auto& reports = waiting_[thread];
  while (reports.empty()) {
    if (!subscribed()) return Outcome::kNotSubscribed;
    if (deadline.at == Deadline::Never().at) {
      changed_.wait(lock);
    } else if (changed_.wait_until(lock, deadline.at) == std::cv_status::timeout &&
               reports.empty()) {
      return Outcome::kTimeout;
    }
  }
  const std::shared_ptr<Report> report = reports.front();
  reports.pop_front();
  lock.unlock();
  report->call();
  lock.lock();
  report->over = true;
  changed_.notify_all();
  return Outcome::kRan;
}

}  // namespace npumesh
