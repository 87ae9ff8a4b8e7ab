// QueueRoom: the queues of buffers of a process, and the routes between them. What is put into a
// queue that routes lead from moves on as soon as each queue that they lead to has room.
//
// Thread-safety: all members may be called from any thread.
#ifndef NPUMESH_RUNTIME_ACL_QUEUES_QUEUE_ROOM_H_
#define NPUMESH_RUNTIME_ACL_QUEUES_QUEUE_ROOM_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "acl/acl_base.h"
#include "runtime/acl/queues/shared_buffers.h"

namespace npumesh {

class QueueRoom {
 public:
  static constexpr uint32_t kLeastDepth = 2;
  static constexpr uint32_t kMostDepth = 8192;
  static constexpr size_t kMostNameBytes = 127;

  static QueueRoom& OfProcess();

  // Errors of all: ACL_ERROR_INVALID_QUEUE_ID for what is no queue, ACL_ERROR_INVALID_PARAM with
  // the rule that was broken. An empty name: one is made up.
  aclError Create(std::string_view function, const std::string& name, uint32_t depth, uint32_t* id);
  aclError Destroy(std::string_view function, uint32_t id);
  aclError Check(std::string_view function, uint32_t id) const;

  // `timeout_ms`: how long it waits for room, or for a buffer; -1: without limit.
  // ACL_ERROR_RT_QUEUE_FULL and ACL_ERROR_RT_QUEUE_EMPTY. What was not put stays the caller's.
  aclError Put(std::string_view function, uint32_t id, std::shared_ptr<SharedBuffer> buffer,
               int32_t timeout_ms);
  // Takes the next one if `accept` returns ACL_SUCCESS for it; otherwise it stays, and the code is
  // returned.
  aclError Get(std::string_view function, uint32_t id, int32_t timeout_ms,
               const std::function<aclError(const SharedBuffer&)>& accept,
               std::shared_ptr<SharedBuffer>* buffer);

  using Route = std::pair<uint32_t, uint32_t>;  // from, to
  // All that can be bound, before anything moves on; the code of each.
  std::vector<aclError> Bind(std::string_view function, const std::vector<Route>& routes);
  aclError Unbind(std::string_view function, const Route& route);
  std::vector<Route> Routes() const;

 private:
  struct Queue {
    std::string name;
    uint32_t depth = 0;
    std::deque<std::shared_ptr<SharedBuffer>> buffers;
  };

  // The queue, when `ready` says so of it in time; null: it has ended, or the time is over.
  Queue* Await(std::unique_lock<std::mutex>& lock, std::string_view function, uint32_t id,
               int32_t timeout_ms, const std::function<bool(const Queue&)>& ready);
  aclError CheckLocked(std::string_view function, uint32_t id) const;
  aclError BindOne(std::string_view function, const Route& route);
  bool Leads(uint32_t from, uint32_t to) const;
  // Moves on what can.
  void MoveOn();
  bool MoveOne(uint32_t from, Queue& queue);

  mutable std::mutex mutex_;  // guards the rest
  std::condition_variable changed_;
  uint32_t last_id_ = 0;
  std::map<uint32_t, Queue> queues_;
  std::set<Route> routes_;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_QUEUES_QUEUE_ROOM_H_
