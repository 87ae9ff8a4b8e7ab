// Span: what a rank did from one moment to another, as the profiler keeps it.
//
// All times are nanoseconds of CLOCK_MONOTONIC, which all processes of a host share.
#ifndef NPUMESH_RUNTIME_PROFILE_SPAN_H_
#define NPUMESH_RUNTIME_PROFILE_SPAN_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace npumesh {

// What a span stands for. Numbers are part of the file format: new kinds come last.
enum class SpanKind : uint16_t {
  kIteration = 1,   // one run of a session; `number` counts them from 0
  kTask = 2,        // an operator of a graph or a kernel of a stream; `subject` is a ProfiledTask
  kCollective = 3,  // a call of a communicator; `group`, `number` is the call in the group,
                    // `arrived_ns` when all members had entered
  kMessage = 4,     // a send or a receive, otherwise as kCollective
  kCopy = 5,        // memory between host and device, `bytes`
  kApi = 6,         // a call of a C interface; `subject` is its name
  kCompile = 7,     // making a plan
  kMemory = 8,      // a counter, not a span: at begin_ns the device had `bytes` in use
  kTasks = 9,       // several tasks, one after the other, as SpanPack; only in files and the ring
};

// Where it ran: 0 is the stream of computations, 1 that of communication; a program's own streams
// have the numbers that it sees. API calls and copies that block the caller are on kHostLane.
inline constexpr uint16_t kComputeLane = 0;
inline constexpr uint16_t kCommunicationLane = 1;
inline constexpr uint16_t kHostLane = 0xffff;

struct Span {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t arrived_ns = 0;  // of a task or copy when a stream took it; 0: not known
  uint64_t bytes = 0;
  uint64_t number = 0;
  uint32_t subject = 0;    // of Profiler::Name; 0: none
  uint32_t group = 0;      // of Profiler::Group; 0: none
  uint32_t iteration = 0;  // of the session that was running, from 0
  SpanKind kind = SpanKind::kTask;
  uint16_t lane = kComputeLane;
};
static_assert(sizeof(Span) == 56 && std::is_trivially_copyable_v<Span>);

// Up to eight tasks of a plan in the place of one span: each begins when the one before ends, and
// their subjects follow each other. So a step that takes less than a microsecond costs little.
struct SpanPack {
  static constexpr uint32_t kMost = 8;
  int64_t begin_ns = 0;
  std::array<uint32_t, kMost> lasts_ns{};
  uint32_t subject = 0;  // of the first task
  uint32_t count = 0;
  uint32_t iteration = 0;
  SpanKind kind = SpanKind::kTasks;
  uint16_t lane = kComputeLane;
};
static_assert(sizeof(SpanPack) == sizeof(Span) && std::is_trivially_copyable_v<SpanPack>);
static_assert(offsetof(SpanPack, subject) == offsetof(Span, subject) &&
              offsetof(SpanPack, kind) == offsetof(Span, kind));

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_PROFILE_SPAN_H_
