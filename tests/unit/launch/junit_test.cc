#include "launch/report/junit.h"

#include <gmock/gmock.h>

namespace npumesh {
namespace {

using testing::HasSubstr;

TEST(Junit, CountsAndShowsEveryKindOfCase) {
  const std::string text =
      ToJunit("run a&b", 1.5,
              {{"rank 0", "output 0", JunitCase::Result::kPassed, "", ""},
               {"rank 1", "output 0", JunitCase::Result::kFailed, "2 of 4 elements", "line <1>"},
               {"run", "run", JunitCase::Result::kError, "rank 2 is \"lost\"", ""},
               {"rank 0", "output 1", JunitCase::Result::kSkipped, "not checked", ""}});
  const std::string numbers =
      "tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\" time=\"1.500000\"";
  EXPECT_EQ(text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites " + numbers +
                      ">\n  <testsuite name=\"run a&amp;b\" " + numbers +
                      ">\n"
                      "    <testcase classname=\"rank 0\" name=\"output 0\"/>\n"
                      "    <testcase classname=\"rank 1\" name=\"output 0\">\n"
                      "      <failure message=\"2 of 4 elements\">line &lt;1&gt;</failure>\n"
                      "    </testcase>\n"
                      "    <testcase classname=\"run\" name=\"run\">\n"
                      "      <error message=\"rank 2 is &quot;lost&quot;\"></error>\n"
                      "    </testcase>\n"
                      "    <testcase classname=\"rank 0\" name=\"output 1\">\n"
                      "      <skipped message=\"not checked\"></skipped>\n"
                      "    </testcase>\n"
                      "  </testsuite>\n</testsuites>\n");
}

TEST(Junit, WhatTheSuitePrintedStandsAfterItsCases) {
  EXPECT_THAT(ToJunit("s", 0, {{"g", "n", JunitCase::Result::kPassed, "", ""}}, "warning: <a>\n"),
              HasSubstr("name=\"n\"/>\n    <system-err>warning: &lt;a&gt;"));
}

TEST(Junit, HostileBytesAreReplaced) {
  const auto message = [](std::string text) {
    return ToJunit("s", 0, {{"g", "n", JunitCase::Result::kError, std::move(text), ""}});
  };
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_THAT(message("a\x1b[31m"), HasSubstr("message=\"a" + bad + "[31m\""));
  EXPECT_THAT(message("\xff\xfe"), HasSubstr("message=\"" + bad + bad + "\""));
  EXPECT_THAT(message("gr\xc3\xbc\xc3"), HasSubstr("message=\"gr\xc3\xbc" + bad + "\""));
  EXPECT_THAT(message("\xc0\xaf"), HasSubstr("message=\"" + bad + bad + "\""));
  EXPECT_THAT(message("one\ntwo"), HasSubstr("message=\"one&#10;two\""));
}

}  // namespace
}  // namespace npumesh
