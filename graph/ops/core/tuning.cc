#include "graph/ops/core/tuning.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/ops/core/operator.h"

namespace npumesh {

std::string TunedOption(KernelTuning* tuning, std::string_view decision,
                        std::span<const std::string_view> options, std::string_view ordinary) {
  if (tuning == nullptr) return std::string(ordinary);
  const std::string wanted = tuning->Preferred(decision);
  const bool known = std::find(options.begin(), options.end(), wanted) != options.end();
  std::string taken = known ? wanted : std::string(ordinary);
  tuning->Decided(decision, {options.begin(), options.end()}, taken);
  return taken;
}

int64_t TunedSize(KernelTuning* tuning, std::string_view decision, std::span<const int64_t> options,
                  int64_t ordinary) {
  if (tuning == nullptr) return ordinary;
  const std::string wanted = tuning->Preferred(decision);
  std::vector<std::string> names;
  int64_t taken = ordinary;
  for (const int64_t option : options) {
    names.push_back(fmt::format("{}", option));
    if (names.back() == wanted) taken = option;
  }
  tuning->Decided(decision, std::move(names), fmt::format("{}", taken));
  return taken;
}

bool MayBeTuned(const Operator& op, const OpContext& context) {
  const bool alone = !op.collective && !op.side_effect && op.pure && !op.late();
  return alone && op.make_kernel != nullptr && InPlacesOf(op, context).empty();
}

}  // namespace npumesh
