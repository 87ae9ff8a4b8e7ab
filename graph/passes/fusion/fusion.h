// Fusion: several operators of a graph computed by one step.
//
// A pass looks for its pattern in the nodes that run, with types and constants known, and takes
// nodes that no pass before it has taken. The fused nodes keep their place in the graph; the step
// stands where the last of them stood, bears its name, and writes its output; a step may write
// other outputs of its nodes as well, where nothing reads them earlier. docs/fusion.md says what
// each pass takes and how exact the result is.
#ifndef NPUMESH_GRAPH_PASSES_FUSION_FUSION_H_
#define NPUMESH_GRAPH_PASSES_FUSION_FUSION_H_

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ops/core/static_kernels.h"
#include "graph/passes/analysis/bound_graph.h"

namespace npumesh {

struct Convolution;

// The names by which a switch file or optimization_switch turns the passes off, in the order in
// which they run.
inline constexpr std::string_view kAttentionFusionPass = "AttentionFusionPass";
inline constexpr std::string_view kRotaryFusionPass = "RotaryEmbeddingFusionPass";
inline constexpr std::string_view kLayerNormFusionPass = "LayerNormFusionPass";
inline constexpr std::string_view kRmsNormFusionPass = "RmsNormFusionPass";
inline constexpr std::string_view kMatMulFusionPass = "MatMulBiasActivationFusionPass";
inline constexpr std::string_view kConvolutionFusionPass = "ConvBatchNormFusionPass";
inline constexpr std::string_view kElementwiseFusionPass = "ElementwiseChainFusionPass";
inline constexpr std::array<std::string_view, 7> kFusionPasses = {
    kAttentionFusionPass, kRotaryFusionPass,      kLayerNormFusionPass,  kRmsNormFusionPass,
    kMatMulFusionPass,    kConvolutionFusionPass, kElementwiseFusionPass};
// Runs where a session asks for static kernels, whatever switches say: after the passes whose
// kernels are more than loops, before the others.
inline constexpr std::string_view kStaticKernelPass = "StaticKernelPass";

// The graph of which nodes are fused; all must outlive the call.
struct FusionInput {
  const BoundGraph& graph;
  // The nodes that run, folded ones left out.
  const std::vector<NodeId>& order;
  // An operator of `order` with its types and constants.
  std::function<const OpContext&(NodeId)> context;
  // The value is known before the graph runs.
  std::function<bool(Value)> known;
  // Where static kernels come from; null: there are none.
  StaticKernelSource* static_kernels = nullptr;
  // The same operator with the types of the graph, where `context` has images in blocks of channels
  // (passes/layout); null: as `context`.
  std::function<const OpContext&(NodeId)> plain_context = nullptr;
  // The convolution of a node whose images are in blocks, else null; null: none is.
  std::function<const Convolution*(NodeId)> blocked_convolution = nullptr;
};

struct FusedStep {
  std::string type;           // those of its nodes but views: "MatMul+Add+Relu"
  std::vector<NodeId> nodes;  // in execution order; output 0 of the last one is the step's
  std::vector<std::optional<Value>> inputs;  // by slot of the kernel
  // By output of the kernel: all outputs of the last node by port, then those of others. A pass
  // that leaves it empty means output 0 of the last node alone.
  std::vector<Value> outputs;
  std::function<Result<std::unique_ptr<Kernel>>()> make_kernel;
  // As Axes::elementwise.
  bool elementwise = false;
};

// A node at which a pass found its pattern begin, and the first reason why it fused nothing there.
struct FusionRefusal {
  std::string_view pass;
  NodeId anchor = kNoNode;
  std::string_view why;  // a literal
};

struct Fusions {
  std::vector<FusedStep> steps;
  std::vector<FusionRefusal> refusals;  // one for each pass and anchor at most
};

// What the passes that are `on` found. Every value that a step does not write is read by nothing
// but that step, and no node of a step has an effect, waits for a control edge or is waited for.
Fusions Fuse(const FusionInput& input, const std::function<bool(std::string_view pass)>& on);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_PASSES_FUSION_FUSION_H_
