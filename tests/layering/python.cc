// Circles of Python modules.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/layering/circles.h"
#include "tests/layering/layering.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;

constexpr char kPackages[] = "python";
constexpr std::string_view kPackageFile = "__init__.py";

struct Module {
  std::string file;  // relative to the root
  bool is_package = false;
  std::map<std::string, int> imports;  // modules of this project, and the line of the first import
};

using Modules = std::map<std::string, Module>;  // by name, "torch_npu.npu.streams"

std::string ParentOf(const std::string& name) {
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? std::string() : name.substr(0, dot);
}

std::string Joined(const std::string& package, const std::string& name) {
  return package.empty() || name.empty() ? package + name : package + "." + name;
}

Modules ModulesBelow(const fs::path& root) {
  Modules modules;
  if (!fs::is_directory(root / kPackages)) return modules;
  for (const auto& entry : fs::recursive_directory_iterator(root / kPackages)) {
    if (entry.path().extension() != ".py") continue;
    const bool is_package = entry.path().filename() == kPackageFile;
    fs::path place = fs::relative(entry.path(), root / kPackages);
    place = is_package ? place.parent_path() : place.replace_extension();
    std::string name = place.generic_string();
    std::replace(name.begin(), name.end(), '/', '.');
    modules[name] = {fs::relative(entry.path(), root).generic_string(), is_package, {}};
  }
  return modules;
}

// The package that a relative import begins in: one dot is the package of the module itself.
std::string PackageOf(std::string name, const Module& module, size_t dots) {
  if (!module.is_package) name = ParentOf(name);
  for (; dots > 1; --dots) name = ParentOf(name);
  return name;
}

// What an import statement names: "from A import b, c" is A.b where that is a module, else A.
class ImportReader {
 public:
  ImportReader(const std::string& name, const Modules& modules, Module& module)
      : name_(name), modules_(modules), module_(module) {}

  void Read(const std::string& statement, int line) {
    static const std::regex from(R"(^\s*from (\.*)([\w.]*) import (.*)$)");
    static const std::regex plain(R"(^\s*import (.*)$)");
    std::smatch match;
    if (std::regex_match(statement, match, from)) {
      const size_t dots = static_cast<size_t>(match[1].length());
      const std::string package =
          dots == 0 ? match[2].str() : Joined(PackageOf(name_, module_, dots), match[2]);
      for (const std::string& word : Names(match[3])) {
        const std::string inner = Joined(package, word);
        Add(modules_.count(inner) > 0 ? inner : package, line);
      }
    } else if (std::regex_match(statement, match, plain)) {
      for (const std::string& word : Names(match[1])) Add(word, line);
    }
  }

 private:
  // Of a list "a as b, c": a and c.
  static std::vector<std::string> Names(const std::string& list) {
    static const std::regex name(R"((?:^|[,(])\s*([\w.]+|\*))");
    std::vector<std::string> names;
    for (std::sregex_iterator at(list.begin(), list.end(), name), end; at != end; ++at) {
      names.push_back((*at)[1]);
    }
    return names;
  }

  void Add(const std::string& imported, int line) {
    if (imported != name_ && modules_.count(imported) > 0) module_.imports.emplace(imported, line);
  }

  const std::string& name_;
  const Modules& modules_;
  Module& module_;
};

// All imports, also those inside of functions; texts in three quotes are left out.
void ReadImports(const fs::path& root, const std::string& name, Modules& modules) {
  ImportReader reader(name, modules, modules[name]);
  std::ifstream file(root / modules[name].file);
  bool in_text = false;
  int number = 0;
  int begin = 0;
  std::string statement;
  for (std::string line; std::getline(file, line);) {
    ++number;
    for (size_t at = line.find("\"\"\""); at != std::string::npos;
         at = line.find("\"\"\"", at + 3)) {
      in_text = !in_text;
    }
    if (in_text) continue;
    if (statement.empty()) begin = number;
    statement += line.substr(0, line.find('#'));
    const bool is_open = std::count(statement.begin(), statement.end(), '(') >
                         std::count(statement.begin(), statement.end(), ')');
    if (is_open && statement.find(" import (") != std::string::npos) continue;
    reader.Read(statement, begin);
    statement.clear();
  }
}

}  // namespace

std::vector<Violation> CheckPython(const fs::path& root) {
  Modules modules = ModulesBelow(root);
  std::set<std::string> names;
  for (const auto& [name, module] : modules) names.insert(name);
  for (const std::string& name : names) ReadImports(root, name, modules);
  Arrows arrows;
  for (const auto& [name, module] : modules) arrows[name] = module.imports;
  std::vector<Violation> found;
  for (const Circle& circle : CirclesOf(arrows)) {
    found.push_back({"circle", modules[circle.first].file, circle.line,
                     "modules import each other: " + circle.way + "; move what both need below"});
  }
  return found;
}

}  // namespace npumesh
