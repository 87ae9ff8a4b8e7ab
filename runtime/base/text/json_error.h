// What is wrong with a JSON text that a user wrote.
#ifndef NPUMESH_RUNTIME_BASE_TEXT_JSON_ERROR_H_
#define NPUMESH_RUNTIME_BASE_TEXT_JSON_ERROR_H_

#include <string>

namespace npumesh {

// Why ParseForeignJson discards `text`: "line 3, column 7: ...", at most 200 bytes.
std::string JsonErrorIn(const std::string& text);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_TEXT_JSON_ERROR_H_
