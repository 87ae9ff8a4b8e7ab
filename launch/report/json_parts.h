// Parts of reports in JSON: lists, and what is null where there is nothing to say.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_LAUNCH_REPORT_JSON_PARTS_H_
#define NPUMESH_LAUNCH_REPORT_JSON_PARTS_H_

#include <functional>
#include <string_view>

#include "runtime/base/text/json.h"

namespace npumesh {

// A text; null for an empty one.
inline nlohmann::json OrNull(std::string_view text) {
  return text.empty() ? nlohmann::json() : nlohmann::json(text);
}

// A rank or another number from 0 on; null for a negative one.
inline nlohmann::json FromZero(int64_t number) {
  return number < 0 ? nlohmann::json() : nlohmann::json(number);
}

// A list of what `to_json` makes of each of `all`.
template <typename All, typename ToJson>
nlohmann::json ListOf(const All& all, ToJson to_json) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& each : all) list.push_back(std::invoke(to_json, each));
  return list;
}

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_REPORT_JSON_PARTS_H_
