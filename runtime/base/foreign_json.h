// JSON from outside, which may nest so deeply that who walks through it runs out of stack.
#ifndef NPUMESH_RUNTIME_BASE_FOREIGN_JSON_H_
#define NPUMESH_RUNTIME_BASE_FOREIGN_JSON_H_

#include <nlohmann/json.hpp>
#include <string_view>

namespace npumesh {

// Deeper than any file that Ascend's tools or people write.
inline constexpr int kMostJsonLevels = 64;

// The document; is_discarded() when `text` is no JSON or nests deeper than kMostJsonLevels.
inline nlohmann::json ParseForeignJson(std::string_view text) {
  bool too_deep = false;
  // `depth` is how many lists and objects are open around the one that begins.
  const auto limit = [&too_deep](int depth, nlohmann::json::parse_event_t event, nlohmann::json&) {
    using Event = nlohmann::json::parse_event_t;
    const bool begins = event == Event::array_start || event == Event::object_start;
    too_deep = too_deep || (begins && depth >= kMostJsonLevels);
    return !too_deep;
  };
  nlohmann::json document = nlohmann::json::parse(text, limit, /*allow_exceptions=*/false);
  return too_deep ? nlohmann::json(nlohmann::json::value_t::discarded) : document;
}

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_FOREIGN_JSON_H_
