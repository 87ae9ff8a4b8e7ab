#include "collectives/algorithms/step_algorithms.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace npumesh {
namespace {

// The blocks of `count` elements shared out in whole cache lines.
PositionBlocks Shared(std::byte* data, uint64_t count, uint64_t width, int size) {
  PositionBlocks blocks{data, {0}};
  for (int r = 0; r < size; ++r) {
    const Slice slice = SliceOf(count, width, r, size);
    blocks.at.push_back((slice.begin + slice.count) * width);
  }
  return blocks;
}

// PositionBlocks of equal size.
PositionBlocks Equal(std::byte* data, uint64_t bytes, int size) {
  PositionBlocks blocks{data, {0}};
  for (int r = 0; r < size; ++r) blocks.at.push_back(blocks.at.back() + bytes);
  return blocks;
}

Combiner CombinerOf(const Call& call) {
  return {FindCombine(call.dtype, call.op), *BytesOf(call.dtype, 1)};
}

// Down a binomial tree from position 0. At distance d, the holders (multiples of 2d) hand the next
// d positions what `parcel(begin, end)` says.
template <typename Parcel>
Status DownTheTree(const Circle& circle, Parcel parcel) {
  const int n = circle.size();
  for (int d = static_cast<int>(std::bit_ceil(static_cast<unsigned>(n))) / 2; d >= 1; d /= 2) {
    const int me = circle.me();
    if (me % (2 * d) == 0 && me + d < n) {
      NPUMESH_RETURN_IF_ERROR(
          circle.Step(me + d, parcel(me + d, std::min(me + 2 * d, n)), Circle::kNobody, {}));
    } else if (me % (2 * d) == d) {
      NPUMESH_RETURN_IF_ERROR(
          circle.Step(Circle::kNobody, {}, me - d, parcel(me, std::min(me + d, n))));
    }
  }
  return Status();
}

}  // namespace

int Circle::WorldRank(int position) const {
  return position == kNobody ? -1 : members_.world_rank(Wrap(first_ + position));
}

Status Circle::Step(int to, std::span<const std::byte> out, int from,
                    std::span<std::byte> in) const {
  return members_.world.transport().Exchange(WorldRank(to), out, WorldRank(from), in, members_.tag,
                                             members_.deadline());
}

Status StepAllReduce(const StepAlgorithm& algorithm, const Call& call, Members& members) {
  if (call.count == 0) return Status();
  if (call.recv != call.send) std::memmove(call.recv, call.send, call.bytes());
  const Circle circle(members);
  const PositionBlocks blocks =
      Shared(call.recv, call.count, *BytesOf(call.dtype, 1), members.size);
  NPUMESH_RETURN_IF_ERROR(algorithm.reduce(circle, blocks, CombinerOf(call)));
  return algorithm.gather(circle, blocks);
}

// The input must survive, so partial results need separate room.
Status StepReduceScatter(const StepAlgorithm& algorithm, const Call& call, Members& members) {
  if (call.count == 0) return Status();
  std::vector<std::byte> partial(call.send,
                                 call.send + call.bytes() * static_cast<uint64_t>(members.size));
  const PositionBlocks blocks = Equal(partial.data(), call.bytes(), members.size);
  NPUMESH_RETURN_IF_ERROR(algorithm.reduce(Circle(members), blocks, CombinerOf(call)));
  std::memcpy(call.recv, blocks.Of(members.rank).data(), call.bytes());
  return Status();
}

Status StepAllGather(const StepAlgorithm& algorithm, const Call& call, Members& members) {
  if (call.count == 0) return Status();
  const PositionBlocks blocks = Equal(call.recv, call.bytes(), members.size);
  std::byte* own = blocks.Of(members.rank).data();
  if (own != call.send) std::memmove(own, call.send, call.bytes());
  return algorithm.gather(Circle(members), blocks);
}

Status TreeBroadcast(const Call& call, Members& members) {
  const std::span<std::byte> all(call.recv, call.bytes());
  return DownTheTree(Circle(members, call.root), [&](int, int) { return all; });
}

Status NonuniformRingBroadcast(const Call& call, Members& members) {
  if (call.count == 0) return Status();
  const Circle circle(members, call.root);
  const PositionBlocks blocks =
      Shared(call.recv, call.count, *BytesOf(call.dtype, 1), members.size);
  NPUMESH_RETURN_IF_ERROR(
      DownTheTree(circle, [&](int begin, int end) { return blocks.Range(begin, end); }));
  return kNonuniformRing.gather(circle, blocks);
}

}  // namespace npumesh
