// Recording: tasks that streams have taken down instead of running them, to be run as one, any
// number of times. There are two kinds.
//
// A captured one begins with one stream. A further stream joins when it waits for an event that a
// recording stream has recorded, and must be waited for in the same way before the end. The tasks
// of all streams are kept in the order of their calls, which respects every such wait; run again,
// they run in that order, one after the other.
//
// A built one has the streams that are bound to it. Each keeps its own order and runs beside the
// others; its tasks can jump, and start other streams (stream_program.h).
//
// Thread-safety: all members may be called from any thread.
#ifndef NPUMESH_RUNTIME_DEVICE_RECORDING_H_
#define NPUMESH_RUNTIME_DEVICE_RECORDING_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/device/task.h"

namespace npumesh {

class StreamProgram;
class StreamQueue;

// What a task is, in the words of who enqueues it.
struct TaskNote {
  virtual ~TaskNote() = default;
};

// A place in a recording: in front of the task `index` of a member.
struct RecordedPlace {
  size_t member = 0;
  size_t index = 0;
};

// Where a stream of a built recording goes on.
struct Flow {
  enum class Kind {
    kNext,   // with its next task
    kAgain,  // with this one, after another stream has done something
    kJump,   // it stops, and `place` begins
    kStart,  // with its next task; the stream of `place` begins beside it unless it runs
    kEnd,    // all streams stop: the run is complete
  };
  Kind kind = Kind::kNext;
  RecordedPlace place = {};
};
using Control = std::function<Result<Flow>(const StreamProgram&)>;

// A task that was taken down. It has work, or a control, or a note alone: of what the order of the
// recording sees to.
struct RecordedTask {
  size_t member = 0;
  std::shared_ptr<Task> work;
  Control control;
  std::shared_ptr<const TaskNote> note;  // may be null
  bool exchangeable = false;             // of a group
  bool left_out = false;
};

// An event of a captured recording, between two tasks: it is recorded, or waited for.
struct RecordedMark {
  size_t place = 0;  // in tasks(), of the first task behind it
  size_t member = 0;
  std::optional<size_t> waits_for;  // the mark of the record
};

class Recording {
 public:
  enum class Kind { kCaptured, kBuilt };
  explicit Recording(Kind kind = Kind::kCaptured) : kind_(kind) {}

  Kind kind() const { return kind_; }

  // Runs the tasks, up to the first that fails; returns its failure. Ends early, as a task of a
  // stream, when the stream is aborted. Runs of one recording follow each other. REQUIRES: it has
  // ended.
  Status Run();
  // Ends the run that goes on, if it is of a built recording: kTimeout.
  void Abort();

  // Every stream that takes part queues its tasks again from now on.
  void End();
  bool ended() const;
  // Streams that have joined and that no call has waited for. REQUIRES: it has not ended.
  int unjoined() const;
  size_t task_count() const;  // notes alone do not count

  // To be run in front of the tasks, each time. REQUIRES: it has not ended.
  void AddBeginning(Task&& task);
  // The member runs from the start; others wait for a kStart or kJump. REQUIRES: kBuilt.
  void AddHead(size_t member);

  // ---- Of what was taken down. REQUIRES: it has ended, where nothing else is said ----

  // By member: the number of its stream.
  const std::vector<int32_t>& streams() const { return streams_; }
  const std::deque<RecordedTask>& tasks() const { return tasks_; }
  const std::vector<RecordedMark>& marks() const { return marks_; }
  // What tasks, by their place in tasks(), do from the next run on. Update empties `changes`;
  // false, and it changes nothing, while a run goes on.
  struct Change {
    Task work;                             // empty: as it was
    std::shared_ptr<const TaskNote> note;  // null: as it was
    bool leave_out = false;
  };
  using Changes = std::map<size_t, Change>;
  bool Update(Changes* changes);

  // Tasks of a member from here to EndGroup can be exchanged. False when a group is open.
  // REQUIRES, for both: it has not ended.
  bool BeginGroup(size_t member);
  bool InGroup(size_t member) const;
  // Which tasks these are; nothing when no group is open.
  std::optional<std::vector<size_t>> EndGroup(size_t member);
  // They do what the tasks of `by` do, which has ended, from the next time on that one is begun.
  // False when their numbers differ.
  bool Exchange(const std::vector<size_t>& group, const Recording& by);

 private:
  friend class Stream;
  friend class StreamProgram;
  friend class StreamQueue;

  // A stream that takes part.
  struct Member {
    std::weak_ptr<StreamQueue> queue;
    uint64_t tasks = 0;   // of it, without notes alone
    size_t places = 0;    // of it, with them
    bool joined = false;  // another member has waited for all of them
    std::optional<std::vector<size_t>> group;
  };
  // The new member's number; the first one is the origin.
  size_t AddMember(std::weak_ptr<StreamQueue> queue, int32_t stream);
  void Add(size_t member, Task&& task, std::shared_ptr<const TaskNote> note = nullptr);
  void AddControl(size_t member, Control control, std::shared_ptr<const TaskNote> note);
  void AddNote(size_t member, std::shared_ptr<const TaskNote> note);
  // An event of the member is recorded: its mark, and how many tasks it stands for.
  size_t MarkRecord(size_t member, uint64_t* tasks);
  RecordedPlace EndOf(size_t member) const;
  // `member` waits for the record `mark`, of the first `tasks` of `other`.
  void Join(size_t member, size_t other, uint64_t tasks, size_t mark);
  Status RunInOrder();
  Status RunTask(RecordedTask& task);

  const Kind kind_;
  mutable std::mutex mutex_;
  std::mutex running_;
  std::mutex exchanging_;        // guards the work of exchangeable tasks
  std::vector<Task> beginning_;  // this and what follows: does not change after the end
  std::deque<RecordedTask> tasks_;
  std::vector<RecordedMark> marks_;
  std::vector<size_t> heads_;
  std::vector<int32_t> streams_;
  std::vector<Member> members_;
  StreamProgram* program_ = nullptr;  // that runs now
  bool ended_ = false;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_DEVICE_RECORDING_H_
