// WindowWait: how a member waits for what the others write into their slots, and what it says of
// the call in which it waits.
//
// A wait takes up to Meeting::exec_timeout and speaks up as Waiter does. The call it names is the
// one that this member began last, also when that one is over: a member may still wait then for
// those who have not read everything.
//
// Thread-safety: one thread of a rank uses an object at a time.
#ifndef NPUMESH_COLLECTIVES_CONTRACT_WINDOW_WAIT_H_
#define NPUMESH_COLLECTIVES_CONTRACT_WINDOW_WAIT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "collectives/contract/meeting.h"
#include "collectives/contract/waiter.h"
#include "collectives/contract/window_slots.h"

namespace npumesh {

class WindowWait {
 public:
  // All must outlive the object.
  WindowWait(const Meeting& meeting, const WindowSlots& slots, const Waiter& waiter)
      : meeting_(meeting), slots_(slots), waiter_(waiter) {}

  // The call that this member begins, and what it wants in it: a request in one of its rounds.
  void set_call(uint64_t call) { call_ = call; }
  uint64_t call() const { return call_; }
  void set_request(const Request& request) { request_ = &request; }
  // What this member waits in, in place of a call; empty: a call.
  void set_what(std::string what) { what_ = std::move(what); }

  // "allreduce "x", call 7".
  std::string Where() const;

  // Until `here(i)` for all members; `cpu(i)` as in Waiter.
  template <typename Here, typename Cpu>
  Status ForAll(Here here, Cpu cpu) const {
    return waiter_.ForAll([this] { return Where(); }, meeting_.exec_timeout(), here, cpu);
  }

  // Until all have departed from a call for which all have arrived.
  Status ForDepartures(uint64_t call) const {
    return ForAll([this, call](size_t i) { return slots_.Departed(i, call); },
                  [this, call](size_t i) { return slots_.CpuAtArrival(i, call); });
  }

 private:
  const Meeting& meeting_;
  const WindowSlots& slots_;
  const Waiter& waiter_;
  std::string what_;
  uint64_t call_ = 0;
  const Request* request_ = nullptr;
};

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_CONTRACT_WINDOW_WAIT_H_
