#include "tests/layering/texts.h"

#include <algorithm>
#include <fstream>
#include <string_view>

namespace npumesh {
namespace {

namespace fs = std::filesystem;

// Below these folders, and among the files beside them, everything is read.
constexpr std::string_view kFolders[] = {"cmake",  "collectives", "docs",   "examples", "graph",
                                         "launch", "proto",       "python", "runtime",  "tests"};
constexpr std::string_view kOwnFolder = "tests/layering";

bool IsText(const fs::path& file) {
  const std::string ending = file.extension().string();
  return ending == ".cc" || ending == ".h" || ending == ".py" || ending == ".md" ||
         ending == ".proto" || ending == ".cmake" || file.filename() == "CMakeLists.txt";
}

std::string_view ForPeople(std::string_view line, const std::string& ending) {
  if (ending == ".md") return line;
  const bool cpp = ending == ".cc" || ending == ".h" || ending == ".proto";
  if (!cpp) return line.substr(std::min(line.find('#'), line.size()));
  // A comment of C goes on in lines that begin with a star.
  const size_t first = std::min(line.find_first_not_of(' '), line.size());
  if (line.substr(first, 2) == "* ") return line.substr(first);
  return line.substr(std::min({line.find("//"), line.find("/*"), line.size()}));
}

// The literals of a line of code, without words in quotes inside of them.
std::string LiteralsOf(std::string_view code) {
  std::string said;
  bool inside = false;
  bool quotes = false;  // of \" within a literal
  for (size_t at = 0; at < code.size(); ++at) {
    if (code[at] == '\\' && inside) {
      ++at;
      if (at < code.size() && code[at] == '"') quotes = !quotes;
    } else if (code[at] == '"') {
      inside = !inside;
      quotes = false;
      said += ' ';
    } else if (inside && !quotes) {
      said += code[at];
    }
  }
  return said;
}

// Whether a line of Python is inside of a text of three quotes, or touches one; `inside` follows.
bool TouchesText(std::string_view line, bool& inside) {
  bool touches = inside;
  for (size_t at = line.find(R"(""")"); at != std::string_view::npos;
       at = line.find(R"(""")", at + 3)) {
    inside = !inside;
    touches = true;
  }
  return touches;
}

template <typename Visit>
void VisitFiles(const fs::path& root, const Visit& visit) {
  const auto take = [&](const fs::directory_entry& entry) {
    if (entry.is_regular_file()) visit(entry.path());
  };
  for (const auto& entry : fs::directory_iterator(root)) take(entry);
  for (const std::string_view folder : kFolders) {
    if (!fs::is_directory(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) take(entry);
  }
}

void VisitLines(const fs::path& root, const fs::path& path,
                const std::function<void(const TextLine&)>& visit) {
  const std::string ending = path.extension().string();
  TextLine line;
  line.file = fs::relative(path, root).generic_string();
  const bool is_code = ending == ".cc" || ending == ".h" || ending == ".py";
  bool in_text = false;  // of Python
  std::ifstream file(path);
  while (std::getline(file, line.text)) {
    ++line.number;
    line.words = ForPeople(line.text, ending);
    if (ending == ".py" && TouchesText(line.text, in_text)) line.words = line.text;
    const size_t code = is_code ? line.text.size() - line.words.size() : 0;
    line.said = LiteralsOf(std::string_view(line.text).substr(0, code));
    if (line.words.find("```") != std::string::npos) line.in_block = !line.in_block;
    visit(line);
  }
}

}  // namespace

void VisitTexts(const fs::path& root, const std::function<void(const TextLine&)>& visit) {
  VisitFiles(root, [&](const fs::path& path) {
    const bool own = fs::relative(path, root).generic_string().starts_with(kOwnFolder);
    if (IsText(path) && !own) VisitLines(root, path, visit);
  });
}

std::set<std::string> FileNames(const fs::path& root) {
  std::set<std::string> names;
  VisitFiles(root, [&](const fs::path& path) {
    std::string name = fs::relative(path, root).generic_string();
    for (size_t slash = 0; slash != std::string::npos; slash = name.find('/')) {
      if (slash > 0) name.erase(0, slash + 1);
      names.insert(name);
    }
  });
  return names;
}

}  // namespace npumesh
