#include "graph/compare/replay/law_replay.h"

#include <utility>

namespace npumesh {

Status DecideByReplay(const RankGraphs& graphs, const RankSources& sources, const Env& env,
                      BrokenLaw& broken) {
  if (!broken.undecided) return Status();
  ReplayOptions options;
  options.only = {broken.law->key};
  NPUMESH_ASSIGN_OR_RETURN(const Replayed replayed, Replay(graphs, sources, env, options));
  const auto wrong = [&](int rank) {
    return replayed.ranks[static_cast<size_t>(rank)].First() != nullptr;
  };
  const auto replayed_at = [&](int rank) {
    return !replayed.ranks[static_cast<size_t>(rank)].rows.empty();
  };
  if (!replayed_at(broken.rank) || !replayed_at(broken.witness)) return Status();
  if (wrong(broken.rank) == wrong(broken.witness)) return Status();
  if (wrong(broken.witness)) std::swap(broken.rank, broken.witness);
  broken.undecided = false;
  broken.deviating = {broken.rank};
  return Status();
}

}  // namespace npumesh
