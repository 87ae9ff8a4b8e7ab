// What instructions of loop programs do with blocks of numbers, by the vector instructions of this
// processor. Every processor gives the same bits, those of static kernels.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_LANES_LANE_TABLE_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_LANES_LANE_TABLE_H_

#include <array>
#include <cstddef>

#include "graph/ops/core/loop_program.h"

namespace npumesh {

using LaneParams = std::array<double, 3>;  // LoopInstruction::params

// Computes `count` numbers of `in`, by argument of the instruction, into `out`, which may be one of
// them where the numbers are as wide. Numbers lie as float, int32_t, int64_t and double, bools as
// bytes, of which any but 0 is true.
using LaneFn = void (*)(const void* const* in, void* out, size_t count, const LaneParams& params);

// Of values of `type`, of the last argument; null: the instruction has no lanes for them.
LaneFn FindLanes(LoopOp op, LoopType type);
// The same where the last argument is one number for all; null also where there is no such
// function.
LaneFn FindNumberLanes(LoopOp op, LoopType type);

// Two instructions on floats in one walk: the second one takes what the first one gives, and then
// its other arguments. The bits are those of two walks.
struct LanePair {
  LoopOp first, second;
  LaneFn lanes = nullptr;
  LaneFn by_number = nullptr;  // the last argument of the first one is one number
};
// Null: there is no such pair.
const LanePair* FindPair(LoopOp first, LoopOp second);

// Elements of a row that are joined at once: so many but for the last ones.
inline constexpr size_t kJoinBlock = 512;

// What a row has given so far.
struct RowGathered {
  double total = 0;
  std::array<float, 16> lanes = {};  // of kRowSum, not yet in the total
  size_t count = 0;                  // elements of kRowSum
};

// How an instruction gathers the number of a row from blocks of its elements.
struct RowJoin {
  LoopOp op;
  LoopType type;     // of the elements
  double start = 0;  // RowGathered::total
  void (*join)(const void* x, size_t count, RowGathered& row) = nullptr;
  void (*end)(RowGathered& row) = nullptr;  // null: nothing is left to do
  // The same of `rows` whole rows, one after the other: writes their totals.
  void (*each)(const void* x, size_t rows, size_t columns, double* totals) = nullptr;
  bool squares = false;  // of the elements are joined
};

// `squares`: of the elements are joined. Null: the instruction gathers nothing from elements of
// this type.
const RowJoin* FindJoin(LoopOp op, LoopType type, bool squares = false);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_LANES_LANE_TABLE_H_
