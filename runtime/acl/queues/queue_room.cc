#include "runtime/acl/queues/queue_room.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/acl/process/errors.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

// How long a wait without limit lasts before the log tells of it.
constexpr std::chrono::seconds kLong{30};

using Clock = std::chrono::steady_clock;

}  // namespace

QueueRoom& QueueRoom::OfProcess() {
  static QueueRoom* const room = new QueueRoom;
  return *room;
}

aclError QueueRoom::Create(std::string_view function, const std::string& name, uint32_t depth,
                           uint32_t* id) {
  const std::lock_guard lock(mutex_);
  const bool taken =
      !name.empty() && std::any_of(queues_.begin(), queues_.end(),
                                   [&](const auto& queue) { return queue.second.name == name; });
  if (taken) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "a queue has the name \"{}\" already", name);
  }
  *id = ++last_id_;
  queues_[*id] = {name.empty() ? fmt::format("queue-{}", *id) : name, depth, {}};
  return ACL_SUCCESS;
}

aclError QueueRoom::Destroy(std::string_view function, uint32_t id) {
  const std::lock_guard lock(mutex_);
  NPUMESH_ACL_TRY(CheckLocked(function, id));
  for (const auto& [from, to] : routes_) {
    if (from != id && to != id) continue;
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "the route from queue {} to {} is bound; acltdtUnbindQueueRoutes ends it", from,
                to);
  }
  queues_.erase(id);
  changed_.notify_all();
  return ACL_SUCCESS;
}

aclError QueueRoom::Check(std::string_view function, uint32_t id) const {
  const std::lock_guard lock(mutex_);
  return CheckLocked(function, id);
}

aclError QueueRoom::CheckLocked(std::string_view function, uint32_t id) const {
  if (queues_.count(id) != 0) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_QUEUE_ID, function, "{} is no queue, or was destroyed", id);
}

aclError QueueRoom::Put(std::string_view function, uint32_t id,
                        std::shared_ptr<SharedBuffer> buffer, int32_t timeout_ms) {
  std::unique_lock lock(mutex_);
  NPUMESH_ACL_TRY(CheckLocked(function, id));
  const auto has_room = [](const Queue& queue) { return queue.buffers.size() < queue.depth; };
  Queue* const queue = Await(lock, function, id, timeout_ms, has_room);
  if (queue == nullptr) {
    NPUMESH_ACL_TRY(CheckLocked(function, id));
    const Queue& full = queues_.at(id);
    return Fail(ACL_ERROR_RT_QUEUE_FULL, function, "queue {} (\"{}\") has {} buffers, its depth",
                id, full.name, full.depth);
  }
  queue->buffers.push_back(std::move(buffer));
  MoveOn();
  changed_.notify_all();
  return ACL_SUCCESS;
}

aclError QueueRoom::Get(std::string_view function, uint32_t id, int32_t timeout_ms,
                        const std::function<aclError(const SharedBuffer&)>& accept,
                        std::shared_ptr<SharedBuffer>* buffer) {
  std::unique_lock lock(mutex_);
  NPUMESH_ACL_TRY(CheckLocked(function, id));
  const auto has_one = [](const Queue& queue) { return !queue.buffers.empty(); };
  Queue* const queue = Await(lock, function, id, timeout_ms, has_one);
  if (queue == nullptr) {
    NPUMESH_ACL_TRY(CheckLocked(function, id));
    return Fail(ACL_ERROR_RT_QUEUE_EMPTY, function, "queue {} (\"{}\") is empty", id,
                queues_.at(id).name);
  }
  NPUMESH_ACL_TRY(accept(*queue->buffers.front()));
  *buffer = std::move(queue->buffers.front());
  queue->buffers.pop_front();
  MoveOn();
  changed_.notify_all();
  return ACL_SUCCESS;
}

QueueRoom::Queue* QueueRoom::Await(std::unique_lock<std::mutex>& lock, std::string_view function,
                                   uint32_t id, int32_t timeout_ms,
                                   const std::function<bool(const Queue&)>& ready) {
  const auto start = Clock::now();
  bool told = false;
  while (true) {
    const auto found = queues_.find(id);
    if (found == queues_.end()) return nullptr;
    if (ready(found->second)) return &found->second;
    const auto limit = timeout_ms < 0 ? (told ? Clock::time_point::max() : start + kLong)
                                      : start + std::chrono::milliseconds(timeout_ms);
    if (Clock::now() >= limit) {
      if (timeout_ms >= 0) return nullptr;
      told = true;
      NPUMESH_WARNING("{} has waited for queue {} (\"{}\", {} of {} buffers) for {} s and goes on",
                      function, id, found->second.name, found->second.buffers.size(),
                      found->second.depth, kLong.count());
      continue;
    }
    if (limit == Clock::time_point::max()) {
      changed_.wait(lock);
    } else {
      changed_.wait_until(lock, limit);
    }
  }
}

std::vector<aclError> QueueRoom::Bind(std::string_view function, const std::vector<Route>& routes) {
  const std::lock_guard lock(mutex_);
  std::vector<aclError> codes;
  for (const Route& route : routes) codes.push_back(BindOne(function, route));
  MoveOn();
  changed_.notify_all();
  return codes;
}

aclError QueueRoom::BindOne(std::string_view function, const Route& route) {
  NPUMESH_ACL_TRY(CheckLocked(function, route.first));
  NPUMESH_ACL_TRY(CheckLocked(function, route.second));
  if (routes_.count(route) != 0) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "the route from queue {} to {} is bound already",
                route.first, route.second);
  }
  if (Leads(route.second, route.first)) {
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "queue {} leads to queue {} already; a route back makes a circle", route.second,
                route.first);
  }
  routes_.insert(route);
  return ACL_SUCCESS;
}

aclError QueueRoom::Unbind(std::string_view function, const Route& route) {
  const std::lock_guard lock(mutex_);
  if (routes_.erase(route) != 0) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, function, "no route from queue {} to {} is bound",
              route.first, route.second);
}

std::vector<QueueRoom::Route> QueueRoom::Routes() const {
  const std::lock_guard lock(mutex_);
  return {routes_.begin(), routes_.end()};
}

bool QueueRoom::Leads(uint32_t from, uint32_t to) const {
  if (from == to) return true;
  return std::any_of(routes_.begin(), routes_.end(), [&](const Route& route) {
    return route.first == from && Leads(route.second, to);
  });
}

void QueueRoom::MoveOn() {
  for (bool moved = true; moved;) {
    moved = false;
    for (auto& [id, queue] : queues_) moved |= MoveOne(id, queue);
  }
}

bool QueueRoom::MoveOne(uint32_t from, Queue& queue) {
  if (queue.buffers.empty()) return false;
  std::vector<Queue*> targets;
  for (const auto& [source, target] : routes_) {
    if (source == from) targets.push_back(&queues_.at(target));
  }
  const bool room = std::all_of(targets.begin(), targets.end(), [](const Queue* target) {
    return target->buffers.size() < target->depth;
  });
  if (targets.empty() || !room) return false;
  const auto buffer = std::move(queue.buffers.front());
  queue.buffers.pop_front();
  for (Queue* const target : targets) {
    target->buffers.push_back(target == targets.back() ? buffer
                                                       : SharedBuffers::Reference(*buffer));
  }
  return true;
}

}  // namespace npumesh
