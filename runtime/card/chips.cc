#include "runtime/card/chips.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "runtime/base/text/nearest_name.h"
#include "runtime/base/text/parse.h"
#include "runtime/base/text/strings.h"

namespace npumesh {
namespace {

// "name  rest" into both.
std::pair<std::string_view, std::string_view> FirstWord(std::string_view line) {
  const size_t end = std::min(line.find(' '), line.size());
  return {line.substr(0, end), Trimmed(line.substr(end))};
}

class Reader {
 public:
  Status Line(std::string_view line) {
    if (line.empty() || line[0] == '#') return Status();
    if (line[0] == '@') return Source(line.substr(1));
    if (line[0] == '[') return Head(line);
    return Fact(line);
  }

  // Families are no chips.
  std::vector<Chip> Take() {
    std::erase_if(chips_, [](const Chip& chip) { return chip.family.empty(); });
    return std::move(chips_);
  }

 private:
  Status Source(std::string_view line) {
    const auto [name, text] = FirstWord(line);
    if (name.empty() || text.empty()) return Error(Code::kCorrupt, "expected @name source");
    if (sources_.emplace(name, text).second) return Status();
    return Error(Code::kCorrupt, "source @{} stands there already", name);
  }

  Status Head(std::string_view line) {
    if (line.back() != ']') return Error(Code::kCorrupt, "expected \"]\" at the end of the line");
    const std::string_view words = line.substr(1, line.size() - 2);
    const size_t colon = std::min(words.find(':'), words.size());
    Chip chip;
    chip.name = Trimmed(words.substr(0, colon));
    if (colon < words.size()) chip.family = Trimmed(words.substr(colon + 1));
    if (Known(chip.name) != nullptr) {
      return Error(Code::kCorrupt, "{} stands there already", chip.name);
    }
    if (!chip.family.empty()) {
      const Chip* const family = Known(chip.family);
      if (family == nullptr || !family->family.empty()) {
        return Error(Code::kCorrupt, "{} is no family above", chip.family);
      }
      chip.facts = family->facts;
    }
    chips_.push_back(std::move(chip));
    return Status();
  }

  Status Fact(std::string_view line) {
    if (chips_.empty()) return Error(Code::kCorrupt, "a fact before the first chip");
    const auto [name, rest] = FirstWord(line);
    const size_t at = rest.rfind('@');
    const std::string_view value = Trimmed(rest.substr(0, at));
    if (at == rest.npos || value.empty()) {
      return Error(Code::kCorrupt, "{}: expected a value and @source", name);
    }
    const auto source = sources_.find(rest.substr(at + 1));
    if (source == sources_.end()) {
      return Error(Code::kCorrupt, "{}: {} is no source above", name, rest.substr(at));
    }
    std::vector<ChipFact>& facts = chips_.back().facts;
    std::erase_if(facts, [&](const ChipFact& fact) { return fact.name == name; });
    facts.push_back({name, value, source->second});
    return Status();
  }

  const Chip* Known(std::string_view name) const {
    const auto found = std::find_if(chips_.begin(), chips_.end(),
                                    [&](const Chip& chip) { return chip.name == name; });
    return found == chips_.end() ? nullptr : &*found;
  }

  std::map<std::string_view, std::string_view> sources_;
  std::vector<Chip> chips_;
};

}  // namespace

const ChipFact* Chip::Find(std::string_view fact) const {
  const auto found =
      std::find_if(facts.begin(), facts.end(), [&](const auto& one) { return one.name == fact; });
  return found == facts.end() ? nullptr : &*found;
}

std::optional<int64_t> Chip::Number(std::string_view fact) const {
  const ChipFact* const found = Find(fact);
  if (found == nullptr) return std::nullopt;
  const Result<uint64_t> number = ParseBytes(found->value, fact);
  return number.ok() ? std::optional(static_cast<int64_t>(*number)) : std::nullopt;
}

Result<ChipTable> ChipTable::Parse(std::string_view text) {
  Reader reader;
  size_t number = 0;
  while (!text.empty()) {
    ++number;
    const size_t end = std::min(text.find('\n'), text.size());
    const Status status = reader.Line(Trimmed(text.substr(0, end)));
    if (!status.ok()) return status.WithContext(fmt::format("chips.card, line {}", number));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  ChipTable table;
  table.chips_ = reader.Take();
  return table;
}

bool ChipTable::Knows(std::string_view name) const {
  return std::any_of(chips_.begin(), chips_.end(), [&](const Chip& chip) { return chip.Is(name); });
}

Result<const Chip*> ChipTable::Find(std::string_view name) const {
  const std::string wanted = LowerCase(name);
  for (const Chip& chip : chips_) {
    const ChipFact* const typical = chip.Find(kStandsFor);
    const bool stands = wanted == chip.family && typical != nullptr && typical->value == chip.name;
    if (wanted == chip.name || stands) return &chip;
  }
  std::vector<std::string_view> names;
  for (const Chip& chip : chips_) names.push_back(chip.name);
  const std::vector<std::string> near = NearestNames(wanted, names, 3);
  return Error(Code::kNotFound, "no chip \"{}\" is known{}; npumesh card ls has all", name,
               near.empty() ? "" : fmt::format(" (similar: {})", fmt::join(near, ", ")));
}

const ChipTable& Chips() {
  static const auto* const table = [] {
    Result<ChipTable> made = ChipTable::Parse(CardChipsText());
    if (!made.ok()) {
      std::fprintf(stderr, "npumesh: %s\n", std::string(made.status().message()).c_str());
      std::abort();
    }
    return new ChipTable(*std::move(made));
  }();
  return *table;
}

}  // namespace npumesh
