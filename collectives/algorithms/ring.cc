// Ring: n - 1 steps to the right neighbour, one block each.
#include "collectives/algorithms/step_algorithms.h"

namespace npumesh {
namespace {

// Block b starts at position b + 1 and collects an operand at every position it passes; it ends at
// position b.
Status ReduceAroundRing(const Circle& circle, const PositionBlocks& blocks,
                        const Combiner& combiner) {
  const int me = circle.me();
  std::vector<std::byte> incoming;
  for (int step = 0; step + 1 < circle.size(); ++step) {
    const std::span<std::byte> here = blocks.Of(circle.Wrap(me - step - 2));
    incoming.resize(here.size());
    NPUMESH_RETURN_IF_ERROR(circle.Step(circle.Wrap(me + 1), blocks.Of(circle.Wrap(me - step - 1)),
                                        circle.Wrap(me - 1), incoming));
    combiner(incoming, here);
  }
  return Status();
}

Status GatherAroundRing(const Circle& circle, const PositionBlocks& blocks) {
  const int me = circle.me();
  for (int step = 0; step + 1 < circle.size(); ++step) {
    NPUMESH_RETURN_IF_ERROR(circle.Step(circle.Wrap(me + 1), blocks.Of(circle.Wrap(me - step)),
                                        circle.Wrap(me - 1),
                                        blocks.Of(circle.Wrap(me - step - 1))));
  }
  return Status();
}

}  // namespace

const StepAlgorithm kRing = {ReduceAroundRing, GatherAroundRing};

}  // namespace npumesh
