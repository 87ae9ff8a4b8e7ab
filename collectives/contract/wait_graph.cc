#include "collectives/contract/wait_graph.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>

namespace npumesh {
namespace {

// True when a rank that stands at `waiting` cannot go on because a member stands at `other`.
bool WaitsFor(const Stand& waiting, const Stand& other) {
  if (waiting.phase == Phase::kArriving || waiting.phase == Phase::kBroken) {
    return other.call < waiting.call;
  }
  if (waiting.phase != Phase::kDeparting) return false;
  return other.call < waiting.call ||
         (other.call == waiting.call &&
          (other.phase == Phase::kArriving || other.phase == Phase::kRunning));
}

using Neighbours = std::map<int, std::set<int>>;

// Breadth-first from `start` until it is met again.
std::vector<int> CircleThrough(int start, const Neighbours& next) {
  std::map<int, int> came_from;
  std::deque<int> open = {start};
  for (; !open.empty(); open.pop_front()) {
    const int rank = open.front();
    const auto it = next.find(rank);
    if (it == next.end()) continue;
    for (int other : it->second) {
      if (!came_from.try_emplace(other, rank).second) continue;
      if (other != start) {
        open.push_back(other);
        continue;
      }
      std::vector<int> circle = {start};
      for (int step = rank; step != start; step = came_from[step]) circle.push_back(step);
      std::reverse(circle.begin() + 1, circle.end());
      return circle;
    }
  }
  return {};
}

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
  const std::vector<int> own = CircleThrough(rank, next);
  return own.empty() ? FindCircle(rank, next) : own;
}

std::vector<int> Roots(const std::vector<Wait>& waits) {
  std::set<int> roots;
  for (const Wait& wait : waits) roots.insert(wait.for_rank);
  for (const Wait& wait : waits) roots.erase(wait.rank);
  return {roots.begin(), roots.end()};
}

}  // namespace npumesh
