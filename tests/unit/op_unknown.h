// Inference with unknown dimensions and ranks, checked against inference with known ones.
#ifndef NPUMESH_TESTS_UNIT_OP_UNKNOWN_H_
#define NPUMESH_TESTS_UNIT_OP_UNKNOWN_H_

#include "graph/ops/core/operator.h"

namespace npumesh::op_test {

// What inference says of the inputs `types` with some dimensions, or ranks, unknown does not
// contradict `known`. The first calls of each operator count: a test with hundreds of shapes would
// only ask the same again. Any thread: ranks are threads.
// REQUIRES: `known` is `types` with inferred outputs.
void ExpectSoundWithUnknowns(const Operator& op, const OpContext& types, const OpContext& known);

}  // namespace npumesh::op_test

#endif  // NPUMESH_TESTS_UNIT_OP_UNKNOWN_H_
