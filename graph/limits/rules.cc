#include "graph/limits/rules.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "runtime/base/text/parse.h"
#include "runtime/base/text/strings.h"

namespace npumesh {
namespace {

constexpr int64_t kLargestCode = 999'999;

void AddNames(const Expr& expr, std::set<std::string>& names) {
  if (expr.kind == Expr::Kind::kName) names.insert(expr.text);
  for (const Expr& child : expr.children) AddNames(child, names);
}

// A list of words between commas or blanks.
std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words;
  for (const std::string_view word : Split(text, ", ")) {
    if (!word.empty()) words.emplace_back(word);
  }
  return words;
}

class Reader {
 public:
  Status Line(std::string_view line) {
    const std::string_view words = Trimmed(line);
    if (words.empty() || words[0] == '#') return Status();
    if (line[0] == '[') return Section(words);
    if (line[0] != ' ') return Head(words);
    return in_rule_ ? Field(words) : Definition(words);
  }

  Result<std::vector<CardRule>> Take() {
    NPUMESH_RETURN_IF_ERROR(EndRule());
    return std::move(rules_);
  }

 private:
  Status Section(std::string_view line) {
    NPUMESH_RETURN_IF_ERROR(EndRule());
    if (line.back() != ']') return Error(Code::kCorrupt, "expected \"]\" at the end of the line");
    operators_ = Words(line.substr(1, line.size() - 2));
    if (operators_.empty()) return Error(Code::kCorrupt, "expected names of operators");
    definitions_ = std::make_shared<CardDefinitions>();
    used_.clear();
    return Status();
  }

  Status Definition(std::string_view line) {
    if (definitions_ == nullptr) return Error(Code::kCorrupt, "expected [Operator] first");
    TokenLine tokens(line);
    NPUMESH_ASSIGN_OR_RETURN(const std::string name, tokens.Word());
    NPUMESH_RETURN_IF_ERROR(tokens.Expect("="));
    NPUMESH_ASSIGN_OR_RETURN(Expr expr, ParseExpression(tokens));
    if (!tokens.AtEnd()) return tokens.Wrong("the end of the line");
    AddNames(expr, used_);
    // So that no definition can need itself.
    if (used_.contains(name)) return Error(Code::kCorrupt, "{} is used before it stands", name);
    if (definitions_->emplace(name, std::move(expr)).second) return Status();
    return Error(Code::kCorrupt, "{} stands there already", name);
  }

  // "id: refused 561002 on a, b" or "id: wrong on all".
  Status Head(std::string_view line) {
    NPUMESH_RETURN_IF_ERROR(EndRule());
    if (operators_.empty()) return Error(Code::kCorrupt, "expected [Operator] first");
    const size_t colon = line.find(':');
    const std::vector<std::string> words = Words(line.substr(std::min(colon, line.size() - 1) + 1));
    const bool refused = words.size() > 3 && words[0] == "refused" && words[2] == "on";
    const bool wrong = words.size() > 2 && words[0] == "wrong" && words[1] == "on";
    if (colon == line.npos || !(refused || wrong)) {
      return Error(Code::kCorrupt, "expected \"id: refused CODE on CHIPS\" or \"wrong on CHIPS\"");
    }
    CardRule rule;
    rule.id = line.substr(0, colon);
    rule.operators = operators_;
    rule.definitions = definitions_;
    if (refused) {
      NPUMESH_ASSIGN_OR_RETURN(const int64_t code, ParseInt(words[1], 1, kLargestCode, "code"));
      rule.code = static_cast<int>(code);
    }
    rule.chips.assign(words.begin() + (refused ? 3 : 2), words.end());
    if (rule.chips == std::vector<std::string>{"all"}) rule.chips.clear();
    for (const std::string& chip : rule.chips) {
      if (!Chips().Knows(chip)) return Error(Code::kCorrupt, "there is no chip {}", chip);
    }
    if (std::any_of(rules_.begin(), rules_.end(),
                    [&](const CardRule& known) { return known.id == rule.id; })) {
      return Error(Code::kCorrupt, "rule {} stands there already", rule.id);
    }
    rules_.push_back(std::move(rule));
    in_rule_ = true;
    return Status();
  }

  Status Field(std::string_view line) {
    const size_t end = std::min(line.find(' '), line.size());
    const std::string_view name = line.substr(0, end), text = Trimmed(line.substr(end));
    CardRule& rule = rules_.back();
    std::string* const field = name == "when"     ? &rule.condition
                               : name == "says"   ? &rule.says
                               : name == "mend"   ? &rule.mend
                               : name == "source" ? &rule.source
                                                  : nullptr;
    if (field == nullptr) {
      return Error(Code::kCorrupt, "expected when, says, mend or source in place of \"{}\"", name);
    }
    if (!field->empty()) return Error(Code::kCorrupt, "{} stands there already", name);
    *field = text;
    if (name == "when") {
      NPUMESH_ASSIGN_OR_RETURN(rule.when, ParseExpression(text));
    } else if (name != "source") {
      NPUMESH_RETURN_IF_ERROR(ExpressionsIn(text).status());
    }
    return Status();
  }

  Status EndRule() {
    if (!std::exchange(in_rule_, false)) return Status();
    const CardRule& rule = rules_.back();
    for (const auto& [name, text] :
         {std::pair("when", &rule.condition), std::pair("says", &rule.says),
          std::pair("source", &rule.source)}) {
      if (text->empty()) return Error(Code::kCorrupt, "rule {} above lacks {}", rule.id, name);
    }
    return Status();
  }

  std::vector<std::string> operators_;
  std::shared_ptr<CardDefinitions> definitions_;
  std::set<std::string> used_;  // names in definitions
  bool in_rule_ = false;
  std::vector<CardRule> rules_;
};

}  // namespace

bool CardRule::HoldsFor(const Chip& chip) const {
  return chips.empty() || std::any_of(chips.begin(), chips.end(),
                                      [&](const std::string& name) { return chip.Is(name); });
}

Result<CardRules> CardRules::Parse(std::string_view name, std::string_view text) {
  Reader reader;
  std::string line;  // with what goes on
  size_t number = 0;
  while (!text.empty()) {
    ++number;
    const size_t end = std::min(text.find('\n'), text.size());
    line += text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\\') && !text.empty()) {
      line.erase(line.find_last_not_of(" \\") + 1);
      text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
      line += ' ';
      continue;
    }
    if (const Status status = reader.Line(line); !status.ok()) {
      return status.WithContext(fmt::format("{}, line {}", name, number));
    }
    line.clear();
  }
  CardRules table;
  Result<std::vector<CardRule>> rules = reader.Take();
  if (!rules.ok()) return rules.status().WithContext(fmt::format("{}, line {}", name, number));
  table.rules_ = *std::move(rules);
  return table;
}

std::vector<const CardRule*> CardRules::Of(std::string_view type, const Chip& chip) const {
  std::vector<const CardRule*> found;
  for (const CardRule& rule : rules_) {
    const auto& types = rule.operators;
    const bool has = std::find(types.begin(), types.end(), type) != types.end();
    if (has && rule.HoldsFor(chip)) found.push_back(&rule);
  }
  return found;
}

const CardRules& BuiltinCardRules() {
  static const auto* const table = [] {
    Result<CardRules> made = CardRules::Parse("rules.card", CardRulesText());
    if (!made.ok()) {
      std::fprintf(stderr, "npumesh: %s\n", std::string(made.status().message()).c_str());
      std::abort();
    }
    return new CardRules(*std::move(made));
  }();
  return *table;
}

}  // namespace npumesh
