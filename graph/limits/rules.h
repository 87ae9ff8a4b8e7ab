// CardRules: limits of operators on cards, from one text that a person can read and add to
// (rules.card).
//
//   [FusedInferAttentionScore]
//     d = size(query, -1) if input_layout in ["BSND", "BNSD"] else size(query, -1) // num_heads
//
//   fia-head-dim: refused 561002 on ascend910b, ascend910_93
//     when   d > 512
//     says   heads have {d} elements; at most 512 are taken
//     mend   split the heads
//     source CANN ops-transformer, prompt_flash_attention tiling
//
// Names in brackets are the operators that the rules below belong to; indented lines behind them
// define names. A rule says what happens where: `refused CODE` by the runtime, or `wrong`: it
// computes something else and says nothing. Chips are those of chips.card, their families, or
// `all`. A line that ends in \ goes on in the next; # begins a comment line.
//
// Thread-safety: a table does not change.
#ifndef NPUMESH_GRAPH_LIMITS_RULES_H_
#define NPUMESH_GRAPH_LIMITS_RULES_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/limits/condition.h"

namespace npumesh {

struct CardRule {
  std::string id;
  std::vector<std::string> operators;
  std::shared_ptr<const CardDefinitions> definitions;
  int code = 0;                    // 0: nothing is said, and the result is wrong
  std::vector<std::string> chips;  // and families; empty: all
  std::string condition;           // as it stands in the table
  Expr when;
  std::string says;
  std::string mend;
  std::string source;

  bool HoldsFor(const Chip& chip) const;
};

class CardRules {
 public:
  // Errors (kCorrupt) name the line: `name` is that of the text.
  static Result<CardRules> Parse(std::string_view name, std::string_view text);

  const std::vector<CardRule>& rules() const { return rules_; }
  // Of an operator on a chip, in the order of the table.
  std::vector<const CardRule*> Of(std::string_view type, const Chip& chip) const;

 private:
  std::vector<CardRule> rules_;
};

// The text of rules.card, and the table of it.
std::string_view CardRulesText();
const CardRules& BuiltinCardRules();

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_LIMITS_RULES_H_
