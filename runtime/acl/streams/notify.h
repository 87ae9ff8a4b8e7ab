// AclNotify: a word that streams set and wait for. A plain notify holds one record (0 or 1); a
// counting one any number of 32 bits. It lies in this process until it is exported.
//
// Thread-safety: all members may be called from any thread.
#ifndef NPUMESH_RUNTIME_ACL_STREAMS_NOTIFY_H_
#define NPUMESH_RUNTIME_ACL_STREAMS_NOTIFY_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "runtime/device/shared_ticket.h"

namespace npumesh {

class AclNotify {
 public:
  // `id`: of this process. `ticket`: of a notify that was imported; null: a new one.
  explicit AclNotify(uint32_t id, std::shared_ptr<SharedTicket> ticket = nullptr)
      : id_(id), ticket_(std::move(ticket)) {}

  uint32_t id() const { return id_; }

  // What `use` returns of the word, which does not move meanwhile.
  template <typename Use>
  auto With(Use&& use) {
    const std::lock_guard lock(mutex_);
    return use(ticket_ == nullptr ? word_ : ticket_->page().value);
  }

  // By which other processes find it; made by the first call. Errors of SharedTicket::Create.
  Result<std::shared_ptr<SharedTicket>> Share() {
    const std::lock_guard lock(mutex_);
    if (ticket_ == nullptr) {
      NPUMESH_ASSIGN_OR_RETURN(auto ticket, SharedTicket::Create(SharedKind::kNotify));
      ticket->page().value = word_.load();
      ticket_ = std::move(ticket);
    }
    return ticket_;
  }
  // Null: not shared.
  std::shared_ptr<SharedTicket> ticket() const {
    const std::lock_guard lock(mutex_);
    return ticket_;
  }

 private:
  const uint32_t id_;
  mutable std::mutex mutex_;
  std::atomic<uint64_t> word_{0};  // moves into the ticket
  std::shared_ptr<SharedTicket> ticket_;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_STREAMS_NOTIFY_H_
