// Which instructions of a program run in which walk along a row.
//
// A walk computes elements; sums and maxima of a walk are numbers of the row that later walks read.
// Thread-safety: immutable.
#ifndef NPUMESH_GRAPH_OPS_CORE_LOOP_STAGES_H_
#define NPUMESH_GRAPH_OPS_CORE_LOOP_STAGES_H_

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
  // Computed in an earlier walk than some reader: kept in a row of scratch. Inputs are read again
  // instead.
  const std::vector<LoopValue>& kept() const { return kept_; }
  // What a walk reads and does not compute: inputs and kept values. The first one also reads the
  // inputs that are outputs as they are.
  std::vector<LoopValue> FetchedIn(int stage) const;

 private:
  // Whether an instruction works on elements, and in which walk: a sum is known one stage later.
  bool walks(const LoopInstruction& line) const { return !line.row || Reduces(line.op); }
  int walk(LoopValue value) const;

  const LoopProgram& program_;
  int count_ = 1;
  std::vector<int> stage_;
  std::vector<LoopValue> kept_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_CORE_LOOP_STAGES_H_
