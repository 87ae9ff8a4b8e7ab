#include "runtime/base/text/nearest_name.h"

#include <algorithm>
#include <utility>

#include "runtime/base/text/strings.h"

namespace npumesh {
namespace {

// Levenshtein distance.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replace, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

// Empty when there is no dot.
std::string_view LastPart(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == name.npos ? std::string_view() : name.substr(dot + 1);
}

}  // namespace

std::vector<std::string> NearestNames(std::string_view wanted,
                                      std::span<const std::string_view> names, size_t most) {
  const std::string lower = LowerCase(wanted.substr(0, 64));
  const std::string part = LowerCase(LastPart(lower).empty() ? lower : LastPart(lower));
  const size_t limit = std::max<size_t>(2, lower.size() / 3);
  const size_t part_limit = std::max<size_t>(1, part.size() / 4);
  std::vector<std::pair<size_t, std::string>> ranked;
  for (const std::string_view name : names) {
    const size_t distance = Distance(lower, LowerCase(name));
    const std::string last = LowerCase(LastPart(name));
    if (distance <= limit) {
      ranked.emplace_back(distance, name);
    } else if (!last.empty() && Distance(part, last) <= part_limit) {
      ranked.emplace_back(limit + Distance(part, last), name);
    }
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> nearest;
  for (const auto& [distance, name] : ranked) {
    if (nearest.size() == most || distance > 2 * ranked[0].first + 1) break;
    nearest.push_back(name);
  }
  return nearest;
}

}  // namespace npumesh
