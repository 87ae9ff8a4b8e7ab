// NHR (nonuniform hierarchical ring): for every block a binomial tree whose root owns it, all trees
// at once: ceil(log2 n) steps for any n, and no byte more than the ring's. HCCL's documentation has
// the cost.
//
// Let x = (position - b) mod n be the place in the tree of block b. At distance d = 2^k the places
// with lowest set bit k talk to place x - d, so position p sends the blocks p - d, p - d - 2d,
// p - d - 4d, ... to position p - d in one message.
#include <algorithm>
#include <bit>

#include "collectives/algorithms/step_algorithms.h"

namespace npumesh {
namespace {

// The blocks that travel between a position and `upper` = position + d.
std::vector<int> Travelling(const Circle& circle, int upper, int d) {
  std::vector<int> blocks;
  for (int x = d; x < circle.size(); x += 2 * d) blocks.push_back(circle.Wrap(upper - x));
  return blocks;
}

std::vector<std::byte> Pack(const PositionBlocks& blocks, const std::vector<int>& which) {
  std::vector<std::byte> message;
  for (const int b : which) {
    message.insert(message.end(), blocks.Of(b).begin(), blocks.Of(b).end());
  }
  return message;
}

// One step: the blocks of `out` to a position, those of `in` from another; `take` gets each of them
// as it came and its place here.
template <typename Take>
Status Swap(const Circle& circle, const PositionBlocks& blocks, int to, const std::vector<int>& out,
            int from, const std::vector<int>& in, Take take) {
  uint64_t bytes = 0;
  for (const int b : in) bytes += blocks.Of(b).size();
  std::vector<std::byte> incoming(bytes);
  NPUMESH_RETURN_IF_ERROR(circle.Step(to, Pack(blocks, out), from, incoming));
  std::span<const std::byte> rest = incoming;
  for (const int b : in) {
    const std::span<std::byte> here = blocks.Of(b);
    take(rest.first(here.size()), here);
    rest = rest.subspan(here.size());
  }
  return Status();
}

Status ReduceNonuniformly(const Circle& circle, const PositionBlocks& blocks,
                          const Combiner& combiner) {
  const int me = circle.me();
  for (int d = 1; d < circle.size(); d *= 2) {
    NPUMESH_RETURN_IF_ERROR(Swap(circle, blocks, circle.Wrap(me - d), Travelling(circle, me, d),
                                 circle.Wrap(me + d), Travelling(circle, me + d, d), combiner));
  }
  return Status();
}

Status GatherNonuniformly(const Circle& circle, const PositionBlocks& blocks) {
  const int me = circle.me();
  const auto copy = [](std::span<const std::byte> from, std::span<std::byte> to) {
    std::copy(from.begin(), from.end(), to.begin());
  };
  for (int d = static_cast<int>(std::bit_ceil(static_cast<unsigned>(circle.size()))) / 2; d >= 1;
       d /= 2) {
    NPUMESH_RETURN_IF_ERROR(Swap(circle, blocks, circle.Wrap(me + d), Travelling(circle, me + d, d),
                                 circle.Wrap(me - d), Travelling(circle, me, d), copy));
  }
  return Status();
}

}  // namespace

const StepAlgorithm kNonuniformRing = {ReduceNonuniformly, GatherNonuniformly};

}  // namespace npumesh
