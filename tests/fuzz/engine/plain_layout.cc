// Elements in another arrangement: views, copies, transpositions, slices, padding, repetition.
#include <algorithm>
#include <numeric>

#include "tests/fuzz/engine/plain_ops.h"

namespace npumesh::fuzz {
namespace {

PlainTensors One(PlainTensor y) {
  PlainTensors made;
  made.push_back(std::move(y));
  return made;
}

std::optional<PlainTensors> Viewed(const PlainTensor& x, Extents dims) {
  if (CountOf(dims) != x.count()) return std::nullopt;
  PlainTensor y = x;
  y.dims = std::move(dims);
  return One(std::move(y));
}

// ---- views ----

std::optional<PlainTensors> Reshape(const PlainCall& call) {
  const PlainTensor& x = call.in("x");
  Extents dims = call.ints("shape");
  const bool infers = std::find(dims.begin(), dims.end(), -1) != dims.end();
  // Zeros of an empty tensor may mean themselves.
  const bool literal = x.count() == 0 && !infers;
  int64_t known = 1;
  int64_t* open = nullptr;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] < -1) return std::nullopt;
    if (dims[d] == 0 && d < x.dims.size() && !literal) dims[d] = x.dims[d];
    if (dims[d] != -1) {
      known *= dims[d];
    } else if (open != nullptr) {
      return std::nullopt;
    } else {
      open = &dims[d];
    }
  }
  if (open != nullptr) {
    if (known == 0 || x.count() % known != 0) return std::nullopt;
    *open = x.count() / known;
  }
  return Viewed(x, dims);
}

std::optional<PlainTensors> Squeeze(const PlainCall& call) {
  const PlainTensor& x = call.in("x");
  const std::vector<int64_t> axes = call.node.IntsAttr("axis");
  std::vector<bool> drops(x.dims.size(), false);
  for (size_t d = 0; d < drops.size(); ++d) drops[d] = axes.empty() && x.dims[d] == 1;
  for (const int64_t axis : axes) {
    const std::optional<int> known = AxisIn(axis, x.rank());
    if (!known || x.dims[static_cast<size_t>(*known)] != 1) return std::nullopt;
    drops[static_cast<size_t>(*known)] = true;
  }
  Extents dims;
  for (size_t d = 0; d < drops.size(); ++d) {
    if (!drops[d]) dims.push_back(x.dims[d]);
  }
  return Viewed(x, dims);
}

std::optional<PlainTensors> Widened(const PlainTensor& x, int64_t axis) {
  const std::optional<int> known = AxisIn(axis, x.rank() + 1);
  if (!known) return std::nullopt;
  Extents dims = x.dims;
  dims.insert(dims.begin() + *known, 1);
  return Viewed(x, dims);
}

std::optional<PlainTensors> Unsqueeze(const PlainCall& call) {
  return Widened(call.in("x"), call.node.IntsAttr("axes")[0]);
}

std::optional<PlainTensors> ExpandDims(const PlainCall& call) {
  return Widened(call.in("x"), call.in("axis").integer(0));
}

std::optional<PlainTensors> Flatten(const PlainCall& call) {
  const PlainTensor& x = call.in("x");
  const std::optional<int> axis = AxisIn(call.node.IntAttr("axis", 1), x.rank());
  if (!axis) return std::nullopt;
  const Extents before(x.dims.begin(), x.dims.begin() + *axis);
  const Extents after(x.dims.begin() + *axis, x.dims.end());
  return Viewed(x, {CountOf(before), CountOf(after)});
}

std::optional<PlainTensors> Unchanged(const PlainCall& call) {
  return One(call.in("x"));
}

std::optional<PlainTensors> Bitcast(const PlainCall& call) {
  const auto dtype = static_cast<DataType>(call.node.IntAttr("type", 0));
  const PlainTensor& x = call.in("x");
  if (BitsOf(dtype) != BitsOf(x.dtype)) return std::nullopt;
  return One(Reinterpreted(x, dtype));
}

std::optional<PlainTensors> IdentityN(const PlainCall& call) {
  PlainTensors copies;
  for (const PlainTensor* x : call.list("x")) copies.push_back(*x);
  return copies;
}

// ---- another order ----

std::optional<PlainTensors> Permuted(const PlainTensor& x, const std::vector<int64_t>& order) {
  if (order.size() != x.dims.size()) return std::nullopt;
  const Extents strides = StridesOf(x.dims);
  Extents dims(order.size()), steps(order.size());
  std::vector<bool> seen(order.size(), false);
  for (size_t d = 0; d < order.size(); ++d) {
    const std::optional<int> from = AxisIn(order[d], x.rank());
    if (!from || seen[static_cast<size_t>(*from)]) return std::nullopt;
    seen[static_cast<size_t>(*from)] = true;
    dims[d] = x.dims[static_cast<size_t>(*from)];
    steps[d] = strides[static_cast<size_t>(*from)];
  }
  return One(Arranged(x, dims, [&](const Extents& at) { return OffsetOf(at, steps); }));
}

std::optional<PlainTensors> Reversed(const PlainCall& call) {
  const PlainTensor& x = call.in("x");
  const Extents strides = StridesOf(x.dims);
  std::vector<bool> turned(x.dims.size(), false);
  for (const int64_t axis : call.ints("axis")) {
    const std::optional<int> known = AxisIn(axis, x.rank());
    if (!known) return std::nullopt;
    turned[static_cast<size_t>(*known)] = true;
  }
  return One(Arranged(x, x.dims, [&](Extents at) {
    for (size_t d = 0; d < at.size(); ++d) {
      if (turned[d]) at[d] = x.dims[d] - 1 - at[d];
    }
    return OffsetOf(at, strides);
  }));
}

std::optional<PlainTensors> Roll(const PlainCall& call) {
  const PlainTensor& x = call.in("x");
  const std::vector<int64_t> shifts = call.node.IntsAttr("shifts"),
                             axes = call.node.IntsAttr("dims");
  const std::optional<int> axis = AxisIn(axes[0], x.rank());
  if (!axis || axes.size() != 1 || shifts.size() != 1) return std::nullopt;
  const auto d = static_cast<size_t>(*axis);
  const Extents strides = StridesOf(x.dims);
  return One(Arranged(x, x.dims, [&](Extents at) {
    const int64_t extent = x.dims[d];
    at[d] = ((at[d] - shifts[0]) % extent + extent) % extent;
    return OffsetOf(at, strides);
  }));
}

std::optional<PlainTensors> Triangle(const PlainCall& call, bool lower) {
  const PlainTensor& x = call.in("x");
  if (x.rank() < 2) return std::nullopt;
  const int64_t diagonal = call.node.IntAttr("diagonal", 0);
  const Extents strides = StridesOf(x.dims);
  return One(Arranged(x, x.dims, [&](const Extents& at) -> int64_t {
    const int64_t above = at[at.size() - 1] - at[at.size() - 2];
    const bool kept = lower ? above <= diagonal : above >= diagonal;
    return kept ? OffsetOf(at, strides) : -1;
  }));
}

// ---- pieces ----

std::optional<PlainTensors> Sliced(const PlainTensor& x, const Extents& offsets, Extents size) {
  if (offsets.size() != x.dims.size() || size.size() != x.dims.size()) return std::nullopt;
  for (size_t d = 0; d < size.size(); ++d) {
    if (size[d] == -1) size[d] = x.dims[d] - offsets[d];
    if (offsets[d] < 0 || size[d] < 0 || offsets[d] + size[d] > x.dims[d]) return std::nullopt;
  }
  const Extents strides = StridesOf(x.dims);
  const int64_t start = OffsetOf(offsets, strides);
  return One(Arranged(x, size, [&](const Extents& at) { return start + OffsetOf(at, strides); }));
}

// The range of one axis, everything of the others.
PlainTensor Range(const PlainTensor& x, int axis, int64_t start, int64_t extent) {
  Extents offsets(x.dims.size(), 0), size = x.dims;
  offsets[static_cast<size_t>(axis)] = start;
  size[static_cast<size_t>(axis)] = extent;
  return (*Sliced(x, offsets, size))[0];
}

std::optional<PlainTensors> SplitEvenly(const PlainCall& call, int64_t split_dim) {
  const PlainTensor& x = call.in("x");
  const int64_t pieces = call.node.IntAttr("num_split", 1);
  const std::optional<int> axis = AxisIn(split_dim, x.rank());
  if (!axis || x.dims[static_cast<size_t>(*axis)] % pieces != 0) return std::nullopt;
  const int64_t extent = x.dims[static_cast<size_t>(*axis)] / pieces;
  PlainTensors made;
  for (int64_t i = 0; i < pieces; ++i) made.push_back(Range(x, *axis, i * extent, extent));
  return made;
}

std::optional<PlainTensors> SplitV(const PlainCall& call) {
  const PlainTensor& x = call.in("x");
  const std::optional<int> axis = AxisIn(call.in("split_dim").integer(0), x.rank());
  const std::vector<int64_t> sizes = call.ints("size_splits");
  if (!axis || std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) !=
                   x.dims[static_cast<size_t>(*axis)]) {
    return std::nullopt;
  }
  PlainTensors made;
  int64_t start = 0;
  for (const int64_t size : sizes) {
    made.push_back(Range(x, *axis, start, size));
    start += size;
  }
  return made;
}

std::optional<PlainTensors> Unpack(const PlainCall& call) {
  const PlainTensor& x = call.in("x");
  const std::optional<int> axis = AxisIn(call.node.IntAttr("axis", 0), x.rank());
  if (!axis || x.dims[static_cast<size_t>(*axis)] != call.node.IntAttr("num", 0)) {
    return std::nullopt;
  }
  PlainTensors made;
  for (int64_t i = 0; i < x.dims[static_cast<size_t>(*axis)]; ++i) {
    made.push_back(Range(x, *axis, i, 1));
    made.back().dims.erase(made.back().dims.begin() + *axis);
  }
  return made;
}

// ---- together ----

std::optional<PlainTensors> Concatenated(const std::vector<const PlainTensor*>& x, int64_t dim) {
  const std::optional<int> axis = AxisIn(dim, x[0]->rank());
  if (!axis) return std::nullopt;
  const auto d = static_cast<size_t>(*axis);
  Extents dims = x[0]->dims;
  dims[d] = 0;
  for (const PlainTensor* each : x) {
    if (each->dtype != x[0]->dtype || each->rank() != x[0]->rank()) return std::nullopt;
    Extents others = each->dims;
    others[d] = dims[d];
    if (others != dims) return std::nullopt;
    dims[d] += each->dims[d];
  }
  PlainTensor y{x[0]->dtype, dims, {}};
  ForEachPosition(dims, [&](Extents at) {
    size_t piece = 0;
    while (at[d] >= x[piece]->dims[d]) at[d] -= x[piece++]->dims[d];
    y.v.push_back(x[piece]->at(OffsetOf(at, StridesOf(x[piece]->dims))));
  });
  return One(std::move(y));
}

std::optional<PlainTensors> Pack(const PlainCall& call) {
  PlainTensors rows;
  const int64_t axis = call.node.IntAttr("axis", 0);
  for (const PlainTensor* x : call.list("x")) {
    const auto row = Widened(*x, axis);
    if (!row) return std::nullopt;
    rows.push_back((*row)[0]);
  }
  std::vector<const PlainTensor*> pointers;
  for (const PlainTensor& row : rows) pointers.push_back(&row);
  return Concatenated(pointers, axis);
}

// ---- larger ----

std::optional<PlainTensors> Padded(const PlainTensor& x, const std::vector<int64_t>& paddings,
                                   Number value) {
  if (paddings.size() != x.dims.size() * 2) return std::nullopt;
  Extents dims = x.dims;
  for (size_t d = 0; d < dims.size(); ++d) dims[d] += paddings[2 * d] + paddings[2 * d + 1];
  const Extents strides = StridesOf(x.dims);
  return One(Arranged(
      x, dims,
      [&](Extents at) -> int64_t {
        for (size_t d = 0; d < at.size(); ++d) {
          at[d] -= paddings[2 * d];
          if (at[d] < 0 || at[d] >= x.dims[d]) return -1;
        }
        return OffsetOf(at, strides);
      },
      value));
}

std::optional<PlainTensors> PadV3(const PlainCall& call) {
  const PlainTensor* value = call.find("constant_values");
  return Padded(call.in("x"), call.ints("paddings"), value == nullptr ? 0 : value->at(0));
}

std::optional<PlainTensors> Tiled(const PlainTensor& x, const std::vector<int64_t>& multiples) {
  if (multiples.size() != x.dims.size()) return std::nullopt;
  Extents dims = x.dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (multiples[d] < 0) return std::nullopt;
    dims[d] *= multiples[d];
  }
  const Extents strides = StridesOf(x.dims);
  return One(Arranged(x, dims, [&](Extents at) {
    for (size_t d = 0; d < at.size(); ++d) at[d] %= x.dims[d];
    return OffsetOf(at, strides);
  }));
}

std::optional<PlainTensors> BroadcastTo(const PlainCall& call) {
  const PlainTensor& x = call.in("x");
  Extents dims = call.ints("shape");
  const std::optional<Extents> joined = Joined(x.dims, dims);
  if (!joined || *joined != dims) return std::nullopt;
  PlainTensor y{x.dtype, dims, {}};
  for (const int64_t source : BroadcastSources(x.dims, dims)) y.v.push_back(x.at(source));
  return One(std::move(y));
}

std::optional<PlainTensors> AsStrided(const PlainCall& call) {
  const PlainTensor& x = call.in("x");
  const Extents size = call.ints("size");
  const Extents strides = call.ints("stride");
  const int64_t start = call.in("storage_offset").integer(0);
  const auto negative = [](int64_t extent) { return extent < 0; };
  if (size.size() != strides.size() || std::any_of(size.begin(), size.end(), negative)) {
    return std::nullopt;
  }
  const auto place = [&](const Extents& at) { return start + OffsetOf(at, strides); };
  bool inside = true;
  ForEachPosition(
      size, [&](const Extents& at) { inside = inside && place(at) >= 0 && place(at) < x.count(); });
  if (!inside) return std::nullopt;
  return One(Arranged(x, size, place));
}

}  // namespace

void AddLayoutOps(PlainOpTable& table) {
  table["Identity"] = {.compute = Unchanged, .view = true};
  table["Reshape"] = {.compute = Reshape, .view = true};
  table["Squeeze"] = {.compute = Squeeze, .view = true};
  table["SqueezeV2"] = table["Squeeze"];
  table["Unsqueeze"] = {.compute = Unsqueeze, .view = true};
  table["ExpandDims"] = {.compute = ExpandDims, .view = true};
  table["Flatten"] = {.compute = Flatten, .view = true};
  table["Bitcast"] = {.compute = Bitcast, .steady = false, .view = true};
  table["TensorMove"] = {.compute = Unchanged};
  table["IdentityN"] = {.compute = IdentityN};
  table["Transpose"] = {
      .compute = [](const PlainCall& call) { return Permuted(call.in("x"), call.ints("perm")); }};
  table["TransposeD"] = {.compute = [](const PlainCall& call) {
    return Permuted(call.in("x"), call.node.IntsAttr("perm"));
  }};
  table["ReverseV2"] = {.compute = Reversed};
  table["Roll"] = {.compute = Roll};
  table["Tril"] = {.compute = [](const PlainCall& call) { return Triangle(call, true); }};
  table["Triu"] = {.compute = [](const PlainCall& call) { return Triangle(call, false); }};
  table["Slice"] = {.compute = [](const PlainCall& call) {
    return Sliced(call.in("x"), call.ints("offsets"), call.ints("size"));
  }};
  table["SliceD"] = {.compute = [](const PlainCall& call) {
    return Sliced(call.in("x"), call.node.IntsAttr("offsets"), call.node.IntsAttr("size"));
  }};
  table["Split"] = {.compute = [](const PlainCall& call) {
    return SplitEvenly(call, call.in("split_dim").integer(0));
  }};
  table["SplitD"] = {.compute = [](const PlainCall& call) {
    return SplitEvenly(call, call.node.IntAttr("split_dim", 0));
  }};
  table["SplitV"] = {.compute = SplitV};
  table["Unpack"] = {.compute = Unpack};
  table["ConcatV2"] = {.compute = [](const PlainCall& call) {
    return Concatenated(call.list("x"), call.in("concat_dim").integer(0));
  }};
  table["ConcatD"] = {.compute = [](const PlainCall& call) {
    return Concatenated(call.list("x"), call.node.IntAttr("concat_dim", 0));
  }};
  table["Pack"] = {.compute = Pack};
  table["Pad"] = {.compute = [](const PlainCall& call) {
    return Padded(call.in("x"), call.ints("paddings"), 0);
  }};
  table["PadV3"] = {.compute = PadV3};
  table["Tile"] = {
      .compute = [](const PlainCall& call) { return Tiled(call.in("x"), call.ints("multiples")); }};
  table["TileD"] = {.compute = [](const PlainCall& call) {
    return Tiled(call.in("x"), call.node.IntsAttr("multiples"));
  }};
  table["BroadcastTo"] = {.compute = BroadcastTo};
  table["Expand"] = table["BroadcastTo"];
  table["AsStrided"] = {.compute = AsStrided};
}

}  // namespace npumesh::fuzz
