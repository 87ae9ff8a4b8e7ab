// StepProfile: the steps of one plan as spans of the profile.
//
// Steps that follow each other are packed, up to eight in one span, so that a graph of tiny
// operators is not slowed down. A pack is closed before a step that may last: a collective, or one
// that lasted long in the run before; so what a killed rank had done is in its file.
//
// Thread-safety: Begin, Ran and End on the thread that runs the plan; RanBeside on any thread of
// the run.
#ifndef NPUMESH_GRAPH_ENGINE_RUN_STEP_PROFILE_H_
#define NPUMESH_GRAPH_ENGINE_RUN_STEP_PROFILE_H_

#include <chrono>
#include <cstdint>
#include <vector>

#include "graph/engine/plan/compiled_model.h"
#include "runtime/profile/profiler.h"

namespace npumesh {

class StepProfile {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `profiler` may be null: nothing is profiled. Both must outlive it.
  StepProfile(const CompiledModel& model, Profiler* profiler)
      : model_(model), profiler_(profiler) {}

  // Before the first step of a run. Says once a run of the profiler what the steps are.
  void Begin() {
    on_ = profiler_ != nullptr && profiler_->on();
    if (on_ && run_ != profiler_->run()) Name();
  }
  // A step ended without error. Pure collectives have no span here: the communicator writes theirs,
  // with the time that passed in waiting.
  void Ran(size_t step, Time start, Time end) {
    if (!on_) return;
    const int64_t begin_ns = Nanoseconds(start), end_ns = Nanoseconds(end);
    // The usual step of a graph that ran before: it joins a pack that has begun and has room.
    const bool joins = pack_.count - 1 < SpanPack::kMost - 1 && flags_[step] == 0 &&
                       begin_ns == pack_end_ns_ && end_ns - begin_ns <= kLongNs;
    if (!joins) return Pack(step, begin_ns, end_ns);
    pack_.lasts_ns[pack_.count++] = static_cast<uint32_t>(end_ns - begin_ns);
    pack_end_ns_ = end_ns;
  }
  void RanBeside(size_t step, Time start, Time end);
  // After the last step, or the one that failed.
  void End() {
    if (on_) Close();
  }

 private:
  // What is to be asked about a step.
  enum Flag : uint8_t {
    kNew = 1,       // it did not run yet
    kHidden = 2,    // the communicator writes its span
    kEndsPack = 4,  // the next one may last
  };
  // A step that lasted longer may last long again.
  static constexpr int64_t kLongNs = 1'000'000;

  static int64_t Nanoseconds(Time time) {
    return std::chrono::nanoseconds(time.time_since_epoch()).count();
  }
  void Name();
  ProfiledTask TaskOf(const Step& step) const;
  void Pack(size_t step, int64_t begin_ns, int64_t end_ns);
  void Close();
  // A span of one step.
  void Add(size_t step, int64_t begin_ns, int64_t end_ns);

  const CompiledModel& model_;
  Profiler* const profiler_;
  bool on_ = false;
  uint64_t run_ = 0;            // of the profiler: to which the ids belong
  uint32_t first_ = 0;          // id of step 0; those of the others follow
  std::vector<uint8_t> flags_;  // by step
  SpanPack pack_;
  int64_t pack_end_ns_ = 0;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_RUN_STEP_PROFILE_H_
