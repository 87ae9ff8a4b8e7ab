// nlohmann's JSON, compiled once: files that include this do not compile its members again.
#ifndef NPUMESH_RUNTIME_BASE_TEXT_JSON_H_
#define NPUMESH_RUNTIME_BASE_TEXT_JSON_H_

#include <nlohmann/json.hpp>

extern template class nlohmann::basic_json<>;

#endif  // NPUMESH_RUNTIME_BASE_TEXT_JSON_H_
