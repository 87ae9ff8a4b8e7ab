#include "launch/doctor/host_report.h"

#include <gmock/gmock.h>

#include "launch/report/command_report.h"

namespace npumesh {
namespace {

const Finding kGood = {"umask", Severity::kInfo, "0027", ""};
const Finding kAdvice = {"account", Severity::kAdvice, "root", "use another"};
const Finding kWrong = {"limits", Severity::kError, "3 open files", "ulimit -n 256"};

TEST(Finding, WhatIsWrongComesFirstWithItsRemedy) {
  EXPECT_EQ(ToText({{"a", {kGood, kAdvice, kWrong}}}),
            "wrong   limits         3 open files\n"
            "                       mend: ulimit -n 256\n"
            "advice  account        root\n"
            "                       mend: use another\n"
            "ok      umask          0027\n");
}

TEST(Finding, HostsShareALineWhenTheyAgree) {
  EXPECT_EQ(ToText({{"a", {kGood}}, {"b", {kGood}}, {"c", {kWrong}}}),
            "wrong   limits         3 open files (c)\n"
            "                       mend: ulimit -n 256\n"
            "ok      umask          0027 (a, b)\n");
  EXPECT_FALSE(AnyWrong({{"a", {kGood, kAdvice}}}));
  EXPECT_TRUE(AnyWrong({{"a", {kGood}}, {"c", {kWrong}}}));
}

TEST(Finding, JsonHasOneForEachSubjectOfEachHost) {
  const CommandReport report = ToReport({{"a", {kGood, kAdvice}}, {"b", {kWrong}}});
  EXPECT_EQ(report.verdict, "wrong");
  EXPECT_EQ(report.details.at("hosts"), nlohmann::json({"a", "b"}));
  ASSERT_EQ(report.findings.size(), 3u);
  EXPECT_EQ(report.findings[0], nlohmann::json({{"severity", "info"},
                                                {"text", "0027"},
                                                {"host", "a"},
                                                {"subject", "umask"},
                                                {"mend", nullptr}}));
  EXPECT_EQ(report.findings[1].at("severity"), "advice");
  EXPECT_EQ(report.findings[2].at("severity"), "error");
  EXPECT_EQ(report.findings[2].at("mend"), "ulimit -n 256");
  EXPECT_EQ(ToReport({{"a", {kGood, kAdvice}}}).verdict, "good");
}

TEST(Finding, ReportsTravelAsJson) {
  const HostReport report{"host \"1\"", {kGood, kAdvice, {"x", Severity::kError, "\xff", "y"}}};
  const HostReport back = ReportFromJson(ToJson(report));
  ASSERT_EQ(back.findings.size(), 3u);
  EXPECT_EQ(back.host, report.host);
  EXPECT_EQ(back.findings[1].mend, "use another");
  EXPECT_EQ(back.findings[2].severity, Severity::kError);
}

TEST(Finding, DamagedReportsAreOneFinding) {
  const std::string whole = ToJson({"a", {kGood, kWrong}});
  for (size_t at = 0; at < whole.size(); ++at) {
    EXPECT_EQ(ReportFromJson(whole.substr(0, at)).findings.at(0).subject, "report");
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      (void)ReportFromJson(flipped);
    }
  }
}

}  // namespace
}  // namespace npumesh
