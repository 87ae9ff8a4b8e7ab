#include "collectives/algorithms/selection.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "collectives/algorithms/algorithm.h"
#include "runtime/base/text/strings.h"

namespace npumesh {
namespace {

using Kind = CollectiveKind;

// The operators that HCCL_ALGO names.
constexpr std::array<Kind, Selection::kOperators> kOperatorKinds = {
    Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce, Kind::kBroadcast,
    Kind::kReduce,    Kind::kScatter,       Kind::kAllToAll};

// A name of the vendor's and the row that it means here; empty: none.
struct LevelName {
  std::string_view name;
  std::string_view row;
};
constexpr std::array<LevelName, 1> kLevel0 = {{{"NA", ""}}};
constexpr std::array<LevelName, 9> kLevel1 = {{{"NA", ""},
                                               {"ring", "ring"},
                                               {"H-D_R", "H-D_R"},
                                               {"NHR", "NHR"},
                                               {"NHR_V1", "NHR"},
                                               {"NB", ""},
                                               {"AHC", ""},
                                               {"pipeline", ""},
                                               {"pairwise", ""}}};
constexpr std::array<LevelName, 6> kLevel2 = {
    {{"NA", ""}, {"ring", ""}, {"H-D_R", ""}, {"NHR", ""}, {"NB", ""}, {"pipeline", ""}}};

std::span<const LevelName> LevelNames(char digit) {
  switch (digit) {
    case '0':
      return kLevel0;
    case '1':
      return kLevel1;
    case '2':
      return kLevel2;
    default:
      return {};
  }
}

std::string NamesOf(std::span<const LevelName> names) {
  std::string text;
  for (const LevelName& entry : names) fmt::format_to(std::back_inserter(text), " {}", entry.name);
  return text;
}

// The place of the operator whose choice holds for a kind; nullopt: HCCL_ALGO cannot name it.
std::optional<size_t> OperatorOf(CollectiveKind kind) {
  const auto* found =
      std::find(kOperatorKinds.begin(), kOperatorKinds.end(), TraitsOf(kind).chosen_as);
  if (found == kOperatorKinds.end()) return std::nullopt;
  return static_cast<size_t>(found - kOperatorKinds.begin());
}

std::string OperatorNames() {
  std::vector<std::string_view> names;
  for (const CollectiveKind kind : kOperatorKinds) names.push_back(Name(kind));
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

Result<Selection::Choice> Selection::ParseChoice(std::string_view text,
                                                 std::span<const std::string_view> rows) {
  Choice choice;
  if (text.find(':') == std::string_view::npos) {
    if (std::find(rows.begin(), rows.end(), text) == rows.end()) {
      return Error(Code::kInvalidArgument,
                   "\"{}\" is no algorithm; expected {}, or levels as in "
                   "\"level0:NA;level1:ring\"",
                   text, fmt::join(rows, ", "));
    }
    choice.row = text;
    return choice;
  }
  std::string seen;
  for (const std::string_view level : Split(text, ";")) {
    const bool named = level.size() > 7 && level.starts_with("level") && level[6] == ':';
    const std::span<const LevelName> names = LevelNames(named ? level[5] : ' ');
    if (names.empty()) {
      return Error(Code::kInvalidArgument,
                   "\"{}\" is no level; expected level0:, level1: or level2: and a name", level);
    }
    if (seen.find(level[5]) != std::string::npos) {
      return Error(Code::kInvalidArgument, "level{} stands twice", level[5]);
    }
    seen += level[5];
    const std::string_view name = level.substr(7);
    const auto it = std::find_if(names.begin(), names.end(),
                                 [&](const LevelName& entry) { return entry.name == name; });
    if (it == names.end()) {
      return Error(Code::kInvalidArgument, "level{} is \"{}\"; expected one of{}", level[5], name,
                   NamesOf(names));
    }
    if (level[5] == '1') choice.level1_row = it->row;
  }
  return choice;
}

Result<Selection> Selection::Parse(std::string_view text, std::string_view source) {
  return Parse(text, source, AlgorithmNames());
}

Result<Selection> Selection::Parse(std::string_view text, std::string_view source,
                                   std::span<const std::string_view> rows) {
  Selection selection;
  if (text.empty()) return selection;
  const auto where = [&](const Status& status) {
    return status.WithContext(fmt::format("{}=\"{}\"", source, text));
  };
  if (text.find('=') == std::string_view::npos) {
    Result<Choice> choice = ParseChoice(text, rows);
    if (!choice.ok()) return where(choice.status());
    selection.choices_.fill(*choice);
    return selection;
  }
  std::array<bool, kOperators> seen{};
  for (const std::string_view part : Split(text, "/")) {
    const size_t equals = part.find('=');
    const std::string_view name = part.substr(0, equals);
    const auto* const named = std::find_if(kOperatorKinds.begin(), kOperatorKinds.end(),
                                           [&](CollectiveKind kind) { return Name(kind) == name; });
    if (equals == std::string_view::npos || named == kOperatorKinds.end()) {
      return where(Error(Code::kInvalidArgument,
                         "\"{}\": expected an operator ({}), \"=\" and its algorithm", part,
                         OperatorNames()));
    }
    const auto index = static_cast<size_t>(named - kOperatorKinds.begin());
    if (seen[index]) return where(Error(Code::kInvalidArgument, "{} stands twice", name));
    seen[index] = true;
    Result<Choice> choice = ParseChoice(part.substr(equals + 1), rows);
    if (!choice.ok()) return where(choice.status());
    selection.choices_[index] = *std::move(choice);
  }
  return selection;
}

std::string_view Selection::RowFor(CollectiveKind kind, bool several_nodes) const {
  const std::optional<size_t> index = OperatorOf(kind);
  if (!index) return "";
  const Choice& choice = choices_[*index];
  return several_nodes && !choice.level1_row.empty() ? choice.level1_row : choice.row;
}

}  // namespace npumesh
