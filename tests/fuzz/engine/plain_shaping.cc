// What asks for shapes, and what makes tensors from sizes or conditions.
#include <algorithm>
#include <cmath>

#include "tests/fuzz/engine/plain_ops.h"

namespace npumesh::fuzz {
namespace {

PlainTensor IntegersOf(DataType dtype, Extents dims, const std::vector<int64_t>& values) {
  PlainTensor y{dtype, std::move(dims), {}};
  for (const int64_t value : values) y.v.push_back(static_cast<Number>(value));
  return y;
}

DataType AskedType(const PlainCall& call, DataType otherwise) {
  return static_cast<DataType>(call.node.IntAttr("dtype", static_cast<int64_t>(otherwise)));
}

std::optional<PlainTensors> ShapeOf(const PlainCall& call) {
  const PlainTensor& x = call.in("x");
  return PlainTensors{IntegersOf(AskedType(call, DataType::kInt32), {x.rank()}, x.dims)};
}

std::optional<PlainTensors> SizeOf(const PlainCall& call) {
  return PlainTensors{IntegersOf(AskedType(call, DataType::kInt32), {}, {call.in("x").count()})};
}

std::optional<PlainTensors> RankOf(const PlainCall& call) {
  return PlainTensors{IntegersOf(DataType::kInt32, {}, {call.in("x").rank()})};
}

std::optional<PlainTensors> Fill(const PlainCall& call) {
  const PlainTensor& value = call.in("value");
  if (!FitsInMemory(call.ints("dims"))) return std::nullopt;
  PlainTensor y = Zeros(value.dtype, call.ints("dims"));
  std::fill(y.v.begin(), y.v.end(), value.at(0));
  return PlainTensors{std::move(y)};
}

std::optional<PlainTensors> CountedRange(const PlainCall& call) {
  const PlainTensor &start = call.in("start"), &limit = call.in("limit"), &delta = call.in("delta");
  if (delta.at(0) == 0 || start.dtype != limit.dtype || start.dtype != delta.dtype) {
    return std::nullopt;
  }
  const Number steps = std::ceil((limit.at(0) - start.at(0)) / delta.at(0));
  const Extents dims = {static_cast<int64_t>(std::clamp<Number>(steps, 0, 0x1p40L))};
  if (!FitsInMemory(dims)) return std::nullopt;
  PlainTensor y = Zeros(start.dtype, dims);
  for (int64_t i = 0; i < y.count(); ++i) {
    y.at(i) = RoundTo(y.dtype, start.at(0) + static_cast<Number>(i) * delta.at(0));
  }
  return PlainTensors{std::move(y)};
}

// The new axis is the last one.
std::optional<PlainTensors> OneHot(const PlainCall& call) {
  const PlainTensor &x = call.in("x"), &on = call.in("on_value"), &off = call.in("off_value");
  const int64_t depth = call.in("depth").integer(0);
  PlainTensor y{on.dtype, x.dims, {}};
  y.dims.push_back(depth);
  for (const Number index : x.v) {
    for (int64_t i = 0; i < depth; ++i) y.v.push_back(index == i ? on.at(0) : off.at(0));
  }
  return PlainTensors{std::move(y)};
}

// ---- as many elements as the values say ----

// Positions of the elements that are not zero: [count, rank], or [rank, count] when turned.
std::optional<PlainTensors> NonZero(const PlainCall& call) {
  const PlainTensor& x = call.in("x");
  const bool turned = call.node.BoolAttr("transpose", false);
  std::vector<Extents> found;
  int64_t i = 0;
  ForEachPosition(x.dims, [&](const Extents& at) {
    if (x.at(i++) != 0) found.push_back(at);
  });
  const auto count = static_cast<int64_t>(found.size());
  PlainTensor y = Zeros(AskedType(call, DataType::kInt64),
                        turned ? Extents{x.rank(), count} : Extents{count, x.rank()});
  for (int64_t k = 0; k < count; ++k) {
    for (int64_t d = 0; d < x.rank(); ++d) {
      y.at(turned ? d * count + k : k * x.rank() + d) =
          static_cast<Number>(found[static_cast<size_t>(k)][static_cast<size_t>(d)]);
    }
  }
  return PlainTensors{std::move(y)};
}

std::optional<PlainTensors> MaskedSelect(const PlainCall& call) {
  const PlainTensor &x = call.in("x"), &mask = call.in("mask");
  const std::optional<Extents> dims = Joined(x.dims, mask.dims);
  if (!dims) return std::nullopt;
  const auto from = BroadcastSources(x.dims, *dims), asked = BroadcastSources(mask.dims, *dims);
  PlainTensor y{x.dtype, {}, {}};
  for (size_t i = 0; i < from.size(); ++i) {
    if (mask.at(asked[i]) != 0) y.v.push_back(x.at(from[i]));
  }
  y.dims = {y.count()};
  return PlainTensors{std::move(y)};
}

std::optional<PlainTensors> Unique(const PlainCall& call) {
  const PlainTensor& x = call.in("x");
  if (x.rank() != 1) return std::nullopt;
  PlainTensor y{x.dtype, {}, {}};
  PlainTensor index{DataType::kInt32, x.dims, {}};
  for (const Number value : x.v) {
    const auto seen = std::find(y.v.begin(), y.v.end(), value);
    index.v.push_back(static_cast<Number>(seen - y.v.begin()));
    if (seen == y.v.end()) y.v.push_back(value);
  }
  y.dims = {y.count()};
  return PlainTensors{std::move(y), std::move(index)};
}

}  // namespace

void AddShapingOps(PlainOpTable& table) {
  table["Shape"] = {.compute = ShapeOf, .asks_type = true};
  table["Size"] = {.compute = SizeOf, .asks_type = true};
  table["Rank"] = {.compute = RankOf, .asks_type = true};
  table["Fill"] = {.compute = Fill};
  table["Range"] = {.compute = CountedRange, .steady = false};
  table["OneHot"] = {.compute = OneHot};
  table["NonZero"] = {.compute = NonZero, .steady = false};
  table["Where"] = {.compute = NonZero, .steady = false};
  table["MaskedSelect"] = {.compute = MaskedSelect};
  table["Unique"] = {.compute = Unique, .steady = false};
}

}  // namespace npumesh::fuzz
