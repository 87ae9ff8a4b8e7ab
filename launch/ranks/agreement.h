// Agreement: the end of a stage, at which all ranks go on or all ranks stop.
#ifndef NPUMESH_LAUNCH_RANKS_AGREEMENT_H_
#define NPUMESH_LAUNCH_RANKS_AGREEMENT_H_

#include <functional>
#include <string_view>

#include "launch/ranks/rank_circle.h"

namespace npumesh {

class Agreement {
 public:
  // `tell` prints one line; it is called on one rank only, unless the ranks can no longer reach
  // each other. `circle` must outlive the agreement.
  Agreement(RankCircle& circle, std::function<void(std::string_view)> tell)
      : circle_(circle), tell_(std::move(tell)) {}

  // Collective over all ranks. True: every rank succeeded. False: the failure has been told, and
  // exit_code() is the same on all ranks.
  bool Reached(const Outcome& mine);
  bool Reached(const Status& mine) { return Reached(Outcome::From(mine)); }

  int exit_code() const { return failure_.exit_code; }
  // What was told: message and exit code of the rank that is to blame, and which that is; -1: not
  // known, or nothing failed. The same on all ranks unless one is lost.
  const Outcome& failure() const { return failure_; }
  int culprit() const { return culprit_; }
  // A rank is lost: nothing collective may follow.
  bool broken() const { return broken_; }

 private:
  RankCircle& circle_;
  std::function<void(std::string_view)> tell_;
  Outcome failure_;
  int culprit_ = -1;
  bool broken_ = false;
};

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RANKS_AGREEMENT_H_
