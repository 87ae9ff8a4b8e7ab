// JunitReport: test cases in the XML that CI systems read.
#ifndef NPUMESH_LAUNCH_REPORT_JUNIT_H_
#define NPUMESH_LAUNCH_REPORT_JUNIT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace npumesh {

struct JunitCase {
  enum class Result : uint8_t {
    kPassed,
    kFailed,   // ran, and is not as expected
    kError,    // did not come to its end
    kSkipped,  // nothing was expected of it
  };
  std::string group;  // `classname`
  std::string name;
  Result result = Result::kPassed;
  std::string message;  // one line; of other results than kPassed
  std::string detail;   // more lines, or empty
};

// One suite; `printed` is what it said beside its cases, on standard error. Characters that XML
// does not have become U+FFFD.
std::string ToJunit(const std::string& suite, double seconds, const std::vector<JunitCase>& cases,
                    const std::string& printed = "");

// `text` as it stands between the quotes of an attribute of such a file.
std::string JunitAttribute(std::string_view text);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_REPORT_JUNIT_H_
