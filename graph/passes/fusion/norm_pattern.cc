#include "graph/passes/fusion/norm_pattern.h"

#include <utility>

#include "graph/ops/core/type_set.h"

namespace npumesh {

void NormPattern::Take(NodeId id) {
  nodes_.push_back(id);
  end_ = id;
}

bool NormPattern::IsMean(NodeId id) const {
  return view_.Is(id, {"ReduceMean", "ReduceMeanD"}) && view_.context(id).attr_bool("keep_dims");
}

bool NormPattern::IsSquare(NodeId id) const {
  if (view_.Is(id, {"Square"})) return true;
  if (view_.Is(id, {"Mul"})) return view_.SlotValue(id, 0) == view_.SlotValue(id, 1);
  return view_.Is(id, {"Pow"}) && view_.Scalar(id, 1) == 2.0;
}

bool NormPattern::IsOverLastAxis(NodeId mean) const {
  const Shape& x = view_.context(mean).in(0).shape;
  if (x.rank() == 0 || x.elements() == 0) return false;
  Shape expected = x;
  expected[x.rank() - 1] = 1;
  return out(mean).shape == expected;
}

// What is added to the mean.
std::optional<double> NormPattern::EpsilonOf(NodeId add, NodeId mean) const {
  if (view_.Is(add, {"Adds"})) {
    return static_cast<double>(view_.context(add).attr_float("value"));
  }
  const int slot = view_.OtherSlot(add, mean);
  return slot < 0 ? std::nullopt : view_.Scalar(add, slot);
}

std::string_view NormPattern::FindStatistics() {
  const NodeId add = view_.Producer(root_, 0);
  if (!view_.Is(add, {"Add", "AddV2", "Adds"})) return "its root is that of no sum";
  NodeId mean = view_.Producer(add, 0);
  if (!IsMean(mean) && !view_.Is(add, {"Adds"})) mean = view_.Producer(add, 1);
  if (!IsMean(mean) || out(root_) != out(mean)) return "its root is that of no mean";
  nodes_ = {mean, add, root_};
  const std::optional<double> epsilon = EpsilonOf(add, mean);
  if (!epsilon) return "epsilon is no constant";
  epsilon_ = *epsilon;
  const NodeId square = view_.Producer(mean, 0);
  if (!IsSquare(square)) return "its mean is not that of squares";
  nodes_.push_back(square);
  const std::optional<Value> w = view_.SlotValue(square, 0);
  const TensorType& type = view_.context(square).in(0);
  if (!w || type.dtype != DataType::kFloat || type != out(square)) {
    return "its squares are not float32";
  }
  if (!IsOverLastAxis(mean)) return "its mean is not over the last axis";
  w_ = *w;
  columns_ = type.shape.dims().back();
  rows_ = type.shape.elements() / columns_;
  return "";
}

std::string_view NormPattern::FindQuotient() {
  NodeId next = view_.OnlyReader(root_);
  bool multiplies = view_.Is(root_, {"Rsqrt"});
  if (!multiplies && view_.Is(next, {"Reciprocal"})) {
    Take(next);
    next = view_.OnlyReader(next);
    multiplies = true;
  }
  if (multiplies) {
    if (!view_.Is(next, {"Mul"})) return "no product alone reads its root";
    const int other = view_.OtherSlot(next, end_);
    if (other < 0 || view_.SlotValue(next, other) != w_) {
      return "its root is not multiplied by what was squared";
    }
  } else {
    if (!view_.Is(next, {"RealDiv", "Div"})) return "no quotient alone reads its root";
    if (view_.Producer(next, 1) != root_ || view_.SlotValue(next, 0) != w_) {
      return "its root does not divide what was squared";
    }
  }
  Take(next);
  return "";
}

std::optional<Value> NormPattern::TakeVector(std::initializer_list<std::string_view> types) {
  const NodeId next = view_.OnlyReader(end_);
  if (!view_.Is(next, types)) return std::nullopt;
  const int slot = view_.OtherSlot(next, end_);
  if (slot < 0) return std::nullopt;
  const TensorType& vector = view_.context(next).in(slot);
  const int rank = vector.shape.rank();
  const bool over_columns = rank > 0 && rank <= out(end_).shape.rank() &&
                            vector.shape.elements() == columns_ &&
                            vector.shape.dims().back() == columns_;
  if (vector.dtype != out(end_).dtype || !over_columns) return std::nullopt;
  Take(next);
  return view_.SlotValue(next, slot);
}

bool NormPattern::TakeNarrowingCast() {
  const NodeId next = view_.OnlyReader(end_);
  const bool narrows = view_.Is(next, {"Cast"}) && out(next).dtype != DataType::kFloat &&
                       out(end_).dtype == DataType::kFloat && kFloats.Contains(out(next).dtype);
  if (narrows) Take(next);
  return narrows;
}

bool NormPattern::TakeIdleCast() {
  const NodeId next = view_.OnlyReader(end_);
  const bool idle = view_.Is(next, {"Cast"}) && view_.context(next).in(0) == out(next);
  if (idle) Take(next);
  return idle;
}

std::string_view NormPattern::TakeCentring() {
  const NodeId sub = w_.port == 0 ? w_.node : kNoNode;
  if (!view_.Is(sub, {"Sub"})) return "nothing is subtracted";
  const NodeId mean = view_.Producer(sub, 1);
  if (!IsMean(mean) || !IsOverLastAxis(mean)) return "no mean over the last axis is subtracted";
  const std::optional<Value> x = view_.SlotValue(sub, 0);
  if (!x || view_.SlotValue(mean, 0) != x || view_.context(sub).in(0) != out(sub)) {
    return "the mean is that of something else";
  }
  nodes_.insert(nodes_.end(), {mean, sub});
  centred_ = true;
  w_ = *x;
  return "";
}

DataType NormPattern::TakeWideningCast() {
  const NodeId cast = w_.port == 0 ? w_.node : kNoNode;
  if (!view_.Is(cast, {"Cast"}) || !view_.OnlyReadInside(cast, nodes_)) return DataType::kFloat;
  const DataType dtype = view_.context(cast).in(0).dtype;
  if (!kFloats.Contains(dtype)) return DataType::kFloat;
  w_ = *view_.SlotValue(cast, 0);
  nodes_.push_back(cast);
  return dtype;
}

std::string_view NormPattern::TakeStep(
    FusionView& view, const std::vector<Value>& vectors,
    std::function<Result<std::unique_ptr<Kernel>>()> make_kernel) {
  FusedStep step;
  step.inputs = {w_};
  step.inputs.insert(step.inputs.end(), vectors.begin(), vectors.end());
  const std::string_view why = view.WhyNotFuse(nodes_, step.inputs);
  if (!why.empty()) return why;
  step.nodes = nodes_;
  step.make_kernel = std::move(make_kernel);
  view.Take(std::move(step));
  return "";
}

std::string_view TakeNorm(FusionView& view, NormPattern& pattern, NormForm form,
                          const std::vector<Value>& vectors,
                          std::unique_ptr<Kernel> (*make)(const NormForm&)) {
  form.x = pattern.TakeWideningCast();
  form.y = pattern.end_type().dtype;
  form.rows = pattern.rows();
  form.columns = pattern.columns();
  form.epsilon = pattern.epsilon();
  form.threads = pattern.threads();
  return pattern.TakeStep(view, vectors, [form = std::move(form), make] {
    return Result<std::unique_ptr<Kernel>>(make(form));
  });
}

}  // namespace npumesh
