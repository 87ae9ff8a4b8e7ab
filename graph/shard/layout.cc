#include "graph/shard/layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

namespace npumesh {
namespace {

// `whole` with the zeros of the layout.
Tensor Padded(const Tensor& whole, const ShardLayout& layout) {
  Shape shape = whole.shape();
  shape[layout.axis] += layout.padding;
  Tensor padded = Tensor::Allocate({whole.dtype(), shape});
  size_t rows = 1;
  for (int i = 0; i < layout.axis; ++i) rows *= static_cast<size_t>(shape[i]);
  if (whole.bytes() == 0) return padded;
  const size_t from = whole.bytes() / rows, to = padded.bytes() / rows;
  for (size_t row = 0; row < rows; ++row) {
    std::memcpy(padded.mutable_data() + row * to, whole.data() + row * from, from);
  }
  return padded;
}

}  // namespace

std::string ToText(const ShardLayout& layout, int ranks) {
  if (layout.spread == Spreading::kReplicated) return "whole";
  if (layout.spread == Spreading::kPartial) return "partial sums";
  std::string text = fmt::format("axis {}", layout.axis);
  if (!layout.blocks.empty()) {
    text += fmt::format(" in blocks of {}", fmt::join(layout.blocks, ", "));
  }
  if (layout.padding > 0) text += fmt::format(" with {} zeros at its end", layout.padding);
  if (layout.pieces != ranks) text += fmt::format(", {} pieces on {} ranks", layout.pieces, ranks);
  return text;
}

Shape PieceShape(const Shape& shape, const ShardLayout& layout) {
  Shape piece = shape;
  if (layout.split() && piece[layout.axis] > 0) {
    piece[layout.axis] = (piece[layout.axis] + layout.padding) / layout.pieces;
  }
  return piece;
}

Tensor PieceOf(const Tensor& whole, const ShardLayout& layout, int rank, int ranks) {
  if (layout.spread == Spreading::kReplicated) return whole;
  if (layout.spread == Spreading::kPartial)
    return rank == 0 ? whole : Tensor::Allocate(whole.type());
  if (layout.padding > 0) {
    const ShardLayout equal = ShardLayout::Split(layout.axis, layout.pieces);
    return PieceOf(Padded(whole, layout), equal, rank, ranks);
  }
  const Shape& shape = whole.shape();
  Tensor piece = Tensor::Allocate({whole.dtype(), PieceShape(shape, layout)});
  int64_t rows = 1;
  for (int i = 0; i < layout.axis; ++i) rows *= shape[i];
  if (piece.bytes() == 0) return piece;
  const std::vector<int64_t> one_block = {shape[layout.axis]};
  const std::vector<int64_t>& blocks = layout.blocks.empty() ? one_block : layout.blocks;
  const size_t step = whole.bytes() / static_cast<size_t>(rows);
  const size_t each = step / static_cast<size_t>(shape[layout.axis]);  // bytes of one position
  const auto place = static_cast<size_t>(PieceOf(rank, layout.pieces, ranks));
  std::byte* to = piece.mutable_data();
  for (size_t row = 0; row < static_cast<size_t>(rows); ++row) {
    const std::byte* from = whole.data() + row * step;
    for (const int64_t block : blocks) {
      const size_t bytes = static_cast<size_t>(block) * each;
      const size_t part = bytes / static_cast<size_t>(layout.pieces);
      std::memcpy(to, from + place * part, part);
      from += bytes;
      to += part;
    }
  }
  return piece;
}

}  // namespace npumesh
