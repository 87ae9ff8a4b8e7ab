// The table of chips, the variables that name one, and what findings become.
#include "runtime/card/chips.h"

#include <gmock/gmock.h>

#include <map>

#include "runtime/card/findings.h"

namespace npumesh {
namespace {

using ::testing::HasSubstr;

std::string Refusal(std::string_view text) {
  const Result<ChipTable> table = ChipTable::Parse(text);
  return table.ok() ? "" : std::string(table.status().message());
}

TEST(Chips, EveryFactOfEveryChipHasASource) {
  ASSERT_GT(Chips().chips().size(), 10u);
  for (const Chip& chip : Chips().chips()) {
    for (const ChipFact& fact : chip.facts) EXPECT_FALSE(fact.source.empty()) << fact.name;
    for (const std::string_view fact :
         {"streams", "events", "notifies", "cube_cores", "vector_cores"}) {
      if (chip.family == "ascend910" && fact == "vector_cores") continue;  // it has none
      EXPECT_GT(chip.Number(fact).value_or(0), 0) << chip.name << " " << fact;
    }
    EXPECT_TRUE(Chips().Find(chip.family).ok()) << chip.family;
  }
}

TEST(Chips, AChipHasWhatItsFamilyHasAndItsOwnLinesWin) {
  const Result<ChipTable> table = ChipTable::Parse(
      "@page a page\n@other another\n[family]\nstreams 8 @page\nevents 1K @page\nstands_for one "
      "@page\n"
      "[one : family]\nstreams 4 @other\n[two : family]\nhbm 2G @page\n");
  ASSERT_TRUE(table.ok()) << table.status().message();
  ASSERT_EQ(table->chips().size(), 2u);
  const Chip& one = **table->Find("ONE");
  EXPECT_EQ(one.Number("streams"), 4);
  EXPECT_EQ(one.Find("streams")->source, "another");
  EXPECT_EQ(one.Number("events"), 1024);
  EXPECT_EQ(one.Number("hbm"), std::nullopt);
  EXPECT_EQ((*table->Find("family"))->name, "one");
  EXPECT_EQ((*table->Find("two"))->Number("hbm"), int64_t{2} << 30);
  EXPECT_TRUE(one.Is("family"));
  EXPECT_FALSE(one.Is("two"));
}

TEST(Chips, WhatIsNotKnownIsNamedWithWhatLooksAlike) {
  const Result<const Chip*> chip = Chips().Find("ascend910b33");
  ASSERT_FALSE(chip.ok());
  EXPECT_THAT(chip.status().message(), HasSubstr("ascend910b3"));
}

TEST(Chips, WrongLinesAreNamed) {
  EXPECT_THAT(Refusal("streams 8 @page"), HasSubstr("line 1: a fact before the first chip"));
  EXPECT_THAT(Refusal("[a]\nstreams 8\n"), HasSubstr("expected a value and @source"));
  EXPECT_THAT(Refusal("[a]\nstreams 8 @page\n"), HasSubstr("@page is no source above"));
  EXPECT_THAT(Refusal("[a : b]\n"), HasSubstr("b is no family above"));
  EXPECT_THAT(Refusal("[a]\n[a]\n"), HasSubstr("line 2: a stands there already"));
  EXPECT_THAT(Refusal("[a\n"), HasSubstr("expected \"]\""));
  EXPECT_THAT(Refusal("@a x\n@a y\n"), HasSubstr("@a stands there already"));
}

Result<Card> CardOf(const std::map<std::string, std::string>& variables) {
  return Card::From([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Card, WithoutVariablesNothingIsChecked) {
  const Result<Card> card = CardOf({});
  ASSERT_TRUE(card.ok());
  EXPECT_FALSE(*card);
}

TEST(Card, IsWhatTheVariablesSay) {
  const Result<Card> card =
      CardOf({{"NPUMESH_CARD", "Ascend910B3"}, {"NPUMESH_CARD_CHECK", "fail"}});
  ASSERT_TRUE(card.ok()) << card.status().message();
  EXPECT_EQ(card->chip->name, "ascend910b3");
  EXPECT_TRUE(card->fails);
  EXPECT_THAT(CardOf({{"NPUMESH_CARD", "rtx"}}).status().message(), HasSubstr("NPUMESH_CARD"));
  EXPECT_THAT(CardOf({{"NPUMESH_CARD_CHECK", "maybe"}}).status().message(),
              HasSubstr("expected warn or fail"));
}

CardFinding Found(int code) {
  return {"a-rule", "node \"n\" (Op)", "n",     "it is 8; at most 4 are taken",
          code,     "take 4",          "a page"};
}

TEST(CardFindings, AreKeptOnceAndFailOnlyWhereTheCardRefuses) {
  CardFindings warns(Card{*Chips().Find("ascend910b3")}, /*says=*/false);
  EXPECT_TRUE(warns.Add(Found(561002)).ok());
  EXPECT_TRUE(warns.Add(Found(561002)).ok());
  EXPECT_EQ(warns.all().size(), 1u);
  CardFindings fails(Card{*Chips().Find("ascend910b3"), true}, /*says=*/false);
  EXPECT_TRUE(fails.Add(Found(0)).ok());
  const Status refused = fails.Add(Found(561002));
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_EQ(refused.message(),
            "ascend910b3 refuses node \"n\" (Op): it is 8; at most 4 are taken; error code 561002; "
            "take 4 "
            "(rule a-rule; a page)");
  EXPECT_FALSE(fails.Add(Found(561002)).ok()) << "each time";
}

}  // namespace
}  // namespace npumesh
