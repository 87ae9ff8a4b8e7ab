// What norms have in common where frameworks write them out, for fuse_rms_norm.cc and
// fuse_layer_norm.cc:
//
//   s = ReduceMean(w * w over the last axis) + epsilon
//   w * Rsqrt(s), w * Reciprocal(Sqrt(s)), or w / Sqrt(s)     then vectors over the last axis
//
// Internal to graph/passes.
#ifndef NPUMESH_GRAPH_PASSES_FUSION_NORM_PATTERN_H_
#define NPUMESH_GRAPH_PASSES_FUSION_NORM_PATTERN_H_

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "graph/ops/reduce/norm.h"
#include "graph/passes/fusion/fusion_view.h"

namespace npumesh {

// One place where the pattern may stand: the nodes from the square to the end so far. Functions
// that return a text say what is in the way, a literal; it is empty when they found what they look
// for.
class NormPattern {
 public:
  // `root` is Rsqrt or Sqrt.
  NormPattern(const FusionView& view, NodeId root) : view_(view), root_(root), end_(root) {}

  // From the root back to w, which is float32.
  std::string_view FindStatistics();
  // The quotient of w and the root, the new end. REQUIRES: FindStatistics found w.
  std::string_view FindQuotient();
  // The vector over the columns that the only reader of the end, one of `types`, joins with it: the
  // reader is the new end. nullopt: no such reader.
  std::optional<Value> TakeVector(std::initializer_list<std::string_view> types);
  // The only reader of the end is the new end if it is a Cast to 16 bits, or one that changes
  // nothing.
  bool TakeNarrowingCast();
  bool TakeIdleCast();
  // w = x - mean of x, for nothing but this: w is x then.
  std::string_view TakeCentring();
  // w is x of 16 bits, widened for this alone: w is x then. Returns the type of w.
  DataType TakeWideningCast();
  // The nodes become a step of `view`, which reads w and then `vectors`.
  std::string_view TakeStep(FusionView& view, const std::vector<Value>& vectors,
                            std::function<Result<std::unique_ptr<Kernel>>()> make_kernel);

  // A Sqrt is the root of many things; it is a place to speak of once its mean is found.
  bool begins() const { return view_.Is(root_, {"Rsqrt"}) || !nodes_.empty(); }
  bool centred() const { return centred_; }
  double epsilon() const { return epsilon_; }
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  int threads() const { return view_.context(root_).threads(); }
  const TensorType& end_type() const { return out(end_); }

 private:
  const TensorType& out(NodeId id) const { return view_.context(id).out(0); }
  bool IsMean(NodeId id) const;
  bool IsSquare(NodeId id) const;
  bool IsOverLastAxis(NodeId mean) const;
  std::optional<double> EpsilonOf(NodeId add, NodeId mean) const;
  void Take(NodeId id);

  const FusionView& view_;
  NodeId root_;
  NodeId end_;
  std::vector<NodeId> nodes_;
  bool centred_ = false;
  Value w_;
  double epsilon_ = 0;
  int64_t rows_ = 0;
  int64_t columns_ = 0;
};

// The pattern as a step whose kernel `make` builds: adds to the form what every norm has, sizes,
// epsilon and the types of input 0 and of the output. `vectors` are the inputs from slot 1 on.
std::string_view TakeNorm(FusionView& view, NormPattern& pattern, NormForm form,
                          const std::vector<Value>& vectors,
                          std::unique_ptr<Kernel> (*make)(const NormForm&));

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_PASSES_FUSION_NORM_PATTERN_H_
