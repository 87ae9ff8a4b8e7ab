#include "graph/guard/edge_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "graph/engine/plan/compiled_model.h"
#include "graph/guard/guarded_area.h"
#include "graph/passes/analysis/node_error.h"
#include "runtime/device/device_memory.h"

namespace npumesh {
namespace {

bool Covers(const PlannedTensor& block, uint64_t offset, size_t step) {
  const auto index = static_cast<int>(step);
  return block.first <= index && index <= block.last && block.offset <= offset &&
         offset < block.offset + block.bytes;
}

// Whether all bytes are the canary; in the time of a pass over them.
bool IsUntouched(std::span<const std::byte> bytes) {
  return bytes.empty() || (bytes[0] == kCanary &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

bool HasUntrusted(const Graph& graph, const OpRegistry& operators, const OpRegistry& trusted) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node& node) {
    return !node.removed && trusted.Find(node.type) == nullptr &&
           operators.Find(node.type) != nullptr;
  });
}

}  // namespace

bool HasUntrustedOperators(const Model& model, const OpRegistry& operators,
                           const OpRegistry& trusted) {
  return HasUntrusted(model.graph, operators, trusted) ||
         std::any_of(model.subgraphs.begin(), model.subgraphs.end(),
                     [&](const Graph& graph) { return HasUntrusted(graph, operators, trusted); });
}

Status EdgeGuard::BeforeStep(const StepView& view) {
  edges_.clear();
  const bool checks = view.run.memory.arena != nullptr && view.run.memory.margin > 0 &&
                      view.args.out != nullptr && trusted_.Find(view.step.type) == nullptr;
  if (!checks) return Status();
  for (size_t i = 0; i < view.step.output_types.size(); ++i) AddEdge(view, i);
  for (const Edge& edge : edges_) std::fill(edge.unused.begin(), edge.unused.end(), kCanary);
  return Status();
}

// The last `margin` bytes of a block belong to no tensor, and what is before them up to the end of
// an output that has the block alone.
void EdgeGuard::AddEdge(const StepView& view, size_t output) {
  const uint64_t margin = view.run.memory.margin;
  const std::vector<PlannedTensor>& blocks = view.run.model.facts().tensors;
  const Address& address = view.step.outputs[output];
  if (address.kind != Address::Kind::kArena || view.args.out[output] == nullptr) return;
  const auto block = std::find_if(blocks.begin(), blocks.end(), [&](const PlannedTensor& each) {
    return Covers(each, address.offset, view.index);
  });
  if (block == blocks.end() || block->bytes <= margin) return;
  const uint64_t bytes = view.step.output_types[output].bytes();
  const uint64_t aligned = (bytes + kHbmAlignment - 1) / kHbmAlignment * kHbmAlignment;
  const uint64_t end = address.offset + bytes;
  const uint64_t block_end = block->offset + block->bytes;
  const bool alone = address.offset == block->offset && aligned + margin == block->bytes;
  const uint64_t begin = alone ? end : block_end - margin;
  if (begin < end) return;
  edges_.push_back({output, {view.run.memory.arena + begin, block_end - begin}, begin - end});
}

Status EdgeGuard::AfterStep(const StepView& view) {
  for (const Edge& edge : edges_) {
    if (IsUntouched(edge.unused)) continue;
    const auto last = std::find_if(edge.unused.rbegin(), edge.unused.rend(),
                                   [](std::byte value) { return value != kCanary; });
    const auto reached = static_cast<uint64_t>(edge.unused.rend() - last);
    const TensorType& type = view.step.output_types[edge.output];
    return AtNode(view.step.name, view.step.type, view.step.origin,
                  Error(Code::kCorrupt,
                        "it wrote past the end of output {} ({}, {} bytes), {}{} bytes too far; "
                        "run --guard checks all that it writes and reads",
                        edge.output, type.ToString(), type.bytes(),
                        reached == edge.unused.size() ? "at least " : "", edge.distance + reached));
  }
  return Status();
}

}  // namespace npumesh
