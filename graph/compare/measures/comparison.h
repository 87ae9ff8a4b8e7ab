// Comparison: two sources of tensors, operator by operator in topological order, and the operator
// at which they part.
//
// An operator is to blame when its outputs differ although everything it saw was the same. What
// only passes on a difference that it was given is a consequence and is never blamed.
#ifndef NPUMESH_GRAPH_COMPARE_MEASURES_COMPARISON_H_
#define NPUMESH_GRAPH_COMPARE_MEASURES_COMPARISON_H_

#include <string>
#include <vector>

#include "graph/compare/measures/algorithms.h"
#include "graph/compare/measures/difference.h"
#include "graph/compare/measures/distance.h"
#include "graph/compare/measures/rounding.h"
#include "graph/compare/sources/operator_order.h"
#include "graph/compare/sources/tensor_source.h"

namespace npumesh {

struct CompareOptions {
  Allowance allowance;
  // True: floating-point tensors get ReorderAllowance of their dtype instead.
  bool reorder = false;
  // Not null: operators that it has get CloseAllowanceInside instead. It must outlive the options.
  const OperatorRoundings* roundings = nullptr;
  // Empty: no columns of msaccucmp are measured.
  std::vector<CompareAlgorithm> algorithms;
  // How many operators that differ, the first ones, get TensorRow::difference and
  // TensorRow::pattern.
  int detailed = 0;

  // For an output of operator `key` (of mine) that should be `golden`.
  Allowance For(const std::string& key, const Tensor& golden) const;
  // Where only statistics are compared.
  Allowance For(const DumpedStatistics& golden) const;
};

// One tensor that both sources have.
struct TensorRow {
  Side side = Side::kOutput;
  int index = 0;
  TensorType mine;
  TensorType golden;
  std::string my_file;
  std::string golden_file;
  uint64_t my_address = 0;
  uint64_t golden_address = 0;
  double my_peak = 0;  // largest finite magnitude
  TensorDistance distance;
  TensorDifference difference;            // empty unless CompareOptions::detailed asks for it
  std::string pattern;                    // so is this: ToText of PatternOf (pattern.h)
  std::vector<Measurement> measurements;  // as CompareOptions::algorithms
};

enum class Standing : uint8_t {
  kSame,
  kOrigin,       // differs, and nothing it sees does
  kConsequence,  // differs after something it sees
};

struct OperatorRow {
  std::string key;
  std::string name;
  std::string type;
  Standing standing = Standing::kSame;
  // Inputs of the dump differ although no operator before does: memory was overwritten, or the
  // producer was not dumped.
  bool inputs_differ = false;
  std::vector<TensorRow> tensors;  // inputs before outputs

  bool differs() const { return standing != Standing::kSame; }
  // The output that differs most, else the input; null when all is the same.
  const TensorRow* Worst() const;
};

struct Comparison {
  std::string mine;
  std::string golden;
  std::vector<OperatorRow> rows;  // in topological order
  // Operators of one side only, by name.
  std::vector<std::string> only_mine;
  std::vector<std::string> only_golden;
  int first = -1;  // row of the first operator that differs; -1: none

  const OperatorRow* First() const {
    return first < 0 ? nullptr : &rows[static_cast<size_t>(first)];
  }
};

// Compares what both sources have: elements, and statistics where one of them has no others.
// `order` says what runs before what; null: as in `mine`.
// Errors: those of Load, and kInvalidArgument when the sources have no operator in common, or one
// has only statistics of a tensor and the other one none.
Result<Comparison> CompareSources(const TensorSource& mine, const TensorSource& golden,
                                  const OperatorOrder* order, const CompareOptions& options);

// One operator that both sources have; `standing` is kSame or kOrigin, as if nothing ran before it.
// No tensors: the sources share none of it. Errors: those of Load.
Result<OperatorRow> CompareOperator(const TensorSource& mine, const TensorSource& golden,
                                    const std::string& key, const CompareOptions& options);

// Among the comparisons of several ranks with their goldens, the one whose first operator is to
// blame; -1: none differs. A rank that took a wrong value over a collective is not blamed as long
// as another rank parted at another operator; otherwise the earliest counts, then the lowest.
int RankToBlame(const std::vector<Comparison>& ranks, const OperatorOrder* order);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_COMPARE_MEASURES_COMPARISON_H_
