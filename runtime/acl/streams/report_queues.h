// ReportQueues: callbacks that streams hand to the host threads subscribed to them.
//
// Thread-safety: all members may be called from any thread.
#ifndef NPUMESH_RUNTIME_ACL_STREAMS_REPORT_QUEUES_H_
#define NPUMESH_RUNTIME_ACL_STREAMS_REPORT_QUEUES_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "runtime/base/process/wait.h"

namespace npumesh {

struct AclStream;

class ReportQueues {
 public:
  // False when the stream has a subscriber.
  bool Subscribe(uint64_t thread, const AclStream* stream);
  // False when `thread` is not the stream's subscriber. Callbacks of the stream that still wait are
  // dropped, and streams that wait for them go on.
  bool Unsubscribe(uint64_t thread, const AclStream* stream);
  bool Subscribed(const AclStream* stream) const;
  // The stream ends.
  void Forget(const AclStream* stream);

  // From a task of the stream: hands `call` to its subscriber; with `wait` returns after it ran or
  // was dropped.
  void Post(const AclStream* stream, std::function<void()> call, bool wait);

  enum class Outcome { kRan, kTimeout, kNotSubscribed };
  // Runs one call that waits for `thread`.
  Outcome RunOne(uint64_t thread, Deadline deadline);

 private:
  struct Report {
    const AclStream* stream = nullptr;
    std::function<void()> call;
    bool over = false;
  };

  void Drop(const AclStream* stream);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<const AclStream*, uint64_t> subscribers_;
  std::map<uint64_t, std::deque<std::shared_ptr<Report>>> waiting_;  // by thread
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_STREAMS_REPORT_QUEUES_H_
