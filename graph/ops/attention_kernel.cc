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
#include <cstring>

#include "graph/ops/attention_scores.h"
#include "graph/ops/float_exp.h"
#include "graph/ops/float_rows.h"
#include "graph/ops/row_math.h"

namespace npumesh::attention {
namespace {

constexpr uint64_t kLine = 64;

bool IsNan(float value) {
  return std::isnan(value);
}

class AttentionKernel final : public Kernel {
 public:
  explicit AttentionKernel(const AttentionPlan& plan)
      : plan_(plan),
        shared_(plan.heads / plan.k.heads),
        k_width_(plan.k.width + (plan.k_rope.given() ? plan.k_rope.width : 0)),
        v_width_(plan.v.width) {
    q_at_ = Reserve(kTileRows * k_width_);
    k_at_ = Reserve(kTileColumns * k_width_);
    v_at_ = Reserve(kTileColumns * v_width_);
    scores_at_ = Reserve(kTileRows * kTileColumns);
    sums_at_ = Reserve(kTileRows * v_width_);
    row_at_ = Reserve(std::max(v_width_, kTileColumns));
    factors_at_ = Reserve(v_width_);
  }

  uint64_t scratch_bytes() const override { return scratch_bytes_; }

  Status Run(const KernelArgs& args) override {
    const ProductThreads threads(plan_.threads);
    ClearOutputs(args);
    for (int64_t b = 0; b < plan_.batches; ++b) {
      NPUMESH_ASSIGN_OR_RETURN(const Sequence sequence, ReadSequence(plan_, args, b));
      NPUMESH_RETURN_IF_ERROR(CheckCovers(plan_, plan_.mask, "the mask", sequence));
      NPUMESH_RETURN_IF_ERROR(CheckCovers(plan_, plan_.pse, "the position shift", sequence));
      const int64_t rows = shared_ * sequence.q_rows;
      for (int64_t head = 0; head < plan_.k.heads; ++head) {
        for (int64_t first = 0; first < rows; first += kTileRows) {
          Tile tile{&args, sequence, head, first, std::min(kTileRows, rows - first)};
          NPUMESH_RETURN_IF_ERROR(RunTile(tile));
        }
      }
    }
    return Status();
  }

 private:
  // Up to kTileRows query rows of the heads that share a key head.
  struct Tile {
    const KernelArgs* args;
    const Sequence& sequence;
    int64_t kv_head;
    int64_t first;
    int64_t rows;
    FloatMatrix query = {};
    int64_t head[kTileRows] = {};  // by row of the tile: the query head
    int64_t row[kTileRows] = {};   // and its row
    Columns columns[kTileRows] = {};
    float most[kTileRows] = {};
    double sum[kTileRows] = {};
  };

  uint64_t Reserve(int64_t floats) {
    const uint64_t at = scratch_bytes_;
    const uint64_t bytes = static_cast<uint64_t>(floats) * sizeof(float);
    scratch_bytes_ += (bytes + kLine - 1) / kLine * kLine;
    return at;
  }
  static float* At(const Tile& tile, uint64_t offset) {
    return reinterpret_cast<float*>(static_cast<std::byte*>(tile.args->scratch) + offset);
  }

  static int64_t HeadOf(const Tile& tile, int64_t r) { return tile.head[r]; }
  static int64_t RowOf(const Tile& tile, int64_t r) { return tile.row[r]; }

  // Row r of a tile is row (first + r) % q_rows of the query head (first + r) / q_rows of those
  // that share the key head.
  void Locate(Tile& tile) const {
    int64_t head = tile.kv_head * shared_ + tile.first / tile.sequence.q_rows;
    int64_t row = tile.first % tile.sequence.q_rows;
    for (int64_t r = 0; r < tile.rows; ++r) {
      tile.head[r] = head;
      tile.row[r] = row;
      if (++row < tile.sequence.q_rows) continue;
      row = 0;
      ++head;
    }
  }

  ScoreRow RowIn(const Tile& tile, int64_t r) const {
    return {plan_, *tile.args, tile.sequence, HeadOf(tile, r), RowOf(tile, r)};
  }

  // Rows that belong to no sequence are zero.
  void ClearOutputs(const KernelArgs& args) const {
    const int64_t rows = plan_.q.packed ? plan_.q.rows : plan_.batches * plan_.q.rows;
    const auto statistics = static_cast<uint64_t>(rows * plan_.heads) * sizeof(float);
    const auto bytes =
        static_cast<uint64_t>(rows * plan_.heads * v_width_ * (BitsOf(plan_.out.dtype) / 8));
    if (bytes > 0) std::memset(args.out[plan_.out.slot], 0, bytes);
    if (plan_.zero_port >= 0) *static_cast<float*>(args.out[plan_.zero_port]) = 0;
    if (plan_.lse_port >= 0 && statistics > 0) {
      std::memset(args.out[plan_.lse_port], 0, statistics);
    }
    for (const int port : {plan_.max_port, plan_.sum_port}) {
      if (port >= 0 && statistics > 0) std::memset(args.out[port], 0, 8 * statistics);
    }
  }

  Status RunTile(Tile& tile) const {
    Locate(tile);
    Columns range{tile.sequence.columns(), 0};
    for (int64_t r = 0; r < tile.rows; ++r) {
      Columns& columns = tile.columns[r];
      columns = Visible(plan_, tile.sequence, RowOf(tile, r));
      if (columns.first >= columns.last) continue;
      range.first = std::min(range.first, columns.first);
      range.last = std::max(range.last, columns.last);
    }
    LoadQuery(tile);
    Start(tile);
    std::fill_n(At(tile, sums_at_), tile.rows * v_width_, 0.0f);
    for (int walk = plan_.quantised ? 0 : 1; walk < 2; ++walk) {
      for (int64_t first = range.first; first < range.last; first += kTileColumns) {
        const int64_t count = std::min(kTileColumns, range.last - first);
        NPUMESH_RETURN_IF_ERROR(Score(tile, first, count));
        if (plan_.quantised && walk == 1) {
          QuantiseProbabilities(tile, count);
        } else {
          Exponentiate(tile, count);
        }
        if (walk == 1) NPUMESH_RETURN_IF_ERROR(AddValues(tile, first, count));
      }
    }
    for (int64_t r = 0; r < tile.rows; ++r) Finish(tile, r);
    return Status();
  }

  // Rows of one head that are floats already stay where they are.
  void LoadQuery(Tile& tile) const {
    const int64_t last = tile.rows - 1;
    if (plan_.q.dtype == DataType::kFloat && plan_.q_rope.slot < 0 &&
        HeadOf(tile, 0) == HeadOf(tile, last)) {
      const auto* data = static_cast<const float*>(tile.args->in[plan_.q.slot]);
      tile.query = {data + ElementOf(tile, plan_.q, 0), plan_.q.row_stride, false};
      return;
    }
    tile.query = {At(tile, q_at_), k_width_, false};
    float* to = At(tile, q_at_);
    for (int64_t r = 0; r < tile.rows; ++r, to += k_width_) {
      LoadVector(tile, plan_.q, r, to);
      if (plan_.q_rope.slot >= 0) LoadVector(tile, plan_.q_rope, r, to + plan_.q.width);
    }
  }

  void LoadVector(const Tile& tile, const HeadTensor& from, int64_t r, float* to) const {
    LoadNumbers(from.dtype, tile.args->in[from.slot], ElementOf(tile, from, r), from.width, to);
  }

  // First element of the vector of row r of the tile.
  int64_t ElementOf(const Tile& tile, const HeadTensor& tensor, int64_t r) const {
    const int64_t batch = tensor.packed ? 0 : tile.sequence.index * tensor.batch_stride;
    return batch + (tile.sequence.q_begin + RowOf(tile, r)) * tensor.row_stride +
           HeadOf(tile, r) * tensor.head_stride;
  }

  // A sink is a column that has been seen already and adds nothing to the output.
  void Start(Tile& tile) const {
    for (int64_t r = 0; r < tile.rows; ++r) {
      const bool sink = plan_.sink.given();
      tile.most[r] = sink ? plan_.sink.At(*tile.args, HeadOf(tile, r)) : kMasked;
      tile.sum[r] = sink ? 1 : 0;
    }
  }

  // scores = scale * q k^T + pse for columns [first, first + count), -inf where masked.
  Status Score(const Tile& tile, int64_t first, int64_t count) const {
    float* scores = At(tile, scores_at_);
    NPUMESH_ASSIGN_OR_RETURN(const FloatMatrix k,
                             ColumnsOf(plan_, *tile.args, tile.sequence, false, tile.kv_head, first,
                                       count, At(tile, k_at_)));
    NPUMESH_RETURN_IF_ERROR(
        Multiply(tile.rows, count, k_width_, tile.query, k, false, scores, count));
    const float dequant = plan_.score_scale.given() ? plan_.score_scale.At(*tile.args, 0) : 1.0f;
    const float scale = plan_.scale * dequant;
    for (int64_t r = 0; r < tile.rows; ++r, scores += count) {
      const bool late = plan_.scales_pse;
      if (!late) ScaleRow(scores, scale, count, scores);
      if (plan_.pse.slot >= 0) AddShift(RowIn(tile, r), first, count, At(tile, row_at_), scores);
      if (late) ScaleRow(scores, scale, count, scores);
      MaskScores(RowIn(tile, r), tile.columns[r], first, count, scores);
    }
    return Status();
  }

  // scores become exp(score - m); m, l and the output so far follow.
  void Exponentiate(Tile& tile, int64_t count) const {
    float* scores = At(tile, scores_at_);
    float* sums = At(tile, sums_at_);
    for (int64_t r = 0; r < tile.rows; ++r, scores += count, sums += v_width_) {
      const float most = std::max(tile.most[r], LargestInRow(scores, count));
      if (most == kMasked && std::none_of(scores, scores + count, IsNan)) {
        std::fill_n(scores, count, 0.0f);
        continue;
      }
      ExponentialsOfRow(scores, most, count, scores);
      if (most != tile.most[r]) {
        const float shrink = tile.most[r] == kMasked ? 0.0f : ExpOfNonPositive(tile.most[r] - most);
        tile.sum[r] *= static_cast<double>(shrink);
        ScaleRow(sums, shrink, v_width_, sums);
        tile.most[r] = most;
      }
      tile.sum[r] += SumOfRow(scores, count);
    }
  }

  // scores become the probabilities as 8-bit integers.
  void QuantiseProbabilities(const Tile& tile, int64_t count) const {
    const float scale =
        plan_.probability_scale.given() ? plan_.probability_scale.At(*tile.args, 0) : 1.0f;
    float* scores = At(tile, scores_at_);
    for (int64_t r = 0; r < tile.rows; ++r, scores += count) {
      const bool nothing = tile.most[r] == kMasked;
      const float factor = nothing ? 0.0f : scale / static_cast<float>(tile.sum[r]);
      for (int64_t j = 0; j < count; ++j) {
        const float p = nothing ? 0.0f : ExpOfNonPositive(scores[j] - tile.most[r]) * factor;
        scores[j] = std::clamp(std::nearbyint(p), -128.0f, 127.0f);
      }
    }
  }

  Status AddValues(const Tile& tile, int64_t first, int64_t count) const {
    float* scores = At(tile, scores_at_);
    for (int64_t r = 0; plan_.drop_mask >= 0 && r < tile.rows; ++r) {
      DropScores(RowIn(tile, r), first, count, scores + r * count);
    }
    NPUMESH_ASSIGN_OR_RETURN(const FloatMatrix v,
                             ColumnsOf(plan_, *tile.args, tile.sequence, true, tile.kv_head, first,
                                       count, At(tile, v_at_)));
    return Multiply(tile.rows, v_width_, count, {scores, count, false}, v, true, At(tile, sums_at_),
                    v_width_);
  }

  // Writes row r of the tile: the output and its statistics.
  void Finish(const Tile& tile, int64_t r) const {
    const KernelArgs& args = *tile.args;
    float* row = At(tile, sums_at_) + r * v_width_;
    const bool nothing = tile.sum[r] == 0;
    const float empty = plan_.empty_is_nan ? std::numeric_limits<float>::quiet_NaN() : 0.0f;
    float factor = nothing ? empty : static_cast<float>(1.0 / tile.sum[r]);
    if (plan_.quantised) factor = plan_.sum_scale.given() ? plan_.sum_scale.At(args, 0) : 1.0f;
    ScaleRow(row, factor, v_width_, row);
    void* out = args.out[plan_.out.slot];
    const int64_t element = ElementOf(tile, plan_.out, r);
    if (plan_.out.dtype == DataType::kInt8) {
      ScaleOutput(tile, HeadOf(tile, r), row);
      StoreIntegers(DataType::kInt8, Rounding::kNearest, row, out, element, v_width_);
    } else {
      StoreRow(plan_.out.dtype, row, out, element, v_width_);
    }
    StoreStatistics(tile, r);
  }

  void ScaleOutput(const Tile& tile, int64_t head, float* row) const {
    float* factors = At(tile, factors_at_);
    const auto load = [&](const Factors& from) {
      if (from.count() == 1) {
        std::fill_n(factors, v_width_, from.At(*tile.args, 0));
      } else {
        from.Load(*tile.args, head * v_width_, v_width_, factors);
      }
    };
    load(plan_.out_scale);
    for (int64_t d = 0; d < v_width_; ++d) row[d] *= factors[d];
    if (!plan_.out_offset.given()) return;
    load(plan_.out_offset);
    for (int64_t d = 0; d < v_width_; ++d) row[d] += factors[d];
  }

  // A row that sees nothing has the logarithm of an empty sum, -inf, with which AttentionUpdate
  // gives it no weight.
  void StoreStatistics(const Tile& tile, int64_t r) const {
    const int64_t row = tile.sequence.q_begin + RowOf(tile, r);
    const int64_t head = HeadOf(tile, r);
    const int64_t index = plan_.q.packed
                              ? row * plan_.heads + head
                              : (tile.sequence.index * plan_.heads + head) * plan_.q.rows + row;
    const auto store = [&](int port, float value, int64_t copies) {
      if (port < 0) return;
      std::fill_n(static_cast<float*>(tile.args->out[port]) + index * copies, copies, value);
    };
    store(plan_.max_port, tile.most[r], 8);
    store(plan_.sum_port, static_cast<float>(tile.sum[r]), 8);
    if (plan_.lse_port < 0) return;
    store(plan_.lse_port, tile.most[r] + static_cast<float>(std::log(tile.sum[r])), 1);
  }

  const AttentionPlan plan_;
  int64_t shared_;  // query heads for each key head
  int64_t k_width_;
  int64_t v_width_;
  uint64_t scratch_bytes_ = 0;
  uint64_t q_at_ = 0;
  uint64_t k_at_ = 0;
  uint64_t v_at_ = 0;
  uint64_t scores_at_ = 0;
  uint64_t sums_at_ = 0;
  uint64_t row_at_ = 0;
  uint64_t factors_at_ = 0;
};

}  // namespace

Result<std::unique_ptr<Kernel>> MakeAttentionKernel(const AttentionPlan& plan) {
  return std::unique_ptr<Kernel>(std::make_unique<AttentionKernel>(plan));
}

}  // namespace npumesh::attention
