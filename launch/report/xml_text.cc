#include "launch/report/xml_text.h"

#include <algorithm>

#include "runtime/base/text/printable.h"

namespace npumesh {

std::string EscapeXml(std::string_view text, std::string (*strange)(char)) {
  std::string out;
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    const char c = text[0];
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (length == 0 || (length == 1 && static_cast<unsigned char>(c) < 0x20)) {
      out += strange(c);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

}  // namespace npumesh
