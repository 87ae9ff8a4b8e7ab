#include "launch/page/page.h"

#include <fmt/format.h>

#include "launch/page/page_text.h"
#include "launch/report/xml_text.h"

namespace npumesh {
namespace {

// Scripts and styles of the page itself; no request to anywhere.
constexpr std::string_view kPolicy =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

std::string Replacement(char) {
  return "\xef\xbf\xbd";  // U+FFFD
}

}  // namespace

std::string JsonInPage(std::string_view json) {
  std::string text;
  text.reserve(json.size() + json.size() / 64);
  for (const char c : json) {
    if (c == '<') {
      text += "\\u003c";
    } else if (c == '>') {
      text += "\\u003e";
    } else if (c == '&') {
      text += "\\u0026";
    } else {
      text += c;
    }
  }
  return text;
}

std::string HtmlPage(const PageParts& parts) {
  const std::string title = EscapeXml(parts.title, Replacement);
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<title>{}</title>\n<style>\n{}{}</style></head>\n",
      kPolicy, title,
      fmt::format("{}{}", PageStyle(), parts.draws ? DrawingStyle() : std::string_view()),
      parts.texts.style);
  page += fmt::format(
      "<body>\n<header><h1>{}</h1>"
      "<button type=\"button\" id=\"theme\" title=\"light or dark\">dark</button></header>\n"
      "<noscript><p>This page draws its data with a script, which is switched "
      "off.</p></noscript>\n",
      title);
  page += parts.texts.body;
  page += "\n<script type=\"application/json\" id=\"data\">";
  page += JsonInPage(parts.data);
  page += "</script>\n<script>\n";
  page += PageScript();
  page += "</script>\n<script>\n";
  if (parts.draws) page += DrawingScript();
  page += parts.texts.script;
  page += "</script>\n</body></html>\n";
  return page;
}

}  // namespace npumesh
