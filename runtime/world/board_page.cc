#include "runtime/world/board_page.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace npumesh {

std::string_view BoardPage::failure() const {
  return std::string_view(text, std::min<size_t>(text_bytes, kTextBytes));
}

namespace board {

std::vector<Position> ReadPositions(const std::byte* part, size_t* lines) {
  const auto* page = reinterpret_cast<const BoardPage*>(part);
  const auto* all = reinterpret_cast<const PositionLine*>(part + kPageBytes);
  *lines = std::min<uint32_t>(page->lines.load(std::memory_order_acquire), kPositionLines);
  std::vector<Position> positions;
  for (size_t i = 0; i < *lines; ++i) {
    if (std::optional<Position> position = all[i].Read()) {
      positions.push_back(*std::move(position));
    }
  }
  return positions;
}

}  // namespace board
}  // namespace npumesh
