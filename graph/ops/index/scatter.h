// Scattering: rows of updates are joined into rows of a tensor that indices name.
#ifndef NPUMESH_GRAPH_OPS_INDEX_SCATTER_H_
#define NPUMESH_GRAPH_OPS_INDEX_SCATTER_H_

#include "graph/ops/core/check.h"
#include "graph/ops/core/define.h"
#include "graph/ops/toolbox/rows/index_rows.h"
#include "graph/ops/toolbox/values/cast.h"

namespace npumesh {

// What an update does to the element that it meets. Several updates of one element take place one
// after the other, in the order of the indices.
enum class Join : uint8_t { kSet, kAdd, kSub, kMul, kDiv, kMax, kMin };

// Everything but kSet is computed in double or 64-bit integers for the whole tensor and rounded
// once.
struct ScatterPlan : Planned {
  IndexRows rows;
  Join join = Join::kSet;
  int updates = -1;  // slot with rows.count rows
  // What the output holds before: the bytes of a slot; or what changes nothing when it is joined (0
  // for sums, 1 for products, the least value of the type for a maximum; zeros for kSet); or, with
  // neither, what is there already, because the operator works in place.
  int copied = -1;
  bool starts = false;
  int scale = -1;  // slot of one element that every update is multiplied by; -1: no slot

  // Filled in by Complete.
  size_t row = 0;  // bytes
  ConvertFn load = nullptr, store = nullptr, load_updates = nullptr, load_scale = nullptr;
  Workspace<int64_t> found;
  Workspace<uint64_t> result;  // and the updates, in the wide type, for joins other than kSet
  Workspace<uint64_t> joining;
};

// The plan with `y` as output 0. Error: the objection, or updates of this join cannot meet elements
// of the type.
Result<ScatterPlan> Complete(const Check& check, const OpContext& op, ScatterPlan plan,
                             TensorType y);

// Writes output 0. Errors: an index is out of range; an integer is divided by zero.
Status RunScatter(const ScatterPlan& plan, const KernelArgs& args);
// The same with the updates at another address.
Status Scatter(const ScatterPlan& plan, const KernelArgs& args, const void* updates);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_INDEX_SCATTER_H_
