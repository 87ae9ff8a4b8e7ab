#include "runtime/base/text/foreign_json.h"

namespace npumesh {

nlohmann::json ParseForeignJson(std::string_view text) {
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
