// What becomes of a row of scores between the product and the exponentials: shifts, masks, bands,
// and dropout after them. Shared by attention and its gradient.
#ifndef NPUMESH_GRAPH_OPS_ATTENTION_ATTENTION_SCORES_H_
#define NPUMESH_GRAPH_OPS_ATTENTION_ATTENTION_SCORES_H_

#include <cstdint>
#include <limits>

#include "graph/ops/attention/attention.h"

namespace npumesh::attention {

inline constexpr float kMasked = -std::numeric_limits<float>::infinity();

// Columns [first, last) that a row may look at.
struct Columns {
  int64_t first = 0, last = 0;
};

// By the band of the plan; `row` counts in the sequence.
Columns Visible(const Sequence& sequence, int64_t row);

// One row of scores.
struct ScoreRow {
  const Sequence& sequence;
  int64_t head = 0;  // of the query
  int64_t row = 0;   // in the sequence

  int64_t IndexIn(const ScoreTensor& tensor, int64_t column) const {
    return sequence.index * tensor.batch_stride + head * tensor.head_stride +
           row * tensor.row_stride + column;
  }
};

// Both take `count` scores from column `first` on.
//
// From products to scores: multiplied by `scale`, plus the plan's shift, kMasked outside of
// `columns`, the plan's mask_value where its mask says so. `room` has place for `count` floats.
void FinishScores(const ScoreRow& at, const Columns& columns, float scale, int64_t first,
                  int64_t count, float* room, float* scores);
// Dropout: a bit of 1 keeps the probability, divided by that of keeping. REQUIRES: the plan has a
// drop mask.
void DropScores(const ScoreRow& at, int64_t first, int64_t count, float* scores);

}  // namespace npumesh::attention

#endif  // NPUMESH_GRAPH_OPS_ATTENTION_ATTENTION_SCORES_H_
