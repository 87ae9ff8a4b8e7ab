#include "launch/screen/fold.h"

#include <algorithm>

namespace npumesh {
namespace {

// A column of a table that begins further right leaves too little room below it.
constexpr size_t kWidestHang = 40;
constexpr size_t kDeeper = 4;

size_t IndentOf(std::string_view line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

// Where the text of the last column begins: after the last two blanks that stand early enough.
size_t HangOf(std::string_view line, size_t columns) {
  const size_t indent = IndentOf(line);
  const size_t widest = std::min(kWidestHang, columns / 2);
  size_t hang = 0;
  for (size_t at = indent; (at = line.find("  ", at)) != line.npos;) {
    at = std::min(line.find_first_not_of(' ', at), line.size());
    if (WidthOf(line.substr(0, at)) > widest) break;
    hang = WidthOf(line.substr(0, at));
  }
  return hang > 0 ? hang : std::min(indent + kDeeper, widest);
}

std::string FoldedLine(std::string_view line, size_t columns) {
  if (WidthOf(line) <= columns) return std::string(line);
  const size_t hang = HangOf(line, columns);
  std::string folded;
  size_t width = 0;    // of the last line of `folded`
  bool begun = false;  // a word stands on it
  const size_t last = line.find_last_not_of(' ') + 1;
  for (size_t at = 0; at < last;) {
    const size_t word = line.find_first_not_of(' ', at);
    const size_t end = std::min(line.find(' ', word), last);
    const size_t wanted = WidthOf(line.substr(at, end - at));
    if (begun && width + wanted > columns) {
      const size_t wide = WidthOf(line.substr(word, end - word));
      // A word that is too wide for its column begins further left.
      const size_t begin = wide < columns ? std::min(hang, columns - wide) : hang;
      folded += "\n" + std::string(begin, ' ');
      width = begin + wide;
      folded += line.substr(word, end - word);
    } else {
      folded += line.substr(at, end - at);
      width += wanted;
    }
    begun = true;
    at = end;
  }
  return folded;
}

}  // namespace

size_t WidthOf(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xc0u) != 0x80u;  // not the inner part of one
  }));
}

std::string Folded(std::string_view text, int columns) {
  if (columns <= 0) return std::string(text);
  std::string folded;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    folded += FoldedLine(text.substr(0, end), static_cast<size_t>(columns));
    if (end == text.npos) break;
    folded += '\n';
    text.remove_prefix(end + 1);
  }
  return folded;
}

std::string Paragraph(std::string_view text, int columns, size_t first, size_t indent) {
  std::string paragraph;
  size_t width = first;
  bool begun = false;  // a word stands on this line
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    if (begun && width + 1 + WidthOf(word) > static_cast<size_t>(columns)) {
      paragraph += "\n" + std::string(indent, ' ');
      width = indent;
      begun = false;
    }
    if (begun) paragraph += ' ';
    width += WidthOf(word) + (begun ? 1 : 0);
    paragraph += word;
    begun = true;
  }
  return paragraph;
}

}  // namespace npumesh
