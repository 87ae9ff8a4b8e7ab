// StepAlgorithm: the classical algorithms between pairs of ranks, step by step. A step is one
// message each way; the ranks may be anywhere, so the same code runs in a node and between nodes.
//
// Operands are combined where they meet: the order differs from one algorithm to the next, and
// 16-bit floats are rounded at every step. That is what hardware does, and what these rows are for;
// none of them is chosen unless HCCL_ALGO names it. Costs: docs/algorithms.md.
#ifndef NPUMESH_COLLECTIVES_ALGORITHMS_STEP_ALGORITHMS_H_
#define NPUMESH_COLLECTIVES_ALGORITHMS_STEP_ALGORITHMS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collectives/algorithms/algorithm.h"

namespace npumesh {

// The members in a circle that begins at group rank `first`: who is at position p is group rank
// (first + p) modulo size.
class Circle {
 public:
  explicit Circle(const Members& members, int first = 0) : members_(members), first_(first) {}
  int size() const { return members_.size; }
  int me() const { return Wrap(members_.rank - first_); }
  int Wrap(int position) const { return (position % size() + size()) % size(); }

  // One step: a message to a position and one from a position; kNobody leaves that side out.
  static constexpr int kNobody = -1;
  Status Step(int to, std::span<const std::byte> out, int from, std::span<std::byte> in) const;

 private:
  int WorldRank(int position) const;

  const Members& members_;
  int first_;
};

// A buffer as one block for each position; block p is owned by position p.
struct PositionBlocks {
  std::byte* data = nullptr;
  std::vector<uint64_t> at;  // size + 1 byte offsets, ascending

  std::span<std::byte> Range(int begin, int end) const {
    const auto b = static_cast<size_t>(begin);
    const auto e = static_cast<size_t>(end);
    return {data + at[b], at[e] - at[b]};
  }
  std::span<std::byte> Of(int block) const { return Range(block, block + 1); }
};

// How bytes that arrive are combined with those that are here.
struct Combiner {
  CombineFn combine = nullptr;
  uint64_t width = 1;  // bytes of an element
  void operator()(std::span<const std::byte> incoming, std::span<std::byte> here) const {
    combine(incoming.data(), here.data(), here.size() / width);
  }
};

// One algorithm as the two halves of an all-reduce.
struct StepAlgorithm {
  // Every position holds operands of all blocks; afterwards its own block is complete, the others
  // are scratch.
  Status (*reduce)(const Circle&, const PositionBlocks&, const Combiner&);
  // Every position holds its own block; afterwards all of them.
  Status (*gather)(const Circle&, const PositionBlocks&);
};

extern const StepAlgorithm kRing;
extern const StepAlgorithm kHalvingDoubling;
extern const StepAlgorithm kNonuniformRing;

// ---- parts of tables ----

// A collective by the halves of an algorithm that it needs: both, `reduce`, `gather`.
Status StepAllReduce(const StepAlgorithm&, const Call&, Members&);
Status StepReduceScatter(const StepAlgorithm&, const Call&, Members&);
Status StepAllGather(const StepAlgorithm&, const Call&, Members&);

// The same as rows take them: StepAllReduce<kRing>.
template <const StepAlgorithm& kAlgorithm>
Status StepAllReduce(const Call& call, Members& members) {
  return StepAllReduce(kAlgorithm, call, members);
}
template <const StepAlgorithm& kAlgorithm>
Status StepReduceScatter(const Call& call, Members& members) {
  return StepReduceScatter(kAlgorithm, call, members);
}
template <const StepAlgorithm& kAlgorithm>
Status StepAllGather(const Call& call, Members& members) {
  return StepAllGather(kAlgorithm, call, members);
}

// Along a binomial tree: every step doubles those who have all of it.
Status TreeBroadcast(const Call&, Members&);
// Down a binomial tree in blocks, then NHR's gather.
Status NonuniformRingBroadcast(const Call&, Members&);

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_ALGORITHMS_STEP_ALGORITHMS_H_
