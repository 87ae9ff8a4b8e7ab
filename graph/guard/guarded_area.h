// GuardedArea: a stretch of device memory and the bytes that it is expected to have.
//
// Thread-safety: none.
#ifndef NPUMESH_GRAPH_GUARD_GUARDED_AREA_H_
#define NPUMESH_GRAPH_GUARD_GUARDED_AREA_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace npumesh {

// What lies in memory that belongs to no tensor.
inline constexpr std::byte kCanary{0xA5};
// What lies in scratch memory, and in outputs, before a step writes them: NaN in all float types,
// -1 in integers.
inline constexpr std::byte kPoison{0xFF};

// Addresses [begin, end).
struct ByteRange {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  bool Overlaps(const ByteRange& other) const { return begin < other.end && other.begin < end; }
};

// The first byte that is not what it should be, and how many there are.
struct Damage {
  const std::byte* first = nullptr;
  std::byte expected{};
  uint64_t bytes = 0;
};

class GuardedArea {
 public:
  enum class Kind : uint8_t { kArena, kScratch, kInput, kConstant };

  // `memory` with `margin` bytes before and after it, which become canaries; its own bytes are
  // expected to stay what they are, or, where `original` is given, what they are there.
  GuardedArea(Kind kind, size_t number, std::span<std::byte> memory, uint64_t margin,
              const void* original = nullptr);

  Kind kind() const { return kind_; }
  size_t number() const { return number_; }  // of an input or a constant
  const std::byte* begin() const { return memory_.data(); }
  uint64_t margin() const { return margin_; }
  // With its margins.
  ByteRange range() const {
    return {memory_.data() - margin_, memory_.data() + memory_.size() + margin_};
  }

  // Fills all its own bytes, which are expected from now on.
  void Fill(std::byte value);
  // What is there now of `ranges` is expected from now on. REQUIRES: no `original`.
  void Accept(std::span<const ByteRange> ranges);
  // Puts the expected bytes back there. REQUIRES: no `original`.
  void Restore(const ByteRange& range);
  // What has changed outside of `allowed`, sorted by address.
  std::optional<Damage> Find(std::span<const ByteRange> allowed) const;

 private:
  struct Piece {
    size_t offset = 0;
    size_t bytes = 0;
  };
  // What of `range` lies in the area's own bytes.
  Piece PieceOf(const ByteRange& range) const;
  void Compare(const std::byte* begin, const std::byte* end, std::optional<Damage>& found) const;

  Kind kind_;
  size_t number_;
  std::span<std::byte> memory_;
  uint64_t margin_;
  const std::byte* original_;
  std::vector<std::byte> copy_;  // empty: the bytes of original_
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_GUARD_GUARDED_AREA_H_
