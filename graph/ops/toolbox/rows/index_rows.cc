#include "graph/ops/toolbox/rows/index_rows.h"

#include <algorithm>
#include <numeric>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/toolbox/copy/broadcast.h"
#include "graph/ops/toolbox/rows/axis_kernel.h"

namespace npumesh {

Result<IndexSlot> IndexSlot::Of(const OpContext& op, std::string_view port, int64_t bound,
                                IndexRange range, int nth) {
  const int slot = op.slot(port) + nth;
  NPUMESH_RETURN_IF_ERROR(CheckIndexType(op, slot));
  return IndexSlot{op.Who(), port, slot, op.in(slot).dtype, bound, range};
}

Status IndexSlot::OutsideError(const KernelArgs& args, int64_t i) const {
  return Error(
      Code::kInvalidArgument, "{}: \"{}\" holds {} at element {}, expected {} <= index < {}", who,
      port, IntegerAt(dtype, args.in[slot], i), i, range == IndexRange::kWraps ? -bound : 0, bound);
}

Status CheckIndexType(const OpContext& op, int slot) {
  const DataType dtype = op.in(slot).dtype;
  if (dtype == DataType::kInt32 || dtype == DataType::kInt64) return Status();
  return Error(Code::kInvalidArgument, "{}: input {} is {}, expected indices of int32 or int64",
               op.Who(), slot, op.in(slot).ToString());
}

Result<IndexRows> RowsByTuples(const OpContext& op, std::string_view indices, const Shape& x,
                               IndexRange range) {
  const Shape& shape = op.in(indices).shape;
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
    NPUMESH_ASSIGN_OR_RETURN(parts.emplace_back(), IndexSlot::Of(op, indices, x[d], range));
  }
  rows.find = [parts, count = rows.count](const KernelArgs& args, int64_t* to) -> Status {
    const auto width = static_cast<int64_t>(parts.size());
    for (int64_t i = 0; i < count; ++i) {
      int64_t row = 0;
      for (int64_t d = 0; d < width; ++d) {
        const IndexSlot& part = parts[static_cast<size_t>(d)];
        const int64_t index = part.At(args, i * width + d);
        if (index == kOutside) return part.OutsideError(args, i * width + d);
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
  const int64_t outer = ElementsBetween(x, 0, axis);
  const int64_t named = op.in(indices).shape.elements();
  NPUMESH_ASSIGN_OR_RETURN(const IndexSlot part, IndexSlot::Of(op, indices, x[axis], range));
  IndexRows rows{nullptr, outer * named, outer * x[axis], ElementsBetween(x, axis + 1, x.rank())};
  rows.find = [part, outer, named](const KernelArgs& args, int64_t* to) -> Status {
    for (int64_t j = 0; j < named && outer > 0; ++j) {
      const int64_t index = part.At(args, j);
      if (index == kOutside) return part.OutsideError(args, j);
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
  NPUMESH_ASSIGN_OR_RETURN(const IndexSlot part,
                           IndexSlot::Of(op, indices, x[axis], IndexRange::kWraps));
  const Shape& extents = op.in(indices).shape;
  std::vector<int64_t> strides = ByteStrides(x, 1);
  const int64_t stride = std::exchange(strides[static_cast<size_t>(axis)], 0);
  IndexRows rows{nullptr, extents.elements(), x.elements(), 1};
  rows.find = [part, stride, walk = PositionWalk(extents, std::move(strides)), count = rows.count,
               at = std::vector<int64_t>(x.dims().size())](const KernelArgs& args,
                                                           int64_t* to) mutable -> Status {
    std::fill(at.begin(), at.end(), 0);
    int64_t offset = 0;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t index = part.At(args, i);
      if (index == kOutside) return part.OutsideError(args, i);
      to[i] = offset + index * stride;
      offset = walk.Next(at.data(), offset);
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

// x[indices]: the indexed dimensions are replaced by those of the broadcast.
Shape IndexedShape(const TensorIndexing& how, const Shape& x) {
  std::vector<int64_t> dims;
  for (const int d : how.kept) dims.push_back(x[d]);
  const std::vector<int64_t>& named = how.broadcast.dims();
  dims.insert(dims.begin() + how.place, named.begin(), named.end());
  return Shape(std::move(dims));
}

// One index tensor.
struct TensorIndices {
  IndexSlot slot;
  int64_t stride;              // in x, of the dimension that it indexes
  std::vector<int64_t> order;  // its element for each position of the broadcast
};

Result<std::vector<TensorIndices>> IndicesOf(const OpContext& op, std::string_view indices,
                                             const TensorIndexing& how, const Shape& x) {
  const std::vector<int64_t> strides = ByteStrides(x, 1);
  std::vector<TensorIndices> parts;
  for (const int d : how.indexed) {
    const auto nth = static_cast<int>(parts.size());
    NPUMESH_ASSIGN_OR_RETURN(IndexSlot part,
                             IndexSlot::Of(op, indices, x[d], IndexRange::kWraps, nth));
    const Shape& shape = op.in(part.slot).shape;
    std::vector<int64_t> plain(static_cast<size_t>(shape.elements()));
    std::iota(plain.begin(), plain.end(), 0);
    std::vector<int64_t> order(static_cast<size_t>(how.broadcast.elements()));
    if (!order.empty()) {
      BroadcastPlan(shape, how.broadcast, sizeof(int64_t))
          .Gather(plain.data(), 0, order.size(), order.data());
    }
    parts.push_back({std::move(part), strides[static_cast<size_t>(d)], std::move(order)});
  }
  return parts;
}

}  // namespace

Result<IndexRows> RowsByTensors(const OpContext& op, std::string_view indices,
                                const std::vector<int64_t>& mask, const Shape& x, Shape* shape) {
  NPUMESH_ASSIGN_OR_RETURN(const TensorIndexing how, IndexingOf(op, indices, mask, x));
  *shape = IndexedShape(how, x);
  NPUMESH_RETURN_IF_ERROR(shape->Check().WithContext(op.Who()));
  NPUMESH_ASSIGN_OR_RETURN(auto parts, IndicesOf(op, indices, how, x));

  // Result as [before, broadcast, between, row]: dimensions after the last indexed one are a row,
  // those before it that are kept stand on one side of the broadcast.
  const int last = how.indexed.back();
  const int64_t inner = ElementsBetween(x, last + 1, x.rank());
  std::vector<bool> walked(x.dims().size(), false);
  for (const int d : how.kept) walked[static_cast<size_t>(d)] = d < last;
  std::vector<int64_t> before = {0}, between = {0};
  (how.place > 0 ? before : between) = MarkedElements(x, walked);
  const int64_t named = how.broadcast.elements();
  IndexRows rows{nullptr,
                 static_cast<int64_t>(before.size()) * named * static_cast<int64_t>(between.size()),
                 inner == 0 ? 0 : x.elements() / inner, inner};
  rows.find = [parts = std::move(parts), before = std::move(before), between = std::move(between),
               inner, offsets = std::vector<int64_t>(static_cast<size_t>(named))](
                  const KernelArgs& args, int64_t* to) mutable -> Status {
    std::fill(offsets.begin(), offsets.end(), 0);
    for (const TensorIndices& part : parts) {
      for (size_t i = 0; i < offsets.size(); ++i) {
        const int64_t index = part.slot.At(args, part.order[i]);
        if (index == kOutside) return part.slot.OutsideError(args, part.order[i]);
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
