// The functions of loop programs as text, which needs no header (all.lanes.h).
#ifndef NPUMESH_GRAPH_STATIC_KERNEL_SOURCE_LANES_TEXT_H_
#define NPUMESH_GRAPH_STATIC_KERNEL_SOURCE_LANES_TEXT_H_

#include <string_view>

namespace npumesh {

// For one width: in a namespace, below a definition of NM_WIDTH.
std::string_view LanesText();

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_STATIC_KERNEL_SOURCE_LANES_TEXT_H_
