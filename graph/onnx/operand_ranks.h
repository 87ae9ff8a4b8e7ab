// Ranks that operators of ONNX ask of their operands.
#ifndef NPUMESH_GRAPH_ONNX_OPERAND_RANKS_H_
#define NPUMESH_GRAPH_ONNX_OPERAND_RANKS_H_

#include "graph/onnx/lowering.h"

namespace npumesh {

// Tells operands whose rank is open the rank that the operator asks of them: what an If leaves that
// squeezes in one branch has three dimensions where an LSTM reads it. An operand that has another
// rank when the model runs is an error of the nodes that read it.
void HintRanks(Lowering& at);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ONNX_OPERAND_RANKS_H_
