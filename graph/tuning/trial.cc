#include "graph/tuning/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace npumesh {
namespace {

// Preferences with one more than in `trial`, for a decision that it left to the rule. A second
// value for a decision of the trial would be what another trial is for.
std::vector<Preferences> NextOf(const Trial& trial) {
  std::vector<Preferences> next;
  for (const auto& [decision, made] : trial.decided) {
    if (trial.wanted.contains(decision)) continue;
    for (const std::string& option : made.options) {
      if (option == made.taken) continue;
      next.push_back(trial.wanted);
      next.back()[decision] = option;
    }
  }
  return next;
}

}  // namespace

std::string TextOf(const Preferences& preferences) {
  std::string text;
  for (const auto& [decision, option] : preferences) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", decision, option);
  }
  return text.empty() ? "ordinary" : text;
}

bool Trial::honoured() const {
  return std::all_of(wanted.begin(), wanted.end(), [this](const auto& preference) {
    const auto made = decided.find(preference.first);
    return made != decided.end() && made->second.taken == preference.second;
  });
}

bool Trial::had_choice() const {
  return std::any_of(decided.begin(), decided.end(),
                     [](const auto& decision) { return decision.second.options.size() > 1; });
}

// Breadth first, so that what differs least from the rule is tried first. Kernels that objected
// count among `most`, because each was made.
std::vector<Trial> OtherTrials(const Trial& ordinary, const MakeTrial& make, size_t most) {
  std::vector<Trial> trials;
  std::set<Preferences> asked = {ordinary.wanted};
  std::vector<Preferences> waiting = NextOf(ordinary);
  for (size_t at = 0; at < waiting.size() && asked.size() <= most; ++at) {
    if (!asked.insert(waiting[at]).second) continue;
    Result<Trial> trial = make(Preferences(waiting[at]));
    if (!trial.ok() || !trial->honoured()) continue;
    const std::vector<Preferences> next = NextOf(*trial);
    waiting.insert(waiting.end(), next.begin(), next.end());
    trials.push_back(*std::move(trial));
  }
  return trials;
}

}  // namespace npumesh
