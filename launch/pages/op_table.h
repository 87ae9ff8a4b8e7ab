// The registered operators as a document.
#ifndef NPUMESH_LAUNCH_PAGES_OP_TABLE_H_
#define NPUMESH_LAUNCH_PAGES_OP_TABLE_H_

#include <string>
#include <vector>

#include "graph/ops/core/op_registry.h"

namespace npumesh {

// One line an operator: "Add(x1, x2) -> y  elementwise".
std::string OpsAsText(const OpRegistry& registry);

// docs/operators.md, word for word: a line for each operator, by family.
std::string OpsAsMarkdown(const OpRegistry& registry);

// "view", "in place", "needs shape": what else its row says.
std::vector<std::string> TraitsOf(const Operator& op);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_PAGES_OP_TABLE_H_
