// The operators that npumesh brings with it.
#ifndef NPUMESH_GRAPH_OPS_BUILTIN_OPS_H_
#define NPUMESH_GRAPH_OPS_BUILTIN_OPS_H_

#include <string>
#include <string_view>
#include <vector>

#include "graph/ops/core/op_registry.h"

namespace npumesh {

// Every built-in operator. Made once, immutable.
const OpRegistry& BuiltinOps();

// A folder of graph/ops and the operators that it registers.
struct OperatorFamily {
  std::string_view name;           // of the folder
  std::string_view what;           // "convolutions, pools, resizing, sampling"
  std::vector<std::string> types;  // sorted
};

// All families, in the order of docs/architecture.md. Registers every operator anew: for pages.
std::vector<OperatorFamily> OperatorFamilies();

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_BUILTIN_OPS_H_
