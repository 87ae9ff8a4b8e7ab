#include "collectives/contract/wait_graph.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace npumesh {
namespace {

// True when a rank that stands at `waiting` cannot go on because a member stands at `other`.
bool WaitsFor(const Stand& waiting, const Stand& other) {
  if (waiting.phase == Phase::kArriving) return other.call < waiting.call;
  if (waiting.phase != Phase::kDeparting) return false;
  return other.call < waiting.call ||
         (other.call == waiting.call &&
          (other.phase == Phase::kArriving || other.phase == Phase::kRunning));
}

using Neighbours = std::map<int, std::set<int>>;

// Depth-first, without recursion: a circle may have as many ranks as the world.
std::vector<int> FindCircle(int start, const Neighbours& next) {
  std::vector<std::pair<int, std::vector<int>>> path;  // a rank, and whom it waits for, untried
  std::set<int> seen;
  const auto push = [&](int rank) {
    seen.insert(rank);
    const auto it = next.find(rank);
    path.emplace_back(rank, it == next.end()
                                ? std::vector<int>()
                                : std::vector<int>(it->second.rbegin(), it->second.rend()));
  };
  push(start);
  while (!path.empty()) {
    std::vector<int>& untried = path.back().second;
    if (untried.empty()) {
      path.pop_back();
      continue;
    }
    const int rank = untried.back();
    untried.pop_back();
    const auto on_path = std::find_if(path.begin(), path.end(),
                                      [&](const auto& step) { return step.first == rank; });
    if (on_path != path.end()) {
      std::vector<int> circle;
      for (auto it = on_path; it != path.end(); ++it) circle.push_back(it->first);
      return circle;
    }
    if (!seen.contains(rank)) push(rank);
  }
  return {};
}

}  // namespace

std::vector<Wait> WaitsAmong(const std::vector<RankStands>& ranks) {
  std::map<uint64_t, std::vector<std::pair<int, Stand>>> members;
  for (const RankStands& each : ranks) {
    for (const Stand& stand : each.stands) members[stand.group].emplace_back(each.rank, stand);
  }
  std::vector<Wait> waits;
  for (const auto& [group, stands] : members) {
    for (const auto& [rank, stand] : stands) {
      if (stand.phase != Phase::kArriving && stand.phase != Phase::kDeparting) continue;
      for (const auto& [other, there] : stands) {
        if (other != rank && WaitsFor(stand, there)) waits.push_back({rank, other, group});
      }
    }
  }
  return waits;
}

std::vector<int> CircleFrom(int rank, const std::vector<Wait>& waits) {
  Neighbours next;
  for (const Wait& wait : waits) next[wait.rank].insert(wait.for_rank);
  return FindCircle(rank, next);
}

std::vector<int> Roots(const std::vector<Wait>& waits) {
  std::set<int> roots;
  for (const Wait& wait : waits) roots.insert(wait.for_rank);
  for (const Wait& wait : waits) roots.erase(wait.rank);
  return {roots.begin(), roots.end()};
}

}  // namespace npumesh
