// BlockedWatch: looks after a rank while it is in calls of MPI that cannot be waited for with an
// end, its start above all. Past the soft limit it names ranks of this host whose process is
// stopped; when a rank of this host has ended meanwhile, or the limit is over, it says so and ends
// this process with the exit code of a lost rank, because nothing else can end such a call.
#ifndef NPUMESH_RUNTIME_WORLD_BLOCKED_WATCH_H_
#define NPUMESH_RUNTIME_WORLD_BLOCKED_WATCH_H_

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string_view>
#include <thread>

#include "runtime/base/env/env.h"

namespace npumesh {

class BlockedWatch {
 public:
  struct Limits {
    std::chrono::seconds soft;
    std::chrono::seconds hard;  // kNoTimeout: none
    // How long MPI may take to end the job by itself after a rank has ended, and this rank to come
    // out of what is over for others.
    std::chrono::seconds patience{3};
  };

  // From now until it is destroyed. `what`, a literal, says in which part of the rank's life. Does
  // nothing where the system gives no thread.
  BlockedWatch(std::string_view what, const Limits& limits);
  ~BlockedWatch();
  BlockedWatch(const BlockedWatch&) = delete;
  BlockedWatch& operator=(const BlockedWatch&) = delete;

 private:
  void Watch(const Limits& limits);

  const std::string_view what_;
  std::mutex mutex_;
  std::condition_variable ends_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_BLOCKED_WATCH_H_
