// What becomes of a row of scores between the product and the exponentials: shifts, masks, bands,
// and dropout after them.
#include <algorithm>

#include "graph/ops/attention/attention.h"
#include "graph/ops/toolbox/values/row_math.h"

namespace npumesh::attention {
namespace {

// All values of tokens are so large that a sum with row numbers must not overflow.
int64_t Bounded(int64_t tokens) {
  constexpr int64_t kFar = int64_t{1} << 40;
  return std::clamp(tokens, -kFar, kFar);
}

bool IsMasked(const ScoreTensor& mask, const void* data, int64_t index) {
  switch (BitsOf(mask.dtype)) {
    case 8:
      return static_cast<const uint8_t*>(data)[index] != 0;
    case 16:
      return (static_cast<const uint16_t*>(data)[index] & 0x7fff) != 0;
    default:
      return static_cast<const float*>(data)[index] != 0;
  }
}

// REQUIRES: the plan has a shift.
void AddShift(const ScoreRow& at, int64_t first, int64_t count, float* room, float* scores) {
  const ScoreTensor& shift = at.sequence.plan.pse;
  const void* data = at.sequence.args.in[shift.slot];
  const int64_t index = at.IndexIn(shift, first);
  if (shift.dtype == DataType::kFloat) {
    AddRow(scores, static_cast<const float*>(data) + index, count, scores);
    return;
  }
  LoadNumbers(shift.dtype, data, index, count, room);
  AddRow(scores, room, count, scores);
}

void MaskScores(const ScoreRow& at, const Columns& columns, int64_t first, int64_t count,
                float* scores) {
  const AttentionPlan& plan = at.sequence.plan;
  const int64_t begin = std::clamp(columns.first - first, int64_t{0}, count);
  const int64_t end = std::clamp(columns.last - first, begin, count);
  std::fill(scores, scores + begin, kMasked);
  std::fill(scores + end, scores + count, kMasked);
  if (plan.mask.slot < 0) return;
  const void* mask = at.sequence.args.in[plan.mask.slot];
  const int64_t index = at.IndexIn(plan.mask, first);
  for (int64_t j = begin; j < end; ++j) {
    if (IsMasked(plan.mask, mask, index + j) != plan.mask_keeps) scores[j] = plan.mask_value;
  }
}

}  // namespace

Columns Visible(const Sequence& sequence, int64_t row) {
  const AttentionPlan& plan = sequence.plan;
  const int64_t columns = sequence.columns();
  const int64_t shifted = row + columns - sequence.q_rows;
  const auto tokens = [&](int64_t centre) {
    return Columns{std::max<int64_t>(centre - Bounded(plan.pre_tokens), 0),
                   std::min(centre + Bounded(plan.next_tokens) + 1, columns)};
  };
  const auto until = [&](int64_t last) { return Columns{0, std::min(last + 1, columns)}; };
  switch (plan.band) {
    case Band::kAll:
      break;
    case Band::kTokens:
      return tokens(row);
    case Band::kUpperLeft:
      return until(row);
    case Band::kLowerRight:
      return until(shifted);
    case Band::kShiftedTokens:
      return tokens(shifted);
    case Band::kPrefix:
      return until(std::max(shifted, sequence.band_prefix - 1));
    case Band::kLastBand:
      return sequence.index + 1 == plan.batches ? tokens(shifted) : until(shifted);
    case Band::kFirstBand:
      return sequence.index == 0 ? tokens(shifted) : until(row);
  }
  return {0, columns};
}

void FinishScores(const ScoreRow& at, const Columns& columns, float scale, int64_t first,
                  int64_t count, float* room, float* scores) {
  const AttentionPlan& plan = at.sequence.plan;
  if (!plan.scales_pse) ScaleRow(scores, scale, count, scores);
  if (plan.pse.slot >= 0) AddShift(at, first, count, room, scores);
  if (plan.scales_pse) ScaleRow(scores, scale, count, scores);
  MaskScores(at, columns, first, count, scores);
}

void DropScores(const ScoreRow& at, int64_t first, int64_t count, float* scores) {
  const AttentionPlan& plan = at.sequence.plan;
  const auto* bits = static_cast<const uint8_t*>(at.sequence.args.in[plan.drop_mask]);
  const int64_t row = (at.sequence.index * plan.heads + at.head) * plan.q.rows + at.row;
  const int64_t index = row * plan.k.rows + first;
  for (int64_t j = 0; j < count; ++j) {
    const bool keep = (bits[(index + j) / 8] >> ((index + j) % 8) & 1) != 0;
    scores[j] = keep ? scores[j] / plan.keep_prob : 0.0f;
  }
}

}  // namespace npumesh::attention
