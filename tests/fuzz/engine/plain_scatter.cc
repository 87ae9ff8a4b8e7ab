// Writes to places that indices choose, in place and into copies.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>

#include "tests/fuzz/engine/plain_ops.h"

namespace npumesh::fuzz {
namespace {

using Join = Number (*)(Number held, Number given);

Number Set(Number, Number given) {
  return given;
}
Number Plus(Number held, Number given) {
  return held + given;
}
Number Minus(Number held, Number given) {
  return held - given;
}
Number Larger(Number held, Number given) {
  return std::max(held, given);
}
Number Smaller(Number held, Number given) {
  return std::min(held, given);
}

// Places of `var` that `updates` is written to, by element of updates.
using Targets = std::vector<int64_t>;

// The tensor written; exact as long as sums have few digits.
PlainTensors Written(PlainTensor var, const Targets& targets, const PlainTensor& updates,
                     Join join) {
  bool exact = true;
  for (int64_t i = 0; i < updates.count(); ++i) {
    Number& held = var.at(targets[static_cast<size_t>(i)]);
    held = RoundTo(var.dtype, join(held, updates.at(i)));
    const Number limit = var.dtype == DataType::kBfloat16 ? 128 : 1024;
    exact = exact && std::fabs(held) < limit && std::floor(held) == held;
  }
  if (!exact && join != Set && IsFloat(var.dtype)) var.trust = Trust::kRough;
  return {std::move(var)};
}

// Rows of dimension 0.
std::optional<PlainTensors> ScatterRows(const PlainCall& call, Join join) {
  const PlainTensor &var = call.in("var"), &indices = call.in("indices"),
                    &updates = call.in("updates");
  if (var.rank() == 0) return std::nullopt;
  Extents expected = indices.dims;
  expected.insert(expected.end(), var.dims.begin() + 1, var.dims.end());
  if (updates.dims != expected || updates.dtype != var.dtype) return std::nullopt;
  const int64_t row = CountOf(Extents(var.dims.begin() + 1, var.dims.end()));
  Targets targets;
  for (const Number index : indices.v) {
    if (index < 0 || index >= var.dims[0]) return std::nullopt;
    for (int64_t i = 0; i < row; ++i) targets.push_back(static_cast<int64_t>(index) * row + i);
  }
  return Written(var, targets, updates, join);
}

// Places by tuples in the last dimension of the indices.
std::optional<PlainTensors> ScatterTuples(const PlainTensor& var, const PlainTensor& indices,
                                          const PlainTensor& updates, Join join) {
  const int64_t depth = indices.rank() == 0 ? 0 : indices.dims.back();
  if (depth == 0 || depth > var.rank() || updates.dtype != var.dtype) return std::nullopt;
  Extents expected(indices.dims.begin(), indices.dims.end() - 1);
  expected.insert(expected.end(), var.dims.begin() + depth, var.dims.end());
  if (updates.dims != expected) return std::nullopt;
  const Extents strides = StridesOf(var.dims);
  const int64_t slice = CountOf(Extents(var.dims.begin() + depth, var.dims.end()));
  Targets targets;
  for (int64_t tuple = 0; tuple < indices.count(); tuple += depth) {
    int64_t start = 0;
    for (int64_t k = 0; k < depth; ++k) {
      const int64_t index = indices.integer(tuple + k);
      if (index < 0 || index >= var.dims[static_cast<size_t>(k)]) return std::nullopt;
      start += index * strides[static_cast<size_t>(k)];
    }
    for (int64_t i = 0; i < slice; ++i) targets.push_back(start + i);
  }
  return Written(var, targets, updates, join);
}

std::optional<PlainTensors> ScatterTuplesOf(const PlainCall& call, const char* var, Join join) {
  return ScatterTuples(call.in(var), call.in("indices"), call.in("updates"), join);
}

std::optional<PlainTensors> ScatterNd(const PlainCall& call) {
  const PlainTensor& x = call.in("x");
  if (!FitsInMemory(call.ints("shape"))) return std::nullopt;
  return ScatterTuples(Zeros(x.dtype, call.ints("shape")), call.in("indices"), x, Plus);
}

std::optional<PlainTensors> ScatterElements(const PlainCall& call) {
  const PlainTensor &data = call.in("data"), &indices = call.in("indices"),
                    &updates = call.in("updates");
  const std::optional<int> axis = AxisIn(call.node.IntAttr("axis", 0), data.rank());
  if (!axis || indices.dims != updates.dims || indices.rank() != data.rank()) return std::nullopt;
  const auto d = static_cast<size_t>(*axis);
  const Extents strides = StridesOf(data.dims);
  Targets targets;
  bool legal = true;
  ForEachPosition(indices.dims, [&](Extents at) {
    at[d] = indices.integer(static_cast<int64_t>(targets.size()));
    for (size_t k = 0; k < at.size(); ++k) legal = legal && at[k] >= 0 && at[k] < data.dims[k];
    targets.push_back(OffsetOf(at, strides));
  });
  if (!legal) return std::nullopt;
  const std::map<std::string, Join, std::less<>> joins = {
      {"none", Set}, {"add", Plus}, {"max", Larger}, {"min", Smaller}};
  const auto join = joins.find(call.node.StringAttr("reduction", "none"));
  if (join == joins.end()) return std::nullopt;
  return Written(data, targets, updates, join->second);
}

std::optional<PlainTensors> InplaceIndexAdd(const PlainCall& call) {
  const PlainTensor &var = call.in("var"), &indices = call.in("indices"),
                    &updates = call.in("updates");
  const std::optional<int> axis = AxisIn(call.node.IntAttr("axis", 0), var.rank());
  if (!axis) return std::nullopt;
  const auto d = static_cast<size_t>(*axis);
  Extents expected = var.dims;
  expected[d] = indices.count();
  if (updates.dims != expected || updates.dtype != var.dtype) return std::nullopt;
  for (const Number index : indices.v) {
    if (index < 0 || index >= var.dims[d]) return std::nullopt;
  }
  const Extents strides = StridesOf(var.dims);
  Targets targets;
  ForEachPosition(updates.dims, [&](Extents at) {
    at[d] = indices.integer(at[d]);
    targets.push_back(OffsetOf(at, strides));
  });
  return Written(var, targets, updates, Plus);
}

std::optional<PlainTensors> Assign(const PlainCall& call) {
  const PlainTensor &ref = call.in("ref"), &value = call.in("value");
  if (ref.dims != value.dims || ref.dtype != value.dtype) return std::nullopt;
  return PlainTensors{value};
}

std::optional<PlainTensors> ViewCopy(const PlainCall& call) {
  PlainTensor dst = call.in("dst");
  const PlainTensor& src = call.in("src");
  const Extents size = call.ints("dst_size");
  if (size != call.ints("src_size") || dst.dtype != src.dtype) return std::nullopt;
  const Extents to = call.ints("dst_stride"), from = call.ints("src_stride");
  const int64_t target = call.in("dst_storage_offset").integer(0);
  const int64_t source = call.in("src_storage_offset").integer(0);
  bool inside = true;
  ForEachPosition(size, [&](const Extents& at) {
    const int64_t written = target + OffsetOf(at, to), read = source + OffsetOf(at, from);
    inside = inside && written >= 0 && written < dst.count() && read >= 0 && read < src.count();
    if (inside) dst.at(written) = src.at(read);
  });
  if (!inside) return std::nullopt;
  return PlainTensors{std::move(dst)};
}

// The one member of its list.
std::optional<PlainTensors> NegInplace(const PlainCall& call) {
  PlainTensor x = call.in("x0");
  for (Number& each : x.v) each = RoundTo(x.dtype, -each);
  return PlainTensors{std::move(x)};
}

// Successive updates where the mask is true.
std::optional<PlainTensors> MaskedScatter(const PlainCall& call) {
  PlainTensor y = call.in("x");
  const PlainTensor &mask = call.in("mask"), &updates = call.in("updates");
  if (mask.dims != y.dims || updates.dtype != y.dtype) return std::nullopt;
  int64_t next = 0;
  for (int64_t i = 0; i < y.count(); ++i) {
    if (mask.at(i) == 0) continue;
    if (next == updates.count()) return std::nullopt;
    y.at(i) = updates.at(next++);
  }
  return PlainTensors{std::move(y)};
}

}  // namespace

void AddScatterOps(PlainOpTable& table) {
  const auto add_rows = [&](const char* type, Join join) {
    table[type] = {.compute = [join](const PlainCall& call) { return ScatterRows(call, join); },
                   .writes = true};
  };
  add_rows("ScatterUpdate", Set);
  add_rows("ScatterAdd", Plus);
  add_rows("ScatterSub", Minus);
  add_rows("ScatterMax", Larger);
  const auto add_tuples = [&](const char* type, const char* var, Join join, bool writes) {
    table[type] = {.compute = [=](const PlainCall& c) { return ScatterTuplesOf(c, var, join); },
                   .writes = writes};
  };
  add_tuples("ScatterNdUpdate", "var", Set, true);
  add_tuples("ScatterNdAdd", "var", Plus, true);
  add_tuples("ScatterNdSub", "var", Minus, true);
  add_tuples("TensorScatterUpdate", "x", Set, false);
  table["ScatterNd"] = {.compute = ScatterNd};
  table["ScatterElements"] = {.compute = ScatterElements};
  table["InplaceIndexAdd"] = {.compute = InplaceIndexAdd, .writes = true};
  table["Assign"] = {.compute = Assign, .writes = true};
  table["ViewCopy"] = {.compute = ViewCopy, .writes = true};
  table["ForeachNegInplace"] = {.compute = NegInplace, .writes = true};
  table["MaskedScatter"] = {.compute = MaskedScatter};
}

}  // namespace npumesh::fuzz
