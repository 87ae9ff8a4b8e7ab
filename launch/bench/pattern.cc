#include "launch/bench/pattern.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/base/visit_stored.h"

namespace npumesh {
namespace {

// Largest p so that all integers up to 2^p are exact; sums of 64-bit integers leave room for ranks.
int ExactBits(DataType dtype) {
  switch (dtype) {
    case DataType::kFloat:
      return 24;
    case DataType::kFloat16:
      return 11;
    case DataType::kBfloat16:
      return 8;
    default:
      return std::min(BitsOf(dtype), 48) - 1;
  }
}

DataType UnsignedOf(DataType dtype) {
  switch (BitsOf(dtype)) {
    case 8:
      return DataType::kUint8;
    case 16:
      return DataType::kUint16;
    case 32:
      return DataType::kUint32;
    default:
      return DataType::kUint64;
  }
}

// Types that hold no numbers of C++ get the lower bits.
void Encode(DataType dtype, std::span<const int64_t> values, std::byte* out) {
  const DataType stored = IsFloating(dtype) ? dtype : UnsignedOf(dtype);
  const auto encode = [&]<typename T>() {
    for (size_t i = 0; i < values.size(); ++i) {
      const auto element = T(static_cast<decltype(NumberOf(T()))>(values[i]));
      std::memcpy(out + i * sizeof(T), &element, sizeof(T));
    }
  };
  VisitStored(stored, encode, [] {});
}

std::string Hex(const std::byte* element, size_t width) {
  uint64_t bits = 0;
  std::memcpy(&bits, element, width);
  return fmt::format("{:#0{}x}", bits, 2 * width + 2);
}

int64_t Combine(ReduceOp op, int64_t a, int64_t b) {
  switch (op) {
    case ReduceOp::kSum:
      return a + b;
    case ReduceOp::kProd:
      return a * b;
    case ReduceOp::kMax:
      return std::max(a, b);
    case ReduceOp::kMin:
      return std::min(a, b);
  }
  return a;
}

}  // namespace

Pattern::Pattern(DataType dtype, std::optional<ReduceOp> op, int ranks)
    : dtype_(op ? dtype : UnsignedOf(dtype)),
      op_(op),
      ranks_(ranks),
      width_(static_cast<size_t>(BitsOf(dtype)) / 8),
      bytes_(kChunk * width_) {
  int bits = ExactBits(dtype);
  if (op == ReduceOp::kSum) bits -= std::bit_width(static_cast<unsigned>(ranks - 1));
  mask_ = (uint64_t{1} << std::max(0, bits)) - 1;
}

int64_t Pattern::Value(int rank, uint64_t i) const {
  const auto r = static_cast<uint64_t>(rank);
  if (!op_) return static_cast<int64_t>(i * static_cast<uint64_t>(ranks_) + r);
  if (op_ == ReduceOp::kProd) {
    // One factor 2 among signs: no product overflows.
    if ((r + i) % static_cast<uint64_t>(ranks_) == 0) return 2;
    return ((i >> 4) + r) % 2 == 0 ? 1 : -1;
  }
  constexpr uint64_t kStride = 7919;
  return static_cast<int64_t>((i + r * kStride) & mask_);
}

void Pattern::Fold(int rank, uint64_t first, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    values_[i] = Combine(*op_, values_[i], Value(rank, first + i));
  }
}

void Pattern::Make(int source, uint64_t first, size_t count) {
  const bool reduced = source == Piece::kAllRanks;
  const int base = reduced ? 0 : source;
  for (size_t i = 0; i < count; ++i) values_[i] = Value(base, first + i);
  for (int rank = 1; reduced && rank < ranks_; ++rank) Fold(rank, first, count);
  Encode(dtype_, std::span(values_).first(count), bytes_.data());
}

void Pattern::Fill(int rank, std::span<std::byte> buffer) {
  const uint64_t count = buffer.size() / width_;
  for (uint64_t at = 0; at < count; at += kChunk) {
    const size_t part = static_cast<size_t>(std::min<uint64_t>(kChunk, count - at));
    Make(rank, at, part);
    std::memcpy(buffer.data() + at * width_, bytes_.data(), part * width_);
  }
}

std::string Pattern::FirstDifference(std::span<const Piece> pieces, const std::byte* buffer) {
  for (const Piece& piece : pieces) {
    for (uint64_t at = 0; at < piece.count; at += kChunk) {
      const size_t part = static_cast<size_t>(std::min<uint64_t>(kChunk, piece.count - at));
      Make(piece.source, piece.from + at, part);
      const std::byte* actual = buffer + (piece.to + at) * width_;
      if (std::memcmp(actual, bytes_.data(), part * width_) != 0) {
        return Tell(piece, at, actual, part);
      }
    }
  }
  return "";
}

std::string Pattern::Tell(const Piece& piece, uint64_t chunk, const std::byte* actual,
                          size_t count) const {
  size_t i = 0;
  while (i + 1 < count &&
         std::memcmp(actual + i * width_, bytes_.data() + i * width_, width_) == 0) {
    ++i;
  }
  const std::string source = piece.source == Piece::kAllRanks
                                 ? std::string("reduced")
                                 : fmt::format("from rank {}", piece.source);
  return fmt::format("element {} is {}, expected {} ({})", piece.to + chunk + i,
                     Hex(actual + i * width_, width_), Hex(bytes_.data() + i * width_, width_),
                     source);
}

}  // namespace npumesh
