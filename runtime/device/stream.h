// Stream and Event: work in order on a device, and points in it.
//
// A Stream runs its tasks one after the other, beside the host. Who runs them: the thread that
// synchronises, when it comes soon, because a hand-over to another thread costs more than a small
// collective; otherwise a worker thread of the stream, which looks after tasks that no thread
// has synchronised for 0.1 to 2 ms, and at once after those that an event or a query is waiting
// for. So Enqueue only queues, and work progresses even if no host ever waits for it.
//
// The first task that fails stops the stream: later tasks are dropped, and Synchronize returns the
// failure. Events are reached all the same, so that no wait lasts without limit; a stream that
// waits for an event of a failed stream fails, too.
//
// Thread-safety: all members may be called from any thread, except from a task of the same stream.
#ifndef NPUMESH_RUNTIME_DEVICE_STREAM_H_
#define NPUMESH_RUNTIME_DEVICE_STREAM_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "runtime/base/process/wait.h"
#include "runtime/base/status.h"
#include "runtime/device/recording.h"
#include "runtime/device/task.h"

namespace npumesh {

class StreamQueue;
struct EventState;

// A point in a stream, recorded once and waited for by hosts and other streams; may be recorded
// again. A copy is another handle of the same event.
class Event {
 public:
  // What a stream does that waits for an event without a record.
  enum class Kind {
    kPoint,   // goes on
    kSignal,  // waits for the first record, and after Stream::Reset for the next one
  };
  explicit Event(Kind kind = Kind::kPoint);

  // True when the last Record has been reached (or when it was never recorded).
  bool Done() const;
  // True when a Record was reached, none is on its way, and no Reset came after it.
  bool Reached() const;
  // True when a stream has yet to pass a Wait for this event.
  bool Awaited() const;
  // True when its last Record belongs to a recording that goes on: it has no state to ask for.
  bool InRecording() const;
  // Records it here and now, without a stream: all that wait for it go on.
  void Reach() const;
  // Here and now not Reached. A stream that waits for a kSignal waits for the next record.
  void Clear() const;
  // Blocks until Done. Whether the stream failed is asked from the stream.
  void Synchronize() const;
  // Blocks until Done or the deadline; returns Done.
  bool SynchronizeUntil(Deadline deadline) const;
  // When the last Record was reached; kInvalidArgument unless Reached.
  Result<std::chrono::steady_clock::time_point> Time() const;
  // Time between the completion of two recorded events; kInvalidArgument when either is not done or
  // was never recorded.
  static Result<std::chrono::nanoseconds> Elapsed(const Event& from, const Event& to);

 private:
  friend class Stream;
  std::shared_ptr<EventState> state_;
};

// A task of a stream, or a wait of it, that has failed.
struct StreamFailure {
  int32_t stream = 0;  // its number
  uint64_t task = 0;   // in the stream, from 1
  pid_t thread = 0;    // that queued it
  const Status& status;
};

class Stream {
 public:
  // Called with each failure of any stream from now on, in the thread that ran the task, before the
  // stream goes on; null: no more. Must not use the stream.
  using Watcher = void (*)(const StreamFailure& failure);
  static void Watch(Watcher watcher);
  // The number, in its stream, of what the calling thread has queued last; 0: nothing.
  static uint64_t LastOfThread();

  // `number`: how recordings call it.
  explicit Stream(int32_t number = 0);
  ~Stream();  // finishes what was enqueued
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Makes sure that work will go on by itself, for callers that may never synchronise. Error (kIo):
  // the system gives no thread; what is queued then waits for Synchronize.
  Status Ready();
  void Enqueue(Task&& task);
  // Here and below: a recording keeps the note, which may be null.
  using Note = std::shared_ptr<const TaskNote>;
  void Enqueue(Task&& task, Note note);
  // While the stream records, the event marks a point of the recording; a captured one does not
  // reach it.
  void Record(const Event& event, Note note = nullptr);
  // Later tasks of this stream wait for the event's last Record so far, whatever is recorded after
  // this call; see Event::Kind without a Record. A wait that takes longer than `limit` fails the
  // stream with kTimeout; 0: without limit.
  void Wait(const Event& event, std::chrono::seconds limit = std::chrono::seconds(0),
            Note note = nullptr);
  // From here on the event is not Reached until its next Record is; see Event::Clear.
  void Reset(const Event& event, Note note = nullptr);

  // From here on, until Recording::End, the stream's tasks are taken down, not queued. False when
  // the stream records already.
  bool BeginRecording(const std::shared_ptr<Recording>& into);
  // What the stream takes part in, and as which member unless `member` is null; null: nothing.
  std::shared_ptr<Recording> recording(size_t* member = nullptr) const;
  bool records() const;
  // Takes down what is no work: where the stream goes on, or a note. REQUIRES: it records.
  void TakeDown(Control control, Note note);
  void TakeDown(Note note);
  // The end of what was taken down of this stream; nothing when it does not record.
  std::optional<RecordedPlace> RecordedEnd() const;
  // Where the last record of an event lies, seen from this stream. A stream of a captured recording
  // may not wait for what lies outside.
  enum class Place {
    kHere,     // in the same recording, or neither is in one
    kJoins,    // in a captured recording that this stream joins when it waits
    kOutside,  // this stream records, the event was not recorded in a recording
    kForeign,  // in a recording that this stream neither belongs to nor can join
  };
  Place PlaceOf(const Event& event) const;

  // Blocks until everything is done that was enqueued before. Runs it on this thread unless
  // another one is at it. Returns the first failure since the stream was made; it stays.
  Status Synchronize();
  // Blocks until everything is done that was enqueued before, or until the deadline, which makes it
  // false. Leaves the work to the worker.
  bool SynchronizeUntil(Deadline deadline);
  // Drops what is queued and ends a wait for an event; the task that runs is waited for. Dropped
  // records count as reached. The stream can be used again.
  void Abort();
  // The first failure so far.
  Status failure() const;
  // True when nothing is queued or running.
  bool Idle() const;
  // Whether a failure stops the stream (the start value), or later tasks run all the same; their
  // failures are dropped then, since the first one stays.
  void StopOnFailure(bool stop);

 private:
  // True when the wait belongs to a recording and is done with.
  bool WaitInRecording(const Event& event, std::chrono::seconds limit, Note note);
  void WaitInProgram(const Event& event, std::chrono::seconds limit, Note note);

  const std::shared_ptr<StreamQueue> queue_;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_DEVICE_STREAM_H_
