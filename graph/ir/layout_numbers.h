// The numbers of layouts ("formats"): GE's, which graph files and dump files share. Some of the
// names differ.
#ifndef NPUMESH_GRAPH_IR_LAYOUT_NUMBERS_H_
#define NPUMESH_GRAPH_IR_LAYOUT_NUMBERS_H_

#include <cstdint>
#include <span>
#include <string_view>

namespace npumesh {

inline constexpr int64_t kNdLayout = 2;
// What an unknown or missing layout reads as in a graph file.
inline constexpr int64_t kReservedLayout = 40;

struct LayoutNames {
  std::string_view graph;
  std::string_view dump;  // empty: dump files do not have it
};

// The position is the number.
std::span<const LayoutNames> LayoutsByNumber();

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IR_LAYOUT_NUMBERS_H_
