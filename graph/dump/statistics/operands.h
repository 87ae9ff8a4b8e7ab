// Operands of a step as dump records describe them. Internal to graph/dump.
#ifndef NPUMESH_GRAPH_DUMP_STATISTICS_OPERANDS_H_
#define NPUMESH_GRAPH_DUMP_STATISTICS_OPERANDS_H_

#include <vector>

#include "graph/dump/format/format_data.h"
#include "graph/engine/run/step_observer.h"

namespace npumesh {

// A tensor of a step: how it is described, and where it lies.
struct DumpOperand {
  DumpTensor tensor;  // its size is that of its bytes
  const void* data = nullptr;
  // Position of the graph input whose buffer this is, -1: none. Seen through views.
  int graph_input = -1;
  bool constant = false;  // the same in every run of the model
};

// Absent optional inputs are left out, so operand i is the i-th input that is fed.
std::vector<DumpOperand> InputOperands(const StepView& view);
std::vector<DumpOperand> OutputOperands(const RunView& run, size_t step);

// Some output lies where an input lies: after the step that input is gone.
bool OverwritesAnInput(const std::vector<DumpOperand>& inputs,
                       const std::vector<DumpOperand>& outputs);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_DUMP_STATISTICS_OPERANDS_H_
