// What an operator has, but npumesh cannot do: errors of the code kUnsupported.
#ifndef NPUMESH_GRAPH_OPS_REFUSALS_H_
#define NPUMESH_GRAPH_OPS_REFUSALS_H_

#include <initializer_list>
#include <string_view>
#include <utility>

#include "graph/ops/operator.h"

namespace npumesh {

// Error with the node and the text unless `holds`.
template <typename... Args>
Status Supports(const OpContext& op, bool holds, fmt::format_string<Args...> text, Args&&... args) {
  if (holds) return Status();
  return Error(Code::kUnsupported, "{}: {}", op.Who(),
               fmt::format(text, std::forward<Args>(args)...));
}

// Error when one of the optional inputs is fed.
Status RefuseInputs(const OpContext& op, std::initializer_list<std::string_view> ports);

// The dtype in an attribute, `standard` where it holds the number of "undefined". Error unless it
// is float16, bfloat16 or float32.
Result<DataType> FloatTypeOf(const OpContext& op, std::string_view attribute, DataType standard);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_REFUSALS_H_
