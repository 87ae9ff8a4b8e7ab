// StepProfile: the steps of one plan as spans of the profile.
//
// Steps that follow each other are packed, up to eight in one span, so that a graph of tiny
// operators is not slowed down. A pack is closed before a step that may last: a collective, or one
// that lasted long in the run before; so what a killed rank had done is in its file.
//
// Thread-safety: Begin, Ran and End on the thread that runs the plan; RanBeside on any thread of
// the run.
#ifndef NPUMESH_GRAPH_ENGINE_STEP_PROFILE_H_
#define NPUMESH_GRAPH_ENGINE_STEP_PROFILE_H_

#include <chrono>
#include <cstdint>
#include <vector>

#include "graph/engine/compiled_model.h"
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
    if (on_) Pack(step, start, end);
  }
  void RanBeside(size_t step, Time start, Time end);
  // After the last step, or the one that failed.
  void End() {
    if (on_) Close();
  }

 private:
  void Name();
  ProfiledTask TaskOf(const Step& step) const;
  void Pack(size_t step, Time start, Time end);
  void Close();

  const CompiledModel& model_;
  Profiler* const profiler_;
  bool on_ = false;
  uint64_t run_ = 0;    // of the profiler: to which the ids belong
  uint32_t first_ = 0;  // id of step 0; those of the others follow
  // By step: a pack ends with it, because the next one may last.
  std::vector<uint8_t> ends_pack_;
  SpanPack pack_;
  int64_t pack_end_ns_ = 0;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_STEP_PROFILE_H_
