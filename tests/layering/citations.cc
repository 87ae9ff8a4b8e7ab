#include <algorithm>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/layering/layering.h"
#include "tests/layering/texts.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;

// Files of other projects that comments name.
constexpr std::string_view kForeignFiles[] = {"foreach_target.h", "hwy/highway.h", "mpi.h"};
// How files begin that a build makes: the vendor's headers of operators.
constexpr std::string_view kMadeFiles = "aclnn_";
// Words for a text that has numbered parts.
constexpr std::string_view kPartedTexts[] = {"esign",  "ission", "eview",   "eference",
                                             "ection", "hapter", "ppendix", "eed "};

// The citation in a line, or nothing: a number after a word for a part of a text ("design 3.4",
// "reference 3", "seed 002"). Beside the name of a page of docs/ it has a text to stand in. The
// search for parts of words saves nearly all lines the pattern.
std::string CitationIn(const std::string& line) {
  static const std::regex part(
      "\\b([Dd]esign|[Mm]ission|[Rr]eview|[Rr]eference|[Ss]ection|[Cc]hapter|[Aa]ppendix)s?,? "
      "((section|part|rule|item)s? )?[0-9]"
      "|\\b[Ss]eed (README|00[0-9])");
  static const std::regex page("\\bdocs/\\w+\\.md\\b");
  static const std::regex row("\\bS[0-9]\\.[0-9]");
  std::smatch match;
  const auto has = [&line](std::string_view part) { return line.find(part) != std::string::npos; };
  if (std::any_of(std::begin(kPartedTexts), std::end(kPartedTexts), has) &&
      std::regex_search(line, match, part) && !std::regex_search(line, page)) {
    return match.str();
  }
  if (has("S") && std::regex_search(line, match, row)) return match.str();
  return {};
}

// The names of source files and pages in a text.
std::vector<std::string> FilesIn(const std::string& text) {
  static const std::regex pattern(
      "(?:^|[^\\w./<>{}*$~:-])(?:\\.\\.?/)*(\\w[\\w./+-]*\\.(cc|h|md|py|proto|cmake))"
      "(?![\\w*(]|\\.\\w)");
  std::vector<std::string> names;
  if (text.find('.') == std::string::npos) return names;
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) {
    names.push_back((*at)[1].str());
  }
  return names;
}

class CitationCheck {
 public:
  explicit CitationCheck(const fs::path& root) : names_(FileNames(root)) {}

  void Check(const TextLine& line) {
    CheckCitation(line);
    if (!line.in_block) CheckNames(line);
  }

  std::vector<Violation> found() && { return std::move(found_); }

 private:
  void CheckCitation(const TextLine& line) {
    const std::string citation = CitationIn(line.text);
    if (citation.empty()) return;
    found_.push_back({"citation", line.file, line.number,
                      "cites \"" + citation +
                          "\", which no reader can open; state the fact, or name a public source "
                          "or a page of docs/"});
  }

  void CheckNames(const TextLine& line) {
    for (const std::string& file : FilesIn(line.words)) {
      const bool foreign = std::find(std::begin(kForeignFiles), std::end(kForeignFiles), file) !=
                           std::end(kForeignFiles);
      if (foreign || file.rfind(kMadeFiles, 0) == 0 || names_.count(file) > 0) continue;
      found_.push_back({"file", line.file, line.number,
                        "names " + file + ", but no file of this project is called so"});
    }
  }

  std::set<std::string> names_;
  std::vector<Violation> found_;
};

}  // namespace

std::vector<Violation> CheckCitations(const fs::path& root) {
  CitationCheck check(root);
  VisitTexts(root, [&check](const TextLine& line) { check.Check(line); });
  return std::move(check).found();
}

}  // namespace npumesh
