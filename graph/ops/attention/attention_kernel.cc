// The blocked attention kernel: online softmax over tiles of scores.
//
// A tile has up to kTileRows rows. Query heads that share a key head lie in one tile, so that a
// decode step of grouped-query attention is one product and not one for each head. For every row
// the kernel keeps the maximum m and the sum l of exp(score - m) so far, and the unnormalised
// output; when a later tile raises m, both are scaled by exp(old m - new m). (Milakov and
// Gimelshein, Online normalizer calculation for softmax, 2018.)
//
// Quantised attention rounds normalised probabilities, which need the final m and l: its tiles are
// walked twice.
#include <algorithm>
#include <cmath>

#include "graph/ops/attention/attention.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/float_exp.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh::attention {
namespace {

// Up to kTileRows query rows of the heads that share a key head.
class Tile {
 public:
  // Row r of the tile is row (first + r) % q_rows of the query head (first + r) / q_rows of those
  // that share the key head.
  Tile(const Sequence& sequence, int64_t kv_head, int64_t first, int64_t rows)
      : sequence_(sequence), kv_head_(kv_head), rows_(rows) {
    int64_t head = kv_head * plan_.shared() + first / sequence.q_rows;
    int64_t row = first % sequence.q_rows;
    for (int64_t r = 0; r < rows; ++r) {
      head_[r] = head;
      row_[r] = row;
      if (++row < sequence.q_rows) continue;
      row = 0;
      ++head;
    }
  }

  Status Run() {
    Columns range{sequence_.columns(), 0};
    for (int64_t r = 0; r < rows_; ++r) {
      Columns& columns = columns_[r];
      columns = Visible(sequence_, row_[r]);
      if (columns.first >= columns.last) continue;
      range.first = std::min(range.first, columns.first);
      range.last = std::max(range.last, columns.last);
    }
    LoadQuery();
    Start();
    for (int walk = plan_.quantised ? 0 : 1; walk < 2; ++walk) {
      for (int64_t first = range.first; first < range.last; first += kTileColumns) {
        const int64_t count = std::min(kTileColumns, range.last - first);
        NPUMESH_RETURN_IF_ERROR(Score(first, count));
        if (plan_.quantised && walk == 1) {
          QuantiseProbabilities(count);
        } else {
          Exponentiate(count);
        }
        if (walk == 1) NPUMESH_RETURN_IF_ERROR(AddValues(first, count));
      }
    }
    for (int64_t r = 0; r < rows_; ++r) Finish(r);
    return Status();
  }

 private:
  ScoreRow RowAt(int64_t r) const { return {sequence_, head_[r], row_[r]}; }

  // Rows of one head that are floats already stay where they are.
  void LoadQuery() {
    const HeadTensor& q = plan_.q;
    if (q.dtype == DataType::kFloat && !plan_.q_rope.given() && head_[0] == head_[rows_ - 1]) {
      const auto* data = static_cast<const float*>(args_.in[q.slot]);
      query_ = {data + RowAt(0).Element(q), q.row_stride, false};
      return;
    }
    float* to = plan_.q_room(args_);
    query_ = {to, k_width_, false};
    for (int64_t r = 0; r < rows_; ++r, to += k_width_) {
      RowAt(r).Load(q, to);
      if (plan_.q_rope.given()) RowAt(r).Load(plan_.q_rope, to + q.width);
    }
  }

  // A sink is a column that has been seen already and adds nothing to the output.
  void Start() {
    const bool sink = plan_.sink.given();
    for (int64_t r = 0; r < rows_; ++r) {
      most_[r] = sink ? plan_.sink.At(args_, head_[r]) : kMasked;
      sum_[r] = sink ? 1 : 0;
    }
    std::fill_n(sums_, rows_ * v_width_, 0.0f);
  }

  // scores = scale * q k^T + pse for columns [first, first + count), -inf where masked.
  Status Score(int64_t first, int64_t count) const {
    const ColumnRange keys{ColumnRange::Of::kKeys, kv_head_, first, count};
    NPUMESH_ASSIGN_OR_RETURN(const FloatMatrix k, ColumnsOf(sequence_, keys, plan_.k_room(args_)));
    NPUMESH_RETURN_IF_ERROR(Multiply(rows_, count, k_width_, query_, k, false, scores_, count));
    const float scale = plan_.scale * plan_.score_scale.For(args_, 0, 1.0f);
    for (int64_t r = 0; r < rows_; ++r) {
      FinishScores(RowAt(r), columns_[r], scale, first, count, plan_.row(args_),
                   scores_ + r * count);
    }
    return Status();
  }

  // scores become exp(score - m); m, l and the output so far follow.
  void Exponentiate(int64_t count) {
    float *scores = scores_, *sums = sums_;
    for (int64_t r = 0; r < rows_; ++r, scores += count, sums += v_width_) {
      const float most = std::max(most_[r], LargestInRow(scores, count));
      const auto is_nan = [](float value) { return std::isnan(value); };
      if (most == kMasked && std::none_of(scores, scores + count, is_nan)) {
        std::fill_n(scores, count, 0.0f);
        continue;
      }
      ExponentialsOfRow(scores, most, count, scores);
      if (most != most_[r]) {
        const float shrink = most_[r] == kMasked ? 0.0f : ExpOfNonPositive(most_[r] - most);
        sum_[r] *= static_cast<double>(shrink);
        ScaleRow(sums, shrink, v_width_, sums);
        most_[r] = most;
      }
      sum_[r] += SumOfRow(scores, count);
    }
  }

  // scores become the probabilities as 8-bit integers.
  void QuantiseProbabilities(int64_t count) const {
    const float scale = plan_.probability_scale.For(args_, 0, 1.0f);
    float* scores = scores_;
    for (int64_t r = 0; r < rows_; ++r, scores += count) {
      const bool nothing = most_[r] == kMasked;
      const float factor = nothing ? 0.0f : scale / static_cast<float>(sum_[r]);
      for (int64_t j = 0; j < count; ++j) {
        const float p = nothing ? 0.0f : ExpOfNonPositive(scores[j] - most_[r]) * factor;
        scores[j] = std::clamp(std::nearbyint(p), -128.0f, 127.0f);
      }
    }
  }

  Status AddValues(int64_t first, int64_t count) const {
    for (int64_t r = 0; plan_.drop_mask >= 0 && r < rows_; ++r) {
      DropScores(RowAt(r), first, count, scores_ + r * count);
    }
    const ColumnRange values{ColumnRange::Of::kValues, kv_head_, first, count};
    NPUMESH_ASSIGN_OR_RETURN(const FloatMatrix v,
                             ColumnsOf(sequence_, values, plan_.v_room(args_)));
    return Multiply(rows_, v_width_, count, {scores_, count, false}, v, true, sums_, v_width_);
  }

  // Writes row r of the tile: the output and its statistics.
  void Finish(int64_t r) const {
    float* row = sums_ + r * v_width_;
    const float empty = plan_.empty_is_nan ? std::numeric_limits<float>::quiet_NaN() : 0.0f;
    float factor = sum_[r] == 0 ? empty : static_cast<float>(1.0 / sum_[r]);
    if (plan_.quantised) factor = plan_.sum_scale.For(args_, 0, 1.0f);
    ScaleRow(row, factor, v_width_, row);
    if (plan_.out_scale.given()) {
      ScaleColumns(args_, plan_.out_scale, plan_.out_offset, head_[r] * v_width_, v_width_,
                   plan_.factors(args_), row);
    }
    const HeadTensor& out = plan_.out;
    StoreNumbers(out.dtype, row, args_.out[out.slot], RowAt(r).Element(out), v_width_);
    StoreStatistics(r);
  }

  // A row that sees nothing has the logarithm of an empty sum, -inf, with which AttentionUpdate
  // gives it no weight.
  void StoreStatistics(int64_t r) const {
    const int64_t row = sequence_.q_begin + row_[r];
    const int64_t index = plan_.q.packed
                              ? row * plan_.heads + head_[r]
                              : (sequence_.index * plan_.heads + head_[r]) * plan_.q.rows + row;
    const auto store = [&](int port, float value, int64_t copies) {
      if (port < 0) return;
      std::fill_n(static_cast<float*>(args_.out[port]) + index * copies, copies, value);
    };
    store(plan_.max_port, most_[r], 8);
    store(plan_.sum_port, static_cast<float>(sum_[r]), 8);
    if (plan_.lse_port < 0) return;
    store(plan_.lse_port, most_[r] + static_cast<float>(std::log(sum_[r])), 1);
  }

  const Sequence& sequence_;
  const AttentionPlan& plan_ = sequence_.plan;
  const KernelArgs& args_ = sequence_.args;
  const int64_t kv_head_, rows_;
  const int64_t k_width_ = plan_.k_width(), v_width_ = plan_.v.width;
  float *const scores_ = plan_.scores(args_), *const sums_ = plan_.sums(args_);
  FloatMatrix query_ = {};
  int64_t head_[kTileRows];  // by row of the tile: the query head
  int64_t row_[kTileRows];   // and its row
  Columns columns_[kTileRows] = {};
  float most_[kTileRows];
  double sum_[kTileRows];
};

}  // namespace

// Rows that belong to no sequence are zero, and so are outputs that were not asked for.
Status RunAttention(const AttentionPlan& plan, const KernelArgs& args) {
  const ThreadCount threads(plan.threads);
  ClearOutputs(plan, args);
  for (int64_t b = 0; b < plan.batches; ++b) {
    NPUMESH_ASSIGN_OR_RETURN(const Sequence sequence, ReadSequence(plan, args, b));
    const int64_t rows = plan.shared() * sequence.q_rows;
    for (int64_t head = 0; head < plan.k.heads; ++head) {
      for (int64_t first = 0; first < rows; first += kTileRows) {
        Tile tile(sequence, head, first, std::min(kTileRows, rows - first));
        NPUMESH_RETURN_IF_ERROR(tile.Run());
      }
    }
  }
  return Status();
}

}  // namespace npumesh::attention
