// StopRequest: Ctrl-C and --timeout, noticed between two steps, where all ranks can stop together
// and say how far they came.
#ifndef NPUMESH_LAUNCH_RUN_STOP_REQUEST_H_
#define NPUMESH_LAUNCH_RUN_STOP_REQUEST_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "launch/ranks/rank_circle.h"

namespace npumesh {

// One to a process. SIGINT, SIGTERM and SIGUSR1 (by which `npumesh launch` asks) are requests while
// it lives, unless they are ignored; the second signal of a kind ends the process.
//
// Thread-safety: none.
class StopRequest {
 public:
  // `timeout`: from now; 0: never. A step that lasts longer fails on all ranks that share the node,
  // since this rank is said to have failed then; a process that is not done `kGrace` later ends.
  // `world` must outlive the request.
  StopRequest(World& world, std::chrono::seconds timeout);
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  static constexpr std::chrono::seconds kGrace{10};

  // How the command stands before step `step` of `steps`: a failure when it is to stop there; exit
  // code 128 + the signal, or 4 for the time.
  Outcome Before(uint64_t step, uint64_t steps) const;

  // How it stands after a step that returned `status`: what the time has ended failed for that
  // reason.
  Outcome After(const Status& status) const;

 private:
  bool late() const;
  std::string LateText() const;
  void Watch();

  World& world_;
  const std::chrono::seconds timeout_;
  const std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable ends_;
  bool over_ = false;
  std::thread thread_;  // none without a time
};

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RUN_STOP_REQUEST_H_
