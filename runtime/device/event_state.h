// What stands behind the handles of an Event. Known to runtime/device only.
//
// Tickets count the Records of an event, from 1. Streams run its records in any order when they
// stand in several of them, so every record has its own completion: who waits for a ticket passes
// when that one has been run, whatever was recorded later.
//
// Thread-safety: all members may be called from any thread. Lock order: never take a queue's mutex
// while holding an event's.
#ifndef NPUMESH_RUNTIME_DEVICE_EVENT_STATE_H_
#define NPUMESH_RUNTIME_DEVICE_EVENT_STATE_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/device/recording.h"
#include "runtime/device/stream.h"

namespace npumesh {

// The place of an item in the queue of a stream, which may be gone.
struct QueuePosition {
  std::weak_ptr<StreamQueue> queue;
  uint64_t index = 0;
};

// The place of a record that was taken down.
struct RecordedPoint {
  std::weak_ptr<Recording> recording;  // empty: the last record was queued
  size_t member = 0;
  uint64_t tasks = 0;  // of the member, before it
  size_t mark = 0;     // in the recording
};

// What becomes of one record.
struct RecordFate {
  bool reached = false;
  int waits = 0;   // for it, that have not ended
  Status failure;  // of the stream that reached it
};

struct EventState {
  // Room for the last record and one before, so that most events never allocate again.
  explicit EventState(Event::Kind kind) : kind(kind) { fates.reserve(2); }

  // A record was enqueued: its ticket.
  uint64_t Announce();
  // Where the record with `ticket` stands. True when a stream is held by this event right now.
  bool Place(uint64_t ticket, QueuePosition position);
  // The record with `ticket` was run by a stream that has failed or not.
  void Reach(uint64_t ticket, const Status& stream_failure);
  // A Reset was run.
  void Clear();

  // A stream will wait for the last record: its ticket, 0 when a signal has none yet. Sets
  // `position` to where that record stands. Empty: there is nothing to wait for. LeaveWait ends it.
  std::optional<uint64_t> EnterWait(QueuePosition* position);
  void LeaveWait(uint64_t ticket);
  // True when a stream that waits for `ticket` may go on. REQUIRES, here and below: EnterWait.
  bool Passable(uint64_t ticket);
  // Blocks until it may, `aborted` says so (asked after each Wake), or `limit` is over (kTimeout).
  // Returns the failure of the stream that ran the record.
  Status Pass(uint64_t ticket, std::chrono::seconds limit, const std::function<bool()>& aborted);
  void Wake();

  // The recording that the last record belongs to, and where; null: none that goes on.
  std::shared_ptr<Recording> RecordingOf(RecordedPoint* point);
  void TakeDown(RecordedPoint point);
  // Blocks until the record that is the last one now is reached, or the deadline; true when it is
  // reached.
  bool WaitUntilDone(Deadline deadline);

  // ---- REQUIRES: mutex ----

  bool Reached(uint64_t ticket) const;
  bool LastReached() const { return Reached(recorded); }

  const Event::Kind kind;
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t recorded = 0;
  bool set = false;                                  // a record was run, and no Reset since
  int awaited = 0;                                   // Waits that are queued or running
  int held = 0;                                      // of these, streams that are blocked
  std::chrono::steady_clock::time_point reached_at;  // of the highest ticket that was reached
  Status failure;                                    // of the stream that ran a record last
  QueuePosition recorder;                            // of the last record
  RecordedPoint recorded_point;

 private:
  RecordFate& FateOf(uint64_t ticket) { return fates[ticket - kept]; }
  bool MayPass(uint64_t ticket) const {
    return Reached(ticket) && (kind == Event::Kind::kPoint || set);
  }
  void Forget();

  // Of tickets `kept` to `recorded`. Those before `first` are reached, and no stream waits for
  // them; they are given up in lots, so that an event that is recorded again and again allocates
  // nothing.
  std::vector<RecordFate> fates;
  uint64_t kept = 1;
  uint64_t first = 1;
  uint64_t highest_reached = 0;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_DEVICE_EVENT_STATE_H_
