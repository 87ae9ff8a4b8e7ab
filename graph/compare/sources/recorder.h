// Recorder: the tensors of one run of a model, kept in memory as a source for comparisons.
//
// Thread-safety: none; one rank, one thread.
#ifndef NPUMESH_GRAPH_COMPARE_SOURCES_RECORDER_H_
#define NPUMESH_GRAPH_COMPARE_SOURCES_RECORDER_H_

#include <cstdint>
#include <string>

#include "graph/compare/sources/tensor_source.h"
#include "graph/engine/run/step_observer.h"

namespace npumesh {

class Recorder final : public StepObserver {
 public:
  // Records run number `iteration`. Without `inputs` outputs only.
  Recorder(std::string title, uint64_t iteration, bool inputs);

  Status BeforeStep(const StepView& view) override;
  Status AfterStep(const StepView& view) override;

  const MemorySource& source() const { return source_; }

 private:
  MemorySource source_;
  uint64_t iteration_;
  bool inputs_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_COMPARE_SOURCES_RECORDER_H_
