#include "launch/report/table.h"

#include <gmock/gmock.h>

#include "launch/report/json_parts.h"

namespace npumesh {
namespace {

using nlohmann::json;

const json kRows = json::array({{{"name", "a"}, {"count", 7}, {"times", {{"mean", 1.25}}}},
                                {{"name", "b\n"}, {"count", 1234567}, {"times", json()}}});

TEST(TableText, NumbersStandAtTheRightAndTextsAtTheLeft) {
  const TableForm table{.columns = {{"count", 6, "count"},
                                    {"name", -6, "name"},
                                    {"ms", 5, "times/mean", WithDigits(1, 10)},
                                    {"end", 0, "name"}},
                        .before = "  "};
  EXPECT_EQ(TableText(table, kRows),
            "   count  name      ms  end\n"
            "       7  a       12.5  a\n"
            "  1234567  b\\n        -  b\\n\n");
  EXPECT_EQ(TableText(table, json::array()), HeadLine(table));
}

TEST(TableText, LeavesOutColumnsAndBlanksAtTheEnd) {
  const auto mark = [](const json& row, std::string_view key) {
    return MemberOf(row, key) == 7 ? "<-" : "";
  };
  const TableForm table{
      .columns = {{"", -4, "name"}, {"unseen", 9, "count", AsItIs, false}, {"", 0, "count", mark}},
      .between = " | "};
  EXPECT_EQ(TableText(table, kRows), "a    | <-\nb\\n  |\n");
}

TEST(TableText, WhatIsNotThereIsADash) {
  EXPECT_EQ(AsItIs(kRows[0], "absent"), "-");
  EXPECT_EQ(AsItIs(kRows[1], "times/mean"), "-");
  EXPECT_TRUE(MemberOf(kRows[0], "name/first").is_null());
  EXPECT_EQ(AsName(kRows[1], "times/mean"), "-");
}

TEST(JsonParts, NothingIsNull) {
  EXPECT_EQ(OrNull("x"), "x");
  EXPECT_TRUE(OrNull("").is_null());
  EXPECT_EQ(FromZero(0), 0);
  EXPECT_TRUE(FromZero(-1).is_null());
  EXPECT_EQ(ListOf(std::vector<int>{1, 2}, [](int n) { return 2 * n; }), json({2, 4}));
  EXPECT_EQ(ListOf(std::vector<int>(), FromZero).dump(), "[]");
}

}  // namespace
}  // namespace npumesh
