// Where the rows of attention's tensors lie: layouts, sequences, caches.
#include <algorithm>
#include <array>

#include "graph/ops/attention/attention.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/row_math.h"

namespace npumesh::attention {
namespace {

bool IsKnownLayout(std::string_view letters) {
  constexpr std::array<std::string_view, 8> kKnown = {"BSH", "BSND", "BNSD", "SBH",
                                                      "TND", "NTD",  "NSD",  "NBSD"};
  return std::find(kKnown.begin(), kKnown.end(), letters) != kKnown.end();
}

// Entry `index` of lengths, of which one stands for all.
int64_t LengthAt(const Lengths& lengths, const KernelArgs& args, int64_t index) {
  return lengths.At(args, lengths.count() == 1 ? 0 : index);
}

struct RowRange {
  int64_t begin = 0, count = 0;
};

// The rows of sequence `index` in a tensor with room for `room` of them.
Result<RowRange> ReadRows(const AttentionPlan& plan, const KernelArgs& args, const Lengths& lengths,
                          std::string_view what, int64_t index, int64_t room) {
  RowRange rows{0, room};
  if (lengths.given()) {
    const int64_t value = LengthAt(lengths, args, index);
    if (lengths.sums && index > 0) rows.begin = LengthAt(lengths, args, index - 1);
    rows.count = value - rows.begin;
    if (rows.begin < 0 || rows.count < 0 || rows.count > room || rows.begin > room - rows.count) {
      return Error(Code::kInvalidArgument,
                   "{}: the {} of sequence {} is {}{}, there is room for {} rows", plan.who, what,
                   index, lengths.sums ? "a prefix sum, " : "", value, room);
    }
  }
  if (!lengths.padding.given()) return rows;
  const int64_t pads = lengths.padding.At(args, 0);
  rows.begin = room - pads - rows.count;
  if (pads >= 0 && rows.begin >= 0) return rows;
  return Error(Code::kInvalidArgument, "{}: {} is {}, which leaves no place for {} of {} rows",
               plan.who, lengths.padding_port, pads, rows.count, room);
}

// Error unless a mask or shift covers a sequence.
Status CheckCovers(const Sequence& sequence, const ScoreTensor& tensor, std::string_view what) {
  const bool rows_fit = tensor.row_stride == 0 || tensor.rows >= sequence.q_rows;
  if (tensor.slot < 0 || (rows_fit && tensor.columns >= sequence.columns())) return Status();
  return Error(Code::kInvalidArgument, "{}: {} covers {} x {} scores, sequence {} has {} x {}",
               sequence.plan.who, what, tensor.rows, tensor.columns, sequence.index,
               sequence.q_rows, sequence.columns());
}

// The place of one row of a cache.
struct Place {
  const void* data = nullptr;
  int64_t element = 0;  // of the row's first chunk
  int64_t position = 0, block = 0;
  int64_t row = 0;  // in the block
};

Result<Place> PlaceOf(const Sequence& sequence, const KeyValue& from, int64_t head,
                      int64_t position) {
  const HeadTensor& part = from.part(sequence.index);
  const AttentionPlan& plan = sequence.plan;
  Place place;
  place.data = sequence.args.in[part.slot];
  place.position = position;
  place.row = sequence.kv_begin + position;
  place.block = from.parts.size() > 1 || from.packed ? 0 : sequence.index;
  if (from.paged) {
    const auto* table = static_cast<const int32_t*>(sequence.args.in[plan.block_table]);
    place.block = table[sequence.index * plan.table_width + place.row / part.rows];
    if (place.block < 0 || place.block >= from.batches) {
      return Error(Code::kInvalidArgument,
                   "{}: the block table names block {} for position {} of sequence {}, the cache "
                   "has {} blocks",
                   plan.who, place.block, place.row, sequence.index, from.batches);
    }
    place.row %= part.rows;
  }
  place.element = part.Element(place.block, head, place.row);
  return place;
}

// row = (row + offset) * scale for elements that share one factor, or have one each.
void Scale(const Antiquant& antiquant, const KernelArgs& args, int64_t index, bool shared,
           int64_t count, float* row) {
  constexpr int64_t kChunk = 64;
  std::array<float, kChunk> scale;
  std::array<float, kChunk> offset{};
  for (int64_t begin = 0; begin < count; begin += kChunk) {
    const int64_t chunk = std::min(kChunk, count - begin);
    const int64_t first = shared ? index : index + begin;
    const int64_t factors = shared ? 1 : chunk;
    antiquant.scale.Load(args, first, factors, scale.data());
    if (antiquant.offset.given()) antiquant.offset.Load(args, first, factors, offset.data());
    for (int64_t i = 0; i < chunk; ++i) {
      const auto at = static_cast<size_t>(shared ? 0 : i);
      row[begin + i] = (row[begin + i] + offset[at]) * scale[at];
    }
  }
}

void Dequantise(const Sequence& sequence, const KeyValue& from, int64_t head, const Place& place,
                float* row) {
  const Antiquant& antiquant = from.antiquant;
  const KernelArgs& args = sequence.args;
  const int64_t width = from.width;
  if (!antiquant.scale.given()) return;
  const int64_t index = antiquant.first + sequence.index * antiquant.by_batch +
                        head * antiquant.by_head + place.position * antiquant.by_position +
                        place.block * antiquant.by_block + place.row * antiquant.by_row;
  if (antiquant.group <= 1) {
    Scale(antiquant, args, index, antiquant.group == 0, width, row);
    return;
  }
  for (int64_t d = 0; d < width; d += antiquant.group) {
    const int64_t count = std::min(antiquant.group, width - d);
    Scale(antiquant, args, index + d / antiquant.group, true, count, row + d);
  }
}

// How many rows lie at one distance from each other, of the `count` that begin at a place.
int64_t RunFrom(const KeyValue& from, const HeadTensor& part, const Place& place, int64_t count) {
  return from.paged ? std::min(count, part.rows - place.row) : count;
}

// As LoadRows, of 16-bit floats.
Status LoadHalfRows(const Sequence& sequence, const KeyValue& from, int64_t head, int64_t first,
                    int64_t count, int64_t stride, float* to) {
  const HeadTensor& part = from.part(sequence.index);
  for (int64_t i = 0; i < count;) {
    NPUMESH_ASSIGN_OR_RETURN(const Place place, PlaceOf(sequence, from, head, first + i));
    const int64_t run = RunFrom(from, part, place, count - i);
    const auto* data = static_cast<const uint16_t*>(place.data) + place.element;
    WidenRows({from.dtype, data, part.row_stride, run, from.width}, to, stride);
    i += run;
    to += run * stride;
  }
  return Status();
}

// `count` rows of one tensor, `stride` floats apart.
Status LoadRows(const Sequence& sequence, const KeyValue& from, int64_t head, int64_t first,
                int64_t count, int64_t stride, float* to) {
  const bool half = from.dtype == DataType::kFloat16 || from.dtype == DataType::kBfloat16;
  if (half && from.chunk >= from.width && !from.antiquant.scale.given()) {
    return LoadHalfRows(sequence, from, head, first, count, stride, to);
  }
  for (int64_t i = 0; i < count; ++i, to += stride) {
    NPUMESH_ASSIGN_OR_RETURN(const Place place, PlaceOf(sequence, from, head, first + i));
    for (int64_t d = 0, at = place.element; d < from.width; d += from.chunk) {
      LoadNumbers(from.dtype, place.data, at, std::min(from.chunk, from.width - d), to + d);
      at += from.chunk_stride;
    }
    Dequantise(sequence, from, head, place, to);
  }
  return Status();
}

// The letters of a layout with H, the vectors of all heads side by side, as N and D.
std::string Expanded(std::string_view letters) {
  std::string expanded(letters);
  if (const size_t at = expanded.find('H'); at != std::string::npos) expanded.replace(at, 1, "ND");
  return expanded;
}

// What a letter stands for. The elements of a vector (D) lie side by side.
struct Dimension {
  int64_t* extent;
  int64_t* stride;
};
Dimension DimensionOf(HeadTensor& heads, char letter) {
  if (letter == 'B') return {&heads.batches, &heads.batch_stride};
  if (letter == 'N') return {&heads.heads, &heads.head_stride};
  if (letter == 'D') return {&heads.width, nullptr};
  return {&heads.rows, &heads.row_stride};
}

void SetStrides(std::string_view expanded, HeadTensor& heads) {
  int64_t distance = 1;
  for (size_t i = expanded.size(); i-- > 0;) {
    const auto [extent, stride] = DimensionOf(heads, expanded[i]);
    if (stride != nullptr) *stride = distance;
    distance *= *extent;
  }
}

// Whether the vectors of K or V are numbers that head_block.h reads, each in one piece.
bool IsInPlace(const KeyValue& from) {
  return kFloats.Contains(from.dtype) && from.chunk >= from.width && !from.antiquant.scale.given();
}

}  // namespace

bool AttentionPlan::in_place() const {
  return !quantised && !k_rope.given() && IsInPlace(k) && IsInPlace(v) &&
         (!k_prefix.given() || (IsInPlace(k_prefix) && IsInPlace(v_prefix)));
}

Layouts LayoutsOf(const OpContext& op, Check& check) {
  const std::string name = op.attr_string("input_layout");
  const size_t cut = name.find('_');
  Layouts layouts;
  layouts.in = name.substr(0, cut);
  layouts.out = cut == std::string::npos ? layouts.in : name.substr(cut + 1);
  check.Supported(
      IsKnownLayout(layouts.in) && layouts.in != "NBSD" && IsKnownLayout(layouts.out),
      "input_layout is \"{}\"; known are BSH, BSND, BNSD, SBH, TND, NTD, NSD, and pairs of "
      "input and output like BNSD_BSND",
      name);
  return layouts;
}

HeadTensor HeadsOf(const OpContext& op, int slot, std::string_view letters, int64_t heads,
                   Check& check) {
  const TensorType& type = op.in(slot);
  const std::string expanded = Expanded(letters);
  std::vector<int64_t> dims = type.shape.dims();
  bool fits = dims.size() == letters.size();
  if (fits && letters.back() == 'H') {
    fits = heads > 0 && dims.back() % heads == 0;
    dims.push_back(fits ? dims.back() / heads : 0);
    dims[dims.size() - 2] = heads;
  }
  HeadTensor result;
  result.slot = slot;
  result.dtype = type.dtype;
  result.packed = letters.find('T') != std::string_view::npos;
  for (size_t i = 0; fits && i < dims.size(); ++i) {
    *DimensionOf(result, expanded[i]).extent = dims[i];
  }
  SetStrides(expanded, result);
  check.That(fits && (heads == 0 || result.heads == heads),
             "input slot {} is {}, expected layout {} with {} heads", slot, type, letters, heads);
  return result;
}

Shape ShapeOf(std::string_view letters, HeadTensor& heads) {
  SetStrides(Expanded(letters), heads);
  std::vector<int64_t> dims;
  for (const char letter : letters) {
    const bool joined = letter == 'H';
    dims.push_back(joined ? heads.heads * heads.width : *DimensionOf(heads, letter).extent);
  }
  return Shape(std::move(dims));
}

Result<Sequence> ReadSequence(const AttentionPlan& plan, const KernelArgs& args, int64_t index) {
  NPUMESH_ASSIGN_OR_RETURN(
      const RowRange q, ReadRows(plan, args, plan.q_lengths, "query length", index, plan.q.rows));
  NPUMESH_ASSIGN_OR_RETURN(const RowRange kv, ReadRows(plan, args, plan.kv_lengths, "key length",
                                                       index, plan.key_room(index)));
  Sequence sequence{plan, args, index, q.begin, q.count, kv.begin, kv.count};
  if (plan.k_prefix.given()) {
    NPUMESH_ASSIGN_OR_RETURN(
        const RowRange rows,
        ReadRows(plan, args, plan.prefix_length, "shared prefix length", 0, plan.k_prefix.rows));
    sequence.prefix = rows.count;
  }
  if (plan.band == Band::kPrefix) {
    NPUMESH_ASSIGN_OR_RETURN(const RowRange rows, ReadRows(plan, args, plan.band_prefix, "prefix",
                                                           index, sequence.columns()));
    sequence.band_prefix = rows.count;
  }
  NPUMESH_RETURN_IF_ERROR(CheckCovers(sequence, plan.mask, "the mask"));
  NPUMESH_RETURN_IF_ERROR(CheckCovers(sequence, plan.pse, "the position shift"));
  return sequence;
}

Result<FloatMatrix> ColumnsOf(const Sequence& sequence, const ColumnRange& columns, float* room) {
  const AttentionPlan& plan = sequence.plan;
  const bool values = columns.values();
  const KeyValue& from = values ? plan.v : plan.k;
  const bool in_rows = from.dtype == DataType::kFloat && !from.antiquant.scale.given() &&
                       from.chunk >= from.width && !from.paged;
  const bool alone = sequence.prefix == 0 && (values || !plan.k_rope.given());
  if (!in_rows || !alone) {
    NPUMESH_RETURN_IF_ERROR(LoadColumns(sequence, columns, room));
    return FloatMatrix{room, values ? from.width : plan.k_width(), !values};
  }
  NPUMESH_ASSIGN_OR_RETURN(const Place place, PlaceOf(sequence, from, columns.head, columns.first));
  return FloatMatrix{static_cast<const float*>(place.data) + place.element,
                     from.part(sequence.index).row_stride, !values};
}

Status LoadColumns(const Sequence& sequence, const ColumnRange& columns, float* to) {
  const AttentionPlan& plan = sequence.plan;
  const bool values = columns.values();
  const int64_t head = columns.head;
  const KeyValue& from = values ? plan.v : plan.k;
  const int64_t stride = values ? from.width : plan.k_width();
  const int64_t in_front = std::clamp(sequence.prefix - columns.first, int64_t{0}, columns.count);
  if (in_front > 0) {  // all sequences share the prefix
    NPUMESH_RETURN_IF_ERROR(LoadRows({plan, sequence.args}, values ? plan.v_prefix : plan.k_prefix,
                                     head, columns.first, in_front, stride, to));
  }
  to += in_front * stride;
  const int64_t first = columns.first + in_front - sequence.prefix;
  const int64_t count = columns.count - in_front;
  NPUMESH_RETURN_IF_ERROR(LoadRows(sequence, from, head, first, count, stride, to));
  if (values || !plan.k_rope.given()) return Status();
  return LoadRows(sequence, plan.k_rope, head, first, count, stride, to + from.width);
}

Result<HeadBlock> BlockOf(const Sequence& sequence, const ColumnRange& columns) {
  const AttentionPlan& plan = sequence.plan;
  const bool values = columns.values(), in_front = columns.first < sequence.prefix;
  const KeyValue& prefix = values ? plan.v_prefix : plan.k_prefix;
  const KeyValue& from = in_front ? prefix : values ? plan.v : plan.k;
  const Sequence shared{plan, sequence.args};  // of the prefix
  const Sequence& of = in_front ? shared : sequence;
  const int64_t position = in_front ? columns.first : columns.first - sequence.prefix;
  const int64_t end = in_front ? sequence.prefix : columns.first + columns.count;
  const int64_t count = std::min(columns.count, end - columns.first);
  NPUMESH_ASSIGN_OR_RETURN(const Place place, PlaceOf(of, from, columns.head, position));
  const HeadTensor& part = from.part(of.index);
  const auto* data = static_cast<const std::byte*>(place.data);
  return HeadBlock{.dtype = from.dtype,
                   .data = data + *BytesOf(from.dtype, place.element),
                   .rows = RunFrom(from, part, place, count),
                   .heads = columns.heads,
                   .width = from.width,
                   .row_stride = part.row_stride,
                   .head_stride = part.head_stride};
}

}  // namespace npumesh::attention
