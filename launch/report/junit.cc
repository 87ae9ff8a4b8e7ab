#include "launch/report/junit.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "launch/report/xml_text.h"

namespace npumesh {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// Line ends stay what they are in texts, and must be written as numbers in attributes.
std::string Escaped(std::string_view text) {
  return EscapeXml(text, [](char c) {
    const bool blank = c == '\n' || c == '\t';
    return blank ? fmt::format("&#{};", static_cast<int>(c)) : std::string(kReplacement);
  });
}

std::string ElementOf(JunitCase::Result result) {
  switch (result) {
    case JunitCase::Result::kFailed:
      return "failure";
    case JunitCase::Result::kError:
      return "error";
    case JunitCase::Result::kSkipped:
      return "skipped";
    case JunitCase::Result::kPassed:
      break;
  }
  return "";
}

std::string CaseText(const JunitCase& test) {
  const std::string open = fmt::format("    <testcase classname=\"{}\" name=\"{}\"",
                                       Escaped(test.group), Escaped(test.name));
  const std::string element = ElementOf(test.result);
  if (element.empty()) return open + "/>\n";
  return fmt::format("{}>\n      <{} message=\"{}\">{}</{}>\n    </testcase>\n", open, element,
                     Escaped(test.message), Escaped(test.detail), element);
}

}  // namespace

std::string JunitAttribute(std::string_view text) {
  return Escaped(text);
}

std::string ToJunit(const std::string& suite, double seconds, const std::vector<JunitCase>& cases,
                    const std::string& printed) {
  const auto count = [&cases](JunitCase::Result result) {
    return std::count_if(cases.begin(), cases.end(),
                         [result](const JunitCase& test) { return test.result == result; });
  };
  const std::string numbers =
      fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.6f}\"",
                  cases.size(), count(JunitCase::Result::kFailed), count(JunitCase::Result::kError),
                  count(JunitCase::Result::kSkipped), seconds);
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  text += fmt::format("<testsuites {}>\n  <testsuite name=\"{}\" {}>\n", numbers, Escaped(suite),
                      numbers);
  for (const JunitCase& test : cases) text += CaseText(test);
  if (!printed.empty()) text += fmt::format("    <system-err>{}</system-err>\n", Escaped(printed));
  return text + "  </testsuite>\n</testsuites>\n";
}

}  // namespace npumesh
