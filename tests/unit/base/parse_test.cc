#include "runtime/base/text/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

using testing::HasSubstr;

TEST(ParseInt, Good) {
  struct {
    std::string_view text;
    int64_t value;
  } const cases[] = {{"0", 0},
                     {"-5", -5},
                     {"007", 7},
                     {"9223372036854775807", std::numeric_limits<int64_t>::max()},
                     {"-9223372036854775808", std::numeric_limits<int64_t>::min()}};
  for (const auto& [text, value] : cases) {
    const auto parsed = ParseInt(text, std::numeric_limits<int64_t>::min(),
                                 std::numeric_limits<int64_t>::max(), "--n");
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(*parsed, value);
  }
}

TEST(ParseInt, Bad) {
  for (const std::string_view text : {"", " 1", "1 ", "+1", "0x10", "1e3", "1.0", "one", "-", "--1",
                                      "9223372036854775808", "11", "-11", "1\n"}) {
    const auto parsed = ParseInt(text, -10, 10, "--n");
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.status().code(), Code::kInvalidArgument);
    EXPECT_EQ(parsed.status().message(),
              fmt::format("--n: expected an integer in [-10, 10], got \"{}\"", Printable(text)));
  }
  EXPECT_FALSE(ParseInt(std::string_view("1\0", 2), 0, 10, "--n").ok());
  EXPECT_FALSE(ParseInt({}, 0, 10, "--n").ok());
}

TEST(ParseDouble, Good) {
  EXPECT_EQ(*ParseDouble("0.5", 0, 1, "--p"), 0.5);
  EXPECT_EQ(*ParseDouble("-1e-3", -1, 1, "--p"), -0.001);
  EXPECT_EQ(*ParseDouble("1", 0, 1, "--p"), 1.0);
}

TEST(ParseDouble, Bad) {
  for (const std::string_view text :
       {"", " 0.5", "0.5 ", "0,5", "nan", "inf", "-inf", "1.1", "-0.1", "1e999", "0.5f", "."}) {
    const auto parsed = ParseDouble(text, 0, 1, "--p");
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_THAT(parsed.status().message(), HasSubstr("--p: expected a number in [0, 1]"));
  }
}

TEST(ParseBool, Table) {
  for (const std::string_view yes : {"1", "true", "TRUE", "on", "On", "yes", "YES"}) {
    EXPECT_TRUE(*ParseBool(yes, "--b")) << yes;
  }
  for (const std::string_view no : {"0", "false", "False", "off", "no"}) {
    EXPECT_FALSE(*ParseBool(no, "--b")) << no;
  }
  for (const std::string_view bad : {"", "2", "t", "enable", " 1", "truee"}) {
    EXPECT_FALSE(ParseBool(bad, "--b").ok()) << bad;
  }
}

TEST(ParseBytes, Good) {
  struct {
    std::string_view text;
    uint64_t value;
  } const cases[] = {{"0", 0},
                     {"512", 512},
                     {"512b", 512},
                     {"64K", 64 << 10},
                     {"64KiB", 64 << 10},
                     {"64kb", 64 << 10},
                     {"200M", uint64_t{200} << 20},
                     {"2G", uint64_t{2} << 30},
                     {"1T", uint64_t{1} << 40},
                     {"18446744073709551615", ~uint64_t{0}},
                     {"16777215T", uint64_t{16777215} << 40}};
  for (const auto& [text, value] : cases) {
    const auto parsed = ParseBytes(text, "--bytes");
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(*parsed, value) << text;
  }
}

TEST(ParseBytes, Bad) {
  for (const std::string_view text : {"", "-1", "1 K", " 1", "1P", "1KK", "1Kib2", "1.5G", "K",
                                      "bb", "18446744073709551616", "16777216T", "0x10"}) {
    const auto parsed = ParseBytes(text, "--bytes");
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_THAT(parsed.status().message(), HasSubstr("--bytes: expected bytes such as"));
  }
}

}  // namespace
}  // namespace npumesh
