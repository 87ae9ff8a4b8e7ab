#include "runtime/card/findings.h"

#include <algorithm>
#include <utility>

#include "runtime/base/log.h"

namespace npumesh {

std::string TextOf(const CardFinding& finding, const Chip& chip) {
  std::string text = fmt::format("{} {} {}: {}", chip.name,
                                 finding.refused() ? "refuses" : "computes something else for",
                                 finding.where, finding.text);
  if (finding.refused()) text += fmt::format("; error code {}", finding.code);
  if (!finding.mend.empty()) text += "; " + finding.mend;
  return text + fmt::format(" (rule {}; {})", finding.rule, finding.source);
}

Status CardFindings::Add(CardFinding finding) {
  const std::string text = TextOf(finding, *card_.chip);
  const bool refused = finding.refused();
  bool fresh = false;
  {
    const std::lock_guard lock(mutex_);
    fresh = std::none_of(all_.begin(), all_.end(), [&](const CardFinding& known) {
      return known.rule == finding.rule && known.where == finding.where;
    });
    if (fresh) all_.push_back(std::move(finding));
  }
  const bool fails = refused && card_.fails;
  if (fresh && says_ && !fails) WriteLog(LogLevel::kWarning, {__FILE__, __LINE__}, text);
  return fails ? Error(Code::kInvalidArgument, "{}", text) : Status();
}

std::vector<CardFinding> CardFindings::all() const {
  const std::lock_guard lock(mutex_);
  return all_;
}

}  // namespace npumesh
