// Small helpers of text.
#ifndef NPUMESH_RUNTIME_BASE_TEXT_STRINGS_H_
#define NPUMESH_RUNTIME_BASE_TEXT_STRINGS_H_

#include <string>
#include <string_view>
#include <vector>

namespace npumesh {

// The parts of `text` between separators, each a single one of `separators`; empty parts too, so
// that there is always at least one. The parts point into `text`.
std::vector<std::string_view> Split(std::string_view text, std::string_view separators);

// `text` without blanks at its ends.
std::string_view Trimmed(std::string_view text);

// `text` with small letters only; bytes beyond ASCII stay.
std::string LowerCase(std::string_view text);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_TEXT_STRINGS_H_
