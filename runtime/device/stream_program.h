// StreamProgram: one run of a built recording (recording.h): its streams run beside each other,
// each on a thread, jump and start one another, until one comes to the end. To start a stream that
// runs changes nothing; one that has stopped begins again.
//
// Thread-safety: Run once; the other members from any thread meanwhile.
#ifndef NPUMESH_RUNTIME_DEVICE_STREAM_PROGRAM_H_
#define NPUMESH_RUNTIME_DEVICE_STREAM_PROGRAM_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/device/recording.h"

namespace npumesh {

class StreamProgram {
 public:
  explicit StreamProgram(Recording& recording);
  StreamProgram(const StreamProgram&) = delete;
  StreamProgram& operator=(const StreamProgram&) = delete;

  // Errors: the first failure of a task; kInvalidArgument when all streams have stopped and none
  // came to the end, or a jump leads into a stream that runs; kTimeout after Abort; kIo without a
  // thread. OK when the stream whose task it is was aborted.
  Status Run();
  void Abort();
  // How many tasks of a member are done, those that were jumped over included.
  uint64_t Progress(size_t member) const;

 private:
  // A stream of the recording.
  struct Lane {
    std::vector<RecordedTask*> tasks;
    std::vector<uint64_t> before;  // how many of them count that stand before each, and in all
    std::thread thread;
    bool runs = false;
    uint64_t done = 0;  // tasks that count
  };

  void RunLane(RecordedPlace place);
  // Does the task at `place` and sets it to where the stream goes on; false when it has left.
  Result<bool> Step(RecordedPlace* place);
  Result<bool> Follow(const Flow& flow, RecordedPlace* place);
  void AwaitChange(uint64_t seen);
  void Stop(const Status& failure);
  // ---- REQUIRES: mutex ----
  Status Start(RecordedPlace place);
  void Leave(size_t member);
  void SetDone(RecordedPlace place);
  void StopAll();
  bool stopped() const { return aborts_.load(std::memory_order_acquire) != 0; }

  Recording& recording_;
  std::deque<Lane> lanes_;
  std::atomic<uint64_t> aborts_{0};  // tasks that wait end when it changes
  mutable std::mutex mutex_;         // guards what follows, and what changes of lanes
  std::condition_variable changed_;
  uint64_t changes_ = 0;
  int running_ = 0;
  bool complete_ = false;
  Status failure_;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_DEVICE_STREAM_PROGRAM_H_
