// ConvBatchNormFusionPass: a convolution and the batch norm of its result, whose factors go into
// the filter and the bias when the kernel is made.
#include <utility>

#include "graph/ops/elementwise/batch_norm.h"
#include "graph/ops/image/convolution.h"
#include "graph/passes/fusion/fusion_view.h"

namespace npumesh {
namespace {

// Why the factors of a batch norm cannot go into the convolution; empty: they can.
std::string_view WhyNotScaled(const Convolution& plan) {
  if (plan.x.dtype != DataType::kFloat) return "it is not of float32";
  if (plan.filter_value == nullptr) return "its filter is no constant";
  return plan.bias && plan.bias_value == nullptr ? "its bias is no constant" : "";
}

std::string_view TryConvolution(FusionView& view, NodeId convolution, NodeId norm) {
  const OpContext& context = view.context(convolution);
  Result<Convolution> plan = view.ConvolutionOf(convolution);
  if (!plan.ok()) return "it cannot be planned";
  if (const std::string_view why = WhyNotScaled(*plan); !why.empty()) return why;
  std::optional<ChannelFactors> factors = BatchNormFactors(view.PlainContext(norm));
  if (!factors) return "the statistics of the batch norm are no constants";
  std::vector<NodeId> nodes = {convolution, norm};
  const std::string_view why = view.WhyNotFuse(nodes);
  if (!why.empty()) return why;
  plan->scale = std::move(factors);
  FusedStep step;
  step.nodes = std::move(nodes);
  step.inputs = view.SlotValues(convolution);
  step.make_kernel = [plan = std::move(*plan), who = context.Who()] {
    Convolution made = plan;
    made.who = who;
    return MakeConvolution(std::move(made));
  };
  view.Take(std::move(step));
  return "";
}

}  // namespace

void FuseConvolution(FusionView& view) {
  for (const NodeId id : view.order()) {
    if (!view.Is(id, {"Conv2D", "DepthwiseConv2D"})) continue;
    const NodeId norm = view.OnlyReader(id);
    if (!view.Is(norm, {"BNInfer"}) || view.SlotValue(norm, 0) != Value{id, 0}) continue;
    const std::string_view why = TryConvolution(view, id, norm);
    if (!why.empty()) view.Refuse(kConvolutionFusionPass, id, why);
  }
}

}  // namespace npumesh
