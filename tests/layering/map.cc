#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/layering/layering.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMap = "docs/architecture.md";
constexpr std::string_view kIndex = "docs/README.md";
constexpr std::string_view kMappedFloors[] = {"runtime", "collectives", "graph", "launch",
                                              "python"};
// Folders that have the vendor's names.
constexpr std::string_view kForeignFolders[] = {"/include", "/stand_in/"};
// What a folder of sources has.
constexpr std::string_view kSources[] = {".cc", ".h", ".py"};

std::string ContentOf(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<Violation> PagesWithoutLink(const fs::path& root) {
  const std::string index = ContentOf(root / kIndex);
  std::vector<Violation> found;
  if (index.empty()) return found;
  const fs::path folder = fs::path(kIndex).parent_path();
  for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
    const std::string page = fs::relative(entry.path(), root / folder).generic_string();
    if (entry.path().extension() != ".md" || folder / page == kIndex) continue;
    if (index.find("(" + page + ")") != std::string::npos) continue;
    found.push_back({"map", (folder / page).generic_string(), 1,
                     std::string(kIndex) + " has no link to this page"});
  }
  return found;
}

// The folders that the map's blocks name, each with its line. A block is a tree by indentation; a
// line names a folder, or several, and then says what they hold.
std::map<std::string, int> RoomsOnMap(const std::string& map) {
  std::map<std::string, int> rooms;
  std::map<size_t, std::string> parents;  // by indentation
  bool in_fence = false;
  bool in_block = false;  // of no language
  int number = 0;
  std::istringstream lines(map);
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find("```") != std::string::npos) {
      in_fence = !in_fence;
      in_block = in_fence && line == "```";
      parents.clear();
      continue;
    }
    const size_t indentation = std::min(line.find_first_not_of(' '), line.size());
    std::istringstream words(line);
    for (std::string word; in_block && words >> word && word.ends_with('/');) {
      parents.erase(parents.lower_bound(indentation), parents.end());
      const std::string parent = parents.empty() ? "" : parents.rbegin()->second + "/";
      word.pop_back();
      parents[indentation] = parent + word;
      rooms.emplace(parent + word, number);
    }
  }
  return rooms;
}

bool IsRoom(const fs::path& folder) {
  const auto lies_in = [name = folder.generic_string()](std::string_view foreign) {
    return name.find(foreign) != std::string::npos;
  };
  const auto is_source = [](const fs::directory_entry& entry) {
    return std::ranges::count(kSources, entry.path().extension().string()) > 0;
  };
  const fs::directory_iterator files(folder);
  return std::ranges::none_of(kForeignFolders, lies_in) &&
         std::any_of(begin(files), end(files), is_source);
}

std::vector<Violation> RoomsWithoutName(const fs::path& root) {
  const std::string map = ContentOf(root / kMap);
  std::vector<Violation> found;
  if (map.empty()) return found;
  const std::map<std::string, int> on_map = RoomsOnMap(map);
  for (const auto& [room, line] : on_map) {
    if (fs::is_directory(root / room)) continue;
    found.push_back({"map", std::string(kMap), line, "names " + room + "/, which is no folder"});
  }
  for (const std::string_view floor : kMappedFloors) {
    if (!fs::is_directory(root / floor)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / floor)) {
      const std::string room = fs::relative(entry.path(), root).generic_string();
      if (!entry.is_directory() || on_map.count(room) > 0 || !IsRoom(entry.path())) continue;
      found.push_back(
          {"map", std::string(kMap), 1, "does not name the room " + room + "/; say what it holds"});
    }
  }
  return found;
}

}  // namespace

std::vector<DrawnArrow> ArrowsOnMap(const fs::path& root) {
  constexpr std::string_view kArrow = " --> ";
  std::vector<DrawnArrow> arrows;
  bool in_diagram = false;
  int number = 0;
  std::istringstream lines(ContentOf(root / kMap));
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (in_diagram && line == "```") break;
    in_diagram = in_diagram || line == "```mermaid";
    if (!in_diagram || line.find(kArrow) == std::string::npos) continue;
    line.erase(0, line.find_first_not_of(' '));
    std::string from;
    for (size_t at = 0; at != std::string::npos;) {
      const size_t end = line.find(kArrow, at);
      const std::string to = line.substr(at, end - at);
      if (!from.empty()) arrows.push_back({from, to, number});
      from = to;
      at = end == std::string::npos ? end : end + kArrow.size();
    }
  }
  return arrows;
}

std::vector<Violation> CheckMap(const fs::path& root) {
  std::vector<Violation> found = RoomsWithoutName(root);
  for (Violation& violation : PagesWithoutLink(root)) found.push_back(std::move(violation));
  return found;
}

}  // namespace npumesh
