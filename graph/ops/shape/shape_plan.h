// What the operators share that move the elements of a tensor to other places.
#ifndef NPUMESH_GRAPH_OPS_SHAPE_SHAPE_PLAN_H_
#define NPUMESH_GRAPH_OPS_SHAPE_SHAPE_PLAN_H_

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/ops/core/check.h"
#include "graph/ops/core/define.h"
#include "graph/ops/toolbox/copy/mapped_copy.h"
#include "graph/ops/toolbox/copy/strided_copy.h"

namespace npumesh {

// ---- strided copies ----

// One loop over x, which is input 0: `step` elements lie between neighbours; 0 repeats an element.
struct Loop {
  int64_t extent = 0, step = 0;
};

// Output 0 in C order, as loops over the elements of x.
struct CopyPlan : Planned {
  int64_t first = 0;        // element of x where all loops begin
  std::vector<Loop> loops;  // outermost first
  int64_t offset = 0;       // of `first`, in bytes; it and `copy` are made by PrepareCopy
  StridedCopy copy;
};

// Begins a plan. Objects (kUnsupported) to elements narrower than a byte.
CopyPlan CopyOf(const OpContext& op, Check& check);
Status PrepareCopy(const OpContext& op, CopyPlan* plan);
Status RunCopy(const CopyPlan& plan, const KernelArgs& args);

template <auto PlanFn>
Operator DefineCopy(std::string_view signature, std::vector<std::string_view> value_inputs = {},
                    Axes axes = {}) {
  return Define<PlanFn, RunCopy, PrepareCopy>(
      signature, {.value_inputs = std::move(value_inputs), .axes = std::move(axes)});
}

// ---- mapped copies ----

// For each dimension, the position in x of each position of the result, or kFilled.
using Sources = std::vector<std::vector<int64_t>>;

// Output 0 as positions of slot 0, which is seen with the shape `x`.
struct MappedPlan : Planned {
  Shape x;
  Sources sources;
  std::optional<int> fill;  // slot of the element where nothing is copied; none: zeros
  MappedCopy copy;          // made by PrepareMapped
};

Status PrepareMapped(const OpContext& op, MappedPlan* plan);
Status RunMapped(const MappedPlan& plan, const KernelArgs& args);

template <auto PlanFn>
Operator DefineMapped(std::string_view signature, std::vector<std::string_view> value_inputs = {}) {
  return Define<PlanFn, RunMapped, PrepareMapped>(signature,
                                                  {.value_inputs = std::move(value_inputs)});
}

// ---- axes ----

// The second input, or without one the first attribute: where operators list axes.
std::string_view AxesName(const OpContext& op);

// The listed axes in [0, rank). Objects to one that is outside, or named twice.
std::vector<int> DistinctAxes(const OpContext& op, const std::vector<int64_t>& listed, int rank,
                              std::string_view what, Check& check);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_SHAPE_SHAPE_PLAN_H_
