// Reading the inputs that attention operators have in common into an AttentionPlan.
#include <algorithm>

#include "graph/ops/attention.h"
#include "graph/ops/float_rows.h"
#include "graph/ops/infer_checks.h"

namespace npumesh::attention {
namespace {

// K or V without pages: a block is a sequence.
KeyValue Unpaged(const HeadTensor& heads) {
  KeyValue result;
  result.parts = {
      {heads.slot, heads.rows, heads.batch_stride, heads.head_stride, heads.row_stride}};
  result.dtype = heads.dtype;
  result.packed = heads.packed;
  result.blocks = heads.batches;
  result.heads = heads.heads;
  result.width = heads.width;
  result.chunk = heads.width;
  return result;
}

Status CheckHeadType(const OpContext& op, int slot) {
  const DataType dtype = op.in(slot).dtype;
  if (IsNumberType(dtype) && dtype != DataType::kInt32) return Status();
  return Error(Code::kUnsupported,
               "{}: input slot {} is {}, expected float16, bfloat16, float32, int8 or int4",
               op.Who(), slot, Name(dtype));
}

}  // namespace

Result<KeyValue> ReadKeyValue(const OpContext& op, std::string_view port, std::string_view letters,
                              int64_t heads) {
  KeyValue result;
  const int first = op.slot(port);
  for (int i = 0; i < op.count(port); ++i) {
    NPUMESH_RETURN_IF_ERROR(CheckHeadType(op, first + i));
    NPUMESH_ASSIGN_OR_RETURN(const HeadTensor part, HeadsOf(op, first + i, letters, heads));
    const KeyValue one = Unpaged(part);
    if (i == 0) {
      result = one;
      continue;
    }
    const bool fits = one.dtype == result.dtype && one.width == result.width &&
                      one.heads == result.heads && one.blocks == 1 && result.blocks == 1 &&
                      letters.front() == 'B';
    if (!fits) {
      return Error(Code::kInvalidArgument,
                   "{}: \"{}{}\" is {} beside {}; the tensors of a list need batch 1 and equal "
                   "types, heads and head sizes",
                   op.Who(), port, i, op.in(first + i).ToString(), op.in(first).ToString());
    }
    result.parts.push_back(one.parts[0]);
  }
  if (result.given()) return result;
  return Error(Code::kInvalidArgument, "{}: \"{}\" has no tensor", op.Who(), port);
}

Result<KeyValue> ReadPages(const OpContext& op, std::string_view port, int64_t heads) {
  const int slot = op.slot(port);
  NPUMESH_RETURN_IF_ERROR(CheckHeadType(op, slot));
  const TensorType& type = op.in(slot);
  const Shape& shape = type.shape;
  KeyValue result;
  KeyValue::Part part{slot, 0, ElementsBetween(shape, 1, shape.rank()), 0, 0};
  bool fits = op.count(port) == 1 && shape.rank() >= 3 && shape.rank() <= 5 && heads > 0;
  if (fits && shape.rank() == 3) {
    fits = shape[2] % heads == 0;
    result.width = shape[2] / heads;
    part.rows = shape[1];
    part.head_stride = result.width;
    part.row_stride = shape[2];
  } else if (fits && shape.rank() == 4) {
    fits = shape[1] == heads;
    result.width = shape[3];
    part.rows = shape[2];
    part.head_stride = shape[2] * shape[3];
    part.row_stride = shape[3];
  } else if (fits) {
    fits = shape[1] == heads;
    result.width = shape[2] * shape[4];
    part.rows = shape[3];
    part.head_stride = shape[2] * shape[3] * shape[4];
    part.row_stride = shape[4];
    result.chunk_stride = shape[3] * shape[4];
  }
  if (!fits || part.rows == 0) {
    return Error(Code::kInvalidArgument,
                 "{}: \"{}\" is {}, expected a paged cache [blocks,block_size,N*D], "
                 "[blocks,N,block_size,D] or [blocks,N,D/e,block_size,e] with {} heads",
                 op.Who(), port, type.ToString(), heads);
  }
  result.chunk = shape.rank() == 5 ? shape[4] : result.width;
  result.parts = {part};
  result.dtype = type.dtype;
  result.heads = heads;
  result.blocks = shape[0];
  return result;
}

Result<Lengths> ReadLengths(const OpContext& op, std::string_view port, bool sums) {
  Lengths lengths;
  lengths.slot = SlotIfFed(op, port);
  NPUMESH_RETURN_IF_ERROR(ExpectIntegers(op, lengths.slot));
  if (lengths.slot < 0) return lengths;
  lengths.dtype = op.in(lengths.slot).dtype;
  lengths.count = op.in(lengths.slot).shape.elements();
  lengths.sums = sums;
  return lengths;
}

Result<ScoreTensor> ReadScores(const OpContext& op, std::string_view port,
                               const AttentionPlan& plan) {
  ScoreTensor scores;
  const int slot = SlotIfFed(op, port);
  if (slot < 0) return scores;
  const TensorType& type = op.in(slot);
  const int bits = BitsOf(type.dtype);
  const bool one_row = plan.q.rows == 1 && !plan.q.packed;
  std::vector<int64_t> dims = type.shape.dims();
  if (dims.size() == 1 || (dims.size() == 2 && one_row && dims[0] == plan.batches)) {
    dims.insert(dims.end() - 1, 1);
  }
  if (dims.size() == 3) dims.insert(dims.begin() + 1, 1);
  while (dims.size() < 4) dims.insert(dims.begin(), 1);
  const bool fits = dims.size() == 4 && (bits == 8 || IsNumberType(type.dtype)) &&
                    (dims[0] == 1 || dims[0] == plan.batches) &&
                    (dims[1] == 1 || dims[1] == plan.heads);
  if (!fits) {
    return Error(Code::kInvalidArgument,
                 "{}: \"{}\" is {}, expected [S1,S2], [B,S1,S2] or [B,N,S1,S2] for {} sequences "
                 "and {} heads",
                 op.Who(), port, type.ToString(), plan.batches, plan.heads);
  }
  scores.slot = slot;
  scores.dtype = type.dtype;
  scores.rows = dims[2];
  scores.columns = dims[3];
  scores.row_stride = dims[2] == 1 ? 0 : dims[3];
  scores.head_stride = dims[1] == 1 ? 0 : dims[2] * dims[3];
  scores.batch_stride = dims[0] == 1 ? 0 : dims[1] * dims[2] * dims[3];
  return scores;
}

Status SetBand(const OpContext& op, int64_t sparse_mode, AttentionPlan& plan) {
  switch (sparse_mode) {
    case 0:
      plan.band = plan.mask.slot < 0 ? Band::kAll : Band::kTokens;
      return Status();
    case 1:
      plan.band = Band::kAll;
      return Status();
    case 2:
      plan.band = Band::kUpperLeft;
      break;
    case 3:
      plan.band = Band::kLowerRight;
      break;
    case 4:
      plan.band = Band::kShiftedTokens;
      break;
    case 5:
    case 6:
      plan.band = Band::kPrefix;
      break;
    case 7:
      plan.band = Band::kLastBand;
      break;
    case 8:
      plan.band = Band::kFirstBand;
      break;
    default:
      return Error(Code::kInvalidArgument, "{}: sparse_mode {}, expected 0 to 8", op.Who(),
                   sparse_mode);
  }
  plan.mask = {};
  if (plan.band != Band::kPrefix || plan.band_prefix.slot >= 0) return Status();
  return Error(Code::kInvalidArgument, "{}: sparse_mode {} needs the input \"prefix\"", op.Who(),
               sparse_mode);
}

Result<Shape> Complete(const OpContext& op, std::string_view letters, AttentionPlan& plan) {
  const auto refuse = [&](std::string_view why) {
    return Error(Code::kInvalidArgument,
                 "{}: query {} ({} heads), key {} ({} heads) and value {}: {}", op.Who(),
                 op.in(plan.q.slot).ToString(), plan.heads, op.in(plan.k.parts[0].slot).ToString(),
                 plan.k.heads, op.in(plan.v.parts[0].slot).ToString(), why);
  };
  if (!IsRowType(plan.q.dtype) && plan.q.dtype != DataType::kInt8) {
    return Error(Code::kUnsupported, "{}: query is {}, expected float16, bfloat16, float32 or int8",
                 op.Who(), Name(plan.q.dtype));
  }
  if (plan.k.heads <= 0 || plan.heads % plan.k.heads != 0) {
    return refuse("the heads of query must be a multiple of those of key");
  }
  if (plan.q.width != plan.k.width) return refuse("query and key need the same head size");
  const auto same_rows = [](const KeyValue::Part& a, const KeyValue::Part& b) {
    return a.rows == b.rows;
  };
  const std::vector<KeyValue::Part>& keys = plan.k.parts;
  const std::vector<KeyValue::Part>& values = plan.v.parts;
  if (plan.v.heads != plan.k.heads || plan.v.blocks != plan.k.blocks ||
      !std::equal(keys.begin(), keys.end(), values.begin(), values.end(), same_rows)) {
    return refuse("key and value need the same heads and rows");
  }
  const bool paged = plan.block_table >= 0;
  const auto sequences = keys.size() > 1 ? static_cast<int64_t>(keys.size()) : plan.k.blocks;
  if (plan.k.packed != (plan.q.packed && !paged) ||
      (!paged && !plan.k.packed && sequences != plan.batches)) {
    return refuse("query and key need the same number of sequences");
  }
  for (const Lengths* lengths : {&plan.q_lengths, &plan.kv_lengths, &plan.band_prefix}) {
    const bool fits = lengths->count == plan.batches || (lengths->count == 1 && !lengths->sums);
    if (lengths->slot >= 0 && !fits) {
      return Error(Code::kInvalidArgument, "{}: input slot {} holds {} lengths for {} sequences",
                   op.Who(), lengths->slot, lengths->count, plan.batches);
    }
  }
  plan.out.packed = plan.q.packed;
  plan.out.batches = plan.q.batches;
  plan.out.rows = plan.q.rows;
  plan.out.heads = plan.heads;
  plan.out.width = plan.v.width;
  plan.out.slot = 0;
  return ShapeOf(letters, plan.out);
}

}  // namespace npumesh::attention
