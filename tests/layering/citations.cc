#include <fstream>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "tests/layering/layering.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;

// Below these folders, and among the files beside them, everything is read.
constexpr std::string_view kFolders[] = {"cmake",  "collectives", "docs",    "examples", "graph",
                                         "launch", "proto",       "runtime", "tests"};
// Here the forbidden words stand as data.
constexpr std::string_view kOwnFolder = "tests/layering";
// Its rows are called S0.1 and so on.
constexpr std::string_view kCoverage = "docs/coverage.md";

bool IsText(const fs::path& file) {
  const std::string ending = file.extension().string();
  return ending == ".cc" || ending == ".h" || ending == ".py" || ending == ".md" ||
         ending == ".proto" || ending == ".cmake" || file.filename() == "CMakeLists.txt";
}

// The citation in a line, or nothing. The search for parts of words saves nearly all lines the
// pattern.
std::string CitationIn(const std::string& line, bool has_rows) {
  static const std::regex note(
      "\\b([Oo]ps|[Dd]ump|[Dd]ump-format|[Aa]ir-format|[Hh]ccl-acl|HCCL|[Ss]ession|"
      "[Ss]ession-and-kernels|[Tt]orchair-native|[Pp]rofiler) reference\\b"
      "|\\b[Rr]eference,? ((section|part|rule|item)s? )?[0-9]"
      "|\\b[Ss]eed (README|00[0-9])"
      "|\\b(design|mission|style|air-format|dump-format|hccl-acl-api|session-and-kernels|"
      "torchair-native|profiler-format)\\.md\\b");
  static const std::regex row("\\bS[0-9]\\.[0-9]");
  std::smatch match;
  const auto has = [&line](std::string_view part) { return line.find(part) != std::string::npos; };
  if ((has("eference") || has("eed ") || has(".md")) && std::regex_search(line, match, note)) {
    return match.str();
  }
  if (!has_rows && has("S") && std::regex_search(line, match, row)) return match.str();
  return {};
}

void CheckFile(const fs::path& root, const fs::path& path, std::vector<Violation>* found) {
  const std::string name = fs::relative(path, root).generic_string();
  if (!IsText(path) || name.starts_with(kOwnFolder)) return;
  std::ifstream file(path);
  int line = 0;
  for (std::string text; std::getline(file, text);) {
    ++line;
    const std::string citation = CitationIn(text, name == kCoverage);
    if (citation.empty()) continue;
    found->push_back({"citation", name, line,
                      "cites \"" + citation +
                          "\", which no reader can open; state the fact, or name a public source "
                          "or a page of docs/"});
  }
}

}  // namespace

std::vector<Violation> CheckCitations(const fs::path& root) {
  std::vector<Violation> found;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (entry.is_regular_file()) CheckFile(root, entry.path(), &found);
  }
  for (const std::string_view folder : kFolders) {
    if (!fs::is_directory(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (entry.is_regular_file()) CheckFile(root, entry.path(), &found);
    }
  }
  return found;
}

}  // namespace npumesh
