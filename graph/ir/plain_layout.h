// Layouts ("formats") in which the elements of a tensor stand as its shape says.
#ifndef NPUMESH_GRAPH_IR_PLAIN_LAYOUT_H_
#define NPUMESH_GRAPH_IR_PLAIN_LAYOUT_H_

#include <string>

#include "graph/ir/graph.h"

namespace npumesh {

// The layout in which the engine keeps the tensor of `desc`: a private layout is what the file has,
// not what lies in memory; its `origin_format` is, or ND where there is no such attribute.
std::string PlainLayoutOf(const TensorDesc& desc);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IR_PLAIN_LAYOUT_H_
