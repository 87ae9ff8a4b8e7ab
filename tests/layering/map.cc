#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <iterator>
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
constexpr std::array<std::string_view, 4> kMappedFloors = {"runtime", "collectives", "graph",
                                                           "launch"};

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

std::vector<Violation> RoomsWithoutName(const fs::path& root) {
  const std::string map = ContentOf(root / kMap);
  std::vector<Violation> found;
  if (map.empty()) return found;
  for (const std::string_view floor : kMappedFloors) {
    if (!fs::is_directory(root / floor)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / floor)) {
      if (entry.path().filename() != "CMakeLists.txt") continue;
      const std::string text = ContentOf(entry.path());
      const size_t at = text.find("npumesh_library(");
      if (at == std::string::npos) continue;
      const fs::path room = fs::relative(entry.path().parent_path(), root);
      if (map.find(room.filename().generic_string() + "/") != std::string::npos) continue;
      const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<int64_t>(at), '\n');
      found.push_back({"map", (room / "CMakeLists.txt").generic_string(), static_cast<int>(line),
                       std::string(kMap) + " does not name the room " + room.generic_string() +
                           "/; say what it holds"});
    }
  }
  return found;
}

}  // namespace

std::vector<Violation> CheckMap(const fs::path& root) {
  std::vector<Violation> found = RoomsWithoutName(root);
  for (Violation& violation : PagesWithoutLink(root)) found.push_back(std::move(violation));
  return found;
}

}  // namespace npumesh
