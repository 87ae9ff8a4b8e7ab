// Scattering: rows of updates are joined into rows of a tensor that indices name.
#ifndef NPUMESH_GRAPH_OPS_SCATTER_H_
#define NPUMESH_GRAPH_OPS_SCATTER_H_

#include <memory>
#include <vector>

#include "graph/ops/index_rows.h"

namespace npumesh {

// What an update does to the element that it meets. Several updates of one element take place one
// after the other, in the order of the indices.
enum class Join : uint8_t { kSet, kAdd, kSub, kMul, kDiv, kMax, kMin };

struct ScatterPlan {
  IndexRows rows;
  Join join = Join::kSet;
  int updates = -1;  // slot with rows.count rows
  // What the output holds before: the bytes of a slot; or what changes nothing when it is joined (0
  // for sums, 1 for products, the least value of the type for a maximum; zeros for kSet); or, with
  // neither, what is there already, as the operator works in place.
  int copied = -1;
  bool starts = false;
  int scale = -1;  // slot of one element that every update is multiplied by; -1: none
};

// Kernel that writes output 0. Everything but kSet is computed in double or 64-bit integers for the
// whole tensor and rounded once. Errors: a type that cannot be joined; an index out of range (when
// it runs); an integer division by zero (when it runs).
Result<std::unique_ptr<Kernel>> MakeScatter(const OpContext& op, ScatterPlan plan);

// Errors unless updates of this join can meet elements of the type.
Status CheckJoin(const OpContext& op, DataType dtype, Join join);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_SCATTER_H_
