#include "tests/layering/layering.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>

#include "tests/layering/circles.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;

// Bottom up; an index in it is the height of a floor.
constexpr std::array<std::string_view, 5> kFloors = {"proto", "runtime", "collectives", "graph",
                                                     "launch"};

// A folder that is a library, as its CMakeLists.txt declares it.
struct Library {
  std::string name;
  std::string cmake_file;  // relative to the root
  int line = 0;            // of the declaration
  std::vector<std::string> depends;
};

// What only some places may include or name. A place is a folder (with everything below it) or,
// with an extension, one file.
struct Seal {
  std::string_view what;
  bool (*is_header)(std::string_view name);  // of an #include
  std::string_view prefix;                   // of words in code
  std::vector<std::string_view> places;
};

const std::vector<Seal>& Seals() {
  static const std::vector<Seal> seals = {
      {"MPI",
       [](std::string_view name) { return name == "mpi.h" || name == "mpi-ext.h"; },
       "MPI_",
       {"runtime/world"}},
      {"hwloc",
       [](std::string_view name) { return name == "hwloc.h" || name.starts_with("hwloc/"); },
       "hwloc_",
       {"runtime/world/topology.cc"}},
      {"protobuf",
       [](std::string_view name) {
         return name.ends_with(".pb.h") || name.starts_with("google/protobuf/") ||
                name.starts_with("onnx/");
       },
       "google::protobuf",
       {"proto", "graph/io", "graph/dump", "graph/onnx/reader.cc", "graph/onnx/writer.cc",
        "graph/onnx/counterparts.h", "graph/onnx/counterparts.cc", "graph/onnx/tensor_reader.h",
        "graph/onnx/tensor_reader.cc"}},
  };
  return seals;
}

constexpr std::array<std::string_view, 23> kBannedCalls = {
    "atoi",   "atol",   "atoll",   "atof",      "stoi",      "stol",    "stoll",   "stoul",
    "stoull", "stof",   "stod",    "stold",     "strtol",    "strtoll", "strtoul", "strtoull",
    "strtof", "strtod", "strtold", "strtoimax", "strtoumax", "system",  "popen"};

// The name in an #include line, of either form; empty when `line` is none.
std::string_view IncludedName(std::string_view line) {
  const auto skip = [&line](std::string_view text) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (!line.starts_with(text)) return false;
    line.remove_prefix(text.size());
    return true;
  };
  if (!skip("#") || !skip("include")) return {};
  if (!skip("\"") && !skip("<")) return {};
  return line.substr(0, line.find_first_of("\">"));
}

bool IsWordCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

size_t EndOfWord(std::string_view text, size_t at) {
  while (at < text.size() && IsWordCharacter(text[at])) ++at;
  return at;
}

// The first word of `line` that begins with `prefix`; empty when there is none.
std::string_view WordWithPrefix(std::string_view line, std::string_view prefix) {
  for (size_t at = line.find(prefix); at != std::string_view::npos;
       at = line.find(prefix, at + 1)) {
    if (at > 0 && IsWordCharacter(line[at - 1])) continue;
    return line.substr(at, EndOfWord(line, at + prefix.size()) - at);
  }
  return {};
}

// The first banned function that `line` calls; empty when there is none. A member function of the
// same name (`file.system()`, `file->system()`) is another function.
std::string_view BannedCallIn(std::string_view line) {
  for (size_t open = line.find('('); open != std::string_view::npos;
       open = line.find('(', open + 1)) {
    size_t end = open;
    while (end > 0 && line[end - 1] == ' ') --end;
    size_t begin = end;
    while (begin > 0 && IsWordCharacter(line[begin - 1])) --begin;
    const bool member = begin > 0 && (line[begin - 1] == '.' || line[begin - 1] == '>');
    const std::string_view word = line.substr(begin, end - begin);
    if (!member && std::find(kBannedCalls.begin(), kBannedCalls.end(), word) != kBannedCalls.end())
      return word;
  }
  return {};
}

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string_view FirstPart(std::string_view path) {
  return path.substr(0, path.find('/'));
}

std::string FolderOf(std::string_view file) {
  const size_t slash = file.rfind('/');
  return std::string(slash == std::string_view::npos ? std::string_view() : file.substr(0, slash));
}

// Height of the floor that a path lies on; empty for paths outside of the house.
std::optional<size_t> FloorOf(std::string_view path) {
  const auto* floor = std::find(kFloors.begin(), kFloors.end(), FirstPart(path));
  if (floor == kFloors.end()) return std::nullopt;
  return static_cast<size_t>(floor - kFloors.begin());
}

bool LiesIn(std::string_view file, std::string_view place) {
  return file == place || (file.starts_with(place) && file.substr(place.size()).starts_with('/'));
}

// The node of a folder in the map's diagram: "graph/ops/core" is ops, "launch/run" launch.
std::string NodeOf(const std::string& folder) {
  const size_t slash = folder.find('/');
  if (slash == std::string::npos || LiesIn(folder, kFloors.back())) return folder.substr(0, slash);
  return folder.substr(slash + 1, folder.find('/', slash + 1) - slash - 1);
}

// `text` with every comment removed; lines stay.
std::string WithoutCMakeComments(const std::string& text) {
  std::string code;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) code += line.substr(0, line.find('#')) + "\n";
  return code;
}

// From the arguments of npumesh_library.
Library ParseLibrary(const std::string& arguments) {
  Library library;
  std::istringstream words(arguments);
  words >> library.name;
  bool in_depends = false;
  for (std::string word; words >> word;) {
    if (word == "DEPENDS" || word == "LIBRARIES" || word == "PRECOMPILE" || word == "REUSES" ||
        word == "ROOMS" || word == "BATCH") {
      in_depends = word == "DEPENDS";
    } else if (in_depends) {
      library.depends.push_back(word);
    }
  }
  return library;
}

// The type that a line at the left edge begins to define, or nothing.
std::string DefinedType(const std::string& line) {
  if (line.find('{') == std::string::npos) return {};
  std::istringstream words(line);
  std::string word;
  words >> word;
  if (line.starts_with(' ') || (word != "struct" && word != "class" && word != "enum")) return {};
  while (words >> word) {
    if (word == "class" || word.starts_with("alignas") || word.starts_with("[[")) continue;
    const bool member = word.find("::") != std::string::npos;
    return member ? std::string() : word.substr(0, word.find_first_of(":{"));
  }
  return {};
}

// Headers whose types are in namespace npumesh: not those for C, nor those that are compiled once
// for each instruction set.
bool DefinesTypes(const std::string& file) {
  return file.ends_with(".h") && !file.ends_with("-inl.h") && !file.ends_with(".lanes.h") &&
         file.find("/include/") == std::string::npos;
}

// What the house knows about an operator stands in its row (graph/ops/core/operator.h): others ask
// for a trait, not for a name. Readers of files, the frame of a graph (graph/ir/node_kind.h) and
// what is a pattern of names by nature may compare them.
constexpr std::array<std::string_view, 7> kMayNameOperators = {
    "graph/ir",
    "graph/io",
    "graph/onnx",  // the table of counterparts
    "graph/ops",
    "graph/passes/fusion",
    "graph/passes/rewrite/private_formats.cc",  // makes TransData and takes it away
    "graph/compare/golden/reference_ops.cc"};   // the table of references

// The comparison of a node's type with the name of an operator in a line, or nothing.
std::string NamedOperatorIn(const std::string& line) {
  static const std::regex pattern(R"re(\btype\b *(==|!=) *"([A-Z]\w*)")re");
  std::smatch match;
  return std::regex_search(line, match, pattern) ? match[2].str() : std::string();
}

class Checker {
 public:
  explicit Checker(fs::path root) : root_(std::move(root)) {}

  std::vector<Violation> Run() {
    CollectFiles();
    if (sources_.empty() && cmake_files_.empty()) {
      Report("floor", ".", 0, "no floor (proto, runtime, ...) below " + root_.string());
    }
    for (const std::string& file : cmake_files_) ReadLibraries(file);
    for (const auto& [folder, library] : libraries_) CheckDependsList(folder, library);
    CheckCircles();
    CheckDiagram();
    for (const std::string& file : sources_) CheckSource(file);
    for (Violation& violation : CheckCitations(root_)) found_.push_back(std::move(violation));
    for (Violation& violation : CheckLinks(root_)) found_.push_back(std::move(violation));
    for (Violation& violation : CheckMap(root_)) found_.push_back(std::move(violation));
    for (Violation& violation : CheckPython(root_)) found_.push_back(std::move(violation));
    for (Violation& violation : CheckWidth(root_)) found_.push_back(std::move(violation));
    std::sort(found_.begin(), found_.end(), [](const Violation& a, const Violation& b) {
      return std::tie(a.file, a.line, a.rule) < std::tie(b.file, b.line, b.rule);
    });
    return std::move(found_);
  }

 private:
  void CollectFiles() {
    for (std::string_view floor : kFloors) {
      if (!fs::is_directory(root_ / floor)) continue;
      for (const auto& entry : fs::recursive_directory_iterator(root_ / floor)) {
        if (!entry.is_regular_file()) continue;
        const std::string file = fs::relative(entry.path(), root_).generic_string();
        const std::string extension = entry.path().extension().string();
        if (extension == ".h" || extension == ".cc") sources_.insert(file);
        if (entry.path().filename() == "CMakeLists.txt") cmake_files_.insert(file);
      }
    }
  }

  // npumesh_library(<name> [DEPENDS ...] [LIBRARIES ...]), for proto add_library(<name> ...), and
  // npumesh_family(<name> ...), whose library is npumesh_ops_<name>.
  void ReadLibraries(const std::string& file) {
    const std::string text = WithoutCMakeComments(ReadAll(root_ / file));
    for (std::string_view call : {"npumesh_library(", "add_library(", "npumesh_family("}) {
      for (size_t at = text.find(call); at != std::string::npos; at = text.find(call, at + 1)) {
        const size_t begin = at + call.size();
        Library library = ParseLibrary(text.substr(begin, text.find(')', begin) - begin));
        if (call == "npumesh_family(") library.name.insert(0, "npumesh_ops_");
        library.cmake_file = file;
        library.line = 1 + static_cast<int>(std::count(text.begin(), text.begin() + at, '\n'));
        const std::string folder = FolderOf(file);
        folder_of_library_[library.name] = folder;
        libraries_.emplace(folder, std::move(library));
      }
    }
  }

  void CheckDependsList(const std::string& folder, const Library& library) {
    for (const std::string& name : library.depends) {
      const auto target = folder_of_library_.find(name);
      if (target == folder_of_library_.end()) {
        Report("depends", library.cmake_file, library.line,
               library.name + " depends on " + name +
                   ", which is no folder of this project; third-party targets go to LIBRARIES");
      } else if (FloorOf(target->second) > FloorOf(folder)) {
        Report("depends", library.cmake_file, library.line,
               library.name + " depends on " + name + " of the higher floor " + target->second);
      }
    }
  }

  // Folders that list each other in DEPENDS.
  void CheckCircles() {
    Arrows arrows;
    std::map<std::string, std::string> file_of;
    for (const auto& [folder, library] : libraries_) {
      file_of[library.name] = library.cmake_file;
      std::map<std::string, int>& targets = arrows[library.name];
      for (const std::string& name : library.depends) {
        if (folder_of_library_.count(name) > 0) targets.emplace(name, library.line);
      }
    }
    for (const auto& [name, folder] : folder_of_library_) arrows[name];
    for (const Circle& circle : CirclesOf(arrows)) {
      Report("circle", file_of[circle.first], circle.line,
             "libraries depend on each other: " + circle.way);
    }
  }

  // Every arrow of the map's diagram is one of DEPENDS, and every room below the command is in it.
  void CheckDiagram() {
    constexpr char kMap[] = "docs/architecture.md";
    const std::vector<DrawnArrow> drawn = ArrowsOnMap(root_);
    if (drawn.empty()) return;
    std::set<std::pair<std::string, std::string>> depends;
    std::set<std::string> rooms;
    for (const auto& [folder, library] : libraries_) {
      for (const std::string& name : library.depends) {
        const auto target = folder_of_library_.find(name);
        if (target == folder_of_library_.end()) continue;
        depends.emplace(NodeOf(folder), NodeOf(target->second));
        rooms.insert({NodeOf(folder), NodeOf(target->second)});
      }
    }
    for (const DrawnArrow& arrow : drawn) {
      rooms.erase(arrow.from);
      rooms.erase(arrow.to);
      if (depends.count({arrow.from, arrow.to}) > 0) continue;
      Report("map", kMap, arrow.line,
             "draws " + arrow.from + " --> " + arrow.to + ", which no DEPENDS list has");
    }
    for (const std::string& room : rooms) {
      Report("map", kMap, drawn[0].line, "the diagram has no arrow of " + room);
    }
  }

  void CheckSource(const std::string& file) {
    const std::string source = ReadAll(root_ / file);
    std::istringstream lines(source);
    const std::string code_only = CodeOnly(source);
    for (Violation& violation : CheckNets(file, code_only)) found_.push_back(std::move(violation));
    std::istringstream code(code_only);
    int line = 0;
    bool outer = false;  // the namespace that was opened last is npumesh
    for (std::string text; std::getline(code, text);) {
      ++line;
      std::string whole;  // with its literals
      std::getline(lines, whole);
      CheckOperatorNames(file, line, whole);
      if (text.starts_with("namespace ")) outer = text == "namespace npumesh {";
      if (outer && DefinesTypes(file)) CheckName(file, line, DefinedType(text));
      if (const std::string_view header = IncludedName(text); !header.empty()) {
        CheckInclude(file, line, std::string(header));
      } else {
        CheckCode(file, line, text);
      }
    }
  }

  void CheckName(const std::string& file, int line, const std::string& type) {
    if (type.empty()) return;
    const auto [first, is_new] = home_of_type_.emplace(type, file);
    if (is_new || first->second == file) return;
    Report("names", file, line, "defines " + type + ", as " + first->second + " does; rename one");
  }

  void CheckOperatorNames(const std::string& file, int line, const std::string& whole) {
    const bool allowed = std::any_of(kMayNameOperators.begin(), kMayNameOperators.end(),
                                     [&](std::string_view place) { return LiesIn(file, place); });
    const bool knows_graphs = LiesIn(file, "graph") || LiesIn(file, "launch");
    const std::string name = allowed || !knows_graphs ? "" : NamedOperatorIn(whole);
    if (name.empty()) return;
    Report(
        "operator", file, line,
        "asks for the operator " + name + " by name; ask for a trait (graph/ops/core/operator.h)");
  }

  void CheckInclude(const std::string& file, int line, const std::string& header) {
    if (LiesIn(header, "..") || header.find("/../") != std::string::npos) {
      Report("floor", file, line,
             "includes \"" + header + "\"; write the path from the root of the project");
    }
    CheckFloor(file, line, header);
    CheckDepends(file, line, header);
    for (const Seal& seal : Seals()) {
      if (seal.is_header(header)) CheckSeal(file, line, seal, header);
    }
  }

  void CheckFloor(const std::string& file, int line, const std::string& header) {
    const std::optional<size_t> mine = FloorOf(file);
    const std::optional<size_t> theirs = FloorOf(header);
    if (!theirs || *theirs <= *mine) return;
    Report("floor", file, line,
           std::string(kFloors[*mine]) + " includes \"" + header + "\" of the higher floor " +
               std::string(kFloors[*theirs]));
  }

  // The command in launch/ is no library and may include every floor.
  void CheckDepends(const std::string& file, int line, const std::string& header) {
    if (!FloorOf(header)) return;
    const Library* mine = LibraryOf(FolderOf(file));
    if (mine == nullptr) return;
    const Library* theirs = LibraryOf(FolderOf(header));
    if (theirs == mine || IsPublicHeader(FolderOf(mine->cmake_file), header)) return;
    if (theirs == nullptr) {
      Report("depends", file, line, "includes \"" + header + "\", which belongs to no library");
    } else if (std::find(mine->depends.begin(), mine->depends.end(), theirs->name) ==
               mine->depends.end()) {
      Report("depends", file, line,
             "includes \"" + header + "\", but " + mine->cmake_file + " does not list " +
                 theirs->name + " in DEPENDS");
    }
  }

  // A header that a library installs under the vendor's name ("graph/graph.h"), below its include/.
  bool IsPublicHeader(const std::string& folder, const std::string& header) const {
    return sources_.count(folder + "/include/" + header) > 0;
  }

  // The library of a folder, or of the nearest folder above it that is one.
  const Library* LibraryOf(std::string folder) const {
    for (;; folder = FolderOf(folder)) {
      if (const auto it = libraries_.find(folder); it != libraries_.end()) return &it->second;
      if (folder.empty()) return nullptr;
    }
  }

  void CheckCode(const std::string& file, int line, const std::string& text) {
    for (const Seal& seal : Seals()) {
      const std::string_view word = WordWithPrefix(text, seal.prefix);
      if (!word.empty()) CheckSeal(file, line, seal, word);
    }
    const std::string_view call = BannedCallIn(text);
    if (!call.empty()) {
      Report("banned", file, line,
             "calls " + std::string(call) +
                 "; numbers go through runtime/base/text/parse.h, programs start without a shell");
    }
  }

  void CheckSeal(const std::string& file, int line, const Seal& seal, std::string_view seen) {
    const bool allowed = std::any_of(seal.places.begin(), seal.places.end(),
                                     [&](std::string_view place) { return LiesIn(file, place); });
    if (allowed) return;
    std::string places;
    for (std::string_view place : seal.places) {
      places += (places.empty() ? "" : ", ") + std::string(place);
    }
    Report("seal", file, line,
           std::string(seal.what) + " (" + std::string(seen) + ") may appear only in " + places);
  }

  void Report(std::string rule, std::string file, int line, std::string text) {
    found_.push_back({std::move(rule), std::move(file), line, std::move(text)});
  }

  fs::path root_;
  std::set<std::string> sources_;
  std::set<std::string> cmake_files_;
  std::map<std::string, Library> libraries_;  // by folder
  std::map<std::string, std::string> folder_of_library_;
  std::map<std::string, std::string> home_of_type_;  // by name: the header that defines it
  std::vector<Violation> found_;
};

}  // namespace

std::string Violation::ToString() const {
  return file + ":" + std::to_string(line) + ": [" + rule + "] " + text;
}

std::vector<Violation> CheckLayering(const std::filesystem::path& root) {
  return Checker(root).Run();
}

}  // namespace npumesh
