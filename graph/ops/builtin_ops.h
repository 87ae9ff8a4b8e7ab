// The operators that npumesh brings with it.
#ifndef NPUMESH_GRAPH_OPS_BUILTIN_OPS_H_
#define NPUMESH_GRAPH_OPS_BUILTIN_OPS_H_

#include "graph/ops/core/op_registry.h"

namespace npumesh {

// Every built-in operator. Made once, immutable.
const OpRegistry& BuiltinOps();

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_BUILTIN_OPS_H_
