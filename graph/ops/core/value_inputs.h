#ifndef NPUMESH_GRAPH_OPS_CORE_VALUE_INPUTS_H_
#define NPUMESH_GRAPH_OPS_CORE_VALUE_INPUTS_H_

#include <string_view>
#include <utility>
#include <vector>

#include "graph/ops/core/operator.h"

namespace npumesh {

// The operator, with ports whose values its inference needs (Operator::value_inputs).
inline Operator NeedsValues(Operator op, std::vector<std::string_view> ports) {
  op.value_inputs = std::move(ports);
  return op;
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_CORE_VALUE_INPUTS_H_
