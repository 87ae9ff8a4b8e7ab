#include "runtime/base/text/foreign_json.h"

#include <gtest/gtest.h>

#include <string>

namespace npumesh {
namespace {

std::string Nested(size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

TEST(ForeignJson, IsReadUpToItsDepth) {
  EXPECT_EQ(ParseForeignJson(R"({"a": [1, {"b": "c"}]})")["a"][1]["b"], "c");
  EXPECT_EQ(ParseForeignJson("\xef\xbb\xbf{\"a\": 1}")["a"], 1) << "a byte order mark";
  EXPECT_FALSE(ParseForeignJson(Nested(kMostJsonLevels)).is_discarded());
  EXPECT_TRUE(ParseForeignJson(Nested(kMostJsonLevels + 1)).is_discarded());
}

// The writer of this much nesting ran out of stack.
TEST(ForeignJson, AMegabyteOfBracketsIsRefused) {
  EXPECT_TRUE(ParseForeignJson(Nested(500000)).is_discarded());
  EXPECT_TRUE(ParseForeignJson(std::string(1000000, '[')).is_discarded());
}

TEST(ForeignJson, WhatIsNoJsonIsDiscarded) {
  for (const char* text : {"", "{", "{\"a\": }", "nul", "\"\xff\"", "[1] 2"}) {
    EXPECT_TRUE(ParseForeignJson(text).is_discarded()) << text;
  }
}

TEST(ForeignJson, KeysComeInTheOrderOfTheText) {
  std::string keys;
  ParseForeignJson(R"({"b": {"z": 1, "a": [{"c": 2}]}, "a": 3})",
                   [&](int level, const std::string& key) { keys += key + std::to_string(level); });
  EXPECT_EQ(keys, "b1z2a2c4a1");
}

TEST(ForeignJson, NumbersOfPythonBecomeTexts) {
  EXPECT_EQ(QuotePythonNumbers(R"({"NaN": [NaN, -Infinity, Infinity, -1], "a\"NaN": "NaN, \\"})"),
            R"({"NaN": ["NaN", "-Infinity", "Infinity", -1], "a\"NaN": "NaN, \\"})");
  EXPECT_EQ(QuotePythonNumbers("[-1, null]"), "[-1, null]");
  EXPECT_EQ(QuotePythonNumbers("\"\\"), "\"\\") << "damaged";
}

}  // namespace
}  // namespace npumesh
