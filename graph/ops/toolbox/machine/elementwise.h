// Element-wise operators: tables of instructions, which one program each computes.
//
// Operands are brought to their promoted type, broadcast, and computed in float (16-bit floats,
// too: widened, computed, rounded once), double, integers that wrap, bool, or complex numbers.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_MACHINE_ELEMENTWISE_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_MACHINE_ELEMENTWISE_H_

#include <span>
#include <string_view>

#include "graph/ops/core/loop_program.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/core/operator.h"

namespace npumesh {

// How the type that is computed in and that of the output follow from the promoted type of the
// operands.
enum class ResultRule : uint8_t {
  kSame,      // computes in the promoted type, which is also the output's
  kCompare,   // the same, output bool
  kLogical,   // operands become bool first, output bool
  kQuotient,  // integers are computed in double and truncated; bool gives float32
  kReal,      // integers and bool give float32
};

// Float attributes become the parameters of the instruction in the order of the signature; of kExp
// and kLog they are base (-1: e), scale and shift.
struct ElementwiseSpec {
  std::string_view signature;
  LoopOp op;
  ResultRule rule = ResultRule::kSame;
  // Chooses the instruction by attributes; null: `op`.
  Result<LoopOp> (*choose)(const OpContext&) = nullptr;
};

void RegisterElementwise(OpRegistry& registry, std::span<const ElementwiseSpec> specs,
                         PrecisionClass precision = PrecisionClass::kGrey);

// Shape all given slots broadcast to. Error names the node, the ports and their types.
Result<Shape> BroadcastSlots(const OpContext& context, int slots);
// Errors: more dimensions than a BroadcastPlan has (kUnsupported), more elements than 63 bits
// count.
Status CheckBroadcast(const OpContext& context, const Shape& shape);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_MACHINE_ELEMENTWISE_H_
