// Reductions, running sums and order.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/fuzz/engine/plain_ops.h"

namespace npumesh::fuzz {
namespace {

// By axis: whether it is reduced. nullopt: an axis that there is not.
std::optional<std::vector<bool>> ReducedAxes(const PlainCall& call, int rank) {
  const bool attribute = call.find("axes") == nullptr;
  const std::vector<int64_t> axes = attribute ? call.node.IntsAttr("axes") : call.ints("axes");
  std::vector<bool> reduced(static_cast<size_t>(rank), false);
  // The forms with an attribute reduce all axes where none is named.
  if (axes.empty() && !call.node.BoolAttr("noop_with_empty_axes", !attribute)) {
    reduced.assign(reduced.size(), true);
  }
  for (const int64_t axis : axes) {
    const std::optional<int> known = AxisIn(axis, rank);
    if (!known) return std::nullopt;
    reduced[static_cast<size_t>(*known)] = true;
  }
  return reduced;
}

// Makes one number of those that meet in an element; says whether it is exact.
using Fold = std::function<Number(const std::vector<Number>& x, bool& exact)>;

std::optional<PlainTensors> Reduce(const PlainCall& call, const Fold& fold) {
  const PlainTensor& x = call.in("x");
  const auto reduced = ReducedAxes(call, x.rank());
  if (!reduced) return std::nullopt;
  Extents kept = x.dims;
  Extents dims;
  for (size_t d = 0; d < kept.size(); ++d) {
    if ((*reduced)[d]) kept[d] = 1;
    if (!(*reduced)[d] || call.node.BoolAttr("keep_dims", false)) dims.push_back(kept[d]);
  }
  std::vector<std::vector<Number>> groups(static_cast<size_t>(CountOf(kept)));
  const std::vector<int64_t> targets = BroadcastSources(kept, x.dims);
  for (size_t i = 0; i < targets.size(); ++i) {
    groups[static_cast<size_t>(targets[i])].push_back(x.v[i]);
  }
  PlainTensor y{x.dtype, dims, {}};
  bool exact = true;
  for (const std::vector<Number>& group : groups) {
    if (group.empty()) return std::nullopt;
    y.v.push_back(RoundTo(y.dtype, fold(group, exact)));
  }
  if (!exact && IsFloat(y.dtype)) y.trust = Trust::kRough;
  return PlainTensors{std::move(y)};
}

Number Sum(const std::vector<Number>& x, bool& exact) {
  ExactSum sum;
  for (const Number each : x) sum.Add(each);
  exact = exact && sum.exact();
  return sum.sum();
}

Number Mean(const std::vector<Number>& x, bool& exact) {
  const auto count = static_cast<Number>(x.size());
  if ((x.size() & (x.size() - 1)) != 0) exact = false;
  return Sum(x, exact) / count;
}

Number ProductOf(const std::vector<Number>& x, bool& exact) {
  Number product = 1, size = 1;
  for (const Number each : x) {
    product *= each;
    size *= std::max<Number>(1, std::fabs(each));
    exact = exact && std::floor(each) == each;
  }
  exact = exact && size < (1 << 20);
  return product;
}

// NaN is the largest and the smallest of all, as in PyTorch.
std::optional<Number> NanOf(const std::vector<Number>& x) {
  const auto nan = std::find_if(x.begin(), x.end(), [](Number each) { return std::isnan(each); });
  return nan == x.end() ? std::nullopt : std::optional(*nan);
}
Number Largest(const std::vector<Number>& x, bool&) {
  return NanOf(x).value_or(*std::max_element(x.begin(), x.end()));
}
Number Smallest(const std::vector<Number>& x, bool&) {
  return NanOf(x).value_or(*std::min_element(x.begin(), x.end()));
}
Number Any(const std::vector<Number>& x, bool&) {
  return std::any_of(x.begin(), x.end(), [](Number each) { return each != 0; });
}
Number All(const std::vector<Number>& x, bool&) {
  return std::all_of(x.begin(), x.end(), [](Number each) { return each != 0; });
}

void AddReduction(PlainOpTable& table, const std::string& type, bool steady, Fold fold) {
  const PlainCompute compute = [fold](const PlainCall& call) { return Reduce(call, fold); };
  table[type] = {.compute = compute, .steady = steady};
  table[type + "D"] = {.compute = compute, .steady = steady};
}

// ---- along one axis ----

// The extents around an axis: x[before][axis][after].
struct Around {
  int64_t before = 1;
  int64_t extent = 1;
  int64_t after = 1;
  int64_t At(int64_t b, int64_t i, int64_t a) const { return (b * extent + i) * after + a; }
};

Around AroundOf(const Extents& dims, int axis) {
  Around around;
  for (int d = 0; d < static_cast<int>(dims.size()); ++d) {
    int64_t& part = d < axis ? around.before : d == axis ? around.extent : around.after;
    part *= dims[static_cast<size_t>(d)];
  }
  return around;
}

std::optional<PlainTensors> ArgExtreme(const PlainCall& call, bool largest) {
  const PlainTensor& x = call.in("x");
  const std::optional<int> axis = AxisIn(call.in("dimension").integer(0), x.rank());
  if (!axis || x.dims[static_cast<size_t>(*axis)] == 0) return std::nullopt;
  const Around around = AroundOf(x.dims, *axis);
  Extents dims = x.dims;
  dims.erase(dims.begin() + *axis);
  PlainTensor y{DataType::kInt64, dims, {}};
  for (int64_t b = 0; b < around.before; ++b) {
    for (int64_t a = 0; a < around.after; ++a) {
      int64_t best = 0;
      for (int64_t i = 1; i < around.extent; ++i) {
        const Number seen = x.at(around.At(b, i, a)), held = x.at(around.At(b, best, a));
        if (largest ? seen > held : seen < held) best = i;
      }
      y.v.push_back(static_cast<Number>(best));
    }
  }
  return PlainTensors{std::move(y)};
}

std::optional<PlainTensors> Cumsum(const PlainCall& call) {
  const PlainTensor& x = call.in("x");
  const std::optional<int> axis = AxisIn(call.in("axis").integer(0), x.rank());
  if (!axis) return std::nullopt;
  const bool exclusive = call.node.BoolAttr("exclusive", false);
  const bool reverse = call.node.BoolAttr("reverse", false);
  const Around around = AroundOf(x.dims, *axis);
  PlainTensor y = Zeros(x.dtype, x.dims);
  bool exact = true;
  for (int64_t b = 0; b < around.before; ++b) {
    for (int64_t a = 0; a < around.after; ++a) {
      ExactSum sum;
      for (int64_t i = 0; i < around.extent; ++i) {
        const int64_t at = around.At(b, reverse ? around.extent - 1 - i : i, a);
        if (exclusive) y.at(at) = RoundTo(y.dtype, sum.sum());
        sum.Add(x.at(at));
        if (!exclusive) y.at(at) = RoundTo(y.dtype, sum.sum());
      }
      exact = exact && sum.exact();
    }
  }
  if (!exact && IsFloat(x.dtype)) y.trust = Trust::kRough;
  return PlainTensors{std::move(y)};
}

// Values and int32 positions of the first `count` along the axis when sorted stably.
std::optional<PlainTensors> Sorted(const PlainTensor& x, int64_t axis, int64_t count,
                                   bool descending) {
  const std::optional<int> known = AxisIn(axis, x.rank());
  if (!known || count < 0 || count > x.dims[static_cast<size_t>(*known)]) return std::nullopt;
  const Around from = AroundOf(x.dims, *known);
  Extents dims = x.dims;
  dims[static_cast<size_t>(*known)] = count;
  const Around to = AroundOf(dims, *known);
  PlainTensor values = Zeros(x.dtype, dims);
  PlainTensor places = Zeros(DataType::kInt32, dims);
  for (int64_t b = 0; b < from.before; ++b) {
    for (int64_t a = 0; a < from.after; ++a) {
      std::vector<int64_t> order(static_cast<size_t>(from.extent));
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
        const Number x1 = x.at(from.At(b, i, a)), x2 = x.at(from.At(b, j, a));
        return descending ? x1 > x2 : x1 < x2;
      });
      for (int64_t i = 0; i < count; ++i) {
        const int64_t chosen = order[static_cast<size_t>(i)];
        values.at(to.At(b, i, a)) = x.at(from.At(b, chosen, a));
        places.at(to.At(b, i, a)) = static_cast<Number>(chosen);
      }
    }
  }
  return PlainTensors{std::move(values), std::move(places)};
}

std::optional<PlainTensors> Sort(const PlainCall& call) {
  const PlainTensor& x = call.in("x");
  const int64_t axis = call.node.IntAttr("axis", -1);
  if (!AxisIn(axis, x.rank())) return std::nullopt;
  return Sorted(x, axis, x.dims[static_cast<size_t>(*AxisIn(axis, x.rank()))],
                call.node.BoolAttr("descending", false));
}

std::optional<PlainTensors> TopK(const PlainCall& call) {
  return Sorted(call.in("x"), call.node.IntAttr("dim", -1), call.in("k").integer(0),
                call.node.BoolAttr("largest", true));
}

}  // namespace

void AddReduceOps(PlainOpTable& table) {
  AddReduction(table, "ReduceSum", true, Sum);
  AddReduction(table, "ReduceMean", true, Mean);
  AddReduction(table, "ReduceProd", true, ProductOf);
  AddReduction(table, "ReduceMax", true, Largest);
  AddReduction(table, "ReduceMin", true, Smallest);
  AddReduction(table, "ReduceAny", false, Any);
  AddReduction(table, "ReduceAll", false, All);
  table["ArgMaxV2"] = {.compute = [](const PlainCall& call) { return ArgExtreme(call, true); },
                       .steady = false};
  table["ArgMin"] = {.compute = [](const PlainCall& call) { return ArgExtreme(call, false); },
                     .steady = false};
  table["Cumsum"] = {.compute = Cumsum};
  table["Sort"] = {.compute = Sort, .steady = false};
  table["TopKV2"] = {.compute = TopK, .steady = false};
}

}  // namespace npumesh::fuzz
