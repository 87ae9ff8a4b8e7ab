// ForeachNonFiniteCheckAndUnscale: gradients of a scaled loss, divided by the scale in place.
//
//   g = g * inv_scale for every gradient; found_inf = 1 if a g was not finite, else as it was
#include <algorithm>
#include <cmath>

#include "graph/ops/core/check.h"
#include "graph/ops/core/define.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh {
namespace {

constexpr int64_t kBlock = 1024;

struct UnscalePlan : Planned {
  std::vector<TensorType> gradients;
  size_t first = 0;  // slot of the gradients
  int found = 0;     // slots
  int scale = 0;
};

UnscalePlan PlanUnscale(const OpContext& op, Check& check) {
  UnscalePlan plan;
  const int first = op.slot("scaled_grads");
  for (int i = 0; i < op.count("scaled_grads"); ++i) {
    const TensorType& gradient = plan.gradients.emplace_back(op.in(first + i));
    check.Supported(kFloats.Contains(gradient.dtype),
                    "entry {} of \"scaled_grads\" is {}, expected {}", i, gradient, kFloats);
  }
  for (const std::string_view port : {"found_inf", "inv_scale"}) {
    check.Type(port, DataType::kFloat);
    check.Elements(port, {1});
  }
  plan.first = static_cast<size_t>(first);
  plan.found = op.slot("found_inf");
  plan.scale = op.slot("inv_scale");
  return plan;
}

// False if an element is not finite.
bool Unscale(const TensorType& type, void* gradients, float factor) {
  float row[kBlock];
  bool finite = true;
  const int64_t elements = type.shape.elements();
  for (int64_t first = 0; first < elements; first += kBlock) {
    const int64_t count = std::min(kBlock, elements - first);
    const float* g = LoadRow(type.dtype, gradients, first, count, row);
    for (int64_t i = 0; i < count; ++i) {
      finite = finite && std::isfinite(g[i]);
      row[i] = g[i] * factor;
    }
    StoreRow(type.dtype, row, gradients, first, count);
  }
  return finite;
}

Status RunUnscale(const UnscalePlan& plan, const KernelArgs& args) {
  const float factor = *static_cast<const float*>(args.in[plan.scale]);
  bool finite = true;
  for (size_t i = 0; i < plan.gradients.size(); ++i) {
    // An operator that updates an input owns its storage while it runs (Operator::in_place).
    void* const gradients = const_cast<void*>(args.in[plan.first + i]);  // NOLINT
    finite = Unscale(plan.gradients[i], gradients, factor) && finite;
  }
  if (!finite) *static_cast<float*>(const_cast<void*>(args.in[plan.found])) = 1;  // NOLINT
  return Status();
}

}  // namespace

void RegisterForeachUnscaleOps(OpRegistry& registry) {
  registry.Add(Define<PlanUnscale, RunUnscale>(
      "ForeachNonFiniteCheckAndUnscale(scaled_grads..., found_inf, inv_scale) -> ",
      {.in_place = {{0, 0}, {0, 1}}}));
}

}  // namespace npumesh
