// The rules of cards: what is refused of their text, and every rule of ours by its cases.
//
// rule_cases.txt has calls that a chip takes, and below each what has to be changed so that a rule
// speaks:
//
//   [ascend910b3] MoeGatingTopK x=float32[16,256] k=8
//     x=float32[16,4096]   -> mgtk-experts
//     bias=float32[8] -k   -> mgtk-bias mgtk-k
//
// A word takes the place of its namesake, -name takes it away, x*3=T[2] stands for x0=, x1= and
// x2=, and
// @chip asks another chip.
#include "graph/limits/rules.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "graph/ops/builtin_ops.h"
#include "launch/card/call_check.h"
#include "runtime/base/text/parse.h"
#include "runtime/base/text/strings.h"

namespace npumesh {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

std::string RefusalOfRules(std::string_view text) {
  const Result<CardRules> rules = CardRules::Parse("rules", text);
  return rules.ok() ? "" : std::string(rules.status().message());
}

constexpr std::string_view kRule =
    "[Add]\n"
    "  n = rank(x1)\n"
    "add-rank: refused 561002 on ascend910b, ascend310p3\n"
    "  when   n > 8 and \\\n"
    "         n < 20\n"
    "  says   x1 has {n} dimensions\n"
    "  mend   join some\n"
    "  source a page\n";

TEST(CardRules, AreReadFromText) {
  const Result<CardRules> rules = CardRules::Parse("rules", kRule);
  ASSERT_TRUE(rules.ok()) << rules.status().message();
  ASSERT_EQ(rules->rules().size(), 1u);
  const CardRule& rule = rules->rules()[0];
  EXPECT_EQ(rule.id, "add-rank");
  EXPECT_EQ(rule.code, 561002);
  EXPECT_EQ(rule.operators, Words{"Add"});
  EXPECT_EQ(rule.says, "x1 has {n} dimensions");
  EXPECT_EQ(rule.source, "a page");
  EXPECT_TRUE(rule.HoldsFor(**Chips().Find("ascend910b4")));
  EXPECT_TRUE(rule.HoldsFor(**Chips().Find("ascend310p3")));
  EXPECT_FALSE(rule.HoldsFor(**Chips().Find("ascend310p1")));
  EXPECT_EQ(rules->Of("Add", **Chips().Find("ascend910b1")).size(), 1u);
  EXPECT_TRUE(rules->Of("Sub", **Chips().Find("ascend910b1")).empty());
}

TEST(CardRules, WrongLinesAreNamed) {
  const auto with = [](std::string_view line) { return std::string(kRule) + std::string(line); };
  EXPECT_THAT(RefusalOfRules("a: wrong on all\n"), HasSubstr("line 1: expected [Operator] first"));
  EXPECT_THAT(RefusalOfRules("[Add\n"), HasSubstr("expected \"]\""));
  EXPECT_THAT(RefusalOfRules("[]\n"), HasSubstr("expected names of operators"));
  EXPECT_THAT(RefusalOfRules("[Add]\n  n == 2\n"), HasSubstr("line 2: expected \"=\""));
  EXPECT_THAT(RefusalOfRules("[Add]\n  n = m\n  m = n\n"), HasSubstr("m is used before it stands"));
  EXPECT_THAT(RefusalOfRules("[Add]\n  n = n + 1\n"), HasSubstr("n is used before it stands"));
  EXPECT_THAT(RefusalOfRules("[Add]\na: refused on all\n"), HasSubstr("refused CODE on CHIPS"));
  EXPECT_THAT(RefusalOfRules("[Add]\na: refused x on all\n"), HasSubstr("code"));
  EXPECT_THAT(RefusalOfRules("[Add]\na: wrong on rtx\n"), HasSubstr("there is no chip rtx"));
  EXPECT_THAT(RefusalOfRules("[Add]\na: wrong on all\n  when 1\n  says x\n"),
              HasSubstr("lacks source"));
  EXPECT_THAT(RefusalOfRules("[Add]\na: wrong on all\n  because 1\n"),
              HasSubstr("in place of \"because\""));
  EXPECT_THAT(RefusalOfRules("[Add]\na: wrong on all\n  says {n\n"), HasSubstr("without"));
  EXPECT_THAT(RefusalOfRules("[Add]\na: wrong on all\n  when (n\n"), HasSubstr("line 3: expected"));
  EXPECT_THAT(RefusalOfRules(with("  mend again\n")), HasSubstr("mend stands there already"));
  EXPECT_THAT(RefusalOfRules(with("add-rank: wrong on all\n")),
              HasSubstr("add-rank stands there already"));
}

// Texts with lines and bytes in other places are read or refused.
TEST(CardRules, AnyTextIsReadOrRefused) {
  const std::string_view whole = CardRulesText().substr(0, 4000);
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    std::string text(whole.substr(random() % 2000, random() % 2000));
    for (uint64_t i = random() % 8; i > 0 && !text.empty(); --i) {
      text[random() % text.size()] = "\n[]{}=:(x\\ 1"[random() % 12];
    }
    static_cast<void>(RefusalOfRules(text));
  }
}

TEST(CardRules, OursAskOnlyForWhatTheirOperatorsHave) {
  for (const CardRule& rule : BuiltinCardRules().rules()) {
    for (const std::string& type : rule.operators) {
      const Operator* const op = BuiltinOps().Find(type);
      ASSERT_NE(op, nullptr) << rule.id << ": " << type;
      std::vector<Expr> exprs = {rule.when};
      for (const auto& [name, expr] : *rule.definitions) exprs.push_back(expr);
      for (const std::string& text : {rule.says, rule.mend}) {
        Result<std::vector<Expr>> in_text = ExpressionsIn(text);
        ASSERT_TRUE(in_text.ok()) << rule.id;
        exprs.insert(exprs.end(), in_text->begin(), in_text->end());
      }
      for (const Expr& expr : exprs) {
        const Status status = CheckCondition(expr, op->schema, *rule.definitions);
        EXPECT_TRUE(status.ok()) << rule.id << ": " << status.message();
      }
    }
  }
}

// ---- Cases ----

std::string NameOf(std::string_view word) {
  return std::string(
      word.substr(word[0] == '-' ? 1 : 0, word.find('=') - (word[0] == '-' ? 1 : 0)));
}

Words WordsOf(std::string_view text) {
  Words words;
  std::istringstream stream{std::string(text)};
  for (std::string word; stream >> word;) {
    const size_t star = word.find('*'), equals = word.find('=');
    if (star == word.npos || star > equals) {
      words.push_back(word);
      continue;
    }
    const auto count = ParseInt(word.substr(star + 1, equals - star - 1), 0, INT32_MAX, "tensors");
    EXPECT_TRUE(count.ok()) << word;
    for (int64_t i = 0; count.ok() && i < *count; ++i) {
      words.push_back(word.substr(0, star) + std::to_string(i) + word.substr(equals));
    }
  }
  return words;
}

Words Changed(Words words, const Words& changes) {
  for (const std::string& change : changes) {
    const auto same = std::find_if(words.begin() + 1, words.end(), [&](const std::string& word) {
      return NameOf(word) == NameOf(change);
    });
    if (change[0] == '-') {
      if (same != words.end()) words.erase(same);
    } else if (same != words.end()) {
      *same = change;
    } else {
      words.push_back(change);
    }
  }
  return words;
}

std::string Joined(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// Rules that a call of the operator could have broken on the chip. One without a condition, "this
// chip has no kernel of it", says nothing on chips that it does not hold for.
std::set<std::string> RulesAsked(const std::string& type, const Chip& chip) {
  std::set<std::string> asked;
  for (const CardRule& rule : BuiltinCardRules().rules()) {
    const bool is_of = testing::Value(rule.operators, testing::Contains(type));
    if (is_of && rule.HoldsFor(chip) != (rule.condition == "true")) asked.insert(rule.id);
  }
  return asked;
}

std::set<std::string> RulesThatSpeak(const Words& call, const Chip& chip) {
  const Result<std::vector<CardFinding>> found = CheckCall(Joined(call), chip, BuiltinOps());
  EXPECT_TRUE(found.ok()) << Joined(call) << ": " << found.status().message();
  std::set<std::string> rules;
  if (!found.ok()) return rules;
  for (const CardFinding& finding : *found) {
    EXPECT_EQ(finding.text.find('{'), finding.text.npos) << finding.text;
    EXPECT_EQ(finding.text.find('?'), finding.text.npos) << finding.rule << ": " << finding.text;
    rules.insert(finding.rule);
  }
  return rules;
}

TEST(CardRules, EveryRuleSpeaksWhereItShouldAndNowhereElse) {
  std::ifstream file(NPUMESH_RULE_CASES);
  ASSERT_TRUE(file);
  std::set<std::string> spoke, silent;
  const Chip* chip = nullptr;
  Words base;
  std::string line, next;
  int number = 0;
  while (std::getline(file, line)) {
    ++number;
    while (line.ends_with('\\') && std::getline(file, next)) {
      line.pop_back();
      line += next;
      ++number;
    }
    if (Trimmed(line).empty() || line[0] == '#') continue;
    SCOPED_TRACE(testing::Message() << "rule_cases.txt, line " << number);
    if (line[0] == '[') {
      const size_t close = line.find(']');
      const Result<const Chip*> named = Chips().Find(line.substr(1, close - 1));
      ASSERT_TRUE(named.ok()) << named.status().message();
      chip = *named;
      base = WordsOf(line.substr(close + 1));
      EXPECT_THAT(RulesThatSpeak(base, *chip), testing::IsEmpty()) << Joined(base);
      silent.merge(RulesAsked(base[0], *chip));
      continue;
    }
    const size_t arrow = line.find("->");
    ASSERT_NE(arrow, line.npos) << line;
    const Words expected = WordsOf(line.substr(arrow + 2));
    Words changes = WordsOf(line.substr(0, arrow));
    const Chip* asked = chip;
    if (!changes.empty() && changes[0][0] == '@') {
      asked = *Chips().Find(changes[0].substr(1));
      changes.erase(changes.begin());
    }
    const std::set<std::string> rules = RulesThatSpeak(Changed(base, changes), *asked);
    EXPECT_EQ(rules, std::set<std::string>(expected.begin(), expected.end())) << line;
    spoke.insert(rules.begin(), rules.end());
  }
  for (const CardRule& rule : BuiltinCardRules().rules()) {
    EXPECT_TRUE(spoke.contains(rule.id)) << rule.id << " has no case that it speaks of";
    EXPECT_TRUE(silent.contains(rule.id)) << rule.id << " has no case of which it says nothing";
  }
}

TEST(CheckCall, SaysWhatIsWrongWithItsText) {
  const Chip& chip = **Chips().Find("ascend910b3");
  const auto error = [&](std::string_view text) {
    return std::string(CheckCall(text, chip, BuiltinOps()).status().message());
  };
  EXPECT_THAT(error(""), HasSubstr("a call is empty"));
  EXPECT_THAT(error("MoeGatingTopKK x=float32[1,2]"), HasSubstr("MoeGatingTopK"));
  EXPECT_THAT(error("MoeGatingTopK x"), HasSubstr("expected NAME=VALUE"));
  EXPECT_THAT(error("MoeGatingTopK y=1"), HasSubstr("has no input or attribute y"));
  EXPECT_THAT(error("MoeGatingTopK x=float32"), HasSubstr("expected TYPE[DIMS]"));
  EXPECT_THAT(error("MoeGatingTopK x=float99[1]"), HasSubstr("expected TYPE[DIMS]"));
  EXPECT_THAT(error("MoeGatingTopK x=float32[1,2] k=k"), HasSubstr("no value of an attribute"));
  EXPECT_THAT(error("MoeGatingTopK x=float32[1,2]{1,2} k=1"), HasSubstr("int32 or int64"));
  EXPECT_THAT(error("MoeGatingTopK x=int64[3]{1,2} k=1"), HasSubstr("has not 2 elements"));
  EXPECT_THAT(error("MoeGatingTopK k=1"), HasSubstr("x"));
}

TEST(CheckCall, SaysNothingOfOpenDimensionsUnlessTheRestDecides) {
  const Chip& chip = **Chips().Find("ascend910b3");
  const Words open = {"MoeGatingTopK", "x=float32[-1,-1]", "k=8"};
  EXPECT_THAT(RulesThatSpeak(open, chip), testing::IsEmpty());
  EXPECT_THAT(RulesThatSpeak(Changed(open, {"x=float32[-1,4096]"}), chip),
              testing::ElementsAre("mgtk-experts"));
}

}  // namespace
}  // namespace npumesh
