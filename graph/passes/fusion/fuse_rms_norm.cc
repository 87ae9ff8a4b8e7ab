// RmsNormFusionPass: RmsNorm as frameworks write it out,
//
//   w = Cast(x) to float32             when x has 16 bits
//   y = w / sqrt(mean(w * w) + epsilon) * gamma       (norm_pattern.h)
//
// rounded to 16 bits before or after gamma, or not at all. In a float32 model the rounding is a
// Cast to the type that the product has already.
#include "graph/passes/fusion/norm_pattern.h"

namespace npumesh {
namespace {

// The rounding before gamma is one that the kernel makes, too; an idle one is left out.
std::string_view FindGamma(NormPattern& pattern, NormForm& form, Value& gamma) {
  form.rounds = !pattern.TakeIdleCast() && pattern.TakeNarrowingCast();
  const std::optional<Value> found = pattern.TakeVector({"Mul"});
  if (!found) return "no product with gamma follows";
  gamma = *found;
  form.vectors = {pattern.end_type().dtype};
  if (!pattern.TakeIdleCast() && !form.rounds) pattern.TakeNarrowingCast();
  return "";
}

std::string_view TakeRmsNorm(FusionView& view, NormPattern& pattern) {
  std::string_view why = pattern.FindStatistics();
  if (why.empty()) why = pattern.FindQuotient();
  NormForm form;
  Value gamma;
  if (why.empty()) why = FindGamma(pattern, form, gamma);
  if (!why.empty()) return why;
  return TakeNorm(view, pattern, std::move(form), {gamma}, MakeRmsNormKernel);
}

}  // namespace

void FuseRmsNorm(FusionView& view) {
  for (const NodeId id : view.order()) {
    if (!view.Is(id, {"Rsqrt", "Sqrt"})) continue;
    NormPattern pattern(view, id);
    const std::string_view why = TakeRmsNorm(view, pattern);
    if (!why.empty() && pattern.begins()) view.Refuse(kRmsNormFusionPass, id, why);
  }
}

}  // namespace npumesh
