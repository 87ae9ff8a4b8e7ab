// The registered operators as a document.
#ifndef NPUMESH_LAUNCH_CATALOG_OP_TABLE_H_
#define NPUMESH_LAUNCH_CATALOG_OP_TABLE_H_

#include <string>
#include <vector>

#include "graph/ops/core/op_registry.h"
#include "runtime/base/status.h"

namespace npumesh {

// One line an operator: "Add(x1, x2) -> y  elementwise".
std::string OpsAsText(const OpRegistry& registry);

// Several lines about one operator: signature, family, ports, attributes, traits.
std::string OpPage(const Operator& op);

// Which operators a list has; what is empty does not narrow it.
struct OpFilter {
  std::string like;    // part of the name, whatever its case
  std::string family;  // "matmul"
  std::string trait;   // "collective"; "needs" is that of any port
};
// Error (kNotFound): no operator fits; names the families and traits there are.
Result<OpRegistry> Filtered(const OpRegistry& registry, const OpFilter& filter);

// docs/operators.md, word for word: a line for each operator, by family.
std::string OpsAsMarkdown(const OpRegistry& registry);

// "view", "in place", "needs shape": what else its row says.
std::vector<std::string> TraitsOf(const Operator& op);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_CATALOG_OP_TABLE_H_
