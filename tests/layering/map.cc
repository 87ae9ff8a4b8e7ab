#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "tests/layering/layering.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMap = "docs/architecture.md";
constexpr std::array<std::string_view, 4> kFloors = {"runtime", "collectives", "graph", "launch"};

std::string ContentOf(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::vector<Violation> CheckMap(const fs::path& root) {
  const std::string map = ContentOf(root / kMap);
  std::vector<Violation> found;
  if (map.empty()) return found;
  for (const std::string_view floor : kFloors) {
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

}  // namespace npumesh
