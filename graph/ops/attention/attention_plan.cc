// Reading the inputs that attention operators have in common into an AttentionPlan.
#include <algorithm>

#include "graph/ops/attention/attention.h"
#include "graph/ops/toolbox/rows/plan_parts.h"

namespace npumesh::attention {
namespace {

constexpr TypeSet kHeadTypes = kFloats | kQuantised | DataType::kUint8;

void CheckHeadType(const OpContext& op, int slot, Check& check) {
  const DataType dtype = op.in(slot).dtype;
  check.Supported(kHeadTypes.Contains(dtype), "input slot {} is {}, expected {}", slot, Name(dtype),
                  kHeadTypes);
}

// K or V in pages: [blocks, block_size, N * D], [blocks, N, block_size, D] or tiled
// [blocks, N, D / e, block_size, e].
KeyValue ReadPages(const OpContext& op, std::string_view port, int64_t heads, Check& check) {
  check.That(op.count(port) == 1, "\"{}\" has {} tensors, expected one paged cache", port,
             op.count(port));
  if (!check.ok()) return {};
  const int slot = op.slot(port);
  const TensorType& type = op.in(slot);
  const Shape& shape = type.shape;
  CheckHeadType(op, slot, check);
  KeyValue result;
  if (shape.rank() == 5) {
    const int64_t tiles = shape[2], rows = shape[3], tile = shape[4];
    check.That(shape[1] == heads,
               "\"{}\" is {}, expected [blocks,N,D/e,block_size,e] with {} heads", port, type,
               heads);
    result = KeyValue({.slot = slot,
                       .dtype = type.dtype,
                       .batches = shape[0],
                       .rows = rows,
                       .heads = heads,
                       .width = tiles * tile,
                       .batch_stride = heads * tiles * rows * tile,
                       .row_stride = tile,
                       .head_stride = tiles * rows * tile});
    result.chunk = tile;
    result.chunk_stride = rows * tile;
  } else {
    result = KeyValue(HeadsOf(op, slot, shape.rank() == 3 ? "BSH" : "BNSD", heads, check));
  }
  check.That(result.rows > 0, "\"{}\" is {}, expected blocks with rows", port, type);
  result.paged = true;
  return result;
}

// The same number of blocks, and of rows in each tensor.
bool HaveEqualRows(const KeyValue& a, const KeyValue& b) {
  return a.batches == b.batches &&
         std::equal(a.parts.begin(), a.parts.end(), b.parts.begin(), b.parts.end(),
                    [](const auto& x, const auto& y) { return x.rows == y.rows; });
}

void CheckRope(const AttentionPlan& plan, Check& check) {
  const HeadTensor& q = plan.q_rope;
  const KeyValue& k = plan.k_rope;
  const bool fits = k.given() == q.given() &&
                    (!k.given() || (k.width == q.width && HaveEqualRows(k, plan.k) &&
                                    q.rows == plan.q.rows && q.batches == plan.q.batches));
  check.That(fits, "the rotary part (query_rope, key_rope) does not fit query and key");
}

void CheckLengths(const AttentionPlan& plan, Check& check) {
  for (const Lengths* lengths : {&plan.q_lengths, &plan.kv_lengths, &plan.band_prefix}) {
    const int64_t count = lengths->count();
    const bool fits = count == plan.batches || (count == 1 && !lengths->sums);
    check.That(!lengths->given() || fits, "input slot {} holds {} lengths for {} sequences",
               lengths->slot(), count, plan.batches);
  }
}

void LayOut(AttentionPlan& plan) {
  Scratch& scratch = plan.scratch;
  const int64_t k = plan.k_width(), v = plan.v.width;
  plan.q_room = scratch.Floats(kTileRows * k);
  plan.k_room = scratch.Floats(kTileColumns * k);
  plan.v_room = scratch.Floats(kTileColumns * v);
  plan.scores = scratch.Floats(kTileRows * kTileColumns);
  plan.sums = scratch.Floats(kTileRows * v);
  plan.row = scratch.Floats(std::max(v, kTileColumns));
  plan.factors = scratch.Floats(v);
  plan.thread_scratch = scratch.bytes();
  for (int thread = 1; thread < plan.threads; ++thread) {
    scratch.Take<std::byte>(static_cast<int64_t>(plan.thread_scratch));
  }
}

}  // namespace

Result<std::unique_ptr<Kernel>> MakeAttentionKernel(AttentionPlan plan) {
  plan.outputs = {
      {plan.out.dtype, {plan.out.batches, plan.out.rows, plan.out.heads, plan.out.width}}};
  LayOut(plan);
  return std::unique_ptr<Kernel>(
      std::make_unique<define::PlannedKernel<AttentionPlan, RunAttention>>(std::move(plan)));
}

KeyValue ReadKeyValue(const OpContext& op, std::string_view port, std::string_view letters,
                      int64_t heads, Check& check) {
  KeyValue result;
  const int first = op.slot(port);
  check.That(op.count(port) > 0, "\"{}\" has no tensor", port);
  for (int i = 0; i < op.count(port); ++i) {
    CheckHeadType(op, first + i, check);
    const HeadTensor one = HeadsOf(op, first + i, letters, heads, check);
    if (i == 0) {
      result = KeyValue(one);
      continue;
    }
    check.That(one.dtype == result.dtype && one.width == result.width &&
                   one.heads == result.heads && one.batches == 1 && result.batches == 1 &&
                   letters.front() == 'B',
               "\"{}{}\" is {} beside {}; the tensors of a list need batch 1 and equal types, "
               "heads and head sizes",
               port, i, op.in(first + i), op.in(first));
    result.parts.push_back(one);
  }
  return result;
}

std::string_view PortOf(const OpContext& op, std::string_view port) {
  const std::vector<PortSpec>& ports = op.schema().inputs;
  const bool has = std::any_of(ports.begin(), ports.end(),
                               [&](const PortSpec& spec) { return spec.name == port; });
  return has ? port : std::string_view();
}

void ReadTensors(const OpContext& op, std::string_view letters, int64_t key_heads, bool pages,
                 Check& check, AttentionPlan& plan) {
  const auto read = [&](std::string_view port) {
    return pages ? ReadPages(op, port, key_heads, check)
                 : ReadKeyValue(op, port, letters, key_heads, check);
  };
  plan.q = HeadsOf(op, op.slot("query"), letters, plan.heads, check);
  plan.k = read("key");
  plan.v = read("value");
  if (const int slot = SlotIfFed(op, PortOf(op, "query_rope")); slot >= 0) {
    plan.q_rope = HeadsOf(op, slot, letters, plan.heads, check);
  }
  if (SlotIfFed(op, PortOf(op, "key_rope")) >= 0) plan.k_rope = read("key_rope");
}

int64_t SequencesOf(const AttentionPlan& plan) {
  return plan.q.packed ? std::max<int64_t>(plan.q_lengths.count(), 1) : plan.q.batches;
}

Lengths ReadLengths(const OpContext& op, std::string_view port, bool sums, Check& check,
                    std::string_view padding) {
  const Lengths lengths{Integers::Of(op, port), sums, padding, Integers::Of(op, padding)};
  if (lengths.given()) check.Type(port, kIndices);
  if (lengths.padding.given()) check.Type(padding, kIndices);
  return lengths;
}

ScoreTensor ReadScores(const OpContext& op, std::string_view port, const AttentionPlan& plan,
                       Check& check) {
  const int slot = SlotIfFed(op, port);
  if (slot < 0) return {};
  const TensorType& type = op.in(slot);
  const bool one_row = plan.q.rows == 1 && !plan.q.packed;
  std::vector<int64_t> dims = type.shape.dims();
  if (dims.size() == 2 && one_row && dims[0] == plan.batches) dims.insert(dims.end() - 1, 1);
  if (dims.size() == 3) dims.insert(dims.begin() + 1, 1);
  while (dims.size() < 4) dims.insert(dims.begin(), 1);
  const bool typed = BitsOf(type.dtype) == 8 || (kFloats | DataType::kInt32).Contains(type.dtype);
  check.That(dims.size() == 4 && typed && (dims[0] == 1 || dims[0] == plan.batches) &&
                 (dims[1] == 1 || dims[1] == plan.heads),
             "\"{}\" is {}, expected [S1,S2], [B,S1,S2] or [B,N,S1,S2] for {} sequences and {} "
             "heads",
             port, type, plan.batches, plan.heads);
  ScoreTensor scores;
  scores.slot = slot;
  scores.dtype = type.dtype;
  scores.rows = dims[2];
  scores.columns = dims[3];
  scores.row_stride = dims[2] == 1 ? 0 : dims[3];
  scores.head_stride = dims[1] == 1 ? 0 : dims[2] * dims[3];
  scores.batch_stride = dims[0] == 1 ? 0 : dims[1] * dims[2] * dims[3];
  return scores;
}

void ReadBand(const OpContext& op, int64_t sparse_mode, Check& check, AttentionPlan& plan) {
  constexpr Band kBands[] = {Band::kTokens,     Band::kAll,           Band::kUpperLeft,
                             Band::kLowerRight, Band::kShiftedTokens, Band::kPrefix,
                             Band::kPrefix,     Band::kLastBand,      Band::kFirstBand};
  check.That(sparse_mode >= 0 && sparse_mode <= 8, "sparse_mode is {}, expected 0 to 8",
             sparse_mode);
  if (!check.ok()) return;
  if (sparse_mode <= 1) plan.mask = ReadScores(op, "atten_mask", plan, check);
  plan.band = kBands[sparse_mode];
  if (sparse_mode == 0 && plan.mask.slot < 0) plan.band = Band::kAll;
  check.That(plan.band != Band::kPrefix || plan.band_prefix.given(),
             "sparse_mode {} needs the input \"prefix\"", sparse_mode);
}

void Complete(const OpContext& op, std::string_view letters, Check& check, AttentionPlan& plan) {
  if (!check.ok()) return;
  const auto require = [&](bool holds, std::string_view what) {
    check.That(holds, "query {} ({} heads), key {} ({} heads) and value {}: {}", op.in(plan.q.slot),
               plan.heads, op.in(plan.k.slot), plan.k.heads, op.in(plan.v.slot), what);
  };
  check.Supported((kFloats | DataType::kInt8).Contains(plan.q.dtype),
                  "query is {}, expected float16, bfloat16, float32 or int8", Name(plan.q.dtype));
  require(plan.k.heads > 0 && plan.heads % plan.k.heads == 0,
          "the heads of query must be a multiple of those of key");
  require(plan.q.width == plan.k.width, "query and key need the same head size");
  require(plan.v.heads == plan.k.heads && HaveEqualRows(plan.k, plan.v),
          "key and value need the same heads and rows");
  const auto listed = static_cast<int64_t>(plan.k.parts.size());
  const int64_t sequences = listed > 1 ? listed : plan.k.batches;
  require(plan.k.packed == (plan.q.packed && !plan.paged()) &&
              (plan.paged() || plan.k.packed || sequences == plan.batches),
          "query and key need the same number of sequences");
  CheckRope(plan, check);
  CheckLengths(plan, check);
  plan.out.packed = plan.q.packed;
  plan.out.batches = plan.q.batches;
  plan.out.rows = plan.q.rows;
  plan.out.heads = plan.heads;
  plan.out.width = plan.v.width;
  plan.out.slot = 0;
  plan.outputs = {{plan.out.dtype, ShapeOf(letters, plan.out)}};
  LayOut(plan);
}

TensorType StatisticsOf(const AttentionPlan& plan, int64_t copies) {
  return {DataType::kFloat, plan.q.packed ? Shape{plan.q.rows, plan.heads, copies}
                                          : Shape{plan.batches, plan.heads, plan.q.rows, copies}};
}

}  // namespace npumesh::attention
