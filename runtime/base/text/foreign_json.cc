#include "runtime/base/text/foreign_json.h"

#include <array>

namespace npumesh {

nlohmann::json ParseForeignJson(std::string_view text) {
  return ParseForeignJson(text, nullptr);
}

nlohmann::json ParseForeignJson(std::string_view text, const OnJsonKey& on_key) {
  bool too_deep = false;
  // `depth` is how many lists and objects are open around the one that begins.
  const auto limit = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    using Event = nlohmann::json::parse_event_t;
    const bool begins = event == Event::array_start || event == Event::object_start;
    too_deep = too_deep || (begins && depth >= kMostJsonLevels);
    if (event == Event::key && on_key) on_key(depth, parsed.get_ref<const std::string&>());
    return !too_deep;
  };
  nlohmann::json document = nlohmann::json::parse(text, limit, /*allow_exceptions=*/false);
  return too_deep ? nlohmann::json(nlohmann::json::value_t::discarded) : document;
}

std::string QuotePythonNumbers(std::string text) {
  constexpr std::array<std::string_view, 3> kNumbers = {"NaN", "-Infinity", "Infinity"};
  std::string quoted;
  size_t copied = 0;
  bool in_text = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && in_text) {
      ++i;
    } else if (text[i] == '"') {
      in_text = !in_text;
    } else if (!in_text && (text[i] == 'N' || text[i] == 'I' || text[i] == '-')) {
      for (const std::string_view number : kNumbers) {
        if (text.compare(i, number.size(), number) != 0) continue;
        quoted.append(text, copied, i - copied).append("\"").append(number).append("\"");
        i += number.size() - 1;
        copied = i + 1;
        break;
      }
    }
  }
  if (copied == 0) return text;
  return quoted.append(text, copied);
}

}  // namespace npumesh
