// Where tiles of vectors lie in a cache of blocks: the same tile of all slots of a block together.
#ifndef NPUMESH_GRAPH_OPS_ATTENTION_CACHE_TILES_H_
#define NPUMESH_GRAPH_OPS_ATTENTION_CACHE_TILES_H_

#include <cstdint>

namespace npumesh {

// The number of tile `index` of the `tiles` of the vector in `slot`. With one slot in a block and
// one tile, which is a cache of rows, it is the slot.
inline int64_t TileOfSlot(int64_t slot, int64_t index, int64_t tiles, int64_t block_size) {
  return (slot / block_size * tiles + index) * block_size + slot % block_size;
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_ATTENTION_CACHE_TILES_H_
