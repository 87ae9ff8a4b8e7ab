#include "graph/ops/toolbox/machine/calls.h"

#include <cmath>

namespace npumesh {

LaneFn FunctionOf(LoopOp op, LoopType type) {
  if (const LaneFn lanes = FindLanes(op, type); lanes != nullptr) return lanes;
  for (const std::span<const CallTable> tables : {RealCalls(), IntegerCalls(), ComplexCalls()}) {
    for (const CallTable table : tables) {
      for (const ElementCall& row : table) {
        if (row.op == op && row.type == type) return row.fn;
      }
    }
  }
  return nullptr;
}

double OfSum(const LoopInstruction& line, double sum) {
  if (line.op == LoopOp::kMeanOf) return sum / line.params[0];
  if (line.op == LoopOp::kReciprocalOf) return 1.0 / sum;
  return 1.0 / std::sqrt(sum / line.params[0] + line.params[1]);
}

}  // namespace npumesh
