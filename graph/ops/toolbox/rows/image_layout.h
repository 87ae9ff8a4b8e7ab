// Where the channels of an image are, and what SAME pads.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_IMAGE_LAYOUT_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_IMAGE_LAYOUT_H_

#include <algorithm>
#include <string>
#include <string_view>

#include "graph/ops/core/operator.h"
#include "graph/ops/toolbox/values/ceil_div.h"

namespace npumesh {

// Layout of an input, "NCHW" or "HWCN" for instance: what the node's attribute "input_layout_info"
// says of it, else its descriptor, else `fallback`.
inline std::string LayoutOf(const OpContext& op, int slot, std::string_view fallback) {
  const int index = op.input_index(slot);
  const AttrValue* hints = op.node().FindAttr("input_layout_info");
  if (const auto* list = hints != nullptr ? hints->get<ListAttr>() : nullptr) {
    for (size_t i = 0; i < list->i.size() && i < list->s.size(); ++i) {
      if (list->i[i] == index) return list->s[i];
    }
  }
  const std::string& layout = op.node().input_descs[static_cast<size_t>(index)].layout;
  return layout.empty() || layout == "ND" ? std::string(fallback) : layout;
}

// True for NHWC and NDHWC, false for NCHW and NCDHW. Error (kUnsupported) for anything else; names
// the node and the slot.
inline Result<bool> ChannelsLast(const OpContext& op, int slot, std::string_view fallback) {
  const std::string layout = LayoutOf(op, slot, fallback);
  if (layout == "NHWC" || layout == "NDHWC") return true;
  if (layout == "NCHW" || layout == "NCDHW") return false;
  return Error(Code::kUnsupported, "{}: input {} has the layout {}, expected NCHW or NHWC",
               op.Who(), slot, layout);
}

// Pixels that the padding SAME adds along a dimension, for as many windows as strides. `reach`:
// from the first to the last pixel of a window.
inline int64_t SamePadding(int64_t size, int64_t stride, int64_t reach) {
  return std::max<int64_t>((CeilDiv(size, stride) - 1) * stride + reach - size, 0);
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_IMAGE_LAYOUT_H_
