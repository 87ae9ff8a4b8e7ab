#include <cctype>
#include <regex>
#include <string>
#include <vector>

#include "tests/layering/layering.h"
#include "tests/layering/texts.h"

namespace npumesh {
namespace {

// Words in quotes and code are cited, not said.
std::string WithoutQuotes(const std::string& text) {
  static const std::regex quoted("\"[^\"]*\"|`[^`]*`");
  return std::regex_replace(text, quoted, "");
}

// The first letter may be a capital. The others may not: "is None" is code.
std::regex WholeWords(const std::string& words) {
  const std::string first = {'[', static_cast<char>(std::toupper(words[0])), words[0], ']'};
  return std::regex("\\b" + first + words.substr(1) + "\\b");
}

// What cannot be missing where a pattern of words matches: spares nearly all lines the pattern.
std::string PlainPart(const std::string& words) {
  return words.substr(1, words.find('(') - 1);
}

bool IsProduct(const std::string& file) {
  return !file.starts_with("tests/") && !file.starts_with("examples/");
}

}  // namespace

std::vector<Violation> CheckEnglish(const std::filesystem::path& root,
                                    const std::vector<WordCeiling>& ceilings) {
  std::vector<std::regex> patterns;
  std::vector<std::string> parts;
  for (const WordCeiling& ceiling : ceilings) {
    patterns.push_back(WholeWords(ceiling.words));
    parts.push_back(PlainPart(ceiling.words));
  }
  std::vector<std::vector<Violation>> uses(ceilings.size());
  VisitTexts(root, [&](const TextLine& line) {
    if (line.in_block) return;
    for (size_t i = 0; i < patterns.size(); ++i) {
      if (line.text.find(parts[i]) == std::string::npos) continue;
      const bool told = IsProduct(line.file) && std::regex_search(line.said, patterns[i]);
      if (!told && !std::regex_search(WithoutQuotes(line.words), patterns[i])) continue;
      uses[i].push_back({"english", line.file, line.number,
                         "says \"" + ceilings[i].words + "\" (" + ceilings[i].instead + ")"});
    }
  });
  std::vector<Violation> found;
  for (size_t i = 0; i < ceilings.size(); ++i) {
    if (uses[i].size() <= ceilings[i].lines) continue;
    found.insert(found.end(), uses[i].begin(), uses[i].end());
  }
  return found;
}

}  // namespace npumesh
