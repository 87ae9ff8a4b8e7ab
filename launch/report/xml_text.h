// Text inside of XML: elements and attributes of JUnit files, pictures and pages.
#ifndef NPUMESH_LAUNCH_REPORT_XML_TEXT_H_
#define NPUMESH_LAUNCH_REPORT_XML_TEXT_H_

#include <string>
#include <string_view>

namespace npumesh {

// `text` with the characters that XML reserves as entities. `strange` says what stands for a
// control character or a byte that is no UTF-8. Thread-safe.
std::string EscapeXml(std::string_view text, std::string (*strange)(char));

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_REPORT_XML_TEXT_H_
