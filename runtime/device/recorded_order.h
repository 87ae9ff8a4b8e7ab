// RecordedOrder: which tasks of a captured recording have run whenever another one begins, as its
// streams and their events say. On a card the others may run beside it; here tasks follow each
// other.
//
// Thread-safety: const members may be called from any thread.
#ifndef NPUMESH_RUNTIME_DEVICE_RECORDED_ORDER_H_
#define NPUMESH_RUNTIME_DEVICE_RECORDED_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/device/recording.h"

namespace npumesh {

class RecordedOrder {
 public:
  // REQUIRES: the recording is a captured one and has ended. Takes memory for
  // (tasks + events) x streams.
  explicit RecordedOrder(const Recording& recording);

  // Whether `a` has run whenever `b` begins; both are places in tasks(), of tasks with work.
  bool Precedes(size_t a, size_t b) const;

 private:
  using Known = std::vector<uint64_t>;  // how many tasks of each member have run

  void AddMark(const RecordedMark& mark);
  void AddTask(size_t task, size_t member);

  std::vector<Known> now_;        // by member
  std::vector<Known> recorded_;   // by mark; empty for a wait
  std::vector<Known> before_;     // by task; empty without work
  std::vector<uint64_t> number_;  // by task, in its member
  std::vector<size_t> member_;    // by task
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_DEVICE_RECORDED_ORDER_H_
