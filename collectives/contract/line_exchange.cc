#include "collectives/contract/line_exchange.h"

#include <algorithm>
#include <cstring>

namespace npumesh {
namespace {

// Looks in vain between two at an arrival line. Reading it costs its writer a cache miss.
constexpr uint64_t kPatience = 64;

}  // namespace

void LineExchange::Begin(uint64_t call, uint64_t content_fingerprint, const EagerData& eager) {
  const uint64_t most = eager.most_bytes();
  active_ = most != 0 && most <= Round::kLines * StampedLine::kBytes;
  if (!active_) return;
  doubt_ = false;
  call_ = call;
  stamp_ = AtCall(content_fingerprint, call);
  eager_ = eager;
  data_.resize(slots_.size() * kRoom);
  taken_.assign(slots_.size(), 0);
}

// The first line comes last, because readers poll it: they leave the others alone until all are
// written.
void LineExchange::Write(Round& round, std::span<const std::byte> bytes) {
  const size_t whole = bytes.size() / StampedLine::kBytes;
  const size_t at = whole * StampedLine::kBytes, rest = bytes.size() - at;
  if (rest != 0) std::memcpy(round.lines[whole].data, bytes.data() + at, rest);
  // A member without data writes a line, too.
  if (rest != 0 || whole == 0) Stamp(round.lines[whole]);
  for (size_t i = whole; i-- > 0;) {
    std::memcpy(round.lines[i].data, bytes.data() + i * StampedLine::kBytes, StampedLine::kBytes);
    Stamp(round.lines[i]);
  }
}

bool LineExchange::HasCome(size_t i) {
  if (i == slots_.rank() || TakeLines(i)) return true;
  if (++looks_ % kPatience != 0 || !slots_.Arrived(i, call_)) return false;
  // What it wrote before it arrived is seen now, if it is for this request.
  if (!TakeLines(i)) doubt_ = true;
  return true;
}

bool LineExchange::HasBegun(size_t i) const {
  const Round& round = slots_.round(i, call_);
  return slots_.Arrived(i, call_) ||
         std::any_of(std::begin(round.lines), std::end(round.lines), [this](const auto& line) {
           return line.stamp.load(std::memory_order_acquire) == stamp_;
         });
}

bool LineExchange::TakeLines(size_t i) {
  const StampedLine* const lines = slots_.round(i, call_).lines;
  std::byte* const to = data_.data() + i * kRoom;
  const auto [first, last] = LinesOf(eager_.bytes_of(static_cast<int>(i)));
  for (uint64_t next = first + taken_[i]; next <= last; ++next, ++taken_[i]) {
    if (lines[next].stamp.load(std::memory_order_acquire) != stamp_) return false;
    std::memcpy(to + next * StampedLine::kBytes, lines[next].data, StampedLine::kBytes);
  }
  return true;
}

std::pair<uint64_t, uint64_t> LineExchange::LinesOf(uint64_t bytes) const {
  if (bytes == 0) return {0, 0};
  const bool whole = eager_.part_bytes == 0;
  const uint64_t end = whole ? bytes : eager_.part_at + eager_.part_bytes;
  return {whole ? 0 : eager_.part_at / StampedLine::kBytes, (end - 1) / StampedLine::kBytes};
}

}  // namespace npumesh
