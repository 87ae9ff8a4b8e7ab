#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tests/layering/layering.h"
#include "tests/layering/texts.h"

namespace npumesh {
namespace {

constexpr int64_t kMostColumns = 120;

// Characters, not bytes.
int64_t ColumnsOf(std::string_view line) {
  return std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; });
}

// Whether a line of prose has a place to break it: a blank behind its first word that is in no
// code.
bool CanBreak(std::string_view line) {
  const std::string_view marks = " -*0123456789.";
  line.remove_prefix(std::min(line.find_first_not_of(marks), line.size()));
  bool in_code = false;
  for (const char c : line) {
    if (c == '`') in_code = !in_code;
    if (c == ' ' && !in_code) return true;
  }
  return false;
}

bool IsProse(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return !line.empty() && std::string_view("|#<").find(line[0]) == std::string_view::npos;
}

}  // namespace

std::vector<Violation> CheckWidth(const std::filesystem::path& root) {
  std::vector<Violation> found;
  VisitTexts(root, [&found](const TextLine& line) {
    if (!line.file.ends_with(".md") || line.in_block || !IsProse(line.text)) return;
    const int64_t columns = ColumnsOf(line.text);
    if (columns <= kMostColumns || !CanBreak(line.text)) return;
    found.push_back({"width", line.file, line.number,
                     "has " + std::to_string(columns) + " columns, expected at most " +
                         std::to_string(kMostColumns)});
  });
  return found;
}

}  // namespace npumesh
