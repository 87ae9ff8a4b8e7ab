// Elements and rows that indices choose.
#include "tests/fuzz/engine/plain_ops.h"

namespace npumesh::fuzz {
namespace {

// x[..., indices, ...] along `axis`.
std::optional<PlainTensors> GatherAlong(const PlainTensor& x, const PlainTensor& indices,
                                        int64_t axis) {
  const std::optional<int> known = AxisIn(axis, x.rank());
  if (!known) return std::nullopt;
  const auto d = static_cast<size_t>(*known);
  for (const Number index : indices.v) {
    if (index < 0 || index >= x.dims[d]) return std::nullopt;
  }
  Extents dims(x.dims.begin(), x.dims.begin() + *known);
  dims.insert(dims.end(), indices.dims.begin(), indices.dims.end());
  dims.insert(dims.end(), x.dims.begin() + *known + 1, x.dims.end());
  const Extents strides = StridesOf(x.dims), index_strides = StridesOf(indices.dims);
  return PlainTensors{Arranged(x, dims, [&](const Extents& at) {
    const Extents chosen(at.begin() + *known, at.begin() + *known + indices.rank());
    Extents from(at.begin(), at.begin() + *known);
    from.push_back(indices.integer(OffsetOf(chosen, index_strides)));
    from.insert(from.end(), at.begin() + *known + indices.rank(), at.end());
    return OffsetOf(from, strides);
  })};
}

std::optional<PlainTensors> GatherElements(const PlainCall& call) {
  const PlainTensor &x = call.in("x"), &index = call.in("index");
  const std::optional<int> axis = AxisIn(call.node.IntAttr("dim", 0), x.rank());
  if (!axis || index.rank() != x.rank()) return std::nullopt;
  const auto d = static_cast<size_t>(*axis);
  for (size_t i = 0; i < x.dims.size(); ++i) {
    if (i != d && index.dims[i] > x.dims[i]) return std::nullopt;
  }
  for (const Number each : index.v) {
    if (each < 0 || each >= x.dims[d]) return std::nullopt;
  }
  const Extents strides = StridesOf(x.dims), index_strides = StridesOf(index.dims);
  return PlainTensors{Arranged(x, index.dims, [&](Extents at) {
    at[d] = index.integer(OffsetOf(at, index_strides));
    return OffsetOf(at, strides);
  })};
}

std::optional<PlainTensors> GatherNd(const PlainCall& call) {
  const PlainTensor &x = call.in("x"), &indices = call.in("indices");
  if (indices.rank() == 0) return std::nullopt;
  const int64_t depth = indices.dims.back();
  if (depth > x.rank()) return std::nullopt;
  for (int64_t i = 0; i < indices.count(); ++i) {
    const int64_t extent = x.dims[static_cast<size_t>(i % depth)];
    if (indices.at(i) < 0 || indices.at(i) >= extent) return std::nullopt;
  }
  Extents dims(indices.dims.begin(), indices.dims.end() - 1);
  const auto tuples = static_cast<std::ptrdiff_t>(dims.size());
  dims.insert(dims.end(), x.dims.begin() + depth, x.dims.end());
  const Extents strides = StridesOf(x.dims);
  Extents index_strides = StridesOf(indices.dims);
  index_strides.pop_back();
  return PlainTensors{Arranged(x, dims, [&](const Extents& at) {
    const int64_t tuple = OffsetOf(Extents(at.begin(), at.begin() + tuples), index_strides);
    Extents from;
    for (int64_t k = 0; k < depth; ++k) from.push_back(indices.integer(tuple + k));
    from.insert(from.end(), at.begin() + tuples, at.end());
    return OffsetOf(from, strides);
  })};
}

}  // namespace

void AddGatherOps(PlainOpTable& table) {
  table["Gather"] = {.compute = [](const PlainCall& call) {
    return GatherAlong(call.in("x"), call.in("indices"), 0);
  }};
  table["GatherV2"] = {.compute = [](const PlainCall& call) {
    return GatherAlong(call.in("x"), call.in("indices"), call.in("axis").integer(0));
  }};
  table["GatherElements"] = {.compute = GatherElements};
  table["GatherNd"] = {.compute = GatherNd};
}

}  // namespace npumesh::fuzz
