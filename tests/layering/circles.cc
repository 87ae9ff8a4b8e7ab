#include "tests/layering/circles.h"

#include <algorithm>
#include <deque>

namespace npumesh {
namespace {

// The shortest way from a name back to it, itself first and last; empty: there is none. Names
// before it are left out, so that each circle belongs to the least of its names.
std::vector<std::string> WayBack(const std::string& start, const Arrows& arrows) {
  std::map<std::string, std::string> came_from;
  std::deque<std::string> next = {start};
  while (!next.empty()) {
    const std::string at = next.front();
    next.pop_front();
    for (const auto& [target, line] : arrows.at(at)) {
      if (target < start || !came_from.emplace(target, at).second) continue;
      next.push_back(target);
      if (target != start) continue;
      std::vector<std::string> way = {start};
      for (std::string back = at; back != start; back = came_from[back]) way.push_back(back);
      way.push_back(start);
      std::reverse(way.begin(), way.end());
      return way;
    }
  }
  return {};
}

}  // namespace

std::vector<Circle> CirclesOf(const Arrows& arrows) {
  std::vector<Circle> circles;
  for (const auto& [name, targets] : arrows) {
    const std::vector<std::string> way = WayBack(name, arrows);
    if (way.empty()) continue;
    Circle circle = {name, targets.at(way[1]), name};
    for (size_t i = 1; i < way.size(); ++i) circle.way += " -> " + way[i];
    circles.push_back(circle);
  }
  return circles;
}

}  // namespace npumesh
