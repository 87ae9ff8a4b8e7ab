// RankCircle: what the ranks of one command tell each other outside of graphs: whether they failed
// and what they measured.
//
// A rank never leaves alone: each stage of a command ends with an agreement, so that all ranks go
// on or all ranks stop, and one of them says why.
//
// Thread-safety: none.
#ifndef NPUMESH_LAUNCH_RANKS_RANK_CIRCLE_H_
#define NPUMESH_LAUNCH_RANKS_RANK_CIRCLE_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/world/gathering.h"

namespace npumesh {

// How a command stands on one rank. Exit codes: 0 success, 1 `--check` differs, 2 usage, 3 input,
// 4 run-time, 5 peer, 128 + a signal that asked it to stop.
struct Outcome {
  int exit_code = 0;
  std::string message;       // as Status prints it; empty on success
  bool consequence = false;  // failed only because another rank did

  bool ok() const { return exit_code == 0; }
  static Outcome From(const Status& status);
  static Outcome Usage(std::string message) { return {2, std::move(message), false}; }
};

// The rank whose failure is to be told: the lowest with its own reason, else the lowest that
// failed; -1 when none did.
int Culprit(const std::vector<Outcome>& outcomes);

// "rank 2 of 4: message", with a word on the other ranks that failed for another reason.
std::string TellFailure(const std::vector<Outcome>& outcomes);

class RankCircle {
 public:
  // Collective over all ranks. `world` must outlive the circle.
  static Result<std::unique_ptr<RankCircle>> Create(World& world);

  int rank() const { return gathering_->rank(); }
  int size() const { return gathering_->size(); }

  // Collective over all ranks: every rank's text, by rank. Waits as long as a collective would
  // (HCCL_EXEC_TIMEOUT). Errors: kPeerLost, kTimeout.
  Result<std::vector<std::string>> Share(std::string_view mine) { return gathering_->Share(mine); }

  // Collective over all ranks: every rank's outcome, by rank.
  Result<std::vector<Outcome>> Share(const Outcome& mine);

 private:
  explicit RankCircle(std::unique_ptr<Gathering> gathering) : gathering_(std::move(gathering)) {}

  std::unique_ptr<Gathering> gathering_;
};

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RANKS_RANK_CIRCLE_H_
