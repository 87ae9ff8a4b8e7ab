// Where the rows of sequences lie: BSND [B,S,N,D], TND [T,N,D] with prefix sums of the lengths, or
// PA_BSND [blocks,block_size,N,D] with a table of the blocks of each sequence.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_SEQUENCE_ROWS_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_SEQUENCE_ROWS_H_

#include <algorithm>
#include <limits>
#include <string>

#include "graph/ops/core/operator.h"

namespace npumesh {

class SequenceRows {
 public:
  SequenceRows() = default;
  // `batch`: sequences, where the layout does not say (-1: from the lengths of TND). `table`: port
  // of the block table, empty for tensors that are never paged. Errors (kInvalidArgument,
  // kUnsupported) name the port.
  static Result<SequenceRows> Of(const OpContext& op, std::string_view port,
                                 std::string_view layout_attr, std::string_view lengths,
                                 std::string_view table, int64_t batch);

  int64_t batch() const { return batch_; }
  int64_t heads() const { return heads_; }
  int64_t width() const { return width_; }
  // Rows of the tensor: [rows, heads, width].
  int64_t rows() const { return rows_; }
  // Rows that a sequence may have.
  int64_t most() const { return most_; }
  bool paged() const { return table_ >= 0; }

  // Length of a sequence. Error (kInvalidArgument): a length below 0 or above what there is.
  Result<int64_t> Length(const KernelArgs& args, int64_t b) const;
  // Row of position s. Error (kInvalidArgument): the table names a block that is not there.
  Result<int64_t> Row(const KernelArgs& args, int64_t b, int64_t s) const;

 private:
  int64_t LengthEntry(const KernelArgs& args, int64_t b) const {
    return static_cast<const int32_t*>(args.in[lengths_])[b];
  }

  std::string who_, port_;
  int64_t batch_ = 0, heads_ = 0, width_ = 0, rows_ = 0, most_ = 0;
  int lengths_ = -1;  // slots
  int table_ = -1;
  bool packed_ = false;     // TND
  int64_t block_size_ = 0;  // PA_BSND
  int64_t blocks_ = 0, table_width_ = 0;
};

// The value of pre_tokens and next_tokens that limits nothing.
inline constexpr int64_t kAllTokens = std::numeric_limits<int64_t>::max();

// Positions of `keys` that query t of `queries` sees, from the first on: all, or when `causal`
// those up to its own, as the last query stands beside the last key.
inline int64_t KeysSeen(bool causal, int64_t t, int64_t queries, int64_t keys) {
  return causal ? std::clamp<int64_t>(t + 1 + keys - queries, 0, keys) : keys;
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_SEQUENCE_ROWS_H_
