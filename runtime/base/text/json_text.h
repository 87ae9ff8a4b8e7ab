// JSON as text, and texts in JSON.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_RUNTIME_BASE_TEXT_JSON_TEXT_H_
#define NPUMESH_RUNTIME_BASE_TEXT_JSON_TEXT_H_

#include <string>

#include "runtime/base/text/json.h"

namespace npumesh {

// As files and reports have it: indented by two, with a line end. Names may be no UTF-8: what is
// none is replaced.
std::string JsonText(const nlohmann::json& value);

// The text of a member; empty when it is not there or no text.
std::string TextMember(const nlohmann::json& object, const char* name);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_TEXT_JSON_TEXT_H_
