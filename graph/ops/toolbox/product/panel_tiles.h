// How products by panels cut their rows.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_PANEL_TILES_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_PANEL_TILES_H_

#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "graph/ops/toolbox/values/ceil_div.h"

namespace npumesh {

// Bytes of packed rows, which are used panel after panel, so the second cache should hold them
// beside a panel.
inline int64_t PackedRowBytes() {
  static const int64_t bytes = [] {
    constexpr int64_t kLeast = 128 << 10, kMost = 1 << 20;
    return std::clamp<int64_t>(sysconf(_SC_LEVEL2_CACHE_SIZE) / 2, kLeast, kMost);
  }();
  return bytes;
}

// `count` cut into equal parts of at most `most`: the size of one, the last may be smaller.
inline int64_t EqualParts(int64_t count, int64_t most) {
  return CeilDiv(count, CeilDiv(count, most));
}

// The rows of a block, in tiles that differ by at most one row.
struct Tiles {
  Tiles(int64_t rows, int64_t most)
      : count(CeilDiv(rows, most)), least_(rows / count), larger_(rows % count) {}

  int64_t rows(int64_t tile) const { return least_ + (tile < larger_ ? 1 : 0); }

  int64_t count;

 private:
  int64_t least_, larger_;  // rows of a tile; tiles that have one more
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_PANEL_TILES_H_
