// H-D_R (recursive halving and doubling): log2 n steps for a power of two. HCCL's documentation
// calls it RHD.
//
// For other n, the p' = 2^floor(log2 n) players do the work. The first n - p' players stand for two
// positions each: theirs and that of the guest on their right, who hands over what it has before
// and is given what it needs after.
#include <algorithm>
#include <bit>

#include "collectives/algorithms/step_algorithms.h"

namespace npumesh {
namespace {

struct Table {
  int players = 1;
  int guests = 0;

  explicit Table(int size)
      : players(static_cast<int>(std::bit_floor(static_cast<unsigned>(size)))),
        guests(size - players) {}
  bool IsGuest(int position) const { return position < 2 * guests && position % 2 == 1; }
  bool IsHost(int position) const { return position < 2 * guests && position % 2 == 0; }
  int PlayerAt(int position) const {
    return position < 2 * guests ? position / 2 : position - guests;
  }
  // Where a player sits; also the first of its blocks. REQUIRES: player <= players.
  int Seat(int player) const { return player < guests ? 2 * player : player + guests; }
};

Status ReceiveAndCombine(const Circle& circle, int to, std::span<const std::byte> out, int from,
                         std::span<std::byte> here, const Combiner& combiner) {
  std::vector<std::byte> incoming(here.size());
  NPUMESH_RETURN_IF_ERROR(circle.Step(to, out, from, incoming));
  combiner(incoming, here);
  return Status();
}

// The players halve what they work on, with a partner at half the distance each time.
Status Halve(const Circle& circle, const Table& table, const PositionBlocks& blocks,
             const Combiner& combiner) {
  const int player = table.PlayerAt(circle.me());
  int begin = 0;
  for (int half = table.players / 2; half >= 1; half /= 2) {
    const auto lower = blocks.Range(table.Seat(begin), table.Seat(begin + half));
    const auto upper = blocks.Range(table.Seat(begin + half), table.Seat(begin + 2 * half));
    const bool low = player < begin + half;
    const int partner = table.Seat(low ? player + half : player - half);
    NPUMESH_RETURN_IF_ERROR(ReceiveAndCombine(circle, partner, low ? upper : lower, partner,
                                              low ? lower : upper, combiner));
    if (!low) begin += half;
  }
  return Status();
}

Status ReduceByHalving(const Circle& circle, const PositionBlocks& blocks,
                       const Combiner& combiner) {
  const Table table(circle.size());
  const int me = circle.me();
  const auto all = blocks.Range(0, circle.size());
  if (table.IsGuest(me)) {
    NPUMESH_RETURN_IF_ERROR(circle.Step(me - 1, all, Circle::kNobody, {}));
    return circle.Step(Circle::kNobody, {}, me - 1, blocks.Of(me));
  }
  if (table.IsHost(me)) {
    NPUMESH_RETURN_IF_ERROR(ReceiveAndCombine(circle, Circle::kNobody, {}, me + 1, all, combiner));
  }
  NPUMESH_RETURN_IF_ERROR(Halve(circle, table, blocks, combiner));
  if (!table.IsHost(me)) return Status();
  return circle.Step(me + 1, blocks.Of(me + 1), Circle::kNobody, {});
}

// The players double what they have, with a partner at twice the distance each time.
Status Double(const Circle& circle, const Table& table, const PositionBlocks& blocks) {
  const int player = table.PlayerAt(circle.me());
  for (int half = 1; half < table.players; half *= 2) {
    const int begin = player / half * half;
    const int other = begin ^ half;
    const int partner = table.Seat(player ^ half);
    NPUMESH_RETURN_IF_ERROR(
        circle.Step(partner, blocks.Range(table.Seat(begin), table.Seat(begin + half)), partner,
                    blocks.Range(table.Seat(other), table.Seat(other + half))));
  }
  return Status();
}

Status GatherByDoubling(const Circle& circle, const PositionBlocks& blocks) {
  const Table table(circle.size());
  const int me = circle.me();
  const auto all = blocks.Range(0, circle.size());
  if (table.IsGuest(me)) {
    NPUMESH_RETURN_IF_ERROR(circle.Step(me - 1, blocks.Of(me), Circle::kNobody, {}));
    return circle.Step(Circle::kNobody, {}, me - 1, all);
  }
  if (table.IsHost(me)) {
    NPUMESH_RETURN_IF_ERROR(circle.Step(Circle::kNobody, {}, me + 1, blocks.Of(me + 1)));
  }
  NPUMESH_RETURN_IF_ERROR(Double(circle, table, blocks));
  return table.IsHost(me) ? circle.Step(me + 1, all, Circle::kNobody, {}) : Status();
}

}  // namespace

const StepAlgorithm kHalvingDoubling = {ReduceByHalving, GatherByDoubling};

}  // namespace npumesh
