#include "graph/ops/toolbox/rows/sequence_rows.h"

#include "graph/ops/core/check.h"
#include "graph/ops/toolbox/values/element_io.h"

namespace npumesh {

Result<SequenceRows> SequenceRows::Of(const OpContext& op, std::string_view port,
                                      std::string_view layout_attr, std::string_view lengths,
                                      std::string_view table, int64_t batch) {
  const std::string layout = op.attr_string(layout_attr);
  const TensorType& type = op.in(port);
  SequenceRows rows;
  rows.who_ = op.Who();
  rows.port_ = std::string(port);
  rows.lengths_ = SlotIfFed(op, lengths);
  rows.packed_ = layout == "TND";
  const bool paged = layout == "PA_BSND" && !table.empty();
  const int rank = type.shape.rank();
  Check check(op);
  check.Supported(paged || rows.packed_ || layout == "BSND", "{} \"{}\", expected BSND, TND{}",
                  layout_attr, layout, table.empty() ? "" : " or PA_BSND");
  check.That(rank == (rows.packed_ ? 3 : 4), "\"{}\" is {} with {} {}", port, type, layout_attr,
             layout);
  if (!check.ok()) return check.status();
  rows.heads_ = type.shape[rank - 2];
  rows.width_ = type.shape[rank - 1];
  rows.rows_ = rows.packed_ ? type.shape[0] : type.shape[0] * type.shape[1];
  rows.most_ = rows.packed_ ? type.shape[0] : type.shape[1];
  const bool must = rows.packed_ || paged;
  const bool typed = rows.lengths_ < 0 ? !must : op.in(rows.lengths_).dtype == DataType::kInt32;
  const int64_t counted = rows.lengths_ < 0 ? -1 : op.in(rows.lengths_).shape.elements();
  rows.batch_ = rows.packed_ ? counted : paged ? batch : type.shape[0];
  const bool fits = (counted < 0 || counted == rows.batch_) && (batch < 0 || rows.batch_ == batch);
  check.That(typed && fits,
             "\"{}\" is {} with {} {}, and \"{}\" {}; expected one int32 for each of {} sequences",
             port, type, layout_attr, layout, lengths,
             rows.lengths_ < 0 ? "is missing" : op.in(rows.lengths_).ToString(),
             batch >= 0 ? batch : rows.batch_);
  if (!paged || !check.ok()) return check.Done(std::move(rows));
  rows.table_ = SlotIfFed(op, table);
  rows.blocks_ = type.shape[0];
  rows.block_size_ = type.shape[1];
  const TensorType blocks = rows.table_ < 0 ? TensorType() : op.in(rows.table_);
  check.That(blocks.dtype == DataType::kInt32 && blocks.shape.rank() == 2 &&
                 blocks.shape[0] == rows.batch_,
             "\"{}\" is {}, expected int32 [{},blocks]", table,
             rows.table_ < 0 ? "missing" : blocks.ToString(), rows.batch_);
  if (!check.ok()) return check.status();
  rows.table_width_ = blocks.shape[1];
  rows.most_ = rows.table_width_ * rows.block_size_;
  return rows;
}

Result<int64_t> SequenceRows::Length(const KernelArgs& args, int64_t b) const {
  if (lengths_ < 0) return most_;
  const int64_t before = packed_ && b > 0 ? LengthEntry(args, b - 1) : 0;
  const int64_t length = LengthEntry(args, b) - before;
  if (before >= 0 && length >= 0 && before + length <= most_) return length;
  return Error(Code::kInvalidArgument,
               "{}: the lengths of \"{}\" give sequence {} {} rows behind {}, there are {}", who_,
               port_, b, length, before, most_);
}

Result<int64_t> SequenceRows::Row(const KernelArgs& args, int64_t b, int64_t s) const {
  if (packed_) return (b > 0 ? LengthEntry(args, b - 1) : 0) + s;
  if (table_ < 0) return b * most_ + s;
  const auto* table = static_cast<const int32_t*>(args.in[table_]);
  const int64_t block = table[b * table_width_ + s / block_size_];
  if (block >= 0 && block < blocks_) return block * block_size_ + s % block_size_;
  return Error(Code::kInvalidArgument,
               "{}: the block table puts position {} of sequence {} into block {}, \"{}\" has {}",
               who_, s, b, block, port_, blocks_);
}

}  // namespace npumesh
