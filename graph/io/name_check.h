// Names that an .air file can hold. Internal to graph/io.
#ifndef NPUMESH_GRAPH_IO_NAME_CHECK_H_
#define NPUMESH_GRAPH_IO_NAME_CHECK_H_

#include <string_view>

#include "graph/ir/graph.h"
#include "runtime/base/status.h"

namespace npumesh {

// True for well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
bool IsUtf8(std::string_view text);

// Protobuf strings are UTF-8, and a file that breaks this cannot be read again. Error
// (kInvalidArgument) names graph, node and field.
Status CheckNames(const Graph& graph);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IO_NAME_CHECK_H_
