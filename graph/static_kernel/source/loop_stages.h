// Which instructions of a program run in which walk along a row.
//
// A walk computes elements; sums and maxima of a walk are numbers of the row that later walks read.
// Thread-safety: immutable.
#ifndef NPUMESH_GRAPH_STATIC_KERNEL_SOURCE_LOOP_STAGES_H_
#define NPUMESH_GRAPH_STATIC_KERNEL_SOURCE_LOOP_STAGES_H_

#include <vector>

#include "graph/ops/core/loop_program.h"

namespace npumesh {

class LoopStages {
 public:
  explicit LoopStages(const LoopProgram& program);

  int count() const { return count_; }
  // Of an element, the walk that computes it; of a number of the row, the walk before which it is
  // known.
  int stage(LoopValue value) const { return stage_[static_cast<size_t>(value)]; }
  bool reduces(LoopValue value) const { return reduces_[static_cast<size_t>(value)]; }
  // Computed in an earlier walk than some reader: kept in a row of scratch. Inputs are read again
  // instead.
  const std::vector<LoopValue>& kept() const { return kept_; }
  // What the instructions of a walk read and do not compute: inputs and kept values.
  std::vector<LoopValue> FetchedIn(int stage) const;

 private:
  const LoopProgram& program_;
  int count_ = 1;
  std::vector<int> stage_;
  std::vector<bool> reduces_;
  std::vector<LoopValue> kept_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_STATIC_KERNEL_SOURCE_LOOP_STAGES_H_
