// Recording: tasks that streams have taken down instead of running them, to be run as one, any
// number of times.
//
// Stream::BeginRecording begins one. A further stream joins when it waits for an event that a
// recording stream has recorded, and must be waited for in the same way before the end. The tasks
// of all streams are kept in the order of their calls, which respects every such wait; run again,
// they run in that order, one after the other.
//
// Thread-safety: all members may be called from any thread.
#ifndef NPUMESH_RUNTIME_DEVICE_RECORDING_H_
#define NPUMESH_RUNTIME_DEVICE_RECORDING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/device/task.h"

namespace npumesh {

class StreamQueue;

class Recording {
 public:
  // Runs the tasks, up to the first that fails; returns its failure. Ends early, as a task of a
  // stream, when the stream is aborted. Runs of one recording follow
  // each other. REQUIRES: it has ended.
  Status Run();

  // Every stream that takes part queues its tasks again from now on.
  void End();
  bool ended() const;
  // Streams that have joined and that no call has waited for. REQUIRES: it has not ended.
  int unjoined() const;
  size_t task_count() const;

 private:
  friend class Stream;
  friend class StreamQueue;

  // A stream that takes part.
  struct Member {
    std::weak_ptr<StreamQueue> queue;
    uint64_t tasks = 0;   // of it
    bool joined = false;  // another member has waited for all of them
  };
  // The new member's number; the first one is the origin.
  size_t AddMember(std::weak_ptr<StreamQueue> queue);
  void Add(size_t member, Task&& task);
  uint64_t TasksOf(size_t member) const;
  // `member` waits for the first `tasks` of `other`.
  void Join(size_t member, size_t other, uint64_t tasks);

  mutable std::mutex mutex_;
  std::mutex running_;
  std::vector<Task> tasks_;  // does not change after the end
  std::vector<Member> members_;
  bool ended_ = false;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_DEVICE_RECORDING_H_
