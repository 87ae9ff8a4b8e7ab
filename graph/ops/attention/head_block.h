// Scores and weighted sums of a few query rows over keys and values where they lie, in float32 or
// in 16 bits: a step of decoding reads its cache once, in the order of its addresses, and copies
// nothing.
//
// Every processor gives the same bits, and so does every division of rows and heads into blocks.
// Thread-safety: pure functions.
#ifndef NPUMESH_GRAPH_OPS_ATTENTION_HEAD_BLOCK_H_
#define NPUMESH_GRAPH_OPS_ATTENTION_HEAD_BLOCK_H_

#include <cstdint>

#include "runtime/base/data_type.h"

namespace npumesh::attention {

// The vectors of `heads` heads in `rows` rows of K or V. Distances are in elements.
struct HeadBlock {
  DataType dtype = DataType::kFloat;  // float32, float16 or bfloat16
  const void* data = nullptr;         // the first head's vector in the first row
  int64_t rows = 0, heads = 0, width = 0;
  int64_t row_stride = 0, head_stride = 0;
};

// Both take `queries` rows of floats for each head, those of one head after those of another.

// scores[head * queries + query][row] = the dot product of a query row, [width], with the head's
// vector in that row. Rows of scores are `stride` apart.
void ScoreBlock(const HeadBlock& keys, const float* query, int64_t queries, float* scores,
                int64_t stride);

// sums[head * queries + query], [width] each, += weights[head * queries + query][row] * vector,
// row by row. Rows of weights are `stride` apart.
void AddBlock(const HeadBlock& values, const float* weights, int64_t stride, int64_t queries,
              float* sums);

}  // namespace npumesh::attention

#endif  // NPUMESH_GRAPH_OPS_ATTENTION_HEAD_BLOCK_H_
