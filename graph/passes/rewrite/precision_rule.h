// PrecisionRule: in which float type an operator computes, as the option precision_mode says
// (docs/precision.md). It knows nothing of graphs.
//
// Thread-safety: const members may be called from several threads.
#ifndef NPUMESH_GRAPH_PASSES_REWRITE_PRECISION_RULE_H_
#define NPUMESH_GRAPH_PASSES_REWRITE_PRECISION_RULE_H_

#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "graph/ops/core/operator.h"
#include "runtime/base/status.h"

namespace npumesh {

// Types in the order in which they are tried; kUndefined ends the list.
using PreferredTypes = std::array<DataType, 3>;

class PrecisionRule {
 public:
  // Keeps every type.
  PrecisionRule() = default;
  // The rule of a word of precision_mode. `classes` replace the classes of operators by type, in
  // mixed precision alone. Error (kInvalidArgument): no mode has this name.
  static Result<PrecisionRule> Of(std::string_view mode,
                                  std::map<std::string, PrecisionClass, std::less<>> classes = {});

  bool keeps_all() const { return row_ == nullptr; }
  // The word; empty when every type is kept without one.
  std::string_view mode() const;
  // Mixed precision: the class decides, and grey operators follow those before them.
  bool mixed() const;

  // Nodes of these types or with these names stay as they are, whatever the mode.
  void Keep(std::set<std::string, std::less<>> types, std::set<std::string, std::less<>> nodes) {
    kept_types_ = std::move(types);
    kept_nodes_ = std::move(nodes);
  }
  bool Keeps(const Node& node) const {
    return kept_types_.contains(node.type) || kept_nodes_.contains(node.name);
  }

  // The class that counts for this operator. kKept never changes.
  PrecisionClass ClassOf(const Operator& op) const;

  // What an operator prefers whose floats are of type `declared`, which is float32, float16 or
  // bfloat16. `lowered`: it is white, or it is grey and follows one that is. REQUIRES:
  // !keeps_all().
  PreferredTypes Preferred(DataType declared, bool lowered) const;

 private:
  struct Row;
  static const Row kRows[];

  const Row* row_ = nullptr;
  std::map<std::string, PrecisionClass, std::less<>> classes_;
  std::set<std::string, std::less<>> kept_types_, kept_nodes_;
};

// What an operator of class grey, white, black or kept is called in messages.
std::string_view Name(PrecisionClass precision);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_PASSES_REWRITE_PRECISION_RULE_H_
