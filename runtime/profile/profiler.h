// Profiler: the spans of one rank, on their way into its file.
//
// A span is copied into a ring without a lock or a system call; a thread of the profiler empties
// the ring into the file every 20 ms, so that a rank that is killed loses at most the last 100 ms.
// When the ring is full a span is counted as lost and the program goes on.
//
// Each world has one profiler, which does nothing until Start: a disabled span costs one load.
//
// Thread-safety: any thread; Start and Stop one at a time. A span that is open when a run ends
// belongs to no run and is dropped.
#ifndef NPUMESH_RUNTIME_PROFILE_PROFILER_H_
#define NPUMESH_RUNTIME_PROFILE_PROFILER_H_

#include <atomic>
#include <bit>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/files/file_system.h"
#include "runtime/profile/profile_file.h"
#include "runtime/profile/span.h"
#include "runtime/profile/span_ring.h"
#include "runtime/world/world.h"

namespace npumesh {

class Profiler final : public WorldCompanion {
 public:
  // Bytes of a file beyond which spans are left out and counted; what spans are about, and the
  // counts, are written all the same.
  static constexpr uint64_t kMostBytes = uint64_t{1} << 30;

  // Sets of span kinds.
  static constexpr uint32_t SetOf(SpanKind kind) { return 1u << static_cast<uint32_t>(kind); }
  static constexpr uint32_t kAllKinds = ~0u;

  // That of this world's rank, which lives as long as the world.
  static Profiler& Of(World& world);

  Profiler() = default;
  ~Profiler() override;

  // Makes `folder` and in it rank_<R>.npprof, replacing that of an earlier run; the run before this
  // one ends. Spans of other kinds than `kinds` are dropped. Errors: kInvalidArgument for a
  // symbolic link, kIo (also when the system gives no thread).
  Status Start(const std::string& folder, const ProfileOwner& owner,
               uint64_t most_bytes = kMostBytes, uint32_t kinds = kAllKinds);
  // Writes what is left and ends the file. Error (kIo): the file could not be written, now or
  // before, and is removed. OK when it is off.
  Status Stop();
  void OnShutdown() override;

  bool on() const { return kinds_.load(std::memory_order_acquire) != 0; }
  bool keeps(SpanKind kind) const {
    return (kinds_.load(std::memory_order_acquire) & SetOf(kind)) != 0;
  }
  // Changes with each Start: ids of another run mean nothing. 0 before the first.
  uint64_t run() const { return run_.load(std::memory_order_relaxed); }

  // The id of what spans are about; 0 when the profiler is off. Takes a lock and writes: ask once
  // for an operator of a plan, not once a call. `id` of the argument is not read.
  uint32_t Name(ProfiledTask task);
  // The id of the first of them; those of the others follow.
  uint32_t NameAll(std::vector<ProfiledTask> tasks);
  uint32_t Group(ProfiledGroup group);
  void NoteClock(const ClockSample& sample);

  // REQUIRES: subject and group are ids of this run, or 0.
  void Add(const Span& span) {
    if (keeps(span.kind) && !ring_.Push(span)) lost_full_.fetch_add(1, std::memory_order_relaxed);
  }

  void Add(const SpanPack& pack) { Add(std::bit_cast<Span>(pack)); }

  // Of the file; empty before the first Start.
  const std::string& path() const { return path_; }

  // The run of a session that spans belong to (Span::iteration).
  void set_iteration(uint32_t iteration) { iteration_.store(iteration, std::memory_order_relaxed); }
  uint32_t iteration() const { return iteration_.load(std::memory_order_relaxed); }

  // CLOCK_MONOTONIC in nanoseconds.
  static int64_t Now();

 private:
  // In kinds_ while a run goes on, whatever it keeps; no kind has the number 0.
  static constexpr uint32_t kOn = 1;

  void WriteUntilStopped();
  // Everything that the ring holds.
  void Drain();
  // False for a span that began in an earlier run, whose ids mean something else now.
  // REQUIRES: mutex_ is held.
  bool BelongsToRun(const Span& span) const;
  // REQUIRES: mutex_ is held.
  void Append(std::string_view block);

  SpanRing ring_;
  std::atomic<uint32_t> kinds_{0};  // 0: off
  std::atomic<uint64_t> run_{0};
  std::atomic<uint32_t> iteration_{0};
  std::atomic<uint64_t> lost_full_{0};

  std::mutex mutex_;  // of what follows
  std::condition_variable stops_;
  bool stopping_ = false;
  std::string path_;
  std::unique_ptr<WritableFile> file_;
  Status broken_;         // of the first write that failed
  int64_t start_ns_ = 0;  // ProfileOwner::start_monotonic_ns of this run
  uint64_t bytes_ = 0;
  uint64_t most_bytes_ = 0;
  uint64_t lost_limit_ = 0;
  uint32_t tasks_ = 0;
  uint32_t groups_ = 0;

  std::thread writer_;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_PROFILE_PROFILER_H_
