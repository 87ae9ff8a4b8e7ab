// The keys that every --json has.
#include "launch/report/command_report.h"

#include <gmock/gmock.h>

namespace npumesh {
namespace {

using nlohmann::json;

TEST(CommandReport, HasTheCommonKeysAndTheCommandsOwn) {
  CommandReport report;
  report.verdict = "wrong";
  report.details["hosts"] = {"a"};
  report.Add(Severity::kAdvice, "use another", {{"subject", "account"}});
  report.Add(Severity::kError, "no \xff");
  const std::string text = ToText(report, "doctor", 1);
  EXPECT_EQ(text.back(), '\n');
  EXPECT_EQ(json::parse(text),
            json({{"command", "doctor"},
                  {"verdict", "wrong"},
                  {"exit_code", 1},
                  {"error", nullptr},
                  {"hosts", {"a"}},
                  {"findings",
                   {{{"severity", "advice"}, {"text", "use another"}, {"subject", "account"}},
                    {{"severity", "error"}, {"text", "no \xef\xbf\xbd"}}}}}));
}

TEST(CommandReport, AnErrorHasNoFindings) {
  const json object = json::parse(ErrorText("dump laws", Error(Code::kNotFound, "no \"{}\"", "x")));
  EXPECT_EQ(object, json({{"command", "dump laws"},
                          {"verdict", "error"},
                          {"exit_code", 3},
                          {"error", "no \"x\""},
                          {"findings", json::array()}}));
}

}  // namespace
}  // namespace npumesh
