#include "graph/passes/fusion/attention_operand.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace npumesh {
namespace {

// The slot of the input whose elements a node passes on.
int PassedSlot(const FusionView& view, NodeId node) {
  const std::optional<ConstantFactor> factor = FactorOf(view, node);
  return factor ? factor->slot : 0;
}

// Extents, outermost first, at whose borders the factors of all lists can be cut.
std::optional<std::vector<int64_t>> CommonLevels(const std::vector<StridedView::Factors>& lists) {
  std::set<int64_t> borders = {1};
  for (const StridedView::Factors& list : lists) {
    int64_t inside = 1;
    for (size_t i = list.size(); i-- > 0;) borders.insert(inside *= list[i].extent);
  }
  std::vector<int64_t> levels;
  for (auto border = borders.begin(); std::next(border) != borders.end(); ++border) {
    const int64_t next = *std::next(border);
    if (next % *border != 0) return std::nullopt;
    levels.insert(levels.begin(), next / *border);
  }
  return levels;
}

using Levels = std::vector<StridedView::Factors>;  // of one tensor, at most one factor each

// The distance over levels [first, last), which count as one; nullopt: no such distance.
std::optional<int64_t> StrideOver(const Levels& levels, size_t first, size_t last) {
  StridedView::Factors all;
  for (size_t i = first; i < last; ++i) {
    for (const StridedView::Factor& factor : levels[i]) AppendFactor(all, factor);
  }
  if (all.empty()) return 0;
  if (all.size() > 1) return std::nullopt;
  return all[0].stride;
}

// The distances of a tensor whose sequences are levels [0, i) and whose heads are [i, j); what
// follows must be the same for all.
std::optional<HeadStrides> StridesAt(const Levels& levels, size_t i, size_t j) {
  const std::optional<int64_t> batch = StrideOver(levels, 0, i);
  const std::optional<int64_t> head = StrideOver(levels, i, j);
  if (!batch || !head || StrideOver(levels, j, levels.size()) != 0) return std::nullopt;
  return HeadStrides{*batch, *head};
}

bool AllStridesAt(const std::vector<Levels>& tensors, size_t i, size_t j,
                  std::vector<HeadStrides>& strides) {
  strides.clear();
  for (const Levels& levels : tensors) {
    const std::optional<HeadStrides> own = StridesAt(levels, i, j);
    if (!own) return false;
    strides.push_back(*own);
  }
  return true;
}

int64_t Product(const std::vector<int64_t>& extents, size_t first, size_t last) {
  int64_t product = 1;
  for (size_t i = first; i < last; ++i) product *= extents[i];
  return product;
}

}  // namespace

std::optional<ConstantFactor> FactorOf(const FusionView& view, NodeId node) {
  if (!view.Is(node, {"Muls", "Mul", "RealDiv", "Div"})) return std::nullopt;
  const OpContext& op = view.context(node);
  const std::string& type = view.node(node).type;
  ConstantFactor result;
  std::optional<double> factor;
  if (type == "Muls") {
    factor = static_cast<double>(op.attr_float("value"));
  } else {
    factor = view.Scalar(node, 1);
    if (!factor && type == "Mul") {
      factor = view.Scalar(node, 0);
      result.slot = 1;
    }
    if (factor && type != "Mul") factor = 1 / *factor;
  }
  if (!factor || op.in(result.slot) != op.out(0)) return std::nullopt;
  result.factor = static_cast<float>(*factor);
  if (!std::isfinite(result.factor) || result.factor == 0) return std::nullopt;
  return result;
}

std::optional<HeadCount> CountHeads(const std::vector<const AttentionOperand*>& by_query,
                                    const std::vector<const AttentionOperand*>& by_key,
                                    std::vector<HeadStrides>& query_strides,
                                    std::vector<HeadStrides>& key_strides) {
  std::vector<StridedView::Factors> lists;
  for (const auto* operands : {&by_query, &by_key}) {
    for (const AttentionOperand* operand : *operands) lists.push_back(operand->batch);
  }
  const std::optional<std::vector<int64_t>> extents = CommonLevels(lists);
  if (!extents) return std::nullopt;
  std::vector<Levels> queries, keys;
  for (size_t i = 0; i < lists.size(); ++i) {
    std::optional<Levels> levels = CutFactors(lists[i], *extents);
    if (!levels) return std::nullopt;
    (i < by_query.size() ? queries : keys).push_back(std::move(*levels));
  }
  const size_t all = extents->size();
  for (size_t i = 0; i <= all; ++i) {
    if (!AllStridesAt(queries, i, all, query_strides)) continue;
    for (size_t j = i; j <= all; ++j) {
      if (!AllStridesAt(keys, i, j, key_strides)) continue;
      return HeadCount{Product(*extents, 0, i), Product(*extents, i, j), Product(*extents, j, all)};
    }
  }
  return std::nullopt;
}

namespace {

// A product reads rows of a matrix; rows that a broadcast repeats are none.
bool RowsLieApart(const StridedView& view) {
  const int columns = view.rank() - 1;
  const std::optional<int64_t> stride = view.stride(columns - 1);
  return view.extent(columns - 1) <= 1 || (stride && *stride >= view.extent(columns));
}

}  // namespace

std::optional<AttentionOperand> OperandFinder::OfProduct(NodeId product, int slot, bool transposed,
                                                         bool scales, const Shape& shape) const {
  const Shape fed = view_.context(product).in(slot).shape;
  if (fed.rank() < 2) return std::nullopt;
  const auto arrange = [&](StridedView& view) {
    Shape all = shape;
    const int rank = all.rank();
    for (int i = 1; i <= 2; ++i) {
      all.mutable_dims()[static_cast<size_t>(rank - i)] = fed[fed.rank() - i];
    }
    if (!view.Broadcast(all)) return false;
    std::vector<int64_t> order;
    for (int i = 0; i < rank; ++i) order.push_back(i);
    if (transposed) std::swap(order[order.size() - 1], order[order.size() - 2]);
    view.Permute(order);
    return RowsLieApart(view);
  };
  return Find(product, slot, scales, arrange);
}

std::optional<AttentionOperand> OperandFinder::OfScores(NodeId node, int slot, const Shape& all,
                                                        int64_t rows, int64_t columns) const {
  const auto arrange = [&](StridedView& view) {
    return view.Broadcast(all) && view.Reshape({all.elements() / (rows * columns), rows, columns});
  };
  return Find(node, slot, false, arrange);
}

bool OperandFinder::MayBeLeftOut(NodeId node, bool scales) const {
  if (!view_.Free(node)) return false;
  if (scales && FactorOf(view_, node)) return true;
  const OpContext& op = view_.context(node);
  if (view_.op(node).view) return op.in(0).dtype == op.out(0).dtype;
  return view_.Is(
      node, {"Transpose", "TransposeD", "BroadcastTo", "BroadcastToD", "Expand", "TensorMove"});
}

std::vector<NodeId> OperandFinder::Chain(NodeId reader, int slot, bool scales) const {
  std::vector<NodeId> chain;
  while (true) {
    const NodeId maker = view_.Maker(reader, slot);
    if (maker == kNoNode || !MayBeLeftOut(maker, scales) || view_.OnlyReader(maker) != reader) {
      return chain;
    }
    chain.push_back(maker);
    reader = maker;
    slot = PassedSlot(view_, maker);
  }
}

bool OperandFinder::Apply(NodeId node, AttentionOperand& operand, StridedView& view) const {
  const OpContext& op = view_.context(node);
  if (const std::optional<ConstantFactor> factor = FactorOf(view_, node)) {
    operand.factor *= factor->factor;
    return true;
  }
  if (view_.op(node).view || view_.node(node).type == "TensorMove") {
    return view.Reshape(op.out(0).shape);
  }
  if (!view_.Is(node, {"Transpose", "TransposeD"})) return view.Broadcast(op.out(0).shape);
  Result<std::vector<int64_t>> order = op.Ints("perm");
  if (!order.ok() || static_cast<int>(order->size()) != view.rank()) return false;
  for (int64_t& axis : *order) axis += axis < 0 ? view.rank() : 0;
  view.Permute(*order);
  return true;
}

std::optional<AttentionOperand> OperandFinder::FindBehind(NodeId reader, int slot,
                                                          const std::vector<NodeId>& chain,
                                                          size_t left_out,
                                                          const Arrange& arrange) const {
  AttentionOperand operand;
  operand.nodes.assign(chain.begin(), chain.begin() + static_cast<std::ptrdiff_t>(left_out));
  const NodeId first = left_out == 0 ? reader : chain[left_out - 1];
  const int first_slot = left_out == 0 ? slot : PassedSlot(view_, first);
  const TensorType& type = view_.context(first).in(first_slot);
  operand.value = *view_.SlotValue(first, first_slot);
  operand.dtype = type.dtype;
  StridedView view(type.shape);
  for (size_t i = left_out; i-- > 0;) {
    if (!Apply(chain[i], operand, view)) return std::nullopt;
  }
  if (!arrange(view)) return std::nullopt;
  const int last = view.rank() - 1;
  const bool contiguous = view.extent(last) == 1 || view.stride(last) == 1;
  const std::optional<int64_t> row_stride = view.stride(last - 1);
  if (!contiguous || !row_stride) return std::nullopt;
  for (int i = 0; i < last - 1; ++i) {
    for (const StridedView::Factor& factor : view.dim(i)) AppendFactor(operand.batch, factor);
  }
  operand.rows = view.extent(last - 1);
  operand.columns = view.extent(last);
  operand.row_stride = *row_stride;
  return operand;
}

// As far back as the rows allow. A chain that begins with a view begins after it: views cost
// nothing, and others may read them.
std::optional<AttentionOperand> OperandFinder::Find(NodeId reader, int slot, bool scales,
                                                    const Arrange& arrange) const {
  const std::vector<NodeId> chain = Chain(reader, slot, scales);
  for (size_t left_out = chain.size() + 1; left_out-- > 0;) {
    if (left_out > 0 && view_.op(chain[left_out - 1]).view) continue;
    std::optional<AttentionOperand> operand = FindBehind(reader, slot, chain, left_out, arrange);
    if (operand) return operand;
  }
  return std::nullopt;
}

}  // namespace npumesh
