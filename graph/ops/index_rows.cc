#include "graph/ops/index_rows.h"

#include <algorithm>
#include <utility>

#include "graph/ops/broadcast.h"
#include "graph/ops/infer_checks.h"

namespace npumesh {
namespace {

// Reads the indices of one slot, checked against a bound.
struct IndexSlot {
  std::string who;
  std::string_view port;
  int slot = 0;
  bool wide = false;
  int64_t bound = 0;
  IndexRange range = IndexRange::kStrict;

  // Index i in [0, bound), or kNoRow.
  Result<int64_t> At(const KernelArgs& args, int64_t i) const {
    const void* data = args.in[slot];
    const int64_t given =
        wide ? static_cast<const int64_t*>(data)[i] : static_cast<const int32_t*>(data)[i];
    if (given < 0 && range == IndexRange::kDropsNegative) return kNoRow;
    const int64_t index = given < 0 && range == IndexRange::kWraps ? given + bound : given;
    if (index >= 0 && index < bound) return index;
    return Error(Code::kInvalidArgument,
                 "{}: \"{}\" holds {} at element {}, expected {} <= index < {}", who, port, given,
                 i, range == IndexRange::kWraps ? -bound : 0, bound);
  }
};

Result<IndexSlot> SlotOf(const OpContext& op, std::string_view port, int slot, int64_t bound,
                         IndexRange range) {
  NPUMESH_RETURN_IF_ERROR(CheckIndexType(op, slot));
  return IndexSlot{op.Who(), port, slot, op.in(slot).dtype == DataType::kInt64, bound, range};
}

}  // namespace

Status CheckIndexType(const OpContext& op, int slot) {
  const DataType dtype = op.in(slot).dtype;
  if (dtype == DataType::kInt32 || dtype == DataType::kInt64) return Status();
  return Error(Code::kInvalidArgument, "{}: input {} is {}, expected indices of int32 or int64",
               op.Who(), slot, op.in(slot).ToString());
}

Result<IndexRows> RowsByTuples(const OpContext& op, std::string_view indices, const Shape& x,
                               IndexRange range) {
  const int slot = op.slot(indices);
  const Shape& shape = op.in(slot).shape;
  const int64_t depth = shape.rank() == 0 ? -1 : shape[shape.rank() - 1];
  if (depth < 0 || depth > x.rank()) {
    return Error(
        Code::kInvalidArgument,
        "{}: \"{}\" is {}; its last dimension must address at most the {} dimensions of {}",
        op.Who(), indices, shape.ToString(), x.rank(), x.ToString());
  }
  const int split = static_cast<int>(depth);
  IndexRows rows{nullptr, ElementsBetween(shape, 0, shape.rank() - 1), ElementsBetween(x, 0, split),
                 ElementsBetween(x, split, x.rank())};
  std::vector<IndexSlot> parts;
  for (int d = 0; d < split; ++d) {
    NPUMESH_ASSIGN_OR_RETURN(IndexSlot part, SlotOf(op, indices, slot, x[d], range));
    parts.push_back(std::move(part));
  }
  rows.find = [parts, count = rows.count](const KernelArgs& args, int64_t* to) -> Status {
    const auto width = static_cast<int64_t>(parts.size());
    for (int64_t i = 0; i < count; ++i) {
      int64_t row = 0;
      for (int64_t d = 0; d < width; ++d) {
        const IndexSlot& part = parts[static_cast<size_t>(d)];
        NPUMESH_ASSIGN_OR_RETURN(const int64_t index, part.At(args, i * width + d));
        row = row * part.bound + index;
      }
      to[i] = row;
    }
    return Status();
  };
  return rows;
}

Result<IndexRows> RowsAlongAxis(const OpContext& op, std::string_view indices, const Shape& x,
                                int axis, IndexRange range) {
  const int slot = op.slot(indices);
  const int64_t outer = ElementsBetween(x, 0, axis);
  const int64_t named = op.in(slot).shape.elements();
  NPUMESH_ASSIGN_OR_RETURN(const IndexSlot part, SlotOf(op, indices, slot, x[axis], range));
  IndexRows rows{nullptr, outer * named, outer * x[axis], ElementsBetween(x, axis + 1, x.rank())};
  rows.find = [part, outer, named](const KernelArgs& args, int64_t* to) -> Status {
    for (int64_t j = 0; j < named && outer > 0; ++j) {
      NPUMESH_ASSIGN_OR_RETURN(const int64_t index, part.At(args, j));
      for (int64_t o = 0; o < outer; ++o) {
        to[o * named + j] = index == kNoRow ? kNoRow : o * part.bound + index;
      }
    }
    return Status();
  };
  return rows;
}

Result<IndexRows> RowsByElements(const OpContext& op, std::string_view indices, const Shape& x,
                                 int axis) {
  const int slot = op.slot(indices);
  const Shape extents = op.in(slot).shape;
  const std::vector<int64_t> strides = ByteStrides(x, 1);
  NPUMESH_ASSIGN_OR_RETURN(const IndexSlot part,
                           SlotOf(op, indices, slot, x[axis], IndexRange::kStrict));
  IndexRows rows{nullptr, extents.elements(), x.elements(), 1};
  rows.find = [part, extents, strides, axis, count = rows.count,
               at = std::vector<int64_t>(strides.size())](const KernelArgs& args,
                                                          int64_t* to) mutable -> Status {
    std::fill(at.begin(), at.end(), 0);
    for (int64_t i = 0; i < count; ++i) {
      NPUMESH_ASSIGN_OR_RETURN(const int64_t index, part.At(args, i));
      to[i] = index * strides[static_cast<size_t>(axis)];
      for (size_t d = 0; d < at.size(); ++d) {
        if (static_cast<int>(d) != axis) to[i] += at[d] * strides[d];
      }
      for (size_t d = at.size(); d-- > 0;) {
        if (++at[d] < extents.dims()[d]) break;
        at[d] = 0;
      }
    }
    return Status();
  };
  return rows;
}

namespace {

// How the result of indexing with tensors is laid out.
struct TensorIndexing {
  std::vector<int> indexed;  // dimensions of x, in order
  std::vector<int> kept;     // the others
  Shape broadcast;           // of the index tensors
  int place = 0;             // kept dimensions before the indexed ones in the result
};

Result<TensorIndexing> IndexingOf(const OpContext& op, std::string_view indices,
                                  const std::vector<int64_t>& mask, const Shape& x) {
  TensorIndexing result;
  for (int d = 0; d < x.rank(); ++d) {
    const auto at = static_cast<size_t>(d);
    const bool indexed = at < mask.size() && mask[at] != 0;
    (indexed ? result.indexed : result.kept).push_back(d);
  }
  const int given = op.count(indices);
  if (mask.size() > x.dims().size() || static_cast<int>(result.indexed.size()) != given ||
      given == 0) {
    return Error(Code::kInvalidArgument, "{}: {} index tensors for mask {} of x {}", op.Who(),
                 given, Shape(mask).ToString(), x.ToString());
  }
  for (int i = 0; i < given; ++i) {
    const Result<Shape> wider = Broadcast(result.broadcast, op.in(op.slot(indices) + i).shape);
    if (!wider.ok()) {
      return Error(Code::kInvalidArgument, "{}: index tensors {} and {} do not broadcast", op.Who(),
                   result.broadcast.ToString(), op.in(op.slot(indices) + i).shape.ToString());
    }
    result.broadcast = *wider;
  }
  const int first = result.indexed.front();
  const bool neighbours = result.indexed.back() - first + 1 == given;
  result.place = neighbours ? first : 0;
  return result;
}

}  // namespace

Result<IndexRows> RowsByTensors(const OpContext& op, std::string_view indices,
                                const std::vector<int64_t>& mask, const Shape& x, Shape* shape) {
  NPUMESH_ASSIGN_OR_RETURN(const TensorIndexing how, IndexingOf(op, indices, mask, x));
  std::vector<int64_t> dims, kept_dims;
  for (const int d : how.kept) kept_dims.push_back(x[d]);
  dims.assign(kept_dims.begin(), kept_dims.begin() + how.place);
  dims.insert(dims.end(), how.broadcast.dims().begin(), how.broadcast.dims().end());
  dims.insert(dims.end(), kept_dims.begin() + how.place, kept_dims.end());
  *shape = Shape(std::move(dims));
  NPUMESH_RETURN_IF_ERROR(shape->Check().WithContext(op.Who()));

  // Result as [before, broadcast, between, row]: dimensions behind the last indexed one are a row.
  const int last = how.indexed.back();
  const std::vector<int64_t> strides = ByteStrides(x, 1);
  const int64_t inner = ElementsBetween(x, last + 1, x.rank());
  std::vector<int64_t> before = {0}, between = {0};  // offsets of kept dimensions, in elements
  for (size_t k = 0; k < how.kept.size(); ++k) {
    if (how.kept[k] > last) continue;
    std::vector<int64_t>& offsets = static_cast<int>(k) < how.place ? before : between;
    std::vector<int64_t> next;
    for (const int64_t offset : offsets) {
      for (int64_t i = 0; i < x[how.kept[k]]; ++i) {
        next.push_back(offset + i * strides[static_cast<size_t>(how.kept[k])]);
      }
    }
    offsets = std::move(next);
  }
  struct Part {
    IndexSlot slot;
    int64_t stride;
    std::vector<int64_t> order;  // element of the tensor for each position of the broadcast
  };
  std::vector<Part> parts;
  const int64_t named = how.broadcast.elements();
  for (size_t i = 0; i < how.indexed.size(); ++i) {
    const int slot = op.slot(indices) + static_cast<int>(i);
    const int d = how.indexed[i];
    NPUMESH_ASSIGN_OR_RETURN(IndexSlot part, SlotOf(op, indices, slot, x[d], IndexRange::kWraps));
    std::vector<int64_t> plain(static_cast<size_t>(op.in(slot).shape.elements()));
    for (size_t e = 0; e < plain.size(); ++e) plain[e] = static_cast<int64_t>(e);
    std::vector<int64_t> order(static_cast<size_t>(named));
    if (named > 0) {
      BroadcastPlan(op.in(slot).shape, how.broadcast, sizeof(int64_t))
          .Gather(plain.data(), 0, order.size(), order.data());
    }
    parts.push_back({std::move(part), strides[static_cast<size_t>(d)], std::move(order)});
  }
  IndexRows rows{nullptr,
                 static_cast<int64_t>(before.size()) * named * static_cast<int64_t>(between.size()),
                 inner == 0 ? 0 : x.elements() / inner, inner};
  rows.find = [parts = std::move(parts), before, between, named, inner,
               offsets = std::vector<int64_t>(static_cast<size_t>(named))](
                  const KernelArgs& args, int64_t* to) mutable -> Status {
    std::fill(offsets.begin(), offsets.end(), 0);
    for (const Part& part : parts) {
      for (size_t i = 0; i < offsets.size(); ++i) {
        NPUMESH_ASSIGN_OR_RETURN(const int64_t index, part.slot.At(args, part.order[i]));
        offsets[i] += index * part.stride;
      }
    }
    for (const int64_t b : before) {
      for (const int64_t offset : offsets) {
        for (const int64_t k : between) *to++ = (b + offset + k) / std::max<int64_t>(inner, 1);
      }
    }
    return Status();
  };
  return rows;
}

}  // namespace npumesh
