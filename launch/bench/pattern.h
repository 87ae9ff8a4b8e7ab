// Pattern: the data of a benchmark, and whether the result is right.
//
// What is only moved carries the position and the rank in its bits: no two elements of any two
// ranks are equal as long as the width has room. What is reduced holds small integers, chosen so
// that the result is exact in the dtype whatever the order of the ranks; so results are compared
// bit by bit.
//
// Thread-safety: none.
#ifndef NPUMESH_LAUNCH_BENCH_PATTERN_H_
#define NPUMESH_LAUNCH_BENCH_PATTERN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "launch/bench/bench_op.h"

namespace npumesh {

class Pattern {
 public:
  // `op` empty: data that are moved. REQUIRES: BitsOf(dtype) is 8, 16, 32 or 64.
  Pattern(DataType dtype, std::optional<ReduceOp> op, int ranks);

  // The first `count` elements of the send buffer of `rank`.
  void Fill(int rank, std::span<std::byte> buffer);

  // The first element of the receive buffer that is not what the pieces say; "element 7 is
  // 0x40000000, expected 0x40400000 (from rank 1)". Empty when all are right.
  std::string FirstDifference(std::span<const Piece> pieces, const std::byte* buffer);

 private:
  static constexpr size_t kChunk = 4096;

  int64_t Value(int rank, uint64_t i) const;
  // What elements [first, first + count) of `source`, a rank or kAllRanks, are; count <= kChunk.
  void Make(int source, uint64_t first, size_t count);
  void Fold(int rank, uint64_t first, size_t count);
  std::string Tell(const Piece& piece, uint64_t chunk, const std::byte* actual, size_t count) const;

  const DataType dtype_;
  const std::optional<ReduceOp> op_;
  const int ranks_;
  const size_t width_;
  uint64_t mask_ = 0;
  std::vector<int64_t> values_ = std::vector<int64_t>(kChunk);
  std::vector<std::byte> bytes_;  // `values_` in the dtype
};

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_BENCH_PATTERN_H_
