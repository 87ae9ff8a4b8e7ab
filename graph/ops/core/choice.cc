#include "graph/ops/core/choice.h"

#include <fmt/format.h>

namespace npumesh {

void KernelChoice::Decide(std::string_view part, std::string why_not) {
  if (!why_not.empty()) {
    refused.push_back({std::string(part), std::move(why_not)});
    return;
  }
  if (!name.empty()) name += ", ";
  name += part;
}

void KernelChoice::Join(const KernelChoice& part) {
  if (!part.name.empty()) Decide(part.name, "");
  refused.insert(refused.end(), part.refused.begin(), part.refused.end());
}

std::string KernelChoice::ToString() const {
  std::string text = name;
  for (const Refusal& refusal : refused) {
    text += fmt::format("; not {}: {}", refusal.candidate, refusal.why);
  }
  if (!tuned.empty()) text += fmt::format("{}tuned: {}", text.empty() ? "" : "; ", tuned);
  return text;
}

}  // namespace npumesh
