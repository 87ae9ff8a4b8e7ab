#include "graph/ops/op_registry.h"

#include <algorithm>
#include <cassert>
#include <cctype>

namespace npumesh {
namespace {

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

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

}  // namespace

void OpRegistry::Add(Operator op) {
  std::string type(op.schema.type);
  [[maybe_unused]] const bool added = ops_.emplace(std::move(type), std::move(op)).second;
  assert(added && "operator registered twice");
}

void OpRegistry::Alias(std::string_view type, std::string_view same_as) {
  const Operator* original = Find(same_as);
  assert(original != nullptr);
  Operator alias = *original;
  alias.schema.type = type;
  Add(std::move(alias));
}

const Operator* OpRegistry::Find(std::string_view type) const {
  const auto it = ops_.find(type);
  return it == ops_.end() ? nullptr : &it->second;
}

std::vector<std::string> OpRegistry::Nearest(std::string_view type, int most) const {
  const std::string wanted = Lower(type.substr(0, 64));
  std::vector<std::pair<size_t, std::string>> ranked;
  for (const auto& [name, op] : ops_) {
    const size_t distance = Distance(wanted, Lower(name));
    if (distance <= std::max<size_t>(2, wanted.size() / 3)) ranked.emplace_back(distance, name);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> names;
  for (const auto& [distance, name] : ranked) {
    if (names.size() == static_cast<size_t>(most)) break;
    names.push_back(name);
  }
  return names;
}

std::vector<std::string_view> OpRegistry::Types() const {
  std::vector<std::string_view> types;
  for (const auto& [name, op] : ops_) types.push_back(name);
  return types;
}

}  // namespace npumesh
