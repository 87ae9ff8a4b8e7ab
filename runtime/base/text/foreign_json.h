// JSON from outside, which may nest so deeply that who walks through it runs out of stack.
#ifndef NPUMESH_RUNTIME_BASE_TEXT_FOREIGN_JSON_H_
#define NPUMESH_RUNTIME_BASE_TEXT_FOREIGN_JSON_H_

#include <functional>
#include <string>
#include <string_view>

#include "runtime/base/text/json.h"

namespace npumesh {

// Deeper than any file that Ascend's tools or people write.
inline constexpr int kMostJsonLevels = 64;

// The document; is_discarded() when `text` is no JSON or nests deeper than kMostJsonLevels.
nlohmann::json ParseForeignJson(std::string_view text);

// The same; `on_key` is called for each key in the order of the text, which objects do not keep,
// with how many lists and objects are open around it: 1 in the outermost object.
using OnJsonKey = std::function<void(int level, const std::string& key)>;
nlohmann::json ParseForeignJson(std::string_view text, const OnJsonKey& on_key);

// The text with what Python's json.dump writes beside JSON as texts: "NaN", "Infinity" and
// "-Infinity". Of the same length where there are no such numbers.
std::string QuotePythonNumbers(std::string text);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_TEXT_FOREIGN_JSON_H_
