// What a rank did at which times, and its steps.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_LAUNCH_PROFILE_RANK_PARTS_H_
#define NPUMESH_LAUNCH_PROFILE_RANK_PARTS_H_

#include <vector>

#include "launch/profile/profile_facts.h"
#include "launch/profile/stretches.h"

namespace npumesh {

// On the rank's clock.
struct RankActivity {
  Stretches computing;
  Stretches moving;
  Stretches waiting;
  Stretches preparing;
};
RankActivity ActivityOf(const RankProfile& profile);

// The parts of a stretch of time.
TimeParts PartsIn(const RankActivity& activity, Stretches::Stretch window);

// The steps of a rank, ascending. A step whose end was not recorded reaches from its
// first span after the step before it to its last span.
std::vector<StepFacts> StepsOf(const RankProfile& profile);

// From arrival to end; the whole span when it has no arrival.
Stretches::Stretch MovingTime(const Span& span);
// From begin to arrival; empty when it has none.
Stretches::Stretch WaitingTime(const Span& span);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_PROFILE_RANK_PARTS_H_
