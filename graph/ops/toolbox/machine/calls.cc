#include "graph/ops/toolbox/machine/calls.h"

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

}  // namespace npumesh
