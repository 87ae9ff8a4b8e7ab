// Where the channels of an image are.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_IMAGE_LAYOUT_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_IMAGE_LAYOUT_H_

#include <string>
#include <string_view>

#include "graph/ops/core/operator.h"

namespace npumesh {

// Layout of an input, "NCHW" or "HWCN" for instance: what the node's attribute "input_layout_info"
// says of it, else its descriptor, else `fallback`.
std::string LayoutOf(const OpContext& op, int slot, std::string_view fallback);

// True for NHWC and NDHWC, false for NCHW and NCDHW. Error (kUnsupported) for anything else; names
// the node and the slot.
Result<bool> ChannelsLast(const OpContext& op, int slot, std::string_view fallback);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_IMAGE_LAYOUT_H_
