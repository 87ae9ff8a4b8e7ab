// Folding: text whose lines fit the screen.
//
// Thread-safety: free functions without state.
#ifndef NPUMESH_LAUNCH_SCREEN_FOLD_H_
#define NPUMESH_LAUNCH_SCREEN_FOLD_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace npumesh {

// Characters of a text of UTF-8, which is what it takes of a line.
size_t WidthOf(std::string_view text);

// Breaks each line of more than `columns` characters at blanks. What follows stands below the text
// of the line's last column, where columns are two blanks apart, or four blanks deeper than the
// line. A word that is too long for a line keeps its own, because a path or a name must stay whole
// to be copied. 0 columns: `text` as it is. Doing it again changes nothing.
std::string Folded(std::string_view text, int columns);

// One paragraph without line ends: the first line follows `first` characters that are there
// already, the others are indented by `indent`.
std::string Paragraph(std::string_view text, int columns, size_t first, size_t indent);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_SCREEN_FOLD_H_
