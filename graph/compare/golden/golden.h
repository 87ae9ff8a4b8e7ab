// N ranks against one: the ranks of a tensor-parallel graph against its unsharded graph.
#ifndef NPUMESH_GRAPH_COMPARE_GOLDEN_GOLDEN_H_
#define NPUMESH_GRAPH_COMPARE_GOLDEN_GOLDEN_H_

#include <map>
#include <string>
#include <vector>

#include "graph/compare/laws/law_check.h"
#include "graph/compare/measures/comparison.h"
#include "graph/compare/measures/shards.h"

namespace npumesh {

// What an operator of the sharded graph corresponds to.
struct CounterpartInWhole {
  std::string key;  // in the whole graph
  // How a collective puts its outputs together before anything else reads them; kNone: none does.
  Sharding::Kind reduced = Sharding::Kind::kNone;
  // It is that collective.
  bool reduces = false;
};

// By the key of an operator of the sharded graph.
using Counterparts = std::map<std::string, CounterpartInWhole>;

// Operators that correspond: when both graphs have the same sequence of types, apart from
// collectives, Identity and constants, by position; otherwise by name and type. Collectives
// correspond to what their counterpart's first input corresponds to when that makes sense: an
// HcomAllReduce to the operator whose partial results it sums.
Result<Counterparts> FindCounterparts(const Graph& sharded, const Graph& whole,
                                      const OpRegistry& registry);

// One output of an operator of all ranks against the whole.
struct GoldenRow {
  std::string key;
  std::string name;
  std::string type;
  std::string whole_key;
  bool reduces = false;  // as in CounterpartInWhole
  int output = 0;
  TensorType whole;
  ShardFit fit;
  // ToText of PatternOf (pattern.h) for what the fit's distance is between; of the first row that
  // differs only.
  std::string pattern;
  Standing standing = Standing::kSame;
};

struct GoldenReport {
  std::vector<GoldenRow> rows;  // in topological order of the sharded graph
  int first = -1;
  // Operators whose shapes have nothing to do with their counterpart's, by name.
  std::vector<std::string> not_comparable;

  const GoldenRow* First() const { return first < 0 ? nullptr : &rows[static_cast<size_t>(first)]; }
};

// Compares one output of all ranks (none empty) with the whole. `reduced`: as in
// CounterpartInWhole.
GoldenRow CompareWithWhole(const std::vector<Tensor>& ranks, const Tensor& whole,
                           const Allowance& allowance,
                           Sharding::Kind reduced = Sharding::Kind::kNone);

// All operators that every rank and the whole have. Errors: those of Load; kInvalidArgument when
// there is nothing to compare.
Result<GoldenReport> CompareRanksWithWhole(const RankSources& ranks, const TensorSource& whole,
                                           const Counterparts& counterparts,
                                           const OperatorOrder& order,
                                           const CompareOptions& options);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_COMPARE_GOLDEN_GOLDEN_H_
