// The blocked attention kernel: online softmax over tiles of scores.
//
// A tile has up to kTileRows rows. Query heads that share a key head lie in one tile, so that their
// keys are read once for all of them: many rows by a product, a few rows where the keys lie, those
// of several key heads in one tile. Tiles are what threads share out; none depends on the others.
// For every row the kernel keeps the maximum m and the sum l of exp(score - m) so far, and the
// unnormalised output; when a later tile of columns raises m, both are scaled by
// exp(old m - new m). (Milakov and Gimelshein, Online normalizer calculation for softmax, 2018.)
//
// Quantised attention rounds normalised probabilities, which need the final m and l: its tiles are
// walked twice.
#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include "graph/ops/attention/attention.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/ceil_div.h"
#include "graph/ops/toolbox/values/float_exp.h"
#include "graph/ops/toolbox/values/row_io.h"
#include "graph/ops/toolbox/values/thread_parts.h"

namespace npumesh::attention {
namespace {

// So many rows of one key head, or fewer, read keys and values where they lie: they do not repay
// what it takes to lay out a product.
constexpr int64_t kFewRows = 8;

// Rows of a sequence in the order of heads: row i is row i % q_rows of the query head i / q_rows.
struct TileRows {
  int64_t first = 0, count = 0;
};

// How the rows of a sequence are divided into tiles: in parts of one key head, or, where the rows
// are so few that keys and values are read where they lie, in all rows of some key heads.
class Tiling {
 public:
  Tiling(const AttentionPlan& plan, int64_t q_rows, bool in_place, int parts)
      : head_rows_(plan.shared() * q_rows), kv_heads_(plan.k.heads) {
    if (head_rows_ == 0 || kv_heads_ == 0) return;
    if (in_place && head_rows_ <= kFewRows) {
      heads_ = std::min(kTileRows / head_rows_, CeilDiv(kv_heads_, parts));
      tiles_ = CeilDiv(kv_heads_, heads_);
    } else {
      of_head_ = CeilDiv(head_rows_, kTileRows);
      tiles_ = of_head_ * kv_heads_;
    }
  }

  bool in_place() const { return heads_ > 0; }
  int64_t tiles() const { return tiles_; }
  TileRows tile(int64_t index) const {
    if (in_place()) {
      const int64_t head = index * heads_;
      return {head * head_rows_, std::min(heads_, kv_heads_ - head) * head_rows_};
    }
    const int64_t first = index % of_head_ * kTileRows;
    return {index / of_head_ * head_rows_ + first, std::min(kTileRows, head_rows_ - first)};
  }

 private:
  const int64_t head_rows_, kv_heads_;
  int64_t tiles_ = 0;
  int64_t heads_ = 0;    // key heads of a tile; 0: tiles are parts of a head
  int64_t of_head_ = 0;  // tiles of a head
};

// Some rows of a sequence, kTileRows at most. `in_place`: keys and values are read where they lie.
class Tile {
 public:
  Tile(const Sequence& sequence, const TileRows& rows, bool in_place)
      : sequence_(sequence),
        rows_(rows.count),
        queries_(in_place ? plan_.shared() * sequence.q_rows : 0) {
    int64_t head = rows.first / sequence.q_rows, row = rows.first % sequence.q_rows;
    kv_head_ = head / plan_.shared();
    for (int64_t r = 0; r < rows_; ++r) {
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
  bool in_place() const { return queries_ > 0; }
  ScoreRow RowAt(int64_t r) const { return {sequence_, head_[r], row_[r]}; }

  // Rows of one head that are floats already stay where they are.
  void LoadQuery() {
    const HeadTensor& q = plan_.q;
    const bool in_rows = !in_place() && head_[0] == head_[rows_ - 1];
    if (q.dtype == DataType::kFloat && !plan_.q_rope.given() && in_rows) {
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

  // Calls `work` with each of the blocks in which the columns lie and the number of columns before.
  template <typename Work>
  Status EachBlock(const ColumnRange& columns, const Work& work) const {
    const int64_t heads = rows_ / queries_;
    for (int64_t at = 0; at < columns.count;) {
      const ColumnRange rest{columns.of, columns.head, columns.first + at, columns.count - at,
                             heads};
      NPUMESH_ASSIGN_OR_RETURN(const HeadBlock block, BlockOf(sequence_, rest));
      work(block, at);
      at += block.rows;
    }
    return Status();
  }

  // scores = q k^T.
  Status MultiplyKeys(const ColumnRange& keys) const {
    const int64_t count = keys.count;
    if (in_place()) {
      return EachBlock(keys, [&](const HeadBlock& block, int64_t at) {
        ScoreBlock(block, query_.data, queries_, scores_ + at, count);
      });
    }
    NPUMESH_ASSIGN_OR_RETURN(const FloatMatrix k, ColumnsOf(sequence_, keys, plan_.k_room(args_)));
    return Multiply(rows_, count, k_width_, query_, k, false, scores_, count);
  }

  // scores = scale * q k^T + pse for columns [first, first + count), -inf where masked.
  Status Score(int64_t first, int64_t count) const {
    NPUMESH_RETURN_IF_ERROR(MultiplyKeys({ColumnRange::Of::kKeys, kv_head_, first, count}));
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
    if (in_place()) {
      return EachBlock(values, [&](const HeadBlock& block, int64_t at) {
        AddBlock(block, scores_ + at, count, queries_, sums_);
      });
    }
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
  int64_t kv_head_ = 0;  // the first of the tile
  const int64_t rows_;
  const int64_t queries_;  // rows of each key head that are read in place; 0: none is
  const int64_t k_width_ = plan_.k_width(), v_width_ = plan_.v.width;
  float *const scores_ = plan_.scores(args_), *const sums_ = plan_.sums(args_);
  FloatMatrix query_ = {};
  int64_t head_[kTileRows] = {};  // by row of the tile: the query head
  int64_t row_[kTileRows] = {};   // and its row
  Columns columns_[kTileRows] = {};
  float most_[kTileRows];
  double sum_[kTileRows];
};

// Every parts-th tile of all sequences, from tile `part` on, in the scratch of a thread. `failed`
// is the tile that could not be computed.
Status RunTiles(const AttentionPlan& plan, const KernelArgs& args, int part, int parts,
                int64_t* failed) {
  const bool in_place = plan.in_place();
  int64_t before = 0;  // tiles of the sequences before
  for (int64_t b = 0; b < plan.batches; ++b) {
    *failed = before;
    NPUMESH_ASSIGN_OR_RETURN(const Sequence sequence, ReadSequence(plan, args, b));
    const Tiling tiling(plan, sequence.q_rows, in_place, parts);
    const int64_t first = (part - before % parts + parts) % parts;
    for (int64_t i = first; i < tiling.tiles(); i += parts) {
      *failed = before + i;
      Tile tile(sequence, tiling.tile(i), tiling.in_place());
      NPUMESH_RETURN_IF_ERROR(tile.Run());
    }
    before += tiling.tiles();
  }
  return Status();
}

double WorkOf(const AttentionPlan& plan) {
  const auto columns = static_cast<double>(plan.key_room(0) + plan.k_prefix.rows);
  const double rows = static_cast<double>(plan.heads) * static_cast<double>(plan.q.rows) *
                      static_cast<double>(plan.q.packed ? 1 : plan.batches);
  return rows * columns * static_cast<double>(plan.k_width() + plan.v.width);
}

// The failure of the first tile, of those that threads report.
class FirstFailure {
 public:
  void Offer(int64_t tile, Status status) {
    const std::lock_guard lock(mutex_);
    if (!status_.ok() && tile_ <= tile) return;
    tile_ = tile;
    status_ = std::move(status);
  }
  Status Take() { return std::move(status_); }

 private:
  std::mutex mutex_;
  int64_t tile_ = 0;
  Status status_;
};

}  // namespace

// Rows that belong to no sequence are zero, and so are outputs that were not asked for.
Status RunAttention(const AttentionPlan& plan, const KernelArgs& args) {
  ClearOutputs(plan, args);
  const int parts = WorthThreads(WorkOf(plan), plan.threads);
  FirstFailure failure;
  RunParts(parts, [&](int part) {
    const ThreadCount one(1);  // the products of a tile run on the thread of the tile
    const uint64_t room = static_cast<uint64_t>(part) * plan.thread_scratch;
    const KernelArgs own{args.in, args.out, static_cast<std::byte*>(args.scratch) + room};
    int64_t failed = 0;
    Status status = RunTiles(plan, own, part, parts, &failed);
    if (!status.ok()) failure.Offer(failed, std::move(status));
  });
  return failure.Take();
}

}  // namespace npumesh::attention
