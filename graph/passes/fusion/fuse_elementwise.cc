// ElementwiseChainFusionPass: element-wise operators of one shape that feed each other.
#include <algorithm>
#include <map>
#include <set>

#include "graph/ops/toolbox/machine/block_program.h"
#include "graph/passes/fusion/fusion_view.h"

namespace npumesh {
namespace {

// Their blocks lie in the first-level cache together, or nearly.
constexpr size_t kMostOfChain = 16;

class ChainFinder {
 public:
  explicit ChainFinder(FusionView& view) : view_(view) {
    for (const NodeId id : view.order()) {
      if (!view.Free(id) || view.op(id).evaluate != nullptr) continue;
      if (view.context(id).outputs() != 1 || shape(id).elements() == 0) continue;
      if (ComputesInBlocks(view.op(id), view.context(id))) links_.insert(id);
    }
  }

  // From the end of the graph to its start, so that a chain is found at its last operator.
  void Run() {
    for (auto id = view_.order().rbegin(); id != view_.order().rend(); ++id) {
      if (!links_.contains(*id) || !view_.Free(*id)) continue;
      std::vector<NodeId> nodes = ChainTo(*id);
      const bool alone = nodes.size() == 1;
      const std::string_view why = alone ? WhyAlone(*id) : view_.WhyNotFuse(nodes);
      if (!why.empty()) {
        view_.Refuse(kElementwiseFusionPass, *id, why);
      } else if (!alone) {
        view_.Take(StepOf(std::move(nodes)));
      }
    }
  }

 private:
  const Shape& shape(NodeId id) const { return view_.context(id).out(0).shape; }

  // `last` and what feeds it, and it alone, through operators of its shape.
  std::vector<NodeId> ChainTo(NodeId last) const {
    std::vector<NodeId> nodes = {last};
    for (bool grew = true; grew;) {
      grew = false;
      for (size_t i = 0; i < nodes.size() && nodes.size() < kMostOfChain; ++i) {
        for (int slot = 0; slot < view_.context(nodes[i]).slots(); ++slot) {
          const NodeId producer = view_.Producer(nodes[i], slot);
          if (!MayJoin(producer, nodes) || nodes.size() == kMostOfChain) continue;
          nodes.push_back(producer);
          grew = true;
        }
      }
    }
    return nodes;
  }

  bool MayJoin(NodeId id, const std::vector<NodeId>& nodes) const {
    if (id == kNoNode || !links_.contains(id) || shape(id) != shape(nodes[0])) return false;
    const bool inside = std::find(nodes.begin(), nodes.end(), id) != nodes.end();
    return !inside && view_.OnlyReadInside(id, nodes);
  }

  // Why an operator ends no chain although one that could be in it stands in front; empty: none
  // does.
  std::string_view WhyAlone(NodeId id) const {
    for (int slot = 0; slot < view_.context(id).slots(); ++slot) {
      const NodeId producer = view_.Producer(id, slot);
      if (producer == kNoNode || !links_.contains(producer)) continue;
      if (shape(producer) != shape(id)) return "what it reads has another shape";
      return "others read what it reads";
    }
    return "";
  }

  // REQUIRES: the nodes are in execution order.
  FusedStep StepOf(std::vector<NodeId> nodes) const {
    FusedStep step;
    std::vector<TensorType> types;
    std::map<Value, int> tensors;
    std::map<Value, LoopValue> computed;
    LoopBuilder loop(shape(nodes[0]), LoopTarget::kBlocks);
    for (const NodeId id : nodes) {
      const OpContext& op = view_.context(id);
      std::vector<LoopValue> fed(static_cast<size_t>(op.slots()), -1);
      std::vector<int> places(static_cast<size_t>(op.slots()), -1);
      for (int slot = 0; slot < op.slots(); ++slot) {
        const Value value = *view_.SlotValue(id, slot);
        if (const auto known = computed.find(value); known != computed.end()) {
          fed[static_cast<size_t>(slot)] = known->second;
          continue;
        }
        const auto [place, added] = tensors.try_emplace(value, static_cast<int>(types.size()));
        places[static_cast<size_t>(slot)] = place->second;
        if (!added) continue;
        step.inputs.emplace_back(value);
        types.push_back(op.in(slot));
      }
      loop.Begin(op, op.out(0).shape, std::move(fed), std::move(places));
      view_.op(id).loop(op, loop);
      computed[{id, 0}] = loop.result();
    }
    const OpContext& last = view_.context(nodes.back());
    loop.Write(loop.result(), last.out(0).dtype);
    step.elementwise = true;
    step.make_kernel = [blocks = *BlocksOf(loop.Finish(), std::move(types), last.out(0)),
                        threads = last.threads()] {
      return Result<std::unique_ptr<Kernel>>(MakeBlockMachine(blocks, {.threads = threads}));
    };
    step.nodes = std::move(nodes);
    return step;
  }

  FusionView& view_;
  std::set<NodeId> links_;  // what may be in a chain
};

}  // namespace

void FuseElementwise(FusionView& view) {
  ChainFinder(view).Run();
}

}  // namespace npumesh
