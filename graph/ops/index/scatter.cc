#include "graph/ops/index/scatter.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>

#include "graph/ops/toolbox/rows/axis_kernel.h"
#include "graph/ops/toolbox/rows/plan_parts.h"

namespace npumesh {
namespace {

template <typename Wide>
Wide Joined(Wide a, Wide b, Join join) {
  switch (join) {
    case Join::kSet:
      return b;
    case Join::kAdd:
      return Wrapped(std::plus<>(), a, b);
    case Join::kSub:
      return Wrapped(std::minus<>(), a, b);
    case Join::kMul:
      return Wrapped(std::multiplies<>(), a, b);
    case Join::kDiv:
      // The smallest integer has no opposite: it stays.
      if constexpr (std::is_integral_v<Wide> && std::is_signed_v<Wide>) {
        if (b == -1) return Wrapped(std::multiplies<>(), a, b);
      }
      return a / b;
    case Join::kMax:
      return a > b || a != a ? a : b;
    case Join::kMin:
      return a < b || a != a ? a : b;
  }
  return a;
}

double LargestFinite(DataType dtype) {
  if (dtype == DataType::kFloat16) return 65504;
  if (dtype == DataType::kBfloat16) return 0x1.fep127;
  return dtype == DataType::kDouble ? std::numeric_limits<double>::max()
                                    : static_cast<double>(std::numeric_limits<float>::max());
}

// What changes nothing when it is joined: where an output starts that begins with nothing.
template <typename Wide>
Wide IdentityOf(DataType dtype, Join join) {
  if (join == Join::kMul || join == Join::kDiv) return 1;
  if (join != Join::kMax && join != Join::kMin) return 0;
  const bool least = join == Join::kMax;
  if constexpr (std::is_floating_point_v<Wide>) {
    const double most = LargestFinite(dtype);
    return least ? -most : most;
  } else {
    if (!IsSignedInteger(dtype)) {
      return least ? 0 : static_cast<Wide>(UINT64_MAX >> (64 - BitsOf(dtype)));
    }
    const int64_t most = INT64_MAX >> (64 - BitsOf(dtype));
    return static_cast<Wide>(least ? -most - 1 : most);
  }
}

// Copies rows without looking at them.
Status SetRows(const ScatterPlan& plan, const KernelArgs& args, const void* updates) {
  auto* y = static_cast<std::byte*>(args.out[0]);
  const uint64_t bytes = plan.outputs[0].bytes();
  if (plan.copied && bytes > 0) std::memcpy(y, args.in[*plan.copied], bytes);
  if (plan.starts && bytes > 0) std::memset(y, 0, bytes);
  const auto* from = static_cast<const std::byte*>(updates);
  const int64_t* found = plan.found(args);
  for (int64_t i = 0; i < plan.rows.count && plan.row > 0; ++i, from += plan.row) {
    if (found[i] == kNoRow) continue;
    std::memcpy(y + static_cast<size_t>(found[i]) * plan.row, from, plan.row);
  }
  return Status();
}

template <typename Wide>
Status JoinRows(const ScatterPlan& plan, const KernelArgs& args, const void* updates) {
  static_assert(sizeof(Wide) == sizeof(uint64_t));
  const TensorType& type = plan.outputs[0];
  const auto elements = static_cast<size_t>(type.shape.elements());
  const int64_t inner = plan.rows.inner;
  auto* y = reinterpret_cast<Wide*>(plan.result(args));
  auto* from = reinterpret_cast<Wide*>(plan.joining(args));
  if (plan.starts) {
    std::fill_n(y, elements, IdentityOf<Wide>(type.dtype, plan.join));
  } else {
    plan.load(plan.copied ? args.in[*plan.copied] : args.out[0], y, elements);
  }
  plan.load_updates(updates, from, static_cast<size_t>(plan.rows.count * inner));
  Wide scale = 1;
  if (plan.scale) plan.load_scale(args.in[*plan.scale], &scale, 1);
  const int64_t* found = plan.found(args);
  for (int64_t i = 0; i < plan.rows.count; ++i, from += inner) {
    if (found[i] == kNoRow) continue;
    Wide* to = y + found[i] * inner;
    for (int64_t e = 0; e < inner; ++e) {
      if (!std::is_floating_point_v<Wide> && plan.join == Join::kDiv && from[e] == 0) {
        return Error(Code::kInvalidArgument,
                     "{}: update row {} holds a 0, which divides an integer", plan.who, i);
      }
      const Wide update = plan.scale ? Joined(from[e], scale, Join::kMul) : from[e];
      to[e] = Joined(to[e], update, plan.join);
    }
  }
  plan.store(y, args.out[0], elements);
  return Status();
}

}  // namespace

ScatterPlan Complete(const OpContext& op, ScatterPlan plan, const TensorType& y, Check& check) {
  check.Keep(y.shape.Check().WithContext(op.Who()));
  if (!check.ok()) return plan;
  plan.found = plan.scratch.Take<int64_t>(plan.rows.count);
  plan.outputs = {y};
  if (plan.join == Join::kSet) {
    const size_t element = check.Take(ElementBytes(op, y.dtype));
    plan.row = element * static_cast<size_t>(plan.rows.inner);
    return plan;
  }
  const DataType wide = WideTypeOf(y.dtype);
  check.Supported(y.dtype != DataType::kBool && wide != DataType::kUndefined,
                  "elements of type {} cannot be joined", Name(y.dtype));
  plan.load = FindConvert(y.dtype, wide);
  plan.store = FindConvert(wide, y.dtype);
  plan.load_updates = FindConvert(op.in(plan.updates).dtype, wide);
  if (plan.scale) plan.load_scale = FindConvert(op.in(*plan.scale).dtype, wide);
  plan.result = plan.scratch.Take<uint64_t>(y.shape.elements());
  plan.joining = plan.scratch.Take<uint64_t>(plan.rows.count * plan.rows.inner);
  return plan;
}

Shape TupleRows(const Shape& indices, const Shape& x) {
  const int last = indices.rank() - 1;
  return Spliced(indices, last, last + 1, DimsFrom(x, static_cast<int>(indices[last])));
}

Result<CachePlaces::Place> CachePlaces::At(std::string_view who, const KernelArgs& args,
                                           int64_t entry) const {
  const int64_t batch = pairs ? indices.At(args, 2 * entry) : entry;
  const int64_t start = indices.At(args, pairs ? 2 * entry + 1 : entry);
  if (batch >= 0 && batch < batches && start >= 0 && start <= bound - length) {
    return Place{batch, start};
  }
  return Error(Code::kInvalidArgument,
               "{}: \"indices\" place entry {} at batch {}, positions {} to {}, expected batches "
               "below {} and positions below {}",
               who, entry, batch, start, start + length - 1, batches, bound);
}

Status Scatter(const ScatterPlan& plan, const KernelArgs& args, const void* updates) {
  NPUMESH_RETURN_IF_ERROR(plan.rows.find(args, plan.found(args)));
  if (plan.join == Join::kSet) return SetRows(plan, args, updates);
  return ByWideType(plan.outputs[0].dtype,
                    [&](auto wide) { return JoinRows<decltype(wide)>(plan, args, updates); });
}

Status RunScatter(const ScatterPlan& plan, const KernelArgs& args) {
  return Scatter(plan, args, args.in[plan.updates]);
}

}  // namespace npumesh
