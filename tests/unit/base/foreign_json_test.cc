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

}  // namespace
}  // namespace npumesh
