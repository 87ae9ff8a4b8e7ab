#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/layering/layering.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;

// Below these folders, and among the files beside them, everything is read.
constexpr std::string_view kFolders[] = {"cmake",  "collectives", "docs",   "examples", "graph",
                                         "launch", "proto",       "python", "runtime",  "tests"};
// Here the forbidden words stand as data.
constexpr std::string_view kOwnFolder = "tests/layering";
// Files of other projects that comments name.
constexpr std::string_view kForeignFiles[] = {"foreach_target.h", "hwy/highway.h", "mpi.h"};
// Its rows are called S0.1 and so on.
constexpr std::string_view kCoverage = "docs/coverage.md";

bool IsText(const fs::path& file) {
  const std::string ending = file.extension().string();
  return ending == ".cc" || ending == ".h" || ending == ".py" || ending == ".md" ||
         ending == ".proto" || ending == ".cmake" || file.filename() == "CMakeLists.txt";
}

// The part of a line that is for people: what follows the mark of a comment, in a page all of it.
std::string_view ForPeople(std::string_view line, const std::string& ending) {
  if (ending == ".md") return line;
  const bool cpp = ending == ".cc" || ending == ".h" || ending == ".proto";
  return line.substr(std::min(line.find(cpp ? "//" : "#"), line.size()));
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
  explicit CitationCheck(const fs::path& root) : root_(root) {
    for (const auto& entry : fs::directory_iterator(root)) Add(entry);
    for (const std::string_view folder : kFolders) {
      if (!fs::is_directory(root / folder)) continue;
      for (const auto& entry : fs::recursive_directory_iterator(root / folder)) Add(entry);
    }
  }

  std::vector<Violation> Run() {
    for (const fs::path& path : texts_) CheckFile(path);
    return std::move(found_);
  }

 private:
  // A file may be named by its path or by any tail of it: "runtime/base/env.h", "env.h".
  void Add(const fs::directory_entry& entry) {
    if (!entry.is_regular_file()) return;
    std::string name = fs::relative(entry.path(), root_).generic_string();
    if (IsText(entry.path()) && !name.starts_with(kOwnFolder)) texts_.push_back(entry.path());
    for (size_t slash = 0; slash != std::string::npos; slash = name.find('/')) {
      if (slash > 0) name.erase(0, slash + 1);
      names_.insert(name);
    }
  }

  void CheckFile(const fs::path& path) {
    const std::string name = fs::relative(path, root_).generic_string();
    std::ifstream file(path);
    bool in_block = false;  // of a page: examples name files of the reader's own
    int line = 0;
    for (std::string text; std::getline(file, text);) {
      ++line;
      CheckCitation(name, line, text);
      const std::string words(ForPeople(text, path.extension().string()));
      if (words.find("```") != std::string::npos) in_block = !in_block;
      if (!in_block) CheckNames(name, line, words);
    }
  }

  void CheckCitation(const std::string& name, int line, const std::string& text) {
    const std::string citation = CitationIn(text, name == kCoverage);
    if (citation.empty()) return;
    found_.push_back({"citation", name, line,
                      "cites \"" + citation +
                          "\", which no reader can open; state the fact, or name a public source "
                          "or a page of docs/"});
  }

  void CheckNames(const std::string& name, int line, const std::string& words) {
    for (const std::string& file : FilesIn(words)) {
      const bool foreign = std::find(std::begin(kForeignFiles), std::end(kForeignFiles), file) !=
                           std::end(kForeignFiles);
      if (foreign || names_.count(file) > 0) continue;
      found_.push_back(
          {"file", name, line, "names " + file + ", but no file of this project is called so"});
    }
  }

  fs::path root_;
  std::vector<fs::path> texts_;
  std::set<std::string> names_;
  std::vector<Violation> found_;
};

}  // namespace

std::vector<Violation> CheckCitations(const fs::path& root) {
  return CitationCheck(root).Run();
}

}  // namespace npumesh
