// LayerNormFusionPass: LayerNorm as frameworks write it out,
//
//   w = Cast(x) to float32             when x has 16 bits
//   c = w - ReduceMean(w)
//   y = c / sqrt(mean(c * c) + epsilon) * gamma + beta       (norm_pattern.h)
//
// then perhaps a Cast to 16 bits. beta, or both gamma and beta, may be absent. Of what this pass
// leaves RmsNormFusionPass may still take the part after the difference.
#include "graph/passes/fusion/norm_pattern.h"

namespace npumesh {
namespace {

std::string_view FindNorm(NormPattern& pattern) {
  std::string_view why = pattern.FindStatistics();
  if (why.empty()) why = pattern.FindQuotient();
  return why.empty() ? pattern.TakeCentring() : why;
}

// gamma and beta, which become inputs of the step, and the rounding.
std::vector<Value> FindEnd(NormPattern& pattern, NormForm& form) {
  std::vector<Value> vectors;
  const auto take = [&](std::initializer_list<std::string_view> types) {
    const std::optional<Value> found = pattern.TakeVector(types);
    if (!found) return false;
    vectors.push_back(*found);
    form.vectors.push_back(DataType::kFloat);
    return true;
  };
  if (take({"Mul"})) take({"Add", "AddV2"});
  if (!pattern.TakeIdleCast()) pattern.TakeNarrowingCast();
  return vectors;
}

std::string_view TakeLayerNorm(FusionView& view, NormPattern& pattern) {
  const std::string_view why = FindNorm(pattern);
  if (!why.empty()) return why;
  NormForm form;
  const std::vector<Value> vectors = FindEnd(pattern, form);
  return TakeNorm(view, pattern, std::move(form), vectors, MakeLayerNormKernel);
}

}  // namespace

// A root of no difference belongs to RmsNormFusionPass, which says what is in the way there.
void FuseLayerNorm(FusionView& view) {
  for (const NodeId id : view.order()) {
    if (!view.Is(id, {"Rsqrt", "Sqrt"})) continue;
    NormPattern pattern(view, id);
    const std::string_view why = TakeLayerNorm(view, pattern);
    if (!why.empty() && pattern.centred()) view.Refuse(kLayerNormFusionPass, id, why);
  }
}

}  // namespace npumesh
