#include "launch/profile/collective_calls.h"

#include <algorithm>
#include <tuple>

namespace npumesh {

CollectiveCalls::CollectiveCalls(const std::vector<RankProfile>& profiles) {
  for (size_t p = 0; p < profiles.size(); ++p) {
    for (const Span& span : profiles[p].spans) {
      if (span.kind != SpanKind::kCollective || span.group == 0) continue;
      members_.push_back({profiles[p].group(span).number, span.number, p, &span});
    }
  }
  std::ranges::sort(members_, {}, [](const CallMember& one) {
    return std::tuple(one.group, one.call, one.profile, one.span->begin_ns);
  });
  for (size_t m = 0; m < members_.size(); ++m) {
    const bool same = m > 0 && members_[m].group == members_[m - 1].group &&
                      members_[m].call == members_[m - 1].call;
    if (!same) begins_.push_back(m);
  }
}

std::span<const CallMember> CollectiveCalls::operator[](size_t i) const {
  const size_t end = i + 1 < begins_.size() ? begins_[i + 1] : members_.size();
  return std::span(members_).subspan(begins_[i], end - begins_[i]);
}

}  // namespace npumesh
