// RmsNormFusionPass: RmsNorm as frameworks write it out,
//
//   w = Cast(x) to float32             when x has 16 bits
//   r = Rsqrt(ReduceMean(w * w over the last axis) + epsilon)
//   y = w * r * gamma                  rounded to 16 bits before or after gamma, or not at all
//
// In a float32 model the rounding is a Cast to the type that the product has already.
#include "graph/ops/core/type_set.h"
#include "graph/ops/reduce/norm.h"
#include "graph/passes/fusion/fusion_view.h"

namespace npumesh {
namespace {

// One place where the pattern stands.
struct RmsNormMatch {
  std::vector<NodeId> nodes;
  Value x;
  Value gamma;
  RmsNormPlan plan;
};

class RmsNormFinder {
 public:
  explicit RmsNormFinder(FusionView& view) : view_(view) {}

  void Try(NodeId rsqrt) {
    match_ = {};
    std::string_view why = FindStatistics(rsqrt);
    if (why.empty()) why = FindProducts(rsqrt);
    if (why.empty()) {
      FindInputCast();
      why = view_.WhyNotFuse(match_.nodes, {match_.x, match_.gamma});
    }
    if (why.empty()) {
      TakeStep();
    } else {
      view_.Refuse(kRmsNormFusionPass, rsqrt, why);
    }
  }

 private:
  const TensorType& out(NodeId id) const { return view_.context(id).out(0); }

  void TakeStep() {
    FusedStep step;
    step.inputs = {match_.x, match_.gamma};
    step.make_kernel = [plan = match_.plan] {
      return Result<std::unique_ptr<Kernel>>(MakeRmsNormKernel(plan));
    };
    step.nodes = std::move(match_.nodes);
    view_.Take(std::move(step));
  }

  // From the root back to w: Add epsilon, ReduceMean, the square. Says what is in the way, as does
  // FindProducts.
  std::string_view FindStatistics(NodeId rsqrt) {
    const NodeId add = view_.Producer(rsqrt, 0);
    if (!view_.Is(add, {"Add", "AddV2", "Adds"})) return "its root is that of no sum";
    NodeId mean = view_.Producer(add, 0);
    if (!IsMean(mean) && !view_.Is(add, {"Adds"})) mean = view_.Producer(add, 1);
    if (!IsMean(mean) || out(rsqrt) != out(mean)) return "its root is that of no mean";
    const std::optional<double> epsilon = EpsilonOf(add, mean);
    if (!epsilon) return "epsilon is no constant";
    match_.plan.epsilon = *epsilon;
    const NodeId square = view_.Producer(mean, 0);
    if (!IsSquare(square)) return "its mean is not that of squares";
    const std::optional<Value> w = view_.SlotValue(square, 0);
    const TensorType& type = view_.context(square).in(0);
    if (!w || type.dtype != DataType::kFloat || type != out(square)) {
      return "its squares are not float32";
    }
    if (!IsOverLastAxis(type.shape, out(mean).shape)) return "its mean is not over the last axis";
    match_.x = *w;
    match_.plan.columns = type.shape.dims().back();
    match_.plan.rows = type.shape.elements() / match_.plan.columns;
    match_.nodes = {square, mean, add, rsqrt};
    return "";
  }

  // What is added to the mean.
  std::optional<double> EpsilonOf(NodeId add, NodeId mean) const {
    if (view_.Is(add, {"Adds"})) {
      return static_cast<double>(view_.context(add).attr_float("value"));
    }
    const int slot = view_.OtherSlot(add, mean);
    return slot < 0 ? std::nullopt : view_.Scalar(add, slot);
  }

  bool IsMean(NodeId id) const {
    return view_.Is(id, {"ReduceMean", "ReduceMeanD"}) && view_.context(id).attr_bool("keep_dims");
  }

  bool IsSquare(NodeId id) const {
    if (view_.Is(id, {"Square"})) return true;
    if (view_.Is(id, {"Mul"})) return view_.SlotValue(id, 0) == view_.SlotValue(id, 1);
    return view_.Is(id, {"Pow"}) && view_.Scalar(id, 1) == 2.0;
  }

  static bool IsOverLastAxis(const Shape& x, const Shape& mean) {
    if (x.rank() == 0 || x.elements() == 0) return false;
    Shape expected = x;
    expected[x.rank() - 1] = 1;
    return mean == expected;
  }

  // From the root on: w * r, perhaps a cast, gamma, perhaps a cast.
  std::string_view FindProducts(NodeId rsqrt) {
    const NodeId quotient = view_.OnlyReader(rsqrt);
    if (!view_.Is(quotient, {"Mul"})) return "no product alone reads its root";
    const int other = view_.OtherSlot(quotient, rsqrt);
    if (other < 0 || view_.SlotValue(quotient, other) != match_.x) {
      return "its root is not multiplied by what was squared";
    }
    NodeId end = Take(quotient);
    NodeId next = view_.OnlyReader(end);
    if (IsIdleCast(next)) {
      end = Take(next);
      next = view_.OnlyReader(end);
    } else if (IsNarrowingCast(next)) {
      match_.plan.rounds = true;
      end = Take(next);
      next = view_.OnlyReader(end);
    }
    if (!view_.Is(next, {"Mul"})) return "no product with gamma follows";
    const int gamma = view_.OtherSlot(next, end);
    if (gamma < 0 || !IsGamma(view_.context(next).in(gamma), out(end))) {
      return "gamma is no vector of its type over the last axis";
    }
    match_.gamma = *view_.SlotValue(next, gamma);
    match_.plan.gamma_dtype = view_.context(next).in(gamma).dtype;
    end = Take(next);
    next = view_.OnlyReader(end);
    if (IsIdleCast(next) || (!match_.plan.rounds && IsNarrowingCast(next))) end = Take(next);
    match_.plan.y_dtype = out(end).dtype;
    match_.plan.gives_rstd = false;
    return "";
  }

  NodeId Take(NodeId id) {
    match_.nodes.push_back(id);
    return id;
  }

  bool IsNarrowingCast(NodeId id) const {
    return view_.Is(id, {"Cast"}) && out(id).dtype != DataType::kFloat &&
           kFloats.Contains(out(id).dtype);
  }

  bool IsIdleCast(NodeId id) const {
    return view_.Is(id, {"Cast"}) && view_.context(id).in(0) == out(id);
  }

  // A vector over the columns, of the type of what it is multiplied by.
  bool IsGamma(const TensorType& gamma, const TensorType& quotient) const {
    const int64_t columns = match_.plan.columns;
    return gamma.dtype == quotient.dtype && gamma.shape.rank() > 0 &&
           gamma.shape.rank() <= quotient.shape.rank() && gamma.shape.elements() == columns &&
           gamma.shape.dims().back() == columns;
  }

  // w may be x of 16 bits, widened for this alone.
  void FindInputCast() {
    const NodeId cast = match_.x.port == 0 ? match_.x.node : kNoNode;
    if (!view_.Is(cast, {"Cast"}) || !view_.OnlyReadInside(cast, match_.nodes)) return;
    const DataType dtype = view_.context(cast).in(0).dtype;
    if (!kFloats.Contains(dtype)) return;
    match_.x = *view_.SlotValue(cast, 0);
    match_.plan.x_dtype = dtype;
    match_.nodes.push_back(cast);
  }

  FusionView& view_;
  RmsNormMatch match_;
};

}  // namespace

void FuseRmsNorm(FusionView& view) {
  RmsNormFinder finder(view);
  for (const NodeId id : view.order()) {
    if (view.Is(id, {"Rsqrt"})) finder.Try(id);
  }
}

}  // namespace npumesh
