// NoticeTimes: when a wait says that it lasts, and how it says when it gives up.
//
// Thread-safety: none.
#ifndef NPUMESH_RUNTIME_WORLD_NOTICE_TIMES_H_
#define NPUMESH_RUNTIME_WORLD_NOTICE_TIMES_H_

#include <chrono>
#include <string>

namespace npumesh {

class NoticeTimes {
 public:
  // The first notice is due after `soft`, the others after 30 s, 1, 2 and 5 min and every 5 min.
  explicit NoticeTimes(std::chrono::seconds soft) : next_(soft) {}

  // True once for each time that has passed since it was last asked.
  bool Due(std::chrono::nanoseconds waited);

 private:
  std::chrono::seconds next_;
};

// "gives up at 14:03:22, 1836 s after it began", by the clock of this host; kNoTimeout: "never
// gives up (HCCL_EXEC_TIMEOUT=0)".
std::string GivesUpText(std::chrono::seconds limit, std::chrono::nanoseconds waited);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_NOTICE_TIMES_H_
