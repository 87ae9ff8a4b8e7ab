// Files of other tools that people hand to npumesh, told by their first bytes.
#ifndef NPUMESH_GRAPH_IO_FOREIGN_FILE_H_
#define NPUMESH_GRAPH_IO_FOREIGN_FILE_H_

#include <string_view>

#include "runtime/base/status.h"

namespace npumesh {

// Error (kUnsupported): the bytes of a whole file are of a kind that is certainly no graph that
// npumesh reads; the text says which kind, and how a graph is made of it. Ok for all others,
// damaged graphs among them. Pure; any bytes.
Status RefuseForeignFile(std::string_view bytes);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IO_FOREIGN_FILE_H_
