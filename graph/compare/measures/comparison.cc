#include "graph/compare/measures/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "graph/compare/measures/elements.h"
#include "graph/compare/measures/pattern.h"

namespace npumesh {
namespace {

bool Differs(const TensorRow& row) {
  return !row.distance.same();
}

void MeasureRow(const std::string& key, const Tensor& mine, const Tensor& golden,
                const CompareOptions& options, TensorRow& row) {
  row.distance = DistanceOf(mine, golden, options.For(key, golden));
  if (!row.distance.reason.empty() || options.algorithms.empty()) return;
  const Result<std::vector<double>> x = ElementsOf(mine);
  const Result<std::vector<double>> y = ElementsOf(golden);
  if (!x.ok() || !y.ok()) return;
  for (const double value : *x) {
    if (std::isfinite(value)) row.my_peak = std::max(row.my_peak, std::abs(value));
  }
  const std::vector<float> my_floats = AsFloats(*x);
  const std::vector<float> golden_floats = AsFloats(*y);
  for (const CompareAlgorithm algorithm : options.algorithms) {
    row.measurements.push_back(Measure(algorithm, my_floats, golden_floats, mine.shape()));
  }
}

void AddRow(TensorRow tensor, OperatorRow& row) {
  if (Differs(tensor)) {
    row.standing = Standing::kOrigin;
    if (tensor.side == Side::kInput) row.inputs_differ = true;
  }
  row.tensors.push_back(std::move(tensor));
}

// Those of a tensor that can only be compared by them.
Result<DumpedStatistics> StatisticsOf(const TensorSource& source, const std::string& key, Side side,
                                      int index) {
  std::optional<DumpedStatistics> statistics = source.StatisticsOf(key, side, index);
  if (statistics) return *std::move(statistics);
  return Error(Code::kInvalidArgument,
               "{} {} of {} cannot be compared: the other side has only statistics of it, and {} "
               "has none",
               Name(side), index, key, source.title());
}

Status AddStatistics(const TensorSource& my_source, const TensorSource& golden_source, Side side,
                     int index, const CompareOptions& options, OperatorRow& row) {
  NPUMESH_ASSIGN_OR_RETURN(const DumpedStatistics mine,
                           StatisticsOf(my_source, row.key, side, index));
  NPUMESH_ASSIGN_OR_RETURN(const DumpedStatistics golden,
                           StatisticsOf(golden_source, row.key, side, index));
  TensorRow tensor{side, index, mine.type, golden.type};
  tensor.my_file = my_source.FileOf(row.key, side, index);
  tensor.golden_file = golden_source.FileOf(row.key, side, index);
  tensor.distance = DistanceOf(mine, golden, options.For(golden));
  AddRow(std::move(tensor), row);
  return Status();
}

Status AddTensor(const TensorSource& my_source, const TensorSource& golden_source, Side side,
                 int index, const CompareOptions& options, OperatorRow& row) {
  if (!my_source.HasElements(row.key, side, index) ||
      !golden_source.HasElements(row.key, side, index)) {
    return AddStatistics(my_source, golden_source, side, index, options, row);
  }
  NPUMESH_ASSIGN_OR_RETURN(const Tensor mine, my_source.Load(row.key, side, index));
  NPUMESH_ASSIGN_OR_RETURN(const Tensor golden, golden_source.Load(row.key, side, index));
  TensorRow tensor{side, index, mine.type(), golden.type()};
  tensor.my_file = my_source.FileOf(row.key, side, index);
  tensor.golden_file = golden_source.FileOf(row.key, side, index);
  tensor.my_address = my_source.AddressOf(row.key, side, index);
  tensor.golden_address = golden_source.AddressOf(row.key, side, index);
  MeasureRow(row.key, mine, golden, options, tensor);
  if (Differs(tensor) && options.detailed > 0) {
    const Allowance allowance = options.For(row.key, golden);
    tensor.difference = DifferenceOf(mine, golden, allowance);
    tensor.pattern = ToText(PatternOf(mine, golden, allowance), mine.shape());
  }
  AddRow(std::move(tensor), row);
  return Status();
}

class Comparer {
 public:
  Comparer(const TensorSource& mine, const TensorSource& golden, const OperatorOrder& order,
           const CompareOptions& options)
      : mine_(mine), golden_(golden), order_(order), options_(options) {}

  Result<Comparison> Run() {
    comparison_.mine = mine_.title();
    comparison_.golden = golden_.title();
    for (const std::string& key : CommonKeys()) {
      NPUMESH_RETURN_IF_ERROR(AddRow(key));
    }
    if (comparison_.rows.empty()) {
      return Error(Code::kInvalidArgument,
                   "{} and {} have no operator in common: {} and {} operators, such as \"{}\" and "
                   "\"{}\"",
                   mine_.title(), golden_.title(), mine_.operators().size(),
                   golden_.operators().size(), FirstKey(mine_), FirstKey(golden_));
    }
    return std::move(comparison_);
  }

 private:
  static std::string FirstKey(const TensorSource& source) {
    return source.operators().empty() ? std::string() : source.operators().front().key;
  }

  std::vector<std::string> CommonKeys() {
    std::set<std::string> theirs;
    for (const SourceOperator& op : golden_.operators()) theirs.insert(op.key);
    std::vector<std::string> common;
    for (const SourceOperator& op : mine_.operators()) {
      (theirs.erase(op.key) > 0 ? common : comparison_.only_mine).push_back(op.key);
    }
    comparison_.only_golden.assign(theirs.begin(), theirs.end());
    return order_.Sorted(std::move(common));
  }

  Status AddRow(const std::string& key) {
    NPUMESH_ASSIGN_OR_RETURN(OperatorRow row, CompareOperator(mine_, golden_, key, options_));
    if (row.tensors.empty()) return Status();
    if (row.differs()) {
      if (IsConsequence(row)) row.standing = Standing::kConsequence;
      differing_.insert(key);
      --options_.detailed;
      if (comparison_.first < 0) comparison_.first = static_cast<int>(comparison_.rows.size());
    }
    comparison_.rows.push_back(std::move(row));
    return Status();
  }

  bool IsConsequence(const OperatorRow& row) const {
    // Without edges the dumped inputs tell more than the order.
    const bool has_inputs = row.tensors.front().side == Side::kInput;
    if (has_inputs && !order_.has_edges() && !row.inputs_differ) return false;
    return order_.Sees(row.key, differing_);
  }

  const TensorSource& mine_;
  const TensorSource& golden_;
  const OperatorOrder& order_;
  CompareOptions options_;  // `detailed` counts down
  Comparison comparison_;
  std::set<std::string> differing_;
};

// How far apart two tensors are: those that cannot be compared before all others.
double Weight(const TensorRow& row) {
  return row.distance.reason.empty() ? row.distance.max_abs
                                     : std::numeric_limits<double>::infinity();
}

}  // namespace

Allowance CompareOptions::For(const std::string& key, const Tensor& golden) const {
  if (roundings != nullptr) {
    const auto known = roundings->find(key);
    if (known != roundings->end()) return CloseAllowanceInside(known->second, golden);
  }
  return reorder ? ReorderAllowance(golden.dtype()) : allowance;
}

Allowance CompareOptions::For(const DumpedStatistics& golden) const {
  return reorder ? ReorderAllowance(golden.type.dtype) : allowance;
}

const TensorRow* OperatorRow::Worst() const {
  const TensorRow* worst = nullptr;
  for (const TensorRow& tensor : tensors) {
    if (!Differs(tensor)) continue;
    const bool better = worst == nullptr || worst->side < tensor.side ||
                        (worst->side == tensor.side && Weight(tensor) > Weight(*worst));
    if (better) worst = &tensor;
  }
  return worst;
}

Result<OperatorRow> CompareOperator(const TensorSource& mine, const TensorSource& golden,
                                    const std::string& key, const CompareOptions& options) {
  const SourceOperator* const my_op = mine.Find(key);
  const SourceOperator* const golden_op = golden.Find(key);
  if (my_op == nullptr || golden_op == nullptr) {
    return Error(Code::kNotFound, "{}: there is no operator \"{}\"",
                 my_op == nullptr ? mine.title() : golden.title(), key);
  }
  OperatorRow row{key, my_op->name, my_op->type.empty() ? golden_op->type : my_op->type};
  for (const Side side : {Side::kInput, Side::kOutput}) {
    for (const int index : my_op->indexes(side)) {
      const std::vector<int>& theirs = golden_op->indexes(side);
      if (!std::binary_search(theirs.begin(), theirs.end(), index)) continue;
      NPUMESH_RETURN_IF_ERROR(AddTensor(mine, golden, side, index, options, row));
    }
  }
  return row;
}

Result<Comparison> CompareSources(const TensorSource& mine, const TensorSource& golden,
                                  const OperatorOrder* order, const CompareOptions& options) {
  if (order != nullptr) return Comparer(mine, golden, *order, options).Run();
  const OperatorOrder own = OperatorOrder::FromSource(mine);
  return Comparer(mine, golden, own, options).Run();
}

int RankToBlame(const std::vector<Comparison>& ranks, const OperatorOrder* order) {
  int blamed = -1;
  std::pair<bool, int> best;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const OperatorRow* const first = ranks[rank].First();
    if (first == nullptr) continue;
    const bool collective =
        order != nullptr ? order->IsCollective(first->key) : IsCollectiveType(first->type);
    const int place = order != nullptr ? order->PlaceOf(first->key) : ranks[rank].first;
    const std::pair<bool, int> mark(collective, place);
    if (blamed >= 0 && !(mark < best)) continue;
    best = mark;
    blamed = static_cast<int>(rank);
  }
  return blamed;
}

}  // namespace npumesh
