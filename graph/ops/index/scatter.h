// Scattering: rows of updates are joined into rows of a tensor that indices name.
#ifndef NPUMESH_GRAPH_OPS_INDEX_SCATTER_H_
#define NPUMESH_GRAPH_OPS_INDEX_SCATTER_H_

#include <optional>
#include <string_view>

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
  int updates = 0;  // slot with rows.count rows
  // What the output holds before: the bytes of a slot; or what changes nothing when it is joined (0
  // for sums, 1 for products, the least value of the type for a maximum; zeros for kSet); or, with
  // neither, what is there already, because the operator works in place.
  std::optional<int> copied;
  bool starts = false;
  std::optional<int> scale;  // slot of one element that every update is multiplied by

  // Filled in by Complete.
  size_t row = 0;  // bytes
  ConvertFn load = nullptr, store = nullptr, load_updates = nullptr, load_scale = nullptr;
  Workspace<int64_t> found;
  Workspace<uint64_t> result;  // and the updates, in the wide type, for joins other than kSet
  Workspace<uint64_t> joining;
};

// The plan with `y` as output 0. Objects when updates of this join cannot meet elements of the
// type.
ScatterPlan Complete(const OpContext& op, ScatterPlan plan, const TensorType& y, Check& check);

// The shape of the rows of x that tuples of indices name. REQUIRES: RowsByTuples accepts them.
Shape TupleRows(const Shape& indices, const Shape& x);

// Writes output 0. Errors: an index is out of range; an integer is divided by zero.
Status RunScatter(const ScatterPlan& plan, const KernelArgs& args);
// The same with the updates at another address.
Status Scatter(const ScatterPlan& plan, const KernelArgs& args, const void* updates);

// Where the entries of an update go in a cache, from a position of a batch on.
struct CachePlaces {
  Integers indices;    // a start for each entry, whose batch is its number; or
  bool pairs = false;  // (batch, start)
  int64_t batches = 0, bound = 0;
  int64_t length = 0;  // positions of an entry

  struct Place {
    int64_t batch = 0, start = 0;
  };
  // Error (kInvalidArgument): the entry does not lie within the cache.
  Result<Place> At(std::string_view who, const KernelArgs& args, int64_t entry) const;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_INDEX_SCATTER_H_
