// Folds: what a reduction does with two values, for every type it accumulates in.
//
// Sums, products and means of floats accumulate in double and are rounded once, so that a result
// does not depend on the order in any digit of float. Integers accumulate in 64 bits; the low bits
// are the wrapped result (a mean divides before it wraps). NaN wins every maximum and minimum;
// of zeros with both signs the maximum is +0 and the minimum -0 (IEEE 754-2019, maximum, minimum),
// so that neither depends on the order.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_GRAPH_OPS_REDUCE_REDUCE_OPS_FOLD_H_
#define NPUMESH_GRAPH_OPS_REDUCE_REDUCE_OPS_FOLD_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/base/data_type.h"

namespace npumesh {

enum class FoldKind : uint8_t { kSum, kMean, kProd, kMax, kMin, kAny, kAll };

struct Fold {
  DataType compute;  // type of the accumulators and of the values given to the functions
  // Bytes of the value that changes nothing; what an empty extent reduces to.
  uint64_t identity;
  // Writes `count` copies of the identity.
  void (*fill)(uint64_t identity, void* totals, size_t count);
  // Joins `count` values, at most kJoinBlock, to the single accumulator at `total`.
  void (*row)(const void* values, size_t count, void* total);
  // Folds value i of each row, one after the other, into accumulator i of `count`.
  void (*columns)(const void* values, size_t rows, size_t count, void* totals);
  // Divides every accumulator, integers truncating; null: none. 0 / 0 is NaN, or 0 for integers.
  void (*divide)(void* totals, size_t count, int64_t divisor);
};

// nullopt when the reduction is not defined for elements of type `dtype`. `fast`: sums, products
// and means of floats up to 32 bits accumulate in float, in the order of eight lanes.
std::optional<Fold> FindFold(FoldKind kind, DataType dtype, bool fast = false);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_REDUCE_REDUCE_OPS_FOLD_H_
