#include <map>
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

std::regex WholeWords(const std::string& words) {
  return std::regex("\\b" + words + "\\b", std::regex::icase);
}

}  // namespace

std::vector<Violation> CheckEnglish(const std::filesystem::path& root,
                                    const std::vector<WordCeiling>& ceilings) {
  std::vector<std::regex> patterns;
  for (const WordCeiling& ceiling : ceilings) patterns.push_back(WholeWords(ceiling.words));
  std::vector<std::vector<Violation>> uses(ceilings.size());
  VisitTexts(root, [&](const TextLine& line) {
    if (line.words.empty() || line.in_block) return;
    for (size_t i = 0; i < patterns.size(); ++i) {
      if (!std::regex_search(line.words, patterns[i])) continue;
      if (!std::regex_search(WithoutQuotes(line.words), patterns[i])) continue;
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
