// ScopedSpan: a span from here to the end of the block.
//
// Thread-safety: one thread.
#ifndef NPUMESH_RUNTIME_PROFILE_SCOPED_SPAN_H_
#define NPUMESH_RUNTIME_PROFILE_SCOPED_SPAN_H_

#include <cstdint>
#include <utility>

#include "runtime/profile/profiler.h"

namespace npumesh {

// What spans are about, named once a run of the profiler.
class SpanSubject {
 public:
  explicit SpanSubject(ProfiledTask task) : task_(std::move(task)) {}
  uint32_t IdIn(Profiler& profiler) {
    if (run_ != profiler.run()) {
      run_ = profiler.run();
      id_ = profiler.Name(task_);
    }
    return id_;
  }

 private:
  ProfiledTask task_;
  uint64_t run_ = 0;
  uint32_t id_ = 0;
};

class ScopedSpan {
 public:
  // `profiler` may be null. Both must outlive the span.
  ScopedSpan(Profiler* profiler, SpanKind kind, SpanSubject& subject, uint16_t lane = kHostLane)
      : profiler_(profiler != nullptr && profiler->keeps(kind) ? profiler : nullptr) {
    if (profiler_ == nullptr) return;
    span_.kind = kind;
    span_.lane = lane;
    span_.subject = subject.IdIn(*profiler_);
    span_.iteration = profiler_->iteration();
    span_.begin_ns = Profiler::Now();
  }
  ~ScopedSpan() {
    if (profiler_ == nullptr) return;
    span_.end_ns = Profiler::Now();
    profiler_->Add(span_);
  }
  ScopedSpan(const ScopedSpan&) = delete;
  ScopedSpan& operator=(const ScopedSpan&) = delete;

  void set_bytes(uint64_t bytes) { span_.bytes = bytes; }
  void set_number(uint64_t number) { span_.number = number; }

 private:
  Profiler* const profiler_;  // null: nothing is written
  Span span_;
};

// Says how much device memory is in use now.
inline void NoteMemory(Profiler* profiler, uint64_t bytes_in_use) {
  if (profiler == nullptr || !profiler->keeps(SpanKind::kMemory)) return;
  Span span;
  span.begin_ns = span.end_ns = Profiler::Now();
  span.bytes = bytes_in_use;
  span.iteration = profiler->iteration();
  span.kind = SpanKind::kMemory;
  span.lane = kHostLane;
  profiler->Add(span);
}

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_PROFILE_SCOPED_SPAN_H_
