// Condition: what a rule of a card says of a call, in expressions over the names of the operator's
// signature (runtime/base/text/expression.h).
//
//   input_layout == "TND" and not has(query_rope) and size(query, -1) not in [64, 128, 192]
//
// A name is an attribute, with the signature's default; or a definition of the rule's operator; or
// a type, as in type(x) == float16. Functions:
//   has(x)       whether the input is fed
//   type(x)      the element type; of the first tensor of a list
//   rank(x)      how many dimensions; size(x, d): one of them, negative d counted from the end
//   count(x)     how many elements; tensors(x): how many tensors a list has
//   value(x, i)  element i of an input whose integers are known before the run; values(x): all
//   card(fact)   a number of the chip: card(cube_cores)
//   length(list) max(list) min(list)
//
// What is not known, an open dimension or a value that only the run has, is neither true nor false:
// a rule with such a condition says nothing, unless the rest decides ("false and ..").
//
// Thread-safety: values; evaluation may happen in several threads.
#ifndef NPUMESH_GRAPH_LIMITS_CONDITION_H_
#define NPUMESH_GRAPH_LIMITS_CONDITION_H_

#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "graph/ops/core/operator.h"
#include "runtime/base/text/expression.h"
#include "runtime/card/chips.h"

namespace npumesh {

// What an expression is. Nothing: not known.
struct CardValue {
  using List = std::vector<CardValue>;
  std::variant<std::monostate, int64_t, double, bool, std::string, DataType, List> is;

  bool known() const { return !std::holds_alternative<std::monostate>(is); }
  bool IsTrue() const;
  std::string ToText() const;  // "?" where it is not known
};

using CardDefinitions = std::map<std::string, Expr, std::less<>>;

// A call, as a condition sees it. All must outlive it.
struct CardCall {
  const OpContext& op;
  const CardDefinitions& definitions;
  const Chip& chip;
};

// Nothing where the types of operands do not fit: CheckCondition has refused that.
CardValue Evaluate(const Expr& expr, const CardCall& call);

// `text` with "{expression}" replaced by what it is for the call. Errors (kCorrupt) of an
// expression that does not follow the notation.
Result<std::string> Filled(std::string_view text, const CardCall& call);

// The expressions in a text with braces. Errors as Filled.
Result<std::vector<Expr>> ExpressionsIn(std::string_view text);

// Error (kCorrupt) for a name that the schema and the definitions do not have, and a function that
// is none of the above or has other arguments.
Status CheckCondition(const Expr& expr, const OpSchema& schema, const CardDefinitions& definitions);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_LIMITS_CONDITION_H_
