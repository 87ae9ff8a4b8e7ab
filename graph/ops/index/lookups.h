// Operators that look positions up in a tensor.
#ifndef NPUMESH_GRAPH_OPS_INDEX_LOOKUPS_H_
#define NPUMESH_GRAPH_OPS_INDEX_LOOKUPS_H_

#include <span>
#include <string_view>

namespace npumesh {

// An operator that takes positions by the input `positions`, and the input in which they are.
struct Lookup {
  std::string_view type;
  std::string_view positions;
  std::string_view tensor;
};

std::span<const Lookup> Lookups();

// Null: the operator looks nothing up.
const Lookup* FindLookup(std::string_view type);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_INDEX_LOOKUPS_H_
