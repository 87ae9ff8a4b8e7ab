// OpRecord: the JSON that describes one operator of a graph with its shapes, in the form in which
// the op library of CANN records it for the static kernel compiler.
//
// Keys, nesting and file names: docs/static_kernels.md. Tensor types are written as there: lower
// case without DT_ ("float", "float16", "int32"), attributes with their kinds ("int", "float",
// "bool", "str", "listInt", ...).
//
// Thread-safety: pure functions.
#ifndef NPUMESH_GRAPH_STATIC_KERNEL_RECORD_OP_RECORD_H_
#define NPUMESH_GRAPH_STATIC_KERNEL_RECORD_OP_RECORD_H_

#include <string>
#include <string_view>

#include "graph/ops/core/operator.h"

namespace npumesh {

struct OpRecord {
  // "MatMulV2_float_ND_1_2048": type of the operator, then data type, format and dimensions of the
  // first input; the type alone where the first input is not fed. Characters that do not belong in
  // a file name become '_', and a stem that is too long for one is cut.
  std::string stem;
  std::string json;     // indent 2, keys in alphabetical order, ends with a newline
  bool listed = false;  // one of the operator types that the vendor's op library lists as targets
};

// The record of a node with operator `op`. A constant value is recorded only of the ports that
// Operator::value_inputs names, so weights are not. REQUIRES: `context` is bound to op.schema;
// shapes of inputs and outputs are known.
OpRecord RecordOf(const Operator& op, const OpContext& context);

// A data type as records have it: "float16".
std::string RecordedType(DataType dtype);
// `text` with '_' in the place of all but letters, digits and '-'.
std::string FileNamePart(std::string_view text);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_STATIC_KERNEL_RECORD_OP_RECORD_H_
