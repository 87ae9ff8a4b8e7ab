#include "graph/guard/guarded_area.h"

#include <algorithm>
#include <cstring>

namespace npumesh {
namespace {

void Add(const std::byte* at, std::byte expected, uint64_t bytes, std::optional<Damage>& found) {
  if (!found) found = Damage{at, expected, 0};
  found->bytes += bytes;
}

// Compares [at, end) with the bytes at `expected`.
void CompareWith(const std::byte* expected, const std::byte* at, const std::byte* end,
                 std::optional<Damage>& found) {
  if (at >= end || std::memcmp(at, expected, static_cast<size_t>(end - at)) == 0) return;
  for (; at < end; ++at, ++expected) {
    if (*at != *expected) Add(at, *expected, 1, found);
  }
}

void FindNoCanary(const std::byte* at, const std::byte* end, std::optional<Damage>& found) {
  for (; at < end; ++at) {
    if (*at != kCanary) Add(at, kCanary, 1, found);
  }
}

}  // namespace

GuardedArea::GuardedArea(Kind kind, size_t number, std::span<std::byte> memory, uint64_t margin,
                         const void* original)
    : kind_(kind),
      number_(number),
      memory_(memory),
      margin_(margin),
      original_(static_cast<const std::byte*>(original)) {
  if (original_ == nullptr) copy_.assign(memory.begin(), memory.end());
  std::fill_n(memory.data() - margin, margin, kCanary);
  std::fill_n(memory.data() + memory.size(), margin, kCanary);
}

void GuardedArea::Fill(std::byte value) {
  std::fill(memory_.begin(), memory_.end(), value);
  std::fill(copy_.begin(), copy_.end(), value);
}

GuardedArea::Piece GuardedArea::PieceOf(const ByteRange& range) const {
  const std::byte* const own = memory_.data();
  const std::byte* const from = std::max(range.begin, own);
  const std::byte* const to = std::min(range.end, own + memory_.size());
  if (from >= to) return {};
  return {static_cast<size_t>(from - own), static_cast<size_t>(to - from)};
}

void GuardedArea::Accept(std::span<const ByteRange> ranges) {
  for (const ByteRange& range : ranges) {
    const Piece piece = PieceOf(range);
    std::copy_n(memory_.data() + piece.offset, piece.bytes, copy_.data() + piece.offset);
  }
}

void GuardedArea::Restore(const ByteRange& range) {
  const Piece piece = PieceOf(range);
  std::copy_n(copy_.data() + piece.offset, piece.bytes, memory_.data() + piece.offset);
}

std::optional<Damage> GuardedArea::Find(std::span<const ByteRange> allowed) const {
  std::optional<Damage> found;
  const ByteRange all = range();
  const std::byte* at = all.begin;
  for (const ByteRange& range : allowed) {
    if (!range.Overlaps(all)) continue;
    Compare(at, range.begin, found);
    at = std::max(at, range.end);
  }
  Compare(at, all.end, found);
  return found;
}

void GuardedArea::Compare(const std::byte* begin, const std::byte* end,
                          std::optional<Damage>& found) const {
  const std::byte* const own = memory_.data();
  const std::byte* const own_end = own + memory_.size();
  const std::byte* const expected = original_ != nullptr ? original_ : copy_.data();
  FindNoCanary(begin, std::min(end, own), found);
  const std::byte* const from = std::max(begin, own);
  CompareWith(expected + (from - own), from, std::min(end, own_end), found);
  FindNoCanary(std::max(begin, own_end), end, found);
}

}  // namespace npumesh
