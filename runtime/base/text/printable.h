// Foreign text made fit for a terminal, a log and an error message.
//
// Names of nodes, types, groups and keys come from files that anybody may have written. A terminal
// obeys some of their bytes, and a line end in a name forges a line of ours, so whatever is printed
// goes through here. What is printable already stays as it is, byte by byte.
#ifndef NPUMESH_RUNTIME_BASE_TEXT_PRINTABLE_H_
#define NPUMESH_RUNTIME_BASE_TEXT_PRINTABLE_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace npumesh {

// Bytes of the UTF-8 sequence that `text` begins with; 0 when it begins with none.
size_t Utf8Length(std::string_view text);

// One line: control characters (line ends too), bytes that are not UTF-8, and characters that
// change the direction of what follows are written as escapes: \n, \t, \r, \x1b, \u202e.
std::string Printable(std::string_view text);

// What errors quote of foreign text: Printable, without its middle ("abc...xyz") where it would be
// longer than kMostQuoted bytes.
inline constexpr size_t kMostQuoted = 200;
std::string Quotable(std::string_view text);

// A message of one or more lines: as Printable, but a line end stays where the next line is
// indented by two blanks, as those of our lists are. What stands between quotes is as short as
// Quotable makes it, and no line is longer than 4000 bytes. Doing it again changes nothing. Every
// Status does it.
std::string PrintableMessage(std::string text);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_TEXT_PRINTABLE_H_
