// JSON from outside, which may nest so deeply that who walks through it runs out of stack.
#ifndef NPUMESH_RUNTIME_BASE_TEXT_FOREIGN_JSON_H_
#define NPUMESH_RUNTIME_BASE_TEXT_FOREIGN_JSON_H_

#include <string_view>

#include "runtime/base/text/json.h"

namespace npumesh {

// Deeper than any file that Ascend's tools or people write.
inline constexpr int kMostJsonLevels = 64;

// The document; is_discarded() when `text` is no JSON or nests deeper than kMostJsonLevels.
nlohmann::json ParseForeignJson(std::string_view text);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_TEXT_FOREIGN_JSON_H_
