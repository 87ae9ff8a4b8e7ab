#include "launch/ranks/agreement.h"

namespace npumesh {

bool Agreement::Reached(const Outcome& mine) {
  const Result<std::vector<Outcome>> all = circle_.Share(mine);
  if (!all.ok()) {
    broken_ = true;
    // A rank is often asked to stop because another one is lost.
    constexpr int kAskedToStop = 128;
    const bool lost_first = mine.ok() || mine.exit_code > kAskedToStop;
    failure_ = lost_first ? Outcome::From(all.status()) : mine;
    if (!lost_first && !mine.consequence) culprit_ = circle_.rank();
    tell_(fmt::format("rank {} of {}: {}", circle_.rank(), circle_.size(), failure_.message));
    return false;
  }
  const int culprit = Culprit(*all);
  if (culprit < 0) return true;
  failure_ = (*all)[static_cast<size_t>(culprit)];
  culprit_ = culprit;
  if (circle_.rank() == culprit) tell_(TellFailure(*all));
  return false;
}

}  // namespace npumesh
