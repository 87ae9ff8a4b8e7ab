// LawCheck: the laws of a job's graphs against the tensors that its ranks dumped.
#ifndef NPUMESH_GRAPH_COMPARE_LAWS_LAW_CHECK_H_
#define NPUMESH_GRAPH_COMPARE_LAWS_LAW_CHECK_H_

#include <string>
#include <vector>

#include "graph/compare/laws/laws.h"
#include "graph/compare/measures/comparison.h"
#include "graph/compare/sources/tensor_source.h"

namespace npumesh {

// The sources of all ranks in one step; null where a rank has none. Not owned.
using RankSources = std::vector<const TensorSource*>;

// A law that does not hold.
struct BrokenLaw {
  const Law* law = nullptr;
  // The lowest rank whose tensor is not that of the majority of its class.
  int rank = 0;
  // A rank that holds what the majority holds.
  int witness = 0;
  // Two opinions with equally many ranks: `rank` may be the one that is right.
  bool undecided = false;
  std::vector<int> deviating;  // all ranks that do not hold what the witness holds
  TensorDistance distance;     // of `rank` from `witness`
  Standing standing = Standing::kOrigin;
};

struct LawReport {
  std::vector<BrokenLaw> broken;  // in topological order
  size_t checked = 0;             // laws with tensors of at least two ranks
  size_t missing = 0;             // laws that bind, but whose tensors are not in the dump
  size_t free = 0;                // outputs that no law binds

  // The law that was broken first; null: none.
  const BrokenLaw* First() const { return broken.empty() ? nullptr : &broken.front(); }
};

// Ranks of a class must hold the same bits (NaN is NaN, whatever its payload). `table` must outlive
// the report. Errors: those of Load.
Result<LawReport> CheckLaws(const LawTable& table, const RankSources& sources,
                            const OperatorOrder& order);

// Which ranks dumped equal tensors for an input of the graph: what DeriveLaws asks for. Looks for
// the dump of the Data node itself, then for the inputs of its readers. Not in the dump: nothing is
// known, or, when `assume_equal`, all ranks are taken to be equal. The references must outlive the
// result.
InputClasses InputsAsDumped(const RankGraphs& graphs, const OpRegistry& registry,
                            const RankSources& sources, bool assume_equal);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_COMPARE_LAWS_LAW_CHECK_H_
