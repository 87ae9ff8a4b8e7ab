// Attention: what FusedInferAttentionScore, PromptFlashAttention, IncreFlashAttention and
// FlashAttentionScore have in common, and the blocked kernel that computes it.
//
//   out = softmax(scale * q k^T + pse, masked) v
//
// Each operator's file fills in an AttentionPlan; attention_kernel.cc runs it. The scores exist one
// tile at a time, with the running maximum and sum of each row (online softmax), so memory does not
// grow with the product of the sequence lengths.
#ifndef NPUMESH_GRAPH_OPS_ATTENTION_ATTENTION_H_
#define NPUMESH_GRAPH_OPS_ATTENTION_ATTENTION_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ops/attention/head_block.h"
#include "graph/ops/core/check.h"
#include "graph/ops/core/define.h"
#include "graph/ops/toolbox/product/float_product.h"
#include "graph/ops/toolbox/values/element_io.h"

namespace npumesh::attention {

// Vectors of `width` elements for each sequence, row and head. The distances are in elements. In a
// packed tensor (layouts with T) the rows of all sequences follow each other and there is no batch.
struct HeadTensor {
  int slot = -1;  // of an input, or the port of an output; -1: absent
  DataType dtype = DataType::kUndefined;
  bool packed = false;
  int64_t batches = 1;
  int64_t rows = 0;  // of one sequence; of all when packed
  int64_t heads = 0, width = 0;
  int64_t batch_stride = 0, row_stride = 0, head_stride = 0;

  bool given() const { return slot >= 0; }
  // First element of the vector of a head, in a row of the tensor.
  int64_t Element(int64_t sequence, int64_t head, int64_t row) const {
    return (packed ? 0 : sequence * batch_stride) + head * head_stride + row * row_stride;
  }
};

// Describes an input by the letters of its layout: B batch, S rows, N heads, D width, H = N * D, T
// = rows of all sequences. `heads` is used where H hides it. Objects when the shape does not fit.
HeadTensor HeadsOf(const OpContext& op, int slot, std::string_view letters, int64_t heads,
                   Check& check);

// The shape of a tensor of these dimensions in a layout, and its strides, which are filled in.
Shape ShapeOf(std::string_view letters, HeadTensor& heads);

// The attribute input_layout, "BSH", "BNSD_BSND" ... as the layouts of inputs and output. Objects
// (kUnsupported) to an unknown one.
struct Layouts {
  std::string in, out;
};
Layouts LayoutsOf(const OpContext& op, Check& check);

// Lengths of sequences, read at run time. Absent: every sequence is whole.
struct Lengths : Integers {
  bool sums = false;  // inclusive prefix sums (packed layouts)
  std::string_view padding_port = {};
  Integers padding = {};  // sequences end this many rows before the tensor does
};

// Scales and offsets of a quantised K or V: value = (stored + offset) * scale. The index of an
// element's factor is linear in where the element is; `group` elements of a vector share one (0:
// the whole vector does).
struct Antiquant {
  Factors scale, offset;
  int64_t first = 0, by_batch = 0, by_head = 0;
  int64_t by_position = 0;  // in the sequence
  int64_t by_block = 0;     // of a paged cache
  int64_t by_row = 0;       // in its block
  int64_t group = 0;
};

// K, V, or a part of them: one tensor, or the first of a list with one for each sequence. Where it
// is paged its batches are the blocks of a cache. The vector of a row is in chunks of `chunk`
// elements that are `chunk_stride` apart (tiled caches), normally in one.
struct KeyValue : HeadTensor {
  std::vector<HeadTensor> parts;  // all of the list
  bool paged = false;
  int64_t chunk = 0, chunk_stride = 0;
  Antiquant antiquant;

  KeyValue() = default;  // absent
  explicit KeyValue(const HeadTensor& tensor)
      : HeadTensor(tensor), parts{tensor}, chunk(tensor.width) {}

  const HeadTensor& part(int64_t sequence) const {
    return parts[parts.size() > 1 ? static_cast<size_t>(sequence) : 0];
  }
};

// A tensor over [batch, head, row, column] whose leading dimensions may be broadcast.
struct ScoreTensor {
  int slot = -1;
  DataType dtype = DataType::kUndefined;
  int64_t batch_stride = 0, head_stride = 0, row_stride = 0;
  int64_t rows = 0, columns = 0;
};

// Which columns a row may look at, as the attribute sparse_mode says.
enum class Band : uint8_t {
  kAll,
  kTokens,         // row - pre .. row + next
  kUpperLeft,      // .. row
  kLowerRight,     // .. row + (S2 - S1)
  kShiftedTokens,  // kTokens shifted by S2 - S1
  kPrefix,         // kLowerRight, and the first columns
  kLastBand,       // kLowerRight, for the last sequence kShiftedTokens
  kFirstBand,      // kUpperLeft, for the first sequence kShiftedTokens
};

struct AttentionPlan : Planned {
  int threads = 1;
  int64_t batches = 0, heads = 0;
  HeadTensor q;
  HeadTensor q_rope;  // appended to q, k_rope to k
  HeadTensor out;
  KeyValue k, k_rope, v;
  KeyValue k_prefix, v_prefix;  // rows in front of every sequence
  Lengths q_lengths, kv_lengths, prefix_length;
  int block_table = -1;  // int32 [batches, table_width]: K and V are paged
  int64_t table_width = 0;

  float scale = 1;
  bool scales_pse = false;  // scale * (q k^T + pse)
  ScoreTensor mask;         // not zero: do not look
  bool mask_keeps = false;  // the other way round: zero: do not look
  // The score of what the mask hides; a number above -inf gives a row that sees nothing the even
  // weights of a softmax.
  float mask_value = -std::numeric_limits<float>::infinity();
  ScoreTensor pse;
  Band band = Band::kAll;
  int64_t pre_tokens = 0, next_tokens = 0;
  Lengths band_prefix;        // kPrefix
  Factors sink;               // one more logit for each head
  bool empty_is_nan = false;  // a row that sees nothing gives NaN, as a softmax does; otherwise 0
  int drop_mask = -1;         // bits over [batch, head, row, column]: keep
  float keep_prob = 1;

  // int8 q, k, v: the product of integers is multiplied by the first, the probabilities by the
  // second before they are rounded, the sum by the third.
  bool quantised = false;
  Factors score_scale, probability_scale, sum_scale;
  Factors out_scale;  // int8 output; one, or one for each head and column
  Factors out_offset;

  int lse_port = -1;  // float32 maximum + ln(sum), [.., 1] in the order of (batch, head, row)
  int max_port = -1;  // float32, each value 8 times
  int sum_port = -1;

  // Of a tile; `row` and `factors` are single rows. Each thread has its own, `thread_scratch` bytes
  // apart.
  Workspace<float> q_room, k_room, v_room, scores, sums, row, factors;
  uint64_t thread_scratch = 0;

  // Query heads for each key head.
  int64_t shared() const { return heads / k.heads; }
  int64_t k_width() const { return k.width + (k_rope.given() ? k_rope.width : 0); }
  bool paged() const { return block_table >= 0; }
  // Rows of K and V that a sequence has room for, without the prefix.
  int64_t key_room(int64_t sequence) const {
    return k.part(sequence).rows * (paged() ? table_width : 1);
  }
  // Whether a few rows of queries read K and V where they lie (head_block.h).
  bool in_place() const;
};

// Rows of a tile, and columns of it. A tile holds rows of all the query heads that share a K head,
// or, where K and V are read in place, all rows of several K heads.
inline constexpr int64_t kTileRows = 64;
inline constexpr int64_t kTileColumns = 128;

// Errors at run time: kInvalidArgument for lengths or block numbers that do not fit.
Status RunAttention(const AttentionPlan& plan, const KernelArgs& args);

// The kernel of a plan that was not read from one node: with one output, and without scratch.
Result<std::unique_ptr<Kernel>> MakeAttentionKernel(AttentionPlan plan);

// One sequence of a run. Refers to its plan and its addresses.
struct Sequence {
  const AttentionPlan& plan;
  const KernelArgs& args;
  int64_t index = 0;
  int64_t q_begin = 0;  // first row in q
  int64_t q_rows = 0, kv_begin = 0;
  int64_t kv_rows = 0;  // without the prefix
  int64_t prefix = 0;   // rows of the shared prefix
  int64_t band_prefix = 0;

  int64_t columns() const { return prefix + kv_rows; }
};

// Reads the lengths of sequence `index`, and checks that the tensors hold its rows and scores.
Result<Sequence> ReadSequence(const AttentionPlan& plan, const KernelArgs& args, int64_t index);

// Columns [first, first + count) of K or V of one head, or of `heads` heads from `head` on.
struct ColumnRange {
  enum class Of : uint8_t { kKeys, kValues };
  Of of = Of::kKeys;
  int64_t head = 0, first = 0, count = 0;
  int64_t heads = 1;

  bool values() const { return of == Of::kValues; }
};

// The columns as `count` rows of floats. Error: kInvalidArgument for a block number outside of the
// cache.
Status LoadColumns(const Sequence& sequence, const ColumnRange& columns, float* to);

// The same as the right operand of a product: K transposed, V as it is. Floats that lie in rows
// stay where they are; everything else is loaded into `room`.
Result<FloatMatrix> ColumnsOf(const Sequence& sequence, const ColumnRange& columns, float* room);

// The first of the columns, as many as lie at one distance from each other: at least one. Error as
// LoadColumns. REQUIRES: the plan reads in place.
Result<HeadBlock> BlockOf(const Sequence& sequence, const ColumnRange& columns);

// ---- rows of scores (attention_scores.cc) ----

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

  // First element of its vector in q, or in what is like q; and the vector as floats.
  int64_t Element(const HeadTensor& tensor) const {
    return tensor.Element(sequence.index, head, sequence.q_begin + row);
  }
  void Load(const HeadTensor& tensor, float* to) const {
    LoadNumbers(tensor.dtype, sequence.args.in[tensor.slot], Element(tensor), tensor.width, to);
  }
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

// ---- what fills in plans (attention_plan.cc): all object to what does not fit ----

// K or V in one tensor, or one for each sequence, from the port or dynamic port `port`.
KeyValue ReadKeyValue(const OpContext& op, std::string_view port, std::string_view letters,
                      int64_t heads, Check& check);
// Query, key and value in one layout, with their rotated parts where they are fed: q, k, v, q_rope
// and k_rope of the plan. `pages`: keys and values are in pages.
void ReadTensors(const OpContext& op, std::string_view letters, int64_t key_heads, bool pages,
                 Check& check, AttentionPlan& plan);
// The sequences of packed queries are those that have lengths.
int64_t SequencesOf(const AttentionPlan& plan);
// `port` if the operator has it; otherwise nothing, which reads as an input that is not fed.
std::string_view PortOf(const OpContext& op, std::string_view port);
// An optional input of lengths, and one of their padding where there is a port for it.
Lengths ReadLengths(const OpContext& op, std::string_view port, bool sums, Check& check,
                    std::string_view padding = {});
// An optional mask or shift: [S1, S2], [B, S1, S2] or [B, N, S1, S2] with 1 for what is broadcast;
// for single query rows also [B, S2].
ScoreTensor ReadScores(const OpContext& op, std::string_view port, const AttentionPlan& plan,
                       Check& check);
// The band of a sparse_mode, and atten_mask where the mode reads it.
void ReadBand(const OpContext& op, int64_t sparse_mode, Check& check, AttentionPlan& plan);
// Objects where q, k and v do not belong together; lays out the scratch, and makes the output in
// `letters` output 0.
void Complete(const OpContext& op, std::string_view letters, Check& check, AttentionPlan& plan);
// float32, `copies` times for each head and row.
TensorType StatisticsOf(const AttentionPlan& plan, int64_t copies);

}  // namespace npumesh::attention

#endif  // NPUMESH_GRAPH_OPS_ATTENTION_ATTENTION_H_
