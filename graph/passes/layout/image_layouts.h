// ImageLayouts: which images of a graph are kept in blocks of channels (NC1HWC0) between the
// operators that compute them, so that convolutions need not bring them there in every run.
//
// A convolution that gains by blocks begins a region. Who reads its image joins the region if it
// knows blocks: convolutions, pools, means over the image, concatenations of whole blocks, and
// element-wise operators whose other operands are images of the region, numbers for channels, or
// single numbers. Where another operator reads an image of the region, the engine brings it back,
// once for all of them.
//
// An operator of a region has a context in which its images have five dimensions. Nothing outside
// of the plan sees them: inputs, outputs and what observers see are in the layout of the graph.
//
// Thread-safety: immutable.
#ifndef NPUMESH_GRAPH_PASSES_LAYOUT_IMAGE_LAYOUTS_H_
#define NPUMESH_GRAPH_PASSES_LAYOUT_IMAGE_LAYOUTS_H_

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include "graph/passes/analysis/bound_graph.h"

namespace npumesh {

struct Convolution;

// The name by which a switch file or optimization_switch turns the pass off.
inline constexpr std::string_view kImageLayoutPass = "ImageLayoutPass";

// The graph whose layouts are chosen; all must outlive the call.
struct LayoutInput {
  const BoundGraph& graph;
  // The nodes that run, folded ones left out, in execution order.
  const std::vector<NodeId>& order;
  // An operator of `order` with its types and constants.
  std::function<const OpContext&(NodeId)> context;
  // The value when it is known before the graph runs, else null.
  std::function<const Tensor*(Value)> constant;
  // The node has to stay as it is.
  std::function<bool(NodeId)> stays;
};

// A node of a region.
struct BlockedNode {
  OpContext context;            // with its images in blocks
  std::vector<bool> in_blocks;  // by slot
  // Of what it computes in blocks; null: the operator's own, with `context`.
  std::function<Result<std::unique_ptr<Kernel>>()> make_kernel;
  // Of a convolution: how it lies in blocks; else null.
  std::shared_ptr<const Convolution> convolution;
};

class ImageLayouts {
 public:
  // No image in blocks.
  ImageLayouts() = default;
  static ImageLayouts Choose(const LayoutInput& input);

  // Null: computes on images as they are.
  const BlockedNode* Find(NodeId id) const;
  // The step that computes the value leaves it in blocks.
  bool InBlocks(Value value) const { return images_.contains(value); }
  // Whether the node reads what is fed to the slot in blocks.
  bool ReadsBlocks(NodeId id, int slot) const;
  // The constant in blocks. REQUIRES: a node reads it so.
  const Tensor& Constant(Value value) const { return constants_.at(value); }

 private:
  friend class LayoutChooser;

  std::map<NodeId, BlockedNode> nodes_;
  std::set<Value> images_;
  std::map<Value, Tensor> constants_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_PASSES_LAYOUT_IMAGE_LAYOUTS_H_
