// HistogramV2: how many elements lie in each of equal parts of a range.
#include <algorithm>
#include <cmath>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/double_kernel.h"
#include "graph/ops/toolbox/values/cast.h"

namespace npumesh {
namespace {

struct HistogramPlan : Planned {
  int64_t bins = 1;
};

HistogramPlan PlanHistogram(const OpContext& op, Check& check) {
  for (const std::string_view port : {"x", "min", "max"}) {
    check.Supported(FindConvert(op.in(port).dtype, DataType::kDouble) != nullptr,
                    "{} is {}, expected a floating or integer type", port, op.in(port));
  }
  check.Elements("min", {1});
  check.Elements("max", {1});
  HistogramPlan plan;
  plan.bins = check.Between("bins", 1, INT32_MAX);
  const DataType dtype = check.TypeOf("y_dtype", {DataType::kInt32, DataType::kFloat});
  plan.outputs = {{dtype, {plan.bins}}};
  return plan;
}

// The last part has its upper end, too. Equal ends stand for those of the elements, which are moved
// apart by 2 when they are equal. NaN and what lies outside count for nothing.
Status RunHistogram(const HistogramPlan& plan, RealTensors& t) {
  double low = t.in[1][0], high = t.in[2][0];
  const std::vector<double>& x = t.in[0];
  if (low == high && !x.empty()) {
    low = *std::min_element(x.begin(), x.end());
    high = *std::max_element(x.begin(), x.end());
  }
  if (low == high) {
    low -= 1;
    high += 1;
  }
  if (!std::isfinite(high - low) || low > high) {
    return Error(Code::kInvalidArgument, "{}: the range from {} to {} is not one of finite numbers",
                 plan.who, low, high);
  }
  for (const double value : x) {
    if (!(value >= low && value <= high)) continue;
    const auto bin =
        static_cast<int64_t>((value - low) * static_cast<double>(plan.bins) / (high - low));
    t.out[0][static_cast<size_t>(std::min(bin, plan.bins - 1))] += 1;
  }
  return Status();
}

}  // namespace

void RegisterHistogramOps(OpRegistry& registry) {
  registry.Add(DefineReal<PlanHistogram, RunHistogram>(
      "HistogramV2(x, min, max; bins=100, y_dtype=3) -> y"));
}

}  // namespace npumesh
